"""The peer that knows all candidates: a frequency oracle over a public dictionary.

What one would take if there were a list of everything that clients may hold. No method that has to
find items can be expected to do better; how near one comes is what finding them costs::

    item -> its number in the dictionary, or "none of these" -> randomized -> report
    reports -> frequencies of all M items -> those that stand out, by Benjamini and Hochberg

The oracle with the least noise is subset selection (Ye and Barg, "Optimal schemes for discrete
distribution estimation under locally differential privacy", 2018): a report is a set of w items,
which has the client's own more often than others, and w is near M / (e^eps + 1). For w = 1 that is
k-ary randomized response. For large w, local hashing has nearly the same noise. So the best w up to
8 is taken, or local hashing where that is better: with any other w noise is less by 4 % at most.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.random import Generator
from numpy.typing import ArrayLike, NDArray
from scipy.special import betainc, ndtri

from ldpcash.base.arrays import Reals, as_holds, as_items, batches
from ldpcash.base.checks import fraction, one_of, positive, whole_number
from ldpcash.beyond.local_hashing import HashOracle, accept, held_counts, keys_of
from ldpcash.histogram.collector import Entry
from ldpcash.histogram.hashing import Seeds
from ldpcash.histogram.packing import Packing

ORACLES = ("subset", "hashing")
_LARGEST = 8  # items of a subset
_AT_ONCE = 2**17  # subsets that are drawn at once


class DictionaryReports(NamedTuple):
    """What clients send.

    >>> dictionary = Dictionary([[0, 1], [1, 1], [1, 0]], 4.0)
    >>> dictionary.reports([[1, 1]], [True], np.random.default_rng(1)).values.shape
    (1, 1)
    """

    seeds: Seeds  #: (N,), for local hashing; zeros for subsets
    values: NDArray[np.int64]  #: (N, w): numbers of items, where M is "none"; (N, 1) for hashing


class Dictionary:
    """Frequencies of all items of a public dictionary, and those that stand out.

    Privacy: a subset of the M items and "none of these" is e^eps times as probable if it has the
    client's own as if it does not, and nothing else about it matters. For local hashing see
    `HashOracle`.

    Args:
        bits: ``(M, k)``, the dictionary: different items.
        epsilon: the privacy of each client's report.
        oracle: "subset" or "hashing"; the one with less noise unless given.
        fdr: false-discovery rate that is aimed at.

    >>> items = np.eye(100, dtype=np.uint8)
    >>> for epsilon in (1.0, 2.0, 6.0):
    ...     dictionary = Dictionary(items, epsilon)
    ...     print(dictionary.oracle, round(dictionary.noise, 3))
    hashing 1.921
    subset 0.849
    subset 0.056
    """

    def __init__(
        self, bits: ArrayLike, epsilon: float, oracle: str | None = None, fdr: float = 0.05
    ) -> None:
        rows = np.asarray(bits)
        if rows.ndim != 2 or rows.size == 0:
            raise ValueError(f"bits has shape {rows.shape}: needs a row of bits for each item")
        self.k = rows.shape[1]
        self.bits = as_items(rows, self.k)
        self.epsilon = positive("epsilon", epsilon)
        self.fdr = fraction("fdr", fdr)
        keys = keys_of(self.bits)
        self._order = np.argsort(keys)
        self._keys = keys[self._order]
        if (self._keys[1:] == self._keys[:-1]).any():
            raise ValueError("bits has an item twice: a dictionary has different ones")
        self._symbols = len(self.bits) + 1
        rest = math.exp(-self.epsilon)
        sizes = range(1, min(_LARGEST, self._symbols - 1) + 1)
        self.size = min(sizes, key=lambda size: self._coins(size)[2])  #: w, items of a subset
        self._truth, self._other, self.noise = self._coins(self.size)
        if oracle is None:
            hashing = 2 * math.sqrt(rest) / (1 - rest)
            oracle = "hashing" if hashing < self.noise else "subset"
        self.oracle = one_of("oracle", oracle, ORACLES)
        self._hashing = HashOracle(self.epsilon) if self.oracle == "hashing" else None
        if self._hashing:
            #: sqrt(clients) times the deviation of a frequency's estimate, of an item that few hold
            self.noise = self._hashing.noise

    def _coins(self, size: int) -> tuple[float, float, float]:
        """How often a subset is chosen to have the own item; how often another one is in it; and
        the noise that this brings. A subset that is not chosen so is any."""
        symbols, rest = self._symbols, math.exp(-self.epsilon)
        truth = size * (1 - rest) / (size * (1 - rest) + symbols * rest)
        among = (size - 1) / (symbols - 1)
        other = truth * among + (1 - truth) * size / symbols
        return truth, other, math.sqrt(other * (1 - other)) / (truth * (1 - among))

    def smallest(self, clients: int, found: int = 10) -> float:
        """The frequency at which an item is accepted half the time, if so many others are.

        >>> dictionary = Dictionary(np.eye(100, dtype=np.uint8), 2.0)
        >>> round(dictionary.smallest(10**6), 5)
        0.00216
        """
        rank = min(whole_number("found", found, 0) + 1, len(self.bits))
        level = self.fdr * rank / len(self.bits)
        return float(-ndtri(level)) * self.noise / math.sqrt(whole_number("clients", clients, 1))

    def reports(self, bits: ArrayLike, holds: ArrayLike, rng: Generator) -> DictionaryReports:
        """What each of N clients sends: ``(N, k)`` items, ``(N,)`` whether held.

        >>> items, rng = np.eye(100, dtype=np.uint8), np.random.default_rng(1)
        >>> for dictionary in Dictionary(items, 1.0), Dictionary(items, 2.0):
        ...     sent = dictionary.reports(items[:3], [True, True, False], rng)
        ...     dictionary.oracle, sent.values.shape
        ('hashing', (3, 1))
        ('subset', (3, 8))
        """
        items = as_items(bits, self.k)
        held = as_holds(holds, len(items))
        keys, M = keys_of(items), len(self.bits)
        if self._hashing:
            seeds = rng.integers(0, 2**64, len(items), dtype=np.uint64)
            sent = self._hashing.send(seeds, keys, held, rng)
            return DictionaryReports(seeds, sent[:, None].astype(np.int64))
        own = np.where(held, self._numbers(keys), M)
        return DictionaryReports(np.zeros(len(items), dtype=np.uint64), self._subsets(own, rng))

    def search(self, sent: DictionaryReports, packing: Packing | None = None) -> list[Entry]:
        """The server's side: reports to the items that stand out, most frequent first.

        >>> dictionary = Dictionary([[1, 0, 1, 1], [0, 0, 1, 0], [1, 1, 1, 1]], epsilon=2.0)
        >>> items, holds = np.tile([1, 0, 1, 1], (10_000, 1)), np.arange(10_000) < 7000
        >>> reports = dictionary.reports(items, holds, np.random.default_rng(1))
        >>> [entry] = dictionary.search(reports)
        >>> entry.item, round(entry.frequency, 1)
        (array([1, 0, 1, 1], dtype=uint8), 0.7)
        """
        if self._hashing:
            values = sent.values[:, 0].astype(np.uint16)
            counts = self._hashing.count(sent.seeds, values, keys_of(self.bits))
        else:
            counts = self._counts(sent.values).astype(np.float64)
        return self._accept(counts, len(sent.values), packing)

    def draw(
        self,
        bits: ArrayLike,
        counts: ArrayLike,
        rng: Generator,
        empty: int = 0,
        packing: Packing | None = None,
    ) -> list[Entry]:
        """What `search` would find. With local hashing no client is simulated; subsets are drawn.

        Args:
            bits: ``(M, k)``, the different items that clients hold, in the dictionary or not.
            counts: ``(M,)``, how many clients hold each.
            rng: source of randomness.
            empty: how many clients hold nothing.
            packing: to turn items into strings.

        >>> dictionary, rng = Dictionary(np.eye(4), epsilon=2.0), np.random.default_rng(1)
        >>> [entry] = dictionary.draw([[0, 1, 0, 0]], [7000], rng, empty=3000)
        >>> entry.item, round(entry.frequency, 1)
        (array([0, 1, 0, 0], dtype=uint8), 0.7)
        """
        items = as_items(bits, self.k)
        holders = held_counts(counts, items)
        M, clients = len(self.bits), int(holders.sum()) + whole_number("empty", empty, 0)
        held = np.bincount(self._numbers(keys_of(items)), holders, M + 1).astype(np.int64)
        held[M] = clients - held[:M].sum()
        if self._hashing:
            return self._accept(self._hashing.draw(held[:M], clients, rng), clients, packing)
        who, support = np.repeat(np.arange(M + 1), held), np.zeros(M)
        for part in batches(clients, _AT_ONCE):
            support += self._counts(self._subsets(who[part], rng))
        return self._accept(support, clients, packing)

    def _subsets(self, own: NDArray[np.intp], rng: Generator) -> NDArray[np.int64]:
        """``(N,)`` numbers of items, M for none, to ``(N, w)``: sets, in any order."""
        told = rng.random(len(own)) < self._truth
        sets = rng.integers(0, self._symbols, (len(own), self.size))
        sets[told, 0] = own[told]
        again = np.arange(len(own))
        while len(again):  # what has an item twice is drawn again, but for one that was told
            pairs = zip(*np.triu_indices(self.size, 1), strict=True)
            some = sets[again]
            twice = np.zeros(len(again), dtype=bool)
            for a, b in pairs:
                twice |= some[:, a] == some[:, b]
            again = again[twice]
            fixed = told[again]
            first = sets[again, 0]
            sets[again] = rng.integers(0, self._symbols, (len(again), self.size))
            sets[again[fixed], 0] = first[fixed]
        return sets

    def _counts(self, sets: NDArray[np.int64]) -> NDArray[np.intp]:
        return np.bincount(sets.ravel(), minlength=self._symbols)[:-1]

    def _numbers(self, keys: Seeds) -> NDArray[np.intp]:
        """Where items are in the dictionary, M if they are not: ``(N,)`` keys."""
        M = len(self._keys)
        place = np.minimum(np.searchsorted(self._keys, keys), M - 1)
        return np.where(self._keys[place] == keys, self._order[place], M)

    def _accept(self, counts: Reals, clients: int, packing: Packing | None) -> list[Entry]:
        M = len(self.bits)
        if self._hashing:
            return self._hashing.accept(self.bits, counts, clients, M, self.fdr, packing)
        if clients == 0:
            raise ValueError("there is no client: there is nothing to count")
        # Whoever does not hold an item supports it with the same probability.
        rate, gap = counts / clients, math.sqrt(self._other * (1 - self._other)) / self.noise
        p = betainc(np.maximum(counts, 1e-9), clients - counts + 1, self._other)
        half = -ndtri(0.025) * np.sqrt(rate * (1 - rate) / clients) / gap
        return accept(self.bits, (rate - self._other) / gap, half, p, M, self.fdr, packing)
