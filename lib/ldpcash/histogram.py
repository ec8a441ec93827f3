"""The general succinct histogram: every client holds any item, the server finds the frequent ones::

    items, strings or bits -> channels and symbols -> reports, bytes   the clients  Plan.reports
                           -> sums that add up anywhere                the server   Collector
                           -> a table: item, frequency, interval       the server   histogram

`succinct_histogram` does all of it in one call. A `Plan` (`plan`) holds the public parameters.
Clients are split at random into T groups, each with a hash of its own, and the server searches all
groups together (`discover`). Chunks of clients run on any executor; sums add up exactly, so the
histogram is the same however many workers there were.
"""

from __future__ import annotations

import math
from collections import Counter, deque
from collections.abc import Iterable, Sequence
from concurrent.futures import Executor, Future
from typing import Any, NamedTuple

import numpy as np
from numpy.random import Generator, SeedSequence
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtri

from ldpcash import wire
from ldpcash.checks import whole_number
from ldpcash.decode import SCLDecoder
from ldpcash.discover import find_items
from ldpcash.hashing import groups
from ldpcash.packing import Packing
from ldpcash.plan import Plan
from ldpcash.polar import Bits, as_bits
from ldpcash.workers import Here

CHUNK = 2**17  # clients that one task simulates
_AT_ONCE = 8  # tasks that wait for workers
_BATCH_VALUES = 2**24  # numbers that reports of one batch may hold
_CLIENTS = 3  # key of the clients' random streams, apart from those of the hashes


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
        shape, kind = (words.size, *one.shape), one.base.kind
        if words.ndim != 1 or words.dtype != np.uint64:
            told = f"seeds has shape {words.shape} and type {words.dtype}"
            self._reject("type", words.size, f"{told}: needs one uint64 for each report")
        if values.shape != shape:
            self._reject("size", words.size, f"sent has shape {values.shape}: needs {shape}")
        if values.dtype not in (one.base, one.base.newbyteorder()):
            self._reject("type", words.size, f"sent has type {values.dtype}: needs {one.base}")
        if kind == "u" and values.max(initial=0) > self._largest:
            self._reject(
                "symbol", words.size, f"sent holds {values.max()}: {self._largest} at most"
            )
        if kind == "f" and not np.isfinite(values).all():
            self._reject("not finite", words.size, "sent holds NaN or infinity")
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
        channels = self.plan.channels
        fingerprint = self.plan.fingerprint
        seeds, sent, errors = wire.from_bytes(reports, fingerprint, channels.payload, self._largest)
        self.rejected.update(error.reason for error in errors)
        self.add(seeds, sent)
        return errors

    @property
    def _largest(self) -> int:
        return int(getattr(self.plan.channels, "symbols", 1)) - 1

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


def draw_collector(
    plan: Plan, bits: ArrayLike, counts: ArrayLike, rng: Generator, empty: int = 0
) -> Collector:
    """A collector as N clients would fill it, drawn from its law: no client is simulated.

    The law is exact for "Prot"; for "Cash" it leaves out the grid, and single precision.

    Args:
        plan: the public parameters.
        bits: ``(M, k)``, the different items.
        counts: ``(M,)``, how many clients hold each.
        rng: source of randomness.
        empty: how many hold nothing.

    >>> plan = Plan.choose(10_000, 8, 2.0)
    >>> item, rng = [[1, 0, 1, 1, 0, 0, 1, 0]], np.random.default_rng(1)
    >>> [entry] = draw_collector(plan, item, [7000], rng, empty=3000).histogram()
    >>> entry.item, round(entry.frequency, 2)
    (array([1, 0, 1, 1, 0, 0, 1, 0], dtype=uint8), 0.7)
    """
    items, held = as_bits("bits", bits, plan.k), np.asarray(counts)
    if items.ndim != 2:
        raise ValueError(f"bits has shape {items.shape}: needs a row of k bits for each item")
    if held.shape != items.shape[:1] or held.dtype.kind not in "iu":
        raise ValueError(
            f"counts has shape {held.shape} and type {held.dtype}:"
            f" needs a whole number for each of {len(items)} items"
        )
    if (held < 0).any():
        raise ValueError(f"counts holds {held.min()}: needs whole numbers from 0")
    empty = whole_number("empty", empty, 0)
    share = np.full(plan.groups, 1 / plan.groups)
    split = rng.multinomial(held, share)
    collector = Collector(plan)
    collector.clients = split.sum(axis=0) + rng.multinomial(empty, share)
    for group, channel_of in enumerate(plan.hashes):
        collector.sums[group] = plan.channels.draw(
            items, channel_of(items), split[:, group], int(collector.clients[group]), rng
        )
    return collector


def collect(
    plan: Plan, bits: Bits, who: NDArray[Any], seed: int, executor: Executor | None = None
) -> Collector:
    """Simulate every client, in numbered chunks on any executor.

    Args:
        plan: the public parameters.
        bits: ``(M, k)``, the different items.
        who: ``(N,)``, which of them each client holds; -1 for none.
        seed: of the clients; with the chunk's number it is the key of its random stream.
        executor: where chunks are computed, in this process unless given; it is left open.

    >>> plan = Plan.choose(10_000, 8, 2.0)
    >>> item = np.array([[1, 0, 1, 1, 0, 0, 1, 0]], dtype=np.uint8)
    >>> who = np.where(np.arange(10_000) < 7000, 0, -1)
    >>> collect(plan, item, who, seed=1).clients.tolist()
    [10000]
    """
    where: Any = Here() if executor is None else executor
    total = Collector(plan)
    running: deque[Future[Collector]] = deque()
    for number, start in enumerate(range(0, len(who), CHUNK)):
        chunk = who[start : start + CHUNK]
        running.append(where.submit(_collect_chunk, plan, bits, chunk, seed, number))
        if len(running) >= _AT_ONCE:
            total += running.popleft().result()
    while running:
        total += running.popleft().result()
    return total


def _collect_chunk(plan: Plan, bits: Bits, who: NDArray[Any], seed: int, number: int) -> Collector:
    rng = np.random.default_rng(SeedSequence([seed], spawn_key=(_CLIENTS, number)))
    collector = Collector(plan)
    per_client = plan.k + plan.channels.code.n + math.prod(plan.channels.payload.shape)
    at_once = max(1, _BATCH_VALUES // per_client)
    for start in range(0, len(who), at_once):
        part = who[start : start + at_once]
        collector.add(*plan.reports(bits[np.maximum(part, 0)], part >= 0, rng))
    return collector


def succinct_histogram(
    items: Sequence[str | None] | ArrayLike,
    epsilon: float,
    seed: int,
    *,
    packing: Packing | None = None,
    executor: Executor | None = None,
    **options: Any,
) -> list[Entry]:
    """Simulate a whole collection: items of all clients in, their succinct histogram out.

    The histogram is made from the clients' private reports alone.

    Args:
        items: one a client: strings, with None for a client that holds nothing; or ``(N, k)`` bits.
        epsilon: the privacy of each client's report.
        seed: of everything random, the clients' noise too: whoever knows it can undo the noise.
            Real clients call `Plan.reports` without ``rng``.
        packing: how strings become bits. It is public, so it must not be chosen by the items.
        executor: where clients are simulated; in this process unless given.
        options: those of `Plan.choose`; the rule sets the others.

    >>> names = ["ANNA"] * 6000 + ["BOB"] * 3000 + [None] * 1000
    >>> packing = Packing(20, "ABCDEFGHIJKLMNOPQRSTUVWXYZ")
    >>> for line in succinct_histogram(names, epsilon=2.0, seed=2, packing=packing):
    ...     print(f"{line.item} {line.frequency:.2f} [{line.low:.2f}, {line.high:.2f}]")
    ANNA 0.60 [0.58, 0.62]
    BOB 0.32 [0.30, 0.33]
    """
    seed = whole_number("seed", seed, 0)
    if isinstance(items, str):
        raise ValueError(f"items = {items!r}: needs one string a client")
    if packing is None:
        rows = np.asarray(items)
        if rows.ndim != 2:
            raise ValueError(f"items has shape {rows.shape}: needs rows of bits, or a packing")
        bits, who = np.unique(as_bits("items", rows, rows.shape[1]), axis=0, return_inverse=True)
        k = rows.shape[1]
    else:
        names: Any = items
        held = (name for name in dict.fromkeys(names) if name is not None)
        order = {name: i for i, name in enumerate(held)}
        bits, k = packing.pack(list(order)), packing.k
        who = np.array([order.get(name, -1) for name in names], dtype=np.int64)
    if len(who) == 0:
        raise ValueError("items holds no client: there is nothing to count")
    if len(bits) == 0:
        raise ValueError("items holds no item: every client is empty")
    plan = Plan.choose(len(who), k, epsilon, **{"hash_seed": seed, **options})
    return collect(plan, bits, who.reshape(-1), seed, executor).histogram(packing)
