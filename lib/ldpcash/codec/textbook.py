"""Decoders as a textbook writes them: one frame and one bit at a time.

This is where to begin reading about decoding. `SCLDecoder` does the same for thousands of frames at
once, and is held against `list_decode`, frame by frame and path by path; so nothing here is shared
with it. Bits of u are decided in their order, u_0 first. What a decoder knows about bit i, given
the bits before it, is one LLR, log P(0) / P(1), which `leaf_llr` computes: a codeword x = u G has
two halves, x = (w + y, y), w made of the first half of u and y of the second, and the channel says
(a, b) about them::

    w: a bit of w is the sum of a bit of each half.  LLR  sign(a b) min(|a|, |b|)       f, min-sum
    y: w is known by then, so a is a second look.    LLR  b + (1 - 2 w) a               g
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ldpcash.codec.polar import PolarCode

Word = NDArray[Any]


class Path(NamedTuple):
    """A decision about all bits so far, and what speaks against it.

    >>> Path([0, 1], 2.5).metric
    2.5
    """

    u: list[int]
    metric: float  #: of min-sum, the sum of |LLR| over bits that disagree with their LLR


class Paths(NamedTuple):
    """What a list decoder has in the end.

    >>> Paths([Path([0, 1], 2.5)], 0.5).best.u
    [0, 1]
    """

    survivors: list[Path]  #: best first
    #: by how much the closest decision was made: the least difference between the worst path that
    #: was kept and the best that was not. Below rounding, it was made by chance.
    margin: float

    @property
    def best(self) -> Path:
        """The survivor with the least metric."""
        return self.survivors[0]


def successive_cancellation(llr: ArrayLike, code: PolarCode) -> Word:
    """Decide bit after bit, each for good, by min-sum: u of one frame (Arikan 2009).

    >>> successive_cancellation([-3.0, -1.0, 2.0, -0.5], PolarCode(4, [1, 3])).tolist()
    [0, 1, 0, 0]
    """
    u: list[int] = []

    def decide(llr: Word) -> Word:
        """Decide as many bits as there are LLRs, and return the word that they make."""
        if len(llr) == 1:
            u.append(frozen_bit(code, u) if code.frozen[len(u)] else int(llr[0] < 0))
            return np.array(u[-1:])
        a, b = np.split(llr, 2)
        w = decide(np.sign(a) * np.sign(b) * np.minimum(abs(a), abs(b)))
        y = decide(b + (1 - 2 * w) * a)
        return np.concatenate([w ^ y, y])

    decide(np.asarray(llr, dtype=np.float64))
    return np.array(u)


def list_decode(llr: ArrayLike, code: PolarCode, list_size: int, exact: bool = False) -> Paths:
    """Decide bit after bit, but keep the ``list_size`` best ways to do so: Tal and Vardy (2015).

    Args:
        llr: ``(n,)``, of one frame.
        code: the code, dynamic frozen bits and all.
        list_size: L.
        exact: False for min-sum; True for box-plus, whose metric is -log of a path's probability.

    >>> code = PolarCode(4, [1, 3])
    >>> paths = list_decode([-3.0, -1.0, 2.0, -0.5], code, list_size=2)
    >>> [(path.u, path.metric) for path in paths.survivors]
    [([0, 1, 0, 0], 0.5), ([0, 0, 0, 1], 2.0)]
    """
    channel = np.asarray(llr, dtype=np.float64)
    paths, margin = [Path([], 0.0)], np.inf
    for i in range(code.n):
        grown = []
        for u, metric in paths:
            value = leaf_llr(channel, u, exact)
            for bit in (frozen_bit(code, u),) if code.frozen[i] else (0, 1):
                against = value if bit else -value
                penalty = np.logaddexp(0, against) if exact else max(0.0, against)
                grown.append(Path([*u, bit], float(metric + penalty)))
        grown.sort(key=lambda path: path.metric)
        if len(grown) > list_size:
            margin = min(margin, grown[list_size].metric - grown[list_size - 1].metric)
        paths = grown[:list_size]
    return Paths(paths, margin)


def leaf_llr(llr: Word, u: list[int], exact: bool = False) -> Any:
    """LLR of bit number len(u), given the bits before it.

    >>> leaf_llr(np.array([-3.0, 1.0]), []), leaf_llr(np.array([-3.0, 1.0]), [1])
    (np.float64(-1.0), np.float64(4.0))
    """
    if len(llr) == 1:
        return llr[0]
    half = len(llr) // 2
    a, b = llr[:half], llr[half:]
    if len(u) >= half:
        return leaf_llr(b + (1 - 2 * codeword(u[:half])) * a, u[half:], exact)
    if exact:
        return leaf_llr(np.logaddexp(0, a + b) - np.logaddexp(a, b), u, exact)
    return leaf_llr(np.sign(a) * np.sign(b) * np.minimum(abs(a), abs(b)), u, exact)


def codeword(u: list[int]) -> Word:
    """x = u G: of every two halves, the second is added to the first.

    >>> codeword([0, 0, 1, 1]).tolist()
    [0, 1, 0, 1]
    """
    x, half = np.array(u), 1
    while half < len(x):
        pairs = x.reshape(-1, 2, half)
        pairs[:, 0] ^= pairs[:, 1]
        half *= 2
    return x


def frozen_bit(code: PolarCode, u: list[int]) -> int:
    """The value of frozen bit number len(u), given the bits before it: 0, or a parity of them.

    >>> frozen_bit(PolarCode(4, [1, 3], {2: [1]}), [0, 1])
    1
    """
    return sum(u[source] for source in code.dynamic.get(len(u), ())) % 2
