"""Checks: information bits turned into a CRC of the others, so that a list finds the right path."""

from __future__ import annotations

from ldpcash.base.checks import one_of
from ldpcash.codec.polar import PolarCode

_CRC = {6: 0x61, 11: 0xE21, 16: 0x11021}


def with_checks(code: PolarCode, checks: int) -> PolarCode:
    """The same code with its last information bits turned into a CRC of the others.

    They are dynamic frozen bits: a list decoder makes every path fit, and a wrong one pays for that
    in its metric. What comes back always fits, so nothing is detected; but the right path wins.

    Args:
        code: k + checks information bits, none of them dynamic.
        checks: bits of the CRC: 6, 11 or 16 (the polynomials of 3GPP TS 38.212).

    >>> with_checks(PolarCode.construct(64, 14), 6).k
    8
    """
    one_of("checks", checks, _CRC)
    k = code.k - checks
    if k < 1 or code.dynamic:
        raise ValueError(f"code = {code!r}: needs more than {checks} bits, and none dynamic")
    remainder, remainders = 1, []  # of x**0, x**1, ... by the polynomial
    for _ in range(k + checks):
        remainders.append(remainder)
        remainder <<= 1
        remainder ^= _CRC[checks] if remainder >> checks else 0
    of_bits = remainders[checks:][::-1]  # the first bit of an item has the highest power
    info = code.info.tolist()
    parities = {
        index: [info[j] for j in range(k) if of_bits[j] >> (checks - 1 - place) & 1]
        for place, index in enumerate(info[k:])
    }
    return PolarCode(code.n, info[:k], {i: sources for i, sources in parities.items() if sources})
