"""Histograms of real names: this project's and a peer's, on populations drawn alike::

    census -> N clients, each with a name -> a method's histogram -> Trial: what it found and missed
    trials of a method at one N and epsilon, added up -> MethodScore

Names are packed into 40 bits, eight letters of five bits, and longer ones are cut. One man in ten
has a name that the census does not list; here he holds nothing. Every trial draws a population of
its own and runs on a random stream keyed by seed, method, N, epsilon and trial, on any executor.
"""

from __future__ import annotations

import csv
import zlib
from collections.abc import Iterable, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files
from typing import Any, NamedTuple

import numpy as np
from numpy.random import SeedSequence

from ldpcash.base.arrays import Bits, Reals
from ldpcash.base.checks import one_of, whole_number
from ldpcash.base.workers import Here
from ldpcash.beyond.codes import code_for_privacy
from ldpcash.beyond.pem import Pem
from ldpcash.codec.polar import PolarCode
from ldpcash.histogram.packing import LATIN, Packing
from ldpcash.histogram.plan import Plan
from ldpcash.histogram.population import draw_collector
from ldpcash.simulation.trials import binomial_interval

PACKING = Packing(40, LATIN, cut=True)
PEM = "PEM + OLH"

# What is compared: options of `Plan.choose`, or of `Pem`.
METHODS: dict[str, dict[str, Any]] = {
    "symbols, soft": {},
    "Prot, soft": {"width": 1},
    "Prot, hard": {"width": 1, "decision": "hard"},
    "Cash, pw": {"protocol": "Cash", "code": PolarCode.construct(256, 40)},  # the paper's code
    "Cash, ga": {"protocol": "Cash"},
    "Cash, quiet": {"protocol": "Cash", "code": code_for_privacy(512, 40)},  # needs less noise
    PEM: {"start": 16, "step": 12, "keep": 40},
}

# `symbols, soft` with one option changed at a time.
VARIANTS: dict[str, dict[str, Any]] = {
    "list of 8": {"list_size": 8},
    "list of 512": {"list_size": 512},
    "K = 1024": {"count": 1024},
    "T = 2": {"groups": 2},
}


class Names(NamedTuple):
    """A population: different items, and the fraction of clients that hold each.

    >>> Names(PACKING.pack(["ANNA"]), np.array([0.6])).bits.shape
    (1, 40)
    """

    bits: Bits  #: (M, 40)
    share: Reals  #: (M,): the rest up to 1 holds nothing


@lru_cache(maxsize=1)
def census_names() -> Names:
    """First names of men in the United States, 1990, most frequent first.

    >>> names = census_names()
    >>> len(names.bits), PACKING.unpack(names.bits[:2]), round(float(names.share.sum()), 4)
    (1216, ['JAMES', 'JOHN'], 0.9005)
    """
    path = files("ldpcash.beyond") / "data" / "census_1990_male_first_names.csv"
    with path.open() as file:
        table = [(row["name"], float(row["percent"]) / 100) for row in csv.DictReader(file)]
    names, shares = zip(*table, strict=True)
    bits, place = np.unique(PACKING.pack(names), axis=0, return_inverse=True)
    share = np.asarray(np.bincount(place.ravel(), shares), dtype=np.float64)
    order = np.argsort(-share, kind="stable")
    return Names(bits[order], share[order])


class Trial(NamedTuple):
    """One histogram, held against the truth.

    >>> Trial(top10=9, top20=15, found=16, false=1, covered=14, off=0.003).found
    16
    """

    top10: int  #: how many of the ten most frequent items it has
    top20: int
    found: int
    false: int  #: found, and held by nobody
    covered: int  #: true items whose interval holds their frequency
    off: float  #: sum of |estimated - true frequency| over true items


@dataclass(frozen=True)
class MethodScore:
    """Trials of one method, added up.

    >>> trial = Trial(top10=9, top20=15, found=16, false=1, covered=12, off=0.003)
    >>> score = MethodScore("symbols, soft", 1_000_000, 2.0, trials=1, total=trial)
    >>> [round(x, 2) for x in score.recall(10)]
    [0.9, 0.55, 1.0]
    >>> score.false_rate, score.coverage, score.frequency_error
    (0.0625, 0.8, 0.0002)
    """

    method: str
    clients: int
    epsilon: float
    trials: int
    total: Trial

    def recall(self, top: int) -> tuple[float, float, float]:
        """Fraction of the ``top`` (10 or 20) items that was found, and its 95 % interval.

        Names are found with different probabilities, which makes the interval a little wide.
        """
        one_of("top", top, (10, 20))
        hits, chances = getattr(self.total, f"top{top}"), top * self.trials
        return (hits / chances, *binomial_interval(hits, chances))

    @property
    def false_rate(self) -> float:
        """False items among all that were found."""
        return self.total.false / max(1, self.total.found)

    @property
    def coverage(self) -> float:
        """Of the true items that were found, how many have their frequency in the interval."""
        true = self.total.found - self.total.false
        return self.total.covered / true if true else float("nan")

    @property
    def frequency_error(self) -> float:
        """Mean of |estimated - true frequency| over true items; NaN without any."""
        true = self.total.found - self.total.false
        return self.total.off / true if true else float("nan")


def run_trial(method: str, clients: int, epsilon: float, seed: int, number: int) -> Trial:
    """One population, one collection, one histogram.

    >>> run_trial("symbols, soft", 100_000, 4.0, seed=1, number=0).top10
    10
    """
    one_of("method", method, METHODS | VARIANTS)
    key = zlib.crc32(f"{method} {int(clients)} {float(epsilon)!r}".encode())
    rng = np.random.default_rng(SeedSequence([seed, key], spawn_key=(number,)))
    names = census_names()
    *counts, empty = rng.multinomial(clients, [*names.share, 1 - names.share.sum()]).tolist()
    if method == PEM:
        found = Pem(PACKING.k, epsilon, **METHODS[method]).draw(names.bits, counts, rng, empty)
    else:
        options = {"hash_seed": number, **(METHODS | VARIANTS)[method]}
        plan = Plan.choose(clients, PACKING.k, epsilon, **options)
        found = draw_collector(plan, names.bits, counts, rng, empty).histogram()
    held = {row.tobytes(): count / clients for row, count in zip(names.bits, counts, strict=True)}
    ranked = sorted(held, key=lambda item: -held[item])
    mine = {line.item.tobytes(): line for line in found}
    true = [(line, held[item]) for item, line in mine.items() if held.get(item, 0) > 0]
    return Trial(
        sum(item in mine for item in ranked[:10]),
        sum(item in mine for item in ranked[:20]),
        len(found),
        len(found) - len(true),
        sum(line.low <= frequency <= line.high for line, frequency in true),
        sum(abs(line.frequency - frequency) for line, frequency in true),
    )


def compare_methods(
    methods: Iterable[str],
    clients: Sequence[int],
    epsilons: Sequence[float],
    trials: int,
    seed: int,
    executor: Executor | None = None,
) -> list[MethodScore]:
    """Every method at every N and epsilon.

    >>> [score] = compare_methods(["symbols, soft"], [100_000], [4.0], trials=1, seed=1)
    >>> score.total.top10
    10
    """
    trials = whole_number("trials", trials, 1)
    settings = [(m, n, e) for m in methods for n in clients for e in epsilons]
    for method, _, _ in settings:
        one_of("method", method, METHODS | VARIANTS)
    where: Any = Here() if executor is None else executor
    running = [
        [where.submit(run_trial, *setting, seed, number) for number in range(trials)]
        for setting in settings
    ]
    scores = []
    for setting, futures in zip(settings, running, strict=True):
        done: list[Trial] = [future.result() for future in futures]
        sums: list[Any] = [sum(column) for column in zip(*done, strict=True)]
        scores.append(MethodScore(*setting, trials, Trial(*sums)))
    return scores
