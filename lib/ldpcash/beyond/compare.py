"""A fair comparison: every randomizer that one would take, each with soft decoding.

The paper's measure is eta: the smallest true frequency at which the item is still found
(Definition 2). Here that is the frequency at which the block error rate falls to a level::

    case (contender, epsilon, N) -> a few frequencies around the expected one -> `sweep` -> eta
                                        ^                                          |
                                        +---- more of them, where it was not ------+

All noise is nearly Gaussian once many clients are averaged, so eta is expected at
snr * noise / sqrt(N), with the signal-to-noise ratio that the code needs and the noise of a client.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from ldpcash.base.checks import one_of, whole_number
from ldpcash.codec.crc import with_checks
from ldpcash.codec.hadamard import MAX_SYMBOL, code_of_symbols, hadamard_code
from ldpcash.codec.polar import PolarCode
from ldpcash.paper.experiments import crossing
from ldpcash.paper.theory import simplex_error, strength_at, union_bound
from ldpcash.privacy.calibration import gaussian_sigma, response_scale
from ldpcash.protocols.cash import Cash
from ldpcash.protocols.direct import LocalHashing, SubsetSelection
from ldpcash.protocols.prot import Prot
from ldpcash.protocols.protocol import Protocol
from ldpcash.simulation.points import Point, parameters_of
from ldpcash.simulation.sweeps import sweep
from ldpcash.simulation.trials import Row


@lru_cache
def contenders(bits: int = 8) -> dict[str, dict[str, Any]]:
    """Who could be asked to find one item: names, and parameters of a `Point`.

    The paper's protocols have its code for 8 bits, else a longer one with a CRC and a list of 32.
    Up to 16 bits the peers send items as they are, which comes to a Hadamard code, and `Blank` has
    that code too; beyond, only codes go on, and `Blank` has one of symbols.

    Args:
        bits: of an item.

    >>> list(contenders(128))
    ['Cash', 'Prot, hard', 'Prot, soft', 'Blank']
    >>> contenders(128)["Cash"]["n"], contenders(128)["Blank"]["n"]
    (2048, 16384)
    """
    few = whole_number("bits", bits, 1) <= 64
    polar: dict[str, Any] = {"decoder": "SCL"}
    if bits != 8:
        n = 1024 if few else 2048
        noise = math.sqrt(n) / _long_snr(bits)  # for which the rows are chosen
        code = with_checks(PolarCode.construct(n, bits + 11, "ga", noise), 11)
        polar |= {"list_size": 32, **parameters_of(code)}
    found = {
        "Cash": {"protocol": "Cash", **polar},
        "Prot, hard": {"protocol": "Prot", "decision": "hard", **polar},  # as in Remark 2
        "Prot, soft": {"protocol": "Prot", "decision": "soft", **polar},
    }
    if bits <= MAX_SYMBOL:
        code, size = hadamard_code(bits), 1  # decoded by maximum likelihood, whatever the list
        found["k-ary response"] = {"protocol": "KaryResponse"}
        found["subset selection"] = {"protocol": "SubsetSelection"}
        found["local hashing"] = {"protocol": "LocalHashing"}
    else:
        code, size = code_of_symbols(bits, *((4096, 6) if few else (16384, 8))), 32
    found["Blank"] = {"protocol": "Blank"}
    symbols = {"decoder": "symbols", "list_size": size, **parameters_of(code)}
    return {
        name: setting if "decoder" in setting else {**setting, **symbols}
        for name, setting in found.items()
    }


def _long_snr(bits: int) -> float:
    """What the codes for long items need, or about: above what the best of endless length do."""
    return 1.2 * math.sqrt(2 * math.log(2) * bits)


CONTENDERS = contenders()
# The same line for the same contender in every figure: colour, mark, dashes.
LINES = dict(
    zip(CONTENDERS, ["C0o-", "C1s--", "C2^:", "C5v-", "C4D--", "C3x-.", "C6*-"], strict=True)
)

_AROUND = (0.96, 1.03)  # what is simulated first, in multiples of the expected frequency
_STEP = 0.07  # how much farther next, if it was not there; then twice as far, and so on
_FEW = 32  # holders, up to which they are counted one by one
_ROUNDS = 12
_SEEN = 5  # errors at the level, below which none that was seen does not say that it was reached


def _protocol(name: str, epsilon: float, bits: int = 8) -> Protocol:
    setting = contenders(bits)[one_of("name", name, contenders(bits))]
    return Point(epsilon=epsilon, frequency=0, clients=1, **setting).build()


def client_noise(name: str, epsilon: float, delta: float = 1e-4, sensitivity: float = 2.0) -> float:
    """Noise of a client in a coordinate of its unit-energy signal, as the decoder sees it.

    It is sigma for `Cash` and c_eps for `Prot`. A sign keeps 2 / pi of the information that a value
    in much noise has, so rounding is worth a noise larger by sqrt(pi / 2). The others say it
    themselves: sqrt(N) times the deviation of a frequency's estimate, if few hold the item.

    Args:
        name: one of `CONTENDERS`.
        epsilon, delta: the promise; only `Cash` needs a delta.
        sensitivity: of the code, which only `Cash` pays for.

    >>> [round(client_noise(name, 2.0), 3) for name in CONTENDERS]
    [3.469, 1.646, 1.313, 2.572, 0.851, 0.853, 0.61]
    """
    kind = CONTENDERS[one_of("name", name, CONTENDERS)]["protocol"]
    if kind == "Cash":
        return gaussian_sigma(epsilon, delta, sensitivity)
    if kind == "Prot":
        return response_scale(epsilon) * (math.sqrt(math.pi / 2) if "hard" in name else 1.0)
    protocol: Any = _protocol(name, epsilon)
    return float(protocol.answers.noise if kind == "Blank" else protocol.noise)


@lru_cache
def snr_needed(name: str, level: float, bits: int = 8) -> float:
    """The signal-to-noise ratio at which a contender's code has this block error rate, or about.

    For the paper's code it is that of the union bound; the words of the Hadamard code are a regular
    simplex, of which it is known. For long codes it is a guess.

    Args:
        name: one of `contenders` for items of so many bits.
        level: the block error rate.
        bits: of an item.

    >>> round(snr_needed("Cash", 1e-3), 2), round(snr_needed("Blank", 1e-3), 2)
    (7.01, 6.2)
    """
    setting = contenders(bits)[one_of("name", name, contenders(bits))]
    if setting["decoder"] == "symbols" and bits <= MAX_SYMBOL:
        return strength_at(lambda snr: simplex_error(bits, snr), level)
    if bits != 8:
        return _long_snr(bits)
    code = PolarCode.construct(64, bits)
    return strength_at(lambda snr: union_bound(code.weight_distribution(), code.n, snr), level)


def cost(name: str, epsilon: float, bits: int = 8) -> tuple[int, int]:
    """What a report costs: bits that are sent, and numbers that the server adds to.

    Numbers of `Cash` are counted as 32 bits each, and the function of `LocalHashing` as a seed of
    64. The others say which of all possible reports theirs is.

    Args:
        name: one of `contenders` for items of so many bits.
        epsilon: the privacy of a report.
        bits: of an item.

    >>> {name: cost(name, 2.0) for name in ("Cash", "Prot, soft", "subset selection", "Blank")}
    {'Cash': (2048, 64), 'Prot, soft': (7, 1), 'subset selection': (133, 31), 'Blank': (9, 1)}
    """
    protocol: Any = _protocol(name, epsilon, bits)
    n = protocol.code.n
    if isinstance(protocol, Cash):
        return 32 * n, n
    if isinstance(protocol, Prot):
        reports, added = 2 * n, 1  # a coordinate and a sign
    elif isinstance(protocol, SubsetSelection):
        reports, added = math.comb(n, protocol.size), protocol.size
    elif isinstance(protocol, LocalHashing):
        reports, added = 2**64 * protocol.values, n  # each item is hashed, to see if it has support
    else:
        answers = protocol.answers
        symbols = answers.values + (answers.values if answers.denied else 1)
        reports, added = protocol.views.count * symbols, 1
    return (reports - 1).bit_length(), added


@dataclass(frozen=True)
class Case:
    """Where eta is looked for.

    Args:
        name: one of `contenders` for items of so many bits.
        epsilon, clients: the privacy and the number of clients.
        level: the block error rate at which the item counts as found.
        bits: of an item.

    >>> round(Case("Blank", epsilon=2.0, clients=1000).expected, 3)
    0.12
    """

    name: str
    epsilon: float
    clients: int
    level: float = 1e-3
    bits: int = 8

    def __post_init__(self) -> None:
        one_of("name", self.name, contenders(self.bits))

    @property
    def expected(self) -> float:
        """The smallest frequency, if noise is Gaussian and that of holders the same; above 1 if
        there is probably none."""
        noise = client_noise(self.name, self.epsilon)
        return snr_needed(self.name, self.level, self.bits) * noise / math.sqrt(self.clients)

    def point(self, held: int) -> Point:
        """The setting in which so many clients hold the item.

        >>> Case("Blank", epsilon=2.0, clients=1000).point(held=120).true_frequency
        0.12
        """
        return Point(
            epsilon=self.epsilon,
            clients=self.clients,
            frequency=held / self.clients,
            **contenders(self.bits)[self.name],
        )


def smallest_frequencies(
    cases: Iterable[Case], seed: int, *, min_errors: int, max_trials: int
) -> list[float | None]:
    """The frequency at which each case's block error rate falls to its level.

    It is interpolated between two frequencies, one of them above and one below; up to 32 holders it
    is that of the smallest number of them that is enough. None means that not even f = 1 is enough,
    which was simulated; NaN that there were too few trials to see it.

    Args:
        cases: what is looked for.
        seed, min_errors, max_trials: of the sweeps.

    >>> case = Case("Prot, soft", epsilon=2.0, clients=1000, level=1e-2)
    >>> [eta] = smallest_frequencies([case], 1, min_errors=50, max_trials=20_000)
    >>> round(eta, 2)
    0.24
    """
    searches = [_Search(case) for case in cases]
    for _ in range(_ROUNDS):
        asked = [(search, held) for search in searches for held in search.next()]
        if not asked:
            break
        points = [search.case.point(held) for search, held in asked]
        rows = sweep(points, seed, min_errors=min_errors, max_trials=max_trials)
        for (search, held), row in zip(asked, rows, strict=True):
            search.rows[held] = row
    return [search.found() for search in searches]


class _Search:
    """What is known of a case: rows by the number of holders."""

    def __init__(self, case: Case) -> None:
        self.case = case
        self.rows: dict[int, Row] = {}

    def next(self) -> Sequence[int]:
        """The numbers of holders to simulate now; none if all is known."""
        most = self.case.clients
        if not self.rows:
            first, second = (min(1.0, share * self.case.expected) * most for share in _AROUND)
            fewer = max(1, math.floor(first))
            return sorted({fewer, min(most, max(fewer + 1, math.ceil(second)))})
        low, high = self._bracket()
        step = _STEP * 2.0 ** (len(self.rows) - 2)
        if high is None:
            return [] if low == most else [min(most, math.ceil(low * (1 + step)))]
        if low == 0:
            return [] if high == 1 else [max(1, math.floor(high / (1 + step)))]
        unsure = high <= _FEW or not self.rows[high].errors
        return [(low + high) // 2] if unsure and high - low > 1 else []

    def _bracket(self) -> tuple[int, int | None]:
        """The most holders that are not enough, and the fewest that are, as far as is known."""
        level = self.case.level
        few = [held for held, row in self.rows.items() if row.rate > level]
        low = max(few, default=0)
        enough = [held for held in self.rows if held > low]
        return low, min(enough, default=None)

    def found(self) -> float | None:
        low, high = self._bracket()
        if high is None:
            return None if low == self.case.clients else math.nan
        if max(self.rows[high].errors, self.rows[high].trials * self.case.level) < _SEEN:
            return math.nan
        if high <= low + 1:
            return high / self.case.clients
        curve = [self.rows[held] for held in (low, high) if held in self.rows]
        return crossing(curve, self.case.level, "frequency") or math.nan
