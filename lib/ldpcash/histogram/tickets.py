"""Tickets: who may report, once, and with which public randomness.

A report's seed says which part of the codeword it is about. A client that chose its own could try
thousands until one serves many false items at once, and a report that is sent twice would count as
two clients. So the server hands out tickets, each with a number and a seed::

    number -> seed = PRF(key, number)       the server, which alone has the key   `Tickets.issue`
    ticket and item -> report               a client
    report -> is its seed the number's?     the server again                      `Tickets.genuine`
           -> was the number used before?   a byte for each ticket                `Tickets.use`

The PRF is SipHash-2-4 of Aumasson and Bernstein (2012), made for short inputs. A seed says nothing
of an item: it is there before the client decides anything, and any seed is as private as any other.
"""

from __future__ import annotations

import secrets
from itertools import pairwise

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ldpcash.base.arrays import batches
from ldpcash.base.checks import whole_number
from ldpcash.histogram.hashing import Seeds

TICKET = np.dtype([("number", "<u4"), ("seed", "<u8")])  #: what a client is given
TicketArray = NDArray[np.void]

KEY_BYTES = 16
MOST_TICKETS = 2**32
_AT_ONCE = 2**14  # words that stay in the cache


class Tickets:
    """The server's side: tickets out, and each taken back at most once.

    Several servers of one collection share the key, and each issues a run of numbers of its own. A
    server takes back only those that it issued, so a ticket counts at one of them.

    Args:
        key: 16 bytes that only servers know; random unless given.
        first: the first number that is issued here.

    >>> tickets = Tickets(key=bytes(16))
    >>> mine = tickets.issue(3)
    >>> mine["number"].tolist(), hex(mine["seed"][0])
    ([0, 1, 2], '0xe849e8bb6ffe2567')
    >>> tickets.genuine(mine).tolist()
    [True, True, True]
    >>> tickets.use(np.array([2, 0, 2])).tolist(), tickets.use(np.array([0, 1])).tolist()
    ([True, True, False], [False, True])
    """

    def __init__(self, key: bytes | None = None, first: int = 0) -> None:
        if key is None:
            key = secrets.token_bytes(KEY_BYTES)
        if not isinstance(key, bytes) or len(key) != KEY_BYTES:
            raise ValueError(f"key has another form: needs {KEY_BYTES} bytes")  # it is secret
        self.key = key
        self.first = whole_number("first", first, 0, MOST_TICKETS)
        #: the first of each run of numbers, in order, and for each number 1 if it was used, else 0
        self.runs: dict[int, bytearray] = {self.first: bytearray()}

    @property
    def numbers(self) -> list[range]:
        """The runs of numbers that were issued.

        >>> tickets = Tickets(first=7)
        >>> tickets.issue(2)["number"], tickets.numbers
        (array([7, 8], dtype=uint32), [range(7, 9)])
        """
        return [range(first, first + len(used)) for first, used in self.runs.items()]

    def issue(self, count: int) -> TicketArray:
        """The next tickets: ``(count,)`` numbers and seeds."""
        mine = self.runs[self.first]
        start = self.first + len(mine)
        end = min((first for first in self.runs if first > self.first), default=MOST_TICKETS)
        count = whole_number("count", count, 0, end - start)
        tickets = np.empty(count, dtype=TICKET)
        tickets["number"] = np.arange(start, start + count)
        tickets["seed"] = pseudorandom(self.key, tickets["number"].astype(np.uint64))
        mine.extend(bytes(count))
        return tickets

    def genuine(self, tickets: TicketArray) -> NDArray[np.bool_]:
        """Whether each ticket was issued here: ``(B,)``."""
        return genuine(self.key, self.numbers, tickets)

    def use(self, numbers: ArrayLike) -> NDArray[np.bool_]:
        """Mark numbers as used: ``(B,)``, False for each that was used before or not issued."""
        given = np.asarray(numbers, dtype=np.int64)
        fresh = np.zeros(given.shape, dtype=np.bool_)
        for first, run in self.runs.items():
            used = np.frombuffer(run, dtype=np.bool_)
            mine = (given >= first) & (given < first + len(used))
            place = given[mine] - first
            fresh[mine] = ~used[place]
            used[place] = True
        ordered = np.sort(given)
        if (ordered[1:] == ordered[:-1]).any():  # of equal ones the first counts
            earliest = np.zeros(given.shape, dtype=np.bool_)
            earliest[np.unique(given, return_index=True)[1]] = True
            fresh &= earliest
        return fresh

    def __add__(self, other: Tickets) -> Tickets:
        if other.key != self.key:
            raise ValueError("other = tickets of another key: they do not add up")
        runs = sorted([*self.runs.items(), *other.runs.items()])
        for (first, used), (after, _) in pairwise(runs):
            if first + len(used) > after:
                raise ValueError(
                    f"other = tickets of which number {after} was issued in both:"
                    " what is used in both would count twice"
                )
        both = Tickets(self.key, self.first)
        both.runs = {first: bytearray(used) for first, used in runs}
        return both


def as_tickets(tickets: ArrayLike) -> TicketArray:
    """Check that these are B tickets: ``(B,)``.

    >>> as_tickets(np.array([(3, 4)], dtype=TICKET)).shape
    (1,)
    """
    given = np.asarray(tickets)
    if given.ndim != 1 or given.dtype != TICKET:
        raise ValueError(
            f"tickets has shape {given.shape} and type {given.dtype}:"
            " needs one ticket for each report, as `Collector.issue` gives them"
        )
    return given


def genuine(key: bytes, numbers: list[range], tickets: TicketArray) -> NDArray[np.bool_]:
    """Whether each ticket has one of these numbers, and the seed that belongs to it: ``(B,)``.

    >>> genuine(bytes(16), [range(3)], np.array([(2, 7)], dtype=TICKET))
    array([False])
    """
    words = tickets["number"].astype(np.uint64)
    issued = np.zeros(words.shape, dtype=np.bool_)
    for run in numbers:
        issued |= (words >= run.start) & (words < run.stop)
    return np.asarray(issued & (tickets["seed"] == pseudorandom(key, words)))


def pseudorandom(key: bytes, words: Seeds) -> Seeds:
    """SipHash-2-4 of 64-bit words, each as eight bytes, little end first: ``(...)`` to ``(...)``.

    >>> hex(pseudorandom(bytes(range(16)), np.array([0x0706050403020100], dtype=np.uint64))[0])
    '0x93f5f5799a932462'
    """
    out = np.empty(words.size, dtype=np.uint64)
    flat = words.ravel()
    for part in batches(flat.size, _AT_ONCE):
        out[part] = _sip_hash(key, flat[part])
    return out.reshape(words.shape)


def _sip_hash(key: bytes, words: Seeds) -> Seeds:
    halves = np.frombuffer(key, dtype="<u8").astype(np.uint64)
    start = (0x736F6D6570736575, 0x646F72616E646F6D, 0x6C7967656E657261, 0x7465646279746573)
    state = [np.full(len(words), halves[i % 2] ^ np.uint64(word)) for i, word in enumerate(start)]
    length = np.uint64(8 << 56)  # of the message, in bytes: the last block of a message of one word
    for block in (words, length):
        state[3] ^= block
        for _ in range(2):
            _round(state)
        state[0] ^= block
    state[2] ^= np.uint64(0xFF)
    for _ in range(4):
        _round(state)
    return state[0] ^ state[1] ^ state[2] ^ state[3]


def _round(v: list[Seeds]) -> None:
    for a, b, turn in ((0, 1, 13), (2, 3, 16)):
        v[a] += v[b]
        v[b] = _rotated(v[b], turn) ^ v[a]
    v[0] = _rotated(v[0], 32)
    for a, b, turn in ((2, 1, 17), (0, 3, 21)):
        v[a] += v[b]
        v[b] = _rotated(v[b], turn) ^ v[a]
    v[2] = _rotated(v[2], 32)


def _rotated(words: Seeds, turn: int) -> Seeds:
    return words << np.uint64(turn) | words >> np.uint64(64 - turn)
