"""Random words: from the operating system for real reports, from a generator for simulations."""

from __future__ import annotations

import math
import os

import numpy as np
from numpy.random import Generator

from ldpcash.base.arrays import Counts


def random_words(shape: tuple[int, ...], width: int, rng: Generator | None) -> Counts:
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


def random_below(bound: int, count: int, rng: Generator | None) -> Counts:
    """Whole numbers from 0 to bound - 1, all exactly equally likely: ``(count,)`` of 64 bits.

    Words in the last, incomplete round of ``bound`` are drawn again.

    Args:
        bound: at most 2**64.
        count: how many.
        rng: source of randomness; the operating system's if None.

    >>> random_below(3, 6, np.random.default_rng(1))
    array([1, 0, 1, 1, 2, 1], dtype=uint64)
    """
    words = random_words((count,), 64, rng)
    again = np.flatnonzero(words > np.uint64(2**64 - 1 - 2**64 % bound))
    if len(again):
        words[again] = random_below(bound, len(again), rng)
    return words % np.uint64(bound)
