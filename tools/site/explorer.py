"""The explorer's numbers: protocols and codes, simulated wherever its sliders can stand.

`make explorer` simulates and writes explorer.json, which is committed. `make site` turns that into
a script for the page, with the intervals worked out, so that the page needs no server::

    stops of the sliders -> points -> `sweep` -> counts, explorer.json -> counts and intervals

A curve is one protocol, code, N and f over all epsilons. Its points are simulated at length up to
the first without a block error. A BLER that is so low falls with epsilon; beyond, a few trials tell
the frequency error. Codes that turn out the same under two rules are simulated once. Protocols that
send items as they are, or whole symbols, have one code: that of Hadamard.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from itertools import product
from pathlib import Path
from typing import Any

from ldpcash import (
    Blank,
    Cash,
    LocalHashing,
    Point,
    PolarCode,
    Row,
    hadamard_code,
    sweep,
)
from ldpcash.beyond.codes import code_for_privacy
from ldpcash.simulation.points import parameters_of
from ldpcash.simulation.trials import binomial_interval

FILE = Path(__file__).with_name("explorer.json")
SEED = 2026
K = 8  # bits of an item
DELTA = 1e-4
EPSILONS = [0.25, 0.5, 0.75, 1.0, 1.25, 1.5, 1.75, 2.0, 2.5, 3.0, 3.5, 4.0, 5.0, 6.0]
FREQUENCIES = [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0]
CLIENTS = [200, 500, 1000, 2000, 5000]
LENGTHS = [64, 128, 256]

MIN_ERRORS = 100  # a point is done when it has seen as many,
MANY_TRIALS = 100_000  # or after as many trials,
FEW_TRIALS = 2048  # or after as few, if the epsilon before it has seen no error
OFF_UNIT = 1e-5  # of the stored frequency errors

Curve = tuple[str, PolarCode, int, float]  # protocol, code, N and f

PROTOCOLS: dict[str, dict[str, Any]] = {
    "Cash": {"protocol": "Cash", "delta": DELTA},
    "Prot": {"protocol": "Prot"},
    "Prot, soft": {"protocol": "Prot", "decision": "soft", "decoder": "SCL"},
    "Prot, empty +": {"protocol": "Prot", "empty": "positive"},
    "Blank": {"protocol": "Blank"},
    "Subset selection": {"protocol": "SubsetSelection"},
    "Local hashing": {"protocol": "LocalHashing"},
    "k-ary response": {"protocol": "KaryResponse"},
}
WITH_ANY_CODE = 4  # of these; the others have that of Hadamard


def last_frozen(n: int, k: int) -> PolarCode:
    """The paper's Remark 1: without index n - 1 the sensitivity is below 2."""
    return PolarCode(n, PolarCode.construct(n, k + 1, "rm").info[:-1])


RULES: dict[str, tuple[str, Callable[[int, int], PolarCode]]] = {
    "pw": ("polarization weight", lambda n, k: PolarCode.construct(n, k, "pw")),
    "ga": ("Gaussian approximation", lambda n, k: PolarCode.construct(n, k, "ga")),
    "light": ("Reed-Muller rule, last index frozen", last_frozen),
    "quiet": ("least noise for its distance", code_for_privacy),
}


def codes() -> dict[tuple[int, str], PolarCode]:
    """The codes that can be chosen, by length and rule."""
    return {(n, rule): RULES[rule][1](n, K) for n in LENGTHS for rule in RULES}


def distinct_codes() -> list[PolarCode]:
    """The same without repetitions."""
    return list(dict.fromkeys(codes().values()))


def point(protocol: str, code: PolarCode, clients: int, frequency: float, epsilon: float) -> Point:
    return Point(
        epsilon=epsilon,
        frequency=frequency,
        clients=clients,
        **PROTOCOLS[protocol],
        **parameters_of(code),
    )


def simulate(
    curves: Sequence[Curve], epsilons: Sequence[float] = EPSILONS, seed: int = SEED
) -> list[list[Row]]:
    """One list of rows, in the order of ``epsilons``, for each (protocol, code, N, f)."""
    rows: list[list[Row]] = [[] for _ in curves]
    for epsilon in epsilons:
        beyond = [bool(done) and done[-1].errors == 0 for done in rows]
        for few, trials in ((False, MANY_TRIALS), (True, FEW_TRIALS)):
            mine = [i for i in range(len(curves)) if beyond[i] is few]
            points = [point(*curves[i], epsilon) for i in mine]
            found = sweep(points, seed, min_errors=MIN_ERRORS, max_trials=trials)
            for i, row in zip(mine, found, strict=True):
                rows[i].append(row)
    return rows


def codes_of(protocol: str) -> list[PolarCode]:
    """The codes that a protocol is simulated with."""
    any_code = protocol in list(PROTOCOLS)[:WITH_ANY_CODE]
    return distinct_codes() if any_code else [hadamard_code(K)]


def all_curves() -> list[Curve]:
    return [
        curve
        for protocol in PROTOCOLS
        for curve in product([protocol], codes_of(protocol), CLIENTS, FREQUENCIES)
    ]


def promise(protocol: str, epsilon: float) -> str:
    """How a client of a protocol with the Hadamard code keeps it."""
    built: Any = Point(
        epsilon=epsilon,
        frequency=0,
        clients=1,
        **PROTOCOLS[protocol],
        **parameters_of(hadamard_code(K)),
    ).build()
    if isinstance(built, Blank):
        other = "denies one" if built.answers.denied else "hands in a blank"
        answer = f"each client answers with one of {built.answers.values} values"
        return f"{answer}, or {other}, as most without an item do"
    if isinstance(built, LocalHashing):
        sent = f"one of {built.values} values, that of its item"
    else:
        many = f"{built.size} of {2**K} items, its own among them"
        sent = "an item, its own" if built.size == 1 else many
    return f"each client sends {sent} with probability {built.keep:.3g}"


def table() -> dict[str, Any]:
    """All that explorer.json holds: where the sliders stand, and the counts of each curve."""
    distinct = distinct_codes()
    return {
        "k": K,
        "delta": DELTA,
        "protocols": list(PROTOCOLS),
        "any_code": WITH_ANY_CODE,
        "epsilons": EPSILONS,
        "frequencies": FREQUENCIES,
        "clients": CLIENTS,
        "lengths": LENGTHS,
        "rules": {rule: words for rule, (words, _) in RULES.items()},
        "codes": [
            {"n": n, "rule": rule, "code": distinct.index(code)}
            for (n, rule), code in codes().items()
        ],
        "curves": [
            {
                "errors": [row.errors for row in rows],
                "trials": [row.trials for row in rows],
                "off": [round(row.frequency_error / OFF_UNIT) for row in rows],
                "off_se": [round(row.frequency_error_se / OFF_UNIT) for row in rows],
            }
            for rows in simulate(all_curves())
        ],
    }


def as_json(content: dict[str, Any]) -> str:
    """A line for each entry, and for each curve: changes are seen in a diff."""
    lines = {key: json.dumps(value, separators=(",", ":")) for key, value in content.items()}
    curves = (json.dumps(curve, separators=(",", ":")) for curve in content["curves"])
    lines["curves"] = "[\n" + ",\n".join(curves) + "\n]"
    return "{\n" + ",\n".join(f'"{key}":{value}' for key, value in lines.items()) + "\n}\n"


def script() -> str:
    """explorer.json as a script that a page can load without a server, made ready to be shown."""
    content = json.loads(FILE.read_text())
    for curve in content["curves"]:
        pairs = zip(curve["errors"], curve["trials"], strict=True)
        ends = [binomial_interval(errors, trials) for errors, trials in pairs]
        curve["low"] = [float(f"{low:.3g}") for low, _ in ends]
        curve["high"] = [float(f"{high:.3g}") for _, high in ends]
        for name in ("off", "off_se"):
            curve[name] = [round(value * OFF_UNIT, 5) for value in curve[name]]
    content["promises"] = {
        protocol: [promise(protocol, epsilon) for epsilon in content["epsilons"]]
        for protocol in content["protocols"][content["any_code"] :]
    }
    for choice, code in zip(content["codes"], codes().values(), strict=True):
        choice["sensitivity"] = code.sensitivity
        choice["sigma"] = [
            Cash(code, epsilon, content["delta"]).sigma for epsilon in content["epsilons"]
        ]
    return f"window.EXPLORER = {json.dumps(content, separators=(',', ':'))};\n"


if __name__ == "__main__":
    FILE.write_text(as_json(table()))
    print(f"{FILE.name}: {FILE.stat().st_size / 1000:.0f} kB")
