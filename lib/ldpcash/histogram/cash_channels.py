"""The paper's protocol in every channel: a report is a noisy vector of K n numbers."""

from __future__ import annotations

import math
from functools import cached_property
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray
from scipy.special import ndtr

from ldpcash.base.arrays import Bits, Counts, Reals, sum_halves
from ldpcash.base.checks import fraction
from ldpcash.codec.polar import PolarCode
from ldpcash.histogram.channels import Channels
from ldpcash.histogram.hashing import Seeds
from ldpcash.privacy.calibration import gaussian_sigma
from ldpcash.privacy.discrete import discrete_gaussian
from ldpcash.privacy.grid import safe_grid
from ldpcash.protocols.normals import normals


class CashChannels(Channels):
    """The paper's protocol in every channel: Gaussian noise on K n coordinates.

    Args:
        code: what items are sent with.
        epsilon, delta: the privacy of each client's report.
        count: K, how many channels, a power of two.

    >>> rng = np.random.default_rng(1)
    >>> cash = CashChannels(PolarCode.construct(64, 8), epsilon=2.0, count=4)
    >>> sums, items = cash.empty(), np.zeros((1, 8), dtype=np.uint8)
    >>> seeds = np.zeros(3, dtype=np.uint64)  # which `Cash` has no use for
    >>> cash.add(sums, seeds, cash.reports(items, np.array([1]), np.array([0, 0, -1]), seeds, rng))
    >>> sums.shape
    (4, 64)
    >>> signals = cash.signals(cash.draw(items, np.array([2]), np.array([700]), 1000, rng), 1000)
    >>> signals.mean(axis=1).round(1)  # 0 is sent as -1: three channels are empty
    array([-0.1,  0.1, -0.8,  0. ])
    """

    kind = np.float64
    largest = 0
    delta: float

    def __init__(self, code: PolarCode, epsilon: float, count: int, delta: float = 1e-4) -> None:
        super().__init__(code, epsilon, count)
        self.delta = fraction("delta", delta)
        self.shape = (self.count, code.n)
        self.coordinates = code.n
        self.payload = np.dtype(("<f4", self.shape))
        # The signals of items in different channels are sqrt(2) apart, those in one channel as far
        # as codewords can be.
        apart = math.sqrt(2) if self.count > 1 else 1.0
        self.noise = gaussian_sigma(self.epsilon, self.delta, max(code.sensitivity, apart))
        #: where reports lie, as those of `Cash` do; two channels make 2 n coordinates differ
        spread = 2 * code.n if self.count > 1 else code.n
        self.grid = safe_grid(self.epsilon, self.delta, self.noise, code.n, code.max_weight, spread)

    @property
    def live(self) -> NDArray[np.bool_]:
        return np.ones(self.code.n, dtype=np.bool_)

    @cached_property
    def limit(self) -> float:
        """The norm that one honest report in a million exceeds, and that is refused beyond it."""
        return self.grid.largest_norm(self.count * self.code.n)

    def reports(
        self, items: Bits, channel: Counts, who: Counts, seeds: Seeds, rng: Generator | None
    ) -> NDArray[Any]:
        """``(B, K, n)`` numbers, in single precision: whole numbers of steps until the end."""
        steps = discrete_gaussian(self.grid.scale, (len(who), *self.shape), rng)
        held = np.flatnonzero(who >= 0)
        signs = self.code.signs(items)[who[held]].astype(np.int32)
        steps[held, channel[who[held]]] += self.grid.level * signs
        return (steps * self.grid.step).astype(np.float32)

    def honest(self, sent: NDArray[Any]) -> NDArray[np.bool_]:
        # In double precision, which no sum of squares exceeds; NaN is never below.
        rows = sent.reshape(len(sent), self.count * self.code.n)
        squares = np.einsum("ij,ij->i", rows, rows, dtype=np.float64)
        return np.asarray(squares <= self.limit**2)

    def add(self, sums: NDArray[Any], seeds: Seeds, sent: NDArray[Any]) -> None:
        sums += sent.sum(axis=0, dtype=np.float64)

    def draw(
        self, items: Bits, channel: Counts, counts: Counts, clients: int, rng: Generator
    ) -> NDArray[Any]:
        """A sum of Gaussians is one Gaussian (Lemma 3)."""
        sums = normals(self.shape, self.noise * math.sqrt(clients), rng)
        signals = self.code.signs(items) / math.sqrt(self.code.n)
        np.add.at(sums, channel, counts[:, None] * signals)
        return sums

    def signals(self, sums: NDArray[Any], clients: int) -> Reals:
        return np.asarray(sums * (math.sqrt(self.code.n) / clients))

    def means(self, signals: Reals, channels: Counts) -> Reals:
        return np.asarray(signals[channels])

    def estimates(self, signals: Reals, items: Bits, channel: Counts) -> Reals:
        signs = self.code.signs(items)
        return sum_halves((signs * signals[channel]).T) / self.code.n

    def take_out(self, signals: Reals, items: Bits, channel: Counts, frequency: Reals) -> None:
        np.subtract.at(signals, channel, frequency[:, None] * self.code.signs(items))

    def energy(self, signals: Reals) -> Reals:
        return np.asarray(np.square(signals).mean(axis=1))

    def variance(self, frequency: Reals, sums: NDArray[Any], clients: int) -> Reals:
        return np.full(np.shape(frequency), self.noise**2 / clients)

    def p_value(self, estimate: Reals, heard: Reals, sums: NDArray[Any], clients: int) -> Reals:
        return np.asarray(ndtr(-np.asarray(estimate) * math.sqrt(clients) / self.noise))

    def crowding(self, heard: Reals, clients: int) -> Reals:
        return np.zeros_like(heard)
