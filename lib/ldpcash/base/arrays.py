"""Arrays of bits and of numbers: kinds, checks and the few steps that many modules share."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

Bits = NDArray[np.uint8]
Reals = NDArray[np.float64]
Counts = NDArray[Any]  # integers of any kind


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
        # Where, and not what: it may be a client's secret.
        place = ", ".join(map(str, np.argwhere(wrong)[0]))
        raise ValueError(f"{name}[{place}] is neither 0 nor 1: only 0 and 1 are bits")
    return array.astype(np.uint8, copy=False)


def as_items(bits: ArrayLike, k: int) -> Bits:
    """Check that ``bits`` has a row of k bits for each item: ``(N, k)``, as uint8.

    >>> as_items([[1, 0, 1], [0, 0, 1]], 3).shape
    (2, 3)
    """
    items = as_bits("bits", bits, k)
    if items.ndim != 2:
        raise ValueError(f"bits has shape {items.shape}: needs a row of k bits for each item")
    return items


def as_holds(holds: ArrayLike, clients: int) -> NDArray[np.bool_]:
    """Check that ``holds`` says of each client whether it holds its item: ``(N,)`` booleans.

    >>> as_holds([True, False], 2)
    array([ True, False])
    """
    held = np.asarray(holds)
    if held.shape != (clients,) or held.dtype != np.bool_:
        raise ValueError(
            f"holds has shape {held.shape} and type {held.dtype}:"
            f" needs True or False for each of {clients} clients"
        )
    return held


def as_reals(name: str, values: ArrayLike, n: int) -> NDArray[Any]:
    """Check that ``values`` has shape ``(..., n)`` and holds real numbers; float32 stays, the rest
    becomes float64.

    >>> as_reals("y", [1, 2], 2)
    array([1., 2.])
    """
    array = np.asarray(values)
    if array.ndim == 0 or array.shape[-1] != n:
        raise ValueError(f"{name} has shape {array.shape}: the last dimension must be n = {n}")
    if array.dtype.kind not in "fiub":
        raise ValueError(f"{name} has type {array.dtype}: needs real numbers")
    return array if array.dtype == np.float32 else array.astype(np.float64, copy=False)


def bits_of(numbers: ArrayLike, k: int) -> Bits:
    """``(...)`` whole numbers to ``(..., k)`` bits, most significant first.

    >>> bits_of([5, 2], 4)
    array([[0, 1, 0, 1],
           [0, 0, 1, 0]], dtype=uint8)
    """
    words = np.asarray(numbers)[..., None]
    return (words >> np.arange(k - 1, -1, -1).astype(words.dtype) & 1).astype(np.uint8)


def plus_or_minus(ones: NDArray[np.bool_] | Bits) -> NDArray[np.int8]:
    """1 or True to +1, 0 or False to -1: how a bit becomes a sign, the paper's step 2.

    >>> plus_or_minus(np.array([1, 0], dtype=np.uint8))
    array([ 1, -1], dtype=int8)
    """
    return 2 * ones.view(np.int8) - 1


def batches(total: int, size: int) -> Iterator[slice]:
    """Slices of ``size`` that go through ``total`` things; the last may be shorter.

    >>> [list(range(10))[part] for part in batches(10, 4)]
    [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9]]
    """
    size = max(1, size)
    return (slice(start, min(start + size, total)) for start in range(0, total, size))


def sum_halves(values: NDArray[Any]) -> NDArray[Any]:
    """Sum over the first axis, a power of two long, in an order that is always the same.

    >>> sum_halves(np.array([[1.0, 2.0], [3.0, 4.0]])).tolist()
    [4.0, 6.0]
    """
    while len(values) > 1:
        half = len(values) // 2
        values = values[:half] + values[half:]
    return values[0]
