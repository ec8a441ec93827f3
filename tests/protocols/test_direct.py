"""The three peers that work on items: their promise, their laws, and noise as it was published."""

import math
from fractions import Fraction
from itertools import combinations

import mpmath as mp
import numpy as np
import pytest
from scipy.stats import binom, chi2
from strategies import FALSE_ALARM, PAPER, client_means

from ldpcash import KaryResponse, LocalHashing, MLDecoder, Point, SubsetSelection, parameters_of
from ldpcash.base.arrays import bits_of
from ldpcash.beyond.audit import audit, bias, randomizer_of
from ldpcash.codec.hadamard import hadamard_code
from ldpcash.paper.theory import simplex_error

SMALL = [
    (KaryResponse, 2, 1.0, {}),
    (KaryResponse, 4, 3.0, {}),
    (SubsetSelection, 2, 0.5, {"size": 2}),  # where subsets couple the counts the most
    (SubsetSelection, 2, 2.0, {"size": 3}),
    (SubsetSelection, 2, 6.0, {"size": 2}),  # and these when they have the own item
    (SubsetSelection, 4, 1.0, {}),
    (LocalHashing, 2, 0.3, {"values": 2}),
    (LocalHashing, 2, 3.0, {"values": 3}),
    (LocalHashing, 4, 1.0, {}),
]
SETTINGS = pytest.mark.parametrize(("kind", "k", "epsilon", "options"), SMALL)


def law(protocol):
    """From its threshold alone, how likely each support is, for every item and for none: a dict of
    lists, in fractions. Of `LocalHashing` over all functions."""
    M, keep = protocol.code.n, Fraction(int(protocol._threshold), 2**64)
    found = {}
    for size in range(M + 1):
        for support in combinations(range(M), size):
            own = [item in support for item in range(M)]
            if isinstance(protocol, LocalHashing):
                q = Fraction(1, protocol.values)
                anyone = q**size * (1 - q) ** (M - size)
            else:
                q = Fraction(protocol.size, M)
                anyone = Fraction(size == protocol.size, math.comb(M, size))
            if anyone:
                odds = [keep / q if mine else (1 - keep) / (1 - q) for mine in own]
                found[support] = [anyone * more for more in (*odds, 1)]
    return found


def published_variance(protocol, f):
    """Wang et al. (2017): of raw frequencies, N times, from the p and q of each paper."""
    M, E = protocol.code.n, math.exp(protocol.epsilon)
    if isinstance(protocol, LocalHashing):
        p, q = E / (E + protocol.values - 1), 1 / protocol.values
    elif isinstance(protocol, KaryResponse):
        p, q = E / (E + M - 1), 1 / (E + M - 1)
    else:
        w = protocol.size
        p = w * E / (w * E + M - w)
        q = w / (M - 1) * ((w - 1) * E + M - w) / (w * E + M - w)
    return q * (1 - q) / (p - q) ** 2 + f * (1 - p - q) / (p - q)


def frequencies(y, code):
    """The estimate for each item: ``(..., n)`` to ``(..., M)``."""
    return y @ code.signals(bits_of(np.arange(code.n), code.k)).T


class TestPromise:
    @pytest.mark.parametrize("epsilon", [1e-6, 0.3, 1.0, 2.5, 8.0, 40.0])
    def test_is_kept_by_all_pairs_of_inputs_and_no_larger_threshold_keeps_it(self, epsilon):
        """Whole numbers against 60 digits of e^eps, for every report."""
        code = hadamard_code(2)
        protocols = [SubsetSelection(code, epsilon, size=size) for size in (1, 2, 3)]
        protocols += [LocalHashing(code, epsilon, values=g) for g in (2, 3, 7, 2**40)]
        with mp.workdps(60):
            bound = mp.exp(mp.mpf(epsilon))
            for protocol in protocols:
                for one_more, private in ((0, True), (1, False)):
                    protocol._threshold += np.uint64(one_more)
                    laws = law(protocol)
                    total = [sum(column) for column in zip(*laws.values(), strict=True)]
                    assert total == [1] * 5
                    odds = max(max(row) / min(row) for row in laws.values())
                    assert (mp.mpf(odds.numerator) / odds.denominator <= bound) is private

    def test_given_its_function_too(self):
        """Of a report of local hashing the function is public: only the value is random."""
        for epsilon in (0.5, 2.0, 10.0):
            hashing = LocalHashing(hadamard_code(2), epsilon)
            keep = Fraction(int(hashing._threshold), 2**64)
            values = (keep, (1 - keep) / (hashing.values - 1), Fraction(1, hashing.values))
            odds = max(values) / min(values)
            assert mp.mpf(odds.numerator) / odds.denominator <= mp.exp(mp.mpf(epsilon))

    @pytest.mark.parametrize(("kind", "k", "epsilon", "options"), [s for s in SMALL if s[1] == 2])
    def test_reports_have_the_law_of_the_threshold(self, kind, k, epsilon, options):
        """Chi-square over all supports, for an item and for none: a false-alarm rate of 1e-6."""
        protocol, rng, N = (
            kind(hadamard_code(k), epsilon, **options),
            np.random.default_rng(1),
            10**5,
        )
        expected = {}
        for support, row in law(protocol).items():  # all items or none: both say nothing
            key = sum(1 << item for item in support) % 15
            expected[key] = expected.get(key, 0) + np.array(row, dtype=float)
        for item in (2, 4):
            bits = np.tile(bits_of(min(item, 3), k), (N, 1))
            sent = frequencies(protocol.reports(bits, np.full(N, item < 4), rng), protocol.code)
            seen = np.bincount(((sent > 1e-9) << np.arange(4)).sum(axis=1), minlength=16)
            probable = np.array([expected.get(key, np.zeros(5))[item] for key in range(16)])
            assert seen[probable == 0].sum() == 0
            seen, mean = seen[probable > 0], N * probable[probable > 0]
            assert ((seen - mean) ** 2 / mean).sum() < chi2.isf(FALSE_ALARM, len(mean) - 1)

    @SETTINGS
    def test_the_audit_finds_nothing_and_no_bias(self, kind, k, epsilon, options):
        protocol, rng = kind(hadamard_code(k), epsilon, **options), np.random.default_rng(2)
        items = [np.zeros(k, np.uint8), np.ones(k, np.uint8)]
        for other in (items[1], None):
            send = randomizer_of(protocol)
            found = audit(send, items[0], other, epsilon, 0.0, 10_000, rng, 1 - FALSE_ALARM)
            assert not found.refuted
        assert abs(bias(protocol, items[1], 20_000, rng)) < 5.2


class TestReports:
    @pytest.mark.parametrize("epsilon", [0.01, 1.0, 6.0])
    def test_a_subset_has_w_items_always(self, epsilon):
        """With 5000 clients some keys are alike, and are drawn again: all have w positive
        frequencies, whose excess is M / (M - 1) (1 - w / M) / (p - q)."""
        subset, rng = SubsetSelection(hadamard_code(8), epsilon), np.random.default_rng(3)
        w, E = subset.size, math.exp(epsilon)
        bits = rng.integers(0, 2, (5000, 8), dtype=np.uint8)
        sent = frequencies(subset.reports(bits, np.arange(5000) % 2 == 0, rng), subset.code)
        assert set((sent > 0).sum(axis=1).tolist()) == {w}
        p = w * E / (w * E + 256 - w)
        np.testing.assert_allclose(sent.max(axis=1), (256 - w) / 255 / (p - (w - p) / 255))
        np.testing.assert_allclose(sent.sum(axis=1), 0, atol=1e-9 * sent.max())

    @pytest.mark.parametrize("kind", [KaryResponse, SubsetSelection, LocalHashing])
    def test_real_ones_need_no_generator_and_are_all_different(self, kind):
        protocol = kind(hadamard_code(6), 1.0)
        sent = protocol.reports(np.zeros((50, 6)), np.arange(50) < 25)
        assert sent.shape == (50, 64)
        assert (sent[:, -1] == 0).all()
        assert len(np.unique(sent, axis=0)) > 10  # of 64 or more: false alarms below 1e-30

    def test_the_decoder_finds_the_largest_frequency(self):
        rng = np.random.default_rng(4)
        for k in (2, 5, 12):
            protocol = SubsetSelection(hadamard_code(k), 1.0)
            y = protocol.mean_reports(rng.integers(0, 2, (20, k)), 0.1, 500, rng)
            bits, frequency = protocol.estimate(y)
            every = frequencies(y, protocol.code)
            np.testing.assert_array_equal(bits, bits_of(every.argmax(axis=1), k))
            np.testing.assert_allclose(frequency, every.max(axis=1), rtol=1e-9)
            np.testing.assert_allclose(every.sum(axis=1), 0, atol=1e-9)


@SETTINGS
class TestTheLawOfTheMean:
    def test_is_that_of_reports(self, kind, k, epsilon, options):
        """Means, variances and covariances of the item and others over 6000 collections, at six
        standard errors: false alarms below 1e-6 in all, as there are fewer than 400 comparisons."""
        protocol, rng = kind(hadamard_code(k), epsilon, **options), np.random.default_rng(5)
        item, runs = np.ones(k, np.uint8), 6000
        for held in (5, 12):
            drawn = protocol.mean_reports(np.tile(item, (runs, 1)), held / 12, 12, rng)
            sent = client_means(protocol, item, held, 12, runs, rng)
            fast, slow = (frequencies(y, protocol.code) for y in (drawn, sent))
            assert_alike(fast, slow)
            center = slow.mean(axis=0)
            for pair in ((-1, -1), (0, 0), (0, 1), (0, -1)):  # the item is the last
                assert_alike(*((one - center)[:, pair].prod(axis=1) for one in (fast, slow)))

    def test_has_the_mean_and_the_noise_of_the_formula(self, kind, k, epsilon, options):
        """Of the item's frequency f, and -f / (M - 1) of others; at five standard errors."""
        protocol, rng = kind(hadamard_code(k), epsilon, **options), np.random.default_rng(6)
        items, M = np.ones((20_000, k), np.uint8), 2**k
        for f in (0.0, 0.5, 1.0):
            every = frequencies(protocol.mean_reports(items, f, 100, rng), protocol.code)
            own = every[:, -1]
            expected = np.append(np.full(M - 1, -f / (M - 1)), f)
            error = every.std(axis=0) / math.sqrt(len(every)) + 1e-12
            assert (np.abs(every.mean(axis=0) - expected) <= 5.7 * error).all()
            if f == 0:
                ratio = own.var() / (protocol.noise**2 / 100)
                spread = math.sqrt((((own / own.std()) ** 4).mean() - 1) / len(own))
                assert abs(ratio - 1) <= 5.2 * spread


def assert_alike(a, b):
    error = np.sqrt((a.var(axis=0) + b.var(axis=0)) / len(a))
    assert (np.abs(a.mean(axis=0) - b.mean(axis=0)) <= 6 * error + 1e-12).all()


class TestNoise:
    @pytest.mark.parametrize("epsilon", [0.1, 1.0, 2.0, 4.0, 9.0])
    @pytest.mark.parametrize("k", [2, 8, 16])
    def test_is_what_was_published(self, epsilon, k):
        """An empty client of the first two is one with an item of its own at random, so a frequency
        of 1 / M is what the formula has to be read at, and who holds it is random too."""
        code, M = hadamard_code(k), 2**k
        for protocol in (KaryResponse(code, epsilon), SubsetSelection(code, epsilon)):
            raw = published_variance(protocol, 1 / M) + (1 - 1 / M) / M
            assert protocol.noise * (M - 1) / M == pytest.approx(math.sqrt(raw), rel=1e-9)
        hashing = LocalHashing(code, epsilon)
        raw = published_variance(hashing, 0.0)
        assert hashing.noise == pytest.approx(math.sqrt(raw * M / (M - 1)), rel=1e-9)

    def test_of_an_e_eps_that_is_a_whole_number(self):
        """4 e^eps / (e^eps - 1)^2 is reached where g = e^eps + 1 or w = M / (e^eps + 1); the limit
        of k-ary response is (M - 2 + e^eps) / (e^eps - 1)^2, up to M / (M - 1) and e^2eps / M."""
        code = hadamard_code(12)
        hashing, subset = LocalHashing(code, math.log(3)), SubsetSelection(code, math.log(3))
        assert (hashing.values, subset.size) == (4, 1024)
        assert hashing.noise**2 == pytest.approx(3.0 * 4096 / 4095, rel=1e-9)
        assert subset.noise**2 == pytest.approx(3.0, rel=1e-9)
        assert KaryResponse(code, math.log(3)).noise ** 2 == pytest.approx(4097 / 4, rel=2e-3)

    @pytest.mark.parametrize("kind", [KaryResponse, SubsetSelection, LocalHashing])
    def test_of_estimates_of_the_longest_items(self, kind):
        """At k = 16 the variance of 200 estimates, if the item is held by few, is the square of
        the noise over N, within what chance allows."""
        protocol, trials, clients = kind(hadamard_code(16), 12.0), 200, 10**6
        rng = np.random.default_rng(16)
        items = rng.integers(0, 2, (trials, 16), dtype=np.uint8)
        y = protocol.mean_reports(items, 0.001, clients, rng)
        bits, frequency = protocol.estimate(y)
        assert (bits == items).all()
        held = 0.001 * (1 - protocol.keep) * protocol.keep / protocol.gap**2  # of holders' coins
        seen = trials * frequency.var() / ((protocol.noise**2 + held) / clients)
        low, high = chi2.ppf([FALSE_ALARM / 2, 1 - FALSE_ALARM / 2], trials - 1)
        assert low <= seen <= high

    @pytest.mark.parametrize("epsilon", [0.05, 1.3, 3.1, 6.0])
    def test_is_the_least_of_all_sizes(self, epsilon):
        code = hadamard_code(6)
        every = [SubsetSelection(code, epsilon, size=size).noise for size in range(1, 64)]
        assert SubsetSelection(code, epsilon).noise == min(every)
        every = [LocalHashing(code, epsilon, values=g).noise for g in range(2, 1000)]
        assert LocalHashing(code, epsilon).noise == pytest.approx(min(every), rel=1e-12)


class TestErrors:
    @pytest.mark.parametrize(
        ("kind", "epsilon", "frequency"),
        [
            (SubsetSelection, 1.0, 0.386),
            (SubsetSelection, 2.0, 0.177),
            (SubsetSelection, 4.0, 0.064),
            (LocalHashing, 2.0, 0.177),
            (LocalHashing, 4.0, 0.066),
            (KaryResponse, 2.0, 0.86),
        ],
    )
    def test_are_one_in_a_thousand_where_others_found_them_so(self, kind, epsilon, frequency):
        """Frequencies for k = 8 and N = 1000 from another simulation, good to half a step of the
        last digit: rates of 0.5e-3 to 2e-3, and false alarms of 1e-6 beyond them."""
        assert self.rate_is_within(kind(hadamard_code(8), epsilon), frequency, 1000, 0.5e-3, 2e-3)

    @pytest.mark.parametrize(
        ("kind", "epsilon", "snr"),
        [(SubsetSelection, 0.5, 5.0), (LocalHashing, 1.0, 5.0), (KaryResponse, 3.0, 4.5)],
    )
    def test_are_those_of_simplex_signals(self, kind, epsilon, snr):
        """With many clients. A false-alarm rate of 1e-6; and 6 % for what noise is of holders and
        is not normal."""
        protocol, clients = kind(hadamard_code(8), epsilon), 10**6
        low, high = (simplex_error(8, snr * off) for off in (1.06, 0.94))
        f = snr * protocol.noise / math.sqrt(clients)
        assert self.rate_is_within(protocol, f, clients, low, high)

    @pytest.mark.parametrize(("epsilon", "frequency"), [(4.0, 0.08), (4.0, 0.117), (2.0, 0.7)])
    def test_of_k_ary_response_are_those_of_its_counts(self, epsilon, frequency):
        """The item wins if no other one of 255 has more reports, of as many half. A false-alarm
        rate of 1e-6; and 6 % for counts of different items, which are not quite independent."""
        M, N, E = 256, 1000, math.exp(epsilon)
        held, count = round(frequency * N), np.arange(200)
        error = 1.0
        for true in range(held + 1):
            rest = binom(N - true, 1 / M)
            beats = rest.cdf(count + true) - rest.pmf(count + true) / 2
            told = binom.pmf(true, held, (E - 1) / (E + M - 1))
            error -= told * (rest.pmf(count) * beats ** (M - 1)).sum()
        protocol = KaryResponse(hadamard_code(8), epsilon)
        assert self.rate_is_within(protocol, frequency, N, 0.94 * error, 1.06 * error)

    def test_of_k_ary_response_are_many_at_a_small_epsilon(self):
        assert self.rate_is_within(KaryResponse(hadamard_code(8), 1.0), 1.0, 1000, 0.3, 1.0)

    def rate_is_within(self, protocol, frequency, clients, low, high, trials=12_000):
        rng, errors = np.random.default_rng(7), 0
        for _ in range(4):
            items = rng.integers(0, 2, (trials // 4, 8), dtype=np.uint8)
            bits, _ = protocol.estimate(protocol.mean_reports(items, frequency, clients, rng))
            errors += int((bits != items).any(axis=1).sum())
        least, most = binom.ppf(FALSE_ALARM, trials, low), binom.isf(FALSE_ALARM, trials, high)
        return least <= errors <= most


class TestArguments:
    @pytest.mark.parametrize("kind", [KaryResponse, SubsetSelection, LocalHashing])
    def test_wrong_ones_are_named(self, kind):
        with pytest.raises(ValueError, match=r"code = .*hadamard_code\(k\)"):
            kind(PAPER, 1.0)
        for epsilon in (0, 1e-15, 41, np.nan, "1", True):
            with pytest.raises(ValueError, match=r"epsilon = .*: needs a number"):
                kind(hadamard_code(4), epsilon)
        with pytest.raises(ValueError, match="decoder = one for"):
            kind(hadamard_code(4), 1.0, MLDecoder(PAPER))
        with pytest.raises(ValueError, match="holds has shape"):
            kind(hadamard_code(2), 1.0).reports([[0, 1]], [True, False])

    def test_sizes(self):
        for size in (0, 16, 2.5):
            with pytest.raises(
                ValueError, match=f"size = {size}: needs a whole number from 1 to 15"
            ):
                SubsetSelection(hadamard_code(4), 1.0, size=size)
        for values in (1, 2**61):
            with pytest.raises(ValueError, match=f"values = {values}: needs a whole number from 2"):
                LocalHashing(hadamard_code(4), 1.0, values=values)

    def test_a_single_bit_takes_another_decoder(self):
        code = hadamard_code(1)
        with pytest.raises(ValueError, match="not made of symbols"):
            KaryResponse(code, 1.0)
        for kind in (KaryResponse, SubsetSelection, LocalHashing):
            protocol = kind(code, 1.0, MLDecoder(code))
            y = protocol.mean_reports([[0], [1]], 0.9, 10**5, np.random.default_rng(8))
            assert protocol.estimate(y).bits.tolist() == [[0], [1]]
            np.testing.assert_allclose(protocol.estimate(y).frequency, 0.9, atol=0.05)

    def test_points_have_them(self):
        code = parameters_of(hadamard_code(8))
        setting = {"epsilon": 2, "frequency": 0.5, "clients": 100, **code}
        found = [Point(protocol=kind, **setting) for kind in ("KaryResponse", "SubsetSelection")]
        found.append(Point(protocol="LocalHashing", values=5, **setting))
        assert [point.decoder for point in found] == ["symbols"] * 3
        assert [point.options for point in found] == [{}, {"size": None}, {"values": 5}]
