"""Maximum-likelihood decoding: every codeword is compared with what was received."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ldpcash.base.arrays import Bits, batches, bits_of, plus_or_minus, sum_halves
from ldpcash.codec.llr import WORKING_VALUES, Real, as_frames, keep_freed_memory, tamed_llr
from ldpcash.codec.polar import PolarCode

_MOST_VALUES = 2**24  # entries of the largest codebook that is held


class MLDecoder:
    """Maximum-likelihood decoder: the codeword with the largest correlation with the LLRs.

    Correlations are one float32 matrix product, whose rounding depends on the machine. So every
    codeword that could still be the best given that rounding is compared again, in float64 and in a
    fixed order of addition. Equal correlations go to the item that comes first, bits read as a
    number, most significant first.

    Args:
        code: the code to decode; 2**k * n may be at most 2**24.
        hard: use only the signs of the LLRs; one that is 0 then says nothing.

    >>> code = PolarCode(4, [1, 3])
    >>> MLDecoder(code).decode([[-1.0, -2.0, 0.5, 3.0], [0.0, 0.0, 0.0, 0.0]]).tolist()
    [[1, 0], [0, 0]]
    """

    def __init__(self, code: PolarCode, hard: bool = False) -> None:
        if 2**code.k * code.n > _MOST_VALUES:
            raise ValueError(
                f"code = ({code.n}, {code.k}): an ML decoder holds all codewords,"
                " which takes 2**k * n of at most 2**24"
            )
        keep_freed_memory()
        self.code = code
        self.hard = bool(hard)
        self._signs = -plus_or_minus(code.codebook()).astype(np.float32)  # positive speaks for 0
        self.frames_per_chunk = max(1, min(512, WORKING_VALUES >> code.k))

    def decode(self, llr: ArrayLike) -> Bits:
        """The most likely item: ``(..., n)`` LLRs to ``(..., k)`` bits."""
        frames, shape = as_frames(llr, self.code.n)
        items = np.empty(len(frames), dtype=np.intp)
        for part in batches(len(frames), self.frames_per_chunk):
            llr = np.sign(frames[part]) if self.hard else frames[part]
            items[part] = self._decode_chunk(tamed_llr(llr.T).T)
        return bits_of(items, self.code.k).reshape(*shape, self.code.k)

    def _decode_chunk(self, llr: Real) -> NDArray[np.intp]:
        """``(frames, n)`` LLRs to the numbers of the best codewords."""
        scores = llr.astype(np.float32) @ self._signs.T
        best = scores.argmax(axis=1)
        if self.hard:
            return best  # sums of n signs are whole numbers: no rounding
        # A float32 sum of n terms is off by less than n * 2**-24 * sum |LLR|; twice that, for both
        # codewords, and twice again, for the conversion and the comparison itself. Close to the
        # smallest float32 each term can be off by 2**-150 besides.
        total = np.abs(llr).sum(axis=1, keepdims=True)
        slack = self.code.n * (2.0**-22 * total + 2.0**-147)
        close = scores >= scores.max(axis=1, keepdims=True) - slack
        unsure = np.flatnonzero(close.sum(axis=1) > 1)
        for part in batches(len(unsure), WORKING_VALUES // self._signs.size):
            frame, item = np.nonzero(close[unsure[part]])
            products = self._signs[item] * llr[unsure[part]][frame].astype(np.float64)
            settled = np.full((len(unsure[part]), len(self._signs)), -np.inf)
            settled[frame, item] = sum_halves(products.T)
            best[unsure[part]] = settled.argmax(axis=1)
        return best
