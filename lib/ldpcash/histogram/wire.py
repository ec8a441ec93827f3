"""Reports as bytes: what travels from a client to the server, and what the server lets in::

    magic "lh", version | fingerprint | seed    | payload             | checksum
    3 bytes             | 4 bytes     | 8 bytes | Prot 1, Cash 4 K n  | 4 bytes

The fingerprint is a hash of what client and server must agree on (protocol, code, privacy,
channels, groups, the hashes' seed), but not of how strings become bits: a client that was told
other parameters than the server is found out. The checksum (CRC-32) finds damage, not malice. All
numbers are little-endian.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

_HEAD = struct.Struct("<2sBIQ")
_CHECKSUM = struct.Struct("<I")
_MAGIC, _VERSION = b"lh", 1


class ReportError(ValueError):
    """A report that cannot be used; ``reason`` is a short name to count it under.

    >>> error = ReportError("damaged", "report does not fit its checksum")
    >>> error.reason, str(error)
    ('damaged', 'report does not fit its checksum')
    """

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason


def frame_size(payload: np.dtype[Any]) -> int:
    """Bytes of a report that carries this.

    >>> frame_size(np.dtype("u1"))
    20
    """
    return _HEAD.size + payload.itemsize + _CHECKSUM.size


def to_bytes(fingerprint: int, seeds: NDArray[np.uint64], sent: NDArray[Any]) -> list[bytes]:
    """Each client's report.

    >>> [report] = to_bytes(7, np.array([3], dtype=np.uint64), np.array([5], dtype=np.uint8))
    >>> report.hex(" ")
    '6c 68 01 07 00 00 00 03 00 00 00 00 00 00 00 05 1a b3 f4 56'
    """
    reports = []
    for seed, payload in zip(seeds.tolist(), sent, strict=True):
        body = _HEAD.pack(_MAGIC, _VERSION, fingerprint, seed) + payload.tobytes()
        reports.append(body + _CHECKSUM.pack(zlib.crc32(body)))
    return reports


def check(report: bytes, fingerprint: int, payload: np.dtype[Any], largest: int) -> None:
    """Raise a `ReportError` unless the report is whole and meant for this collection.

    Args:
        report: what came in.
        fingerprint: of the public parameters here.
        payload: what it should carry.
        largest: the largest whole number that the payload may be, if it is one.

    >>> [report] = to_bytes(7, np.array([3], dtype=np.uint64), np.array([5], dtype=np.uint8))
    >>> check(report, 7, np.dtype("u1"), largest=7)
    >>> check(report[:-1], 7, np.dtype("u1"), largest=7)
    Traceback (most recent call last):
    ldpcash.histogram.wire.ReportError: report has 19 bytes: needs 20
    """
    size = frame_size(payload)
    if not isinstance(report, bytes) or report[:2] != _MAGIC:
        raise ReportError("foreign", f"report = {report!r:.24}: does not begin as a report does")
    if report[2:3] != bytes([_VERSION]):
        raise ReportError("version", f"report has version {report[2:3]!r}: this is {_VERSION}")
    if len(report) >= _HEAD.size and _HEAD.unpack_from(report)[2] != fingerprint:
        raise ReportError(
            "parameters",
            "report was made with other public parameters than the server's",
        )
    if len(report) != size:
        raise ReportError("size", f"report has {len(report)} bytes: needs {size}")
    if zlib.crc32(report[: -_CHECKSUM.size]) != _CHECKSUM.unpack(report[-_CHECKSUM.size :])[0]:
        raise ReportError("damaged", "report does not fit its checksum")
    count = payload.itemsize // payload.base.itemsize
    check_values("report", np.frombuffer(report, payload.base, count, _HEAD.size), largest)


def check_values(name: str, values: NDArray[Any], largest: int) -> None:
    """Raise a `ReportError` unless payloads hold only what an honest client can send.

    Args:
        name: what is checked.
        values: payloads of any number of reports: symbols, or real numbers.
        largest: the largest symbol.

    >>> check_values("sent", np.array([5], dtype=np.uint8), largest=7)
    """
    if values.dtype.kind == "u" and values.max(initial=0) > largest:
        raise ReportError("symbol", f"{name} holds the symbol {values.max()}: at most {largest}")
    if values.dtype.kind == "f" and not np.isfinite(values).all():
        raise ReportError("not finite", f"{name} holds NaN or infinity")


def from_bytes(
    reports: Iterable[bytes], fingerprint: int, payload: np.dtype[Any], largest: int
) -> tuple[NDArray[np.uint64], NDArray[Any], list[ReportError]]:
    """Seeds and payloads of the reports that pass `check`, and the errors of those that do not.

    >>> [report] = to_bytes(7, np.array([3], dtype=np.uint64), np.array([5], dtype=np.uint8))
    >>> seeds, sent, errors = from_bytes([report, report[:9]], 7, np.dtype("u1"), largest=7)
    >>> seeds.tolist(), sent.tolist(), [error.reason for error in errors]
    ([3], [5], ['size'])
    """
    good: list[bytes] = []
    errors: list[ReportError] = []
    for report in reports:
        try:
            check(report, fingerprint, payload, largest)
            good.append(report)
        except ReportError as error:
            errors.append(error)
    layout = np.dtype(
        {
            "names": ["seed", "payload"],
            "formats": ["<u8", payload],
            "offsets": [_HEAD.size - 8, _HEAD.size],
            "itemsize": frame_size(payload),
        }
    )
    table = np.frombuffer(b"".join(good), dtype=layout)
    return table["seed"].astype(np.uint64), table["payload"], errors
