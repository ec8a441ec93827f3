"""`Cash` in every channel: its privacy, what it lets in, and the fast law against clients.

Every statistical test has a fixed seed and a false-alarm rate of at most 1e-6.
"""

import itertools

import numpy as np
import pytest
import scipy
from strategies import FALSE_ALARM, TINY

from ldpcash import PolarCode, gaussian_sigma
from ldpcash.histogram.cash_channels import CashChannels
from ldpcash.privacy.grid import grid_delta

SIMPLEX = PolarCode(16, [7, 11, 13, 14])


class TestPrivacy:
    @pytest.mark.parametrize("info", [[1, 2, 3], [1, 2], [0]])
    def test_noise_covers_the_largest_distance(self, info):
        code = PolarCode(4, info)
        words = (2.0 * code.codebook() - 1) / 2
        signals = [np.zeros(12)]  # three channels; the first client holds nothing
        for channel, word in itertools.product(range(3), words):
            signals.append(np.zeros(12))
            signals[-1][4 * channel : 4 * channel + 4] = word
        largest = max(np.linalg.norm(a - b) for a, b in itertools.combinations(signals, 2))
        assert largest == pytest.approx(max(code.sensitivity, np.sqrt(2)))
        assert CashChannels(code, 1.0, 4, 1e-5).noise == pytest.approx(
            gaussian_sigma(1.0, 1e-5, largest)
        )

    def test_keeps_plain_numbers(self):
        cash = CashChannels(TINY, np.float32(1), 2, np.float32(0.25))
        assert (type(cash.epsilon), type(cash.delta)) == (float, float)
        for wrong in (None, 0, 1.0):
            with pytest.raises(ValueError, match=f"^delta = {wrong}: needs a"):
                CashChannels(TINY, 1.0, 2, wrong)

    def test_one_channel_is_the_paper_s(self):
        assert CashChannels(PolarCode(64, [0]), 1.0, 1).noise == gaussian_sigma(1.0, 1e-4, 1.0)

    def test_a_code_too_large_to_enumerate_counts_with_its_bound(self):
        code = PolarCode(64, range(20, 50))
        noise = gaussian_sigma(1.0, 1e-4, code.sensitivity)
        assert CashChannels(code, 1.0, 2).noise == noise > gaussian_sigma(1.0, 1e-4, 1.9)

    def test_the_grid_counts_words_in_different_channels(self):
        """Where words are light, no pair of inputs is farther apart: one level in 2 n places."""
        cash = CashChannels(PolarCode(16, [1, 2]), 1.0, 4)
        two_channels = grid_delta(1.0, cash.grid.scale, cash.grid.level, 2 * 16)
        assert two_channels <= cash.grid.delta(1.0) <= cash.delta

    @pytest.mark.parametrize("channels", [1, 4])
    def test_reports_lie_on_a_grid_that_keeps_the_promise(self, channels):
        """Also for words in different channels: a difference of one level in 2 n coordinates."""
        cash = CashChannels(SIMPLEX, 1.0, channels)
        grid, n = cash.grid, SIMPLEX.n
        apart = grid_delta(1.0, grid.scale, grid.level, n * (2 if channels > 1 else 1))
        within = grid_delta(1.0, grid.scale, 2 * grid.level, n // 2)
        assert max(apart, within) <= cash.delta
        items, who = np.eye(4, SIMPLEX.k, dtype=np.uint8), np.array([0, 3, -1, 0])
        own = np.array([0, channels - 1, 0, channels - 1])
        for rng in (None, np.random.default_rng(1)):
            sent = cash.reports(items, own, who, np.zeros(4, np.uint64), rng) / grid.step
            np.testing.assert_array_equal(sent, np.rint(sent))
            assert sent.shape == (4, channels, SIMPLEX.n)


class TestWhatIsLetIn:
    @pytest.mark.parametrize("rejection", [0.3, 0.01])
    def test_norms_of_honest_reports_have_the_tail_that_the_limit_is_made_from(self, rejection):
        """At larger rates than one in a million, 50,000 clients with an item, and as many without.

        Those without are refused as often as their noise alone exceeds the same norm.
        """
        cash = CashChannels(PolarCode.construct(8, 3), 3.0, 2)
        rng, clients = np.random.default_rng(12), 50_000
        items, own = rng.integers(0, 2, (4, 3), dtype=np.uint8), np.array([0, 1, 1, 0])
        who = np.where(np.arange(2 * clients) < clients, np.arange(2 * clients) % 4, -1)
        sent = cash.reports(items, own, who, np.zeros(2 * clients, np.uint64), rng)
        cash.limit = cash.grid.largest_norm(16, rejection)
        refused = ~cash.honest(sent)
        sigma = cash.grid.scale * cash.grid.step
        without = scipy.stats.chi2.sf((cash.limit / sigma) ** 2, 16)
        assert without < rejection
        for some, rate in ((refused[:clients], rejection), (refused[clients:], without)):
            law = scipy.stats.binom(clients, rate)
            assert law.ppf(FALSE_ALARM / 2) <= some.sum() <= law.isf(FALSE_ALARM / 2)

    def test_the_limit_is_one_in_a_million(self):
        cash = CashChannels(PolarCode.construct(64, 8), 1.0, 4)
        assert cash.limit == cash.grid.largest_norm(4 * 64, 1e-6)
        sigma = cash.grid.scale * cash.grid.step
        held = scipy.stats.ncx2.sf((cash.limit / sigma) ** 2, 256, 1 / sigma**2)
        assert held == pytest.approx(1e-6, rel=1e-6)

    @pytest.mark.parametrize("value", [1e30, -1e30, 3e38, np.inf, -np.inf, np.nan])
    def test_a_single_number_that_nobody_honest_sends(self, value):
        cash = CashChannels(PolarCode.construct(8, 3), 1.0, 2)
        sent = np.zeros((3, 2, 8), dtype=np.float32)
        sent[1, 1, 5] = value
        assert cash.honest(sent).tolist() == [True, False, True]
        assert cash.honest(sent[:0]).tolist() == []

    def test_just_within_and_just_beyond(self):
        cash = CashChannels(PolarCode.construct(8, 3), 1.0, 2)
        sent = np.zeros((2, 2, 8), dtype=np.float32)
        sent[:, 0, 0] = cash.limit * np.array([1 - 1e-6, 1 + 1e-6])
        assert cash.honest(sent).tolist() == [True, False]


def client_sums(cash, items, own, counts, clients, trials, rng):
    """Sums of client-by-client reports of many collections."""
    who = np.full(clients, -1)
    who[: sum(counts)] = np.repeat(np.arange(len(counts)), counts)
    seeds = np.zeros(clients, np.uint64)
    for _ in range(trials):
        sums = cash.empty()
        cash.add(sums, seeds, cash.reports(items, own, who, seeds, rng))
        yield sums


def test_sums_have_the_clients_law():
    cash = CashChannels(PolarCode.construct(8, 3), 1.0, 2)
    items = np.array([[0, 1, 1], [1, 0, 1]], dtype=np.uint8)
    own, counts, rng = np.array([1, 1]), np.array([5, 3]), np.random.default_rng(10)
    expected = np.zeros((2, 8))
    expected[1] = counts @ (2.0 * cash.code.encode(items) - 1) / np.sqrt(8)
    told = np.array(list(client_sums(cash, items, own, counts, 10, 1000, rng)))
    drawn = np.array([cash.draw(items, own, counts, 10, rng) for _ in range(1000)])
    for sums in (told, drawn):
        residual = (sums - expected) / (cash.noise * np.sqrt(10))
        assert scipy.stats.kstest(residual.ravel(), "norm").pvalue > FALSE_ALARM
        law = scipy.stats.chi2(residual.size)
        assert law.ppf(FALSE_ALARM / 2) < np.square(residual).sum() < law.isf(FALSE_ALARM / 2)
        means = residual.mean(axis=0) * np.sqrt(1000)
        assert np.abs(means).max() < scipy.stats.norm.isf(FALSE_ALARM / 32)


@pytest.mark.parametrize("n", [8, 16])
def test_sums_are_the_same_in_any_order(n):
    """To the last bit, also where a step is no power of two and reports are rounded."""
    cash = CashChannels(PolarCode.construct(n, 3), 1.0, 2)
    seeds, rng = np.zeros(2000, np.uint64), np.random.default_rng(2)
    items, own = rng.integers(0, 2, (3, 3), dtype=np.uint8), np.array([0, 1, 1])
    sent = cash.reports(items, own, rng.integers(-1, 3, 2000), seeds, rng)
    at_once, backwards = cash.empty(), cash.empty()
    cash.add(at_once, seeds, sent)
    for part in np.array_split(sent[::-1], 7):
        cash.add(backwards, seeds[: len(part)], part)
    np.testing.assert_array_equal(at_once, backwards)


class TestByHand:
    """Six clients of four items in two channels."""

    @pytest.fixture
    def filled(self):
        cash = CashChannels(PolarCode.construct(8, 3), 1.0, 2)
        rng = np.random.default_rng(3)
        items, own = rng.integers(0, 2, (4, 3), dtype=np.uint8), np.array([0, 1, 1, 0])
        seeds = np.zeros(6, np.uint64)
        sent = cash.reports(items, own, np.array([0, 1, -1, 3, 2, 2]), seeds, rng)
        sums = cash.empty()
        cash.add(sums, seeds, sent)
        return cash, items, own, sent, sums

    def test_estimates_are_correlations(self, filled):
        cash, items, own, sent, sums = filled
        expected = [
            sum(float(report[channel] @ word) for report in sent) / 6
            for word, channel in zip(
                (2.0 * cash.code.encode(items) - 1) / np.sqrt(8), own, strict=True
            )
        ]
        signals = cash.signals(sums, 6)
        np.testing.assert_allclose(cash.estimates(signals, items, own), expected, atol=1e-12)

    def test_means_and_energy(self, filled):
        cash, _, _, sent, sums = filled
        mean = np.mean([report.astype(float) for report in sent], axis=0) * np.sqrt(8)
        signals = cash.signals(sums, 6)
        np.testing.assert_allclose(cash.means(signals, np.array([1, 0])), mean[::-1], atol=1e-12)
        np.testing.assert_allclose(cash.energy(signals), [np.mean(row**2) for row in mean])

    def test_what_is_taken_out_is_gone(self, filled):
        cash, items, own, _, sums = filled
        signals, frequency = cash.signals(sums, 6), np.array([0.3, 0.2, 0.4, 0.05])
        signs = 2.0 * cash.code.encode(items) - 1
        expected = signals.copy()
        for f, word, channel in zip(frequency, signs, own, strict=True):
            expected[channel] -= f * word
        cash.take_out(signals, items, own, frequency)
        np.testing.assert_allclose(signals, expected, atol=1e-12)

    def test_an_item_alone(self, filled):
        cash, items, own, _, _ = filled
        signals = cash.signals(cash.empty(), 6)
        cash.take_out(signals, items[:1], own[:1], np.array([-0.5]))
        assert cash.estimates(signals, items[:1], own[:1]) == pytest.approx([0.5])
        np.testing.assert_allclose(cash.energy(signals), [0.25, 0])


def test_p_values_are_normal():
    cash = CashChannels(TINY, 1.0, 2)
    z, sums = np.array([-1.0, 0.0, 8.0]), cash.empty()
    np.testing.assert_allclose(
        cash.p_value(z * cash.noise / 20, np.zeros(3), sums, 400), scipy.stats.norm.sf(z)
    )
    np.testing.assert_allclose(cash.variance(np.zeros(2), sums, 400), cash.noise**2 / 400)
