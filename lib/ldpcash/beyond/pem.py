"""The peer: the prefix extending method with optimal local hashing (PEM + OLH).

What a practitioner would take to find frequent items under local differential privacy, after Wang,
Li and Jha, "Locally Differentially Private Heavy Hitter Identification" (2021)::

    clients, split into groups -> group i reports the first s_i bits of its item, by local hashing
    prefixes of group 1, all   -> the most frequent are kept -> each extended to s_2 bits
                               -> counted in group 2, kept, extended ... -> items

Local hashing: a client draws a public seed, hashes its prefix to one of g = e^eps + 1 values, and
sends that under randomized response. The server counts, for each candidate, the reports that fit.
What a report is, and why the counts of candidates can be drawn without clients, says
`ldpcash.beyond.local_hashing`. `reports` and `search` simulate every client. (A real client would
need the operating system's randomness.)
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.random import Generator
from numpy.typing import ArrayLike, NDArray

from ldpcash.base.arrays import Bits, Reals, as_holds, as_items, bits_of
from ldpcash.base.checks import fraction, whole_number
from ldpcash.beyond.local_hashing import HashOracle, held_counts, keys_of, largest, lookup, split
from ldpcash.histogram.collector import Entry
from ldpcash.histogram.hashing import Seeds
from ldpcash.histogram.packing import Packing
from ldpcash.histogram.plan import Cost
from ldpcash.histogram.wire import Format

Support = Callable[[int, Bits], tuple[Reals, int]]


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
        k: bits of an item, up to 256.
        epsilon: the privacy of each client's report, up to 11.09: its group does not depend on the
            item, and its value is that of a `HashOracle`.
        start: bits of the first prefixes; all 2**start are counted.
        step: bits that prefixes grow by from group to group.
        keep: how many prefixes are kept at each step.
        fdr: false-discovery rate that the last step aims at, among the items that it tests.

    >>> pem = Pem(40, epsilon=2.0)
    >>> pem.lengths, pem.oracle.values
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
        self.k = whole_number("k", k, 1, 256)
        self.oracle = HashOracle(epsilon)
        self.epsilon, self.noise = self.oracle.epsilon, self.oracle.noise
        self.start = min(whole_number("start", start, 1, 24), self.k)
        self.step = whole_number("step", step, 1, 16)
        self.keep = whole_number("keep", keep, 1)
        self.fdr = fraction("fdr", fdr)
        self.lengths = [*range(self.start, self.k, self.step), self.k]

    @property
    def report_size(self) -> int:
        """Bytes that a client sends: seed, group and value, in a frame of `wire`.

        >>> Pem(40, epsilon=2.0).report_size
        26
        """
        return Format(0, np.dtype("u1, <u2")).size

    def cost(self, clients: int) -> Cost:
        """What N clients and the server spend: every report is kept, and hashed at each candidate.

        >>> Pem(40, epsilon=2.0).cost(10**6)
        Cost(report=26, state=11000000, collect=0, search=24064000000)
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
        items = as_items(bits, self.k)
        held = as_holds(holds, len(items))
        seeds = rng.integers(0, 2**64, len(items), dtype=np.uint64)
        group = rng.integers(0, len(self.lengths), len(items), dtype=np.uint8)
        keys = np.zeros(len(items), dtype=np.uint64)
        for level, length in enumerate(self.lengths):
            keys[group == level] = keys_of(items[group == level, :length])
        return PemReports(seeds, self.oracle.send(seeds, keys, held, rng), group)

    def search(self, sent: PemReports, packing: Packing | None = None) -> list[Entry]:
        """The server's side: reports to the items that stand out, most frequent first.

        >>> pem = Pem(8, epsilon=2.0, start=4, step=4)
        >>> items, holds = np.tile([1, 0, 1, 1, 0, 0, 1, 0], (10_000, 1)), np.arange(10_000) < 7000
        >>> [entry] = pem.search(pem.reports(items, holds, np.random.default_rng(1)))
        >>> entry.item, round(entry.frequency, 1)
        (array([1, 0, 1, 1, 0, 0, 1, 0], dtype=uint8), 0.7)
        """

        def support(level: int, candidates: Bits) -> tuple[Reals, int]:
            mine = sent.groups == level
            seeds, values = sent.seeds[mine], sent.values[mine]
            return self.oracle.count(seeds, values, keys_of(candidates)), len(seeds)

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
        items = as_items(bits, self.k)
        holders, sizes = split(held_counts(counts, items), empty, share, rng)

        def support(level: int, candidates: Bits) -> tuple[Reals, int]:
            size, prefixes = int(sizes[level]), keys_of(items[:, : self.lengths[level]])
            held = lookup(keys_of(candidates), prefixes, holders[:, level])
            return self.oracle.draw(held, size, rng), size

        return self._extend(support, packing)

    def _extend(self, support: Support, packing: Packing | None) -> list[Entry]:
        """From level to level; ``support`` counts the reports of a level that fit candidates."""
        kept = np.zeros((1, 0), dtype=np.uint8)
        for level, length in enumerate(self.lengths):
            candidates = extended(kept, length - kept.shape[1])
            counts, size = support(level, candidates)
            best = largest(counts, self.keep)
            kept = candidates[best]
        return self.oracle.accept(kept, counts[best], size, len(candidates), self.fdr, packing)


def extended(prefixes: Bits, step: int) -> Bits:
    """Every prefix with all bits that may follow: ``(C, n)`` to ``(C 2**step, n + step)``.

    >>> extended(np.array([[1, 1], [0, 1]], dtype=np.uint8), 1).tolist()
    [[1, 1, 0], [1, 1, 1], [0, 1, 0], [0, 1, 1]]
    """
    many, length = prefixes.shape
    rows = np.empty((many, 2**step, length + step), dtype=np.uint8)
    rows[:, :, :length] = prefixes[:, None]
    rows[:, :, length:] = bits_of(np.arange(2**step), step)
    return rows.reshape(-1, length + step)
