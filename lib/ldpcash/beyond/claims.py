"""The annex's part of the ledger: what this project says beyond the paper, and what decides it.

It is kept as `ldpcash.claims` keeps the paper's part: a function for each statement, which measures
and judges. The place is the notebook that makes the statement.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ldpcash.claims import Claim, Finding, Lab

BEYOND: list[Claim] = []


def claim(place: str, statement: str) -> Callable[[Callable[[Lab], Finding]], Any]:
    """Enter a function into the annex's part of the ledger."""

    def enter(decide: Callable[[Lab], Finding]) -> Callable[[Lab], Finding]:
        BEYOND.append(Claim(place, statement, decide))
        return decide

    return enter
