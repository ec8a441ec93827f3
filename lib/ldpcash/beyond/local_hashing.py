"""Local hashing, the frequency oracle of several peers, and the other steps that peers share::

    item, as bits -> key of 64 bits                                                    `keys_of`
    key -> the client's own function makes it one of g values -> randomized response   `HashOracle`
    candidate's key -> the reports that fit it -> frequency, interval, p-value
    p-values -> those that stand out (Benjamini and Hochberg) -> entries               `accept`

After Wang, Blocki, Li and Jha, "Locally differentially private protocols for frequency estimation"
(2017). With g = 2 a report is a random sign of the item, sent under randomized response: that is
the oracle of Bassily and Smith (2015), and what a sketch with Hadamard response approximates.

For an ideal hash the counts of different candidates are independent, each a sum of two binomials.
So `draw` needs no clients.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import ArrayLike, NDArray
from scipy.special import betainc, ndtri

from ldpcash.base.arrays import Bits, Counts, Reals, batches
from ldpcash.base.checks import positive, whole_number
from ldpcash.histogram.collector import Entry
from ldpcash.histogram.hashing import GOLDEN, Seeds, mix
from ldpcash.histogram.packing import Packing

_BATCH_VALUES = 2**22  # hashes that are computed at once
_BATCH_ROWS = 2**16  # items that are packed at once
_MOST_HASHED = 2**16  # values that a report has room for


def keys_of(bits: Bits) -> Seeds:
    """``(M, n)`` bits to ``(M,)`` keys of 64 bits: up to 64 bits different, beyond nearly surely.

    >>> f"{keys_of(np.array([[1, 0, 1]], dtype=np.uint8))[0]:x}"
    'e34217bd9dfa6f16'
    """
    keys = np.zeros(len(bits), dtype=np.uint64)
    for part in batches(len(bits), _BATCH_ROWS):
        padded = np.pad(bits[part], [(0, 0), (0, -bits.shape[1] % 64)])
        for word in np.packbits(padded, axis=1).view(">u8").T.astype(np.uint64):
            keys[part] = mix((keys[part] ^ word) + GOLDEN)
    return keys


class HashOracle:
    """Estimates how many clients hold any candidate, from one short report a client.

    Privacy: the seed does not depend on the item, and given the seed each value is at most e^eps
    times as probable under one item as under another. A client that holds nothing sends any value
    with 1 / g, which is between the two.

    Args:
        epsilon: the privacy of each client's report.
        values: g, up to 65536; the one with the least noise, about e^eps + 1, unless given. For
            that epsilon is up to 11.09.

    >>> best, sign = HashOracle(2.0), HashOracle(2.0, values=2)
    >>> best.values, round(best.noise, 3), round(sign.noise, 3)
    (8, 0.851, 1.313)
    """

    def __init__(self, epsilon: float, values: int | None = None) -> None:
        self.epsilon = positive("epsilon", epsilon)
        if values is None:
            if self.epsilon > math.log(_MOST_HASHED - 1):
                raise ValueError(
                    f"epsilon = {epsilon!r}: needs at most 11.09, as values have 16 bits"
                )
            values = round(math.exp(self.epsilon)) + 1
        self.values = g = whole_number("values", values, 2, _MOST_HASHED)
        odds = math.exp(min(self.epsilon, 700.0))
        self.match = odds / (odds + g - 1)  #: how often the own value is sent
        #: sqrt(clients) times the deviation of a frequency's estimate, for an item that few hold
        self.noise = math.sqrt(g - 1) / (g * self.match - 1)
        self._scale = self.match - 1 / g

    def hash(self, seeds: Seeds, keys: Seeds) -> NDArray[np.intp]:
        """One of g values: seeds and keys broadcast.

        >>> HashOracle(2.0).hash(np.uint64([0, 1, 2, 3]), np.uint64([7]))
        array([0, 6, 5, 5])
        """
        words = mix(seeds ^ keys)
        return ((words >> np.uint64(32)) * np.uint64(self.values) >> np.uint64(32)).astype(np.intp)

    def send(
        self, seeds: Seeds, keys: Seeds, held: NDArray[np.bool_], rng: Generator
    ) -> NDArray[np.uint16]:
        """What clients say: their seeds, keys and whether they hold something, ``(N,)`` each.

        >>> seeds = np.arange(3, dtype=np.uint64)
        >>> HashOracle(9.0).send(seeds, seeds, seeds < 2, np.random.default_rng(1)).shape
        (3,)
        """
        values = self.hash(seeds, keys)
        # Randomized response: any other value, all alike, with the probability left over.
        others = (values + rng.integers(1, self.values, len(values))) % self.values
        values = np.where(rng.random(len(values)) < self.match, values, others)
        values = np.where(held, values, rng.integers(0, self.values, len(values)))
        return values.astype(np.uint16)

    def count(self, seeds: Seeds, sent: NDArray[np.uint16], keys: Seeds) -> Reals:
        """How many of N reports fit each of C candidates: ``(C,)``.

        >>> oracle, keys = HashOracle(2.0), np.uint64([7, 8])
        >>> seeds = np.arange(1000, dtype=np.uint64)
        >>> sent = oracle.hash(seeds, keys[0]).astype(np.uint16)  # all hold the first, none lies
        >>> oracle.count(seeds, sent, keys)  # the second fits one report in eight, by chance
        array([1000.,  123.])
        """
        counts = np.zeros(len(keys))
        for part in batches(len(seeds), _BATCH_VALUES // max(1, len(keys))):
            hashed = self.hash(seeds[part, None], keys)
            counts += np.count_nonzero(hashed == sent[part, None], axis=0)
        return counts

    def draw(self, held: Counts, clients: int, rng: Generator) -> Reals:
        """The same for an ideal hash, drawn: ``(...)`` candidates, of which so many are held.

        >>> HashOracle(2.0).draw(np.array([500, 0]), 1000, np.random.default_rng(1)).shape
        (2,)
        """
        fitting = np.asarray(rng.binomial(held, self.match), dtype=np.float64)
        return fitting + rng.binomial(clients - held, 1 / self.values)

    def frequency(self, counts: Reals, clients: int) -> Reals:
        """Unbiased estimates of frequencies.

        >>> HashOracle(math.log(3), values=2).frequency(np.array([500, 600, 750]), 1000).round(2)
        array([0. , 0.4, 1. ])
        """
        return np.asarray((counts / clients - 1 / self.values) / self._scale)

    def accept(
        self,
        bits: Bits,
        counts: Reals,
        clients: int,
        tested: int,
        fdr: float,
        packing: Packing | None = None,
    ) -> list[Entry]:
        """The candidates that stand out, most frequent first.

        Args:
            bits: ``(C, k)``, candidates.
            counts: ``(C,)``, how many reports fit each.
            clients: how many reports there are.
            tested: how many candidates these are the best of.
            fdr: the false-discovery rate that is aimed at.
            packing: to turn items into strings.

        >>> bits, counts = np.eye(2, dtype=np.uint8), np.array([4000.0, 1250.0])
        >>> [entry] = HashOracle(2.0).accept(bits, counts, 10_000, tested=2, fdr=0.05)
        >>> entry.item, round(entry.frequency, 2)
        (array([1, 0], dtype=uint8), 0.71)
        """
        if clients == 0:
            raise ValueError("the last group has no client: there is nothing to count")
        g, rate = self.values, counts / clients
        p = betainc(np.maximum(counts, 1e-9), clients - counts + 1, 1 / g)
        half = -ndtri(0.025) * np.sqrt(rate * (1 - rate) / clients) / self._scale
        return accept(bits, self.frequency(counts, clients), half, p, tested, fdr, packing)


def accept(
    bits: Bits,
    frequency: Reals,
    half: Reals,
    p: Reals,
    tested: int,
    fdr: float,
    packing: Packing | None = None,
) -> list[Entry]:
    """The candidates that stand out, by the rule of Benjamini and Hochberg, most frequent first.

    Args:
        bits: ``(C, k)``, candidates.
        frequency: ``(C,)``, their estimated frequencies.
        half: ``(C,)``, half the length of their intervals.
        p: ``(C,)``, the probability that noise alone brings as much.
        tested: how many candidates these are the best of.
        fdr: the false-discovery rate that is aimed at.
        packing: to turn items into strings.

    >>> bits, some = np.array([[1, 0], [0, 1]], dtype=np.uint8), np.array([0.3, 0.1])
    >>> [line.item for line in accept(bits, some, some / 2, np.array([0.001, 0.2]), 4, 0.05)]
    [array([1, 0], dtype=uint8)]
    """
    order = np.lexsort((-frequency, p))  # by p; of equals, which are both nearly 0, by frequency
    passing = np.flatnonzero(p[order] <= fdr * np.arange(1, len(p) + 1) / tested)
    found = order[: passing[-1] + 1] if len(passing) else order[:0]
    found = found[np.argsort(-frequency[found], kind="stable")]
    names: list[Any] = packing.unpack(bits[found]) if packing else list(bits[found])
    return [
        Entry(name, float(f), float(f - h), float(f + h))
        for name, f, h in zip(names, frequency[found], half[found], strict=True)
    ]


def held_counts(counts: ArrayLike, items: Bits) -> NDArray[np.int64]:
    """Check that ``counts`` says how many clients hold each of M items: ``(M,)`` whole numbers.

    >>> held_counts([3, 0], np.eye(2, dtype=np.uint8))
    array([3, 0])
    """
    held = np.asarray(counts)
    if held.shape != items.shape[:1] or held.dtype.kind not in "iu":
        raise ValueError(
            f"counts has shape {held.shape} and type {held.dtype}:"
            f" needs a whole number for each of {len(items)} items"
        )
    if (held < 0).any():
        raise ValueError(f"counts holds {held.min()}: needs whole numbers from 0")
    return held.astype(np.int64)


def split(
    held: NDArray[np.int64], empty: int, share: Reals, rng: Generator
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Clients split into groups at random: ``(M, groups)`` holders, and ``(groups,)`` clients.

    Args:
        held: ``(M,)``, how many clients hold each item.
        empty: how many hold nothing.
        share: ``(groups,)``, the part that each group has.
        rng: source of randomness.

    >>> rng = np.random.default_rng(1)
    >>> holders, clients = split(np.array([60, 30]), 10, np.array([0.5, 0.5]), rng)
    >>> holders.shape, int(clients.sum())
    ((2, 2), 100)
    """
    holders = rng.multinomial(held, share)
    empty = whole_number("empty", empty, 0)
    return holders, holders.sum(axis=0) + rng.multinomial(empty, share)


def lookup(candidates: Seeds, keys: Seeds, held: NDArray[np.int64]) -> NDArray[np.int64]:
    """How many clients hold each candidate: ``(C,)`` keys, of which ``(M,)`` are held by some.

    >>> lookup(np.uint64([7, 5, 6]), np.uint64([5, 7, 5]), np.array([1, 2, 3]))
    array([2, 4, 0])
    """
    known, place = np.unique(keys, return_inverse=True)
    if len(known) == 0:
        return np.zeros(len(candidates), dtype=np.int64)
    holders = np.bincount(place, held).astype(np.int64)
    # Most candidates are held by nobody: their first 16 bits mostly tell.
    starts = np.zeros(2**16, dtype=bool)
    starts[known >> 48] = True
    some = np.flatnonzero(starts[candidates >> 48])
    nearest = np.minimum(np.searchsorted(known, candidates[some]), len(known) - 1)
    found = np.zeros(len(candidates), dtype=np.int64)
    found[some] = np.where(known[nearest] == candidates[some], holders[nearest], 0)
    return found


def largest(values: Reals, number: int) -> NDArray[np.intp]:
    """Where the largest values are, largest first, of equals the first one.

    >>> largest(np.array([1.0, 7.0, 3.0, 7.0]), 3)
    array([1, 3, 2])
    """
    least = np.partition(values, -number)[-number] if number < len(values) else -np.inf
    some = np.flatnonzero(values >= least)
    return some[np.argsort(-values[some], kind="stable")[:number]]
