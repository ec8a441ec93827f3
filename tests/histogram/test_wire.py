"""Reports as bytes: what comes back, what is not let in, and what is found in a stream."""

import io
import random
import struct
import zlib
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ldpcash.histogram import wire
from ldpcash.histogram.tickets import TICKET
from ldpcash.histogram.wire import Format, blocks, from_rows, misfit, to_bytes

PAYLOADS = {
    "symbol": np.dtype("u1"),
    "wide symbol": np.dtype("<u2"),
    "numbers": np.dtype(("<f4", (2, 3))),
    "many numbers": np.dtype(("<f4", (4, 32))),
}
FORM = Format(7, PAYLOADS["symbol"])


def given_reports(count, payload=PAYLOADS["symbol"], seed=1):
    """Tickets and payloads of all kinds."""
    rng = np.random.default_rng(seed)
    tickets = np.zeros(count, dtype=TICKET)
    tickets["number"] = rng.integers(0, 2**32, count)
    tickets["seed"] = rng.integers(0, 2**64, count, dtype=np.uint64)
    sent = rng.integers(-99, 99, (count, *payload.shape)).astype(payload.base)
    return tickets, sent


def reports(count, seed=1):
    """As many reports, one by one."""
    data = to_bytes(FORM, *given_reports(count, seed=seed))
    return [data[start : start + FORM.size] for start in range(0, len(data), FORM.size)]


def rows_of(form, data):
    return np.frombuffer(data, dtype=np.uint8).reshape(-1, form.size)


@pytest.mark.parametrize("count", [0, 1, 3, 1000])
@pytest.mark.parametrize("kind", PAYLOADS)
def test_reports_come_back(kind, count):
    form = Format(2**32 - 1, PAYLOADS[kind])
    tickets, sent = given_reports(count, form.payload)
    data = to_bytes(form, tickets, sent)
    assert len(data) == count * form.size
    found, values, whole = from_rows(form, rows_of(form, data))
    np.testing.assert_array_equal(found, tickets)
    np.testing.assert_array_equal(values, sent)
    assert (found.dtype, values.dtype) == (TICKET, form.payload.base)
    assert whole.tolist() == [True] * count


@pytest.mark.parametrize("kind", PAYLOADS)
def test_the_layout_is_as_documented(kind):
    form = Format(0x01020304, PAYLOADS[kind])
    tickets, sent = given_reports(200, form.payload)  # many at once, and below one alone
    data = to_bytes(form, tickets, sent)
    assert form.size == 3 + 4 + 4 + 8 + form.payload.itemsize + 4
    for i in (0, 199):
        report = data[i * form.size : (i + 1) * form.size]
        assert report[:7] == b"lh\x02\x04\x03\x02\x01"
        assert struct.unpack("<IQ", report[7:19]) == tickets[i].item()
        numbers = np.ravel(sent[i]).tolist()
        code = {"|u1": "B", "<u2": "H", "<f4": "f"}[form.payload.base.str]
        assert report[19:-4] == struct.pack(f"<{len(numbers)}{code}", *numbers)
        assert struct.unpack("<I", report[-4:])[0] == zlib.crc32(report[:-4])
        assert report == to_bytes(form, tickets[i : i + 1], sent[i : i + 1])


def test_numbers_of_a_machine_with_another_byte_order():
    for kind in ("wide symbol", "numbers"):
        form = Format(7, PAYLOADS[kind])
        tickets, sent = given_reports(5, form.payload)
        theirs = sent.astype(sent.dtype.newbyteorder(">"))
        assert to_bytes(form, tickets, theirs) == to_bytes(form, tickets, sent)


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda t, s: (t["number"], s), "tickets has shape .* and type uint32: needs one ticket"),
        (lambda t, s: (t[None], s), r"tickets has shape \(1, 4\) and type"),
        (lambda t, s: (t, s[:3]), r"sent has shape \(3,\): needs \(4,\)"),
        (lambda t, s: (t, s[:, None]), r"sent has shape \(4, 1\): needs \(4,\)"),
        (lambda t, s: (t, s.astype(float)), "sent has type float64: needs uint8"),
        (lambda t, s: (t, s.astype("u2")), "sent has type uint16: needs uint8"),
        (lambda t, s: (t, s.astype("i1")), "sent has type int8: needs uint8"),
        (lambda t, s: (t, s.tolist()), "sent has type int64: needs uint8"),
    ],
)
def test_arrays_of_another_kind(spoil, message):
    with pytest.raises(ValueError, match=f"^{message}"):
        to_bytes(FORM, *spoil(*given_reports(4)))


def misfits():
    good = reports(1)[0]
    other = Format(8, FORM.payload)
    return [
        ("foreign", b"", "does not begin"),
        ("foreign", b"l", "does not begin"),
        ("foreign", b"{}", "does not begin"),
        ("foreign", good[1:], "does not begin"),
        ("foreign", "lh", "is of type str: needs bytes"),
        ("foreign", 7, "is of type int: needs bytes"),
        ("foreign", None, "is of type NoneType: needs bytes"),
        ("foreign", np.frombuffer(good, np.uint8), "is of type ndarray: needs bytes"),
        ("foreign", memoryview(np.zeros(6, np.uint32)), "a view of something else than bytes"),
        ("foreign", memoryview(np.zeros((24, 1), np.uint8)), "a view of something else"),
        ("version", b"lh\x01" + good[3:], "has version 1: this is 2"),
        ("version", b"lh\x03", "has version 3: this is 2"),
        ("parameters", to_bytes(other, *given_reports(1)), "with other public parameters than"),
        ("parameters", b"lh\x02\x08", "with other public parameters than"),
        ("size", good[:-1], "has 23 bytes: needs 24"),
        ("size", good[:9], "has 9 bytes: needs 24"),
        ("size", good[:5], "has 5 bytes: needs 24"),
        ("size", b"lh", "has 2 bytes: needs 24"),
        ("size", good + b"\0", "has 25 bytes: needs 24"),
        ("size", 3 * good, "has 72 bytes: needs 24"),
    ]


@pytest.mark.parametrize(("reason", "report", "message"), misfits())
def test_what_cannot_be_used_is_told(reason, report, message):
    kinds = [bytes, bytearray, memoryview] if isinstance(report, bytes) else [lambda same: same]
    for kind in kinds:
        error = misfit(FORM, kind(report))
        assert error.reason == reason
        assert message in str(error)


def test_what_fits():
    good = reports(1)[0]
    for kind in (bytes, bytearray, memoryview, lambda x: memoryview(x + x)[: len(x)]):
        assert misfit(FORM, kind(good)) is None


@pytest.mark.parametrize("kind", PAYLOADS)
def test_every_single_damaged_bit_is_noticed(kind):
    form = Format(7, PAYLOADS[kind])
    good = to_bytes(form, *given_reports(1, form.payload))
    flips = np.tile(rows_of(form, good), (8 * form.size, 1))
    flips[np.arange(8 * form.size), np.arange(8 * form.size) // 8] ^= np.tile(
        1 << np.arange(8), form.size
    ).astype(np.uint8)
    assert not from_rows(form, flips)[2].any()
    assert not any(from_rows(form, flips[i : i + 1])[2].any() for i in range(8 * form.size))
    assert from_rows(form, rows_of(form, good))[2].all()


class Trickle(io.RawIOBase):
    """A pipe that gives as much as it likes."""

    def __init__(self, data, seed):
        self.data, self.rng = data, random.Random(seed)

    def read(self, size=-1):
        some = self.rng.randint(1, min(size, 100))
        taken, self.data = self.data[:some], self.data[some:]
        return taken


def pieces_of(data, size):
    return (data[start : start + size] for start in range(0, len(data), size))


STREAMS = {  # ways to hand over the same bytes
    "file": io.BytesIO,
    "pipe": lambda data: Trickle(data, 1),
    "bytes": lambda data: data,
    "one piece": lambda data: [data],
    "single bytes": lambda data: pieces_of(data, 1),
    "pieces": lambda data: pieces_of(data, 29),
    "with empty ones": lambda data: (part for piece in pieces_of(data, 7) for part in (b"", piece)),
    "other kinds": lambda data: map(bytearray, pieces_of(data, 50)),
    "views": lambda data: map(memoryview, pieces_of(data, 50)),
}


def read(stream, form=FORM):
    rejected = Counter()
    found = b"".join(blocks(form, stream, rejected))
    return list(pieces_of(found, form.size)), dict(rejected)


class TestStreams:
    @pytest.fixture(params=[24, 48, 100, 2**21], autouse=True)
    def block(self, request, monkeypatch):
        """Whatever is read at a time."""
        monkeypatch.setattr(wire, "BLOCK", request.param)

    @pytest.mark.parametrize("kind", STREAMS)
    def test_whole_reports(self, kind):
        for count in (0, 1, 2, 5, 40):
            good = reports(count)
            assert read(STREAMS[kind](b"".join(good))) == (good, {})

    @pytest.mark.parametrize("kind", STREAMS)
    def test_noise_costs_no_report_and_is_counted_once(self, kind):
        one, two, three = reports(3)
        noise = b"GET / HTTP/1.1\r\n" * 20 + b"lh\x02\x07lh"  # the beginning of a beginning
        data = one + noise + two + b"l" + three + b"\0" * 60
        assert read(STREAMS[kind](data)) == ([one, two, three], {"foreign": 3})
        assert read(STREAMS[kind](noise + one)) == ([one], {"foreign": 1})
        assert read(STREAMS[kind](noise)) == ([], {"foreign": 1})
        assert read(STREAMS[kind](one + b"?")) == ([one], {"foreign": 1})

    @pytest.mark.parametrize("kind", STREAMS)
    def test_a_report_that_is_cut_costs_only_itself(self, kind):
        one, two, three, four = reports(4)
        for length in range(7, 24):
            data = one + two[:length] + three + four[:length]
            assert read(STREAMS[kind](data)) == ([one, three], {"size": 2})
            if length < 23:  # and some noise behind it
                data = two[:length] + b"?" + three + one
                assert read(STREAMS[kind](data)) == ([three, one], {"size": 1})
        found, rejected = read(STREAMS[kind](one + two[:3] + three))  # as of other parameters
        assert (found, sum(rejected.values())) == ([one, three], 1)

    @pytest.mark.parametrize("kind", STREAMS)
    def test_others_are_told_apart(self, kind):
        one, two = reports(2)
        theirs = to_bytes(Format(8, FORM.payload), *given_reports(5))
        old = b"lh\x01" + two[3:]
        data = one + theirs + two + old + one
        assert read(STREAMS[kind](data)) == ([one, two, one], {"parameters": 1, "version": 1})

    def test_a_beginning_inside_a_report_is_no_beginning(self):
        """Whatever a client writes into its own report costs nobody else's."""
        form = Format(7, np.dtype("V30"))
        tickets, sent = given_reports(3)[0], np.zeros(3, dtype="V30")
        one, _, three = pieces_of(to_bytes(form, tickets, sent), form.size)
        for place in range(24):
            sent[1] = (bytes(place) + form.head).ljust(30, b"\0")
            data = to_bytes(form, tickets, sent)
            two = data[form.size : 2 * form.size]
            found, rejected = read(data, form)
            assert (found, rejected) == ([one, two, three], {"size": 1})
            for noise in (b"?", two[:40]):
                found, _ = read(one + two + noise + three, form)
                assert [report for report in found if report in (one, three)] == [one, three]

    @given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 40)), max_size=12), st.randoms())
    def test_any_mixture(self, parts, random):
        """Whole reports come through, whatever stands between them."""
        good = reports(10)
        data, expected = b"", []
        for number, length in parts:
            if length < 24:
                data += good[number][: max(length, 7)]
            else:
                data += good[number] + bytes([255]) * (length - 24)
                expected.append(good[number])
        cuts = sorted(random.choices(range(len(data) + 1), k=5))
        pieces = [data[a:b] for a, b in zip([0, *cuts], [*cuts, len(data)], strict=True)]
        assert read(pieces) == read([data])
        # A cut report and the noise behind it may look like a whole one, which its checksum tells.
        found, _ = read([data])
        assert [report for report in found if report in good] == expected

    def test_memory_that_is_filled_again(self):
        good = reports(9)

        def refilled():
            memory = bytearray(24)
            for report in good:
                memory[:] = report
                yield memory

        assert read(refilled()) == (good, {})

    @pytest.mark.parametrize(
        ("stream", "kind"),
        [(["text"], "str"), ([7], "int"), (io.StringIO("text"), "str"), ([None], "NoneType")],
    )
    def test_what_is_no_stream_of_bytes(self, stream, kind):
        with pytest.raises(ValueError, match=f"^stream gives {kind}: needs bytes"):
            read(stream)


def test_blocks_are_bounded_however_large_the_pieces_are(monkeypatch):
    monkeypatch.setattr(wire, "BLOCK", 1000)
    data = b"".join(reports(1000))
    sizes = [len(block) for block in blocks(FORM, [data], Counter())]
    assert sum(sizes) == len(data)
    assert max(sizes) <= 1000 + 2 * FORM.size


def test_hostile_streams_take_no_more_steps_than_others(monkeypatch):
    """Beginnings upon beginnings, and noise after each report: one pass over all of it."""
    looked = []
    places = wire._places_of
    monkeypatch.setattr(
        wire, "_places_of", lambda head, data: looked.append(len(data)) or places(head, data)
    )
    for data in (
        FORM.head * 30_000,
        b"".join(report + b"?" for report in reports(8000)),
        b"l" * 10**6,
    ):
        looked.clear()
        read([data])
        assert sum(looked) <= len(data) + 100
