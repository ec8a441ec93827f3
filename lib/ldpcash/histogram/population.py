"""Whole collections, simulated: from the items of all clients to the server's table.

`succinct_histogram` does it in one call. `collect` simulates every client, in chunks on any
executor; `draw_collector` draws what a server has when all have reported, and simulates none.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import Executor, Future
from types import NoneType
from typing import Any

import numpy as np
from numpy.random import Generator, SeedSequence
from numpy.typing import ArrayLike, NDArray

from ldpcash.base.arrays import Bits, Counts, as_bits, as_items, batches
from ldpcash.base.checks import whole_number
from ldpcash.base.workers import Here
from ldpcash.histogram.collector import Collector, Entry
from ldpcash.histogram.packing import Packing
from ldpcash.histogram.plan import Plan
from ldpcash.histogram.tickets import KEY_BYTES

CHUNK = 2**17  # clients that one task simulates
_AT_ONCE = 8  # tasks that wait for workers
_BATCH_VALUES = 2**24  # numbers that reports of one batch may hold
_CLIENTS, _TICKETS = 3, 4  # keys of random streams, apart from those of the plan


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
    items, held = as_items(bits, plan.k), np.asarray(counts)
    if held.shape != items.shape[:1] or held.dtype.kind not in "iu":
        raise ValueError(
            f"counts has shape {held.shape} and type {held.dtype}:"
            f" needs a whole number for each of {len(items)} items"
        )
    if (held < 0).any():
        raise ValueError(f"counts holds {held.min()}: needs whole numbers from 0")
    mixed = plan.mixing.mix(items)
    collector = Collector(plan)
    collector.clients = int(held.sum()) + whole_number("empty", empty, 0)
    collector.sums += plan.channels.draw(
        mixed, plan.channel_of(mixed), held, collector.clients, rng
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
    >>> collect(plan, item, who, seed=1).clients
    10000
    """
    where: Any = Here() if executor is None else executor
    total = Collector(plan, _key(seed))
    mixed = plan.mixing.mix(bits)
    running: deque[Future[Collector]] = deque()
    for number, part in enumerate(batches(len(who), CHUNK)):
        held = who[part] >= 0
        present, place = np.unique(who[part][held], return_inverse=True)
        some = np.full(len(held), -1)
        some[held] = place
        running.append(where.submit(_collect_chunk, plan, mixed[present], some, seed, number))
        if len(running) >= _AT_ONCE:
            total += running.popleft().result()
    while running:
        total += running.popleft().result()
    return total


def _collect_chunk(plan: Plan, mixed: Bits, who: NDArray[Any], seed: int, number: int) -> Collector:
    rng = np.random.default_rng(SeedSequence([seed], spawn_key=(_CLIENTS, number)))
    collector = Collector(plan, _key(seed), first=number * CHUNK)
    tickets, channel = collector.issue(len(who)), plan.channel_of(mixed)
    payload = math.prod(plan.channels.payload.shape)
    for part in batches(len(who), _BATCH_VALUES // (1 + payload)):
        mine = tickets[part]
        sent = plan.channels.reports(mixed, channel, who[part], mine["seed"], rng)
        collector.add(mine, sent)
    return collector


def _key(seed: int) -> bytes:
    """The key of tickets of a simulation."""
    stream = SeedSequence([seed], spawn_key=(_TICKETS,))
    return stream.generate_state(KEY_BYTES // 4, np.uint32).tobytes()


def succinct_histogram(
    items: Iterable[str | None] | Mapping[str | None, int] | ArrayLike,
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
            Or each string, None too, with the number of clients that hold it.
        epsilon: the privacy of each client's report.
        seed: of everything random, the clients' noise too: whoever knows it can undo the noise.
            Real clients call `Plan.reports` without ``rng``.
        packing: how strings become bits. It is public, so it must not be chosen by the items.
        executor: where clients are simulated; in this process unless given.
        options: those of `Plan.choose`; the rule sets the others.

    >>> names = {"ANNA": 6000, "BOB": 3000, None: 1000}
    >>> packing = Packing(20, "ABCDEFGHIJKLMNOPQRSTUVWXYZ")
    >>> for line in succinct_histogram(names, epsilon=2.0, seed=2, packing=packing):
    ...     print(f"{line.item} {line.frequency:.2f} [{line.low:.2f}, {line.high:.2f}]")
    ANNA 0.60 [0.58, 0.62]
    BOB 0.31 [0.29, 0.33]
    """
    seed = whole_number("seed", seed, 0)
    if isinstance(items, str):
        raise ValueError("items is a single string: needs one a client")
    if packing is not None:
        bits, who = _packed(items, packing)
    elif isinstance(items, Mapping):
        raise ValueError("items holds names and numbers: names need a packing")
    else:
        given: Any = items  # a generator too
        rows = np.asarray(list(given) if isinstance(given, Iterator) else given)
        if rows.ndim != 2 and rows.shape != (0,):
            raise ValueError(f"items has shape {rows.shape}: needs rows of bits, or a packing")
        rows = as_bits("items", rows, rows.shape[1]) if len(rows) else np.zeros((0, 1), np.uint8)
        bits, who = np.unique(rows, axis=0, return_inverse=True)
    if len(who) == 0:
        raise ValueError("items holds no client: there is nothing to count")
    if len(bits) == 0:
        raise ValueError("items holds no item: every client is empty")
    settings = {"hash_seed": seed, "packing": packing, **options}
    plan = Plan.choose(len(who), bits.shape[1], epsilon, **settings)
    return collect(plan, bits, who.reshape(-1), seed, executor).histogram()


def _packed(items: Any, packing: Packing) -> tuple[Bits, Counts]:
    """Strings, one a client or with their numbers, to different items and who holds which."""
    if not isinstance(items, Iterable):
        raise ValueError(f"items is a single {type(items).__name__}: needs one string a client")
    names, times = list(items), None
    if isinstance(items, Mapping):
        times = [whole_number("a number of clients", count, 0) for count in items.values()]
    if strange := [i for i, name in enumerate(names) if not isinstance(name, (str, NoneType))]:
        raise ValueError(f"items[{strange[0]}] is neither a string nor None")
    order = {name: i for i, name in enumerate(dict.fromkeys(n for n in names if n is not None))}
    try:
        bits = packing.pack(order)
    except ValueError as error:
        raise ValueError(f"items, each different one counted once: {error}") from None
    who = np.array([order.get(name, -1) for name in names], dtype=np.intp)
    return bits, who if times is None else np.repeat(who, times)
