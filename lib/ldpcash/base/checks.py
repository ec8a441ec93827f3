"""Checks of arguments: what comes back is plain, or the caller hears what is wrong."""

from __future__ import annotations

import math
import numbers
from collections.abc import Collection, Hashable
from typing import Any


def whole_number(name: str, value: Any, least: int, most: float = math.inf) -> int:
    """``value`` as an int, if it is a whole number from ``least`` to ``most``; 1e6 is one.

    >>> whole_number("trials", 1e6, 1)
    1000000
    """
    if _is_real(value) and -math.inf < value < math.inf:
        number = int(value)
        if number == value and least <= number <= most:
            return number
    raise ValueError(f"{name} = {value!r}: needs a whole number{_range(least, most)}")


def real_number(name: str, value: Any, least: float = -math.inf, most: float = math.inf) -> float:
    """``value`` as a float, if it is a finite number from ``least`` to ``most``.

    >>> real_number("frequency", 1, 0, 1)
    1.0
    """
    number = _as_float(name, value)
    if math.isfinite(number) and least <= number <= most:
        return number
    unbounded = (least, most) == (-math.inf, math.inf)
    allowed = "finite number" if unbounded else f"number{_range(least, most)}"
    raise ValueError(f"{name} = {value!r}: needs a {allowed}")


def positive(name: str, value: Any) -> float:
    """``value`` as a float, if it is a finite number above 0.

    >>> positive("epsilon", 2)
    2.0
    """
    number = _as_float(name, value)
    if 0 < number < math.inf:
        return number
    raise ValueError(f"{name} = {value!r}: needs a positive number")


def fraction(name: str, value: Any) -> float:
    """``value`` as a float, if it is above 0 and below 1.

    >>> fraction("delta", 1e-4)
    0.0001
    """
    number = _as_float(name, value)
    if 0 < number < 1:
        return number
    raise ValueError(f"{name} = {value!r}: needs a number between 0 and 1")


def one_of(name: str, value: Any, allowed: Collection[Any]) -> Any:
    """``value``, if it is among those that are allowed.

    >>> one_of("decision", "soft", ["soft", "hard"])
    'soft'
    """
    choices = [str(choice) for choice in allowed]
    if isinstance(value, Hashable) and value in tuple(allowed):
        return value
    between = "; " if any("," in choice for choice in choices) else ", "
    raise ValueError(f"{name} = {value!r}: choose one of {between.join(choices)}")


def _as_float(name: str, value: Any) -> float:
    if not _is_real(value):
        raise ValueError(f"{name} = {value!r}: needs a number")
    try:
        return float(value) + 0.0  # there is one zero
    except OverflowError:  # a whole number beyond all floats
        return math.inf if value > 0 else -math.inf


def _is_real(value: Any) -> bool:
    """A real number, NumPy's too, which True and False are not."""
    return isinstance(value, numbers.Real) and not isinstance(value, bool)


def _range(least: float, most: float) -> str:
    start = "" if least == -math.inf else f" from {least}"
    return start + ("" if most == math.inf else f" to {most}")
