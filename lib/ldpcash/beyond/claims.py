"""The annex's part of the ledger: what this project says beyond the paper, and what decides it.

It is kept as `ldpcash.claims` keeps the paper's part: a function for each statement, which measures
and judges. The place is the notebook that makes the statement.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ldpcash.beyond.accounting import spent_epsilon
from ldpcash.beyond.audit import audit, clients, farthest_items, rounding_score, ruled_out
from ldpcash.beyond.defence import largest_norm, simulated_cheats
from ldpcash.beyond.faults import FloatNoise, HalfSensitivity, LazyCoin, reused_noise
from ldpcash.claims import CODE, DELTA, FAILS, HOLDS, Claim, Finding, Lab
from ldpcash.protocols import Cash, Prot

BEYOND: list[Claim] = []


def claim(place: str, statement: str) -> Callable[[Callable[[Lab], Finding]], Any]:
    """Enter a function into the annex's part of the ledger."""

    def enter(decide: Callable[[Lab], Finding]) -> Callable[[Lab], Finding]:
        BEYOND.append(Claim(place, statement, decide))
        return decide

    return enter


# 14_privacy_in_practice


@claim(
    "14_privacy_in_practice",
    "One report with noise in floating point rules out a bit of most clients; on the grid, of none",
)
def rounding_leaks(lab: Lab) -> Finding:
    rng = np.random.default_rng(lab.seed)
    item, _ = farthest_items(CODE)
    shares = [
        float(ruled_out(clients(kind(CODE, 1.0))(item, lab.frames, rng)).any(axis=(0, 2)).mean())
        for kind in (FloatNoise, Cash)
    ]
    measured = f"clients that lose a bit at epsilon = 1: {shares[0]:.3f} and {shares[1]:.3f}"
    return Finding(measured, HOLDS if shares[0] > 0.5 and shares[1] == 0 else FAILS)


@claim(
    "14_privacy_in_practice",
    "On the grid delta is not larger than asked, and the noise larger by less than a part in 10^4",
)
def grid_keeps_the_promise(lab: Lab) -> Finding:
    protocols = [Cash(CODE, epsilon) for epsilon in (0.1, 0.5, 1.0, 2.0, 4.0, 8.0)]
    delta = max(cash.grid.delta(cash.epsilon) for cash in protocols)
    more = max(cash.grid.scale * cash.grid.step / cash.sigma for cash in protocols)
    measured = f"at six epsilons: delta at most {delta:.6e}, noise at most 1 + {more - 1:.0e} sigma"
    return Finding(measured, HOLDS if delta <= DELTA and more < 1 + 1e-4 else FAILS)


@claim(
    "14_privacy_in_practice",
    "The audit finds over half of the worst pair's epsilon, never more, and every planted fault",
)
def audit_has_teeth(lab: Lab) -> Finding:
    rng = np.random.Generator(np.random.SFC64(lab.seed))
    pair = farthest_items(CODE)
    score = rounding_score(CODE, *pair)
    honest = [
        audit(clients(protocol), *pair, 1.0, delta, 100 * lab.frames, rng).epsilon
        for protocol, delta in ((Cash(CODE, 1.0), DELTA), (Prot(CODE, 1.0), 0.0))
    ]
    faults = [
        audit(fault, *pair, 1.0, delta, 30 * lab.frames, rng, 1 - 1e-6, [score]).epsilon
        for fault, delta in (
            (clients(FloatNoise(CODE, 1.0)), DELTA),
            (clients(HalfSensitivity(CODE, 1.0)), DELTA),
            (reused_noise(Cash(CODE, 1.0)), DELTA),
            (clients(LazyCoin(CODE, 1.0)), 0.0),
        )
    ]
    measured = (
        f"epsilon = 1 is at least {honest[0]:.2f} for Cash and {honest[1]:.2f} for Prot; with"
        " floating point, sensitivity 1, noise used twice and a lazy coin at least "
        + ", ".join(f"{bound:.1f}" for bound in faults)
    )
    right = all(0.5 < bound <= 1 for bound in honest) and min(faults) > 1
    return Finding(measured, HOLDS if right else FAILS)


@claim(
    "14_privacy_in_practice",
    "With every report checked, Cash falls to less than a fifth of the cheats that Prot withstands",
)
def cheats(lab: Lab) -> Finding:
    rng = np.random.default_rng(lab.seed)
    found = {}
    for epsilon in (0.5, 1.0, 2.0):
        cash, prot = Cash(CODE, epsilon), Prot(CODE, epsilon)
        found[epsilon] = [
            simulated_cheats(protocol, 0.6, 100_000, 16, "bury", largest_norm(cash), 100, rng)
            for protocol in (cash, prot)
        ]
    measured = "cheats that bury the item of 60000 of 100000 clients: " + "; ".join(
        f"epsilon = {epsilon:g}: Cash {few}, Prot {many}" for epsilon, (few, many) in found.items()
    )
    fewer = all(5 * few < many for few, many in found.values())
    return Finding(measured, HOLDS if fewer else FAILS)


@claim(
    "14_privacy_in_practice",
    "A hundred reports of Prot cost less than half of their sum, if a delta of 1e-4 is allowed",
)
def optimal_composition(lab: Lab) -> Finding:
    basic, optimal = (spent_epsilon(Prot(CODE, 0.1), 100, delta) for delta in (0.0, DELTA))
    cash = spent_epsilon(Cash(CODE, 0.1), 100, DELTA)
    measured = (
        f"epsilon of 100 reports of 0.1 each: {basic:.3f} by sum, {optimal:.3f} by optimal"
        f" composition; Cash {cash:.3f}"
    )
    return Finding(measured, HOLDS if optimal < basic / 2 else FAILS)
