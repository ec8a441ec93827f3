"""The paper's protocol in every channel: a report is a noisy vector of K n numbers."""

from __future__ import annotations

import math
from functools import cached_property
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtr

from ldpcash.base.arrays import Bits, Reals, as_bits
from ldpcash.base.checks import fraction
from ldpcash.codec.polar import PolarCode
from ldpcash.histogram.channels import Channels
from ldpcash.histogram.hashing import Seeds
from ldpcash.privacy.calibration import gaussian_sigma
from ldpcash.privacy.discrete import discrete_gaussian
from ldpcash.privacy.grid import Grid, safe_grid
from ldpcash.protocols.normals import normals


class CashChannels(Channels):
    """The paper's protocol in every channel: Gaussian noise on K n coordinates.

    Args:
        code: what items are sent with.
        epsilon, delta: the privacy of each client's report.
        count: K, how many channels, a power of two.

    >>> rng = np.random.default_rng(1)
    >>> cash = CashChannels(PolarCode.construct(64, 8), epsilon=2.0, count=4)
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
    largest = 0
    delta: float

    def __init__(self, code: PolarCode, epsilon: float, count: int, delta: float = 1e-4) -> None:
        super().__init__(code, epsilon, count)
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
        n, weight = self.code.n, self.code.max_weight
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
