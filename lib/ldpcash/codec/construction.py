"""Which bits of a code should carry information: four rules that rank its synthetic channels.

A polar code of length n = 2**m turns n uses of a channel into n synthetic ones, some better and
some worse. A rule gives each of them a number, its *reliability*, and `PolarCode.construct` takes
the k best. "pw" needs no channel, "rm" looks at weights alone; "ga" and "bhattacharyya" follow the
noise of a Gaussian channel through m steps, each of which makes a worse (``-``) and a better
(``+``) channel of every one.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

import numpy as np

from ldpcash.base.arrays import Reals, bits_of
from ldpcash.base.checks import one_of, real_number, whole_number

MAX_LENGTH = 2**16


def code_length(n: int) -> int:
    """n as an int, if it is a power of two that a code can be long.

    >>> code_length(64)
    64
    """
    number = whole_number("n", n, 1, MAX_LENGTH)
    if number & (number - 1):
        raise ValueError(f"n = {n!r}: the length must be a power of two from 1 to {MAX_LENGTH}")
    return number


def reliability(n: int, method: str = "pw", design_sigma: float | None = None) -> Reals:
    """How good each of the n synthetic channels is, by one of the rules of `PolarCode.construct`.

    Returns ``(n,)`` numbers, larger for better channels: "pw", the weight; "ga", the log of the
    mean LLR; "bhattacharyya", log((1 - Z) / Z); "rm", the log2 of the row's weight.

    >>> reliability(4, "rm")
    array([0., 1., 1., 2.])
    """
    n = code_length(n)
    one_of("method", method, _RULES)
    if design_sigma is None:
        design_sigma = 1.0
    elif method not in ("ga", "bhattacharyya"):
        raise ValueError(f"design_sigma = {design_sigma!r}: the {method!r} rule has no channel")
    design_sigma = real_number("design_sigma", design_sigma, 0.001, 1000)
    return _RULES[method](n.bit_length() - 1, design_sigma)


# The rules: (m, sigma) to the reliabilities of the 2**m channels.


def _polarization_weight(m: int, sigma: float) -> Reals:
    """Sum of 2**(j/4) over the bits j set in the index: a fixed order, free of the channel."""
    bits = bits_of(np.arange(2**m), m)[:, ::-1]
    return np.asarray((bits * 2.0 ** (np.arange(m) / 4)).sum(axis=1))


def _reed_muller(m: int, sigma: float) -> Reals:
    """Row i of G weighs 2 to the number of bits set in i."""
    return np.bitwise_count(np.arange(2**m)).astype(np.float64)


def _bhattacharyya(m: int, sigma: float) -> Reals:
    """Log odds of 1 - Z: ``-`` squares 1 - Z (so Z is an upper bound), ``+`` squares Z."""
    log_z = np.array([-1 / (2 * sigma**2)])
    odds = _log1mexp(log_z) - log_z
    for _ in range(m):
        odds = np.stack([_odds_of_square(odds), -_odds_of_square(-odds)], axis=-1).ravel()
    return odds


def _gaussian_approximation(m: int, sigma: float) -> Reals:
    """Log of the mean LLR, every LLR taken as Gaussian with a variance of twice its mean.

    ``-`` squares t = E[tanh(LLR / 2)], ``+`` doubles the mean.
    """
    log_mean = np.array([np.log(2 / sigma**2)])
    grid, odds_on_grid = _tanh_table()
    for _ in range(m):
        # Below the table t is half the mean, so its log odds are the log mean less log 2.
        odds = np.where(
            log_mean < grid[0],
            log_mean - np.log(2),
            np.interp(log_mean, grid, odds_on_grid),
        )
        squared = _odds_of_square(odds)
        minus = np.where(
            squared < odds_on_grid[0],
            squared + np.log(2),
            np.interp(squared, odds_on_grid, grid),
        )
        log_mean = np.stack([minus, log_mean + np.log(2)], axis=-1).ravel()
    return log_mean


@lru_cache(maxsize=1)
def _tanh_table() -> tuple[Reals, Reals]:
    """Log mean of a Gaussian LLR, and the log odds of t = E[tanh(LLR / 2)] at each.

    Two integrals without cancellation, by the trapezoidal rule, which converges geometrically on
    smooth bells: t = E[tanh(LLR / 2)**2], true of every symmetric LLR, while the mean is small, and
    1 - t = exp(-mean / 4) / sqrt(4 pi mean) * integral of sech(x / 2) exp(-x**2 / (4 mean)) above.
    """
    log_mean = np.arange(-20, 30, 0.005)
    small = np.exp(log_mean[log_mean < 0])[:, None]
    z = np.arange(-9, 9.05, 0.1)
    density = 0.1 * np.exp(-(z**2) / 2) / np.sqrt(2 * np.pi)
    log_t = np.log((np.tanh((small + np.sqrt(2 * small) * z) / 2) ** 2 * density).sum(axis=1))

    large = np.exp(log_mean[log_mean >= 0])[:, None]
    x = np.arange(-80, 80.2, 0.4)
    bell = np.exp(-(x**2) / (4 * large)) / np.cosh(x / 2)
    log_rest = np.log(0.4 * bell.sum(axis=1)) - large[:, 0] / 4
    log_rest -= np.log(4 * np.pi * large[:, 0]) / 2
    odds = np.concatenate([log_t - _log1mexp(log_t), _log1mexp(log_rest) - log_rest])
    return log_mean, odds


def _odds_of_square(odds: Reals) -> Reals:
    """Log odds of p**2 from the log odds of p: logarithms keep both ends of (0, 1) apart."""
    bounded = np.minimum(odds, 30)  # beyond it squaring takes log 2 off the odds, to 13 digits
    log_square = -2 * np.logaddexp(0, -bounded)
    return log_square - _log1mexp(log_square) + (odds - bounded)


def _log1mexp(x: Reals) -> Reals:
    """log(1 - exp(x)) for x < 0, with the digits of x kept near 0."""
    return np.asarray(np.log(-np.expm1(x)))


_RULES: dict[str, Callable[[int, float], Reals]] = {
    "pw": _polarization_weight,
    "ga": _gaussian_approximation,
    "bhattacharyya": _bhattacharyya,
    "rm": _reed_muller,
}
