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

    >>> here, there = ReportSum(2), ReportSum(2)
    >>> here.add([[1.0, 0.0], [3.0, 2.0]])
    >>> there.add([[2.0, 4.0]])
    >>> (here + there).mean
    array([2., 2.])
    """

    def __init__(self, n: int) -> None:
        self.total = np.zeros(whole_number("n", n, 1))
        self.count = 0

    def add(self, reports: ArrayLike) -> None:
        """Take in reports, ``(..., n)``."""
        array = np.asarray(reports, dtype=np.float64)
        if array.ndim == 0 or array.shape[-1] != self.total.size:
            raise ValueError(
                f"reports has shape {array.shape}: the last dimension must be {self.total.size}"
            )
        if not np.isfinite(array).all():
            raise ValueError("reports holds NaN or infinity: nothing of it was added")
        array = array.reshape(-1, self.total.size)
        self.total += array.sum(axis=0)
        self.count += len(array)

    def __add__(self, other: ReportSum) -> ReportSum:
        if other.total.size != self.total.size:
            raise ValueError(
                f"n = {other.total.size}: only sums of the same length, {self.total.size},"
                " can be added"
            )
        both = ReportSum(self.total.size)
        both.total = self.total + other.total
        both.count = self.count + other.count
        return both

    @property
    def mean(self) -> Reals:
        """y of step 7: the mean over all clients, those that hold nothing too."""
        if self.count == 0:
            raise ValueError("count = 0: the mean of no reports does not exist")
        return self.total / self.count


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
