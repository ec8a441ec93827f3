"""The annex's part of the ledger: what this project says beyond the paper, and what decides it.

It is kept as `ldpcash.claims` keeps the paper's part: a function for each statement, which measures
and judges. The place is the notebook that makes the statement.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np

from ldpcash.beyond.census import PEM, Score, compare
from ldpcash.claims import FAILS, HOLDS, Claim, Finding, Lab
from ldpcash.plan import Plan
from ldpcash.symbols import ProtChannels, symbol_bits, symbol_code

BEYOND: list[Claim] = []


def claim(place: str, statement: str) -> Callable[[Callable[[Lab], Finding]], Any]:
    """Enter a function into the annex's part of the ledger."""

    def enter(decide: Callable[[Lab], Finding]) -> Callable[[Lab], Finding]:
        BEYOND.append(Claim(place, statement, decide))
        return decide

    return enter


# 13_histogram


def verdict(true: bool) -> str:
    return HOLDS if true else FAILS


@lru_cache(maxsize=4)
def name_scores(seed: int, epsilon: float, trials: int) -> dict[str, Score]:
    """Histograms of a million census names by this project's method and by the peer's."""
    scores = compare(["symbols, soft", PEM], [1_000_000], [epsilon], trials, seed)
    return {score.method: score for score in scores}


def shown(rate: tuple[float, float, float]) -> str:
    return f"{rate[0]:.3f} [{rate[1]:.3f}, {rate[2]:.3f}]"


@claim("13_histogram", "K channels cost Prot no privacy: the joint release is epsilon-LDP")
def joint_release(lab: Lab) -> Finding:
    prot = ProtChannels(symbol_code(4, 1, 4.0, 8), 1.0, 2)
    worst = joint_odds(prot)
    measured = f"largest odds over all views of 2 channels: exp({math.log(worst):.6f}), epsilon 1"
    return Finding(measured, verdict(math.isclose(worst, math.e, rel_tol=1e-9)))


def joint_odds(prot: ProtChannels) -> float:
    """The largest ratio of probabilities of what a server sees of two channels.

    By going through all cells that a seed can name in both and all symbols that a client can send,
    for one item in either channel and for a client that holds nothing.
    """
    item = np.ones((1, prot.code.k), dtype=np.uint8)
    [word] = prot.codeword_symbols(item).tolist()
    laws = np.zeros((3, prot.cells, prot.cells))
    for cells in itertools.product(range(prot.cells), repeat=2):
        for sent in range(prot.symbols):
            view = tuple(cell ^ sent for cell in cells)
            for channel, cell in enumerate(cells):
                told = word[cell // prot.symbols] ^ cell % prot.symbols == sent
                laws[channel][view] += prot.truth * told + (1 - prot.truth) / prot.symbols
            laws[2][view] += 1 / prot.symbols
    return float((laws.max(axis=0) / laws.min(axis=0)).max())


@claim("13_histogram", "Symbols of the right size need the noise of optimal local hashing")
def symbol_noise(lab: Lab) -> Finding:
    ratios = []
    for epsilon in (1.0, 2.0, 4.0):
        bits = symbol_bits(epsilon)
        noise = ProtChannels(symbol_code(40, bits, 8.0), epsilon, 2, bits).noise
        ratios.append(noise / (2 * math.exp(epsilon / 2) / math.expm1(epsilon)))
    measured = "noise over the optimum at epsilon 1, 2, 4: " + ", ".join(f"{r:.4f}" for r in ratios)
    return Finding(measured, verdict(max(ratios) < 1.01))


@claim(
    "13_histogram",
    "Of a million names at epsilon = 2 it finds at least 95 % of the ten most frequent",
)
def finds_names(lab: Lab) -> Finding:
    score = name_scores(lab.seed, 2.0, 8)["symbols, soft"]
    measured = f"recall {shown(score.recall(10))}, {score.total.false} of {score.total.found} false"
    return Finding(measured, verdict(score.recall(10)[0] >= 0.95 and score.false_rate < 0.1))


@claim("13_histogram", "At epsilon = 1 it still finds more than half of them")
def finds_names_at_one(lab: Lab) -> Finding:
    score = name_scores(lab.seed, 1.0, 8)["symbols, soft"]
    measured = f"recall {shown(score.recall(10))}, {score.total.false} of {score.total.found} false"
    return Finding(measured, verdict(score.recall(10)[0] > 0.5 and score.false_rate < 0.3))


@claim("13_histogram", "Its frequencies are closer than those of PEM + OLH")
def frequencies_are_closer(lab: Lab) -> Finding:
    scores = name_scores(lab.seed, 2.0, 8)
    mine, peer = (scores[name].frequency_error for name in ("symbols, soft", PEM))
    measured = f"mean error at epsilon 2, N = 10^6: {mine:.5f} against {peer:.5f}"
    return Finding(measured, verdict(mine < peer))


@claim("13_histogram", "Cash extends to many items, but needs more noise and K n numbers a report")
def cash_needs_more(lab: Lab) -> Finding:
    noise, size = [], []
    for protocol in ("Prot", "Cash"):
        plan = Plan.choose(1_000_000, 40, 2.0, protocol=protocol)
        noise.append(plan.channels.noise)
        size.append(plan.report_size)
    measured = f"noise {noise[1] / noise[0]:.2f} times Prot's; {size[1]} bytes against {size[0]}"
    return Finding(measured, verdict(noise[1] > 3 * noise[0] and size[1] > 1000 * size[0]))
