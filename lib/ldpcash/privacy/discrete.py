"""The discrete Gaussian, drawn exactly: no rounding, so that a draw has just the law it should.

Randomness comes from the operating system for real reports, and from a given generator for
simulations: wherever ``rng`` is None, it is the former.
"""

from __future__ import annotations

import decimal
import math
from bisect import bisect_left, bisect_right
from decimal import Decimal
from functools import lru_cache
from itertools import accumulate

import numpy as np
from numpy.random import Generator

from ldpcash.base.arrays import Counts
from ldpcash.base.randomness import random_words

MOST_SCALE = 2**16  # steps: what the tables allow
_GUARD = 64  # bits that the table is computed with beyond those that it has
_UNDECIDED = 2**30  # no draw is as large


def discrete_gaussian(scale: float, shape: tuple[int, ...], rng: Generator | None) -> Counts:
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


def _decide(low: Counts, high: Counts, words: Counts) -> Counts:
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
def _tables(scale: float) -> tuple[Counts, Counts, Counts]:
    """Bounds of 64 bits, and the answers to all words of 16."""
    low, high = (np.array(bound, dtype=np.uint64) for bound in _bounds(scale, 64))
    drop = np.uint64(48)
    answers = _decide(low >> drop, high >> drop, np.arange(2**16, dtype=np.uint64))
    return low, high, answers.astype(np.int32)


def _bounds(scale: float, bits: int) -> tuple[list[int], list[int]]:
    """Counts numbers with low <= 2^bits P(X <= k) < high + 1, for k = -K to K.

    Everything is counted in units of 2^-p, p = bits + 64. The weight of k is w_k = exp(-k^2 /
    (2 s^2)), from w_k+1 = w_k r_k and r_k+1 = r_k exp(-1 / s^2). Decimal rounds every operation
    correctly, so after k steps w_k is off by less than 3 (k + 2)^2 parts in 10^(digits - 1), and
    with 20 digits to spare by less than 1e-3 units; rounded down, by less than 2. Beyond K lies
    less than K units, as w_K is below one. So a sum of weights is off by less than 5 K + 2 units,
    the whole by 6 K + 2, and their ratio, as the whole is at least 2^p units, by 11 K + 5 < 16 K.

    Both ends of the table leave words undecided, so that draws beyond K are possible: P(X <= -K) is
    below 2^-bits, so its low is 0, and high of P(X <= K - 1) is the largest word.
    """
    if not 1 <= scale <= MOST_SCALE:
        raise ValueError(f"scale = {scale!r}: needs a number from 1 to {MOST_SCALE}")
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
