"""A fair comparison: both randomizers on the same code, with the same decoder, soft and hard.

The paper's measure is eta: the smallest true frequency at which the item is still found
(Definition 2). Here that is the frequency at which the block error rate falls to a level::

    case (protocol, epsilon, N) -> a few frequencies around the expected one -> `sweep` -> eta

All noise is nearly Gaussian once many clients are averaged, so eta is expected at
snr * noise / sqrt(N), with the signal-to-noise ratio that the code needs and the noise of a client.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from ldpcash.base.checks import one_of
from ldpcash.paper.experiments import crossing
from ldpcash.privacy.calibration import gaussian_sigma, response_scale
from ldpcash.simulation.points import Point
from ldpcash.simulation.sweeps import sweep
from ldpcash.simulation.trials import Row

# One decoder for all. "hard" rounds the mean first, as the paper's Remark 2 has it.
CONTENDERS: dict[str, dict[str, Any]] = {
    "Cash": {"protocol": "Cash", "decoder": "SCL"},
    "Prot, hard": {"protocol": "Prot", "decoder": "SCL", "decision": "hard"},
    "Prot, soft": {"protocol": "Prot", "decoder": "SCL", "decision": "soft"},
}
_AROUND = (0.92, 0.99, 1.06)  # what is simulated, in multiples of the expected frequency


def client_noise(name: str, epsilon: float, delta: float = 1e-4, sensitivity: float = 2.0) -> float:
    """Noise of a client in a coordinate of its unit-energy signal, as the decoder sees it.

    It is sigma for `Cash` and c_eps for `Prot`. A sign keeps 2 / pi of the information that a value
    in much noise has, so rounding is worth a noise larger by sqrt(pi / 2).

    Args:
        name: one of `CONTENDERS`.
        epsilon, delta: the promise; `Prot` needs no delta.
        sensitivity: of the code, which only `Cash` pays for.

    >>> [round(client_noise(name, 2.0), 3) for name in CONTENDERS]
    [3.469, 1.646, 1.313]
    """
    one_of("name", name, CONTENDERS)
    if CONTENDERS[name]["protocol"] == "Cash":
        return gaussian_sigma(epsilon, delta, sensitivity)
    return response_scale(epsilon) * (math.sqrt(math.pi / 2) if "hard" in name else 1.0)


@dataclass(frozen=True)
class Case:
    """Where eta is looked for.

    Args:
        name: one of `CONTENDERS`.
        epsilon, clients: the privacy and the number of clients.
        expected: about where; more than 1 if there is probably none.

    >>> Case("Cash", epsilon=2.0, clients=1000, expected=0.6).name in CONTENDERS
    True
    """

    name: str
    epsilon: float
    clients: int
    expected: float

    def __post_init__(self) -> None:
        one_of("name", self.name, CONTENDERS)


def smallest_frequencies(
    cases: Iterable[Case], level: float, seed: int, *, min_errors: int, max_trials: int
) -> list[float | None]:
    """The frequency at which each case's block error rate falls to ``level``.

    None means that not even f = 1 is enough, which was simulated; NaN that the rate is not where it
    was expected, or that there were too few trials to see it.

    Args:
        cases: what is looked for.
        level: the block error rate.
        seed, min_errors, max_trials: of the sweep.

    >>> case = Case("Prot, soft", epsilon=2.0, clients=1000, expected=0.24)
    >>> [eta] = smallest_frequencies([case], 1e-2, 1, min_errors=50, max_trials=20_000)
    >>> round(eta, 2)
    0.23
    """
    curves = [
        [
            Point(
                epsilon=case.epsilon,
                clients=case.clients,
                frequency=frequency,
                **CONTENDERS[case.name],
            )
            for frequency in sorted({min(1.0, share * case.expected) for share in _AROUND})
        ]
        for case in cases
    ]
    points = [point for curve in curves for point in curve]
    rows = iter(sweep(points, seed, min_errors=min_errors, max_trials=max_trials))
    return [_where([next(rows) for _ in curve], level) for curve in curves]


def _where(curve: list[Row], level: float) -> float | None:
    """Where a curve crosses a level; None or NaN if it does not."""
    found = crossing(curve, level, "frequency")
    if found is None and curve[-1].point.frequency == 1 and curve[-1].rate > level:
        return None
    return math.nan if found is None else found
