"""One setting of a protocol, simulated: how often it errs, how far off its estimate is.

A point's trials are cut into numbered chunks of fixed size (`chunk_size`), and each is simulated by
itself (`run_chunk`), from a random stream keyed by seed, point and chunk::

    Point, seed, chunk -> items -> y, from the exact law -> estimates -> Tally of the chunk
    tallies, added in the order of chunks -> Row: rates, errors and their intervals

So a result depends on the point, the seed and the number of chunks, and on nothing else. `sweep`
in `ldpcash.simulation.sweeps` decides how many chunks there are, and where they are computed.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, fields
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from scipy.special import betaincinv

from ldpcash.base.arrays import batches, sum_halves
from ldpcash.base.checks import fraction, whole_number
from ldpcash.protocols.protocol import Protocol
from ldpcash.simulation.points import DECODERS, PROTOCOLS, Point, option_names
from ldpcash.simulation.version import Code, same_code, version_of

_FIRST_CHUNK = 1024  # trials; each further chunk has twice as many, up to some tenths of a second's
_CHUNK_VALUES = 2**25  # trials times n times list size of the largest chunks
_BLOCK = 4096  # trials that are drawn and decoded together, fewer for long codes
_BLOCK_VALUES = 2**20  # trials times n of a block


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
    every = [row.point.parameters for row in rows]
    options = option_names()
    names = [name for name in (every[0] if every else ()) if name not in options] + options
    table = {name: [parameters.get(name) for parameters in every] for name in names}
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
    _check_version(version, (*PROTOCOLS.values(), *DECODERS.values()))
    decoder: Any = DECODERS[str(point.decoder)]
    protocol = _protocol(point, PROTOCOLS[point.protocol], decoder)
    sequence = np.random.SeedSequence([seed, int(point.key, 16)], spawn_key=(chunk,))
    rng = np.random.Generator(np.random.SFC64(sequence))
    total = Tally()
    block = min(_BLOCK, _BLOCK_VALUES // point.n)
    for part in batches(trials, block):
        total = total.plus(_run_block(protocol, point, part.stop - part.start, rng))
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
def _protocol(point: Point, *kinds: Any) -> Protocol:
    """The protocol of a point, as long as these are the classes that its names stand for."""
    return point.build()


_HERE = Code.of([__name__])  # now, as long as it is what was imported


def code_version() -> str:
    """A hash of all code that results depend on: that of `run_chunk`, of every protocol and decoder
    that was entered, and of all that they import.

    >>> code_version() == code_version()
    True
    """
    return version_of([*PROTOCOLS.values(), *DECODERS.values()], _HERE)


@lru_cache(maxsize=8)
def _check_version(version: str, kinds: tuple[Any, ...]) -> None:
    """Once a process: files that change while it runs change nothing in it."""
    if not same_code(version, code_version()):
        raise RuntimeError(
            "a worker has another version of Python, ldpcash, NumPy or SciPy than the sweep, or"
            " does not know all its protocols: the same must be installed on both"
        )
