"""The laws that means of reports are drawn from: how clients fall on cells, none simulated."""

from __future__ import annotations

import numpy as np
from numpy.random import Generator

from ldpcash.base.arrays import Counts
from ldpcash.base.checks import real_number, whole_number
from ldpcash.base.randomness import random_words

_MANY_TOSSES = 2048  # beyond it NumPy's binomial takes less time than tossing coins one by one


def holders(frequency: float, clients: int) -> int:
    """How many of N clients hold the item: the whole number nearest to frequency * N.

    A fraction of a client cannot hold an item, so the true frequency of a simulation is
    ``holders(f, N) / N``. It differs from f by at most 1 / (2 N).

    >>> holders(0.7, 1000), holders(1 / 3, 1000)
    (700, 333)
    """
    frequency = real_number("frequency", frequency, 0, 1)
    return round(frequency * whole_number("clients", clients, 1, 2**53))


def spread_evenly(counts: Counts, levels: int, rng: Generator) -> Counts:
    """Send each client to one of 2**levels cells, all alike: ``(T,)`` counts to ``(cells, T)``.

    A tree of fair halvings: half of the clients of a cell, drawn by tossing a coin for each, move
    to its first half.

    >>> spread_evenly(np.array([1000, 3]), 2, np.random.default_rng(1)).sum(axis=0).tolist()
    [1000, 3]
    """
    smallest = np.min_scalar_type(-1 - int(counts.max(initial=0)))  # small integers are fast
    cells = counts[None].astype(smallest)
    for _ in range(levels):
        halves = np.empty((len(cells), 2, len(counts)), cells.dtype)
        halves[:, 0] = fair_heads(cells, rng)
        np.subtract(cells, halves[:, 0], out=halves[:, 1])
        cells = halves.reshape(2 * len(cells), len(counts))
    return cells


def fair_heads(tosses: Counts, rng: Generator) -> Counts:
    """How many of each number of tosses of a fair coin fall heads: popcounts of random words.

    >>> bool((fair_heads(np.array([0, 1, 70]), np.random.default_rng(1)) <= [0, 1, 70]).all())
    True
    """
    most = int(tosses.max(initial=0))
    if most > _MANY_TOSSES:
        return np.asarray(rng.binomial(tosses, 0.5))
    sure = int(tosses.min(initial=most)) // 64  # whole words that every count fills
    heads = np.bitwise_count(random_words((sure, *tosses.shape), 64, rng))
    heads = heads.sum(axis=0, dtype=tosses.dtype)
    width = next((bits for bits in (8, 16, 32) if most - 64 * sure <= bits), 64)
    for done in range(64 * sure, most, width):
        words = random_words(tosses.shape, width, rng)
        left = tosses if most <= width else np.clip(tosses, done, done + width) - done
        words >>= np.subtract(width, left, dtype=words.dtype, casting="unsafe")
        heads += np.bitwise_count(words)
    return heads
