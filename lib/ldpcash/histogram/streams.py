"""Reports from a file or a pipe, in parts that can be taken in, and saved, one after the other::

bytes, as they come -> whole reports, many or those of a few seconds       `parts`
how much that was   -> a line on the screen                                `Line`
"""

from __future__ import annotations

import select
import sys
import time
from collections.abc import Iterator
from io import BufferedReader

from ldpcash.histogram.wire import Format

_PART = 2**24  # bytes
_SECONDS_BETWEEN_UPDATES = 0.2  # of the line


def parts(file: BufferedReader, form: Format, seconds: float) -> Iterator[bytes]:
    """A stream in parts that end with a report: of many bytes, or what came in so many seconds.

    Args:
        file: open, and nothing was read from it yet.
        form: of the reports.
        seconds: the longest that a report waits for others.

    >>> import numpy as np
    >>> import tempfile
    >>> form = Format(7, np.dtype("u1"))
    >>> with tempfile.TemporaryFile() as file:
    ...     size = file.write((form.head + bytes(17)) * 3 + form.head)
    ...     start = file.seek(0)
    ...     [len(part) for part in parts(file, form, seconds=0)]
    [72, 7]
    """
    held, new, due = bytearray(), False, time.monotonic() + seconds
    while True:
        wait = max(0, due - time.monotonic()) if new else None  # nothing is new: for ever
        if select.select([file], [], [], wait)[0]:  # what is no pipe is always ready
            if not (more := file.read1(_PART)):
                break
            held += more
            new = True
        if len(held) >= _PART or time.monotonic() >= due:
            if end := _end_of_reports(form, held):
                yield bytes(held[:end])
                del held[:end]
            new, due = False, time.monotonic() + seconds
    if held:
        yield bytes(held)


def _end_of_reports(form: Format, data: bytearray) -> int:
    """Behind all that needs no more bytes to be understood."""
    head, last = form.head, data.rfind(form.head)
    if last < 0:
        return max(0, len(data) - len(head) + 1)  # the next head may be cut here
    end = last + form.size
    begun = (len(data) - size for size in range(1, len(head)) if data.endswith(head[:size]))
    if end > len(data) or any(place < end for place in begun):  # the last one may be cut
        return last
    return end


class Line:
    """How far it is: a line on stderr, written over again and again, if that is a terminal.

    Args:
        each: bytes of a report.
        total: bytes in all; 0 if nobody knows.

    >>> line = Line(24, 48_000_000)
    >>> line.more(24_000_000)
    >>> line.close()
    """

    def __init__(self, each: int, total: int = 0) -> None:
        self.each = each
        self.total = total
        self.done = 0
        self.shown = sys.stderr.isatty()
        self.start = self.next = time.monotonic()

    def more(self, size: int) -> None:
        """So many bytes more were taken in."""
        self.done += size
        now = time.monotonic()
        if self.shown and now >= self.next:
            self.next = now + _SECONDS_BETWEEN_UPDATES
            of = f" of {self.total / 1e6:.0f}" if self.total else ""
            rate = self.done / self.each / max(now - self.start, 1e-3)
            self._write(f"{self.done / 1e6:.0f}{of} MB, {rate:,.0f} reports a second")

    def close(self) -> None:
        """Leave nothing behind."""
        if self.shown:
            self._write("")

    def _write(self, line: str) -> None:
        sys.stderr.write(f"\r\x1b[2K{line}")  # to the line's start, erase it
        sys.stderr.flush()
