"""Codes whose words are made of symbols, each written in the Hadamard code.

The n coordinates of such a code are blocks of 2**m. The coordinates of a block are all sums of m
bits, so a block says m bits in the longest and most robust way there is: any two different symbols
differ in half of its coordinates. A polar code has such words if each index that carries
information has exactly one 0 among its last m bits: that 0 says which bit of a symbol it is, and
the bits before it are an index of the polar code that the symbols themselves are words of::

    u -> symbols of m bits, polar encoded among themselves -> each in the Hadamard code of 2**m

`hadamard_code` is one block, `code_of_symbols` many. `SymbolDecoder` decodes both, block by block.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from ldpcash.base.arrays import Bits, Counts, Reals
from ldpcash.base.checks import whole_number
from ldpcash.codec.construction import code_length
from ldpcash.codec.crc import with_checks
from ldpcash.codec.polar import PolarCode

MAX_SYMBOL = 16  # bits: a block of 65536 coordinates is a whole code
_STRENGTH = 1.15**2  # clients that codes are made for, over those that suffice for long codes
_CHECKS = 6  # of a CRC; more take more strength than they give


def hadamard_code(k: int) -> PolarCode:
    """The Hadamard code: all 2**k sums of k bits, one of them empty.

    >>> hadamard_code(2).codebook()
    array([[0, 0, 0, 0],
           [1, 0, 1, 0],
           [1, 1, 0, 0],
           [0, 1, 1, 0]], dtype=uint8)
    """
    n = 2 ** whole_number("k", k, 1, MAX_SYMBOL)
    return PolarCode(n, [n - 1 - 2**place for place in range(n.bit_length() - 1)])


def code_of_symbols(k: int, n: int = 4096, width: int = 6) -> PolarCode:
    """A polar code of symbols for long items, with a CRC of 6 bits that guides the decoder.

    An information bit goes where it makes the fewest errors, as `symbol_energies` tells.

    Args:
        k: bits of an item.
        n: length, a power of two.
        width: m, bits of a symbol.

    >>> code = code_of_symbols(40, 1024)
    >>> code.n, code.k, symbol_width(code)
    (1024, 40, 6)
    """
    k = whole_number("k", k, 1)
    n = code_length(n)
    size = 2 ** whole_number("width", width, 2, MAX_SYMBOL)
    blocks, needed = n // size, k + _CHECKS
    room = max(0, blocks * width - _CHECKS)
    if k > room:
        raise ValueError(f"k = {k}: {blocks} symbols of {width} bits have room for {room}")
    energies = symbol_energies(blocks, width, 2 * math.log(2) * k * _STRENGTH)

    def errors(bits: NDArray[np.intp]) -> Reals:
        """Of 2**bits orthogonal signals, by the union bound."""
        return np.minimum(1, (2.0**bits - 1) * ndtr(-np.sqrt(energies / 2)))

    bits = np.zeros(blocks, dtype=np.intp)
    for _ in range(needed):
        cost = errors(bits + 1) - errors(bits) - 1e-12 * energies  # of equals, the most reliable
        cost[bits == width] = np.inf
        bits[cost.argmin()] += 1
    info = [
        size * (block + 1) - 1 - 2**place
        for block, count in enumerate(bits.tolist())
        for place in range(count)
    ]
    return with_checks(PolarCode(n, sorted(info)), _CHECKS)


def symbol_energies(blocks: int, width: int, energy: float) -> Reals:
    """How strongly each symbol of u is received once those before it are known: ``(blocks,)``.

    Every channel is taken for one of 2**m orthogonal signals of some energy E in noise of
    variance 1. A step of the polar transform makes a better one of two such channels, of energy
    2 E, and a worse one: together they tell as much as both did before, 2 C(E) = C(2 E) + C(E').
    What a channel tells is about C(E) = K (1 - exp(-t - 0.35 t**2)), K = m log 2, t = E / (2 K),
    in nats: E / 2 at first, K in the end, and for m = 6 within 0.01 K of the truth.

    Args:
        blocks: how many symbols, a power of two.
        width: m, bits of a symbol.
        energy: of a whole word.

    >>> symbol_energies(4, 6, 100.0).round(1)
    array([ 21.1,  46.2,  48.9, 100. ])
    """
    bend, most = 0.35, width * math.log(2)

    def told(energies: Reals) -> Reals:
        t = energies / (2 * most)
        return most * -np.expm1(-t - bend * t**2)

    def energy_that_tells(nats: Reals) -> Reals:
        log_rest = np.log1p(-np.minimum(nats / most, 1 - 1e-15))
        return most * (np.sqrt(1 - 4 * bend * log_rest) - 1) / bend

    if whole_number("blocks", blocks, 1) & (blocks - 1):
        raise ValueError(f"blocks = {blocks!r}: needs a power of two")
    energies = np.array([energy / blocks])
    while len(energies) < blocks:
        worse = energy_that_tells(np.maximum(2 * told(energies) - told(2 * energies), 0))
        energies = np.stack([worse, 2 * energies], axis=-1).ravel()
    return energies


def symbol_width(code: PolarCode) -> int:
    """m, the bits of a code's symbols, as many as possible; 1 if its words are not made of any.

    >>> symbol_width(hadamard_code(8)), symbol_width(PolarCode.construct(64, 8))
    (8, 1)
    """
    indices = np.array([*code.info, *code.dynamic])
    for width in range(min(code.n.bit_length() - 1, MAX_SYMBOL), 1, -1):
        low = indices & (1 << width) - 1
        if (np.bitwise_count(low) == width - 1).all():
            return width
    return 1


def place_of(index: int, width: int) -> tuple[int, int]:
    """Which symbol of u an index belongs to, and which of its bits it is.

    >>> place_of(4 * 16 + 0b1101, 4)
    (4, 1)
    """
    block, low = divmod(index, 1 << width)
    return block, ((1 << width) - 1 - low).bit_length() - 1


def symbols_of(words: Bits, width: int) -> Counts:
    """``(N, n)`` codewords to their ``(N, blocks)`` symbols.

    >>> symbols_of(hadamard_code(3).encode([[1, 0, 1]]), 3)
    array([[5]])
    """
    size = 1 << width
    places = np.arange(width)
    blocks = words.reshape(len(words), words.shape[1] // size, size)
    bits = blocks[:, :, size - 1 - (1 << places)]
    return (bits.astype(np.intp) << places).sum(axis=2)


def walsh_hadamard(values: NDArray[Any]) -> NDArray[Any]:
    """The Walsh-Hadamard transform along the middle axis, in place: ``(blocks, 2**m, lanes)``.

    What is at s becomes the sum over all t of (-1)**(parity of s & t) times what is at t.

    >>> walsh_hadamard(np.array([[[1.0], [2.0], [0.0], [0.0]]])).ravel().tolist()
    [3.0, -1.0, 3.0, -1.0]
    """
    blocks, size, lanes = values.shape
    half = 1
    while half < size:
        pairs = values.reshape(blocks, size // (2 * half), 2, half, lanes)
        difference = pairs[:, :, 0] - pairs[:, :, 1]
        pairs[:, :, 0] += pairs[:, :, 1]
        pairs[:, :, 1] = difference
        half *= 2
    return values
