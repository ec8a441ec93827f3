"""Exact arithmetic of LLRs: logarithms that come out alike on every CPU.

NumPy's own exp and log differ between CPUs in the last digit; these are made of additions and
multiplications in a fixed order.
"""

from __future__ import annotations

import math

import numpy as np

from ldpcash.base.arrays import Reals


def log1p_exp_minus(x: Reals) -> Reals:
    """log(1 + exp(-x)) for x >= 0, to 15 digits.

    >>> bool(abs(log1p_exp_minus(np.array([1.0]))[0] - math.log1p(math.exp(-1))) < 1e-15)
    True

    exp(-x) = 2**q exp(r) with |r| <= log(2) / 2, and log(1 + z) = 2 artanh(z / (2 + z)).
    """
    x = np.minimum(x, 700.0)  # exp(-x) is then below anything it is added to
    q = np.rint(x * -1.4426950408889634)
    r = -x - q * 0.693147180369123816490 - q * 1.90821492927058770002e-10  # log 2 in two parts
    return _log1p(np.ldexp(_series(_EXP, r), q.astype(np.int32)))


def log_cosh_half(x: Reals) -> Reals:
    """log cosh(x / 2) for x >= 0, to 15 digits however small x is.

    >>> bool(abs(log_cosh_half(np.array([1.0]))[0] - math.log(math.cosh(0.5))) < 1e-15)
    True
    """
    y = np.minimum(x, 1.0) / 2
    small = _log1p(y * y * _series(_COSH_MINUS_1, y * y))
    return np.where(x < 1, small, x / 2 + (log1p_exp_minus(x) - 0.6931471805599453))


def _log1p(z: Reals) -> Reals:
    """log(1 + z) for 0 <= z <= 1."""
    w = z / (2 + z)
    return 2 * w * _series(_ARTANH, w * w)


def _series(coefficients: list[float], x: Reals) -> Reals:
    """The sum of coefficients[i] * x**i, by Horner's rule."""
    total = np.full_like(x, coefficients[-1])
    for coefficient in reversed(coefficients[:-1]):
        total *= x
        total += coefficient
    return total


_EXP = [1 / math.factorial(i) for i in range(14)]
_COSH_MINUS_1 = [1 / math.factorial(2 * i + 2) for i in range(8)]
_ARTANH = [1 / (2 * i + 1) for i in range(17)]
