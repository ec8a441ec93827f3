"""Symbols of a codeword under randomized response: the private report about all channels::

    codeword -> blocks, one symbol of b bits each -> one symbol, masked, under randomized response
             -> counts of unmasked symbols, (K, blocks * 2**b) -> means (K, n), Walsh-Hadamard

A symbol of b bits says as much about an item as optimal local hashing with 2**b values does, if the
code has every sum of the symbol's bits among its coordinates: `symbol_code` finds polar codes that
do. With b = 1 a symbol is a sign, any code will do, and the protocol is `Prot`.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import ArrayLike, NDArray
from scipy.special import betainc

from ldpcash.channels import Channels
from ldpcash.checks import positive, whole_number
from ldpcash.hashing import Seeds, lane_at, lanes
from ldpcash.noise import random_words
from ldpcash.polar import MAX_LENGTH, Bits, PolarCode, reliability
from ldpcash.protocols import Counts, Reals, spread_evenly

MAX_SYMBOL_BITS = 6
_BATCH_VALUES = 2**21  # numbers that a server unfolds at once


def symbol_bits(epsilon: float) -> int:
    """Bits of a symbol that tell the server most: the b with the largest (g - 1) lambda**2.

    >>> [symbol_bits(epsilon) for epsilon in (0.5, 1.0, 2.0, 4.0)]
    [1, 2, 3, 6]
    """
    positive("epsilon", epsilon)
    return min(range(1, MAX_SYMBOL_BITS + 1), key=lambda b: _noise(_truth(epsilon, 2**b), 2**b))


def _truth(epsilon: float, g: int) -> float:
    """lambda: randomized response on g symbols tells the truth so often, a random symbol else.

    The likeliest symbol is then e^eps times as likely as any other. Rounded down, by far more than
    what exp and expm1 are off, to be safe.
    """
    epsilon = min(epsilon, 700.0)  # beyond it exp overflows, and lambda is the same float
    return math.expm1(epsilon) / (math.exp(epsilon) + g - 1) * (1 - 2.0**-48)


def _noise(truth: float, g: int) -> float:
    return 1 / (truth * math.sqrt(g - 1))


def symbol_code(k: int, bits: int, strength: float, n: int | None = None) -> PolarCode:
    """A polar code whose words are made of symbols of b bits, for a signal of given strength.

    For b = 1 it is the ga code. For b > 1, words consist of blocks of 2**b coordinates, and the
    coordinates of a block are all sums of b bits: the block is one symbol, written in the Hadamard
    code. A polar code has such words if each information index has exactly one 0 among the b bits
    of the index that number the coordinates of a block.

    Args:
        k: bits of an item.
        bits: b, of a symbol.
        strength: f sqrt(N) / noise at which the code should work.
        n: length. Unless given, the shortest with at most one information bit in four of the
            indices that symbols allow; but no less than blocks need, and 4096 at most.

    >>> symbol_code(40, 3, 8.0).n
    512
    """
    k = whole_number("k", k, 1)
    bits = whole_number("bits", bits, 1, MAX_SYMBOL_BITS)
    strength = positive("strength", strength)
    width, place = _block(bits)
    if n is None:
        n = width * 2 ** math.ceil(math.log2(4 * k / bits))
        n = min(max(n, width << place), MAX_LENGTH)
    n = whole_number("n", n, 1, MAX_LENGTH)
    index = np.arange(n)
    ones = np.bitwise_count(index >> place & (width - 1))
    allowed = np.flatnonzero(ones == bits - 1)
    if len(allowed) < k:
        raise ValueError(f"n = {n}: a code of {bits}-bit symbols has {len(allowed)} < k = {k} bits")
    live = n - n // width if bits > 1 else n
    rank = reliability(n, "ga", math.sqrt(live) / strength)[allowed]
    return PolarCode(n, allowed[np.argsort(rank, kind="stable")[-k:]])


def _block(bits: int) -> tuple[int, int]:
    """Coordinates of a block, and which bit of their index is the lowest that numbers them.

    Where a block lies matters only to the decoder. These places decode best at k = 40.
    """
    if bits == 1:
        return 1, 0
    return 2**bits, {2: 0, 3: 1}.get(bits, 3)


class ProtChannels(Channels):
    """Symbols of the codeword under randomized response, in all channels at once.

    A client's public seed names, for each channel, a block j of the codeword and a mask of b bits.
    The client sends one symbol: its codeword's at block j of channel h(item), plus that mask, under
    randomized response. Unmasked in its own channel it tells about the item; in every other channel
    it is uniformly random. With b = 1 a symbol is a sign, and this is `Prot` in each channel.

    Args:
        code: what items are sent with: any `PolarCode` for b = 1, a `symbol_code` for b > 1.
        epsilon: the privacy of each client's report.
        channels: K, a power of two.
        bits: b, of a symbol.

    >>> rng = np.random.default_rng(1)
    >>> prot = ProtChannels(symbol_code(8, 2, 8.0), epsilon=2.0, channels=4, bits=2)
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

    def __init__(self, code: PolarCode, epsilon: float, channels: int, bits: int = 1) -> None:
        super().__init__(code, epsilon, channels)
        self.bits = whole_number("bits", bits, 1, MAX_SYMBOL_BITS)
        self.symbols = 2**self.bits
        width, place = _block(self.bits)
        if code.n < width << place:
            raise ValueError(f"code = {code!r}: {self.bits}-bit symbols need n >= {width << place}")
        if width > 1:
            ones = np.bitwise_count(code.info >> place & (width - 1))
            if (ones != self.bits - 1).any():
                raise ValueError(
                    f"code = {code!r}: not of {self.bits}-bit symbols, see symbol_code"
                )
        self._shape = (code.n // (width << place), width, 1 << place)  # of a codeword
        self.blocks = code.n // width
        self.cells = self.blocks * self.symbols
        last = np.zeros(self._shape, dtype=bool)
        last[:, -1] = width > 1  # the sum of no bits
        self.live = ~last.ravel()
        self.truth = _truth(self.epsilon, self.symbols)
        self._threshold = np.uint64(self.truth * 2.0**64)
        self.noise = _noise(self.truth, self.symbols)

    def codeword_symbols(self, bits: ArrayLike) -> Counts:
        """``(M, k)`` bits to the ``(M, blocks)`` symbols of their codewords."""
        words = self.code.encode(bits)
        words = words.reshape(len(words), *self._shape)
        if self.bits > 1:  # coordinate c is the sum of the bits at which c is 0
            words = words[:, :, [self.symbols - 1 - 2**i for i in range(self.bits)]]
        powers = 2 ** np.arange(self.bits, dtype=np.uint8)
        return (words * powers[:, None]).sum(axis=2, dtype=np.uint8).reshape(len(words), -1)

    def reports(
        self, bits: ArrayLike, channel: ArrayLike, seeds: Seeds, rng: Generator | None
    ) -> NDArray[Any]:
        """One symbol a client: ``(B,)`` numbers below 2**b. Every choice compares whole numbers."""
        own = np.asarray(channel)
        client = np.arange(len(own))
        # A client that holds nothing sends a random symbol, as most of the others do.
        sent = random_words(own.shape, 8, rng) % self.symbols
        cell = lane_at(seeds, np.maximum(own, 0)) % self.cells
        block, mask = cell // self.symbols, cell % self.symbols
        truth = self.codeword_symbols(bits)[client, block] ^ mask.astype(np.uint8)
        told = (random_words(own.shape, 64, rng) < self._threshold) & (own >= 0)
        return np.where(told, truth, sent)

    def add(self, sums: NDArray[Any], seeds: Seeds, sent: NDArray[Any]) -> None:
        """Unmask every symbol in every channel, and count."""
        start = np.arange(self.count) * self.cells
        at_once = max(1, _BATCH_VALUES // self.count)
        for first in range(0, len(seeds), at_once):
            part = slice(first, first + at_once)
            cell = lanes(seeds[part], self.count) & np.uint16(self.cells - 1)
            where = (cell ^ sent[part, None]) + start
            sums += np.bincount(where.ravel(), minlength=sums.size).reshape(sums.shape)

    def draw(
        self, bits: Bits, channel: ArrayLike, counts: ArrayLike, clients: int, rng: Generator
    ) -> NDArray[Any]:
        """Clients that tell the truth spread over the blocks, all others over all cells."""
        truthful = rng.binomial(np.asarray(counts), self.truth)
        own = np.asarray(channel)
        others = clients - np.bincount(own, truthful, self.count).astype(np.int64)
        sums = spread_evenly(others, self.cells.bit_length() - 1, rng).T.astype(np.int64)
        block = np.arange(self.blocks) * self.symbols
        at_once = max(1, _BATCH_VALUES // self.blocks)
        for first in range(0, len(own), at_once):
            part = slice(first, first + at_once)
            told = spread_evenly(truthful[part], self.blocks.bit_length() - 1, rng).T
            np.add.at(sums, (own[part, None], block + self.codeword_symbols(bits[part])), told)
        return sums

    def means(self, sums: NDArray[Any], clients: int) -> Reals:
        """Counts of symbols to what they say of each sum of a symbol's bits (Walsh-Hadamard)."""
        # The cells of a block number its symbols; a codeword's coordinates are [high, block, low].
        high, width, low = self._shape
        spectrum: Reals = sums.astype(np.float64)
        half = 1
        while half < self.symbols:
            pairs = spectrum.reshape(self.count, -1, 2, half)
            spectrum = np.stack([pairs[:, :, 0] + pairs[:, :, 1], pairs[:, :, 0] - pairs[:, :, 1]])
            spectrum = np.moveaxis(spectrum, 0, 2)
            half *= 2
        spectrum = spectrum.reshape(self.count, high, low, self.symbols)
        # Coordinate c is the sum number ~c of the bits; a sum of 1 makes the spectrum negative.
        y = spectrum[..., :0:-1] * (-self.blocks / (self.truth * clients))
        y = np.moveaxis(y, -1, 2)
        if width > 1:
            y = np.concatenate([y, np.zeros((self.count, high, 1, low))], axis=2)
        return np.ascontiguousarray(y).reshape(self.count, self.code.n)

    def variance(self, frequency: Reals, clients: int) -> Reals:
        """Of clients that do not hold the item and of clients that do, each a coin of its own."""
        g, held = self.symbols, np.clip(frequency, 0, 1)
        match = self.truth + (1 - self.truth) / g
        own = g**2 * match * (1 - match) / (self.truth * (g - 1)) ** 2
        return np.asarray(((1 - held) * self.noise**2 + held * own) / clients)

    def p_value(self, estimate: Reals, others: Reals, clients: int) -> Reals:
        """Clients that match an item nobody holds are binomial with 1/g.

        Those who hold another item of its channel match it with some probability up to p, and their
        variance is taken to be the largest that this allows.
        """
        g, held = self.symbols, np.clip(others, 0, 1)
        match = min(0.5, self.truth + (1 - self.truth) / g)
        excess = g**2 * match * (1 - match) / (g - 1)
        estimate = np.asarray(estimate) / np.sqrt(1 - held + held * excess)
        matches = clients / g * (1 + estimate * self.truth * (g - 1))
        matches = np.clip(matches, 1e-9, clients)
        return np.asarray(betainc(matches, clients - matches + 1, 1 / g))
