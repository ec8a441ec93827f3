"""The general succinct histogram: every client holds any item, the server finds the frequent ones.

    items, strings or bits -> channels and symbols -> reports, bytes    the clients   `Plan.reports`
                           -> sums that add up anywhere                  the server   `Collector`
                           -> a table: item, frequency, interval         the server   `histogram`

`succinct_histogram` does all of it in one call. A `Plan` holds the public parameters, which
`Plan.choose` sets by rule. Clients are split at random into T groups, each with a hash of its own
(`channels`), and the server searches all groups together (`discover`). Chunks of clients run on any
executor; sums add up exactly, so the histogram is the same however many workers there were.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections import Counter, deque
from collections.abc import Iterable, Sequence
from concurrent.futures import Executor, Future
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.random import Generator, SeedSequence
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtri

from ldpcash import wire
from ldpcash.channels import (
    CashChannels,
    ChannelHash,
    Channels,
    ProtChannels,
    Seeds,
    groups,
    symbol_bits,
    symbol_code,
)
from ldpcash.checks import real_number, whole_number
from ldpcash.decode import SCLDecoder
from ldpcash.discover import find_items
from ldpcash.packing import Packing
from ldpcash.polar import Bits, PolarCode, as_bits
from ldpcash.workers import Here

CHUNK = 2**17  # clients that one task simulates
_AT_ONCE = 8  # tasks that wait for workers
_BATCH_VALUES = 2**24  # numbers that reports of one batch may hold
_CLIENTS = 3  # keys of random streams: what the draw is for


class Cost(NamedTuple):
    """What a collection costs, in bytes and steps."""

    report: int  # bytes that a client sends
    state: int  # bytes that the server keeps
    collect: int  # numbers that the server touches to take in all reports
    search: int  # numbers that the first round of decoding touches


@dataclass(frozen=True)
class Plan:
    """The public parameters of a collection. Clients and server need the same.

    Args:
        channels: how items are sent: `ProtChannels` or `CashChannels`.
        hash_seed: of the T hashes.
        groups: T, how many groups clients are split into.
        list_size: of the list decoder.
        decision: "soft" or "hard", what is decoded.
        fdr: false-discovery rate that the threshold aims at.

    >>> plan = Plan.choose(clients=1_000_000, k=40, epsilon=2.0)
    >>> plan.channels.bits, plan.channels.code.n, plan.channels.channels, plan.groups
    (3, 512, 256, 1)
    >>> round(plan.smallest(1_000_000), 4)  # frequency of an item that is found every other time
    0.0063
    """

    channels: Channels
    hash_seed: int = 0
    groups: int = 1
    list_size: int = 128
    decision: str = "soft"
    fdr: float = 0.05
    hashes: tuple[ChannelHash, ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        whole_number("hash_seed", self.hash_seed, 0)
        whole_number("groups", self.groups, 1, 256)
        if self.decision not in ("soft", "hard"):
            raise ValueError(f"decision = {self.decision!r}: choose one of soft, hard")
        if not 0 < real_number("fdr", self.fdr) < 1:
            raise ValueError(f"fdr = {self.fdr!r}: needs a number between 0 and 1")
        streams = SeedSequence([self.hash_seed]).spawn(self.groups)
        hashes = (ChannelHash(self.k, self.channels.channels, stream) for stream in streams)
        object.__setattr__(self, "hashes", tuple(hashes))

    @classmethod
    def choose(
        cls,
        clients: int,
        k: int,
        epsilon: float,
        *,
        protocol: str = "Prot",
        delta: float = 1e-4,
        code: PolarCode | None = None,
        bits: int | None = None,
        channels: int | None = None,
        **options: Any,
    ) -> Plan:
        """Set by rule what is not given.

        - Protocol: "Prot", which needs less noise than "Cash" and far fewer bytes.
        - Symbols: of the b bits that bring the least noise (`symbol_bits`).
        - Code: a `symbol_code` for the weakest signal that can clear the threshold.
        - K: the power of two from 2 / f up, f the smallest frequency that can be found, so that two
          such items seldom meet; from 64 to 256, because the server's work grows with K, and items
          that do meet are told apart by taking out the heavier.
        - T: 1. Every item is searched for in one group's noise, so splitting clients loses more
          than a second hash gains.

        Args:
            clients: N, about.
            k: bits of an item.
            epsilon, delta: the privacy of each client's report; delta is for "Cash".
            protocol: "Prot" or "Cash".
            code: any `PolarCode` that fits.
            bits: b, of a symbol of "Prot"; 1 with a code that is given.
            channels: K.
            options: all else that a plan has.
        """
        clients = whole_number("clients", clients, 1)
        k = whole_number("k", k, 1)
        if protocol not in ("Prot", "Cash"):
            raise ValueError(f"protocol = {protocol!r}: choose one of Prot, Cash")
        if bits is None:
            bits = 1 if protocol == "Cash" or code is not None else symbol_bits(epsilon)
        bar = threshold(k, float(options.get("fdr", 0.05)))
        if code is None:
            code = symbol_code(k, bits, bar + 0.5)
        elif code.k != k:
            raise ValueError(f"code = {code!r}: has {code.k} bits, and items k = {k}")

        def build(number: int) -> Channels:
            if protocol == "Cash":
                return CashChannels(code, epsilon, number, delta)
            return ProtChannels(code, epsilon, number, bits)

        if channels is None:
            smallest = bar * build(2).noise / math.sqrt(clients)
            channels = 2 ** min(8, max(6, math.ceil(math.log2(2 / smallest))))
        return cls(build(channels), **options)

    @property
    def k(self) -> int:
        return self.channels.code.k

    def smallest(self, clients: int) -> float:
        """The frequency whose estimate clears the threshold every other time."""
        return threshold(self.k, self.fdr) * self.channels.noise / math.sqrt(clients)

    @cached_property
    def fingerprint(self) -> int:
        """32 bits of a hash of everything that clients and server must agree on."""
        channels = self.channels
        public = [type(channels).__name__, channels.epsilon, channels.channels, channels.code.n]
        public += [channels.code.info.tolist(), self.hash_seed, self.groups]
        public += [getattr(channels, name, None) for name in ("bits", "delta")]
        return int(hashlib.sha256(json.dumps(public).encode()).hexdigest()[:8], 16)

    def reports(
        self, bits: ArrayLike, holds: ArrayLike, rng: Generator
    ) -> tuple[Seeds, NDArray[Any]]:
        """What B clients send: ``(B, k)`` items and ``(B,)`` whether held, to seeds, payloads.

        In real use ``rng`` is the client's own, seeded by its operating system: whoever could
        repeat its numbers would see through them.
        """
        items = as_bits("bits", bits, self.k)
        held = np.asarray(holds)
        if items.ndim != 2 or held.shape != items.shape[:1] or held.dtype != np.bool_:
            raise ValueError(f"holds has shape {held.shape}: needs True or False for each client")
        seeds = rng.integers(0, 2**64, len(items), dtype=np.uint64)
        group = groups(seeds, self.groups)
        channel = np.full(len(items), -1)
        for number, channel_of in enumerate(self.hashes):
            mine = held & (group == number)
            channel[mine] = channel_of(items[mine])
        return seeds, self.channels.reports(items, channel, seeds, rng)

    def to_bytes(self, seeds: Seeds, sent: NDArray[Any]) -> list[bytes]:
        """Reports as they travel; `Collector.receive` takes them in."""
        return wire.to_bytes(self.fingerprint, seeds, sent)

    @property
    def report_size(self) -> int:
        """Bytes that a client sends."""
        return wire.report_size(self.channels.payload)

    def cost(self, clients: int) -> Cost:
        """What N clients and the server spend: counted, not measured.

        >>> Plan.choose(10**6, 40, 2.0).cost(10**6)
        Cost(report=20, state=1048576, collect=256000000, search=150994944)
        """
        channels, n = self.channels, self.channels.code.n
        sums = channels.channels * channels.cells
        each = math.prod(channels.payload.shape) if channels.payload.shape else channels.channels
        search = self.groups * channels.channels * self.list_size * n * (n.bit_length() - 1)
        return Cost(self.report_size, 8 * self.groups * sums, clients * each, search)


def threshold(k: int, fdr: float) -> float:
    """Standard errors that one item among 2**k must stand out by.

    >>> round(threshold(40, 0.05), 3)
    7.453
    """
    return float(-ndtri(fdr * 2.0**-k))


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
    ANNA 0.60 [0.58, 0.63]
    BOB 0.32 [0.30, 0.34]
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
