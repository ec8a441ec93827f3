"""Where a condition begins to hold: conditions that are false up to some number and true beyond it.

`grow` finds two numbers with the change between them, and `bisect` closes in on it. Both work on
whole numbers and on floats.
"""

from __future__ import annotations

from collections.abc import Callable
from operator import floordiv, truediv
from typing import Any, TypeVar

Number = TypeVar("Number", int, float)


def grow(holds: Callable[[Number], bool], start: Number) -> tuple[Number, Number]:
    """Double ``start``, which is above 0, until the condition holds: the last two numbers.

    If it holds at once, the first of them is 0.

    >>> grow(lambda x: x > 10, 1), grow(lambda x: x > 10, 12.0)
    ((8, 16), (0.0, 12.0))
    """
    low, high = 0 * start, start
    while not holds(high):
        low, high = high, 2 * high
    return low, high


def bisect(
    holds: Callable[[Number], bool], low: Number, high: Number, close: float = 0.0
) -> Number:
    """The least number for which the condition holds, which it does at ``high`` but not at ``low``.

    Args:
        holds: the condition.
        low, high: whole numbers, or floats.
        close: stop once high - low is this part of high. Unless given, go on until there is no
            number between them.

    >>> bisect(lambda x: x * x > 50, 0, 10), bisect(lambda x: x * x >= 2, 0.0, 2.0)
    (8, 1.4142135623730951)
    """
    half: Any = floordiv if isinstance(low, int) else truediv
    while high - low > close * high:
        middle: Number = half(low + high, 2)
        if middle in (low, high):
            break
        if holds(middle):
            high = middle
        else:
            low = middle
    return high
