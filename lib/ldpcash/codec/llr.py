"""LLRs on their way into a decoder: checked, and made so that they can be added up.

An LLR is log P(bit = 0) / P(bit = 1), so a positive one speaks for 0.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ldpcash.base.arrays import as_reals

Real = NDArray[Any]  # float32 or float64

CERTAIN = 1e30  # an LLR beyond this, an infinite one too, means that the bit is known
WORKING_VALUES = 2**22  # LLRs that a chunk of frames may hold at one level of a decoder


def as_frames(llr: ArrayLike, n: int) -> tuple[Real, tuple[int, ...]]:
    """LLRs as ``(frames, n)`` floats, and the leading shape they came in.

    >>> frames, shape = as_frames(np.zeros((2, 3, 4)), 4)
    >>> frames.shape, shape
    ((6, 4), (2, 3))
    """
    array = as_reals("llr", llr, n)
    return array.reshape(-1, n), array.shape[:-1]


def tamed_llr(llr: Real, exact: bool = False) -> Real:
    """LLRs that can be added up: ``(n, frames)`` to the same shape.

    A bit counts as known if its LLR is infinite, beyond `CERTAIN`, or so large that the frame's
    median would be lost in rounding beside it. Then it is made to outweigh all other bits together.
    Each frame is judged by itself, so what it decodes to does not depend on its neighbours.

    >>> tamed_llr(np.array([[np.inf], [1.0], [-2.0], [0.5]])).ravel().tolist()
    [16.0, 1.0, -2.0, 0.5]
    """
    n = len(llr)
    size = np.abs(llr)
    peak = size.max(axis=0)
    if np.isnan(peak).any():
        raise ValueError("llr holds NaN: an LLR must be a number, or infinite")
    faint = 128 * float(np.finfo(llr.dtype).eps)
    heard = (size > faint * peak).sum(axis=0, dtype=np.uint16)
    odd = (peak > CERTAIN) | (2 * heard <= n)
    if not odd.any():
        return llr
    frames = llr[:, odd].astype(np.float64)
    size = np.abs(frames)
    median = np.partition(size, n // 2, axis=0)[n // 2]
    certain = (size > CERTAIN) | ((faint * size > median) & (median > 0))
    largest = np.where(certain, 0.0, size).max(axis=0)
    if exact:
        largest = np.maximum(largest, 40.0)  # which sees the scale: a small LLR is not certain
    known = np.where(largest > 0, 2 * n * largest, 1.0)
    tamed = llr.copy()
    tamed[:, odd] = np.where(certain, np.copysign(known, frames), frames)
    return tamed


@lru_cache(maxsize=1)
def keep_freed_memory() -> None:
    """Let the C library keep the memory of arrays that come and go, once in a process.

    Decoders make and drop arrays of a megabyte. glibc returns such blocks to the system at once,
    and each page then costs a fault again: two to four times the time of all else. It keeps blocks
    up to the size of the largest that was ever freed, so free one.

    >>> keep_freed_memory()
    """
    np.empty(2**24, dtype=np.uint8)
