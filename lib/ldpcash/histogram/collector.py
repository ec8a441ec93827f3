"""The server's side: tickets out, reports in, sums that add up anywhere, and in the end a table::

    reports, as arrays, bytes or a stream -> each checked, its ticket too -> sums    `Collector`
    sums -> what stands out, with intervals -> unmixed, unpacked                     `histogram`
    all of it <-> a file                                                `save`, `Collector.load`

Sums add up exactly, so the table is the same however many collectors there were.

A ticket counts once. Collectors of one collection share its key, and each issues numbers of its
own, so what was sent to several of them counts in one and is refused by the others.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections import Counter, deque
from collections.abc import Callable, Iterable
from concurrent.futures import Executor
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ldpcash.base.checks import whole_number
from ldpcash.base.store import DamagedError, write_whole
from ldpcash.base.workers import Here
from ldpcash.histogram import wire
from ldpcash.histogram.packing import NO_LETTER, Packing
from ldpcash.histogram.plan import Plan
from ldpcash.histogram.search import find_items
from ldpcash.histogram.tickets import MOST_TICKETS, TicketArray, Tickets, genuine

_STATE = b"ldpcash collector 2\n"
_AT_ONCE = 8  # blocks of a stream that wait for workers

# Tickets, payloads, whether each ticket is genuine, and how many reports were damaged.
Checked = tuple[TicketArray, NDArray[Any], NDArray[np.bool_], int]

# What may be wrong with a report that begins as it should.
_REASONS = {
    "damaged": "report does not fit its checksum",
    "ticket": "report has a ticket that was not issued here",
    "dishonest": "report holds what no honest client sends",
    "replay": "report uses a ticket a second time",
}


class Entry(NamedTuple):
    """One line of a histogram.

    >>> Entry("ANNA", 0.6, 0.58, 0.62).item
    'ANNA'
    """

    item: Any  #: a string, or (k,) bits
    frequency: float  #: estimated fraction of clients that hold it
    #: 95 % interval of it, given that the item was found. This is its lower end.
    low: float
    high: float  #: upper end of that interval


class Collector:
    """What the server keeps: sums, who has reported, and how many reports it rejected, and why.

    Collectors of one plan and key add up, in any order, and what one has taken in it never loses.

    Args:
        plan: the public parameters.
        key: 16 secret bytes that all collectors of a collection share; random unless given.
        first: the first number of the tickets that are issued here.

    >>> plan = Plan.choose(10_000, 8, 2.0)
    >>> here = Collector(plan)
    >>> there = Collector(plan, here.tickets.key, first=5000)
    >>> items, holds = np.tile([1, 0, 1, 1, 0, 0, 1, 0], (5000, 1)), np.arange(5000) < 3500
    >>> rng = np.random.default_rng(1)
    >>> tickets = here.issue(5000)
    >>> here.add(tickets, plan.reports(items, holds, tickets, rng))
    >>> tickets = there.issue(5000)
    >>> reports = plan.to_bytes(tickets, plan.reports(items, holds, tickets, rng))
    >>> there.receive_stream([reports, reports[:24], b"noise"])
    >>> there.clients, dict(there.rejected)
    (5000, {'foreign': 1, 'replay': 1})
    >>> [entry] = (here + there).histogram()
    >>> entry.item, round(entry.frequency, 1)
    (array([1, 0, 1, 1, 0, 0, 1, 0], dtype=uint8), 0.7)
    """

    def __init__(self, plan: Plan, key: bytes | None = None, first: int = 0) -> None:
        self.plan = plan
        self.tickets = Tickets(key, first)
        self.sums = plan.channels.empty()
        self.clients = 0
        self.rejected: Counter[str] = Counter()

    def issue(self, count: int) -> TicketArray:
        """The next tickets, ``(count,)``: each client needs one to report.

        >>> Collector(Plan.choose(10_000, 8, 2.0)).issue(3)["number"]
        array([0, 1, 2], dtype=uint32)
        """
        return self.tickets.issue(count)

    def add(self, tickets: ArrayLike, sent: ArrayLike) -> None:
        """Take in reports as arrays, as `Plan.reports` makes them.

        Arrays of another kind are an error. Reports with a wrong ticket or content are rejected and
        counted.
        """
        given, values = wire.as_reports(self.plan.form, tickets, sent)
        self._take_in((given, values, self.tickets.genuine(given), 0))

    def _take_in(self, checked: Checked) -> Counter[str]:
        """Add what is good of B reports, and say how many are not, by reason."""
        tickets, values, genuine, damaged = checked
        channels = self.plan.channels
        good = genuine & channels.honest(values)
        issued, honest = int(np.count_nonzero(genuine)), int(np.count_nonzero(good))
        good[good] = self.tickets.use(tickets["number"][good])
        channels.add(self.sums, tickets["seed"][good], values[good])
        added = int(np.count_nonzero(good))
        self.clients += added
        found = Counter(
            damaged=damaged,
            ticket=len(genuine) - issued,
            dishonest=issued - honest,
            replay=honest - added,
        )
        self.rejected += found
        return found

    def receive(
        self, reports: Iterable[bytes | bytearray | memoryview] | bytes | bytearray | memoryview
    ) -> list[wire.ReportError]:
        """Take in reports as bytes, one or several; for many in one piece call `receive_stream`.

        Returns an error for each report that cannot be used, which says what is wrong with it. It
        is counted in `rejected`; the others count.

        >>> here = Collector(Plan.choose(10_000, 8, 2.0))
        >>> tickets = here.issue(1)
        >>> report = here.plan.to_bytes(tickets, here.plan.reports([[1] * 8], [True], tickets))
        >>> [error.reason for error in here.receive([report, b"noise", report])], here.clients
        (['foreign', 'replay'], 1)
        """
        if isinstance(reports, (bytes, bytearray, memoryview)):
            reports = [reports]
        form, rows = self.plan.form, bytearray()
        errors: list[wire.ReportError] = []

        def take_in() -> None:
            found = self._take_in(_check(form, self.tickets.key, self.tickets.numbers, bytes(rows)))
            errors.extend(wire.ReportError(reason, _REASONS[reason]) for reason in found.elements())
            rows.clear()

        for report in reports:
            if error := wire.misfit(form, report):
                errors.append(error)
                self.rejected[error.reason] += 1
            else:
                rows += bytes(report)
            if len(rows) >= wire.BLOCK:
                take_in()
        take_in()
        return errors

    def receive_stream(
        self,
        stream: BinaryIO | Iterable[bytes],
        executor: Executor | None = None,
        seen: Callable[[int], object] = lambda size: None,
    ) -> None:
        """Take in reports that stand one after the other in a file or a pipe, in bounded memory.

        The order of the stream decides, not that of workers: the state is the same with any
        executor.

        Args:
            stream: opened for reading bytes; or pieces of it.
            executor: where checksums and tickets are checked; in this process unless given.
            seen: is told how many bytes of reports were taken in, again and again.
        """
        where: Any = Here() if executor is None else executor
        form, running = self.plan.form, deque[Any]()

        def take_in_oldest() -> None:
            size, future = running.popleft()
            self._take_in(future.result())
            seen(size)

        for block in wire.blocks(form, stream, self.rejected):
            issued = self.tickets.key, self.tickets.numbers
            running.append((len(block), where.submit(_check, form, *issued, block)))
            if len(running) >= _AT_ONCE:
                take_in_oldest()
        while running:
            take_in_oldest()

    def __add__(self, other: Collector) -> Collector:
        if not isinstance(other, Collector):
            return NotImplemented
        mine, others = self.plan.to_json(), other.plan.to_json()
        if mine != others:
            raise ValueError("other = a collector with another plan: they do not add up")
        both = Collector(self.plan, self.tickets.key)
        both.tickets = self.tickets + other.tickets
        both.sums = self.sums + other.sums
        both.clients = self.clients + other.clients
        both.rejected = self.rejected + other.rejected
        return both

    def histogram(self, packing: Packing | None = None) -> list[Entry]:
        """The items that stand out, most frequent first.

        Bits that are no string in the packing are left out: no honest client holds them.

        Args:
            packing: to turn items into strings: the plan's unless given; without one they stay rows
                of bits.
        """
        if self.clients == 0:
            raise ValueError("clients = 0: no report was taken in")
        plan = self.plan
        if packing is None:
            packing = plan.packing
        elif packing != (plan.packing or packing):
            raise ValueError(f"packing = {packing!r}: the plan's is {plan.packing!r}")
        elif packing.k != plan.k:
            raise ValueError(f"packing = {packing!r}: items have k = {plan.k} bits")
        settings = plan.decoder(), plan.fdr, plan.decision
        found = find_items(plan.channels, plan.channel_of, self.sums, self.clients, *settings)
        bits = plan.mixing.unmix(found.bits)
        names = packing.unpack(bits) if packing else list(bits)
        return [
            Entry(name, *map(float, numbers))
            for name, *numbers in zip(names, found.frequency, found.low, found.high, strict=True)
            if packing is None or NO_LETTER not in name
        ]

    def save(self, path: str | os.PathLike[str]) -> None:
        """Keep everything in a file, whole or not at all. It holds the key: keep it secret.

        Save before tickets that were issued are handed out: one that is issued again, after a
        crash, counts for one of its two clients.

        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     Collector(Plan.choose(10_000, 8, 2.0)).save(Path(folder, "state"))
        ...     Collector.load(Path(folder, "state")).clients
        0
        """
        used = np.frombuffer(b"".join(self.tickets.runs.values()), dtype=np.bool_)
        head = {
            "plan": self.plan.to_json(),
            "key": self.tickets.key.hex(),
            "first": self.tickets.first,
            "runs": [[first, len(run)] for first, run in self.tickets.runs.items()],
            "clients": self.clients,
            "rejected": dict(self.rejected),
        }
        little = self.sums.astype(self.sums.dtype.newbyteorder("<"))
        content = json.dumps(head).encode() + b"\n" + np.packbits(used).tobytes() + little.tobytes()
        checksum = hashlib.sha256(content).hexdigest().encode() + b"\n"
        write_whole(Path(path), _STATE + checksum + content, mode=0o600, lasting=True)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Collector:
        """The collector that was kept in a file; a `DamagedError` if that is not what was kept.

        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     Collector(Plan.choose(10_000, 8, 2.0), first=3).save(Path(folder, "state"))
        ...     Collector.load(Path(folder, "state")).issue(2)["number"]
        array([3, 4], dtype=uint32)
        """
        stored = Path(path).read_bytes()
        if not stored.startswith(_STATE):
            raise DamagedError(f"{Path(path).name} is not a collector's state of this version")
        checksum, _, content = stored[len(_STATE) :].partition(b"\n")
        if hashlib.sha256(content).hexdigest().encode() != checksum:
            raise DamagedError(f"{Path(path).name} is damaged")
        try:
            return cls._restored(content)
        except (KeyError, TypeError, ValueError, AttributeError, RecursionError) as error:
            raise DamagedError(f"{Path(path).name} is no collector's state: {error}") from error

    @classmethod
    def _restored(cls, content: bytes) -> Collector:
        line, _, rest = content.partition(b"\n")
        head = json.loads(line)
        loaded = cls(Plan.from_json(head["plan"]), bytes.fromhex(head["key"]), head["first"])
        length = len(rest) - loaded.sums.nbytes
        used = np.unpackbits(np.frombuffer(rest[:length], dtype=np.uint8)).tobytes()
        start, after, runs = 0, 0, {}
        for first, count in head["runs"]:
            first = whole_number("first", first, after, MOST_TICKETS)
            after = first + whole_number("count", count, 0, MOST_TICKETS - first)
            runs[first] = bytearray(used[start : start + count])
            start += count
        if loaded.tickets.first not in runs:
            raise ValueError(f"first = {loaded.tickets.first}: is in none of its runs")
        loaded.tickets.runs = runs
        if -(-start // 8) != length:
            raise ValueError(f"it has {length} bytes for {start} tickets")
        sums = np.frombuffer(rest[length:], dtype=loaded.sums.dtype.newbyteorder("<"))
        loaded.sums[...] = sums.reshape(loaded.sums.shape)
        loaded.clients = whole_number("clients", head["clients"], 0)
        for reason, count in head["rejected"].items():
            loaded.rejected[str(reason)] = whole_number("rejected", count, 0)
        return loaded


def _check(form: wire.Format, key: bytes, numbers: list[range], block: bytes) -> Checked:
    """What of a block can be checked without knowing any other."""
    rows = np.frombuffer(block, dtype=np.uint8).reshape(-1, form.size)
    tickets, values, whole = wire.from_rows(form, rows)
    tickets, values = tickets[whole], values[whole]
    return tickets, values, genuine(key, numbers, tickets), int(np.count_nonzero(~whole))
