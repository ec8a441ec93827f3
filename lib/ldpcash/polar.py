"""Polar codes: which bits carry information, how they become codewords, how much codewords weigh.

A code of length ``n = 2**m`` is a set of ``k`` indices into ``0..n-1``, the information set.
Data goes through it in one direction::

    k bits  ->  u, n bits: the item at the information set, zeros elsewhere
            ->      dynamic frozen bits, if there are any: parities of information bits before them
            ->  x = u G,  G = [[1, 0], [1, 1]] to the m-th Kronecker power

The rest of the module answers two questions about that map. *Which* indices should carry
information: the constructions rank the n synthetic channels from bad to good and take the k best.
*How far apart* are two codewords: their distances are the weights of the code, and the largest
weight sets the noise a client has to add (the paper's Lemma 1).

Indices are in natural order throughout: the most significant bit of an index is the first split a
successive-cancellation decoder makes, 0 for the worse half (``-``), 1 for the better (``+``).
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cached_property, lru_cache

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ldpcash.checks import real_number, whole_number

Bits = NDArray[np.uint8]
Reals = NDArray[np.float64]

MAX_LENGTH = 4096
MAX_ENUMERABLE = 20  # a codebook of 2**20 words takes n megabytes; each further bit doubles it
_BLOCK_BITS = 12  # codewords are enumerated 2**12 at a time
_FRAMES = 4096  # words encoded together: short enough to stay in the cache


class PolarCode:
    """An (n, k) polar code, given by the indices that carry information.

    Args:
        n: length of a codeword, a power of two up to 4096.
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
        n = _length(n)
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
            n: length of a codeword, a power of two up to 4096.
            k: number of information bits, from 1 to n.
            method: "pw", polarization weight, needs no channel; "ga", Gaussian approximation of
                density evolution; "bhattacharyya", an upper bound on each channel's error;
                "rm", the Reed-Muller rule: the heaviest rows of G, ties to the higher index.
            design_sigma: for "ga" and "bhattacharyya", the noise per symbol of amplitude 1 that
                the code is meant for; 1 unless given.

        >>> PolarCode.construct(64, 8)
        PolarCode(64, [31, 47, 55, 59, 60, 61, 62, 63])
        """
        n = _length(n)
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
        for start in range(0, columns.shape[1], _FRAMES):
            part = slice(start, start + _FRAMES)
            words[:, part] = polar_transform(np.ascontiguousarray(words[:, part]))
        return words.T.reshape(*items.shape[:-1], self.n)

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
    def sensitivity(self) -> float:
        """The largest distance between two modulated codewords, 2 sqrt(max weight / n) (Lemma 1).

        It is 2, the most it can be, whenever index n - 1 carries information: that row of G is
        all ones, and no dynamic bit comes after it. Otherwise the codewords are enumerated, which k
        allows up to 20. Beyond it this is an upper bound, and as safe: a word of weight w is at
        distance n - w from the all-one word, which is a row of G too, and combinations of rows
        weigh no less than the lightest of them.

        >>> PolarCode.construct(64, 8).sensitivity
        2.0
        >>> PolarCode(4, [1, 2]).sensitivity == 2 * (2 / 4) ** 0.5
        True
        """
        if not self.frozen[-1]:
            return 2.0
        if self.k <= MAX_ENUMERABLE:
            heaviest = max(self.weight_distribution())
        else:
            lightest_row = min(2 ** int(row).bit_count() for row in (*self.info, *self.dynamic))
            heaviest = self.n - lightest_row
        return 2.0 * (heaviest / self.n) ** 0.5

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


def _length(n: int) -> int:
    number = whole_number("n", n, 1, MAX_LENGTH)
    if number & (number - 1):
        raise ValueError(f"n = {n!r}: the length must be a power of two from 1 to {MAX_LENGTH}")
    return number


def bits_of(numbers: ArrayLike, k: int) -> Bits:
    """``(...)`` whole numbers to ``(..., k)`` bits, most significant first.

    >>> bits_of([5, 2], 4)
    array([[0, 1, 0, 1],
           [0, 0, 1, 0]], dtype=uint8)
    """
    digits = np.asarray(numbers)[..., None] >> np.arange(k - 1, -1, -1) & 1
    return digits.astype(np.uint8)


def as_bits(name: str, values: ArrayLike, width: int) -> Bits:
    """Check that ``values`` has shape ``(..., width)`` and holds only 0 and 1; as uint8.

    >>> as_bits("bits", [[True, False]], 2)
    array([[1, 0]], dtype=uint8)
    """
    array = np.asarray(values)
    if array.ndim == 0 or array.shape[-1] != width:
        raise ValueError(f"{name} has shape {array.shape}: the last dimension must be {width}")
    wrong = array > 1 if array.dtype == np.uint8 else (array != 0) & (array != 1)
    if np.any(wrong):
        raise ValueError(f"{name} holds {array[wrong][:1].item()!r}: only 0 and 1 are bits")
    return array.astype(np.uint8, copy=False)


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


def reliability(n: int, method: str = "pw", design_sigma: float | None = None) -> Reals:
    """How good each of the n synthetic channels is, by one of the rules of `PolarCode.construct`.

    Returns ``(n,)`` numbers, larger for better channels: "pw", the weight; "ga", the log of the
    mean LLR; "bhattacharyya", log((1 - Z) / Z); "rm", the log2 of the row's weight.

    >>> reliability(4, "rm")
    array([0., 1., 1., 2.])
    """
    n = _length(n)
    if method not in _RULES:
        raise ValueError(f"method = {method!r}: choose one of {', '.join(_RULES)}")
    if design_sigma is None:
        design_sigma = 1.0
    elif method not in ("ga", "bhattacharyya"):
        raise ValueError(f"design_sigma = {design_sigma!r}: the {method!r} rule has no channel")
    design_sigma = real_number("design_sigma", design_sigma, 0.001, 1000)
    return _RULES[method](n.bit_length() - 1, design_sigma)


# The rules: (m, sigma) to the reliabilities of the 2**m channels.


def _polarization_weight(m: int, sigma: float) -> Reals:
    """Sum of 2**(j/4) over the bits j set in the index: a fixed order, free of the channel."""
    bits = np.arange(2**m)[:, None] >> np.arange(m) & 1
    return np.asarray((bits * 2.0 ** (np.arange(m) / 4)).sum(axis=1))


def _reed_muller(m: int, sigma: float) -> Reals:
    """Row i of G weighs 2 to the number of bits set in i."""
    return np.bitwise_count(np.arange(2**m)).astype(np.float64)


def _bhattacharyya(m: int, sigma: float) -> Reals:
    """Log odds of 1 - Z: ``-`` squares 1 - Z (so Z is an upper bound), ``+`` squares Z."""
    log_z = np.array([-1 / (2 * sigma**2)])
    odds = _log1mexp(log_z) - log_z
    for _ in range(m):
        odds = np.stack([_odds_of_square(odds), -_odds_of_square(-odds)], axis=-1).ravel()
    return odds


def _gaussian_approximation(m: int, sigma: float) -> Reals:
    """Log of the mean LLR, every LLR taken as Gaussian with a variance of twice its mean.

    ``-`` squares t = E[tanh(LLR / 2)], ``+`` doubles the mean.
    """
    log_mean = np.array([np.log(2 / sigma**2)])
    grid, odds_on_grid = _tanh_table()
    for _ in range(m):
        # Below the table t is half the mean, so its log odds are the log mean less log 2.
        odds = np.where(
            log_mean < grid[0],
            log_mean - np.log(2),
            np.interp(log_mean, grid, odds_on_grid),
        )
        squared = _odds_of_square(odds)
        minus = np.where(
            squared < odds_on_grid[0],
            squared + np.log(2),
            np.interp(squared, odds_on_grid, grid),
        )
        log_mean = np.stack([minus, log_mean + np.log(2)], axis=-1).ravel()
    return log_mean


@lru_cache(maxsize=1)
def _tanh_table() -> tuple[Reals, Reals]:
    """Log mean of a Gaussian LLR, and the log odds of t = E[tanh(LLR / 2)] at each.

    Two integrals without cancellation, by the trapezoidal rule, which converges geometrically on
    smooth bells: t = E[tanh(LLR / 2)**2], true of every symmetric LLR, while the mean is small, and
    1 - t = exp(-mean / 4) / sqrt(4 pi mean) * integral of sech(x / 2) exp(-x**2 / (4 mean)) above.
    """
    log_mean = np.arange(-20, 30, 0.005)
    small = np.exp(log_mean[log_mean < 0])[:, None]
    z = np.arange(-9, 9.05, 0.1)
    density = 0.1 * np.exp(-(z**2) / 2) / np.sqrt(2 * np.pi)
    log_t = np.log((np.tanh((small + np.sqrt(2 * small) * z) / 2) ** 2 * density).sum(axis=1))

    large = np.exp(log_mean[log_mean >= 0])[:, None]
    x = np.arange(-80, 80.2, 0.4)
    bell = np.exp(-(x**2) / (4 * large)) / np.cosh(x / 2)
    log_rest = np.log(0.4 * bell.sum(axis=1)) - large[:, 0] / 4
    log_rest -= np.log(4 * np.pi * large[:, 0]) / 2
    odds = np.concatenate([log_t - _log1mexp(log_t), _log1mexp(log_rest) - log_rest])
    return log_mean, odds


def _odds_of_square(odds: Reals) -> Reals:
    """Log odds of p**2 from the log odds of p: logarithms keep both ends of (0, 1) apart."""
    bounded = np.minimum(odds, 30)  # beyond it squaring takes log 2 off the odds, to 13 digits
    log_square = -2 * np.logaddexp(0, -bounded)
    return log_square - _log1mexp(log_square) + (odds - bounded)


def _log1mexp(x: Reals) -> Reals:
    """log(1 - exp(x)) for x < 0, with the digits of x kept near 0."""
    return np.asarray(np.log(-np.expm1(x)))


_RULES: dict[str, Callable[[int, float], Reals]] = {
    "pw": _polarization_weight,
    "ga": _gaussian_approximation,
    "bhattacharyya": _bhattacharyya,
    "rm": _reed_muller,
}
