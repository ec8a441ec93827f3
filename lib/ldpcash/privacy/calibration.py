"""Privacy: how much noise a promise of (epsilon, delta) costs, and what a given noise promises.

Two randomizers are calibrated here. The *Gaussian mechanism* (the paper's Theorem 2) adds normal
noise to a vector that can move by at most ``sensitivity``; `gaussian_delta` is its exact privacy
profile, `gaussian_epsilon` the same read the other way, and `gaussian_sigma` the smallest safe
noise, after Balle and Wang (2018). *Randomized response* (the baseline's) tells the truth about one
sign with a fixed probability.

`gaussian_sigma` and `keep_threshold`, which decide what a client does, err on the private side, and
so does `gaussian_epsilon`: what they return satisfies the promise in exact arithmetic, not only up
to rounding.
"""

from __future__ import annotations

import decimal
import math
from decimal import Decimal
from typing import Any

import numpy as np
from scipy.special import erfcx, ndtr

from ldpcash.base.bisection import bisect, grow
from ldpcash.base.checks import fraction, positive, real_number

# Nodes and weights on (0, 1). Sixteen are exact to the last digit on the intervals used below.
_NODES, _WEIGHTS = (array / 2 for array in np.polynomial.legendre.leggauss(16))
_NODES = _NODES + 0.5

# The root below is good to 1e-13; going up by three times that makes it a safe one.
_SIGMA_MARGIN = 1 + 3e-13

# More than `_log_delta` can be off by.
_LOG_DELTA_MARGIN = 1e-12


def gaussian_delta(epsilon: float, sigma: float, sensitivity: float) -> float:
    """The smallest delta for which noise of scale sigma is (epsilon, delta) private.

    It is E[(1 - e^(epsilon - loss))^+], a mean over what is sent. That is less than the probability
    that the privacy loss exceeds epsilon: 1e-4 where that is 1.2e-3, for noise of 6.37 and a
    sensitivity of 2 at epsilon = 1.

    Args:
        epsilon: privacy loss, 0 or more.
        sigma: standard deviation of the noise in each coordinate.
        sensitivity: largest L2 distance between two noiseless vectors.

    >>> round(gaussian_delta(1.0, 2.0, 1.0), 6)
    0.00683
    """
    epsilon = real_number("epsilon", epsilon, 0)
    scale = positive("sigma", sigma) / positive("sensitivity", sensitivity)
    return math.exp(_log_delta(epsilon, scale))


def gaussian_epsilon(delta: float, sigma: float, sensitivity: float) -> float:
    """The smallest epsilon for which noise of scale sigma is (epsilon, delta) private.

    It is that of a delta smaller by a part in 10**12, so that it is never too small, for epsilon up
    to 100 and delta from 1e-15; and then rounded up, by another part in 10**12 at most.

    Args:
        delta: between 0 and 1.
        sigma: standard deviation of the noise in each coordinate.
        sensitivity: largest L2 distance between two noiseless vectors.

    >>> round(gaussian_epsilon(1e-4, 6.3714, 2.0), 4)
    1.0
    """
    target = math.log(fraction("delta", delta)) - _LOG_DELTA_MARGIN
    scale = positive("sigma", sigma) / positive("sensitivity", sensitivity)

    def private(epsilon: float) -> bool:
        return _log_delta(epsilon, scale) <= target

    return 0.0 if private(0.0) else bisect(private, *grow(private, 1.0), close=1e-12)


def gaussian_sigma(epsilon: float, delta: float, sensitivity: float) -> float:
    """The smallest noise that is (epsilon, delta) private: the analytic Gaussian mechanism.

    The result is never too small, and too large by less than a part in 10**12, for epsilon from
    1e-6 to 100 and delta from 1e-15 to 0.5.

    Args:
        epsilon: privacy loss, above 0.
        delta: by how much the promise may fail, between 0 and 1; see `gaussian_delta`.
        sensitivity: largest L2 distance between two noiseless vectors.

    >>> round(gaussian_sigma(1.0, 1e-4, 2.0), 4)
    6.3714
    """
    epsilon = positive("epsilon", epsilon)
    target = math.log(fraction("delta", delta))
    sensitivity = positive("sensitivity", sensitivity)

    def private(log_scale: float) -> bool:
        return _log_delta(epsilon, math.exp(log_scale)) <= target

    low = high = math.log(1 / math.sqrt(2 * epsilon))
    while private(low):
        low -= 1
    while not private(high):
        high += 1
    return math.exp(bisect(private, low, high)) * _SIGMA_MARGIN * sensitivity


def _log_delta(epsilon: float, scale: float) -> float:
    """log of the privacy profile at sigma = scale * sensitivity, with no digits cancelled.

    With p = epsilon * scale - 1 / (2 * scale), q = p + 1 / scale and the Mills ratio
    M(x) = (1 - Phi(x)) / phi(x), Balle and Wang's delta is phi(p) * (M(p) - M(q)), because
    exp(epsilon) phi(q) = phi(p). Where p and q are close, the difference is the integral of
    -M'(x) = 1 - x M(x).
    """
    width = 1 / scale
    p = epsilon * scale - width / 2
    if p > 40:
        return -p * p / 2  # delta is below the smallest float
    if p < -40:
        return 0.0  # and here it is 1
    if p < -1:
        return math.log(ndtr(-p) - _density(p) * _mills(p + width))
    if width < 0.5:
        x = p + width * _NODES
        difference = width * float(_WEIGHTS @ (1 - x * _mills(x)))
    else:
        difference = _mills(p) - _mills(p + width)
    return math.log(difference) - p * p / 2 - math.log(2 * math.pi) / 2


def _density(x: float) -> float:
    return math.exp(-x * x / 2) / math.sqrt(2 * math.pi)


def _mills(x: Any) -> Any:
    return math.sqrt(math.pi / 2) * erfcx(x / math.sqrt(2))


def keep_threshold(epsilon: float, own: int = 1, others: int = 1) -> int:
    """How many of all 2**64 words keep the sign, so that the odds never exceed e^eps.

    It is the largest whole number t with t / (2**64 - t) <= e^eps, or one less where 60 digits do
    not tell; and less than 2**64 however large epsilon is. A sign is kept if a random word is below
    it: the coin is a comparison of whole numbers, and nothing in it is rounded.

    Args:
        epsilon: privacy loss, above 0.
        own, others: among how many reports a client then chooses at random, if it keeps what it
            has and if not, or numbers in proportion; the odds of each are what is bounded. Two
            signs are one of each.

    >>> keep_threshold(1.0) / 2**64
    0.7310585786300049
    """
    epsilon = positive("epsilon", epsilon)
    with decimal.localcontext(prec=60):
        exact = 2**64 / (1 + (-Decimal(epsilon)).exp() * others / own)
        return min(math.floor(exact - Decimal("1e-30")), 2**64 - 1)


def keep_probability(epsilon: float) -> float:
    """Probability with which randomized response tells the truth, e^eps / (e^eps + 1).

    It is that of `keep_threshold`, rounded down, so that the privacy loss never exceeds epsilon.

    >>> round(keep_probability(1.0), 6)
    0.731059
    """
    return (keep_threshold(epsilon) >> 11) / 2**53


def response_scale(epsilon: float) -> float:
    """c_eps = (e^eps + 1) / (e^eps - 1): what makes the randomized sign unbiased.

    >>> round(response_scale(1.0), 6)
    2.163953
    """
    return 1 / math.tanh(positive("epsilon", epsilon) / 2)
