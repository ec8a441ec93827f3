"""Symbols of a codeword: what a report of `ProtChannels` carries, and how much it tells.

A symbol of b bits says as much about an item as optimal local hashing with g = 2**b values does, if
the code has every sum of the symbol's bits among its coordinates::

    codeword -> blocks, a symbol of b bits each               `SymbolBlocks.symbols_of`
    symbol   -> the same, or a random one                     `SymbolResponse`
    counts of symbols in each block -> means of coordinates   `SymbolBlocks.means_of`

`symbol_code` finds polar codes with such words. With b = 1 a symbol is a sign, and any code will
do.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import betainc

from ldpcash.base.arrays import Bits, Counts, Reals
from ldpcash.base.checks import positive, whole_number
from ldpcash.codec.construction import reliability
from ldpcash.codec.polar import PolarCode

MAX_SYMBOL_WIDTH = 6
MAX_LENGTH = 4096  # of codes for channels, of which a server has sums of each


class SymbolResponse:
    """Randomized response on g = 2**b symbols: the truth, or a random symbol; and its statistics.

    Args:
        epsilon: its privacy.
        width: b, bits of a symbol.

    >>> response = SymbolResponse(2.0, 2)
    >>> round(response.truth, 3), round(response.noise, 3)
    (0.615, 0.939)
    >>> np.sqrt(response.variance(np.array([0.7]), 10_000)).round(3)
    array([0.01])
    >>> response.p_value(np.array([0.0, 0.7]), np.zeros(2), 10_000).round(2)
    array([0.5, 0. ])
    """

    def __init__(self, epsilon: float, width: int) -> None:
        g = 2**width
        # Beyond 700 exp overflows, and lambda is the same float. It is rounded down, by far more
        # than what exp and expm1 are off, to be safe.
        bounded = min(positive("epsilon", epsilon), 700.0)
        safe = 1 - 2.0**-48
        self.symbols = g
        #: lambda: how often the truth is told, a random symbol else. The likeliest symbol is then
        #: e^eps times as likely as any other.
        self.truth = math.expm1(bounded) / (math.exp(bounded) + g - 1) * safe
        self.threshold = np.uint64(self.truth * 2.0**64)  #: the truth, if a random word is below it
        self.match = self.truth + (1 - self.truth) / g  #: how often the right symbol is sent
        self.noise = 1 / (self.truth * math.sqrt(g - 1))  #: see `Channels.noise`

    def variance(self, frequency: Reals, clients: int) -> Reals:
        """Variance of the estimate of a frequency from N reports.

        Of clients that do not hold the item and of clients that do, each a coin of its own.
        """
        g, held = self.symbols, np.clip(frequency, 0, 1)
        own = g**2 * self.match * (1 - self.match) / (self.truth * (g - 1)) ** 2
        return np.asarray(((1 - held) * self.noise**2 + held * own) / clients)

    def p_value(self, estimate: Reals, others: Reals, clients: int) -> Reals:
        """Probability of at least this estimate for an item that nobody holds.

        Clients that match such an item are binomial with 1/g. Those who hold another item of its
        channel, a known fraction ``others``, match it with some probability up to p, and their
        variance is taken to be the largest that this allows.
        """
        g, held = self.symbols, np.clip(others, 0, 1)
        match = min(0.5, self.match)
        excess = g**2 * match * (1 - match) / (g - 1)
        estimate = np.asarray(estimate) / np.sqrt(1 - held + held * excess)
        matches = clients / g * (1 + estimate * self.truth * (g - 1))
        matches = np.clip(matches, 1e-9, clients)
        return np.asarray(betainc(matches, clients - matches + 1, 1 / g))


def best_symbol_width(epsilon: float) -> int:
    """Bits of a symbol that tell the server most: the b with the least noise.

    >>> [best_symbol_width(epsilon) for epsilon in (0.5, 1.0, 2.0, 4.0)]
    [1, 2, 3, 6]
    """
    return min(range(1, MAX_SYMBOL_WIDTH + 1), key=lambda b: SymbolResponse(epsilon, b).noise)


class SymbolBlocks:
    """Where the symbols of a codeword lie.

    For b > 1, words consist of blocks of 2**b coordinates, and the coordinates of a block are all
    sums of b bits: the block is one symbol, written in the Hadamard code. A polar code has such
    words if each information index has exactly one 0 among the b bits of the index that number the
    coordinates of a block. For b = 1 a block is one coordinate.

    Args:
        n: length of the code.
        width: b, bits of a symbol.

    >>> blocks = SymbolBlocks(16, 2)
    >>> blocks.count, blocks.allowed().tolist()
    (4, [1, 2, 5, 6, 9, 10, 13, 14])
    >>> words = PolarCode(16, [13, 14]).encode([[0, 0], [1, 0]])
    >>> blocks.symbols_of(words).tolist()
    [[0, 0, 0, 0], [2, 2, 2, 2]]
    """

    def __init__(self, n: int, width: int) -> None:
        self.width = whole_number("width", width, 1, MAX_SYMBOL_WIDTH)
        self.n = n
        self.size, self._place = self._layout(self.width)
        self.least = self.size << self._place  # the length of the shortest code
        if n < self.least:
            raise ValueError(f"n = {n!r}: {width}-bit symbols need n >= {self.least}")
        self._shape = (n // self.least, self.size, 1 << self._place)  # of a codeword
        self.count = n // self.size
        last = np.zeros(self._shape, dtype=bool)
        last[:, -1] = self.size > 1  # the sum of no bits
        self.live = ~last.ravel()  #: (n,): coordinates that carry something

    @staticmethod
    def _layout(width: int) -> tuple[int, int]:
        """Coordinates of a block, and which bit of their index is the lowest that numbers them.

        Where a block lies matters only to the decoder. These places decode best at k = 40.
        """
        return (1, 0) if width == 1 else (2**width, {2: 0, 3: 1}.get(width, 3))

    @classmethod
    def shortest(cls, k: int, width: int) -> int:
        """The length with at most one information bit in four of the indices that symbols allow.

        It is no less than blocks need, and 4096 at most.

        >>> SymbolBlocks.shortest(40, 3)
        512
        """
        size, place = cls._layout(width)
        return min(max(size * 2 ** math.ceil(math.log2(4 * k / width)), size << place), MAX_LENGTH)

    def allowed(self) -> NDArray[np.intp]:
        """The indices that may carry information."""
        if self.size == 1:
            return np.arange(self.n)
        ones = np.bitwise_count(np.arange(self.n) >> self._place & (self.size - 1))
        return np.flatnonzero(ones == self.width - 1)

    def symbols_of(self, words: Bits) -> Counts:
        """``(M, n)`` codewords to their ``(M, blocks)`` symbols."""
        words = words.reshape(len(words), *self._shape)
        if self.width > 1:  # coordinate c is the sum of the bits at which c is 0
            words = words[:, :, [self.size - 1 - 2**i for i in range(self.width)]]
        powers = 2 ** np.arange(self.width, dtype=np.uint8)
        return (words * powers[:, None]).sum(axis=2, dtype=np.uint8).reshape(len(words), -1)

    def means_of(self, counts: NDArray[Any], scale: float) -> Reals:
        """Counts ``(K, blocks * 2**b)`` of symbols to what they say of each coordinate, ``(K, n)``.

        That is a Walsh-Hadamard transform of every block, times ``scale``; 0 where a coordinate is
        not live.

        >>> SymbolBlocks(2, 1).means_of(np.array([[1, 5, 4, 2]]), 0.5)  # zeros and ones at 2 places
        array([[ 2., -1.]])
        """
        # The cells of a block number its symbols; a codeword's coordinates are [high, block, low].
        high, _, low = self._shape
        rows, symbols = len(counts), 2**self.width
        spectrum: Reals = counts.astype(np.float64)
        half = 1
        while half < symbols:
            pairs = spectrum.reshape(rows, -1, 2, half)
            spectrum = np.stack([pairs[:, :, 0] + pairs[:, :, 1], pairs[:, :, 0] - pairs[:, :, 1]])
            spectrum = np.moveaxis(spectrum, 0, 2)
            half *= 2
        spectrum = spectrum.reshape(rows, high, low, symbols)
        # Coordinate c is the sum number ~c of the bits; a sum of 1 makes the spectrum negative.
        y = np.moveaxis(spectrum[..., :0:-1] * -scale, -1, 2)
        if self.size > 1:
            y = np.concatenate([y, np.zeros((rows, high, 1, low))], axis=2)
        return np.ascontiguousarray(y).reshape(rows, self.n)


def symbol_code(k: int, width: int, strength: float, n: int | None = None) -> PolarCode:
    """A polar code whose words are made of symbols of b bits, for a signal of given strength.

    Args:
        k: bits of an item.
        width: b, bits of a symbol; for b = 1 it is the ga code.
        strength: f sqrt(N) / noise at which the code should work.
        n: length, `SymbolBlocks.shortest` unless given.

    >>> symbol_code(40, 3, 8.0).n
    512
    """
    k = whole_number("k", k, 1)
    width = whole_number("width", width, 1, MAX_SYMBOL_WIDTH)
    strength = positive("strength", strength)
    n = SymbolBlocks.shortest(k, width) if n is None else whole_number("n", n, 1, MAX_LENGTH)
    blocks = SymbolBlocks(n, width)
    allowed = blocks.allowed()
    if len(allowed) < k:
        raise ValueError(
            f"n = {n}: a code of {width}-bit symbols has {len(allowed)} < k = {k} bits"
        )
    rank = reliability(n, "ga", math.sqrt(np.count_nonzero(blocks.live)) / strength)[allowed]
    return PolarCode(n, allowed[np.argsort(rank, kind="stable")[-k:]])
