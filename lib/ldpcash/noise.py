"""Safe noise: Gaussian noise on a grid, drawn exactly, and what it promises.

Floating-point noise gives a client away: which floats a sum can round to depends on the signal. So
a client of `Cash` computes with whole numbers of steps, and only a finished report becomes floats::

    signal, +-level steps or 0  +  discrete Gaussian noise, in steps  ->  report = steps * step

The *discrete Gaussian* of scale s has the probabilities P(k) = exp(-k**2 / (2 s**2)) / Z on all
whole numbers k (Canonne, Kamath and Steinke 2020). `grid_delta` bounds its privacy profile from
above, to a part in 10^8, `safe_grid` chooses grid and scale, and `discrete_gaussian` draws from it
without any rounding.

Randomness comes from the operating system for real reports, and from a given generator for
simulations: wherever ``rng`` is None, it is the former.
"""

from __future__ import annotations

import decimal
import math
import os
from bisect import bisect_left, bisect_right
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import lru_cache
from itertools import accumulate
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from ldpcash.checks import real_number, whole_number

Whole = NDArray[Any]  # integers of any kind

_LEAST_SCALE = 64  # steps: grids get finer until the noise is this wide
_MOST_SCALE = 2**16  # steps: what the sampler's table allows
_SAFE = 1 + 1e-9  # more than all rounding in `grid_delta`
_GUARD = 64  # bits that the table is computed with beyond those that it has
_UNDECIDED = 2**30  # no draw is as large


def random_words(shape: tuple[int, ...], width: int, rng: Generator | None) -> Whole:
    """Random words of 8, 16, 32 or 64 bits: of ``rng``, or of the operating system if it is None.

    >>> random_words((2, 3), 16, None).shape
    (2, 3)
    """
    size = math.prod(shape)
    count = -(-size * width // 64)
    if rng is None:
        words = np.frombuffer(bytearray(os.urandom(8 * count)), dtype=np.uint64)
    else:
        words = rng.integers(0, 2**64, count, dtype=np.uint64)
    return words.view(f"u{width // 8}")[:size].reshape(shape)


# What noise on a grid promises


def grid_delta(epsilon: float, scale: float, shift: int, count: int) -> float:
    """The delta of two inputs that differ by ``shift`` steps in each of ``count`` coordinates.

    Let W be the sum of the noise over these coordinates, counted in the direction from the second
    input to the first. The privacy loss of a report of the first is (2 shift W + count shift^2) /
    (2 scale^2): normalizations cancel, since moving by whole steps does not change them. If the
    loss is epsilon at W = t, then::

        delta = E[(1 - e^(epsilon - loss))^+]
              = sum over k > t of P(W = k) (1 - exp(-(k - t) shift / scale^2)).

    P(W = k) is that of a discrete Gaussian of variance S^2 = count * scale^2, up to a factor below
    1 + 1e-60. For completing the square, one more coordinate beside v of them contributes
    exp(-k^2 / (2 (v + 1) scale^2)) times the sum over all whole z of exp(-(z - c)^2 / (2 q^2)),
    with some c and q^2 = scale^2 v / (v + 1) >= scale^2 / 2. By Poisson's formula this sum is
    sqrt(2 pi) q times a number within 3 exp(-pi^2 scale^2) of 1, whatever c is, and scale >= 4. By
    the same formula the normalization is at least sqrt(2 pi) S. As all terms are positive, rounding
    stays relative: the result is an upper bound, too large by a part in 10^8 at most.

    Args:
        epsilon: privacy loss, 0 or more.
        scale: of the noise, in steps; at least 4.
        shift, count: how the inputs differ; whole numbers from 1.

    >>> grid_delta(1.0, 51.0, 2, 64) < 1e-4  # noise of 6.375, in steps of 1/8; sensitivity 2
    True
    """
    epsilon, scale = real_number("epsilon", epsilon, 0), real_number("scale", scale, 4)
    shift, count = whole_number("shift", shift, 1), whole_number("count", count, 1)
    variance = count * scale**2
    spread = math.sqrt(variance)
    t = epsilon * scale**2 / shift - count * shift / 2
    last = math.floor(max(t, 0) + 12 * spread) + 1
    k = np.arange(max(math.floor(t), -last), last, dtype=np.float64)
    excess = -np.expm1(-np.maximum(k - t, 0) * (shift / scale**2))
    terms = np.exp(-(k**2) / (2 * variance)) * excess
    beyond = spread * math.exp(-(last**2) / (2 * variance))  # more than all terms that follow
    return float((terms.sum() + beyond) * _SAFE / math.sqrt(2 * math.pi * variance))


@dataclass(frozen=True)
class Grid:
    """Where reports of `Cash` lie, and the noise on it.

    >>> grid = safe_grid(1.0, 1e-4, 6.3714, 64, 64)
    >>> grid.level, grid.step == 1 / (8 * grid.level), grid.delta(1.0) <= 1e-4
    (2, True, True)
    """

    level: int  #: the entries of a signal are +-level steps
    scale: float  #: of the noise, in steps
    step: float  #: 1 / (level sqrt(n))
    weight: int  #: of the heaviest codeword
    apart: int  #: coordinates in which two inputs can differ by one level

    def delta(self, epsilon: float, reports: int = 1) -> float:
        """The delta of a client that reports once, or several times, whatever it holds and when.

        The inputs of a report can be two words, which differ by 2 levels in at most ``weight``
        coordinates, or a word and nothing, which differ by one level in all n. To differ in fewer
        coordinates is to differ in more and to drop some, which does not raise delta. So the worst
        that is all of the first kind is `far`. Otherwise <noise, difference> is a whole number of
        levels, 2 W + W' of both kinds together. As in `grid_delta` it has the law of a sum of noise
        over as many coordinates as the squared distance has levels: at most 4 weight or n a report.
        """
        far = grid_delta(epsilon, self.scale, 2 * self.level, self.weight * reports)
        squares = max(4 * self.weight, self.apart) * reports
        return max(far, grid_delta(epsilon, self.scale, self.level, squares))


def safe_grid(
    epsilon: float, delta: float, sigma: float, n: int, weight: int, apart: int | None = None
) -> Grid:
    """A grid whose noise keeps the promise of (epsilon, delta), by `grid_delta`.

    Signals lie on it, and noise is at least 64 steps wide. Its scale is sigma, and where the
    discrete law needs it about one part in 10^5 more.

    Args:
        epsilon, delta: the promise.
        sigma: of the Gaussian mechanism with the same promise.
        n: length of the code, a power of two.
        weight: of its heaviest codeword.
        apart: in how many coordinates two inputs can differ by one level: n unless given, for a
            word and nothing.

    >>> grid = safe_grid(1.0, 1e-4, 6.3714, 64, 64)
    >>> grid.level, grid.step, round(grid.scale * grid.step, 3), grid.delta(1.0) <= 1e-4
    (2, 0.0625, 6.371, True)
    """
    width = sigma * math.sqrt(n)  # of the noise, in steps of 1 / sqrt(n)
    level = 2 ** max(0, math.ceil(math.log2(_LEAST_SCALE / width)))
    if not width <= _MOST_SCALE:
        raise ValueError(
            f"sigma = {sigma!r}: more than {_MOST_SCALE / math.sqrt(n):g}, where noise is no longer"
            " drawn exactly; a larger epsilon needs less"
        )
    step = 1 / (level * math.sqrt(n))
    grid = Grid(level, width * level, step, weight, n if apart is None else apart)
    while grid.delta(epsilon) > delta:
        grid = replace(grid, scale=grid.scale * (1 + 2.0**-18))
    return grid


# How it is drawn


def discrete_gaussian(scale: float, shape: tuple[int, ...], rng: Generator | None) -> Whole:
    """Independent draws of the discrete Gaussian, by inversion, with no error at all.

    Let U be uniform on (0, 1), written in binary. The draw is the smallest k whose cumulative
    probability exceeds U: there the law is exact. Only as many bits of U are drawn as it takes. If
    u is what its first b bits are as a whole number, U lies between u / 2^b and (u + 1) / 2^b. For
    each k a table has whole numbers with low <= 2^b P(X <= k) < high + 1. If high < u, then
    P(X <= k) < U for sure, and if u < low, then P(X <= k) > U for sure. So if as many k have
    high < u as have low <= u, then the draw is decided. Otherwise it takes more bits.

    16 bits decide nearly all draws, by a table of all 2^16 answers; 64 bits the others, by a
    search. Whatever is still open, one draw in 10^16, gets further words and a table of its own.
    How long this takes depends a little on what is drawn: who can clock a client learns something.

    Args:
        scale: s, in steps, from 1 to 2^16. Any float: its exact value counts.
        shape: of the array that comes back.
        rng: source of randomness, None for the operating system.

    >>> discrete_gaussian(64.0, (2, 4), np.random.default_rng(1)).tolist()
    [[80, -4, 42, 2], [26, 44, 14, 106]]
    """
    low, high, answers = _tables(scale)
    start = random_words(shape, 16, rng)
    drawn = answers[start]
    undecided = np.flatnonzero(drawn == _UNDECIDED)
    if undecided.size:
        words = start.ravel()[undecided].astype(np.uint64) << np.uint64(48)
        words |= random_words(words.shape, 64, rng) >> np.uint64(16)
        decided = _decide(low, high, words)
        for i in np.flatnonzero(decided == _UNDECIDED):
            decided[i] = _decide_slowly(scale, int(words[i]), rng)
        drawn.ravel()[undecided] = decided
    return drawn


def _decide(low: Whole, high: Whole, words: Whole) -> Whole:
    """The draws that words decide, and _UNDECIDED for the others."""
    surely = np.searchsorted(high, words, side="left")
    perhaps = np.searchsorted(low, words, side="right")
    return np.where(surely == perhaps, surely - len(low) // 2, _UNDECIDED)


def _decide_slowly(scale: float, word: int, rng: Generator | None) -> int:
    """The draw that begins with these 64 bits and goes on with as many as it takes."""
    bits = 64
    while True:
        bits += 64
        word = word << 64 | int(random_words((1,), 64, rng)[0])
        low, high = _bounds(scale, bits)
        surely = bisect_left(high, word)
        if surely == bisect_right(low, word):
            return surely - len(low) // 2


@lru_cache(maxsize=8)
def _tables(scale: float) -> tuple[Whole, Whole, Whole]:
    """Bounds of 64 bits, and the answers to all words of 16."""
    low, high = (np.array(bound, dtype=np.uint64) for bound in _bounds(scale, 64))
    drop = np.uint64(48)
    answers = _decide(low >> drop, high >> drop, np.arange(2**16, dtype=np.uint64))
    return low, high, answers.astype(np.int32)


def _bounds(scale: float, bits: int) -> tuple[list[int], list[int]]:
    """Whole numbers with low <= 2^bits P(X <= k) < high + 1, for k = -K to K.

    Everything is counted in units of 2^-p, p = bits + 64. The weight of k is w_k = exp(-k^2 /
    (2 s^2)), from w_k+1 = w_k r_k and r_k+1 = r_k exp(-1 / s^2). Decimal rounds every operation
    correctly, so after k steps w_k is off by less than 3 (k + 2)^2 parts in 10^(digits - 1), and
    with 20 digits to spare by less than 1e-3 units; rounded down, by less than 2. Beyond K lies
    less than K units, as w_K is below one. So a sum of weights is off by less than 5 K + 2 units,
    the whole by 6 K + 2, and their ratio, as the whole is at least 2^p units, by 11 K + 5 < 16 K.

    Both ends of the table leave words undecided, so that draws beyond K are possible: P(X <= -K) is
    below 2^-bits, so its low is 0, and high of P(X <= K - 1) is the largest word.
    """
    if not 1 <= scale <= _MOST_SCALE:
        raise ValueError(f"scale = {scale!r}: needs a number from 1 to {_MOST_SCALE}")
    p = bits + _GUARD
    K = math.ceil(scale * math.sqrt(2 * math.log(2) * p)) + 1
    with decimal.localcontext(prec=math.ceil(p * math.log10(2)) + 20):
        unit, step = Decimal(2) ** p, (-1 / Decimal(scale) ** 2).exp()
        ratio, weight, weights = (-1 / (2 * Decimal(scale) ** 2)).exp(), Decimal(1), []
        for _ in range(K + 1):
            weights.append(int(weight * unit))
            weight, ratio = weight * ratio, ratio * step
    sums = list(accumulate(weights[:0:-1] + weights))
    off, largest = 16 * K, 2**bits - 1
    cumulative = [(total << p) // sums[-1] for total in sums]
    low = [max(0, (c - off) >> _GUARD) for c in cumulative]
    high = [min(largest, (c + off) >> _GUARD) for c in cumulative]
    return low, high
