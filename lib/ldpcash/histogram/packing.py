"""Strings as items of k bits, and back.

Every letter takes the same number of bits and the end of a string is padded with zeros, so a prefix
of the string is a prefix of the bits::

    "BO", alphabet A to Z, k = 20  ->  letters 2, 15  ->  00010 01111 00000 00000

Letters are numbered from 1 in the order of the alphabet; 0 stands for "no letter any more". Without
an alphabet a string is its bytes in UTF-8, eight bits each: any text, but fewer letters.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ldpcash.base.arrays import Bits, as_bits, bits_of
from ldpcash.base.checks import whole_number

LATIN = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
NO_LETTER = "\ufffd"  # stands where decoded bits are no letter


class Packing:
    """How strings of mixed length become rows of k bits.

    Args:
        k: bits of an item.
        alphabet: the letters that strings may have, each once; None for any text, as UTF-8.
        cut: what to do with a string that does not fit. False, it is an error; True, its first
            letters stand for it (with UTF-8, its first bytes).

    >>> names = Packing(40, LATIN)
    >>> names.longest
    8
    >>> names.unpack(names.pack(["JOHN", "WILLIAM"]))
    ['JOHN', 'WILLIAM']
    """

    def __init__(self, k: int, alphabet: str | None = None, cut: bool = False) -> None:
        self.k = whole_number("k", k, 1)
        self.alphabet = alphabet
        self.cut = bool(cut)
        if alphabet is not None and (
            not alphabet or len(set(alphabet)) < len(alphabet) or "\0" in alphabet
        ):
            raise ValueError(f"alphabet = {alphabet!r}: needs letters, each once, no NUL")
        self.width = 8 if alphabet is None else len(alphabet).bit_length()
        self.longest = self.k // self.width
        if self.longest < 1:
            raise ValueError(f"k = {k!r}: a letter alone takes {self.width} bits")

    def pack(self, strings: Sequence[str]) -> Bits:
        """M strings to ``(M, k)`` bits; a string that cannot be packed is a `ValueError`."""
        if isinstance(strings, str):
            raise ValueError(f"strings = {strings!r}: needs a list of strings, not a single one")
        numbers = self._letters(strings)
        if self.cut:
            numbers = numbers[:, : self.longest]
        long = numbers[:, self.longest :].any(axis=1)
        if long.any():
            first = strings[int(np.flatnonzero(long)[0])]
            raise ValueError(
                f"strings holds {first!r}: k = {self.k} bits hold at most {self.longest}"
                f" {'bytes' if self.alphabet is None else 'letters'} (cut=True shortens)"
            )
        bits = np.zeros((len(strings), self.k), dtype=np.uint8)
        letters = numbers[:, : self.longest]
        used = letters.shape[1] * self.width
        bits[:, :used] = bits_of(letters, self.width).reshape(len(strings), used)
        return bits

    def unpack(self, bits: ArrayLike) -> list[str]:
        """``(M, k)`` bits to M strings, with `NO_LETTER` where bits are no letter.

        >>> Packing(10, LATIN).unpack([[1] * 10])  # there is no letter 31
        ['\ufffd\ufffd']
        """
        rows = as_bits("bits", bits, self.k)[:, : self.longest * self.width]
        letters = rows.reshape(len(rows), self.longest, self.width).astype(np.intp)
        numbers = (letters << np.arange(self.width)[::-1]).sum(axis=-1)
        return [self._string(row) for row in numbers.tolist()]

    def _letters(self, strings: Sequence[str]) -> NDArray[np.intp]:
        """Numbers of the letters, ``(M, longest given)``, 0 behind the end."""
        for string in strings:
            if not isinstance(string, str) or "\0" in string:
                raise ValueError(f"strings holds {string!r}: needs strings without NUL")
        if len(strings) == 0:
            return np.zeros((0, 1), dtype=np.intp)
        if self.alphabet is None:
            raw = np.array([string.encode() for string in strings] + [b"?"])  # one byte at least
            return raw.view(np.uint8).reshape(len(raw), -1)[:-1].astype(np.intp)
        text = np.array([*strings, "?"])
        points = text.view(np.uint32).reshape(len(text), -1)[:-1]
        known, number = self._numbers
        place = np.minimum(np.searchsorted(known, points), len(known) - 1)
        strange = (known[place] != points) & (points != 0)
        if strange.any():
            raise ValueError(
                f"strings holds {chr(int(points[strange][0]))!r}: the letters are {self.alphabet!r}"
            )
        return np.where(points == 0, 0, number[place])

    @cached_property
    def _numbers(self) -> tuple[NDArray[np.uint32], NDArray[np.intp]]:
        """Code points of the alphabet in order, and the number of each letter."""
        points = np.array([ord(letter) for letter in self.alphabet or ""], dtype=np.uint32)
        order = np.argsort(points)
        return points[order], order + 1

    def _string(self, numbers: list[int]) -> str:
        while numbers and numbers[-1] == 0:
            numbers.pop()
        if self.alphabet is None:
            return bytes(numbers).decode(errors="replace").replace("\0", NO_LETTER)
        return "".join(
            self.alphabet[number - 1] if 1 <= number <= len(self.alphabet) else NO_LETTER
            for number in numbers
        )
