"""Reports as bytes: what comes back, and what is not let in."""

import struct
import zlib

import numpy as np
import pytest

from ldpcash.histogram.wire import ReportError, check, frame_size, from_bytes, to_bytes

SYMBOL = np.dtype("u1")
REALS = np.dtype(("<f4", (2, 3)))
SEEDS = np.array([1, 2**64 - 1, 77], dtype=np.uint64)


def symbols():
    return to_bytes(7, SEEDS, np.array([0, 3, 1], dtype=np.uint8))


def reals(value=1.5):
    sent = np.zeros((1, 2, 3), dtype="<f4")
    sent[0, 1, 2] = value
    return to_bytes(7, SEEDS[:1], sent)


def test_reports_come_back():
    seeds, sent, errors = from_bytes(symbols(), 7, SYMBOL, 3)
    assert (seeds.tolist(), sent.tolist(), errors) == (SEEDS.tolist(), [0, 3, 1], [])
    seeds, sent, errors = from_bytes(reals(), 7, REALS, 0)
    assert sent.shape == (1, 2, 3)
    assert sent[0, 1, 2] == 1.5


def test_the_layout_is_as_documented():
    [report, *_] = symbols()
    assert len(report) == frame_size(SYMBOL) == 20
    assert report[:3] == b"lh\x01"
    assert struct.unpack("<IQB", report[3:16]) == (7, 1, 0)
    assert struct.unpack("<I", report[16:])[0] == zlib.crc32(report[:16])
    assert frame_size(REALS) == 19 + 24


def bad_reports():
    good = symbols()[1]
    flipped = good[:-6] + bytes([good[-6] ^ 1]) + good[-5:]
    return [
        ("foreign", b"", "does not begin"),
        ("foreign", b"{}", "does not begin"),
        ("foreign", "lh", "does not begin"),
        ("foreign", 7, "does not begin"),
        ("version", b"lh\x02" + good[3:], "this is 1"),
        (
            "parameters",
            to_bytes(8, SEEDS[:1], np.zeros(1, np.uint8))[0],
            "other public parameters than the server's",
        ),
        ("size", good[:-1], "has 19 bytes: needs 20"),
        ("size", good[:9], "has 9 bytes: needs 20"),
        ("size", good + b"\0", "has 21 bytes: needs 20"),
        ("damaged", flipped, "does not fit its checksum"),
        ("symbol", to_bytes(7, SEEDS[:1], np.array([4], np.uint8))[0], "symbol 4: at most 3"),
    ]


@pytest.mark.parametrize(("reason", "report", "message"), bad_reports())
def test_what_cannot_be_used_is_told(reason, report, message):
    with pytest.raises(ReportError, match=message) as caught:
        check(report, 7, SYMBOL, 3)
    assert caught.value.reason == reason


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_numbers_must_be_finite(value):
    with pytest.raises(ReportError, match="NaN or infinity") as caught:
        check(reals(value)[0], 7, REALS, 0)
    assert caught.value.reason == "not finite"


def test_every_single_damaged_byte_is_noticed():
    good = symbols()[2]
    for place in range(len(good)):
        damaged = bytearray(good)
        damaged[place] ^= 0x10
        assert len(from_bytes([bytes(damaged)], 7, SYMBOL, 3)[2]) == 1


def test_good_reports_between_bad_ones_are_kept():
    good = symbols()
    bad = [report for _, report, _ in bad_reports()]
    mixed = [good[0], *bad[:5], good[1], *bad[5:], good[2]]
    seeds, sent, errors = from_bytes(mixed, 7, SYMBOL, 3)
    assert (seeds.tolist(), sent.tolist()) == (SEEDS.tolist(), [0, 3, 1])
    assert [error.reason for error in errors] == [reason for reason, _, _ in bad_reports()]
