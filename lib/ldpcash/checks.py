"""Checks of arguments: what comes back is a plain number, or the caller hears what is wrong."""

from __future__ import annotations

import math
import numbers
from typing import Any


def whole_number(name: str, value: Any, least: int, most: float = math.inf) -> int:
    """``value`` as an int, if it is a whole number from ``least`` to ``most``; 1e6 is one.

    >>> whole_number("trials", 1e6, 1)
    1000000
    """
    if _is_finite(value) and value == int(value) and least <= value <= most:
        return int(value)
    top = "" if most == math.inf else f" to {most:g}"
    raise ValueError(f"{name} = {value!r}: needs a whole number from {least}{top}")


def real_number(name: str, value: Any) -> float:
    """``value`` as a float, if it is a finite real number.

    >>> real_number("epsilon", 2)
    2.0
    """
    if _is_finite(value):
        return float(value) + 0.0  # there is one zero
    raise ValueError(f"{name} = {value!r}: needs a number")


def positive(name: str, value: Any) -> float:
    """``value`` as a float, if it is a finite number above 0.

    >>> positive("epsilon", 2)
    2.0
    """
    number = real_number(name, value)
    if number <= 0:
        raise ValueError(f"{name} = {value!r}: needs a positive number")
    return number


def _is_finite(value: Any) -> bool:
    """A real number, NumPy's too, which True and False are not."""
    return isinstance(value, numbers.Real) and not isinstance(value, bool) and math.isfinite(value)
