"""Public randomness: which channel an item belongs to.

Whoever has the seed has the same hash::

    item, k bits -> as words -> parities of some of them, and a shift -> channel     `ChannelHash`
    word -> another word that looks random                                           `mix`
"""

from __future__ import annotations

import numpy as np
from numpy.random import SeedSequence
from numpy.typing import ArrayLike, NDArray

from ldpcash.base.arrays import Bits, as_items
from ldpcash.base.checks import whole_number

Seeds = NDArray[np.uint64]

GOLDEN = np.uint64(0x9E3779B97F4A7C15)  # 2**64 over the golden ratio: SplitMix64's step
_MOST_CHANNELS = 2**14  # numbers of channels are elements of a field: `ldpcash.codec.fields`


class ChannelHash:
    """A public pairwise-independent hash of k bits to [K]: a random affine map of bits.

    For two different items the pair of their channels is uniform over all K**2.

    Args:
        k: bits of an item.
        count: K, how many channels there are, a power of two.
        seed: decides the map; whoever has the seed has the same map.

    >>> ChannelHash(4, 8, seed=1)([[0, 0, 0, 1], [1, 0, 0, 1]])
    array([5, 3])
    """

    def __init__(self, k: int, count: int, seed: int | SeedSequence) -> None:
        self.k = whole_number("k", k, 1)
        self.count = check_count(count)
        rng = np.random.default_rng(seed)
        levels = self.count.bit_length() - 1
        self._matrix = _words(rng.integers(0, 2, (levels, self.k), dtype=np.uint8))
        self._shift = rng.integers(0, 2, levels, dtype=np.uint8)

    def __call__(self, bits: ArrayLike) -> NDArray[np.intp]:
        """``(M, k)`` bits to ``(M,)`` channels."""
        items = _words(as_items(bits, self.k))
        channel = np.zeros(len(items), dtype=np.intp)
        for row, shift in zip(self._matrix, self._shift, strict=True):
            parity = np.bitwise_count(items & row).sum(axis=1, dtype=np.uint8) + shift & 1
            channel = 2 * channel + parity
        return channel


def check_count(count: int) -> int:
    """K as an int, if it is a power of two and not too many.

    >>> check_count(64)
    64
    """
    number = whole_number("count", count, 1, _MOST_CHANNELS)
    if number & (number - 1):
        raise ValueError(f"count = {count!r}: channels need a power of two")
    return number


def _words(bits: Bits) -> Seeds:
    """``(M, k)`` bits as ``(M, words)``."""
    padded = np.pad(bits, [(0, 0), (0, -bits.shape[1] % 64)])
    return np.ascontiguousarray(np.packbits(padded, axis=1)).view(np.uint64)


def mix(words: Seeds) -> Seeds:
    """The last step of the generator SplitMix64: a bijection of words that scrambles them well.

    >>> f"{mix(np.array([GOLDEN]))[0]:x}"  # the first number of SplitMix64 with the seed 0
    'e220a8397b1dcdaf'
    """
    words = (words ^ words >> np.uint64(30)) * np.uint64(0xBF58476D1CE4E5B9)
    words = (words ^ words >> np.uint64(27)) * np.uint64(0x94D049BB133111EB)
    return words ^ words >> np.uint64(31)
