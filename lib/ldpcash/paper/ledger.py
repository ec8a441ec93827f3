"""How a ledger is kept: statements, each with the function that decides it, and their verdicts.

A *claim* is a function that measures and judges. `claim` enters it into a book, a `Lab` says how
long it may simulate, and `ledger` runs a whole book::

    @claim(place, statement, book)  ->  Claim  ->  ledger(lab, book, letter): a table
                                               ->  ledger_page(table): a page to be read

A verdict is one of::

    holds                           the text as it stands
    holds under reading "..."       not as the text specifies it, but under a reading named here
    does not hold as specified      nor under any reading that we found
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from ldpcash.base.arrays import Bits
from ldpcash.paper.experiments import READINGS, crossing, curves
from ldpcash.simulation.points import Point
from ldpcash.simulation.sweeps import sweep
from ldpcash.simulation.trials import Row

HOLDS = "holds"
FAILS = "does not hold as specified"

_OPENING = """\
# The ledger

Every statement here was decided by a measurement: an enumeration, a closed form, or a simulation,
whose rates come with 95 % intervals. A verdict is *holds*, for the text as it stands; *holds under
reading "..."*, if it takes a reading that the text does not specify; or *does not hold as
specified*, nor under any reading that we found. A test reaches each verdict again with other random
numbers.

Two readings come up often. "empty +": a client of the baseline that holds nothing leans to +,
instead of sending random signs as the paper's Remark 2 specifies. "rounded estimate": the
baseline's server estimates the frequency from the rounded mean, and not from the mean. BLER is the
block error rate, how often the item is decoded wrongly; f is the true frequency, the share of the
N clients that hold it.
"""
# The numbers of a part begin with its letter.
_PARTS = {
    "C": ("What the paper says", "place", "statement, in our words"),
    "B": ("What this project says beyond the paper", "notebook", "statement"),
}


def under(reading: str) -> str:
    """The verdict for a statement that needs a reading of its own.

    >>> under("empty +")
    'holds under reading "empty +"'
    """
    return f'holds under reading "{reading}"'


def judge(as_specified: bool, reading: str, under_it: bool) -> str:
    """The verdict, from whether a statement holds as specified and whether under a reading.

    >>> judge(False, "empty +", True)
    'holds under reading "empty +"'
    """
    if as_specified:
        return HOLDS
    return under(reading) if under_it else FAILS


class Finding(NamedTuple):
    """What was measured, and what follows.

    >>> Finding("5 errors in 100", HOLDS).verdict
    'holds'
    """

    measured: str
    verdict: str


@dataclass(frozen=True)
class Claim:
    """A statement, in our words, and how it is decided.

    >>> even = Claim("III", "Two is even", lambda lab: Finding("2 % 2 = 0", HOLDS))
    >>> even.decide(Lab()).verdict
    'holds'
    """

    place: str
    statement: str
    decide: Callable[[Lab], Finding]


@dataclass(frozen=True)
class Lab:
    """The means of measuring: a seed, and how long simulations run.

    Args:
        seed: of everything random.
        min_errors, max_trials: the rule of every sweep.
        frames: vectors drawn where a plain number of trials does.

    >>> lab = Lab(min_errors=10, max_trials=2000)
    >>> [row.errors >= 10 for row in lab.rows({"protocol": "Cash", "epsilon": 1.0})]
    [True]
    """

    seed: int = 2026
    min_errors: int = 100
    max_trials: int = 300_000
    frames: int = 20_000

    def rows(self, *points: dict[str, Any]) -> list[Row]:
        """Simulate points of the paper's setting, each with changes of its own."""
        setting = {"frequency": 0.6, "clients": 1000}
        return sweep(
            [Point(**{**setting, **point}) for point in points],
            self.seed,
            min_errors=self.min_errors,
            max_trials=self.max_trials,
        )

    def reach(self, names: list[str], frequency: float, grid: list[float]) -> list[float | None]:
        """The epsilon at which each reading falls to a block error rate of 1e-3; None for never.

        >>> [epsilon] = Lab(max_trials=20_000).reach(["Prot, ML"], 0.7, [0.6, 1.0])
        >>> round(epsilon, 1)
        0.8
        """
        found = curves(
            {name: READINGS[name] for name in names},
            dict.fromkeys(names, grid),
            self.seed,
            min_errors=self.min_errors,
            max_trials=self.max_trials,
            frequency=frequency,
            clients=1000,
        )
        reached = [crossing(found[name], 1e-3) for name in names]
        for name, epsilon in zip(names, reached, strict=True):
            if epsilon is None and min(row.low for row in found[name]) <= 1e-3:
                raise ValueError(
                    f"max_trials = {self.max_trials}: too few, or the wrong grid {grid}, to say"
                    f" where {name} reaches 1e-3"
                )
        return reached

    def items(self) -> tuple[Bits, np.random.Generator]:
        """Random items of 8 bits, ``(frames, 8)``, and the generator that goes on after them.

        >>> Lab(frames=5).items()[0].shape
        (5, 8)
        """
        rng = np.random.default_rng(self.seed)
        return rng.integers(0, 2, (self.frames, 8), dtype=np.uint8), rng


def claim(
    place: str, statement: str, book: list[Claim]
) -> Callable[[Callable[[Lab], Finding]], Callable[[Lab], Finding]]:
    """Enter a function into a book.

    >>> book = []
    >>> @claim("III", "One is odd", book)
    ... def odd(lab):
    ...     return Finding("1 % 2 = 1", HOLDS)
    >>> [entry.statement for entry in book]
    ['One is odd']
    """

    def enter(decide: Callable[[Lab], Finding]) -> Callable[[Lab], Finding]:
        book.append(Claim(place, statement, decide))
        return decide

    return enter


def ledger(lab: Lab, claims: Sequence[Claim], letter: str) -> dict[str, list[str]]:
    """Measure everything: columns number, place, statement, measured, verdict.

    Args:
        lab: with what.
        claims: the statements to decide.
        letter: what their numbers begin with.

    >>> even = Claim("III", "Two is even", lambda lab: Finding("2 % 2 = 0", HOLDS))
    >>> ledger(Lab(), [even, even], "C")["number"]
    ['C01', 'C02']
    """
    findings = [entry.decide(lab) for entry in claims]
    return {
        "number": [f"{letter}{number:02d}" for number in range(1, len(claims) + 1)],
        "place": [entry.place for entry in claims],
        "statement": [entry.statement for entry in claims],
        "measured": [finding.measured for finding in findings],
        "verdict": [finding.verdict for finding in findings],
    }


def ledger_page(table: Mapping[str, Sequence[str]]) -> str:
    """A ledger as a page of Markdown: the paper's statements, then those beyond it.

    Args:
        table: columns as `ledger` returns them, of one book or of both.

    >>> odd = Claim("III", "One is odd", lambda lab: Finding("|1| % 2 = 1", HOLDS))
    >>> print(ledger_page(ledger(Lab(), [odd], "C")).splitlines()[-1])
    | C01 | III | One is odd | holds | \\|1\\| % 2 = 1 |
    """
    names = ("number", "place", "statement", "verdict", "measured")
    rows = list(zip(*(table[name] for name in names), strict=True))
    page = _OPENING
    for letter, (title, place, statement) in _PARTS.items():
        lines = [_line(*row) for row in rows if row[0].startswith(letter)]
        if lines:
            head = [_line("", place, statement, "verdict", "measured"), "|---|---|---|---|---|"]
            page += "\n".join(["", f"## {title}", "", *head, *lines, ""])
    return page


def _line(*cells: str) -> str:
    """A line of a table, in which a bar within a cell, or a <, stands for itself."""
    escaped = (cell.replace("|", r"\|").replace("<", r"\<") for cell in cells)
    return f"| {' | '.join(escaped)} |"


def rate_of(row: Row) -> str:
    """A row's errors, trials and interval in words.

    >>> from ldpcash.simulation.trials import Tally
    >>> point = Point(protocol="Cash", epsilon=2.0, frequency=0.6, clients=1000)
    >>> rate_of(Row.of(point, Tally(1000, 1)))
    '1 error in 1000 (2.5e-05 to 0.0056)'
    """
    errors = "1 error" if row.errors == 1 else f"{row.errors} errors"
    return f"{errors} in {row.trials} ({row.low:.2g} to {row.high:.2g})"
