"""Codes that need little noise: the open problem of the paper's Remark 1.

A code's heaviest word sets the noise, its lightest the error rate: a client's signal is blurred in
proportion to the sensitivity 2 sqrt(w_max / n), and two items are told apart by 2 sqrt(w_min / n).
So what counts is their ratio, `merit` = w_min / w_max. It is at most 1.

Any linear code is a polar code with dynamic frozen bits (`as_polar`), so the list decoder takes it.
Some families have a good merit, the better ones for few bits. A word is a function of m = log2(n)
bits::

    simplex      linear functions, k <= m. All words weigh n / 2: the merit is 1.
    quadratic    linear functions and quadratic forms of high rank, which are far from all of them.
                 The first m // 2 forms for even m are bent: words weigh n / 2 +- sqrt(n) / 2.
    bilinear     sums of products of one of the first m / 2 bits and one of the others. Words weigh
                 n / 4 to n / 2: the merit is above 1/2.
    Reed-Muller  the heaviest rows of G, without the all-one row unless that keeps lighter rows out.
                 With products of two bits the merit is 1/3.
    checked      the most reliable rows, the last of them for a CRC, which the all-one word fails.

`code_for_privacy` chooses among them what a list of 32 decodes: up to 12 bits nearly as well as
maximum likelihood would, at 16 bits with a third more clients. A shorter code can be used at any
length, by repeating its words.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ldpcash.base.arrays import Bits, as_bits
from ldpcash.base.checks import whole_number
from ldpcash.codec.crc import with_checks
from ldpcash.codec.fields import powers
from ldpcash.codec.polar import MAX_ENUMERABLE, PolarCode, polar_transform
from ldpcash.paper.theory import normal_approximation, strength_at

# What a list of 32 decodes well, found by simulation.
_BILINEAR = 256  # length of bilinear codes
_QUADRATIC = 512  # length of quadratic codes
_FORMS = 4  # their forms at lengths above 64: each doubles the paths that early bits need
_REED_MULLER = 32  # bits of Reed-Muller codes


def code_for_privacy(n: int, k: int) -> PolarCode:
    """The best code of this length and dimension that is known here, for `Cash` and a list of 32.

    Up to 20 bits it is the one with the largest merit, and of equals the one with fewer lightest
    words; a greater length never makes the merit smaller. A list of 8 is nearly as good while there
    are few quadratic forms, as for (64, 8). (A decoder that compares with all words could use still
    better codes, at lengths where 2**k words are few.)

    Args:
        n: length of a codeword, a power of two up to 65536.
        k: number of information bits.

    >>> code_for_privacy(64, 8).weight_distribution()
    {0: 1, 28: 108, 32: 63, 36: 84}
    >>> code_for_privacy(256, 8).sensitivity == 2**0.5
    True
    """
    m = _levels(n)
    k = whole_number("k", k, 1, n)
    if k <= MAX_ENUMERABLE:
        short = (code for level in range(m + 1) for code in _families(level, k))
        return _repeated(max(short, key=_quality), n)  # of equals the first, and shortest
    if k <= _REED_MULLER or k + 11 > n:
        return _heaviest_rows(n, k)
    snr = strength_at(lambda x: normal_approximation(n, k, x), 1e-2)
    return with_checks(PolarCode.construct(n, k + 11, "ga", math.sqrt(n) / snr), 11)


def _quality(code: PolarCode) -> tuple[float, int]:
    """The merit; and of equals the code with fewer lightest words makes fewer errors."""
    _, lightest, *_ = code.weight_distribution().values()
    return merit(code), -lightest


def _families(m: int, k: int) -> Iterator[PolarCode]:
    """The codes of length 2**m and dimension k that a list of 32 decodes well."""
    n = 2**m
    if k <= m:
        yield PolarCode(n, sorted(n - 1 - 2**j for j in range(m))[-k:])
    elif k <= m * (m + 1) // 2 and (n <= 64 or (n <= _QUADRATIC and k - m <= _FORMS)):
        yield quadratic_code(n, k)
    if k <= m**2 // 4 and n <= _BILINEAR:
        yield PolarCode(n, [i for i in range(n) if _is_bilinear(i, m)][-k:])
    if k <= n:
        yield _heaviest_rows(n, k)


def _is_bilinear(index: int, m: int) -> bool:
    """Whether a row of G is the product of one of the upper m // 2 bits and one of the others."""
    zeros = [bit for bit in range(m) if not index >> bit & 1]
    return len(zeros) == 2 and zeros[0] < m - m // 2 <= zeros[1]


def _heaviest_rows(n: int, k: int) -> PolarCode:
    """The heaviest rows, without the all-one row where that takes no lighter row."""
    heaviest_first = sorted(range(n), key=lambda i: (-i.bit_count(), -i))
    last = heaviest_first[k - 1]
    another = k < n and heaviest_first[k].bit_count() == last.bit_count()
    return PolarCode(n, heaviest_first[1 : k + 1] if another else heaviest_first[:k])


def _repeated(code: PolarCode, n: int) -> PolarCode:
    """The code whose words are those of a shorter one, written over and over."""
    shift = n - code.n
    dynamic = {i + shift: [j + shift for j in sources] for i, sources in code.dynamic.items()}
    return PolarCode(n, code.info + shift, dynamic)


def quadratic_code(n: int, k: int) -> PolarCode:
    """All m linear functions of x in GF(2**m), n = 2**m, and k - m quadratic forms.

    A function is x -> trace(a x**e): linear for e = 1, quadratic for e = 2**j + 1. Forms come in
    the order of falling j, and sums of the first have a high rank (Delsarte and Goethals). With
    j = m / 2 for even m it is full, they are *bent*: at distance n / 2 +- sqrt(n) / 2 from every
    linear function (Kasami). With j = (m - 1) / 2 for odd m it is m - 1 (Gold), and the distance
    n / 2 or n / 2 +- sqrt(n / 2).

    Args:
        n: length, a power of two from 2 to 65536.
        k: number of information bits, from m to m (m + 1) / 2.

    >>> quadratic_code(128, 10).weight_distribution()
    {0: 1, 56: 252, 64: 575, 72: 196}
    """
    m = _levels(n)
    k = whole_number("k", k, max(m, 1), m * (m + 1) // 2)
    rows = [row for j in (None, *range(m // 2, 0, -1)) for row in _traces(m, 2**j + 1 if j else 1)]
    return as_polar(np.array(rows[:k])[:, ::-1])  # the all-zero argument last: no constant in u


def as_polar(generator: ArrayLike) -> PolarCode:
    """A linear code as a polar code with dynamic frozen bits.

    Its words are those that the rows span; an item's word is in general another sum of rows.

    Args:
        generator: ``(rows, n)`` bits, n a power of two. Rows may depend on each other.

    >>> as_polar([[0, 0, 1, 1], [1, 0, 0, 1]])
    PolarCode(4, [1, 2], {3: (1,)})
    """
    rows = np.atleast_2d(np.asarray(generator))
    _levels(rows.shape[-1])
    u = polar_transform(as_bits("generator", rows, rows.shape[-1]).T.copy()).T.copy()
    info: list[int] = []
    for index in range(u.shape[1]):  # Gauss and Jordan, with the first one of each row as pivot
        ones = np.flatnonzero(u[:, index])
        free = ones[ones >= len(info)]
        if free.size:
            u[[len(info), free[0]]] = u[[free[0], len(info)]]
            others = np.flatnonzero(u[:, index])
            u[others[others != len(info)]] ^= u[len(info)]
            info.append(index)
    if not info:
        raise ValueError("generator = all zeros: needs a row that is not")
    parities = {
        index: [info[row] for row in np.flatnonzero(u[: len(info), index])]
        for index in range(u.shape[1])
        if index not in info
    }
    return PolarCode(u.shape[1], info, {i: sources for i, sources in parities.items() if sources})


def merit(code: PolarCode) -> float:
    """Smallest over largest weight, of words that are not zero.

    >>> merit(PolarCode.construct(64, 8)), merit(code_for_privacy(64, 8)) == 7 / 9
    (0.25, True)
    """
    weights = [weight for weight in code.weight_distribution() if weight]
    return weights[0] / weights[-1]


def merit_limit(n: int, k: int) -> float:
    """No linear code of this length and dimension has a larger merit.

    Let a word of weight w deviate by n - 2 w. With z columns of the generator all zero and the
    others as different as can be, the 2**k - 1 non-zero words deviate by u = (2**k z - n) /
    (2**k - 1) on average, and with at least a variance V that follows from counting equal columns.
    Deviations between u - B and u + A have a variance of at most A B. So the merit is at most the
    largest (n - u - A) / (n - u + B) with A B = V, at the best z.

    >>> round(merit_limit(64, 8), 3), merit_limit(256, 8)
    (0.806, 1.0)
    """
    words = 2**k - 1
    limit = 0.0
    for z in range(n):
        equal_pairs = z**2 + max(n - z, (n - z) ** 2 / words)
        u = (2**k * z - n) / words
        variance = (2**k * equal_pairs - n**2) / words - u**2
        if variance <= 0:
            return 1.0
        length = n - u
        b = (variance + math.sqrt(variance**2 + variance * length**2)) / length
        limit = max(limit, (length - variance / b) / (length + b))
    return limit


def best_information_set(n: int, k: int) -> PolarCode:
    """A polar code without dynamic bits that has the largest merit of all.

    Every set of k rows of G is tried, but none that begins with rows whose words are already too
    unequal: more rows make it worse.

    Args:
        n: length, a power of two up to 64.
        k: number of information bits.

    >>> code = best_information_set(64, 8)
    >>> code, code.weight_distribution()
    (PolarCode(64, [15, 23, 27, 29, 46, 54, 58, 60]), {0: 1, 16: 45, 24: 210})
    """
    _levels(n)
    whole_number("n", n, 2, 64)
    k = whole_number("k", k, 1, n)
    rows = _packed_rows(n)
    order = sorted(range(n), key=lambda i: (-i.bit_count(), -i))
    best_merit, best_set = -1.0, order[:k]

    def extend(chosen: list[int], span: NDArray[np.uint64], rest: list[int]) -> None:
        nonlocal best_merit, best_set
        sums = span ^ rows[rest][:, None]
        weights = np.bitwise_count(np.concatenate([np.broadcast_to(span, sums.shape), sums], 1))
        smallest = weights[:, 1:].min(axis=1)  # the first word is zero
        merits = smallest / weights.max(axis=1)
        for place in np.argsort(-merits, kind="stable"):
            if merits[place] <= best_merit:
                return
            longer = [*chosen, rest[place]]
            if len(longer) == k:
                best_merit, best_set = float(merits[place]), longer
                return
            later = rest[place + 1 :]
            if len(longer) + len(later) >= k:
                extend(longer, np.concatenate([span, sums[place]]), later)

    extend([], np.zeros(1, dtype=np.uint64), order)
    return PolarCode(n, best_set)


def _packed_rows(n: int) -> NDArray[np.uint64]:
    """The rows of G as words."""
    rows = polar_transform(np.eye(n, dtype=np.uint8)).T
    return np.array([int("".join(map(str, row)), 2) for row in rows], dtype=np.uint64)


def _levels(n: int) -> int:
    """log2(n), if it is a length."""
    PolarCode(n, [0])  # which says what is wrong otherwise
    return int(n).bit_length() - 1


def _traces(m: int, exponent: int) -> list[Bits]:
    """The functions x -> trace(a x**exponent) on GF(2**m), for independent a: ``(2**m,)`` each."""
    size = 2**m
    element, log = powers(m), np.arange(size - 1)
    trace = np.bitwise_xor.reduce([element[log * 2**j % (size - 1)] for j in range(m)])
    functions: list[Bits] = []
    leading: dict[int, int] = {}  # words that the functions span, by their leading bit
    for shift in range(m):
        values = np.zeros(size, dtype=np.uint8)
        values[element] = trace[(shift + exponent * log) % (size - 1)]
        word = int("".join(map(str, values)), 2)
        while word and word.bit_length() in leading:
            word ^= leading[word.bit_length()]
        if word:
            leading[word.bit_length()] = word
            functions.append(values)
    return functions
