"""The server's side: reports in, sums that add up anywhere, and in the end a table::

    reports, as arrays or bytes -> checked -> sums of each group and channel   `Collector`
                                           -> item, frequency, interval        `Collector.histogram`

All groups are searched together (`ldpcash.histogram.search`). Sums add up exactly, so the table is
the same however many collectors there were.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtri

from ldpcash.codec.scl import SCLDecoder
from ldpcash.histogram import wire
from ldpcash.histogram.hashing import Seeds, groups
from ldpcash.histogram.packing import Packing
from ldpcash.histogram.plan import Plan
from ldpcash.histogram.search import find_items


class Entry(NamedTuple):
    """One line of a histogram.

    >>> Entry("ANNA", 0.6, 0.58, 0.62).item
    'ANNA'
    """

    item: Any  #: a string, or (k,) bits
    frequency: float  #: estimated fraction of clients that hold it
    #: 95 % interval of it, for an item chosen beforehand. One that only just cleared the threshold
    #: had luck, and its interval covers less often. This is its lower end.
    low: float
    high: float  #: upper end of that interval


class Collector:
    """What the server keeps: sums for each group, numbers of clients, and of rejected reports.

    Collectors of one plan add up, in any order, and what one has taken in it never loses.

    >>> plan = Plan.choose(10_000, 8, 2.0)
    >>> items, holds = np.tile([1, 0, 1, 1, 0, 0, 1, 0], (10_000, 1)), np.arange(10_000) < 7000
    >>> seeds, sent = plan.reports(items, holds, np.random.default_rng(1))
    >>> here, there = Collector(plan), Collector(plan)
    >>> here.add(seeds[:5000], sent[:5000])
    >>> errors = there.receive([*plan.to_bytes(seeds[5000:], sent[5000:]), b"noise"])
    >>> there.clients.tolist(), dict(there.rejected)
    ([5000], {'foreign': 1})
    >>> [entry] = (here + there).histogram()
    >>> entry.item, round(entry.frequency, 2)
    (array([1, 0, 1, 1, 0, 0, 1, 0], dtype=uint8), 0.73)
    """

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.sums = np.stack([plan.channels.empty() for _ in range(plan.groups)])
        self.clients = np.zeros(plan.groups, dtype=np.int64)
        self.rejected: Counter[str] = Counter()

    def add(self, seeds: ArrayLike, sent: ArrayLike) -> None:
        """Take in reports as arrays, as `Plan.reports` makes them: all, or none and an error."""
        words, values = np.asarray(seeds), np.asarray(sent)
        if words.dtype == np.dtype(">u8"):
            words = words.astype(np.uint64)
        one = self.plan.channels.payload
        shape = (words.size, *one.shape)
        if words.ndim != 1 or words.dtype != np.uint64:
            told = f"seeds has shape {words.shape} and type {words.dtype}"
            self._reject("type", words.size, f"{told}: needs one uint64 for each report")
        if values.shape != shape:
            self._reject("size", words.size, f"sent has shape {values.shape}: needs {shape}")
        if values.dtype not in (one.base, one.base.newbyteorder()):
            self._reject("type", words.size, f"sent has type {values.dtype}: needs {one.base}")
        try:
            wire.check_values("sent", values, self.plan.channels.largest)
        except wire.ReportError as error:
            self._reject(error.reason, words.size, str(error))
        self._count(words, values)

    def _count(self, words: Seeds, values: NDArray[Any]) -> None:
        """Add reports that were checked."""
        group = groups(words, self.plan.groups)
        for number in range(self.plan.groups):
            mine = group == number
            self.plan.channels.add(self.sums[number], words[mine], values[mine])
            self.clients[number] += np.count_nonzero(mine)

    def _reject(self, reason: str, reports: int, message: str) -> None:
        self.rejected[reason] += reports
        raise wire.ReportError(reason, f"{message}; nothing of it was added")

    def receive(self, reports: Iterable[bytes]) -> list[wire.ReportError]:
        """Take in reports as bytes; those that cannot be used are counted in `rejected`.

        Returns an error for each of them, which says what is wrong with it. The others count.
        """
        channels, fingerprint = self.plan.channels, self.plan.fingerprint
        found = wire.from_bytes(reports, fingerprint, channels.payload, channels.largest)
        seeds, sent, errors = found
        self.rejected.update(error.reason for error in errors)
        self._count(seeds, sent)
        return errors

    def __add__(self, other: Collector) -> Collector:
        if other.plan.fingerprint != self.plan.fingerprint:
            raise ValueError("other = a collector with other public parameters: they do not add up")
        both = Collector(self.plan)
        both.sums = self.sums + other.sums
        both.clients = self.clients + other.clients
        both.rejected = self.rejected + other.rejected
        return both

    def histogram(self, packing: Packing | None = None) -> list[Entry]:
        """The items that stand out, most frequent first.

        Args:
            packing: to turn items into strings; without it they stay rows of bits.
        """
        total = int(self.clients.sum())
        if total == 0:
            raise ValueError("clients = 0: no report was taken in")
        channels = self.plan.channels
        present = np.flatnonzero(self.clients)
        found = find_items(
            channels,
            [self.plan.hashes[group] for group in present],
            np.stack([channels.means(self.sums[g], int(self.clients[g])) for g in present]),
            self.clients[present],
            SCLDecoder(channels.code, self.plan.list_size),
            self.plan.fdr,
            self.plan.decision,
        )
        half = -ndtri(0.025) * np.sqrt(channels.variance(found.frequency, total))
        names = packing.unpack(found.bits) if packing else list(found.bits)
        return [
            Entry(name, float(f), float(f - h), float(f + h))
            for name, f, h in zip(names, found.frequency, half, strict=True)
        ]
