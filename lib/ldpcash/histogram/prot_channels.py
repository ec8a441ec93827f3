"""Symbols of the codeword under randomized response, in all channels at once::

codeword -> one of its symbols, masked, under randomized response      the client   `reports`
         -> counts of unmasked symbols, (K, blocks * 2**b)             the server   `add`
         -> means (K, n)                                               the server   `means`
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import ArrayLike, NDArray

from ldpcash.base.arrays import Bits, Counts, Reals, batches
from ldpcash.base.randomness import random_words
from ldpcash.codec.polar import PolarCode
from ldpcash.histogram.channels import Channels
from ldpcash.histogram.hashing import Seeds, public_number_in, public_numbers
from ldpcash.histogram.symbols import SymbolBlocks, SymbolResponse
from ldpcash.protocols.laws import spread_evenly

_BATCH_VALUES = 2**21  # numbers that a server unfolds at once


class ProtChannels(Channels):
    """Symbols of the codeword under randomized response, in all channels at once.

    A client's public seed names, for each channel, a block j of the codeword and a mask of b bits.
    The client sends one symbol: its codeword's at block j of channel h(item), plus that mask, under
    randomized response. Unmasked in its own channel it tells about the item; in every other channel
    it is uniformly random. With b = 1 a symbol is a sign, and this is `Prot` in each channel.

    Args:
        code: what items are sent with: any `PolarCode` for b = 1, a `symbol_code` for b > 1.
        epsilon: the privacy of each client's report.
        count: K, how many channels, a power of two.
        width: b, bits of a symbol.

    >>> from ldpcash.histogram.symbols import symbol_code
    >>> rng = np.random.default_rng(1)
    >>> prot = ProtChannels(symbol_code(8, 2, 8.0), epsilon=2.0, count=4, width=2)
    >>> item = np.zeros((1, 8), dtype=np.uint8)
    >>> prot.codeword_symbols(item)[0, :4]
    array([0, 0, 0, 0], dtype=uint8)
    >>> seeds = np.arange(3, dtype=np.uint64)
    >>> sums = prot.empty()
    >>> prot.add(sums, seeds, prot.reports(np.repeat(item, 3, axis=0), [0, 0, -1], seeds, rng))
    >>> sums.sum(axis=1)  # every report counts in every channel
    array([3, 3, 3, 3])
    >>> y = prot.means(prot.draw(item, [2], [7000], 10_000, rng), 10_000)
    >>> y[:, prot.live].mean(axis=1).round(1)  # 0 is sent as -1: three channels are empty
    array([ 0. , -0. , -0.7,  0. ])
    >>> np.sqrt(prot.variance(np.array([0.7]), 10_000)).round(3)
    array([0.01])
    >>> prot.p_value(np.array([0.0, 0.7]), np.zeros(2), 10_000).round(2)
    array([0.5, 0. ])
    """

    payload = np.dtype("u1")
    kind = np.int64

    def __init__(self, code: PolarCode, epsilon: float, count: int, width: int = 1) -> None:
        super().__init__(code, epsilon, count)
        self._layout = SymbolBlocks(code.n, width)
        self.width = self._layout.width
        if not np.isin(code.info, self._layout.allowed()).all():
            raise ValueError(f"code = {code!r}: not of {width}-bit symbols, see symbol_code")
        self._response = SymbolResponse(self.epsilon, self.width)
        self.symbols = self._response.symbols
        self.largest = self.symbols - 1
        self.blocks = self._layout.count
        self.cells = self.blocks * self.symbols
        self.live = self._layout.live
        self.truth = self._response.truth
        self.noise = self._response.noise

    def codeword_symbols(self, bits: ArrayLike) -> Counts:
        """``(M, k)`` bits to the ``(M, blocks)`` symbols of their codewords."""
        return self._layout.symbols_of(self.code.encode(bits))

    def reports(
        self, bits: ArrayLike, channel: ArrayLike, seeds: Seeds, rng: Generator | None
    ) -> NDArray[Any]:
        """One symbol a client: ``(B,)`` numbers below 2**b. Every choice compares whole numbers."""
        own = np.asarray(channel)
        client = np.arange(len(own))
        # A client that holds nothing sends a random symbol, as most of the others do.
        sent = random_words(own.shape, 8, rng) % self.symbols
        cell = public_number_in(seeds, np.maximum(own, 0)) % self.cells
        block, mask = cell // self.symbols, cell % self.symbols
        truth = self.codeword_symbols(bits)[client, block] ^ mask.astype(np.uint8)
        told = (random_words(own.shape, 64, rng) < self._response.threshold) & (own >= 0)
        return np.where(told, truth, sent)

    def add(self, sums: NDArray[Any], seeds: Seeds, sent: NDArray[Any]) -> None:
        """Unmask every symbol in every channel, and count."""
        start = np.arange(self.count) * self.cells
        for part in batches(len(seeds), _BATCH_VALUES // self.count):
            cell = public_numbers(seeds[part], self.count) & np.uint16(self.cells - 1)
            where = (cell ^ sent[part, None]) + start
            sums += np.bincount(where.ravel(), minlength=sums.size).reshape(sums.shape)

    def means(self, sums: NDArray[Any], clients: int) -> Reals:
        return self._layout.means_of(sums, self.blocks / (self.truth * clients))

    def variance(self, frequency: Reals, clients: int) -> Reals:
        return self._response.variance(frequency, clients)

    def p_value(self, estimate: Reals, others: Reals, clients: int) -> Reals:
        return self._response.p_value(estimate, others, clients)

    def draw(
        self, bits: Bits, channel: ArrayLike, counts: ArrayLike, clients: int, rng: Generator
    ) -> NDArray[Any]:
        """Clients that tell the truth spread over the blocks, all others over all cells."""
        truthful = rng.binomial(np.asarray(counts), self.truth)
        own = np.asarray(channel)
        others = clients - np.bincount(own, truthful, self.count).astype(np.int64)
        sums = spread_evenly(others, self.cells.bit_length() - 1, rng).T.astype(np.int64)
        block = np.arange(self.blocks) * self.symbols
        for part in batches(len(own), _BATCH_VALUES // self.blocks):
            told = spread_evenly(truthful[part], self.blocks.bit_length() - 1, rng).T
            np.add.at(sums, (own[part, None], block + self.codeword_symbols(bits[part])), told)
        return sums
