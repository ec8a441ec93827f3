"""Polar codes: which bits carry information, how they become codewords, how much codewords weigh.

A code of length ``n = 2**m`` is a set of ``k`` indices into ``0..n-1``, the information set.
Data goes through it in one direction::

    k bits  ->  u, n bits: the item at the information set, zeros elsewhere
            ->      dynamic frozen bits, if there are any: parities of information bits before them
            ->  x = u G,  G = [[1, 0], [1, 1]] to the m-th Kronecker power

            ->  signs: a 1 is sent as +1, a 0 as -1;  signals: the same over sqrt(n)

The rest of the module says *how far apart* two codewords are: their distances are the weights of
the code, and the heaviest word sets the noise a client has to add (the paper's Lemma 1). *Which*
indices should carry information is decided in `ldpcash.codec.construction`.

Indices are in natural order throughout: the most significant bit of an index is the first split a
successive-cancellation decoder makes, 0 for the worse half (``-``), 1 for the better (``+``).
"""

from __future__ import annotations

import operator
from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ldpcash.base.arrays import Bits, Reals, as_bits, batches, bits_of, plus_or_minus
from ldpcash.base.checks import whole_number
from ldpcash.codec.construction import code_length, reliability

MAX_ENUMERABLE = 20  # a codebook of 2**20 words takes n megabytes; each further bit doubles it
_BLOCK_BITS = 12  # codewords are enumerated 2**12 at a time
_FRAMES = 4096  # words encoded together: short enough to stay in the cache


class PolarCode:
    """An (n, k) polar code, given by the indices that carry information.

    Args:
        n: length of a codeword, a power of two up to 65536.
        info: the k distinct indices in 0..n-1 that carry the item, in any order. Bit j of an
            item travels on the j-th smallest.
        dynamic: frozen indices that are not 0 but the parity of information bits: for each, the
            information indices before it that count. So a code can be any linear code.

    >>> code = PolarCode(4, [1, 3])
    >>> code.encode([1, 0])
    array([1, 1, 0, 0], dtype=uint8)
    >>> PolarCode(4, [1, 3], {2: [1]}).encode([1, 0])
    array([0, 1, 1, 0], dtype=uint8)
    """

    def __init__(
        self, n: int, info: ArrayLike, dynamic: Mapping[int, Iterable[int]] | None = None
    ) -> None:
        n = code_length(n)
        try:
            indices = np.array(info)
        except ValueError:  # lists of unequal length
            indices = np.empty(0)
        if indices.ndim != 1 or not 1 <= indices.size <= n or indices.dtype.kind not in "iu":
            raise ValueError(f"info = {info!r}: needs a list of 1 to n = {n} whole numbers")
        indices = np.sort(indices)
        if indices[0] < 0 or indices[-1] >= n or np.any(indices[1:] == indices[:-1]):
            raise ValueError(f"info = {info!r}: needs distinct indices from 0 to n - 1 = {n - 1}")
        self.n = n
        self.k = int(indices.size)
        self.info = indices.astype(np.intp)
        self.frozen = np.ones(n, dtype=bool)
        self.frozen[indices] = False
        self.info.flags.writeable = self.frozen.flags.writeable = False
        self.dynamic = self._parities({} if dynamic is None else dynamic)

    def _parities(self, dynamic: Mapping[int, Iterable[int]]) -> dict[int, tuple[int, ...]]:
        """The dynamic frozen bits in order, each with its information indices in order."""
        free = set(self.info.tolist())
        parities: dict[int, tuple[int, ...]] = {}
        try:
            given = {operator.index(i): sorted(map(operator.index, s)) for i, s in dynamic.items()}
        except (AttributeError, TypeError):
            raise ValueError(
                f"dynamic = {dynamic!r}: needs information indices for each frozen index"
            ) from None
        for index, sources in sorted(given.items()):
            if not 0 <= index < self.n or index in free:
                raise ValueError(f"dynamic = {dynamic!r}: {index} is not a frozen index")
            if not sources or len(set(sources)) < len(sources) or not {*sources} <= free:
                raise ValueError(
                    f"dynamic = {dynamic!r}: {index} needs distinct information indices"
                )
            if sources[-1] > index:
                raise ValueError(f"dynamic = {dynamic!r}: {sources[-1]} comes after {index}")
            parities[index] = tuple(sources)
        return parities

    def __repr__(self) -> str:
        dynamic = f", {self.dynamic}" if self.dynamic else ""
        return f"PolarCode({self.n}, {self.info.tolist()}{dynamic})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, PolarCode) and repr(self) == repr(other)

    def __hash__(self) -> int:
        return hash(repr(self))

    @classmethod
    def construct(
        cls, n: int, k: int, method: str = "pw", design_sigma: float | None = None
    ) -> PolarCode:
        """Choose the k best of n indices by one of four rules.

        Args:
            n: length of a codeword, a power of two up to 65536.
            k: number of information bits, from 1 to n.
            method: "pw", polarization weight, needs no channel; "ga", Gaussian approximation of
                density evolution; "bhattacharyya", an upper bound on each channel's error;
                "rm", the Reed-Muller rule: the heaviest rows of G, ties to the higher index.
            design_sigma: for "ga" and "bhattacharyya", the noise per symbol of amplitude 1 that
                the code is meant for; 1 unless given.

        >>> PolarCode.construct(64, 8)
        PolarCode(64, [31, 47, 55, 59, 60, 61, 62, 63])
        """
        n = code_length(n)
        k = whole_number("k", k, 1, n)
        order = np.argsort(reliability(n, method, design_sigma), kind="stable")
        return cls(n, order[n - k :])

    def encode(self, bits: ArrayLike) -> Bits:
        """Codewords of items: ``(..., k)`` bits to ``(..., n)`` bits, by m rounds of butterflies.

        >>> PolarCode(4, [3]).encode([[0], [1]])
        array([[0, 0, 0, 0],
               [1, 1, 1, 1]], dtype=uint8)
        """
        items = as_bits("bits", bits, self.k)
        columns = items.reshape(-1, self.k).T
        words = np.zeros((self.n, columns.shape[1]), dtype=np.uint8)
        words[self.info] = columns
        for index, sources in self.dynamic.items():
            np.bitwise_xor.reduce(words[list(sources)], axis=0, out=words[index])
        for part in batches(columns.shape[1], _FRAMES):
            words[:, part] = polar_transform(np.ascontiguousarray(words[:, part]))
        return words.T.reshape(*items.shape[:-1], self.n)

    def signs(self, bits: ArrayLike) -> NDArray[np.int8]:
        """Modulated codewords (step 2): ``(..., k)`` bits to ``(..., n)``, 1 as +1 and 0 as -1.

        >>> PolarCode(4, [1, 3]).signs([1, 0])
        array([ 1,  1, -1, -1], dtype=int8)
        """
        return plus_or_minus(self.encode(bits))

    def signals(self, bits: ArrayLike) -> Reals:
        """The same with an energy of 1: ``(..., k)`` bits to ``(..., n)``, +-1 / sqrt(n).

        >>> PolarCode(4, [1, 3]).signals([1, 0])
        array([ 0.5,  0.5, -0.5, -0.5])
        """
        return self.signs(bits) / np.sqrt(self.n)

    def codebook(self) -> Bits:
        """All codewords, ``(2**k, n)``: row i encodes the bits of i, most significant first.

        >>> PolarCode(2, [0, 1]).codebook().tolist()
        [[0, 0], [1, 1], [1, 0], [0, 1]]
        """
        self._require_enumerable("codebook")
        return self.encode(bits_of(np.arange(2**self.k), self.k))

    def weight_distribution(self) -> dict[int, int]:
        """How many codewords have each weight, as ``{weight: count}`` in increasing weight.

        >>> PolarCode.construct(64, 8).weight_distribution()
        {0: 1, 16: 4, 32: 246, 48: 4, 64: 1}
        """
        self._require_enumerable("weight_distribution")
        counts = np.zeros(self.n + 1, dtype=np.int64)
        for block in self._packed_codewords():
            weights = np.bitwise_count(block).sum(axis=1, dtype=np.int64)
            counts += np.bincount(weights, minlength=self.n + 1)
        return {int(w): int(counts[w]) for w in np.flatnonzero(counts)}

    @cached_property
    def max_weight(self) -> int:
        """The weight of the heaviest codeword; for k above 20 at least that.

        It is n whenever index n - 1 carries information: that row of G is all ones, and no dynamic
        bit comes after it. Otherwise the codewords are enumerated, which k allows up to 20. Beyond
        it this is an upper bound: a word of weight w is at distance n - w from the all-one word,
        which is a row of G too, and combinations of rows weigh no less than the lightest of them.

        >>> PolarCode.construct(64, 8).max_weight, PolarCode(4, [1, 2]).max_weight
        (64, 2)
        """
        if not self.frozen[-1]:
            return self.n
        if self.k <= MAX_ENUMERABLE:
            return max(self.weight_distribution())
        return self.n - min(2 ** int(row).bit_count() for row in (*self.info, *self.dynamic))

    @cached_property
    def sensitivity(self) -> float:
        """The largest distance between two modulated codewords, 2 sqrt(max weight / n) (Lemma 1).

        Where `max_weight` is an upper bound, so is this, and it is as safe.

        >>> PolarCode.construct(64, 8).sensitivity
        2.0
        >>> PolarCode(4, [1, 2]).sensitivity == 2 * (2 / 4) ** 0.5
        True
        """
        return 2.0 * (self.max_weight / self.n) ** 0.5

    def _require_enumerable(self, what: str) -> None:
        if self.k > MAX_ENUMERABLE:
            raise ValueError(
                f"k = {self.k}: {what} goes through all 2**k codewords,"
                f" which k allows up to {MAX_ENUMERABLE}"
            )

    def _packed_codewords(self) -> Iterator[NDArray[np.uint64]]:
        """All codewords as rows of 64-bit words, in blocks of at most 2**12."""
        rows = _pack(self.encode(np.eye(self.k, dtype=np.uint8)))
        block = _span(rows[:_BLOCK_BITS])
        for offset in _span(rows[_BLOCK_BITS:]):
            yield block ^ offset


def _span(rows: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """All 2**r sums of r packed rows; of no rows, the zero word."""
    words = np.zeros((1, rows.shape[1]), dtype=np.uint64)
    for row in rows:
        words = np.concatenate([words, words ^ row])
    return words


def _pack(bits: Bits) -> NDArray[np.uint64]:
    """``(rows, n)`` bits as ``(rows, words)``: bit i is bit i % 64 of word i // 64."""
    missing = -bits.shape[1] % 64
    if missing:
        bits = np.pad(bits, [(0, 0), (0, missing)])
    return np.ascontiguousarray(np.packbits(bits, axis=1, bitorder="little")).view("<u8")


def polar_transform(u: Bits) -> Bits:
    """Multiply by G along the first axis, in place: ``(n, columns)`` to the same shape.

    G is its own inverse, so the same call turns codewords back into u.

    >>> polar_transform(np.array([[0], [1]], dtype=np.uint8)).tolist()
    [[1], [1]]
    """
    n, columns = u.shape  # of more dimensions, reshape might make a copy and change that
    half = 1
    while half < n:
        pairs = u.reshape(n // (2 * half), 2, half, columns)
        pairs[:, 0] ^= pairs[:, 1]
        half *= 2
    return u
