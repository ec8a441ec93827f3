"""Calibration against 50-digit arithmetic and against Google's dp_accounting."""

import math
from itertools import product

import mpmath as mp
import numpy as np
import pytest

from ldpcash import (
    gaussian_delta,
    gaussian_epsilon,
    gaussian_sigma,
    keep_probability,
    keep_threshold,
    response_scale,
)

EPSILONS = [1e-6, 3e-5, 1e-3, 0.03, 0.1, 0.5, 1.0, 1.5, 3.0, 10.0, 33.0, 100.0]
DELTAS = [1e-15, 1e-12, 1e-9, 1e-6, 1e-4, 1e-2, 0.1, 0.3, 0.5]


@pytest.fixture(autouse=True)
def fifty_digits():
    # Near epsilon = 1e-6 the two terms of delta agree in 20 digits: 80 leave more than 50.
    with mp.workdps(80):
        yield


def reference_delta(epsilon, sigma, sensitivity):
    """Balle and Wang (2018), Theorem 8, as it stands."""
    a = mp.mpf(sensitivity) / (2 * mp.mpf(sigma))
    b = mp.mpf(epsilon) * mp.mpf(sigma) / mp.mpf(sensitivity)
    return mp.ncdf(a - b) - mp.exp(mp.mpf(epsilon)) * mp.ncdf(-a - b)


def reference_sigma(epsilon, delta, near):
    def excess(log_sigma):
        return mp.log(reference_delta(epsilon, mp.exp(log_sigma), 1)) - mp.log(mp.mpf(delta))

    return mp.exp(mp.findroot(excess, mp.log(mp.mpf(near))))


def test_sigma_is_the_smallest_safe_one(subtests):
    for epsilon, delta in product(EPSILONS, DELTAS):
        with subtests.test(epsilon=epsilon, delta=delta):
            sigma = gaussian_sigma(epsilon, delta, 1.0)
            assert reference_delta(epsilon, sigma, 1.0) <= mp.mpf(delta)  # never under-noised
            assert abs(sigma / reference_sigma(epsilon, delta, sigma) - 1) <= 1e-12


def test_delta_over_all_scales(subtests):
    sigmas = [1e-3, 0.02, 0.1, 0.3, 1.0, 2.0, 2.1, 5.0, 100.0, 1e6, 1e9]
    for epsilon, sigma in product([0.0, *EPSILONS], sigmas):
        with subtests.test(epsilon=epsilon, sigma=sigma):
            exact = reference_delta(epsilon, sigma, 1.0)
            if exact > mp.mpf("1e-300"):
                assert abs(gaussian_delta(epsilon, sigma, 1.0) / exact - 1) <= 1e-12
            else:
                assert gaussian_delta(epsilon, sigma, 1.0) <= 1e-299


def test_delta_with_no_noise_and_with_nothing_but_noise():
    assert gaussian_delta(1.0, 1e-320, 1.0) == 1.0
    assert gaussian_delta(1.0, 1e300, 1.0) == 0.0


def test_delta_inverts_sigma(subtests):
    for epsilon, delta in product(EPSILONS, DELTAS):
        with subtests.test(epsilon=epsilon, delta=delta):
            sigma = gaussian_sigma(epsilon, delta, 2.0)
            assert gaussian_delta(epsilon, sigma, 2.0) == pytest.approx(delta, rel=1e-10, abs=0)


def test_sigma_against_dp_accounting(subtests):
    from dp_accounting import get_sigma_gaussian  # slow to import

    epsilons, deltas = [1e-3, 0.1, 0.5, 1.0, 2.0, 4.0, 20.0], [1e-12, 1e-9, 1e-6, 1e-4, 1e-2, 0.4]
    for epsilon, delta in product(epsilons, deltas):
        with subtests.test(epsilon=epsilon, delta=delta):
            theirs = get_sigma_gaussian(epsilon, delta, tol=1e-12)
            assert gaussian_sigma(epsilon, delta, 2.0) == pytest.approx(2 * theirs, rel=1e-10)


def test_noise_is_proportional_to_sensitivity():
    assert gaussian_sigma(1.0, 1e-4, 2.0) == pytest.approx(2 * gaussian_sigma(1.0, 1e-4, 1.0))


def test_result_is_a_plain_float():
    assert type(gaussian_sigma(1.0, 1e-4, 2.0)) is float
    assert type(gaussian_delta(1.0, 2.0, 2.0)) is float


def test_bad_arguments(subtests):
    for bad in (0.0, -1.0, math.inf, math.nan):
        for name, function, arguments in [
            ("epsilon", gaussian_sigma, (bad, 1e-4, 2.0)),
            ("sensitivity", gaussian_sigma, (1.0, 1e-4, bad)),
            ("sigma", gaussian_delta, (1.0, bad, 2.0)),
            ("sensitivity", gaussian_delta, (1.0, 1.0, bad)),
            ("epsilon", keep_probability, (bad,)),
            ("epsilon", response_scale, (bad,)),
        ]:
            with (
                subtests.test(function=function.__name__, arguments=arguments),
                pytest.raises(ValueError, match=f"{name} = .*positive"),
            ):
                function(*arguments)
        if bad != 0:
            with subtests.test(bad=bad), pytest.raises(ValueError, match=r"epsilon = .*from 0"):
                gaussian_delta(bad, 1.0, 2.0)


def test_bad_delta(subtests):
    for delta in (0.0, 1.0, -0.1, 2.0, math.nan):
        with (
            subtests.test(delta=delta),
            pytest.raises(ValueError, match=r"delta = .*between 0 and 1"),
        ):
            gaussian_sigma(1.0, delta, 2.0)


def test_randomized_response_never_leaks_more_than_epsilon(subtests):
    for epsilon in (1e-17, 1e-6, 1e-3, 0.1, *np.linspace(0.2, 12, 60), 37.0, 100.0, 1e4):
        with subtests.test(epsilon=epsilon):
            keep = mp.mpf(keep_probability(epsilon))
            loss = mp.log(keep / (1 - keep))
            assert loss <= mp.mpf(epsilon)
            assert loss >= 0
            if 1e-6 <= epsilon <= 12:
                assert loss == pytest.approx(epsilon, rel=1e-9)


def test_the_coin_s_odds_are_the_largest_that_epsilon_allows(subtests):
    """Whole numbers against 80 digits; no larger threshold is safe, unless all words keep."""
    for epsilon in (1e-17, 1e-6, 0.1, *np.linspace(0.2, 12, 60), 40.0, 1e4):
        with subtests.test(epsilon=epsilon):
            threshold = keep_threshold(epsilon)
            odds = mp.mpf(threshold) / (2**64 - threshold)
            assert odds <= mp.exp(mp.mpf(epsilon))
            assert 2**63 <= threshold < 2**64
            if threshold < 2**64 - 1:
                assert mp.mpf(threshold + 1) / (2**64 - threshold - 1) > mp.exp(mp.mpf(epsilon))


def test_response_scale_makes_the_sign_unbiased(subtests):
    for epsilon in (1e-6, 0.1, 1.0, 5.0, 50.0):
        with subtests.test(epsilon=epsilon):
            exact = (mp.exp(epsilon) + 1) / (mp.exp(epsilon) - 1)
            scale = response_scale(epsilon)
            assert scale == pytest.approx(float(exact), rel=1e-14)
            if epsilon > 1e-3:  # below, rounding the probability down shows
                assert scale * (2 * keep_probability(epsilon) - 1) == pytest.approx(1)


class TestEpsilon:
    def test_undoes_sigma(self, subtests):
        for epsilon, delta in product([0.03, 1.0, 10.0], [1e-12, 1e-4, 0.1]):
            with subtests.test(epsilon=epsilon, delta=delta):
                sigma = gaussian_sigma(epsilon, delta, 1.5)
                assert gaussian_epsilon(delta, sigma, 1.5) == pytest.approx(epsilon, rel=1e-9)

    def test_is_never_too_small(self, subtests):
        epsilons, deltas = [0.03, 0.5, 1.0, 3.0, 10.0, 100.0], [1e-15, 1e-9, 1e-4, 0.1]
        for epsilon, delta, off in product(epsilons, deltas, [1 - 1e-9, 1.0, 1 + 1e-9]):
            with subtests.test(epsilon=epsilon, delta=delta, off=off):
                sigma = off * gaussian_sigma(epsilon, delta, 2.0)
                found = gaussian_epsilon(delta, sigma, 2.0)
                assert reference_delta(found, sigma, 2.0) <= mp.mpf(delta)
                assert reference_delta(found * (1 - 1e-10), sigma, 2.0) > mp.mpf(delta)

    def test_nothing_is_lost_in_much_noise(self):
        assert gaussian_epsilon(0.1, 100.0, 1.0) == 0.0

    def test_arguments(self, subtests):
        for delta in (0.0, 1.0, -1.0, float("nan"), None):
            with subtests.test(delta=delta), pytest.raises(ValueError, match="delta = "):
                gaussian_epsilon(delta, 1.0, 1.0)
        for bad in (0.0, math.inf, "1"):
            with subtests.test(sigma=bad), pytest.raises(ValueError, match="sigma = "):
                gaussian_epsilon(1e-4, bad, 1.0)
            with subtests.test(sensitivity=bad), pytest.raises(ValueError, match="sensitivity = "):
                gaussian_epsilon(1e-4, 1.0, bad)
