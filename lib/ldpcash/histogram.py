"""The general succinct histogram: every client holds any item, the server finds the frequent ones.

    items, strings or bits -> channels and symbols -> reports, bytes   the clients  `Plan.reports`
                           -> sums that add up anywhere                the server   `Collector`
                           -> a table: item, frequency, interval       the server   `histogram`

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
_CLIENTS = 3  # keys of random streams: what the draw is for


class Entry(NamedTuple):
    """One line of a histogram."""

    item: Any  # a string, or (k,) bits
    frequency: float  # estimated fraction of clients that hold it
    low: float  # 95 % interval of it
    high: float


class Collector:
    """What the server keeps: sums for each group, numbers of clients, and of rejected reports.

    Collectors of one plan add up, in any order, and what one has taken in it never loses.
    """

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.sums = np.stack([plan.channels.empty() for _ in range(plan.groups)])
        self.clients = np.zeros(plan.groups, dtype=np.int64)
        self.rejected: Counter[str] = Counter()

    def add(self, seeds: ArrayLike, sent: ArrayLike) -> None:
        """Take in reports as arrays, as `Plan.reports` makes them: all, or none and an error."""
        words, values = np.asarray(seeds), np.asarray(sent)
        shape = (words.size, *self.plan.channels.payload.shape)
        kind = self.plan.channels.payload.base.kind
        if words.dtype != np.uint64 or values.shape != shape or values.dtype.kind != kind:
            self._reject("size", words.size, f"sent has shape {values.shape}: needs {shape}")
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
    """A collector as N clients would fill it, drawn from the exact law: no client is simulated.

    Args:
        plan: the public parameters.
        bits: ``(M, k)``, the different items.
        counts: ``(M,)``, how many clients hold each.
        rng: source of randomness.
        empty: how many hold nothing.
    """
    items, held = as_bits("bits", bits, plan.k), np.asarray(counts)
    if held.shape != items.shape[:1] or held.dtype.kind not in "iu" or (held < 0).any():
        raise ValueError(f"counts has shape {held.shape}: needs a whole number for each item")
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
    """Items of all clients in, their succinct histogram out, through private reports alone.

    Args:
        items: one a client: strings, with None for a client that holds nothing; or ``(N, k)`` bits.
        epsilon: the privacy of each client's report.
        seed: of everything random.
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
