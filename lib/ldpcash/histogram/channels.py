"""Many items at once: each is hashed to one of K channels, and in each channel a protocol runs.

A client runs the protocol for a unique heavy hitter in all K channels, with its item in channel
h(item) and holding nothing in the others. The server collects one mean for each channel::

    item -> h(item), one of K channels, and codeword x
         -> report about all K channels at once        the client   `reports`
         -> sums, (K, cells): what reports add up to    the server  `add`
         -> means y, (K, n): f x plus noise, f the item's frequency, x = +-1    `means`

`ProtChannels` is epsilon-private. Two items change the report in at most two
channels, and there by a factor of (p over 1/g) times (1/g over q), which is p / q = e^eps: K
channels cost no more than one. For the same reason they need not cost more to send. What a client
says in a channel where it holds nothing is uniformly random, so the client may let a generator with
a public seed say it. Its report is the seed and one symbol.

`CashChannels` is (epsilon, delta)-private. Two items in different channels are sqrt(2) apart, less
than two items in the same one can be; but a report is K n real numbers.

Nobody needs to simulate clients to simulate means: `draw` draws the sums from their law. That is
exact for `ProtChannels`; for `CashChannels` it leaves out the grid that reports lie on, and that
they are sent in single precision.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import ArrayLike, NDArray

from ldpcash.base.arrays import Bits, Reals
from ldpcash.base.checks import positive
from ldpcash.codec.polar import PolarCode
from ldpcash.histogram.hashing import Seeds, check_count


class Channels(ABC):
    """What both kinds of channels have in common."""

    noise: float  #: the estimate of a frequency from N reports has standard deviation noise/sqrt(N)
    live: NDArray[np.bool_]  #: (n,): coordinates of the code that carry something
    cells: int  #: what a channel's reports add up to are so many numbers
    kind: type[np.generic]  #: of the sums
    payload: np.dtype[Any]  #: what a client sends beside its seed
    largest: int  #: the largest symbol that a client can send, where symbols are sent
    count: int  #: K
    width: int | None = None  #: bits of a symbol, where symbols are sent
    delta: float | None = None  #: of the promise, if it is not pure epsilon

    def __init__(self, code: PolarCode, epsilon: float, count: int) -> None:
        self.code = code
        self.epsilon = positive("epsilon", epsilon)
        self.count = check_count(count)

    @abstractmethod
    def reports(
        self, bits: ArrayLike, channel: ArrayLike, seeds: Seeds, rng: Generator | None
    ) -> NDArray[Any]:
        """What each of B clients sends beside its seed.

        Args:
            bits: ``(B, k)``, the items.
            channel: ``(B,)``, the channel of each item; -1 for a client that holds nothing.
            seeds: ``(B,)``, each client's public seed.
            rng: the clients' own randomness in simulations; None, that of the operating system.
        """

    @abstractmethod
    def add(self, sums: NDArray[Any], seeds: Seeds, sent: NDArray[Any]) -> None:
        """Add B reports to ``sums``, ``(K, cells)``, in place."""

    @abstractmethod
    def draw(
        self, bits: Bits, channel: ArrayLike, counts: ArrayLike, clients: int, rng: Generator
    ) -> NDArray[Any]:
        """Sums of all reports, from their law (for `Cash`, the continuous one).

        Args:
            bits: ``(M, k)``, the different items.
            channel, counts: ``(M,)``, the channel of each and how many clients hold it.
            clients: N, those that hold nothing too.
            rng: source of randomness.
        """

    @abstractmethod
    def means(self, sums: NDArray[Any], clients: int) -> Reals:
        """Sums to means ``(K, n)``, whose expectation is the sum of f x over the channel's items;
        0 where the code's coordinate is not live."""

    @abstractmethod
    def variance(self, frequency: Reals, clients: int) -> Reals:
        """Variance of the estimate of a frequency from N reports."""

    @abstractmethod
    def p_value(self, estimate: Reals, others: Reals, clients: int) -> Reals:
        """Probability of at least this estimate for an item that nobody holds.

        ``others`` is the known frequency of other items in its channel, which add to its noise.
        """

    def signs(self, bits: Bits) -> Reals:
        """``(M, k)`` bits to ``(M, n)``: 1 as +1, 0 as -1, and 0 where nothing is sent."""
        return np.where(self.live, self.code.signs(bits), 0.0)

    def empty(self) -> NDArray[Any]:
        """The sums of no reports."""
        return np.zeros((self.count, self.cells), dtype=self.kind)
