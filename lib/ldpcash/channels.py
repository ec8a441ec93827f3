"""Many items at once: each is hashed to one of K channels, and in each channel a protocol runs.

A client runs the protocol for a unique heavy hitter in all K channels, with its item in channel
h(item) and holding nothing in the others. The server collects one mean for each channel::

    item -> h(item), one of K channels, and codeword x
         -> report about all K channels at once        the client   `reports`
         -> sums, (K, cells): what reports add up to    the server  `add`
         -> means y, (K, n): f x plus noise, f the item's frequency, x = +-1    `means`

`ProtChannels`, in `ldpcash.symbols`, is epsilon-private. Two items change the report in at most two
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

import math
from abc import ABC, abstractmethod
from functools import cached_property
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtr

from ldpcash.checks import fraction, positive
from ldpcash.hashing import Seeds, check_channels
from ldpcash.noise import Grid, discrete_gaussian, safe_grid
from ldpcash.normals import normals
from ldpcash.polar import Bits, PolarCode, as_bits
from ldpcash.privacy import gaussian_sigma
from ldpcash.protocols import Reals


class Channels(ABC):
    """What both kinds of channels have in common."""

    noise: float  #: the estimate of a frequency from N reports has standard deviation noise/sqrt(N)
    live: NDArray[np.bool_]  #: (n,): coordinates of the code that carry something
    cells: int  #: what a channel's reports add up to are so many numbers
    kind: type[np.generic]  #: of the sums
    payload: np.dtype[Any]  #: what a client sends beside its seed
    count: int  #: K

    def __init__(self, code: PolarCode, epsilon: float, channels: int) -> None:
        self.code = code
        self.epsilon = positive("epsilon", epsilon)
        self.count = check_channels(channels)

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
        return np.where(self.live, 2.0 * self.code.encode(bits) - 1, 0.0)

    def empty(self) -> NDArray[Any]:
        """The sums of no reports."""
        return np.zeros((self.count, self.cells), dtype=self.kind)


class CashChannels(Channels):
    """The paper's protocol in every channel: Gaussian noise on K n coordinates.

    Args:
        code: what items are sent with.
        epsilon, delta: the privacy of each client's report.
        channels: K, a power of two.

    >>> rng = np.random.default_rng(1)
    >>> cash = CashChannels(PolarCode.construct(64, 8), epsilon=2.0, channels=4)
    >>> sums = cash.empty()
    >>> seeds = np.zeros(3, dtype=np.uint64)  # which `Cash` has no use for
    >>> cash.add(sums, seeds, cash.reports(np.zeros((3, 8)), [0, 0, -1], seeds, rng))
    >>> sums.shape, cash.signs(np.zeros((1, 8))).shape
    ((4, 64), (1, 64))
    >>> y = cash.means(cash.draw(np.zeros((1, 8)), [2], [700], 1000, rng), 1000)
    >>> y.mean(axis=1).round(1)  # 0 is sent as -1: three channels are empty
    array([-0.1,  0.1, -0.8,  0. ])
    """

    kind = np.float64

    def __init__(self, code: PolarCode, epsilon: float, channels: int, delta: float = 1e-4) -> None:
        super().__init__(code, epsilon, channels)
        self.delta = fraction("delta", delta)
        self.cells = code.n
        self.live = np.ones(code.n, dtype=bool)
        self.payload = np.dtype(("<f4", (self.count, code.n)))
        # The signals of items in different channels are sqrt(2) apart, those in one channel as far
        # as codewords can be.
        apart = math.sqrt(2) if self.count > 1 else 1.0
        self.noise = gaussian_sigma(self.epsilon, self.delta, max(code.sensitivity, apart))

    @cached_property
    def grid(self) -> Grid:
        """Where reports lie, as those of `Cash` do; two channels make 2 n coordinates differ."""
        n = self.code.n
        weight = round(n * self.code.sensitivity**2 / 4)
        apart = 2 * n if self.count > 1 else n
        return safe_grid(self.epsilon, self.delta, self.noise, n, weight, apart)

    def reports(
        self, bits: ArrayLike, channel: ArrayLike, seeds: Seeds, rng: Generator | None
    ) -> NDArray[Any]:
        """``(B, K, n)`` numbers, in single precision: whole numbers of steps until the end."""
        own = np.asarray(channel)
        signs = self.signs(as_bits("bits", bits, self.code.k)).astype(np.int32)
        steps = discrete_gaussian(self.grid.scale, (len(own), self.count, self.code.n), rng)
        held = np.flatnonzero(own >= 0)
        steps[held, own[held]] += self.grid.level * signs[held]
        return (steps * self.grid.step).astype(np.float32)

    def add(self, sums: NDArray[Any], seeds: Seeds, sent: NDArray[Any]) -> None:
        sums += sent.sum(axis=0, dtype=np.float64)

    def draw(
        self, bits: Bits, channel: ArrayLike, counts: ArrayLike, clients: int, rng: Generator
    ) -> NDArray[Any]:
        """A sum of Gaussians is one Gaussian (Lemma 3)."""
        scale = self.noise * math.sqrt(clients)
        sums = normals((self.count, self.cells), scale, rng)
        signals = self.signs(bits) / math.sqrt(self.code.n)
        np.add.at(sums, np.asarray(channel), np.asarray(counts)[:, None] * signals)
        return sums

    def means(self, sums: NDArray[Any], clients: int) -> Reals:
        return np.asarray(sums * (math.sqrt(self.code.n) / clients))

    def variance(self, frequency: Reals, clients: int) -> Reals:
        return np.full(np.shape(frequency), self.noise**2 / clients)

    def p_value(self, estimate: Reals, others: Reals, clients: int) -> Reals:
        return np.asarray(ndtr(-np.asarray(estimate) * math.sqrt(clients) / self.noise))
