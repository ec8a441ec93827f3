"""One setting of a protocol, simulated: how often it errs, how far off its estimate is.

A `Point` is the setting, in plain parameters. Its trials are cut into numbered chunks of fixed size
(`chunk_size`), and each is simulated by itself (`run_chunk`), from a random stream keyed by seed,
point and chunk::

    Point, seed, chunk -> items -> y, from the exact law -> estimates -> Tally of the chunk
    tallies, added in the order of chunks -> Row: rates, errors and their intervals

So a result depends on the point, the seed and the number of chunks, and on nothing else. `sweep`
in `ldpcash.sweeps` decides how many chunks there are, and where they are computed.
"""

from __future__ import annotations

import hashlib
import inspect
import json
import math
import secrets
from collections.abc import Iterable
from dataclasses import asdict, dataclass, fields
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy
from scipy.special import betaincinv

from ldpcash.checks import fraction, real_number, whole_number
from ldpcash.decode import MLDecoder, SCLDecoder, sum_halves
from ldpcash.polar import PolarCode
from ldpcash.protocols import Cash, Prot, Protocol, holders

PROTOCOLS: dict[str, type[Protocol]] = {"Cash": Cash, "Prot": Prot}
DECODERS: dict[str, type[SCLDecoder] | type[MLDecoder]] = {"SCL": SCLDecoder, "ML": MLDecoder}

_FIRST_CHUNK = 1024  # trials; each further chunk has twice as many, up to some tenths of a second's
_CHUNK_VALUES = 2**25  # trials times n times list size of the largest chunks
_BLOCK = 4096  # trials that are drawn and decoded together, fewer for long codes
_BLOCK_VALUES = 2**20  # trials times n of a block
_NO_RESULT = {  # modules that no result hangs on
    *("claims.py", "experiments.py", "figures.py", "ledger.py", "progress.py"),
    *("channels.py", "discover.py", "hashing.py", "histogram.py", "packing.py"),
    *("plan.py", "symbols.py", "wire.py"),
    *("store.py", "sweeps.py", "theory.py", "workers.py"),
}


@dataclass(frozen=True, kw_only=True)
class Point:
    """One setting, in plain parameters. A wrong one is a `ValueError` here, not in a worker.

    What is not given is filled in from the protocol's own defaults, so that a point says all of
    what it stands for; what the protocol does not have is None, and must not be given.

    Args:
        protocol: "Cash" or "Prot".
        epsilon: the privacy of each client's report.
        frequency, clients: how many clients there are, and which fraction holds the item. The true
            frequency is that of the nearest whole number of holders; see `ldpcash.holders`.
        n, k: length of the code and number of its information bits.
        method, design_sigma: how the code is constructed, see `PolarCode.construct`; "pw" and 1.0
            (for methods that have one) if not given.
        info, dynamic: the k indices of the information bits and the dynamic frozen bits, instead
            of a method; see `PolarCode`.
        decoder: "SCL" or "ML"; the protocol's own if neither it nor an option of "SCL" is given.
        list_size, exact: options of "SCL".
        delta: of `Cash`.
        empty, decision, frequency_from: of `Prot`.

    >>> Point(protocol="Prot", epsilon=2, frequency=0.6, clients=1000).decoder
    'ML'
    """

    protocol: str
    epsilon: float
    frequency: float
    clients: int
    n: int = 64
    k: int = 8
    method: str | None = None
    design_sigma: float | None = None
    info: tuple[int, ...] | None = None
    dynamic: tuple[tuple[int, tuple[int, ...]], ...] | None = None
    decoder: str | None = None
    list_size: int | None = None
    exact: bool | None = None
    delta: float | None = None
    empty: str | None = None
    decision: str | None = None
    frequency_from: str | None = None

    def __post_init__(self) -> None:
        for name, value in self._plain().items():
            object.__setattr__(self, name, value)
        protocol = self.build()
        decoder = protocol.decoder
        filled_in = {
            "decoder": next(name for name, kind in DECODERS.items() if type(decoder) is kind),
            "list_size": getattr(decoder, "list_size", None),
            "exact": getattr(decoder, "exact", None),
            **{name: getattr(protocol, name, None) for name in _PROTOCOL_OPTIONS},
        }
        for name, value in filled_in.items():
            object.__setattr__(self, name, value)

    def _plain(self) -> dict[str, Any]:
        """Numbers as plain numbers, so that equal points are alike; and the code's defaults."""
        plain: dict[str, Any] = {
            "epsilon": real_number("epsilon", self.epsilon),
            "frequency": real_number("frequency", self.frequency),
            "clients": whole_number("clients", self.clients, 1, 2**53),
            "n": whole_number("n", self.n, 1),
            "k": whole_number("k", self.k, 1),
        }
        holders(plain["frequency"], plain["clients"])
        if self.delta is not None:
            plain["delta"] = real_number("delta", self.delta)
        if self.list_size is not None:
            plain["list_size"] = whole_number("list_size", self.list_size, 1)
        if not (self.exact is None or isinstance(self.exact, (bool, np.bool_))):
            raise ValueError(f"exact = {self.exact!r}: needs True or False")
        if self.info is not None:
            try:
                plain["info"] = tuple(sorted(whole_number("info", i, 0) for i in self.info))
            except TypeError:
                raise ValueError(f"info = {self.info!r}: needs k whole numbers") from None
            if self.dynamic is not None:
                try:
                    dynamic = dict(self.dynamic)
                except (TypeError, ValueError):
                    raise ValueError(f"dynamic = {self.dynamic!r}: see PolarCode") from None
                parities = PolarCode(plain["n"], plain["info"], dynamic).dynamic
                plain["dynamic"] = tuple(parities.items()) or None
            return plain
        plain["method"] = "pw" if self.method is None else self.method
        if self.design_sigma is not None:
            plain["design_sigma"] = real_number("design_sigma", self.design_sigma)
        elif self.method in ("ga", "bhattacharyya"):
            plain["design_sigma"] = 1.0
        return plain

    def build(self) -> Protocol:
        """The protocol that this point is about.

        >>> Point(protocol="Prot", epsilon=2, frequency=0.6, clients=1000).build().keep > 0.88
        True
        """
        protocol = _choose("protocol", self.protocol, PROTOCOLS)
        code = self._code()
        decoder = None
        if any(x is not None for x in (self.decoder, self.list_size, self.exact)):
            kind = _choose("decoder", "SCL" if self.decoder is None else self.decoder, DECODERS)
            decoder = kind(code, **self._given(kind, _DECODER_OPTIONS))
        options = self._given(protocol, _PROTOCOL_OPTIONS)
        return protocol(code, epsilon=self.epsilon, decoder=decoder, **options)

    def _code(self) -> PolarCode:
        if self.info is None:
            if self.dynamic is not None:
                raise ValueError(f"dynamic = {self.dynamic!r}: give info with it")
            return PolarCode.construct(self.n, self.k, str(self.method), self.design_sigma)
        for name in ("method", "design_sigma"):
            if getattr(self, name) is not None:
                raise ValueError(f"{name} = {getattr(self, name)!r}: give it or info, not both")
        if len(self.info) != self.k:
            raise ValueError(f"info = {self.info!r}: needs k = {self.k} indices")
        return PolarCode(self.n, self.info, dict(self.dynamic or ()))

    def _given(self, kind: type, names: tuple[str, ...]) -> dict[str, Any]:
        """The options among ``names`` that were given; each must be one of ``kind``'s."""
        given = {name: getattr(self, name) for name in names if getattr(self, name) is not None}
        for name, value in given.items():
            if name not in inspect.signature(kind).parameters:
                raise ValueError(f"{name} = {value!r}: {kind.__name__} has no such option")
        return given

    @cached_property
    def key(self) -> str:
        """A name for this point: a hash of all its parameters."""
        given = {name: value for name, value in asdict(self).items() if value is not None}
        return hashlib.sha256(json.dumps(given, sort_keys=True).encode()).hexdigest()[:32]

    @property
    def true_frequency(self) -> float:
        return holders(self.frequency, self.clients) / self.clients


def parameters_of(code: PolarCode) -> dict[str, Any]:
    """A code as parameters of a `Point`.

    >>> parameters_of(PolarCode(4, [1, 3], {2: [1]}))
    {'n': 4, 'k': 2, 'info': (1, 3), 'dynamic': ((2, (1,)),)}
    """
    return {
        "n": code.n,
        "k": code.k,
        "info": tuple(code.info.tolist()),
        "dynamic": tuple(code.dynamic.items()) or None,
    }


_PROTOCOL_OPTIONS = ("delta", "empty", "decision", "frequency_from")
_DECODER_OPTIONS = ("list_size", "exact")


def _choose(name: str, value: object, allowed: dict[str, Any]) -> Any:
    if not isinstance(value, str) or value not in allowed:
        raise ValueError(f"{name} = {value!r}: choose one of {', '.join(allowed)}")
    return allowed[value]


class Tally(NamedTuple):
    """Sums over trials; tallies of several chunks add up.

    >>> Tally(trials=10, errors=1).plus(Tally(trials=20, errors=3)).errors
    4
    """

    trials: int = 0
    errors: int = 0  #: items decoded wrongly
    off: float = 0.0  #: sum of |estimated - true frequency|
    off_squared: float = 0.0
    off_correct: float = 0.0  #: the same over correctly decoded trials
    off_correct_squared: float = 0.0

    def plus(self, other: Tally) -> Tally:
        sums: list[Any] = [mine + its for mine, its in zip(self, other, strict=True)]
        return Tally(*sums)


@dataclass(frozen=True)
class Row:
    """What a sweep found at one point.

    >>> point = Point(protocol="Cash", epsilon=2.0, frequency=0.6, clients=1000)
    >>> row = Row.of(point, Tally(trials=100, errors=5))
    >>> row.rate, round(row.low, 3), round(row.high, 3)
    (0.05, 0.016, 0.113)
    """

    point: Point
    trials: int
    errors: int
    rate: float  #: the block error rate, errors / trials
    low: float  #: its 95 % interval, see `binomial_interval`
    high: float
    frequency_error: float  #: mean of |estimated - true frequency| over all trials
    frequency_error_se: float  #: its standard error
    frequency_error_correct: float  #: over correctly decoded trials alone; NaN if there is none
    frequency_error_correct_se: float

    @classmethod
    def of(cls, point: Point, tally: Tally) -> Row:
        low, high = binomial_interval(tally.errors, tally.trials)
        correct = tally.trials - tally.errors
        return cls(
            point,
            tally.trials,
            tally.errors,
            tally.errors / tally.trials,
            low,
            high,
            *_mean_and_error(tally.trials, tally.off, tally.off_squared),
            *_mean_and_error(correct, tally.off_correct, tally.off_correct_squared),
        )


def _mean_and_error(count: int, total: float, squares: float) -> tuple[float, float]:
    if count == 0:
        return math.nan, math.nan
    mean = total / count
    if count == 1:
        return mean, math.nan
    return mean, math.sqrt(max(squares - count * mean**2, 0.0) / (count - 1) / count)


def binomial_interval(errors: int, trials: int, confidence: float = 0.95) -> tuple[float, float]:
    """Interval for an error rate, after Clopper and Pearson: ``(low, high)``.

    It covers the rate with at least this probability if the number of trials was fixed, and also if
    one went on until a fixed number of errors: then the exact upper end is a little lower. A sweep
    does something between the two, in chunks. There a 95 % interval covers nearly every rate with
    95 % or more, and the least favourable ones with 93.5 %.

    >>> low, high = binomial_interval(3, 1000)
    >>> round(low, 6), round(high, 6)
    (0.000619, 0.008742)
    """
    trials = whole_number("trials", trials, 1)
    errors = whole_number("errors", errors, 0, trials)
    tail = (1 - fraction("confidence", confidence)) / 2
    low = betaincinv(errors, trials - errors + 1, tail) if errors else 0.0
    high = betaincinv(errors + 1, trials - errors, 1 - tail) if errors < trials else 1.0
    return float(low), float(high)


def columns(rows: Iterable[Row]) -> dict[str, list[Any]]:
    """Rows as columns by name, parameters first: the data of a figure.

    Parameters that no row has are left out.

    >>> point = Point(protocol="Prot", epsilon=2.0, frequency=0.6, clients=1000)
    >>> table = columns([Row.of(point, Tally(100, 5)), Row.of(point, Tally(200, 8))])
    >>> table["protocol"], table["errors"], "delta" in table
    (['Prot', 'Prot'], [5, 8], False)
    """
    rows = list(rows)
    names = [field.name for field in fields(Point)]
    table = {name: [getattr(row.point, name) for row in rows] for name in names}
    table = {name: values for name, values in table.items() if any(v is not None for v in values)}
    for field in fields(Row)[1:]:
        table[field.name] = [getattr(row, field.name) for row in rows]
    return table


# A chunk of trials


def trial_cost(point: Point) -> int:
    """A rough measure of the time that a trial takes: n times the list size.

    It decides how large chunks are, so results depend on it.

    >>> trial_cost(Point(protocol="Cash", epsilon=1, frequency=0.5, clients=100))
    512
    """
    return point.n * (point.list_size or 8)


def full_cost(point: Point) -> int:
    """A closer measure, in the same unit, with what is slower than min-sum lists.

    It decides when workers are worth starting and what a progress bar says, so no result depends on
    it.

    >>> full_cost(Point(protocol="Cash", epsilon=1, frequency=0.5, clients=100, decoder="ML"))
    2048
    """
    if point.decoder == "ML":
        decoding = point.n * 2**point.k // 8
    else:
        decoding = trial_cost(point) * (4 if point.exact else 1)
    return decoding + (point.clients if point.protocol == "Prot" else 0)


def chunk_size(point: Point, chunk: int, max_trials: int) -> int:
    """How many trials a chunk of a point has: few at first, and 0 once there are ``max_trials``.

    >>> point = Point(protocol="Cash", epsilon=1, frequency=0.5, clients=100)
    >>> [chunk_size(point, chunk, 8000) for chunk in range(5)]
    [1024, 2048, 4096, 832, 0]
    """
    largest = max(1, _CHUNK_VALUES // trial_cost(point))
    doublings = max(0, math.ceil(math.log2(largest / _FIRST_CHUNK)))
    before = _FIRST_CHUNK * (2 ** min(chunk, doublings) - 1) + max(0, chunk - doublings) * largest
    size = _FIRST_CHUNK << chunk if chunk < doublings else largest
    return max(0, min(size, max_trials - before))


def run_chunk(point: Point, seed: int, chunk: int, trials: int, version: str) -> Tally:
    """Simulate one chunk of a point, wherever this runs.

    Args:
        point: the setting.
        seed, chunk: with the point, the key of the random stream.
        trials: how many.
        version: the `code_version` of the sweep, which has to be the one here.

    >>> point = Point(protocol="Cash", epsilon=2.0, frequency=0.6, clients=1000)
    >>> run_chunk(point, seed=1, chunk=0, trials=1024, version=code_version()).errors
    23
    """
    if version != code_version():
        raise RuntimeError(
            "a worker has another version of ldpcash, NumPy or SciPy than the sweep:"
            " the same must be installed on both"
        )
    protocol = _protocol(point)
    sequence = np.random.SeedSequence([seed, int(point.key, 16)], spawn_key=(chunk,))
    rng = np.random.Generator(np.random.SFC64(sequence))
    total = Tally()
    block = min(_BLOCK, _BLOCK_VALUES // point.n)
    for start in range(0, trials, block):
        total = total.plus(_run_block(protocol, point, min(block, trials - start), rng))
    return total


def _run_block(protocol: Protocol, point: Point, trials: int, rng: np.random.Generator) -> Tally:
    items = rng.integers(0, 2, (point.k, trials), dtype=np.uint8).T
    y = protocol.mean_reports(items, point.frequency, point.clients, rng)
    bits, frequency = protocol.estimate(y)
    correct = (bits == items).all(axis=1)
    off = np.zeros((_BLOCK, 4))
    off[:trials, 0] = np.abs(frequency - point.true_frequency)
    off[:trials, 2] = off[:trials, 0] * correct
    off[:, 1::2] = off[:, 0::2] ** 2
    sums = sum_halves(off).tolist()  # in a fixed order, so to the last bit the same everywhere
    return Tally(trials, trials - int(np.count_nonzero(correct)), *sums)


@lru_cache(maxsize=8)
def _protocol(point: Point) -> Protocol:
    return point.build()


def _hash_of_code(folder: Path) -> str:
    digest = hashlib.sha256(f"{np.__version__} {scipy.__version__}".encode())
    for path in sorted(folder.glob("*.py")):
        if path.name not in _NO_RESULT:
            digest.update(path.relative_to(folder).as_posix().encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()[:32]


_CODE_VERSION = _hash_of_code(Path(__file__).parent)  # now, as long as it is what was imported


@lru_cache
def _hash_of_class(protocol: type) -> str:
    """Of the file that defines a protocol; a number never seen before if there is none to read."""
    try:
        return hashlib.sha256(Path(inspect.getfile(protocol)).read_bytes()).hexdigest()
    except (OSError, TypeError):
        return secrets.token_hex(16)


def code_version() -> str:
    """A hash of all code that results depend on: this package's modules, NumPy and SciPy.

    The annex is not part of it, but protocols that others entered in `PROTOCOLS` are.

    >>> len(code_version())
    32
    """
    others = [p for p in PROTOCOLS.values() if p.__module__ != Protocol.__module__]
    if not others:
        return _CODE_VERSION
    everything = " ".join([_CODE_VERSION, *map(_hash_of_class, others)])
    return hashlib.sha256(everything.encode()).hexdigest()[:32]
