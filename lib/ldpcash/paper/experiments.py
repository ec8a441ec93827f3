"""The paper's experiments as lists of points: Figs. 2 and 3, and Fig. 4.

A *reading* is one way to take the paper's text: a protocol, its decoder and its switches. Where
text and explanation disagree there is a reading for each, and every figure draws both::

    reading, frequency, clients, epsilons -> points -> `sweep` -> a curve
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Any

from ldpcash.simulation.points import Point
from ldpcash.simulation.sweeps import sweep
from ldpcash.simulation.trials import Row

# Fig. 2 and Fig. 3. "empty +" is the reading under which an empty client of Prot sends what it
# would send if its codeword were all ones, so that its report leans to +; Section IV explains
# Prot's error floor that way, and Remark 2 specifies random signs.
READINGS: dict[str, dict[str, Any]] = {
    "Cash, list of 8": {"protocol": "Cash", "decoder": "SCL", "list_size": 8},
    "Cash, ML": {"protocol": "Cash", "decoder": "ML"},
    "Prot, ML": {"protocol": "Prot", "decoder": "ML"},
    "Prot, list of 8": {"protocol": "Prot", "decoder": "SCL", "list_size": 8},
    "Prot, ML, empty +": {"protocol": "Prot", "decoder": "ML", "empty": "positive"},
    "Prot, list of 8, empty +": {
        "protocol": "Prot",
        "decoder": "SCL",
        "list_size": 8,
        "empty": "positive",
    },
}

# Fig. 4. The answer depends on the construction, which the paper does not give.
CODES: dict[str, dict[str, Any]] = {
    "n = 64": {"n": 64},
    "n = 256, pw": {"n": 256},
    "n = 256, ga": {"n": 256, "method": "ga", "design_sigma": 1.0},
}


def curves(
    readings: Mapping[str, Mapping[str, Any]],
    epsilons: Mapping[str, Sequence[float]],
    seed: int,
    *,
    min_errors: int,
    max_trials: int,
    **common: Any,
) -> dict[str, list[Row]]:
    """Sweep all readings at once: one row for each reading and epsilon.

    Args:
        readings: parameters of each curve, by name.
        epsilons: which epsilons each curve has, by the same names.
        seed, min_errors, max_trials: of the sweep.
        common: parameters that all points share, such as ``frequency`` and ``clients``.

    >>> found = curves(
    ...     {"Prot": {"protocol": "Prot"}}, {"Prot": [0.5, 1.0]}, 1,
    ...     min_errors=10, max_trials=2000, frequency=0.6, clients=1000,
    ... )
    >>> [row.point.epsilon for row in found["Prot"]]
    [0.5, 1.0]
    """
    if missing := sorted(readings.keys() - epsilons.keys()):
        raise ValueError(f"epsilons has no {missing}: needs every name that readings has")
    points = {
        name: [Point(epsilon=epsilon, **reading, **common) for epsilon in epsilons[name]]
        for name, reading in readings.items()
    }
    everything = [point for curve in points.values() for point in curve]
    rows = iter(sweep(everything, seed, min_errors=min_errors, max_trials=max_trials))
    return {name: [next(rows) for _ in curve] for name, curve in points.items()}


def up_to(end: float, grid: Iterable[float]) -> list[float]:
    """The part of a grid of epsilons that a curve needs.

    >>> up_to(1.0, [0.5, 1.0, 1.5])
    [0.5, 1.0]
    """
    return [epsilon for epsilon in grid if epsilon <= end]


def crossing(rows: Sequence[Row], level: float, over: str = "epsilon") -> float | None:
    """The epsilon at which a curve falls below a block error rate, or None if it is not known.

    Between two points it is interpolated, linearly in log(rate). It is not known if the curve never
    falls so far, if it starts below, or if no error was seen at the first point below.

    Args:
        rows: the curve.
        level: the block error rate.
        over: the parameter along the curve, if it is another one.

    >>> from ldpcash.simulation.trials import Tally
    >>> points = [
    ...     Point(protocol="Prot", epsilon=e, frequency=0.5, clients=100) for e in (1.0, 2.0)
    ... ]
    >>> rows = [Row.of(points[0], Tally(1000, 100)), Row.of(points[1], Tally(1000, 1))]
    >>> crossing(rows, 0.01), crossing(rows, 0.0001)
    (1.5, None)
    """
    for before, after in pairwise(rows):
        if after.rate <= level < before.rate and after.errors:
            share = math.log(before.rate / level) / math.log(before.rate / after.rate)
            start, end = (getattr(row.point, over) for row in (before, after))
            return round(start + share * (end - start), 12)
    return None
