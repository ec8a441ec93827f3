"""What a protocol for a unique heavy hitter is.

N clients hold the same item of k bits, or nothing. Data flows one way::

    item bits -> codeword -> signal, +-1/sqrt(n)          every client; zero if it holds nothing
              -> report, a private version of the signal  every client    `reports`
              -> y, the mean over all N reports           the server      `ReportSum`
              -> LLR -> decoded bits -> (item, frequency) the server      `estimate`

To simulate a protocol nobody has to simulate its clients: `mean_reports` draws y itself, from the
law that it has when N clients send their reports.

A protocol of one's own is a class below `Protocol` with these three methods. Whatever its
constructor takes beside ``code``, ``epsilon`` and ``decoder`` is an option of its points.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import NamedTuple

import numpy as np
from numpy.random import Generator
from numpy.typing import ArrayLike, NDArray

from ldpcash.base.arrays import Bits, Reals, as_holds, as_items, as_reals, sum_halves
from ldpcash.base.checks import whole_number
from ldpcash.codec.ml import MLDecoder
from ldpcash.codec.polar import PolarCode
from ldpcash.codec.scl import SCLDecoder
from ldpcash.codec.symbol_decoder import SymbolDecoder

Decoder = SCLDecoder | MLDecoder | SymbolDecoder


class Estimate(NamedTuple):
    """A succinct histogram of one item.

    >>> Estimate(np.array([1, 0], dtype=np.uint8), np.float64(0.7)).bits.tolist()
    [1, 0]
    """

    bits: Bits  #: (..., k): the decoded item
    frequency: Reals  #: (...): the estimated fraction of clients that hold it


class ReportSum:
    """A running sum of reports and their number, which is all that the server keeps.

    Sums from different machines add up, so reports can be collected anywhere and in any order.

    Args:
        source: the protocol, and reports that no honest client of it sends are left out and counted
            (`Protocol.honest`; `Cash` loses one honest report in a million). Or n, the length of a
            report, and all finite numbers count.

    >>> from ldpcash import Prot
    >>> prot = Prot(PolarCode.construct(2, 1), epsilon=1.0)
    >>> here, there = ReportSum(prot), ReportSum(prot)
    >>> here.add([[prot.amplitude, 0.0], [1e9, 0.0], [float("nan"), 0.0]])
    >>> there.add([[0.0, prot.amplitude]])
    >>> (here + there).mean / prot.amplitude, (here + there).rejected
    (array([0.5, 0.5]), 2)
    """

    def __init__(self, source: Protocol | int) -> None:
        self.protocol = source if isinstance(source, Protocol) else None
        n = source.code.n if isinstance(source, Protocol) else whole_number("n", source, 1)
        self.total = np.zeros(n)
        self.count = 0
        self.rejected = 0  #: reports that no honest client sends

    def add(self, reports: ArrayLike) -> None:
        """Take in reports, ``(..., n)``."""
        given = np.asarray(reports)
        if given.dtype.kind == "c":
            raise ValueError(f"reports has type {given.dtype}: needs real numbers")
        array = given.astype(np.float64, copy=False)
        if array.ndim == 0 or array.shape[-1] != self.total.size:
            raise ValueError(
                f"reports has shape {array.shape}: the last dimension must be {self.total.size}"
            )
        array = array.reshape(-1, self.total.size)
        if self.protocol is not None:
            honest = self.protocol.honest(array)
            self.rejected += int(np.count_nonzero(~honest))
            array = array[honest]
        elif not np.isfinite(array).all():
            raise ValueError("reports holds NaN or infinity: nothing of it was added")
        self.total += array.sum(axis=0)
        self.count += len(array)

    def __add__(self, other: ReportSum) -> ReportSum:
        if not isinstance(other, ReportSum):
            return NotImplemented
        if other.total.size != self.total.size:
            raise ValueError(
                f"n = {other.total.size}: only sums of the same length, {self.total.size},"
                " can be added"
            )
        mine, others = (_kind(one.protocol) for one in (self, other))
        if mine != others:
            raise ValueError(f"other = a sum of reports of {others}: this one is of {mine}")
        both = ReportSum(self.protocol or self.total.size)
        both.total = self.total + other.total
        both.count = self.count + other.count
        both.rejected = self.rejected + other.rejected
        return both

    @property
    def mean(self) -> Reals:
        """y of step 7: the mean over all clients, those that hold nothing too."""
        if self.count == 0:
            raise ValueError("count = 0: the mean of no reports does not exist")
        return self.total / self.count


def _kind(protocol: Protocol | None) -> str:
    """What reports are of: a protocol and all its numbers, by which they differ."""
    if protocol is None:
        return "any protocol"
    numbers = {
        name: value
        for name, value in vars(protocol).items()
        if isinstance(value, (int, float, str)) and not name.startswith("_")
    }
    told = ", ".join(f"{name}={value!r}" for name, value in sorted(numbers.items()))
    return f"{type(protocol).__name__}({protocol.code!r}, {told})"


class Protocol(ABC):
    """What all protocols have in common, and all that simulations need to know of them."""

    epsilon: float  #: of each client's report

    def __init__(self, code: PolarCode, decoder: Decoder) -> None:
        if not hasattr(decoder, "decode"):
            raise ValueError(f"decoder = {decoder!r}: needs a decoder, such as an SCLDecoder")
        if decoder.code != code:
            raise ValueError(f"decoder = one for {decoder.code!r}: the code here is {code!r}")
        self.code = code
        self.decoder = decoder

    @abstractmethod
    def reports(self, bits: ArrayLike, holds: ArrayLike, rng: Generator | None = None) -> Reals:
        """What each of N clients sends: ``(N, k)`` items, ``(N,)`` whether held, to ``(N, n)``.

        Args:
            bits: the item of each client.
            holds: False for a client that holds nothing, whatever its item.
            rng: source of randomness in simulations. Real reports take that of the operating
                system, which is what None stands for.
        """

    @abstractmethod
    def mean_reports(
        self, bits: ArrayLike, frequency: float, clients: int, rng: Generator
    ) -> Reals:
        """Means of T independent collections of reports: ``(T, k)`` items to ``(T, n)``.

        Args:
            bits: the item of each collection.
            frequency: fraction of clients that hold it; see `ldpcash.holders` for how it is
                rounded.
            clients: N, the number of clients of each collection.
            rng: source of randomness.
        """

    @abstractmethod
    def estimate(self, y: ArrayLike) -> Estimate:
        """The server's side, steps 8 to 12: means ``(..., n)`` to items and frequencies."""

    def honest(self, reports: Reals) -> NDArray[np.bool_]:
        """Whether an honest client could have sent each report: ``(N, n)`` to ``(N,)``.

        A protocol says what it can; here only that reports are finite.
        """
        return np.asarray(np.isfinite(reports).all(axis=1))

    def _means(self, y: ArrayLike) -> Reals:
        """``y`` as an array of floats, if it can be estimated from."""
        means = as_reals("y", y, self.code.n)
        if not np.isfinite(means).all():
            raise ValueError("y holds NaN or infinity: a mean of reports is finite")
        return means

    def _clients(
        self, bits: ArrayLike, holds: ArrayLike
    ) -> tuple[NDArray[np.int8], NDArray[np.bool_]]:
        """The signs of each client's signal, as if it held its item, and whether it does."""
        items = as_items(bits, self.code.k)
        return self.code.signs(items), as_holds(holds, len(items))

    def _correlation(self, bits: Bits, y: Reals) -> Reals:
        """<x, y> with the signal x of each item: the frequency estimate (step 11)."""
        return sum_halves(np.moveaxis(self.code.signs(bits) * y, -1, 0)) / np.sqrt(self.code.n)
