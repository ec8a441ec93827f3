"""Reports as bytes: what travels from a client to the server, and what the server lets in::

    magic "lh", version | fingerprint | ticket: number, seed | payload               | checksum
    3 bytes             | 4 bytes     | 4 and 8 bytes        | Prot 1-2, Cash 4 K n  | 4 bytes

The fingerprint is a hash of what client and server must agree on (see `Plan.fingerprint`): a client
that was told other parameters than the server is found out. The checksum (CRC-32) finds damage, not
malice. All numbers are little-endian. Reports of a collection all have one size, and one after the
other they are a stream.
"""

from __future__ import annotations

import math
import struct
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import Any, BinaryIO, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ldpcash.base.arrays import Counts
from ldpcash.histogram.tickets import TICKET, TicketArray, as_tickets

_HEAD = struct.Struct("<2sBI")
_CHECKSUM = struct.Struct("<I")
_MAGIC, _VERSION = b"lh", 2
_START = _HEAD.size  # of the ticket
_SMALL = 256  # bytes of a report, up to which
_MANY = 128  # and more of them have their checksums computed together, and not one by one
BLOCK = 2**21  # bytes of reports that are looked at together

Rows = NDArray[np.uint8]  # (B, size): reports


class ReportError(ValueError):
    """A report that cannot be used; ``reason`` is a short name to count it under.

    >>> error = ReportError("damaged", "report does not fit its checksum")
    >>> error.reason, str(error)
    ('damaged', 'report does not fit its checksum')
    """

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason


class Format(NamedTuple):
    """What reports of one collection look like.

    >>> Format(7, np.dtype("u1")).size
    24
    """

    fingerprint: int
    payload: np.dtype[Any]

    @property
    def head(self) -> bytes:
        """What every report begins with.

        >>> Format(7, np.dtype("u1")).head.hex(" ")
        '6c 68 02 07 00 00 00'
        """
        return _HEAD.pack(_MAGIC, _VERSION, self.fingerprint)

    @property
    def size(self) -> int:
        """Bytes of a report."""
        return _START + TICKET.itemsize + self.payload.itemsize + _CHECKSUM.size


def as_reports(
    form: Format, tickets: ArrayLike, sent: ArrayLike
) -> tuple[TicketArray, NDArray[Any]]:
    """Check that there are B tickets, and a payload for each.

    >>> form, ticket = Format(7, np.dtype("u1")), np.array([(3, 4)], dtype=TICKET)
    >>> as_reports(form, ticket, np.array([5]))
    Traceback (most recent call last):
    ValueError: sent has type int64: needs uint8
    """
    given, values, one = as_tickets(tickets), np.asarray(sent), form.payload
    if values.shape != (shape := (given.size, *one.shape)):
        raise ValueError(f"sent has shape {values.shape}: needs {shape}")
    if values.dtype not in (one.base, one.base.newbyteorder()):
        raise ValueError(f"sent has type {values.dtype}: needs {one.base}")
    return given, values.astype(one.base, copy=False)


def to_bytes(form: Format, tickets: ArrayLike, sent: ArrayLike) -> bytes:
    """The reports of B clients, one after the other.

    >>> ticket = np.array([(3, 4)], dtype=TICKET)
    >>> to_bytes(Format(7, np.dtype("u1")), ticket, np.array([5], dtype=np.uint8)).hex(" ")
    '6c 68 02 07 00 00 00 03 00 00 00 04 00 00 00 00 00 00 00 05 47 0f c0 24'
    """
    given, values = as_reports(form, tickets, sent)
    rows = np.empty((len(given), form.size), dtype=np.uint8)
    middle = _START + TICKET.itemsize
    rows[:, :_START] = np.frombuffer(form.head, dtype=np.uint8)
    rows[:, _START:middle] = _as_bytes(given)
    rows[:, middle : -_CHECKSUM.size] = _as_bytes(values)
    rows[:, -_CHECKSUM.size :] = _as_bytes(_checksums(rows).astype("<u4"))
    return rows.tobytes()


def from_rows(form: Format, rows: Rows) -> tuple[TicketArray, NDArray[Any], NDArray[np.bool_]]:
    """Rows that begin as they should to tickets, payloads, and whether each fits its checksum.

    >>> form = Format(7, np.dtype("u1"))
    >>> report = to_bytes(form, np.array([(3, 4)], dtype=TICKET), np.array([5], dtype=np.uint8))
    >>> tickets, sent, whole = from_rows(form, np.frombuffer(report, dtype=np.uint8)[None])
    >>> tickets.tolist(), sent.tolist(), whole.tolist()
    ([(3, 4)], [5], [True])
    """
    middle = _START + TICKET.itemsize
    tickets = np.ascontiguousarray(rows[:, _START:middle]).view(TICKET).ravel()
    payload = np.ascontiguousarray(rows[:, middle : -_CHECKSUM.size]).view(form.payload.base)
    found = np.ascontiguousarray(rows[:, -_CHECKSUM.size :]).view("<u4").ravel()
    return tickets, payload.reshape(-1, *form.payload.shape), found == _checksums(rows)


def misfit(form: Format, report: object) -> ReportError | None:
    """What is wrong with a report, as far as its beginning and its size tell; None if nothing is.

    It does not say what is in it: that may be a client's secret.

    >>> misfit(Format(7, np.dtype("u1")), b"GET / HTTP/1.1").reason
    'foreign'
    """
    if not isinstance(report, (bytes, bytearray, memoryview)):
        return ReportError("foreign", f"report is of type {type(report).__name__}: needs bytes")
    if memoryview(report).ndim != 1 or memoryview(report).itemsize != 1:
        return ReportError("foreign", "report is a view of something else than bytes")
    start = bytes(report[:_START])
    if start[:2] != _MAGIC:
        return ReportError("foreign", "report does not begin as reports do")
    if start[2:3] not in (b"", bytes([_VERSION])):
        return ReportError("version", f"report has version {start[2]}: this is {_VERSION}")
    if not form.head.startswith(start):
        told = "report was made with other public parameters than the server's"
        return ReportError("parameters", told)
    if len(report) != form.size:
        return ReportError("size", f"report has {len(report)} bytes: needs {form.size}")
    return None


def blocks(
    form: Format, stream: BinaryIO | Iterable[bytes], rejected: Counter[str]
) -> Iterator[bytes]:
    """A stream of reports in blocks of whole ones, each of which begins as it should.

    A report was cut if another one begins inside of it, and none right behind it. What is between
    reports is skipped and counted once.

    Args:
        form: of the reports.
        stream: opened for reading bytes; or pieces of it, however long.
        rejected: where skipped pieces are counted, by reason.

    >>> form, rejected = Format(7, np.dtype("u1")), Counter()
    >>> report = to_bytes(form, np.array([(3, 4)], dtype=TICKET), np.array([5], dtype=np.uint8))
    >>> pieces = [report[:20], report, b"noise", report[:9], report[9:]]
    >>> b"".join(blocks(form, pieces, rejected)) == report + report
    True
    >>> dict(rejected)
    {'size': 1, 'foreign': 1}
    """
    head, size = form.head, form.size
    rest, told = b"", False  # whether the piece that the rest begins with was counted
    for more in _even_pieces(stream, max(BLOCK, size)):
        data = rest + more
        starts = _places_of(head, data)
        begins = np.zeros(len(data) + 1, dtype=np.bool_)  # whether a report begins at each place
        begins[starts] = True
        # Of the last ones it is not known yet what follows, unless the stream has ended.
        last = len(data) - size - (len(head) if more else 0)
        decided = int(np.searchsorted(starts, last, side="right"))
        ours, later = starts[:decided], starts[decided:]
        another_inside = np.diff(starts, append=len(data) + size)[:decided] < size
        whole = ours[~another_inside | begins[ours + size]]
        if cut := len(ours) - len(whole) + (0 if more else len(later)):
            rejected["size"] += cut
        if len(whole):
            yield _taken(data, whole, size)
        due = whole + size if told else np.append(0, whole + size)  # where one should begin
        sure = len(data) - (len(head) if more else 1)
        for place in due[~begins[due] & (due <= sure)].tolist():
            error = misfit(form, data[place : place + size])
            rejected[error.reason if error else "foreign"] += 1
        if len(later):
            rest, told = data[later[0] :], False
        else:
            told = told or len(data) >= len(head)
            rest = data[max(0, len(data) - len(head) + 1) :]  # the head of one may be cut here


def _even_pieces(stream: BinaryIO | Iterable[bytes], size: int) -> Iterator[bytes]:
    """A stream in pieces of this size, the last one smaller; then an empty one."""
    read: Any = getattr(stream, "read", None)
    pieces: Any = stream if read is None else iter(lambda: read(size), b"")
    if isinstance(stream, (bytes, bytearray, memoryview)):
        pieces = [stream]
    held = bytearray()
    for piece in pieces:
        if not isinstance(piece, (bytes, bytearray, memoryview)):
            raise ValueError(f"stream gives {type(piece).__name__}: needs bytes")
        view = memoryview(piece).cast("B")
        while len(view):
            taken = view[: size - len(held)]
            held += taken
            view = view[len(taken) :]
            if len(held) == size:
                yield bytes(held)
                held.clear()
    if held:
        yield bytes(held)
    yield b""


def _places_of(head: bytes, data: bytes) -> Counts:
    """Where it stands in data, in order."""
    letters = np.frombuffer(data, dtype=np.uint8)
    found = np.flatnonzero(letters[: max(0, len(data) - len(head) + 1)] == head[0])
    for place, letter in enumerate(head[1:], 1):
        found = found[letters[found + place] == letter]
    return found


def _taken(data: bytes, starts: Counts, size: int) -> bytes:
    """The reports that begin at these places."""
    if (np.diff(starts) == size).all():
        return data[starts[0] : starts[-1] + size]
    return b"".join(data[start : start + size] for start in starts.tolist())


def _as_bytes(values: NDArray[Any]) -> Rows:
    width = values.itemsize * math.prod(values.shape[1:])
    return np.ascontiguousarray(values).view(np.uint8).reshape(len(values), width)


def _checksums(rows: Rows) -> NDArray[np.uint32]:
    """CRC-32 of each row without its last four bytes."""
    if len(rows) < _MANY or rows.shape[1] > _SMALL:
        return np.array([zlib.crc32(row[: -_CHECKSUM.size].data) for row in rows], np.uint32)
    table, crc = _crc_table(), np.full(len(rows), 0xFFFFFFFF, dtype=np.uint32)
    for column in np.ascontiguousarray(rows[:, : -_CHECKSUM.size].T):
        crc = table[(crc ^ column) & np.uint32(0xFF)] ^ crc >> np.uint32(8)
    return ~crc


@lru_cache(maxsize=1)
def _crc_table() -> NDArray[np.uint32]:
    table = np.arange(256, dtype=np.uint32)
    for _ in range(8):
        table = table >> np.uint32(1) ^ (table & np.uint32(1)) * np.uint32(0xEDB88320)
    return table
