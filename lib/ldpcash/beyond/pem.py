"""The peer: the prefix extending method with optimal local hashing (PEM + OLH).

What a practitioner would take to find frequent items under local differential privacy, after Wang,
Li and Jha, "Locally Differentially Private Heavy Hitter Identification" (2021)::

    clients, split into groups -> group i reports the first s_i bits of its item, by local hashing
    prefixes of group 1, all   -> the most frequent are kept -> each extended to s_2 bits
                               -> counted in group 2, kept, extended ... -> items

Local hashing: a client draws a public seed, hashes its prefix to one of g = e^eps + 1 values, and
sends that under randomized response. The server counts, for each candidate, the reports that fit.

For an ideal hash the counts of different candidates are independent, each a sum of two binomials.
So `draw` needs no clients; `reports` and `search` simulate every one of them. (A real client would
need the operating system's randomness.)
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.random import Generator
from numpy.typing import ArrayLike, NDArray
from scipy.special import betainc, ndtri

from ldpcash.base.arrays import Reals, as_holds, as_items, batches, bits_of
from ldpcash.base.checks import fraction, positive, whole_number
from ldpcash.histogram.collector import Entry
from ldpcash.histogram.hashing import GOLDEN, Seeds, mix
from ldpcash.histogram.packing import Packing
from ldpcash.histogram.plan import Cost
from ldpcash.histogram.wire import frame_size

Prefixes = NDArray[np.uint64]
_BATCH_VALUES = 2**22  # hashes that are computed at once
_MOST_HASHED = 2**16  # values that a report has room for


class PemReports(NamedTuple):
    """What clients send, and all of it is kept: it is hashed again at every candidate.

    >>> rng = np.random.default_rng(1)
    >>> Pem(8, epsilon=2.0).reports([[1] * 8, [0] * 8], [True, False], rng).groups
    array([0, 0], dtype=uint8)
    """

    seeds: Seeds  #: (N,)
    values: NDArray[np.uint16]  #: (N,)
    groups: NDArray[np.uint8]  #: (N,)


class Pem:
    """PEM + OLH for items of k bits.

    Args:
        k: bits of an item, up to 63.
        epsilon: the privacy of each client's report; up to 11.09, where g is 2**16.
        start: bits of the first prefixes; all 2**start are counted.
        step: bits that prefixes grow by from group to group.
        keep: how many prefixes are kept at each step.
        fdr: false-discovery rate that the last step aims at, among the items that it tests.

    >>> pem = Pem(40, epsilon=2.0)
    >>> pem.lengths, pem.hashed
    ([16, 24, 32, 40], 8)
    """

    def __init__(
        self,
        k: int,
        epsilon: float,
        start: int = 16,
        step: int = 8,
        keep: int = 40,
        fdr: float = 0.05,
    ) -> None:
        self.k = whole_number("k", k, 1, 63)
        self.epsilon = positive("epsilon", epsilon)
        if self.epsilon > math.log(_MOST_HASHED - 1):
            raise ValueError(f"epsilon = {epsilon!r}: needs at most 11.09, as values have 16 bits")
        self.start = min(whole_number("start", start, 1, 24), self.k)
        self.step = whole_number("step", step, 1, 16)
        self.keep = whole_number("keep", keep, 1)
        self.fdr = fraction("fdr", fdr)
        self.lengths = [*range(self.start, self.k, self.step), self.k]
        self.hashed = round(math.exp(self.epsilon)) + 1  # g
        self.match = math.exp(self.epsilon) / (math.exp(self.epsilon) + self.hashed - 1)
        self.noise = math.sqrt(self.hashed - 1) / (self.hashed * self.match - 1)

    @property
    def report_size(self) -> int:
        """Bytes that a client sends: seed, group and value, in a frame of `wire`.

        >>> Pem(40, epsilon=2.0).report_size
        22
        """
        return frame_size(np.dtype("u1, <u2"))

    def cost(self, clients: int) -> Cost:
        """What N clients and the server spend: every report is kept, and hashed at each candidate.

        >>> Pem(40, epsilon=2.0).cost(10**6)
        Cost(report=22, state=11000000, collect=0, search=24064000000)
        """
        steps = np.diff([0, *self.lengths])
        candidates = 2 ** int(steps[0]) + sum(self.keep * 2 ** int(step) for step in steps[1:])
        search = clients * candidates // len(self.lengths)
        return Cost(self.report_size, 11 * clients, 0, search)

    def reports(self, bits: ArrayLike, holds: ArrayLike, rng: Generator) -> PemReports:
        """What each of N clients sends: ``(N, k)`` items, ``(N,)`` whether held.

        >>> rng = np.random.default_rng(1)
        >>> Pem(8, epsilon=2.0).reports([[1] * 8, [0] * 8], [True, False], rng).values.shape
        (2,)
        """
        items = self._numbers(bits)
        held = as_holds(holds, len(items))
        seeds = rng.integers(0, 2**64, len(items), dtype=np.uint64)
        group = rng.integers(0, len(self.lengths), len(items), dtype=np.uint8)
        prefix = items >> (self.k - np.array(self.lengths, dtype=np.uint64))[group]
        values = self._hash(seeds, prefix)
        # Randomized response: any other value, all alike, with the probability left over.
        others = (values + rng.integers(1, self.hashed, len(items))) % self.hashed
        values = np.where(rng.random(len(items)) < self.match, values, others)
        values = np.where(held, values, rng.integers(0, self.hashed, len(items)))
        return PemReports(seeds, values.astype(np.uint16), group)

    def search(self, sent: PemReports, packing: Packing | None = None) -> list[Entry]:
        """The server's side: reports to the items that stand out, most frequent first.

        >>> pem = Pem(8, epsilon=2.0, start=4, step=4)
        >>> items, holds = np.tile([1, 0, 1, 1, 0, 0, 1, 0], (10_000, 1)), np.arange(10_000) < 7000
        >>> [entry] = pem.search(pem.reports(items, holds, np.random.default_rng(1)))
        >>> entry.item, round(entry.frequency, 1)
        (array([1, 0, 1, 1, 0, 0, 1, 0], dtype=uint8), 0.7)
        """

        def support(level: int, candidates: Prefixes) -> tuple[Reals, int]:
            mine = sent.groups == level
            seeds, values = sent.seeds[mine], sent.values[mine]
            counts = np.zeros(len(candidates))
            for part in batches(len(seeds), _BATCH_VALUES // len(candidates)):
                hashed = self._hash(seeds[part, None], candidates)
                counts += np.count_nonzero(hashed == values[part, None], axis=0)
            return counts, len(seeds)

        return self._extend(support, packing)

    def draw(
        self,
        bits: ArrayLike,
        counts: ArrayLike,
        rng: Generator,
        empty: int = 0,
        packing: Packing | None = None,
    ) -> list[Entry]:
        """What `search` would find, with no client simulated.

        Args:
            bits: ``(M, k)``, the different items.
            counts: ``(M,)``, how many clients hold each.
            rng: source of randomness.
            empty: how many clients hold nothing.
            packing: to turn items into strings.

        >>> rng = np.random.default_rng(1)
        >>> [entry] = Pem(8, epsilon=2.0).draw([[1, 0, 1, 1, 0, 0, 1, 0]], [7000], rng, empty=3000)
        >>> entry.item, round(entry.frequency, 1)
        (array([1, 0, 1, 1, 0, 0, 1, 0], dtype=uint8), 0.7)
        """
        share = np.full(len(self.lengths), 1 / len(self.lengths))
        items = self._numbers(bits)
        split = rng.multinomial(np.asarray(counts), share)
        sizes = split.sum(axis=0) + rng.multinomial(empty, share)

        def support(level: int, candidates: Prefixes) -> tuple[Reals, int]:
            size = int(sizes[level])
            prefixes, place = np.unique(
                items >> np.uint64(self.k - self.lengths[level]), return_inverse=True
            )
            holders = np.bincount(place, split[:, level]).astype(np.int64)
            nearest = np.minimum(np.searchsorted(prefixes, candidates), len(prefixes) - 1)
            held = np.where(prefixes[nearest] == candidates, holders[nearest], 0)
            fitting = rng.binomial(held, self.match)
            return fitting + rng.binomial(size - held, 1 / self.hashed).astype(float), size

        return self._extend(support, packing)

    def _extend(
        self, support: Callable[[int, Prefixes], tuple[Reals, int]], packing: Packing | None
    ) -> list[Entry]:
        """From level to level; ``support`` counts the reports of a level that fit candidates."""
        kept = np.zeros(1, dtype=np.uint64)
        grown = 0
        for level, length in enumerate(self.lengths):
            growth = np.arange(2 ** (length - grown), dtype=np.uint64)
            candidates = (kept[:, None] << np.uint64(length - grown) | growth).ravel()
            counts, size = support(level, candidates)
            best = np.argsort(-counts, kind="stable")[: self.keep]
            kept, grown = candidates[best], length
        if size == 0:
            raise ValueError("the last group has no client: there is nothing to count")
        counts, tested = counts[best], len(candidates)
        p = betainc(np.maximum(counts, 1e-9), size - counts + 1, 1 / self.hashed)
        passing = np.flatnonzero(p <= self.fdr * np.arange(1, len(p) + 1) / tested)
        found = passing[-1] + 1 if len(passing) else 0
        bits = bits_of(kept[:found], self.k)
        names = packing.unpack(bits) if packing else list(bits)
        scale = self.match - 1 / self.hashed
        frequency = (counts[:found] / size - 1 / self.hashed) / scale
        rate = counts[:found] / size
        half = -ndtri(0.025) * np.sqrt(rate * (1 - rate) / size) / scale
        return [
            Entry(name, float(f), float(f - h), float(f + h))
            for name, f, h in zip(names, frequency, half, strict=True)
        ]

    def _numbers(self, bits: ArrayLike) -> Prefixes:
        rows = as_items(bits, self.k)
        powers = np.uint64(1) << np.arange(self.k, dtype=np.uint64)[::-1]
        return (rows * powers).sum(axis=1, dtype=np.uint64)

    def _hash(self, seeds: Seeds, prefix: Prefixes) -> NDArray[np.intp]:
        """One of g values: seeds and prefixes broadcast."""
        words = mix(seeds ^ mix(prefix + GOLDEN))
        return ((words >> np.uint64(32)) * np.uint64(self.hashed) >> np.uint64(32)).astype(np.intp)
