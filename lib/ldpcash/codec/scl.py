"""The list decoder: batches of log-likelihood ratios in, items out.

`SCLDecoder` is the successive-cancellation list decoder of Tal and Vardy, which `textbook` writes
down a frame and a bit at a time. Here thousands of frames go through it together::

    LLRs (..., n) -> chunks of frames -> known bits tamed -> a walk through the code's tree -> items
                                         `llr`               `tree`, `list_search`

It uses only elementwise steps in a fixed order, which round alike everywhere: the same input gives
the same bits on every CPU, in every batch and with any number of threads. Where Numba is installed,
long codes are walked by `compiled`, which decides the same, faster.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ldpcash.base.arrays import Bits, batches, sum_halves
from ldpcash.base.checks import whole_number
from ldpcash.codec.boxplus import log1p_exp_minus
from ldpcash.codec.list_search import ListSearch
from ldpcash.codec.llr import WORKING_VALUES, Real, as_frames, keep_freed_memory, tamed_llr
from ldpcash.codec.polar import PolarCode, polar_transform
from ldpcash.codec.tree import Parities, tree

if TYPE_CHECKING:
    from ldpcash.codec.compiled import Program

_MAX_FRAMES = 2048  # more frames in a chunk gain nothing
_SHORT, _FEW = 128, 16  # a code shorter than this, or with fewer bits, is fast enough in NumPy


class SCLDecoder:
    """Successive-cancellation list decoder; a list of one is plain successive cancellation.

    LLRs given as float32 are decoded in float32 by min-sum; all others, and all with
    ``exact=True``, in float64. Infinite LLRs, and LLRs beside which the others of the frame would
    be lost in rounding, count as known bits. Among equal scores the path that comes first in the
    order of items survives; with ``exact=True`` scores are rounded, which may decide between paths
    that would be equal. Where the last bits of the code are all free, an LLR of exactly 0 there is
    read as a codeword bit of 0.

    Args:
        code: the code to decode.
        list_size: how many paths survive each decision, at least 1.
        exact: False for min-sum, which does not see the scale of the LLRs; True for box-plus and
            exact path probabilities, which do. LLRs scaled far below their true size make all paths
            nearly equally likely, down to where float64 cannot tell them apart.

    >>> code = PolarCode.construct(64, 8)
    >>> item = np.array([1, 0, 1, 1, 0, 0, 1, 0], dtype=np.uint8)
    >>> llr = 1.0 - 2.0 * code.encode(item)
    >>> SCLDecoder(code).decode(llr)
    array([1, 0, 1, 1, 0, 0, 1, 0], dtype=uint8)
    """

    def __init__(self, code: PolarCode, list_size: int = 8, exact: bool = False) -> None:
        keep_freed_memory()
        self.code = code
        self.list_size = whole_number("list_size", list_size, 1)
        self.exact = bool(exact)
        # A frozen left half makes the code a repetition of the right half: decode that, on sums.
        self._length = code.n
        while self._length > 1 and code.frozen[: code.n - self._length // 2].all():
            self._length //= 2
        start = code.n - self._length
        self._info = code.info - start
        self._parities = Parities(code) if code.dynamic else None
        # Free nodes are decided at once, which is right for a list of one and for min-sum.
        at_once = not exact or self.list_size == 1
        self._root = tree(code.frozen[start:], start, frozenset(code.dynamic), at_once)
        per_frame = self._length * min(self.list_size, 2**code.k)
        self.frames_per_chunk = min(_MAX_FRAMES, max(1, WORKING_VALUES // per_frame))

    def decode(self, llr: ArrayLike) -> Bits:
        """The item of the best surviving path: ``(..., n)`` LLRs to ``(..., k)`` bits."""
        frames, shape = as_frames(llr, self.code.n)
        bits = np.empty((self.code.k, len(frames)), dtype=np.uint8).T
        for part in batches(len(frames), self.frames_per_chunk):
            bits[part] = self._decode_chunk(frames[part], best_only=True)[:, 0]
        return bits.reshape(*shape, self.code.k)

    def decode_list(self, llr: ArrayLike) -> tuple[Bits, NDArray[np.float64]]:
        """All surviving paths, best first, no two alike.

        Returns bits ``(..., L, k)`` and metrics ``(..., L)``, with L the list size, or 2**k where
        that is less. A metric is the sum of |LLR| over the bits that disagree with the LLR's sign;
        with ``exact=True``, -log of the probability of its n bits, each by its own LLR. Smaller is
        better.

        >>> code = PolarCode(2, [0, 1])
        >>> bits, metrics = SCLDecoder(code, 2).decode_list([3.0, -1.0])
        >>> bits.tolist(), metrics.tolist()
        ([[1, 1], [0, 0]], [0.0, 1.0])
        """
        frames, shape = as_frames(llr, self.code.n)
        width = min(self.list_size, 2**self.code.k)
        bits = np.empty((len(frames), width, self.code.k), dtype=np.uint8)
        metrics = np.empty((len(frames), width))
        # Metrics are taken over whole codewords, which can be longer than what is decoded.
        room = max(1, WORKING_VALUES // (self.code.n * width))
        for part in batches(len(frames), min(self.frames_per_chunk, room)):
            found = self._decode_chunk(frames[part], best_only=False)
            metric = self._metric(self.code.encode(found), frames[part])
            order = np.argsort(metric, axis=1, kind="stable")
            bits[part] = np.take_along_axis(found, order[:, :, None], axis=1)
            metrics[part] = np.take_along_axis(metric, order, axis=1)
        return bits.reshape(*shape, width, self.code.k), metrics.reshape(*shape, width)

    def _metric(self, codewords: Bits, llr: Real) -> NDArray[np.float64]:
        """Metrics of complete paths: ``(frames, L, n)`` bits, ``(frames, n)`` LLRs."""
        llr = tamed_llr(llr.T.astype(np.float64), self.exact)[:, None]  # (n, 1, frames)
        disagreement = np.maximum(np.where(codewords.T, llr, -llr), 0)
        metric = sum_halves(disagreement).T
        if self.exact:
            metric += sum_halves(log1p_exp_minus(np.abs(llr))).T
        return metric

    def _decode_chunk(self, llr: Real, best_only: bool) -> Bits:
        """``(frames, n)`` LLRs to ``(frames, paths, k)`` bits."""
        frames = len(llr)
        llr = np.ascontiguousarray(llr.T, dtype=np.float64 if self.exact else llr.dtype)
        llr = tamed_llr(llr, self.exact)
        while len(llr) > self._length:
            half = len(llr) // 2
            llr = llr[:half] + llr[half:]
        if self._programs:
            return self._programs[best_only].decide(llr, self._info)
        search = ListSearch(frames, self.list_size, self.exact, self._parities)
        found = search.decide(self._root, llr, np.zeros(frames, llr.dtype), best_only)
        u = polar_transform(np.array(found.bits))[self._info]
        return u.reshape(self.code.k, -1, frames).transpose(2, 1, 0)

    @cached_property
    def _programs(self) -> dict[bool, Program] | None:
        """The compiled walks, for the best path and for all; None where NumPy is to do it.

        Numba takes half a second to import, so that is left until a long code is decoded.
        """
        if self.exact or self.code.n < _SHORT or self.code.k < _FEW:
            return None
        from ldpcash.codec import compiled

        if compiled.numba is None:
            return None
        arguments = self._root, self.list_size, self._parities
        return {best: compiled.Program(*arguments, best) for best in (False, True)}
