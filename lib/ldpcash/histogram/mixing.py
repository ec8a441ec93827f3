"""Mixing: a public, keyed permutation of all items, so that text looks random to hash and code.

Words of a language share letters and end in zeros. Sent as they are, their codewords would be
alike, and each would lend its neighbours a little of its frequency. So an item's k bits are mixed
before they are hashed and encoded, and what was decoded is unmixed::

    item -> left half, right half -> right += F(left), left += F(right), right += ...  -> mixed item

That is a Feistel network: each round can be undone, whatever F is. F is a hash under a key that the
plan carries, so clients and server mix alike. Nothing about it is secret.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ldpcash.base.arrays import Bits, as_items
from ldpcash.base.checks import whole_number
from ldpcash.histogram.hashing import GOLDEN, mix

MOST_BITS = 1000  # of an item
_ROUNDS = 8


class Mixing:
    """A permutation of the 2**k items.

    Args:
        k: bits of an item, up to 1000.
        key: a whole number of 64 bits that decides the permutation.

    >>> mixing = Mixing(10, key=1)
    >>> mixed = mixing.mix([[0] * 10, [0] * 9 + [1]])
    >>> mixed
    array([[0, 1, 0, 1, 1, 1, 0, 1, 1, 0],
           [0, 0, 0, 1, 0, 0, 1, 0, 0, 1]], dtype=uint8)
    >>> mixing.unmix(mixed)
    array([[0, 0, 0, 0, 0, 0, 0, 0, 0, 0],
           [0, 0, 0, 0, 0, 0, 0, 0, 0, 1]], dtype=uint8)
    """

    def __init__(self, k: int, key: int) -> None:
        self.k = whole_number("k", k, 1, MOST_BITS)
        start = np.uint64(whole_number("key", key, 0, 2**64 - 1))
        steps = np.arange(1, _ROUNDS + 1, dtype=np.uint64) * GOLDEN
        self._keys = mix(mix(start + steps[:1]) + steps)

    def mix(self, items: ArrayLike) -> Bits:
        """``(M, k)`` bits to as many mixed ones."""
        return self._rounds(items, range(_ROUNDS))

    def unmix(self, mixed: ArrayLike) -> Bits:
        """The items that `mix` makes these of."""
        return self._rounds(mixed, range(_ROUNDS)[::-1])

    def _rounds(self, items: ArrayLike, order: range) -> Bits:
        bits = as_items(items, self.k).copy()
        halves = bits[:, : self.k // 2], bits[:, self.k // 2 :]
        for number in order:
            target, source = halves[(number + 1) % 2], halves[number % 2]
            target ^= _stream(source, target.shape[1], self._keys[number])
        return bits


def _stream(bits: Bits, width: int, key: np.uint64) -> Bits:
    """A hash of each row of bits: ``(M, anything)`` to ``(M, width)`` bits."""
    padded = np.pad(bits, [(0, 0), (0, -bits.shape[1] % 64)])
    words = np.packbits(padded, axis=1).view("<u8").astype(np.uint64)
    state = np.full(len(bits), key)
    for column in words.T:
        state = mix(state ^ mix(column + GOLDEN))
    steps = np.arange(1, -(-width // 64) + 1, dtype=np.uint64) * GOLDEN
    out: NDArray[np.uint8] = mix(state[:, None] + steps).astype("<u8").view(np.uint8)
    return np.unpackbits(out, axis=1)[:, :width]
