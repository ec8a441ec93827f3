"""Strings as items of k bits, and back.

Every letter takes the same number of bits and the end of a string is padded with zeros, so a prefix
of the string is a prefix of the bits::

    "BO", alphabet A to Z, k = 20  ->  letters 2, 15  ->  00010 01111 00000 00000

Letters are numbered from 1 in the order of the alphabet; 0 stands for "no letter any more". Without
an alphabet a string is its bytes in UTF-8, eight bits each: any text, but fewer letters.

Unicode can write a letter as one character or as a base and marks. Strings and alphabets are taken
in the form NFC, one character where there is one, so that a word is one item however it was typed.
Where marks remain, a cut leaves them with their base. It does part what belongs together in other
ways: the two characters of a flag, emoji that are joined or have a skin tone, the old letters of
Korean. And characters newer than the tables of the running Python (`unicodedata`) stay as they are.

A string is a client's secret. No error here says what it is, only where it stands, how long it is
and what is wrong with it. The packing itself is public, and clients and server need the same.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ldpcash.base.arrays import Bits, as_bits, bits_of
from ldpcash.base.checks import one_of, whole_number

LATIN = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
NO_LETTER = "\ufffd"  # stands where decoded bits are no letter


@dataclass(frozen=True)
class Packing:
    """How strings of mixed length become rows of k bits.

    Args:
        k: bits of an item.
        alphabet: the letters that strings may have, each once; None for any text, as UTF-8.
        cut: what to do with a string that does not fit. False, it is an error; True, its first
            letters stand for it, as many as fit whole.

    >>> names = Packing(40, LATIN)
    >>> names.longest
    8
    >>> names.unpack(names.pack(["JOHN", "WILLIAM"]))
    ['JOHN', 'WILLIAM']
    """

    k: int
    alphabet: str | None = None
    cut: bool = False

    def __post_init__(self) -> None:
        checked = {
            "k": whole_number("k", self.k, 1),
            "alphabet": None if self.alphabet is None else _as_alphabet(self.alphabet),
            "cut": bool(one_of("cut", self.cut, (False, True))),
        }
        for name, value in checked.items():  # plain, whatever kind was given
            object.__setattr__(self, name, value)
        if self.longest < 1:
            raise ValueError(f"k = {self.k!r}: a letter alone takes {self.width} bits")

    @property
    def width(self) -> int:
        """Bits of a letter, or of a byte of UTF-8.

        >>> Packing(40, LATIN).width
        5
        """
        return 8 if self.alphabet is None else len(self.alphabet).bit_length()

    @property
    def longest(self) -> int:
        """How many letters fit, or bytes of UTF-8."""
        return self.k // self.width

    def to_dict(self) -> dict[str, Any]:
        """The public parameters: plain values, which JSON has too. `from_dict` is the way back.

        >>> Packing(40, "ab", cut=True).to_dict()
        {'k': 40, 'alphabet': 'ab', 'cut': True}
        """
        return asdict(self)

    @classmethod
    def from_dict(cls, public: Mapping[str, Any]) -> Packing:
        """The packing with these public parameters, all of them and no other.

        >>> names = Packing(40, LATIN, cut=True)
        >>> Packing.from_dict(names.to_dict()) == names
        True
        """
        if not isinstance(public, Mapping) or set(public) != {"k", "alphabet", "cut"}:
            raise ValueError(f"public = {public!r}: needs k, alphabet and cut, and nothing else")
        return cls(**public)

    def pack(self, strings: Iterable[str]) -> Bits:
        """M strings to ``(M, k)`` bits; a string that cannot be packed is a `ValueError`.

        >>> Packing(8, "né").pack(["né", "ne\u0301"])  # typed in two ways
        array([[0, 1, 1, 0, 0, 0, 0, 0],
               [0, 1, 1, 0, 0, 0, 0, 0]], dtype=uint8)
        """
        texts = [self._fitting(number, text) for number, text in enumerate(_as_texts(strings))]
        bits = np.zeros((len(texts), self.k), dtype=np.uint8)
        letters = self._letters(texts)
        used = letters.shape[1] * self.width
        bits[:, :used] = bits_of(letters, self.width).reshape(len(texts), used)
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

    def _fitting(self, number: int, text: str) -> str:
        """The text, or if it is too long and may be cut, as many of its first letters as fit."""
        if self.alphabet is not None and not self._known.issuperset(text):
            raise ValueError(
                f"strings[{number}] has a letter that is none of the alphabet {self.alphabet!r}"
            )
        size = len(text if self.alphabet is not None else text.encode())
        if size <= self.longest:
            return text
        unit = "bytes" if self.alphabet is None else "letters"
        room = f"k = {self.k} bits hold at most {self.longest} {unit}"
        if not self.cut:
            raise ValueError(f"strings[{number}] has {size} {unit}: {room} (cut=True shortens)")
        end = self.longest
        if self.alphabet is None:  # whole characters of so many bytes
            end = len(text[:end].encode()[:end].decode(errors="ignore"))
        while end > 0 and unicodedata.category(text[end]).startswith("M"):
            end -= 1  # what is cut off would begin with marks of the letter before it
        if end == 0:
            raise ValueError(f"strings[{number}] has a first letter that does not fit: {room}")
        return text[:end]

    def _letters(self, texts: list[str]) -> NDArray[np.intp]:
        """Numbers of the letters, ``(M, longest given)``, 0 behind the end."""
        if len(texts) == 0:
            return np.zeros((0, 1), dtype=np.intp)
        if self.alphabet is None:
            raw = np.array([text.encode() for text in texts] + [b"?"])  # one byte at least
            return raw.view(np.uint8).reshape(len(raw), -1)[:-1].astype(np.intp)
        points = np.array([*texts, "?"]).view(np.uint32).reshape(len(texts) + 1, -1)[:-1]
        known, number = self._numbers
        place = np.minimum(np.searchsorted(known, points), len(known) - 1)
        return np.where(points == 0, 0, number[place])

    @cached_property
    def _known(self) -> frozenset[str]:
        return frozenset(self.alphabet or "")

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


def _as_alphabet(alphabet: str) -> str:
    """The alphabet in the form NFC, if that has letters, each once."""
    letters = _normal(alphabet) if isinstance(alphabet, str) else ""
    if not letters or len(set(letters)) < len(letters) or not _is_text(letters):
        raise ValueError(f"alphabet = {alphabet!r}: needs letters, each once, no NUL")
    return letters


def _as_texts(strings: Iterable[str]) -> list[str]:
    """A list of plain strings in the form NFC, if all are text without NUL."""
    try:
        given = iter(strings)
    except TypeError:
        given = None
    if given is None or isinstance(strings, (str, bytes, bytearray)):
        raise ValueError(f"strings is a single {type(strings).__name__}: needs a list of strings")
    texts = []
    for number, string in enumerate(given):
        if not isinstance(string, str):
            raise ValueError(f"strings[{number}] is no string, but {type(string).__name__}")
        text = _normal(string)
        if not _is_text(text):
            raise ValueError(f"strings[{number}] has NUL or half a surrogate pair: needs text")
        texts.append(text)
    return texts


def _normal(string: str) -> str:
    """The string in the form NFC, and plain: an enumeration of strings calls itself otherwise."""
    return unicodedata.normalize("NFC", str.__str__(string))


def _is_text(string: str) -> bool:
    """Whether UTF-8 can say it, with NUL left free to stand for its end."""
    return "\0" not in string and (
        string.isascii() or not any("\ud800" <= letter <= "\udfff" for letter in string)
    )
