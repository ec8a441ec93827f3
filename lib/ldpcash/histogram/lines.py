"""Items and tickets as lines of text, as the command line reads and writes them::

    ANNA                      an item: letters or any text, as the plan says; or k zeros and ones
                              an empty line: a client that holds nothing
    00000007e5a3c0de12345678  a ticket: its number and its seed

A line of items is a client's secret: errors tell its number, and what is wrong.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from ldpcash.base.arrays import Bits
from ldpcash.histogram.plan import Plan
from ldpcash.histogram.tickets import TICKET, TicketArray

_PRINTED = np.dtype([("number", ">u4"), ("seed", ">u8")])  # sorted lines have sorted numbers


def alphabet_of(text: str) -> str:
    """Letters, with ranges among them; a hyphen at the beginning or the end is a letter.

    >>> alphabet_of("a-e1-3_-")
    'abcde123_-'
    """

    def spelt(match: re.Match[str]) -> str:
        low, high = match.groups()
        if low > high:
            raise ValueError(f"alphabet = {text!r}: {low} comes after {high}")
        return "".join(map(chr, range(ord(low), ord(high) + 1)))

    return re.sub("(.)-(.)", spelt, text)


def items_of(plan: Plan, lines: Sequence[bytes]) -> tuple[Bits, NDArray[np.bool_]]:
    """M lines to items, ``(M, k)``, and whether something is held, ``(M,)``.

    >>> plan = Plan.choose(10_000, 4, 2.0)
    >>> items_of(plan, [b"0110", b""])
    (array([[0, 1, 1, 0],
           [0, 0, 0, 0]], dtype=uint8), array([ True, False]))
    """
    # Some editors put a mark at the beginning, which is no letter.
    lines = [line.removeprefix(b"\xef\xbb\xbf") if not i else line for i, line in enumerate(lines)]
    holds = np.array([bool(line) for line in lines], dtype=np.bool_)
    return _packed(plan, lines) if plan.packing else _raw(plan.k, lines), holds


def _raw(k: int, lines: Sequence[bytes]) -> Bits:
    for number, line in enumerate(lines, 1):
        if line and (len(line) != k or line.strip(b"01")):
            raise ValueError(f"items, line {number}: needs {k} zeros and ones, or nothing")
    joined = b"".join(line or bytes(k) for line in lines)
    return np.frombuffer(joined, dtype=np.uint8).reshape(-1, k) & np.uint8(1)


def _packed(plan: Plan, lines: Sequence[bytes]) -> Bits:
    assert plan.packing is not None
    texts = []
    for number, line in enumerate(lines, 1):
        text = _text_of(line)
        if text is None:
            raise ValueError(f"items, line {number}: is not UTF-8")
        texts.append(text)
    try:
        return plan.packing.pack(texts)
    except ValueError as error:  # which counts from 0
        told = re.sub(r"^strings\[(\d+)\]", lambda m: f"items, line {int(m[1]) + 1}:", str(error))
        told = told.replace("(cut=True shortens)", "(a plan made with --cut shortens)")
        raise ValueError(told) from None


def _text_of(line: bytes) -> str | None:
    """The text of a line, None if it is none. Python's own error, which has the line, ends here."""
    try:
        return line.decode()
    except UnicodeDecodeError:
        return None


def ticket_lines(tickets: TicketArray) -> bytes:
    """Tickets, ``(B,)``, one a line.

    >>> ticket_lines(np.array([(7, 255)], dtype=TICKET))
    b'0000000700000000000000ff\\n'
    """
    printed = tickets.astype(_PRINTED).tobytes().hex("\n", _PRINTED.itemsize)
    return printed.encode() + b"\n" * bool(printed)


def tickets_of(lines: Iterable[bytes]) -> TicketArray:
    """Lines to tickets, ``(B,)``.

    >>> tickets_of([b"0000000700000000000000ff\\n"])
    array([(7, 255)], dtype=[('number', '<u4'), ('seed', '<u8')])
    """
    found = [_bytes_of(line) for line in lines]
    for number, ticket in enumerate(found, 1):
        if len(ticket) != _PRINTED.itemsize:
            raise ValueError(f"tickets, line {number}: is no ticket")
    return np.frombuffer(b"".join(found), dtype=_PRINTED).astype(TICKET)


def _bytes_of(line: bytes) -> bytes:
    try:
        return bytes.fromhex(line.decode())
    except ValueError:
        return b""
