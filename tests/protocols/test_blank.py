"""`Blank`: its views, that its fast law is that of its clients, its promise and its error rate."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom, chi2, norm
from strategies import FALSE_ALARM, ITEM, PAPER

from ldpcash import Cash, Point, PolarCode, SCLDecoder
from ldpcash.beyond.audit import audit, bias, randomizer_of
from ldpcash.codec.hadamard import code_of_symbols, hadamard_code
from ldpcash.paper.theory import simplex_error
from ldpcash.protocols.blank import Blank
from ldpcash.protocols.views import Views

SETTINGS = [
    (hadamard_code(4), 0.25, {}),  # bent sets among answers and denials
    (hadamard_code(4), 1.0, {}),  # bent sets among answers, and a blank
    (hadamard_code(4), 2.0, {}),
    (hadamard_code(4), 4.0, {"width": 3}),  # views that share coordinates
    (hadamard_code(3), 3.0, {"width": 1}),
    (PolarCode(16, [5, 10], {14: [5]}), 2.0, {}),
    (PolarCode(8, [3, 5, 7]), 0.7, {}),  # no symbols: signs, with denials
    (PolarCode(8, [3, 5, 7]), 2.0, {}),
]


class TestViews:
    @given(st.integers(1, 7), st.data())
    @settings(max_examples=30, deadline=None)
    def test_sums_of_values_are_coordinates(self, m, data):
        """Against the definition: a value's sum of bits is what the codeword has at its place."""
        width = data.draw(st.integers(1, m if m > 1 else 1))
        code = hadamard_code(m)
        views = Views(code, width)
        words = code.codebook()
        values = views.values_of(words)
        assert values.shape == (2**m, views.count)
        sums = np.arange(views.values)
        parity = np.bitwise_count(values[:, :, None] & sums) & 1
        spectra = (2.0 * parity - 1).transpose(1, 2, 0)
        told = views.sums_of(spectra).T  # each is a multiple of the coordinate's sign
        signs = 2.0 * words - 1
        times = told * signs
        np.testing.assert_array_equal(times, np.broadcast_to(times[0], times.shape))
        assert times.min() >= 0
        assert times[0].sum() == views.count * (views.values - 1)

    @pytest.mark.parametrize(("m", "width"), [(4, 1), (4, 2), (6, 2), (6, 3), (8, 3), (5, 5)])
    def test_values_agree_in_one_view_of_g_or_in_none(self, m, width):
        code = hadamard_code(m)
        values = Views(code, width).values_of(code.codebook())
        same = (values[:, None] == values[None]).mean(axis=2)[~np.eye(2**m, dtype=bool)]
        assert set(same.tolist()) <= {0.0, 2.0**-width}

    @pytest.mark.parametrize(
        ("m", "width", "views"), [(4, 3, 8), (8, 5, 16), (8, 6, 16), (6, 5, 16)]
    )
    def test_few_views_are_enough(self, m, width, views):
        values = Views(hadamard_code(m), width).values_of(hadamard_code(m).codebook())
        assert values.shape[1] == views
        same = (values[:, None] == values[None]).mean(axis=2)[~np.eye(2**m, dtype=bool)]
        assert same.max() <= 1 / views

    def test_wrong_widths(self):
        for code, width in ((PAPER, 2), (hadamard_code(4), 5), (hadamard_code(4), 0)):
            with pytest.raises(ValueError, match=f"width = {width}: needs a whole number from 1"):
                Views(code, width)


@pytest.mark.parametrize(("code", "epsilon", "options"), SETTINGS)
class TestItsLaw:
    def test_of_the_mean_is_that_of_reports(self, code, epsilon, options):
        """Means and covariances over many collections, at six standard errors: false alarms below
        1e-6 in all, as there are fewer than 300 comparisons."""
        blank, rng = Blank(code, epsilon, **options), np.random.default_rng(7)
        clients, runs = 12, 4000
        item = rng.integers(0, 2, (1, code.k), dtype=np.uint8)
        fast = blank.mean_reports(np.repeat(item, runs, axis=0), 5 / 12, clients, rng)
        holds = np.tile(np.arange(clients) < 5, runs)
        sent = blank.reports(np.repeat(item, runs * clients, axis=0), holds, rng)
        slow = sent.reshape(runs, clients, code.n).mean(axis=1)
        error = np.sqrt((fast.var(axis=0) + slow.var(axis=0)) / runs)
        assert (np.abs(fast.mean(axis=0) - slow.mean(axis=0)) <= 6 * error + 1e-12).all()
        for power in (2, 3):  # of a sum over all coordinates, and of the signal
            for weights in (code.signals(item[0]), np.ones(code.n)):
                a, b = ((x @ weights - (slow @ weights).mean()) ** power for x in (fast, slow))
                spread = math.sqrt((a.var() + b.var()) / runs)
                assert abs(a.mean() - b.mean()) <= 6 * spread + 1e-12

    def test_mean_and_noise_are_those_of_the_formula(self, code, epsilon, options):
        """<x, y> has the mean f; from empty clients alone, the variance noise**2 / N."""
        blank, rng = Blank(code, epsilon, **options), np.random.default_rng(8)
        item = rng.integers(0, 2, (1, code.k), dtype=np.uint8)
        items = np.repeat(item, 20_000, axis=0)
        for frequency in (0.0, 0.5, 1.0):
            along = blank.mean_reports(items, frequency, 100, rng) @ code.signals(item[0])
            assert abs(along.mean() - frequency) <= 5.2 * along.std() / math.sqrt(len(along))
            if frequency == 0:
                ratio = along.var() / (blank.answers.noise**2 / 100)
                spread = math.sqrt((((along / along.std()) ** 4).mean() - 1) / len(along))
                assert abs(ratio - 1) <= 5.2 * spread

    def test_the_audit_finds_nothing_and_no_bias(self, code, epsilon, options):
        blank, rng = Blank(code, epsilon, **options), np.random.default_rng(9)
        items = [np.zeros(code.k, np.uint8), np.ones(code.k, np.uint8)]
        for other in (items[1], None):
            send = randomizer_of(blank)
            found = audit(send, items[0], other, epsilon, 0.0, 20_000, rng, 1 - FALSE_ALARM)
            assert not found.refuted
        assert abs(bias(blank, items[1], 20_000, rng)) < 5.2


def test_messages_have_the_law_of_their_coins():
    """Chi-square over all messages in one view: a false-alarm rate of 1e-6 each."""
    blank, rng = Blank(hadamard_code(4), 1.0, width=4), np.random.default_rng(10)
    answer, true, deny, denies = (coin / 2**64 for coin in blank.answers.coins)
    item = np.array([[0, 1, 1, 0]], dtype=np.uint8)
    [value] = blank.views.values_of(blank.code.encode(item))[0].tolist()
    N = 200_000
    for held in (True, False):
        view, denied, told = blank.messages(np.repeat(item, N, axis=0), np.full(N, held), rng)
        law = np.repeat([answer / 16, (1 - answer) / 16], 16)
        if held:
            law[[value ^ own for own in blank.answers.own]] += true / len(blank.answers.own)
            law[16:] = (deny + denies) / 16
        statistic = (
            (np.bincount(16 * denied + told, minlength=32) - N * law) ** 2 / (N * law)
        ).sum()
        assert statistic < chi2.isf(FALSE_ALARM, 31)
        assert (view == 0).all()


def test_the_ends_of_coins_are_where_they_should_be(monkeypatch):
    """A word below the first coin's end answers; the end itself does not."""
    blank = Blank(hadamard_code(4), 1.0, width=4)
    answer, true, _, _ = blank.answers.coins
    words = np.array(
        [0, answer - 1, answer, answer + true - 1, answer + true, 2**64 - 1], np.uint64
    )

    def given(shape, width, rng):
        return words if width == 64 else np.zeros(shape, dtype=np.uint16)

    monkeypatch.setattr("ldpcash.protocols.blank.random_words", given)
    items = np.zeros((6, 4), dtype=np.uint8)
    for held, expected in ((True, [0, 0, 0, 0, 1, 1]), (False, [0, 0, 1, 1, 1, 1])):
        _, denied, value = blank.messages(items, np.full(6, held))
        assert denied.tolist() == expected
    own = blank.answers.own
    _, _, value = blank.messages(items, np.ones(6, bool))
    assert value[[0, 1]].tolist() == [0, 0]
    assert {*value[[2, 3]].tolist()} <= {*own}


def test_very_many_clients_and_none():
    """Sums beyond 32 bits; five standard errors."""
    rng = np.random.default_rng(14)
    for clients in (2**31, 2**33, 10**12, 2**53):
        blank = Blank(hadamard_code(6), 2.0)
        items = rng.integers(0, 2, (50, 6), dtype=np.uint8)
        bits, frequency = blank.estimate(blank.mean_reports(items, 0.25, clients, rng))
        np.testing.assert_array_equal(bits, items)
        assert (
            abs(frequency.mean() - 0.25)
            < 5.2 * 2 * blank.answers.noise / math.sqrt(50 * clients) + 1e-9
        )
    for code in (hadamard_code(6), PAPER):
        blank = Blank(code, 2.0)
        nobody = np.zeros((0, code.k), dtype=np.uint8)
        assert blank.mean_reports(nobody, 0.5, 10, rng).shape == (0, code.n)
        assert blank.reports(nobody, np.zeros(0, dtype=bool), rng).shape == (0, code.n)


def test_real_reports_need_no_generator():
    blank = Blank(hadamard_code(4), 2.0)
    assert blank.reports([[1, 0, 1, 1]] * 5, [True] * 5).shape == (5, 16)


@pytest.mark.parametrize(
    ("epsilon", "frequency"), [(0.5, 0.7), (1.0, 0.33), (2.0, 0.115), (8.0, 0.0037)]
)
def test_its_error_rate_is_that_of_simplex_signals(epsilon, frequency):
    """With many clients, in noise of empty clients and of holders. A false-alarm rate of 1e-6; and
    6 % for what 10^5 clients and an average of two kinds of noise are off."""
    blank, rng = Blank(hadamard_code(8), epsilon), np.random.default_rng(11)
    clients, trials = 100_000, 20_000
    frequency /= 10  # 100 times the clients of the paper
    items = rng.integers(0, 2, (trials, 8), dtype=np.uint8)
    bits, _ = blank.estimate(blank.mean_reports(items, frequency, clients, rng))
    errors = int((bits != items).any(axis=1).sum())
    snr = frequency * math.sqrt(clients) / blank.answers.noise
    low, high = (simplex_error(8, snr * off) for off in (1.04, 0.96))
    assert binom.ppf(FALSE_ALARM, trials, low) <= errors <= binom.isf(FALSE_ALARM, trials, high)


def test_it_finds_rarer_items_than_both_of_the_paper_s():
    """At a frequency where the list of the issue has Blank near 1e-3, the others find nothing."""
    rng = np.random.default_rng(12)
    items = rng.integers(0, 2, (4000, 8), dtype=np.uint8)
    rates = []
    for protocol in (Blank(hadamard_code(8), 2.0), Cash(PAPER, 2.0)):
        bits, _ = protocol.estimate(protocol.mean_reports(items, 0.15, 1000, rng))
        rates.append((bits != items).any(axis=1).mean())
    assert rates[0] < 0.01 < 0.5 < rates[1]


def test_long_items_are_found_by_list_decoding():
    blank, rng = Blank(code_of_symbols(64, 2048), 4.0), np.random.default_rng(13)
    items = rng.integers(0, 2, (20, 64), dtype=np.uint8)
    f = 1.5 * math.sqrt(2 * math.log(2) * 64) * blank.answers.noise / math.sqrt(10**6)
    bits, frequency = blank.estimate(blank.mean_reports(items, f, 10**6, rng))
    np.testing.assert_array_equal(bits, items)
    np.testing.assert_allclose(frequency, f, rtol=norm.isf(1e-7) / 1.5 / math.sqrt(88))


def test_a_point_has_it():
    point = Point(protocol="Blank", epsilon=2, frequency=0.5, clients=100)
    assert (point.decoder, point.options) == ("SCL", {"width": None, "expected": 0.0})


def test_wrong_arguments():
    with pytest.raises(ValueError, match="width = 2: needs a whole number from 1 to 1"):
        Blank(PAPER, 2.0, width=2)
    with pytest.raises(ValueError, match="epsilon = 50"):
        Blank(PAPER, 50)
    with pytest.raises(ValueError, match="decoder = one for"):
        Blank(hadamard_code(4), 1.0, SCLDecoder(PAPER))
    with pytest.raises(ValueError, match="holds has shape"):
        Blank(PAPER, 2.0).reports([ITEM], [True, False])
