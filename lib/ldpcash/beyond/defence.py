"""Clients who cheat: what a server can refuse, and what they can do all the same.

Privacy hides what a client sends, so a server cannot ask whether it is true. It can ask whether an
honest client could have sent it, and `ReportSum` and `Collector` do::

    reports -> honest? -> yes: added up as ever
                       -> no: counted as rejected, and never silently dropped

What passes can still mislead. `cheating_total` is the worst that some clients can send without
being refused, `cheats_needed` and `cheats_to_shift` how many of them it takes in the mean, and
`simulated_cheats` how many it takes with noise and decoder. `planted_items` is what cheats bring
into a histogram of many items, with seeds of their own or with the server's tickets.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.random import Generator

from ldpcash.base.arrays import Bits, Counts, Reals, bits_of
from ldpcash.base.bisection import bisect
from ldpcash.base.checks import one_of, positive, real_number, whole_number
from ldpcash.beyond.bodies import Names
from ldpcash.codec.polar import PolarCode
from ldpcash.histogram.plan import Plan
from ldpcash.histogram.population import draw_collector
from ldpcash.histogram.prot_channels import ProtChannels
from ldpcash.privacy.calibration import response_scale
from ldpcash.protocols.laws import holders
from ldpcash.protocols.prot import Prot
from ldpcash.protocols.protocol import Protocol

GOALS = ("promote", "bury")


def item_at_distance(code: PolarCode, weight: int) -> Bits:
    """An item whose codeword has this weight; added to another item, one at this distance of it.

    >>> code = PolarCode.construct(64, 8)
    >>> int(code.encode(item_at_distance(code, 16)).sum())
    16
    """
    weights = code.codebook().sum(axis=1)
    found = np.flatnonzero(weights == weight)
    if weight == 0 or not found.size:  # weight 0 is the same item
        raise ValueError(f"weight = {weight!r}: the code has {np.unique(weights[1:]).tolist()}")
    return bits_of(found[0], code.k)


def cheating_total(
    protocol: Protocol, true: Bits, false: Bits, cheats: int, limit: float, goal: str
) -> Reals:
    """The sum of what cheats send so that ``false`` gets ahead of ``true``: ``(n,)``.

    Each sends a report that passes the check. Those of `Cash` go from one signal straight to the
    other. Those of `Prot` take turns at positions where the words differ. If the server rounds, a
    few more than half of these are enough to bury the true item: some other word is then closer.

    Args:
        protocol: `Cash` or `Prot`.
        true, false: items, ``(k,)`` bits.
        cheats: how many.
        limit: the norm of a report of `Cash`.
        goal: "promote" or "bury", see `simulated_cheats`.

    >>> prot = Prot(PolarCode.construct(4, 2), 1.0)
    >>> true, false = np.array([[0, 0], [0, 1]], dtype=np.uint8)
    >>> (cheating_total(prot, true, false, 5, 0.0, "promote") / prot.amplitude).round().tolist()
    [2.0, 1.0, 1.0, 1.0]
    """
    one_of("goal", goal, GOALS)
    signs = protocol.code.signs(np.array([true, false])).astype(np.float64)
    if isinstance(protocol, Prot):
        places = np.flatnonzero(signs[0] != signs[1])
        places = places[: _positions(protocol, len(places), goal)]
        turns = np.bincount(np.arange(cheats) % len(places), minlength=len(places))
        total = np.zeros(protocol.code.n)
        total[places] = protocol.amplitude * turns * signs[1, places]
        return total
    direction = signs[1] - signs[0]
    return np.asarray(cheats * limit * direction / math.sqrt((direction**2).sum()))


def _positions(prot: Prot, weight: int, goal: str) -> int:
    """How many of the positions where two words differ are worth a cheat's report."""
    return weight // 2 + 1 if prot.decision == "hard" and goal == "bury" else weight


def cheats_needed(
    protocol: Protocol, holding: int, weight: int, limit: float, goal: str = "bury"
) -> float:
    """How many cheats bring an item at this distance level with the true one, in the mean.

    Say that H clients hold the true item, and the words differ in w positions. <y, x> of the true
    item is then ahead by 2 H w / n. A report of `Cash` with norm R takes 2 R sqrt(w / n) of it, and
    one of `Prot` 2 c_eps. If the server rounds, each position falls to H / (n c_eps) cheats, and to
    bury the true item takes w // 2 + 1 of them.

    Args:
        protocol: `Cash` or `Prot`.
        holding: H.
        weight: w.
        limit: R, not used for `Prot`.
        goal: "promote" or "bury".

    >>> from ldpcash import Cash
    >>> cash = Cash(PolarCode.construct(64, 8), 1.0)
    >>> round(cheats_needed(cash, 60_000, 16, cash.limit))
    409
    """
    one_of("goal", goal, GOALS)
    n = protocol.code.n
    if isinstance(protocol, Prot):
        return holding * _positions(protocol, weight, goal) / n / response_scale(protocol.epsilon)
    return holding * math.sqrt(weight / n) / limit


def cheats_to_shift(
    protocol: Protocol, frequency: float, clients: int, shift: float, limit: float
) -> float:
    """How many cheats raise the estimated frequency by ``shift``, in the mean.

    They come on top of N honest clients. A report of `Cash` that is a multiple of the item's own
    signal, with norm R, counts as much as R clients that hold it, and one of `Prot` as R = c_eps.
    So c cheats are needed with (N f + c R) / (N + c) = f + shift.

    Args:
        protocol: `Cash` or `Prot`.
        frequency, clients: f and N, of the honest clients.
        shift: by how much, above 0.
        limit: R of `Cash`, not used for `Prot`.

    >>> round(cheats_to_shift(Prot(PolarCode.construct(64, 8), 1.0), 0.6, 100_000, 0.1, 0.0))
    6831
    """
    frequency = real_number("frequency", frequency, 0, 1)
    most = response_scale(protocol.epsilon) if isinstance(protocol, Prot) else limit
    lead = most - frequency - positive("shift", shift)
    if lead <= 0:
        raise ValueError(
            f"shift = {shift!r}: needs less than {most - frequency:g}, as a report counts {most:g}"
        )
    return shift * clients / lead


def simulated_cheats(
    protocol: Protocol,
    frequency: float,
    clients: int,
    weight: int,
    goal: str,
    limit: float,
    trials: int,
    rng: Generator,
) -> int:
    """The least number of cheats that reach their goal in half of all trials, found by bisection.

    More than four for each client that holds the item are not tried.

    Args:
        protocol: `Cash` or `Prot`.
        frequency, clients: of the honest clients; the cheats come on top.
        weight: how far the false item is from the true one.
        goal: "promote", so that the false item is decoded; "bury", so that the true one is not.
        limit: the norm of a report of `Cash`.
        trials: of each number of cheats, with the same honest reports.
        rng: source of randomness.

    >>> prot, rng = Prot(PolarCode.construct(64, 8), 1.0), np.random.default_rng(1)
    >>> simulated_cheats(prot, 0.6, 100_000, 16, "promote", 0.0, trials=20, rng=rng) > 1000
    True
    """
    one_of("goal", goal, GOALS)
    true = rng.integers(0, 2, protocol.code.k, dtype=np.uint8)
    false = true ^ item_at_distance(protocol.code, weight)
    y = protocol.mean_reports(np.tile(true, (trials, 1)), frequency, clients, rng)

    def reached(cheats: int) -> bool:
        total = cheating_total(protocol, true, false, cheats, limit, goal)
        bits = protocol.estimate((clients * y + total) / (clients + cheats)).bits
        decoded = (bits == (false if goal == "promote" else true)).all(axis=1)
        hits = np.count_nonzero(decoded == (goal == "promote"))
        return bool(2 * hits >= trials)

    enough = max(1, 4 * holders(frequency, clients))
    if not reached(enough):
        raise ValueError(
            f"frequency, limit = {frequency!r}, {limit!r}: {enough} cheats do not reach the goal"
        )
    if reached(0):
        return 0
    return bisect(reached, 0, enough)


def items_served(channels: ProtChannels, items: Bits, channel: Counts) -> tuple[Counts, Counts]:
    """With each public seed, how many false items a single report can serve, and its symbol.

    A seed and an item make a symbol, and two items may make the same. A cheat sends what most make.

    Args:
        channels: of the plan.
        items: ``(M, k)``, the false items, mixed.
        channel: ``(M,)``, the channel of each.

    Returns ``(seeds,)`` each; seeds stand for all there are.

    >>> from ldpcash.histogram.symbols import symbol_code
    >>> channels = ProtChannels(symbol_code(8, 2), epsilon=2.0, count=4, width=2)
    >>> items, channel = np.eye(3, 8, dtype=np.uint8), np.arange(3)
    >>> served, _ = items_served(channels, items, channel)
    >>> np.bincount(served)  # of 1024 seeds
    array([  0, 384, 576,  64])
    """
    values = channels.views.values_of(channels.code.encode(items))
    symbols = values[:, None, :] ^ channels.masks[channel][:, :, None]
    symbols = symbols.reshape(len(items), -1)
    times = (symbols[:, None] == symbols).sum(axis=1)  # how often each item's symbol occurs
    best = times.argmax(axis=0)
    seeds = np.arange(symbols.shape[1])
    return times[best, seeds], symbols[best, seeds]


def planted_items(
    plan: Plan, names: Names, clients: int, false: int, cheats: int, chosen: bool, rng: Generator
) -> int:
    """How many of some false items cheats bring into the table.

    Each cheat sends one report, the symbol that serves most of them. If it may choose its seed, it
    takes any view of the codeword, for the decoder has to see all of it, and of that the seed that
    serves most.

    Args:
        plan: with `ProtChannels`.
        names: what the honest clients hold.
        clients: N, the honest ones; the cheats come on top.
        false: how many items, which nobody holds.
        cheats: how many.
        chosen: whether cheats choose their seeds. With tickets they cannot.
        rng: source of randomness.

    >>> from ldpcash.beyond.bodies import body
    >>> plan, names = Plan.choose(100_000, 40, 2.0), body("census", 40)
    >>> rng = np.random.default_rng(1)
    >>> [planted_items(plan, names, 100_000, 6, 2000, chosen, rng) for chosen in (True, False)]
    [6, 0]
    """
    channels = plan.channels
    if not isinstance(channels, ProtChannels):
        raise ValueError(f"plan = one of {type(channels).__name__}: needs ProtChannels")
    items = rng.integers(0, 2, (whole_number("false", false, 1), plan.k), dtype=np.uint8)
    *counts, empty = rng.multinomial(clients, [*names.share, names.empty]).tolist()
    collector = draw_collector(plan, names.bits, counts, rng, empty)
    mixed = plan.mixing.mix(items)
    served, symbols = items_served(channels, mixed, plan.channel_of(mixed))
    seeds = rng.integers(0, len(served), whole_number("cheats", cheats, 0))
    if chosen:
        best = served.reshape(channels.count, channels.views.count).argmax(axis=0)
        view = seeds % channels.views.count
        seeds = best[view] * channels.views.count + view
    sent = symbols[seeds].astype(channels.payload)
    channels.add(collector.sums, seeds.astype(np.uint64), sent)
    collector.clients += len(seeds)
    found = {line.item.tobytes() for line in collector.histogram()}
    return sum(item.tobytes() in found for item in items)
