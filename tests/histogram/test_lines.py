"""Items and tickets as lines of text."""

import string

import numpy as np
import pytest

from ldpcash.histogram.lines import alphabet_of, items_of, ticket_lines, tickets_of
from ldpcash.histogram.packing import Packing
from ldpcash.histogram.plan import Plan
from ldpcash.histogram.tickets import TICKET, Tickets

SECRET = "xyzzy"


@pytest.mark.parametrize(
    ("text", "letters"),
    [
        ("A-Z", string.ascii_uppercase),
        ("a-z0-9_", string.ascii_lowercase + string.digits + "_"),
        ("-ab", "-ab"),
        ("ab-", "ab-"),
        ("a-c-", "abc-"),
        ("a-a", "a"),
        ("а-д", "абвгд"),  # noqa: RUF001
        ("", ""),
    ],
)
def test_alphabets(text, letters):
    assert alphabet_of(text) == letters


def test_an_alphabet_that_goes_backwards():
    with pytest.raises(ValueError, match=r"^alphabet = 'Z-A': Z comes after A$"):
        alphabet_of("Z-A")


def test_text():
    packing = Packing(40)
    plan = Plan.choose(1000, 40, 2.0, packing=packing)
    lines = ["Zoë", "", " ", "日"]
    bits, holds = items_of(plan, [line.encode() for line in lines])
    assert packing.unpack(bits) == lines
    assert holds.tolist() == [True, False, True, True]
    marked, _ = items_of(plan, ["\ufeffZoë".encode()])  # as some editors begin a file
    assert packing.unpack(marked) == ["Zoë"]
    bits, holds = items_of(plan, [b"\xef\xbb\xbf", b"", b"Zo"])
    assert holds.tolist() == [False, False, True]


def test_bits():
    bits, holds = items_of(Plan.choose(1000, 4, 2.0), [b"", b"0110", b"0000"])
    assert bits[1:].tolist() == [[0, 1, 1, 0], [0, 0, 0, 0]]
    assert holds.tolist() == [False, True, True]
    assert np.isin(bits, [0, 1]).all()


@pytest.mark.parametrize("packing", [None, Packing(40), Packing(40, "ab")], ids=str)
def test_no_lines(packing):
    plan = Plan.choose(1000, 40, 2.0, packing=packing)
    bits, holds = items_of(plan, [])
    assert bits.shape == (0, 40)
    assert holds.shape == (0,)
    assert tickets_of([]).shape == (0,)
    assert ticket_lines(tickets_of([])) == b""


@pytest.mark.parametrize(
    ("packing", "line", "message"),
    [
        (None, SECRET.encode(), "items, line 3: needs 40 zeros and ones, or nothing"),
        (None, b"01" * 21, "items, line 3: needs 40 zeros and ones, or nothing"),
        (None, b"01" * 19 + b"02", "items, line 3: needs 40 zeros and ones, or nothing"),
        (None, b"01" * 19 + b"1 ", "items, line 3: needs 40 zeros and ones, or nothing"),
        (Packing(40), SECRET.encode() + b"\xff", "items, line 3: is not UTF-8"),
        (Packing(40), SECRET.encode() * 2, "items, line 3: has 10 bytes"),
        (Packing(40), SECRET.encode()[1:] + b"\0", "items, line 3: has NUL"),
        (Packing(40, "ABCD"), SECRET.encode(), "items, line 3: has a letter that is none of the"),
        (Packing(40, "xyz"), SECRET.encode() * 5, "items, line 3: has 25 letters"),
    ],
)
def test_errors_tell_the_line_and_not_the_item(packing, line, message):
    plan = Plan.choose(1000, 40, 2.0, packing=packing)
    with pytest.raises(ValueError, match=f"^{message}") as caught:
        items_of(plan, [b"", b"", line])
    error = caught.value
    told = f"{error!r} {error.__cause__!r} {error.__context__!r}"
    assert "zz" not in told


def test_tickets_survive():
    tickets = np.concatenate([Tickets().issue(300), Tickets(first=2**32 - 1).issue(1)])
    lines = ticket_lines(tickets).splitlines(keepends=True)
    assert {len(line) for line in lines} == {25}
    assert lines == sorted(lines)
    assert tickets_of(lines).tolist() == tickets.tolist()
    assert tickets_of([line.strip() + b"\r\n" for line in lines]).tolist() == tickets.tolist()
    assert tickets_of(lines).dtype == TICKET


def test_what_stands_in_a_ticket():
    assert ticket_lines(np.array([(258, 3)], TICKET)) == b"00000102" + b"0000000000000003" + b"\n"


@pytest.mark.parametrize("line", [b"\n", b"7 255", b"0" * 23, b"0" * 26, b"g" * 24, b"\xff" * 24])
def test_what_is_no_ticket(line):
    with pytest.raises(ValueError, match=r"^tickets, line 2: is no ticket$"):
        tickets_of([b"0" * 24, line])
