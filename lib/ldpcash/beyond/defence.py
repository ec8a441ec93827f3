"""Clients who cheat: what a server can refuse, and what they can do all the same.

Privacy hides what a client sends, so a server cannot ask whether it is true. It can ask whether an
honest client could have sent it. `cash_check` and `prot_check` do, and `CheckedSum` refuses and
counts what fails::

    reports -> check -> accepted: added up as ever
                     -> rejected: counted, and never silently dropped

What passes can still mislead. `cheating_total` is the worst that some clients can send without
being refused, `cheats_needed` and `cheats_to_shift` how many of them it takes in the mean, and
`simulated_cheats` how many it takes with noise and decoder.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import scipy
from numpy.random import Generator
from numpy.typing import ArrayLike, NDArray

from ldpcash.base.arrays import Bits, Reals, bits_of
from ldpcash.base.bisection import bisect
from ldpcash.base.checks import fraction, one_of, positive, real_number
from ldpcash.codec.polar import PolarCode
from ldpcash.privacy.calibration import response_scale
from ldpcash.protocols.cash import Cash
from ldpcash.protocols.laws import holders
from ldpcash.protocols.prot import Prot
from ldpcash.protocols.protocol import Protocol, ReportSum

GOALS = ("promote", "bury")
Check = Callable[[Reals], NDArray[np.bool_]]  # (reports, n) -> whether each may be honest


# What a server can refuse


def largest_norm(cash: Cash, rejection: float = 1e-6) -> float:
    """The norm that an honest report of `Cash` exceeds with probability ``rejection``.

    The square of the norm of a unit signal in noise of scale sigma is sigma^2 times a noncentral
    chi-square variable with n degrees of freedom and noncentrality 1 / sigma^2. A client without an
    item has noise alone, and exceeds it less often.

    Args:
        cash: the protocol.
        rejection: the probability that an honest report is refused.

    >>> round(largest_norm(Cash(PolarCode.construct(64, 8), 1.0)), 1)
    73.4
    """
    rejection = fraction("rejection", rejection)
    sigma = cash.grid.scale * cash.grid.step
    return sigma * math.sqrt(scipy.stats.ncx2.isf(rejection, cash.code.n, 1 / sigma**2))


def cash_check(cash: Cash, rejection: float = 1e-6) -> Check:
    """Whether the norm of each report is at most `largest_norm`.

    >>> cash = Cash(PolarCode.construct(64, 8), 1.0)
    >>> cash_check(cash)(np.array([[0.0] * 64, [100.0] * 64])).tolist()
    [True, False]
    """
    limit = largest_norm(cash, rejection)

    def check(reports: Reals) -> NDArray[np.bool_]:
        with np.errstate(over="ignore", invalid="ignore"):  # cheats send what they like
            return np.asarray((reports**2).sum(axis=-1) <= limit**2)

    return check


def prot_check(prot: Prot) -> Check:
    """Whether each report is one entry of +-c_eps sqrt(n); it never refuses an honest one.

    >>> prot = Prot(PolarCode.construct(2, 1), 1.0)
    >>> prot_check(prot)(np.array([[prot.amplitude, 0], [prot.amplitude] * 2, [1, 0]])).tolist()
    [True, False, False]
    """

    def check(reports: Reals) -> NDArray[np.bool_]:
        size = abs(reports)
        return np.asarray(((size == prot.amplitude) | (size == 0)).all(axis=-1)) & (
            np.count_nonzero(size, axis=-1) == 1
        )

    return check


class CheckedSum(ReportSum):
    """A sum of reports that passed a check, their number, and how many did not.

    >>> prot = Prot(PolarCode.construct(2, 1), 1.0)
    >>> total = CheckedSum(2, prot_check(prot))
    >>> total.add([[prot.amplitude, 0.0], [1e9, 0.0], [np.nan, 0.0]])
    >>> total.count, total.rejected
    (1, 2)
    """

    def __init__(self, n: int, check: Check) -> None:
        super().__init__(n)
        self.check = check
        self.rejected = 0

    def add(self, reports: ArrayLike) -> None:
        """Take in reports, ``(..., n)``, those that pass; NaN and infinity never do."""
        array = np.asarray(reports, dtype=np.float64)
        if array.ndim and array.shape[-1] == self.total.size:
            array = array.reshape(-1, self.total.size)
            accepted = self.check(array) & np.isfinite(array).all(axis=-1)
            self.rejected += int(np.count_nonzero(~accepted))
            array = array[accepted]
        super().add(array)  # which refuses other shapes

    def __add__(self, other: ReportSum) -> CheckedSum:
        if not isinstance(other, CheckedSum):
            raise ValueError(f"other = a {type(other).__name__}: reports in it were not checked")
        plain = super().__add__(other)
        both = CheckedSum(self.total.size, self.check)
        both.total, both.count = plain.total, plain.count
        both.rejected = self.rejected + other.rejected
        return both


# What cheats can do all the same


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

    >>> cash = Cash(PolarCode.construct(64, 8), 1.0)
    >>> round(cheats_needed(cash, 60_000, 16, largest_norm(cash)))
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
