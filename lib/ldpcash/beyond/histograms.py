"""Histograms of real names and words: this project's and its peers', on populations drawn alike::

    body -> N clients, each with a name or word -> a method's histogram -> Trial: what it found
    trials of a method in one setting, added up                         -> Score
    items of one frequency, put among them -> how many are found                  `recall_at`

Who has a name or word that is not in the body's table holds nothing. Every trial draws a population
of its own and runs on a random stream keyed by seed, setting and trial, on any executor.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable
from concurrent.futures import Executor
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.random import SeedSequence

from ldpcash.base.checks import fraction, one_of, positive, whole_number
from ldpcash.base.workers import Here
from ldpcash.beyond.bitstogram import Bitstogram
from ldpcash.beyond.bodies import BODIES, LENGTHS, body
from ldpcash.beyond.codes import code_for_privacy
from ldpcash.beyond.dictionary import Dictionary
from ldpcash.beyond.expander import ExpanderBound
from ldpcash.beyond.pem import Pem
from ldpcash.beyond.tree_hist import TreeHist
from ldpcash.codec.polar import PolarCode
from ldpcash.histogram.collector import Entry
from ldpcash.histogram.plan import Plan
from ldpcash.histogram.population import draw_collector
from ldpcash.simulation.trials import binomial_interval

OURS = "symbols"
PEM = "PEM + OLH"
KNOWN = "known candidates"
UNMIXED = "symbols, items unmixed"
NO_BLANK = "symbols, no blank"

# What is compared. This project's, as options of `Plan.choose`:
PLANS: dict[str, dict[str, Any]] = {
    OURS: {},
    "signs": {"width": 1},
    "signs, rounded": {"width": 1, "decision": "hard"},
    "Cash": {"protocol": "Cash"},
    "Cash, quiet": {"protocol": "Cash", "code": code_for_privacy(512, 40)},  # needs less noise
    "Cash, pw": {"protocol": "Cash", "code": PolarCode.construct(256, 40)},  # the paper's code
    UNMIXED: {},
    NO_BLANK: {"empty": 0.0},
    "list of 8": {"list_size": 8},
    "list of 128": {"list_size": 128},
    "K = 64": {"count": 64},
}
# And its peers:
PEERS: dict[str, tuple[Any, dict[str, Any]]] = {
    PEM: (Pem, {"start": 16, "step": 12, "keep": 400}),
    "TreeHist": (TreeHist, {}),
    "TreeHist, by bits": (  # as published
        TreeHist,
        {"start": 1, "step": 1, "threshold": 0.3, "final": 0.1, "keep": 1000},
    ),
    "Bitstogram": (Bitstogram, {}),
    "expander, at best": (ExpanderBound, {}),
    KNOWN: (Dictionary, {}),
}
METHODS = [*PLANS, *PEERS]

_AT_A_TIME = 10  # items that `recall_at` puts into a population


@dataclass(frozen=True)
class Setting:
    """What is measured: a method on a body, at one N and epsilon.

    Args:
        method: one of `METHODS`.
        body: "census", "english" or "german".
        k: bits of an item.
        clients: N.
        epsilon: the privacy of each client's report.
        crowd: the fraction of clients that hold nothing beside those of the body.

    >>> Setting("symbols", "census", 40, clients=10**6, epsilon=2)
    Setting(method='symbols', body='census', k=40, clients=1000000, epsilon=2.0, crowd=0.0)
    """

    method: str
    body: str
    k: int
    clients: int
    epsilon: float
    crowd: float = 0.0

    def __post_init__(self) -> None:
        one_of("method", self.method, METHODS)
        one_of("body", self.body, BODIES)
        one_of("k", self.k, LENGTHS)
        checked = {
            "clients": whole_number("clients", self.clients, 1),
            "epsilon": positive("epsilon", self.epsilon),
            "crowd": fraction("crowd", self.crowd) if self.crowd else 0.0,
        }
        for name, value in checked.items():  # plain numbers, whatever kind was given
            object.__setattr__(self, name, value)


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
class Score:
    """Trials of one setting, added up.

    >>> trial = Trial(top10=9, top20=15, found=16, false=1, covered=12, off=0.003)
    >>> score = Score(Setting("symbols", "census", 40, 10**6, 2.0), trials=1, total=trial)
    >>> [round(x, 2) for x in score.recall(10)], [round(x, 2) for x in score.coverage]
    ([0.9, 0.55, 1.0], [0.8, 0.52, 0.96])
    >>> score.true, score.false_rate, score.frequency_error
    (15, 0.0625, 0.0002)
    """

    setting: Setting
    trials: int
    total: Trial

    @property
    def true(self) -> int:
        """How many true items were found, in all trials."""
        return self.total.found - self.total.false

    def recall(self, top: int) -> tuple[float, float, float]:
        """Fraction of the ``top`` (10 or 20) items that was found, and its 95 % interval.

        Items are found with different probabilities, which makes the interval a little wide.
        """
        one_of("top", top, (10, 20))
        return _rate(getattr(self.total, f"top{top}"), top * self.trials)

    @property
    def coverage(self) -> tuple[float, float, float]:
        """Of the true items that were found, how many have their frequency in the interval."""
        return _rate(self.total.covered, self.true)

    @property
    def false_rate(self) -> float:
        """False items among all that were found."""
        return self.total.false / max(1, self.total.found)

    @property
    def frequency_error(self) -> float:
        """Mean of |estimated - true frequency| over true items; NaN without any."""
        return self.total.off / self.true if self.true else float("nan")


def _rate(hits: int, chances: int) -> tuple[float, float, float]:
    if not chances:
        return float("nan"), 0.0, 1.0
    return (hits / chances, *binomial_interval(hits, chances))


def run_trial(setting: Setting, seed: int, number: int) -> Trial:
    """One population, one collection, one histogram.

    >>> run_trial(Setting("symbols", "census", 40, 100_000, 4.0), seed=1, number=0).top10
    10
    """
    rng = np.random.default_rng(SeedSequence([seed, _key(setting)], spawn_key=(number,)))
    names = body(setting.body, setting.k)
    share = names.share * (1 - setting.crowd)
    *counts, empty = rng.multinomial(setting.clients, [*share, 1 - share.sum()]).tolist()
    bits, found = _histogram(setting, counts, empty, number, rng)
    held = {row.tobytes(): c / setting.clients for row, c in zip(bits, counts, strict=True)}
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


def _histogram(
    setting: Setting, counts: list[int], empty: int, number: int, rng: np.random.Generator
) -> tuple[Any, list[Entry]]:
    """The items that clients hold, ``(M, k)``, and what the method finds of them."""
    bits = body(setting.body, setting.k).bits
    if setting.method in PEERS:
        kind, options = PEERS[setting.method]
        public = bits if kind is Dictionary else setting.k
        return bits, kind(public, setting.epsilon, **options).draw(bits, counts, rng, empty)
    options = {"hash_seed": number, "empty": setting.crowd, **PLANS[setting.method]}
    plan = Plan.choose(setting.clients, setting.k, setting.epsilon, **options)
    if setting.method == UNMIXED:
        bits = plan.mixing.unmix(bits)  # so that mixing makes them what they were
    return bits, draw_collector(plan, bits, counts, rng, empty).histogram()


def _key(setting: Setting) -> int:
    return zlib.crc32(repr(setting).encode())


def measure(
    settings: Iterable[Setting], trials: int, seed: int, executor: Executor | None = None
) -> list[Score]:
    """Every setting, with so many trials.

    >>> [score] = measure([Setting("symbols", "census", 40, 100_000, 4.0)], trials=1, seed=1)
    >>> score.total.top10
    10
    """
    trials = whole_number("trials", trials, 1)
    where: Any = Here() if executor is None else executor
    running = [
        (setting, [where.submit(run_trial, setting, seed, number) for number in range(trials)])
        for setting in settings
    ]
    scores = []
    for setting, futures in running:
        done: list[Trial] = [future.result() for future in futures]
        sums: list[Any] = [sum(column) for column in zip(*done, strict=True)]
        scores.append(Score(setting, trials, Trial(*sums)))
    return scores


def recall_at(
    setting: Setting,
    frequency: float,
    trials: int,
    seed: int,
    executor: Executor | None = None,
) -> tuple[int, int]:
    """Of items with this frequency, put among those of the body: how many are found, of how many.

    Each population has ten of them. The other clients hold what they always do.

    Args:
        setting: with one of this project's methods.
        frequency: of each of the ten items.
        trials: populations.
        seed: of everything random.
        executor: where trials are computed; in this process unless given.

    >>> recall_at(Setting("symbols", "census", 40, 100_000, 2.0), 0.03, trials=1, seed=1)
    (10, 10)
    """
    one_of("method", setting.method, PLANS)
    frequency = fraction("frequency", frequency)
    where: Any = Here() if executor is None else executor
    running = [
        where.submit(_found_among, setting, frequency, seed, number)
        for number in range(whole_number("trials", trials, 1))
    ]
    return sum(future.result() for future in running), _AT_A_TIME * trials


def _found_among(setting: Setting, frequency: float, seed: int, number: int) -> int:
    key = zlib.crc32(f"{setting!r} {frequency!r}".encode())
    rng = np.random.default_rng(SeedSequence([seed, key], spawn_key=(number,)))
    names = body(setting.body, setting.k)
    share = [frequency] * _AT_A_TIME
    others = names.share * (1 - setting.crowd) * (1 - sum(share))
    items = rng.integers(0, 2, (_AT_A_TIME, setting.k), dtype=np.uint8)
    share += [*others, 1 - sum(share) - others.sum()]
    *counts, empty = rng.multinomial(setting.clients, share).tolist()
    options = {"hash_seed": number, "empty": setting.crowd, **PLANS[setting.method]}
    plan = Plan.choose(setting.clients, setting.k, setting.epsilon, **options)
    bits = np.concatenate([items, names.bits])
    found = draw_collector(plan, bits, counts, rng, empty).histogram()
    mine = {line.item.tobytes() for line in found}
    return sum(item.tobytes() in mine for item in items)
