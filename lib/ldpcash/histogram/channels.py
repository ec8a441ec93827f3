"""Many items at once: each is hashed to one of K channels, and in each channel a protocol runs.

A client runs the protocol for a unique heavy hitter in all K channels, with its item in channel
h(item) and holding nothing in the others. The server finds one mean for each channel::

    item -> h(item), one of K channels, and codeword x
         -> report about all K channels at once              the client   `reports`
         -> sums, that reports add up to                     the server   `add`
         -> signals, all channels together                   the server   `signals`
         -> means y, (n,) each: f x plus noise               the server   `means`
         -> signals without the items that were found        the server   `take_out`

`ProtChannels` is epsilon-private: given its public seed, a client's report is randomized response
on one symbol of its codeword. What it says about channels that its item is not in is uniformly
random, so K channels cost no more privacy than one, and no more bytes.

`CashChannels` is (epsilon, delta)-private. Two items in different channels are sqrt(2) apart, less
than two items in the same one can be; but a report is K n real numbers.

Nobody needs to simulate clients to simulate sums: `draw` draws them from their law. That is exact
for `ProtChannels`; for `CashChannels` it leaves out the grid that reports lie on, and that they are
sent in single precision.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from functools import cached_property
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from ldpcash.base.arrays import Bits, Counts, Reals
from ldpcash.base.checks import positive, real_number
from ldpcash.codec.polar import PolarCode
from ldpcash.histogram.hashing import Seeds, check_count


class Channels(ABC):
    """What both kinds of channels have in common."""

    noise: float  #: the estimate of a frequency from N reports has standard deviation noise/sqrt(N)
    kind: type[np.generic]  #: of the sums
    shape: tuple[int, ...]  #: of the sums
    payload: np.dtype[Any]  #: what a client sends beside its ticket
    coordinates: int  #: that a codeword is heard at, counted as often as it is
    apart: bool = True  #: whether no channel hears anything of another
    largest: int  #: the largest symbol that a client can send, where symbols are sent
    count: int  #: K
    width: int | None = None  #: bits of a symbol, where symbols are sent
    delta: float | None = None  #: of the promise, if it is not pure epsilon
    blank: bool = False  #: whether clients may hand in a blank

    def __init__(self, code: PolarCode, epsilon: float, count: int, empty: float = 0.0) -> None:
        self.code = code
        self.epsilon = positive("epsilon", epsilon)
        self.count = check_count(count)
        self.empty_share = real_number("empty", empty, 0, 1)

    @abstractmethod
    def reports(
        self, items: Bits, channel: Counts, who: Counts, seeds: Seeds, rng: Generator | None
    ) -> NDArray[Any]:
        """What each of B clients sends beside its ticket.

        Args:
            items: ``(M, k)``, the different items.
            channel: ``(M,)``, the channel of each.
            who: ``(B,)``, which of them each client holds; -1 for nothing.
            seeds: ``(B,)``, of the clients' tickets.
            rng: the clients' own randomness in simulations; None, that of the operating system.
        """

    @abstractmethod
    def honest(self, sent: NDArray[Any]) -> NDArray[np.bool_]:
        """Whether an honest client could have sent each of B payloads: ``(B,)``.

        For `ProtChannels` that is certain. `CashChannels` refuses one honest report in a million.
        """

    @abstractmethod
    def add(self, sums: NDArray[Any], seeds: Seeds, sent: NDArray[Any]) -> None:
        """Add B honest reports to ``sums`` in place."""

    @abstractmethod
    def draw(
        self, items: Bits, channel: Counts, counts: Counts, clients: int, rng: Generator
    ) -> NDArray[Any]:
        """Sums of all reports, from their law (for `Cash`, the continuous one).

        Args:
            items: ``(M, k)``, the different items.
            channel, counts: ``(M,)``, the channel of each and how many clients hold it.
            clients: N, those that hold nothing too.
            rng: source of randomness.
        """

    @abstractmethod
    def signals(self, sums: NDArray[Any], clients: int) -> Reals:
        """Sums to what all channels say, scaled so that each item adds f and minus f to it."""

    @abstractmethod
    def means(self, signals: Reals, channels: Counts) -> Reals:
        """What some of the channels say, ``(C, n)``: expected is the sum of f x over the items of
        each, x = +-1, times how often a coordinate is heard; 0 where the code has nothing there."""

    @abstractmethod
    def estimates(self, signals: Reals, items: Bits, channel: Counts) -> Reals:
        """How frequent items look: ``(M, k)`` and their channels to ``(M,)``."""

    @abstractmethod
    def take_out(self, signals: Reals, items: Bits, channel: Counts, frequency: Reals) -> None:
        """Subtract items, ``(M, k)``, of these frequencies from ``signals``, in place."""

    @abstractmethod
    def energy(self, signals: Reals) -> Reals:
        """Mean square of what each channel says: ``(K,)``. That is the variance of a coordinate,
        and the sum of f^2 over all items that were not taken out."""

    @abstractmethod
    def variance(self, frequency: Reals, sums: NDArray[Any], clients: int) -> Reals:
        """Variance of the estimate of a frequency from N reports, by their randomness alone."""

    @abstractmethod
    def p_value(self, estimate: Reals, heard: Reals, sums: NDArray[Any], clients: int) -> Reals:
        """Probability of at least this estimate for an item that nobody holds.

        ``heard`` is what known items added to it before they were taken out.
        """

    @abstractmethod
    def crowding(self, heard: Reals, clients: int) -> Reals:
        """Variance that known items add to an estimate to which they added ``heard``."""

    @property
    @abstractmethod
    def live(self) -> NDArray[np.bool_]:
        """``(n,)``: coordinates of the code that carry something."""

    @cached_property
    def alike(self) -> float:
        """Mean square of the correlation of two random codewords, over live coordinates.

        Words of a linear code agree in a coordinate by a fair coin, and coordinates that are the
        same sum of bits share their coin.
        """
        columns = self.code.encode(np.eye(self.code.k, dtype=np.uint8))[:, self.live]
        packed = np.ascontiguousarray(np.packbits(columns, axis=0).T)
        rows = packed.view(np.dtype((np.void, packed.shape[1]))).ravel()
        counts = np.unique(rows, return_counts=True)[1].astype(np.float64)
        return float((counts**2).sum() / counts.sum() ** 2)

    def empty(self) -> NDArray[Any]:
        """The sums of no reports."""
        return np.zeros(self.shape, dtype=self.kind)
