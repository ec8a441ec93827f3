"""Closed forms that simulations are held against.

All of them speak of unit-energy signals x in noise of standard deviation ``sigma`` a client: the
mean of N reports is f x plus noise of sigma / sqrt(N), so errors depend on one number, the
signal-to-noise ratio ``snr = f * sqrt(N) / sigma``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

from scipy.integrate import quad
from scipy.optimize import brentq
from scipy.special import log_ndtr, ndtr, ndtri

from ldpcash.base.bisection import grow
from ldpcash.base.checks import fraction, positive, real_number, whole_number
from ldpcash.privacy.calibration import gaussian_sigma, response_scale

_FAR = 12.0  # standard deviations; what lies beyond is below 1e-30
_MOST_BITS = 1000  # 2**k is a float, with room for a factor


def signal_to_noise(frequency: float, clients: int, sigma: float) -> float:
    """f sqrt(N) / sigma.

    >>> signal_to_noise(0.5, 100, 2.0)
    2.5
    """
    frequency, sigma = real_number("frequency", frequency, 0, 1), positive("sigma", sigma)
    return frequency * math.sqrt(whole_number("clients", clients, 1)) / sigma


# Lemma 4: the error of a correctly decoded item's frequency is |<x, mean noise>|, half-normal.


def error_mean(sigma: float, clients: int) -> float:
    """Mean of the half-normal error, sigma sqrt(2 / (pi N)).

    >>> round(error_mean(6.37, 1000), 4)
    0.1607
    """
    return positive("sigma", sigma) * math.sqrt(2 / (math.pi * whole_number("clients", clients, 1)))


def error_probability(sigma: float, clients: int, size: float) -> float:
    """Probability that the error exceeds ``size``, 0 or more.

    >>> round(error_probability(6.37, 1000, 0.2), 4)
    0.3208
    """
    sigma, size = positive("sigma", sigma), real_number("size", size, 0)
    return float(2 * ndtr(-size * math.sqrt(whole_number("clients", clients, 1)) / sigma))


def error_bound(sigma: float, clients: int, beta: float) -> float:
    """What the error exceeds with probability beta.

    >>> round(error_bound(6.37, 1000, 0.05), 4)
    0.3948
    """
    sigma, beta = positive("sigma", sigma), fraction("beta", beta)
    return float(sigma / math.sqrt(whole_number("clients", clients, 1)) * -ndtri(beta / 2))


def prot_frequency_variance(epsilon: float, frequency: float, clients: int) -> float:
    """Variance of Prot's frequency estimate, given the right item: (c_eps^2 - f) / N.

    A holder's term of <x, y> is +-c_eps with mean 1; an empty client's is +-c_eps with mean 0.

    >>> round(prot_frequency_variance(1.0, 0.5, 1000), 6)
    0.004183
    """
    frequency = real_number("frequency", frequency, 0, 1)
    return (response_scale(epsilon) ** 2 - frequency) / whole_number("clients", clients, 1)


# Block errors of maximum-likelihood decoding


def union_bound(weights: Mapping[int, int], n: int, snr: float) -> float:
    """Upper bound on the block error rate: the sum of all pairwise error probabilities, at most 1.

    Args:
        weights: how many codewords have each weight, as `PolarCode.weight_distribution` gives it.
        n: length of the code.
        snr: signal-to-noise ratio of the unit-energy signal.

    >>> round(union_bound({0: 1, 16: 4, 32: 246, 48: 4, 64: 1}, 64, 8.0), 6)
    0.000129
    """
    n, snr = whole_number("n", n, 1), real_number("snr", snr, 0)
    bound = sum(count * ndtr(-snr * math.sqrt(w / n)) for w, count in weights.items() if w > 0)
    return float(min(1.0, bound))


def biorthogonal_error(k: int, snr: float) -> float:
    """Block error rate of 2**k biorthogonal signals: 2**(k-1) orthogonal ones and their negatives.

    >>> round(biorthogonal_error(8, 4.0), 4)
    0.1369
    """
    # The right axis has to have the largest correlation in absolute value, and the right sign.
    others = 2 ** (whole_number("k", k, 1, _MOST_BITS) - 1) - 1
    snr = real_number("snr", snr, 0)
    return _error(lambda x: -math.expm1(others * math.log1p(-2 * ndtr(-x))), snr, 0.0)


def simplex_error(k: int, snr: float) -> float:
    """Block error rate of 2**k simplex signals, all equally far apart.

    They are orthogonal signals of M / (M - 1) times the energy, M = 2**k, less their mean.

    >>> round(simplex_error(8, 4.0), 4)
    0.1355
    """
    M = 2 ** whole_number("k", k, 1, _MOST_BITS)
    snr = real_number("snr", snr, 0) * math.sqrt(M / (M - 1))
    return _error(lambda x: -math.expm1((M - 1) * log_ndtr(x)), snr, -_FAR)


def simplex_limit(k: int, strength: float) -> float:
    """The least block error rate that any 2**k signals of the Gaussian mechanism can have.

    The noise is proportional to the largest distance of two signals, and so what counts is how far
    apart they are compared with it. In a regular simplex all distances are the largest. That is the
    best there is: moving signals apart never makes their ML decoder worse. (The probability of a
    right decision is an integral of volumes of unions of balls around the signals; if all
    distances grow, there is a motion in twice the dimension in which none ever shrinks; and along
    it the volumes do not shrink either: Csikos, "On the volume of the union of balls", 1998.)

    Args:
        k: bits of an item.
        strength: f sqrt(N) / sigma for a sensitivity of 1.

    >>> round(simplex_limit(8, 8.0), 5)
    0.00471
    """
    M = 2 ** whole_number("k", k, 1, _MOST_BITS)
    strength = real_number("strength", strength, 0)
    return simplex_error(k, strength / math.sqrt(2 * M / (M - 1)))


def normal_approximation(n: int, k: int, snr: float) -> float:
    """About the least block error rate of any code of length n whose signals have energy 1.

    Polyanskiy, Poor and Verdu (2010), for real Gaussian noise: k = n C - sqrt(n V) Q^-1(error)
    + log2(n) / 2, with capacity C and dispersion V of a signal-to-noise ratio of snr**2 / n a
    symbol. It is an approximation, good for long codes, and neither an upper nor a lower bound.

    >>> round(normal_approximation(1024, 32, 8.0), 4)
    0.0535
    """
    n, k = whole_number("n", n, 1), whole_number("k", k, 0)
    power = positive("snr", snr) ** 2 / n
    capacity = math.log2(1 + power) / 2
    dispersion = power * (power + 2) / (2 * (power + 1) ** 2) * math.log2(math.e) ** 2
    return float(ndtr(-(n * capacity - k + math.log2(n) / 2) / math.sqrt(n * dispersion)))


def strength_at(error: Callable[[float], float], level: float) -> float:
    """Where a falling error rate reaches a level; strengths below 1e-3 are not looked at.

    >>> round(strength_at(lambda strength: simplex_limit(8, strength), 1e-3), 3)
    8.787
    """
    low, high = grow(lambda x: error(x) <= level or x > 1e6, 1.0)
    low = low or 1e-3
    if error(high) > level:
        raise ValueError(f"level = {level!r}: the error rate does not fall so low")
    if not error(low) >= level > 0:
        raise ValueError(f"level = {level!r}: the error rate is never so high")
    return float(brentq(lambda x: error(x) - level, low, high, xtol=1e-12 * high))


def _error(another_above: Callable[[float], float], snr: float, start: float) -> float:
    """The mean of P(another is above x) over the right signal's correlation x, which is N(snr, 1).

    Below ``start`` an error counts as certain. Nothing is subtracted from 1, so rare errors keep
    their digits.
    """

    def integrand(x: float) -> float:
        return another_above(x) * math.exp(-((x - snr) ** 2) / 2) / math.sqrt(2 * math.pi)

    steps = {"points": [snr / 2, snr], "epsrel": 1e-10, "epsabs": 1e-200, "limit": 200}
    inside = quad(integrand, start, snr + _FAR, **steps)[0]
    return float(min(1.0, inside + ndtr(start - snr)))


def noise_crossing(delta: float, sensitivity: float = 2.0) -> float:
    """The epsilon above which Cash adds less noise than Prot.

    The mean's variance in a coordinate is sigma^2 / N for Cash and nearly c_eps^2 / N for Prot.
    It is looked for from epsilon = 1 to 700. (There is a second crossing at an epsilon so small
    that delta alone hides a client.)

    >>> round(noise_crossing(1e-4), 3)
    8.874
    """

    def excess(epsilon: float) -> float:
        return gaussian_sigma(epsilon, delta, sensitivity) - response_scale(epsilon)

    if not excess(1.0) >= 0 >= excess(700.0):
        raise ValueError(
            f"delta, sensitivity = {delta!r}, {sensitivity!r}: no crossing from epsilon = 1 to 700,"
            " where it is looked for"
        )
    return float(brentq(excess, 1.0, 700.0, xtol=1e-12))
