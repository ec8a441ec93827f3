"""Reports from files and pipes in parts."""

import io
import os
import re
import signal
import sys
import threading

import numpy as np
import pytest

from ldpcash import Collector, Plan
from ldpcash.histogram import streams
from ldpcash.histogram.streams import Line, parts


@pytest.fixture(scope="module")
def sent():
    """A server with tickets, and reports."""
    plan = Plan.choose(1000, 8, 2.0)
    server = Collector(plan, bytes(16))
    tickets = server.issue(12)
    items, rng = np.ones((12, 8), dtype=np.uint8), np.random.default_rng(1)
    return plan, plan.to_bytes(tickets, plan.reports(items, np.ones(12, bool), tickets, rng))


def taken_in(plan, pieces):
    server = Collector(plan, bytes(16))
    server.issue(12)
    for piece in pieces:
        server.receive_stream([piece])
    return server


@pytest.mark.parametrize("most", [1, 7, 24, 31, 70])
@pytest.mark.parametrize("lost", range(1, 24))
def test_no_report_is_parted(sent, most, lost, monkeypatch, tmp_path):
    """However many bytes a part has, and whatever else is in the stream."""
    plan, reports = sent
    size, head = plan.report_size, plan.form.head
    cut = reports[: 2 * size - lost]  # the second is not whole
    stream = b"noise" + cut + reports[2 * size : 5 * size] + head + b"x" * 99 + reports[5 * size :]
    stream += head[:4]
    (tmp_path / "reports").write_bytes(stream)
    monkeypatch.setattr(streams, "_PART", most)  # and so much is read at once
    with open(tmp_path / "reports", "rb") as file:
        found = list(parts(file, plan.form, seconds=10**6))
    assert b"".join(found) == stream
    assert len(found) > 3
    whole, one = taken_in(plan, found), taken_in(plan, [stream])
    assert whole.clients == one.clients == 11
    np.testing.assert_array_equal(whole.sums, one.sums)


@pytest.fixture
def patience():
    """What waits for ever is an error."""

    def over(number, frame):
        raise TimeoutError

    before = signal.signal(signal.SIGALRM, over)
    signal.alarm(30)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


@pytest.mark.usefixtures("patience")
@pytest.mark.parametrize("seconds", [0, 0.01])
def test_a_slow_pipe_is_not_waited_for(sent, seconds):
    """A report comes out although no other one follows, and the half of one does not."""
    plan, reports = sent
    size = plan.report_size
    reader, writer = os.pipe()
    with open(reader, "rb") as file:
        stream = parts(file, plan.form, seconds)
        os.write(writer, reports[: size + 9])
        assert next(stream) == reports[:size]
        later = threading.Timer(0.05, lambda: os.write(writer, reports[size + 9 : 3 * size]))
        later.start()
        assert next(stream) == reports[size : 3 * size]
        later.join()
        os.write(writer, reports[:5])
        os.close(writer)
        assert list(stream) == [reports[:5]]


def test_it_waits_without_work(sent, monkeypatch):
    """While half a report is there and nothing comes, it does not look again and again."""
    plan, reports = sent
    reader, writer = os.pipe()
    looked = []
    real = streams.select.select

    def noted(*arguments):
        looked.append(arguments[3])
        return real(*arguments)

    monkeypatch.setattr(streams.select, "select", noted)
    with open(reader, "rb") as file:
        os.write(writer, reports[:9])
        threading.Timer(0.05, lambda: os.close(writer)).start()
        assert list(parts(file, plan.form, seconds=0)) == [reports[:9]]
    assert looked == [None, None]


class Screen(io.StringIO):
    def isatty(self):
        return True


@pytest.mark.parametrize(("total", "of"), [(48_000_000, " of 48"), (0, "")])
def test_the_line(total, of, monkeypatch):
    screen, clock = Screen(), iter([100.0, 100.5, 100.6, 102.0])
    monkeypatch.setattr(sys, "stderr", screen)
    monkeypatch.setattr(streams.time, "monotonic", lambda: next(clock))
    line = Line(24, total)
    for _ in range(3):  # the second comes too soon
        line.more(12_000_000)
    line.close()
    assert screen.getvalue().split("\r\x1b[2K") == [
        "",
        f"12{of} MB, 1,000,000 reports a second",
        f"36{of} MB, 750,000 reports a second",
        "",
    ]


def test_no_line_in_a_log(capsys):
    line = Line(24, 48)
    line.more(24)
    line.close()
    assert re.fullmatch("", capsys.readouterr().err)
