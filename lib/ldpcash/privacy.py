"""Privacy: how much noise a promise of (epsilon, delta) costs, and what a given noise promises.

Two randomizers are calibrated here. The *Gaussian mechanism* (the paper's Theorem 2) adds normal
noise to a vector that can move by at most ``sensitivity``; `gaussian_delta` is its exact privacy
profile, `gaussian_epsilon` the same read the other way, and `gaussian_sigma` the smallest safe
noise, after Balle and Wang (2018). *Randomized response* (the baseline's) tells the truth about one
sign with a fixed probability.

`gaussian_sigma` and `keep_threshold`, which decide what a client does, err on the private side:
what they return satisfies the promise in exact arithmetic, not only up to rounding.
"""

from __future__ import annotations

import decimal
import math
import numbers
from decimal import Decimal
from typing import Any

import numpy as np
from scipy.special import erfcx, ndtr

# Nodes and weights on (0, 1). Sixteen are exact to the last digit on the intervals used below.
_NODES, _WEIGHTS = (array / 2 for array in np.polynomial.legendre.leggauss(16))
_NODES = _NODES + 0.5

# The root below is good to 1e-13; going up by three times that makes it a safe one.
_SIGMA_MARGIN = 1 + 3e-13


def gaussian_delta(epsilon: float, sigma: float, sensitivity: float) -> float:
    """The smallest delta for which noise of scale sigma is (epsilon, delta) private.

    Args:
        epsilon: privacy loss that may be exceeded with probability about delta; 0 or more.
        sigma: standard deviation of the noise in each coordinate.
        sensitivity: largest L2 distance between two noiseless vectors.

    >>> round(gaussian_delta(1.0, 2.0, 1.0), 6)
    0.00683
    """
    if not 0 <= epsilon < math.inf:
        raise ValueError(f"epsilon = {epsilon!r}: needs a number from 0")
    _check_positive("sigma", sigma)
    _check_positive("sensitivity", sensitivity)
    return math.exp(_log_delta(epsilon, sigma / sensitivity))


def gaussian_epsilon(delta: float, sigma: float, sensitivity: float) -> float:
    """The smallest epsilon for which noise of scale sigma is (epsilon, delta) private.

    Rounded up, by a part in 10**12 at most.

    Args:
        delta: between 0 and 1.
        sigma: standard deviation of the noise in each coordinate.
        sensitivity: largest L2 distance between two noiseless vectors.

    >>> round(gaussian_epsilon(1e-4, 6.3714, 2.0), 4)
    1.0
    """
    if not 0 < delta < 1:
        raise ValueError(f"delta = {delta!r}: needs a number between 0 and 1")
    if gaussian_delta(0.0, sigma, sensitivity) <= delta:
        return 0.0
    low, high = 0.0, 1.0
    while gaussian_delta(high, sigma, sensitivity) > delta:
        low, high = high, 2 * high
    while high - low > 1e-12 * high:
        middle = (low + high) / 2
        private = gaussian_delta(middle, sigma, sensitivity) <= delta
        low, high = (low, middle) if private else (middle, high)
    return high


def gaussian_sigma(epsilon: float, delta: float, sensitivity: float) -> float:
    """The smallest noise that is (epsilon, delta) private: the analytic Gaussian mechanism.

    The result is never too small, and too large by less than a part in 10**12, for epsilon from
    1e-6 to 100 and delta from 1e-15 to 0.5.

    Args:
        epsilon: privacy loss, above 0.
        delta: probability with which it may be exceeded, between 0 and 1.
        sensitivity: largest L2 distance between two noiseless vectors.

    >>> round(gaussian_sigma(1.0, 1e-4, 2.0), 4)
    6.3714
    """
    _check_positive("epsilon", epsilon)
    if not (isinstance(delta, numbers.Real) and 0 < delta < 1):
        raise ValueError(f"delta = {delta!r}: needs a number between 0 and 1")
    _check_positive("sensitivity", sensitivity)
    target = math.log(delta)
    low = high = math.log(1 / math.sqrt(2 * epsilon))
    while _log_delta(epsilon, math.exp(low)) < target:
        low -= 1
    while _log_delta(epsilon, math.exp(high)) > target:
        high += 1
    while (root := (low + high) / 2) not in (low, high):  # bisection, until no float is between
        if _log_delta(epsilon, math.exp(root)) > target:
            low = root
        else:
            high = root
    return math.exp(high) * _SIGMA_MARGIN * sensitivity


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


def keep_threshold(epsilon: float) -> int:
    """How many of all 2**64 words keep the sign, so that the odds never exceed e^eps.

    It is the largest whole number t with t / (2**64 - t) <= e^eps, or one less where 60 digits do
    not tell; and less than 2**64 however large epsilon is. A sign is kept if a random word is below
    it: the coin is a comparison of whole numbers, and nothing in it is rounded.

    >>> keep_threshold(1.0) / 2**64
    0.7310585786300049
    """
    _check_positive("epsilon", epsilon)
    with decimal.localcontext(prec=60):
        exact = 2**64 / (1 + (-Decimal(float(epsilon))).exp())
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
    _check_positive("epsilon", epsilon)
    return 1 / math.tanh(epsilon / 2)


def response_epsilon(keep: float) -> float:
    """Privacy loss of telling the truth with probability ``keep``: log(keep / (1 - keep)).

    >>> round(response_epsilon(0.75), 6)
    1.098612
    """
    if not 0.5 <= keep < 1:
        raise ValueError(f"keep = {keep!r}: needs a probability from 0.5, below 1")
    return math.log(keep / (1 - keep))


def _check_positive(name: str, value: float) -> None:
    if not (isinstance(value, numbers.Real) and 0 < value < math.inf):
        raise ValueError(f"{name} = {value!r}: needs a positive number")
