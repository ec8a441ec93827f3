"""Closed forms against simulation, at false-alarm rates of at most 1e-6, and each other."""

import mpmath as mp
import numpy as np
import pytest
import scipy

from ldpcash import MLDecoder, PolarCode, gaussian_sigma, response_scale
from ldpcash.paper import theory
from ldpcash.protocols.cash import Cash
from ldpcash.protocols.prot import Prot

BIORTHOGONAL = PolarCode(256, [191, 223, 239, 247, 251, 253, 254, 255])
SIMPLEX = PolarCode(256, [127, 191, 223, 239, 247, 251, 253, 254])


def errors_of_ml(code, snr, trials, seed):
    """Block errors of unit-energy signals in noise of standard deviation 1 / snr."""
    rng = np.random.default_rng(seed)
    items = rng.integers(0, 2, (trials, code.k), dtype=np.uint8)
    signals = (1 - 2.0 * code.encode(items)) / np.sqrt(code.n)
    llr = (signals * snr + rng.standard_normal(signals.shape)).astype(np.float32)
    return int((MLDecoder(code).decode(llr) != items).any(axis=1).sum())


def interval(rate, trials):
    """What a count of rate * trials stays within, but for one time in a million."""
    return scipy.stats.binom.ppf([5e-7, 1 - 5e-7], trials, rate)


@pytest.mark.parametrize("snr", [2.0, 4.0, 5.0])
@pytest.mark.parametrize(
    ("code", "closed_form"),
    [(BIORTHOGONAL, theory.biorthogonal_error), (SIMPLEX, theory.simplex_error)],
    ids=["biorthogonal", "simplex"],
)
def test_exact_error_rates(code, closed_form, snr):
    low, high = interval(closed_form(8, snr), 20_000)
    assert low <= errors_of_ml(code, snr, 20_000, 1) <= high


def test_the_simplex_code_is_one():
    assert set(SIMPLEX.weight_distribution()) == {0, 128}


@pytest.mark.parametrize("closed_form", [theory.biorthogonal_error, theory.simplex_error])
def test_limits(closed_form):
    guessing = 1 - 2.0**-8
    assert closed_form(8, 0.0) == pytest.approx(guessing, rel=1e-9)
    assert 0 < closed_form(8, 12.0) < 1e-13  # no cancellation: rare errors keep their digits
    assert closed_form(1, 2.0) == pytest.approx(scipy.stats.norm.sf(2.0), rel=1e-9)  # two antipodes


def test_union_bound_holds_and_is_tight_where_errors_are_rare():
    weights = BIORTHOGONAL.weight_distribution()
    for snr in (3.0, 5.0, 8.0, 12.0):
        exact, bound = theory.biorthogonal_error(8, snr), theory.union_bound(weights, 256, snr)
        assert exact <= bound <= 1
    assert bound < 1.01 * exact
    assert theory.union_bound(weights, 256, 0.0) == 1.0


def test_frequency_error_of_cash():
    """Lemma 4: half-normal, if the item is decoded, which it is here."""
    cash = Cash(PolarCode.construct(64, 8), 4.0)
    trials, clients = 20_000, 5000
    items = np.random.default_rng(1).integers(0, 2, (trials, 8), dtype=np.uint8)
    y = cash.mean_reports(items, 0.7, clients, np.random.default_rng(2))
    bits, frequency = cash.estimate(y)
    assert (bits == items).all()
    error = frequency - 0.7
    spread = cash.sigma**2 / clients
    assert scipy.stats.kstest(error / np.sqrt(spread), "norm").pvalue > 1e-6
    mean = theory.error_mean(cash.sigma, clients)
    sd = np.sqrt((spread - mean**2) / trials)
    assert abs(abs(error).mean() - mean) < scipy.stats.norm.isf(5e-7) * sd
    bound = theory.error_bound(cash.sigma, clients, 0.1)
    assert theory.error_probability(cash.sigma, clients, bound) == pytest.approx(0.1)
    low, high = interval(0.1, trials)
    assert low <= (abs(error) > bound).sum() <= high


def test_frequency_error_of_prot():
    prot = Prot(PolarCode.construct(64, 8), 2.0)
    trials = 20_000
    items = np.random.default_rng(1).integers(0, 2, (trials, 8), dtype=np.uint8)
    y = prot.mean_reports(items, 0.7, 5000, np.random.default_rng(2))
    bits, frequency = prot.estimate(y)
    assert (bits == items).all()
    variance = theory.prot_frequency_variance(2.0, 0.7, 5000)
    limit = scipy.stats.norm.isf(2.5e-7)
    assert abs(frequency.mean() - 0.7) < limit * np.sqrt(variance / trials)
    assert abs(frequency.var() / variance - 1) < 1.1 * limit * np.sqrt(2 / trials)


def test_noise_crossing():
    for delta, sensitivity in ((1e-4, 2.0), (1e-6, 1.5)):
        epsilon = theory.noise_crossing(delta, sensitivity)
        assert gaussian_sigma(epsilon, delta, sensitivity) == pytest.approx(response_scale(epsilon))
        assert gaussian_sigma(epsilon + 1, delta, sensitivity) < response_scale(epsilon + 1)


def test_signal_to_noise():
    assert theory.signal_to_noise(0.7, 1000, 6.37) == pytest.approx(0.7 * np.sqrt(1000) / 6.37)


@pytest.mark.parametrize(
    ("form", "right", "wrong"),
    [
        (theory.signal_to_noise, {"frequency": 0.5, "clients": 10, "sigma": 1.0}, (-0.1, 0.5, 0.0)),
        (theory.error_mean, {"sigma": 1.0, "clients": 10}, (-1.0, 0)),
        (theory.error_probability, {"sigma": 1.0, "clients": 10, "size": 0.1}, (0.0, 2.5, -0.1)),
        (theory.error_bound, {"sigma": 1.0, "clients": 10, "beta": 0.1}, (0.0, 0, 0.0)),
        (theory.error_bound, {"sigma": 1.0, "clients": 10, "beta": 0.1}, (np.inf, -1, 1.0)),
        (
            theory.prot_frequency_variance,
            {"epsilon": 1.0, "frequency": 0.5, "clients": 10},
            (0.0, 1.5, 0),
        ),
        (theory.biorthogonal_error, {"k": 8, "snr": 1.0}, (0, -1.0)),
        (theory.simplex_error, {"k": 8, "snr": 1.0}, (1001, np.nan)),
        (theory.simplex_limit, {"k": 8, "strength": 1.0}, (0.5, np.inf)),
        (theory.normal_approximation, {"n": 64, "k": 8, "snr": 1.0}, (0, -1, 0.0)),
    ],
)
def test_a_wrong_argument_is_named(form, right, wrong):
    assert 0 <= form(**right) < np.inf
    for name, value in zip(right, wrong, strict=True):
        for bad in (value, "1", None):
            with pytest.raises(ValueError, match=f"^{name} = {bad!r}: needs a"):
                form(**{**right, name: bad})


def test_a_crossing_that_is_not_there_is_told():
    """Without a shift between signals Gaussian noise is less at every epsilon."""
    with pytest.raises(ValueError, match=r"delta, sensitivity = 0\.5, 0\.01: no crossing"):
        theory.noise_crossing(0.5, 0.01)


@pytest.mark.parametrize("k", [1, 8, 128, 1000])
def test_simplex_signals_of_any_number(k):
    """Without a signal the server guesses, and errors fall as the signal grows."""
    assert theory.simplex_error(k, 0.0) == pytest.approx(1 - 2.0**-k, rel=1e-9)
    errors = [theory.simplex_error(k, snr) for snr in (1.0, 5.0, 20.0, 60.0)]
    assert errors == sorted(errors, reverse=True)
    assert errors[0] <= theory.simplex_error(k, 0.0)


@pytest.mark.parametrize(
    ("k", "snr"), [(3, 2.0), (8, 4.0), (8, 9.0), (8, 20.0), (8, 30.0), (64, 10.0), (128, 16.0)]
)
def test_simplex_errors_in_forty_digits(k, snr):
    """1 minus the probability that the right one of 2**k orthogonal signals is ahead of all."""
    with mp.workdps(40):
        M = mp.mpf(2) ** k
        mean = mp.mpf(snr) * mp.sqrt(M / (M - 1))

        def density(x):
            return -mp.expm1((M - 1) * mp.log1p(-mp.ncdf(-x))) * mp.npdf(x - mean)

        exact = mp.quad(density, mp.linspace(-40, mean + 12, 80)) + mp.ncdf(-40 - mean)
        assert theory.simplex_error(k, snr) == pytest.approx(float(exact), rel=1e-9, abs=0)


class TestLimit:
    def test_two_signals(self):
        assert theory.simplex_limit(1, 3.0) == pytest.approx(scipy.stats.norm.sf(1.5), rel=1e-9)

    @pytest.mark.parametrize("strength", [4.0, 8.0, 12.0])
    def test_below_biorthogonal_signals(self, strength):
        """Which have a sensitivity of 2."""
        assert theory.simplex_limit(8, strength) < theory.biorthogonal_error(8, strength / 2)

    @pytest.mark.parametrize("seed", range(5))
    def test_no_signals_of_the_same_diameter_are_better(self, seed):
        """Four random points in three dimensions, the largest distance 1; false alarms below 1e-6.

        The simplex is drawn with the same noise, to reduce the variance of the difference.
        """
        rng = np.random.default_rng(seed)
        points = rng.standard_normal((4, 3))
        points /= max(np.linalg.norm(a - b) for a in points for b in points)
        simplex = np.array([[1, 1, 1], [1, -1, -1], [-1, 1, -1], [-1, -1, 1]]) / np.sqrt(8)
        noise = rng.standard_normal((200_000, 3))
        sent = rng.integers(4, size=len(noise))
        strength = 3.0
        wrong = []
        for signals in (points, simplex):
            y = strength * signals[sent] + noise
            scores = y @ signals.T - strength / 2 * (signals**2).sum(axis=1)
            wrong.append(scores.argmax(axis=1) != sent)
        low, high = interval(theory.simplex_limit(2, strength), len(noise))
        assert low <= wrong[1].sum() <= high
        assert wrong[0].sum() > high

    @pytest.mark.parametrize("level", [0.0, -1.0, 1.0, float("nan")])
    def test_strength_at_no_such_level(self, level):
        with pytest.raises(ValueError, match="level = "):
            theory.strength_at(lambda x: theory.simplex_limit(8, x), level)

    def test_strength_far_out(self):
        """The error rate at larger strengths is too small for a float."""
        weights = {0: 1, 28: 108, 32: 63, 36: 84}
        at = theory.strength_at(lambda x: theory.union_bound(weights, 64, x), 1e-3)
        assert theory.union_bound(weights, 64, at) == pytest.approx(1e-3, rel=1e-6)
        at = theory.strength_at(lambda x: theory.normal_approximation(4096, 3000, x), 1e-2)
        assert theory.normal_approximation(4096, 3000, at) == pytest.approx(1e-2, rel=1e-6)

    def test_strength_at(self):
        at = theory.strength_at(lambda x: theory.simplex_limit(8, x), 1e-4)
        assert theory.simplex_limit(8, at) == pytest.approx(1e-4, rel=1e-6)


class TestNormalApproximation:
    def test_half_where_the_mean_suffices(self):
        """An error of 1/2 if k = n C + log2(n) / 2; here C = 1/2 for snr**2 = n."""
        assert theory.normal_approximation(64, 35, 8.0) == 0.5

    @pytest.mark.parametrize("snr", [2.0, 8.0, 20.0])
    def test_the_information_of_signals_on_a_sphere(self, snr):
        """Mean and variance of the information density, by simulation of 10^6 signals; 5.33
        standard errors, false alarms of 1e-7."""
        n, trials = 64, 1_000_000
        power = snr**2 / n
        rng = np.random.default_rng(1)
        # A signal of energy snr**2 along the first axis: only |noise|^2 and its first entry count.
        along = rng.standard_normal(trials)
        square = along**2 + rng.chisquare(n - 1, trials)
        received = square + 2 * snr * along + snr**2
        density = (n / 2 * np.log(1 + power) + received / (2 * (1 + power)) - square / 2) / np.log(
            2
        )
        mean, spread = density.mean(), density.std()
        assert abs(mean - n / 2 * np.log2(1 + power)) < 5.33 * spread / np.sqrt(trials)
        k = round(mean - spread)
        z = (n / 2 * np.log2(1 + power) - k + 3) / spread
        limit = 5.33 * z * 2 / np.sqrt(trials)  # of the estimated spread, at least
        estimate = -scipy.stats.norm.ppf(theory.normal_approximation(n, k, snr))
        assert abs(estimate - z) < limit

    def test_close_to_good_short_codes(self):
        """Biorthogonal signals are about as good as 256 signals in 256 dimensions can be."""
        for snr in (4.0, 5.0, 6.0):
            ratio = theory.normal_approximation(256, 8, snr) / theory.biorthogonal_error(8, snr)
            assert 0.3 < ratio < 3
