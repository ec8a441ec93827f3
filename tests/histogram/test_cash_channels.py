"""`Cash` in every channel: its privacy, and the fast law against clients.

Every statistical test has a fixed seed and a false-alarm rate of at most 1e-6.
"""

import itertools

import numpy as np
import pytest
import scipy
from strategies import FALSE_ALARM, TINY, client_sums

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
        with pytest.raises(ValueError, match="delta = None: needs a"):
            CashChannels(TINY, 1.0, 2, None)

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
        items = np.eye(4, SIMPLEX.k, dtype=np.uint8)
        own = np.array([0, channels - 1, -1, 0])
        for rng in (None, np.random.default_rng(1)):
            sent = cash.reports(items, own, np.zeros(4, np.uint64), rng) / grid.step
            np.testing.assert_array_equal(sent, np.rint(sent))


def test_sums_have_the_clients_law():
    cash = CashChannels(PolarCode.construct(8, 3), 1.0, 2)
    items = np.array([[0, 1, 1], [1, 0, 1]], dtype=np.uint8)
    own, counts, rng = np.array([1, 1]), np.array([5, 3]), np.random.default_rng(10)
    expected = np.zeros((2, 8))
    expected[1] = counts @ (2.0 * cash.code.encode(items) - 1) / np.sqrt(8)
    told = np.array(client_sums(cash, items, own, counts, 10, 1000, rng))
    drawn = np.array([cash.draw(items, own, counts, 10, rng) for _ in range(1000)])
    for sums in (told, drawn):
        residual = (sums - expected) / (cash.noise * np.sqrt(10))
        assert scipy.stats.kstest(residual.ravel(), "norm").pvalue > FALSE_ALARM
        means = residual.mean(axis=0) * np.sqrt(1000)
        assert np.abs(means).max() < scipy.stats.norm.isf(FALSE_ALARM / 32)


def test_p_values_are_normal():
    cash = CashChannels(TINY, 1.0, 2)
    z = np.array([-1.0, 0.0, 8.0])
    np.testing.assert_allclose(
        cash.p_value(z * cash.noise / 20, np.zeros(3), 400), scipy.stats.norm.sf(z)
    )
    np.testing.assert_allclose(cash.variance(np.zeros(2), 400), cash.noise**2 / 400)
