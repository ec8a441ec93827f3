"""The server: what it takes in and what it rejects, streams, sums, and its state in a file."""

import hashlib
import io
import json
import os
import pickle
import random
import subprocess
import sys
import time
import tracemalloc
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from strategies import BITS, NAMES

from ldpcash import PolarCode
from ldpcash.base.store import DamagedError
from ldpcash.histogram import wire
from ldpcash.histogram.collector import Collector
from ldpcash.histogram.packing import LATIN, Packing
from ldpcash.histogram.plan import Plan
from ldpcash.histogram.tickets import TICKET, Tickets

KEY = bytes(range(16))
PLANS = {
    "Prot": Plan.choose(20_000, 20, 3.0, hash_seed=5, count=4),
    "blank": Plan.choose(20_000, 20, 3.0, hash_seed=5, count=4, width=2, empty=1.0),
    "wide": Plan.choose(20_000, 20, 8.0, hash_seed=5, count=4),
    "Cash": Plan.choose(20_000, 20, 3.0, hash_seed=5, count=4, protocol="Cash"),
}
SMALL = Plan.choose(20_000, 8, 3.0, code=PolarCode.construct(16, 8), count=2)  # of a small state


@pytest.fixture(params=PLANS)
def plan(request):
    return PLANS[request.param]


def reports_of(plan, collector, count, seed=1):
    """Tickets of a collector, and what clients with them send."""
    rng = np.random.default_rng(seed)
    tickets = collector.issue(count)
    items, holds = BITS[:, : plan.k][rng.integers(0, 4, count)], rng.random(count) < 0.8
    return tickets, plan.reports(items, holds, tickets, rng)


def pieces_of(data, size):
    return [data[start : start + size] for start in range(0, len(data), size)]


def state(collector):
    """All of it, to be compared."""
    runs = {first: bytes(used) for first, used in collector.tickets.runs.items()}
    return collector.sums.tobytes(), collector.clients, dict(collector.rejected), runs


def ready(plan, count):
    """A collector that has issued tickets, and the reports, as arrays."""
    collector = Collector(plan, KEY)
    return collector, *reports_of(plan, collector, count)


class TestTakingIn:
    def test_arrays_bytes_and_streams_give_the_same(self, plan):
        filled, tickets, sent = ready(plan, 50)
        filled.add(tickets, sent)
        assert (filled.clients, dict(filled.rejected)) == (50, {})
        assert filled.sums.any()
        data = plan.to_bytes(tickets, sent)
        reports = pieces_of(data, plan.report_size)
        assert len(reports) == 50
        ways = [
            lambda c: c.receive(reports),
            lambda c: c.receive(iter(reports)),
            lambda c: c.receive(map(bytearray, reports)),
            lambda c: c.receive(map(memoryview, reports)),
            lambda c: [c.receive(report) for report in reports],
            lambda c: [c.receive(bytearray(report)) for report in reports],
            lambda c: [c.receive(memoryview(report)) for report in reports],
            lambda c: c.receive_stream(io.BytesIO(data)),
            lambda c: c.receive_stream(pieces_of(data, 1000)),
            lambda c: [c.add(tickets[i : i + 1], sent[i : i + 1]) for i in range(50)],
            lambda c: c.add(tickets[::-1], sent[::-1]),
        ]
        for way in ways:
            collector = Collector(plan, KEY)
            collector.issue(50)
            errors = way(collector)
            assert not errors or not any(errors)
            assert state(collector) == state(filled)

    def test_numbers_of_a_machine_with_another_byte_order(self, plan):
        mine, tickets, sent = ready(plan, 20)
        theirs = Collector(plan, KEY)
        theirs.issue(20)
        mine.add(tickets, sent)
        theirs.add(tickets, sent.astype(sent.dtype.newbyteorder(">")))
        assert state(mine) == state(theirs)

    def test_no_reports(self, plan):
        collector, tickets, sent = ready(plan, 0)
        collector.add(tickets, sent)
        assert collector.receive([]) == []
        collector.receive_stream([])
        assert (collector.clients, dict(collector.rejected)) == (0, {})
        with pytest.raises(ValueError, match="clients = 0: no report was taken in"):
            collector.histogram()

    @pytest.mark.parametrize(
        ("spoil", "message"),
        [
            (lambda t, s: (t, s[:-1]), r"sent has shape \(3"),
            (lambda t, s: (t, s.astype("c8")), "sent has type complex64: needs"),
            (lambda t, s: (t["seed"], s), "tickets has shape .* and type uint64"),
            (lambda t, s: (t[None], s), r"tickets has shape \(1, 4\)"),
            (lambda t, s: (t.tolist(), s), r"tickets has shape \(4, 2\)"),
        ],
    )
    def test_arrays_of_another_kind_are_an_error_and_change_nothing(self, plan, spoil, message):
        collector, tickets, sent = ready(plan, 4)
        before = state(collector)
        with pytest.raises(ValueError, match=f"^{message}"):
            collector.add(*spoil(tickets, sent))
        assert state(collector) == before
        collector.add(tickets, sent)
        assert collector.clients == 4

    def test_one_client_however_often_it_sends(self, plan):
        copies = 100 if plan is PLANS["Cash"] else 10_000
        once, tickets, sent = ready(plan, 3)
        once.add(tickets[1:2], sent[1:2])
        report = plan.to_bytes(tickets[1:2], sent[1:2])
        for way in (
            lambda c: c.receive([report] * copies),
            lambda c: c.receive_stream([report] * copies),
            lambda c: c.add(np.repeat(tickets[1:2], copies), np.repeat(sent[1:2], copies, axis=0)),
            lambda c: [c.receive(report) for _ in range(100)] * (copies // 100),
        ):
            collector = Collector(plan, KEY)
            collector.issue(3)
            errors = way(collector)
            assert collector.clients == 1
            np.testing.assert_array_equal(collector.sums, once.sums)
            assert list(collector.rejected) == ["replay"]
            assert collector.rejected["replay"] in (copies - 1, 99)
            if errors and len(errors) == copies - 1:
                assert {(e.reason, str(e)) for e in errors} == {
                    ("replay", "report uses a ticket a second time")
                }

    def test_a_ticket_cannot_be_used_for_another_answer(self, plan):
        """Nor after a report that was rejected: that one did not use it."""
        collector, tickets, sent = ready(plan, 2)
        collector.add(tickets, sent)
        before = collector.sums.copy()
        collector.add(tickets, sent[::-1])
        assert (collector.clients, dict(collector.rejected)) == (2, {"replay": 2})
        np.testing.assert_array_equal(collector.sums, before)

    def test_tickets_of_others_and_of_nobody(self, plan):
        collector, tickets, sent = ready(plan, 10)
        other, guessed = Collector(plan, KEY, first=10), tickets.copy()
        guessed["seed"] ^= np.uint64(1 << 40)
        strange = np.zeros(10, dtype=TICKET)
        for wrong in (guessed, strange, other.issue(10), Tickets().issue(10)):
            collector.add(wrong, sent)
            errors = collector.receive(pieces_of(plan.to_bytes(wrong, sent), plan.report_size))
            assert [error.reason for error in errors] == ["ticket"] * 10
            assert str(errors[0]) == "report has a ticket that was not issued here"
        assert (collector.clients, dict(collector.rejected)) == (0, {"ticket": 80})
        assert not collector.sums.any()
        collector.add(tickets, sent)  # none of that used them up
        assert collector.clients == 10

    @pytest.mark.parametrize("value", [1e30, -1e30, np.nan, np.inf, -np.inf])
    def test_numbers_that_no_honest_client_sends(self, value):
        plan = PLANS["Cash"]
        collector, tickets, sent = ready(plan, 4)
        honest, good = sent.copy(), np.array([True, True, False, True])
        sent[2, 1, 5] = value
        collector.add(tickets, sent)
        [error] = collector.receive(plan.to_bytes(tickets[2:3], sent[2:3]))
        assert (error.reason, str(error)) == (
            "dishonest",
            "report holds what no honest client sends",
        )
        assert (collector.clients, dict(collector.rejected)) == (3, {"dishonest": 2})
        np.testing.assert_array_equal(collector.sums, honest[good].sum(axis=0, dtype=float))
        collector.add(tickets[2:3], honest[2:3])  # its ticket was not used
        assert collector.clients == 4

    @pytest.mark.parametrize("kind", ["Prot", "blank", "wide"])
    def test_symbols_that_no_honest_client_sends(self, kind):
        plan = PLANS[kind]
        collector, tickets, sent = ready(plan, 4)
        for wrong in {plan.channels.largest + 1, np.iinfo(plan.channels.payload).max}:
            collector.add(tickets, np.full_like(sent, wrong))
            errors = collector.receive([plan.to_bytes(tickets[:1], np.full_like(sent[:1], wrong))])
            assert [error.reason for error in errors] == ["dishonest"]
        assert collector.clients == 0
        assert not collector.sums.any()

    def test_each_is_rejected_for_what_is_wrong_with_it_and_the_others_count(self, plan):
        collector, tickets, sent = ready(plan, 6)
        good = pieces_of(plan.to_bytes(tickets, sent), plan.report_size)
        other = Plan.choose(20_000, 20, 3.0, hash_seed=6)
        items = np.zeros((3, 20), np.uint8)
        theirs = other.to_bytes(tickets[:3], other.reports(items, [True] * 3, tickets[:3]))
        flipped = bytearray(good[1])
        flipped[-6] ^= 1
        stolen = tickets[2:3].copy()
        stolen["number"] = 3
        errors = collector.receive(
            [
                good[0],
                good[1][:-3],
                b"GET / HTTP/1.1",
                *pieces_of(theirs, other.report_size),
                "text",
                flipped,
                b"lh\x01" + good[1][3:],
                good[0],
                plan.to_bytes(stolen, sent[2:3]),
                good[5],
            ]
        )
        expected = {
            "size": 1, "foreign": 2, "parameters": 3, "damaged": 1, "version": 1, "replay": 1,
            "ticket": 1,
        }  # fmt: skip
        assert dict(collector.rejected) == expected
        assert sorted(error.reason for error in errors) == sorted(collector.rejected.elements())
        assert all(isinstance(error, wire.ReportError) for error in errors)
        assert collector.clients == 2
        only, _, _ = ready(plan, 6)
        only.add(tickets[[0, 5]], sent[[0, 5]])
        np.testing.assert_array_equal(collector.sums, only.sums)

    def test_an_iterator_that_fails_loses_nothing_that_was_counted(self, monkeypatch):
        plan = PLANS["Prot"]
        collector, tickets, sent = ready(plan, 6)
        good = pieces_of(plan.to_bytes(tickets, sent), plan.report_size)
        monkeypatch.setattr(wire, "BLOCK", 2 * plan.report_size)

        def failing():
            yield from [*good[:5], b"?"]
            raise OSError("gone")

        with pytest.raises(OSError, match="gone"):
            collector.receive(failing())
        assert (collector.clients, dict(collector.rejected)) == (4, {"foreign": 1})
        collector.receive(good)
        assert (collector.clients, collector.rejected["replay"]) == (6, 4)

    def test_memory_that_is_filled_again(self, plan):
        filled, tickets, sent = ready(plan, 9)
        filled.add(tickets, sent)
        collector, memory = Collector(plan, KEY), bytearray(plan.report_size)
        collector.issue(9)

        def refilled():
            for report in pieces_of(plan.to_bytes(tickets, sent), plan.report_size):
                memory[:] = report
                yield memoryview(memory)

        assert collector.receive(refilled()) == []
        assert state(collector) == state(filled)


def peak_of(task):
    """The most bytes that a task had in use at once, beyond those that were."""
    tracemalloc.start()
    try:
        task()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


class TestMemory:
    @pytest.mark.parametrize("kind", [bytes, bytearray])
    def test_a_large_foreign_report_is_not_copied(self, kind):
        collector, large = Collector(SMALL), kind(64 * 2**20)
        for report in (large, memoryview(large)):
            assert peak_of(lambda report=report: collector.receive(report)) < 10_000
            assert peak_of(lambda report=report: collector.receive([report])) < 10_000
        large = kind(b"lh\x02") + large
        assert peak_of(lambda: collector.receive(large)) < 10_000
        assert collector.rejected == {"foreign": 4, "parameters": 1}

    def test_a_stream_of_a_million_reports(self, monkeypatch):
        """It has 24 MB; in blocks of 64 kB, it is seen that it is not all kept."""
        monkeypatch.setattr(wire, "BLOCK", 2**16)
        collector = Collector(SMALL, KEY)
        tickets = [collector.issue(20_000) for _ in range(50)]
        sent = np.zeros(20_000, dtype=np.uint8)
        stream = (SMALL.to_bytes(mine, sent) for mine in tickets)
        produced = peak_of(lambda: SMALL.to_bytes(tickets[0], sent))
        assert peak_of(lambda: collector.receive_stream(stream)) < produced + 24 * 2**16
        assert (collector.clients, dict(collector.rejected)) == (10**6, {})

    def test_one_large_piece(self, monkeypatch):
        """Of reports, or of noise, that is there already: 7 MB in blocks of 16 kB."""
        monkeypatch.setattr(wire, "BLOCK", 2**14)
        collector = Collector(SMALL, KEY)
        tickets = collector.issue(300_000)
        data = SMALL.to_bytes(tickets, np.zeros(300_000, dtype=np.uint8))
        for piece in (data, bytes(len(data))):
            assert peak_of(lambda piece=piece: collector.receive_stream([piece])) < 24 * 2**14
        assert (collector.clients, dict(collector.rejected)) == (300_000, {"foreign": 1})


class Backwards(ThreadPoolExecutor):
    """Finishes tasks in another order than they came, four at a time."""

    def submit(self, task, /, *args):
        def late(number=self.count):
            time.sleep(0.002 * (3 - number % 4))
            return task(*args)

        self.count += 1
        return super().submit(late)

    count = 0


class TestStreams:
    @pytest.mark.parametrize("size", [1, 29, 2**20])
    def test_noise_cuts_and_replays(self, plan, monkeypatch, size):
        if plan is PLANS["Cash"] and size == 1:
            size = 5000
        monkeypatch.setattr(wire, "BLOCK", 5 * plan.report_size)
        expected, tickets, sent = ready(plan, 40)
        good = pieces_of(plan.to_bytes(tickets, sent), plan.report_size)
        flipped = bytearray(good[7])
        flipped[-1] ^= 1
        stream = [good[0], b"noise", *good[1:7], flipped, *good[8:20], good[20][:15], *good[21:39],
                  good[3], good[3], b"more noise" * 50, good[39][:-1]]  # fmt: skip
        expected.add(np.delete(tickets, [7, 20, 39]), np.delete(sent, [7, 20, 39], axis=0))
        collector, told = Collector(plan, KEY), []
        collector.issue(40)
        collector.receive_stream(pieces_of(b"".join(stream), size), seen=told.append)
        reasons = {"foreign": 2, "damaged": 1, "size": 2, "replay": 2}
        assert state(collector) == (state(expected)[0], 37, reasons, state(expected)[3])
        assert sum(told) == 40 * plan.report_size  # and not what began as none does, or was cut
        assert len(told) > 5

    def test_an_executor_changes_nothing(self, plan, monkeypatch):
        monkeypatch.setattr(wire, "BLOCK", 10 * plan.report_size)
        here, tickets, sent = ready(plan, 200)
        again = np.random.default_rng(3).integers(0, 200, 60)  # some replays, with other answers
        tickets = np.concatenate([tickets, tickets[again]])
        sent = np.concatenate([sent, sent[again[::-1]]])
        order = np.random.default_rng(4).permutation(260)
        data = b"noise".join(
            [plan.to_bytes(tickets[part], sent[part]) for part in np.array_split(order, 9)]
        )
        here.receive_stream([data])
        assert here.clients == 200
        assert here.rejected == {"foreign": 8, "replay": 60}
        for executor in (ThreadPoolExecutor(2), Backwards(4)):
            there = Collector(plan, KEY)
            there.issue(200)
            with executor:
                there.receive_stream(io.BytesIO(data), executor)
                assert executor.submit(abs, -1).result() == 1  # it is left open
            assert state(there) == state(here)

    def test_tickets_may_be_issued_while_the_stream_is_read(self):
        plan = PLANS["Prot"]
        collector = Collector(plan)

        def stream():
            for seed in range(20):
                yield plan.to_bytes(*reports_of(plan, collector, 5, seed))

        collector.receive_stream(stream())
        assert (collector.clients, dict(collector.rejected)) == (100, {})

    def test_what_is_no_stream(self):
        with pytest.raises(ValueError, match=r"^stream gives str: needs bytes"):
            Collector(SMALL).receive_stream(["text"])


class TestSums:
    def test_they_add_up_in_any_order(self, plan):
        both = Collector(plan, KEY)
        parts = [Collector(plan, KEY, first) for first in (0, 20, 40)]
        for seed, part in enumerate(parts):
            tickets, sent = reports_of(plan, part, 20, seed)
            assert (both.issue(20) == tickets).all()
            part.add(tickets, sent)
            both.add(tickets, sent)
            for collector in (part, both):
                collector.receive([b"?"])
        one, two, three = parts
        for some in (
            one + two + three,
            three + (one + two),
            pickle.loads(pickle.dumps(two)) + three + one,
        ):
            np.testing.assert_array_equal(some.sums, both.sums)
            assert (some.clients, some.rejected) == (60, both.rejected)
            assert some.rejected == {"foreign": 3}
            assert not some.tickets.use(range(60)).any()
        assert (one.clients, two.clients) == (20, 20)  # they are as before
        before = one.sums.copy()
        total = one + two
        total.sums += 1
        np.testing.assert_array_equal(one.sums, before)

    def test_a_report_that_goes_to_two_counts_in_one(self, plan):
        one, other = Collector(plan, KEY), Collector(plan, KEY, first=20)
        tickets, sent = reports_of(plan, one, 20)
        other.issue(20)
        reports = pieces_of(plan.to_bytes(tickets, sent), plan.report_size)
        for collector in (one, other):
            collector.receive(reports)
        both = one + other
        assert (both.clients, dict(both.rejected)) == (20, {"ticket": 20})
        np.testing.assert_array_equal(both.sums, one.sums)

    def test_those_that_would_count_twice_are_refused(self, plan):
        one, other = Collector(plan, KEY), Collector(plan, KEY)
        tickets, sent = reports_of(plan, one, 20)
        other.issue(20)
        for collector in (one, other):
            collector.add(tickets, sent)
        with pytest.raises(ValueError, match=r"^other = tickets .* would count twice"):
            one + other
        assert one.clients == other.clients == 20

    @pytest.mark.parametrize(
        "other",
        [
            {"hash_seed": 6},
            {"fdr": 0.01},
            {"list_size": 4},
            {"decision": "hard"},
            {"packing": NAMES},
            {"epsilon": 2.9},
            {"count": 8},
        ],
        ids=str,
    )
    def test_other_plans(self, other):
        options = {"clients": 20_000, "k": 20, "epsilon": 3.0, "hash_seed": 5, "count": 4, **other}
        one, two = Collector(PLANS["Prot"], KEY), Collector(Plan.choose(**options), KEY, first=5)
        for pair in ((one, two), (two, one)):
            with pytest.raises(ValueError, match=r"^other = a collector with another plan"):
                pair[0] + pair[1]

    def test_other_keys_and_other_things(self):
        collector = Collector(SMALL, KEY)
        with pytest.raises(ValueError, match=r"^other = tickets of another key"):
            collector + Collector(SMALL)
        with pytest.raises(TypeError):
            collector + 1


class TestHistogram:
    @pytest.fixture
    def filled(self):
        plan = Plan.choose(20_000, 20, 3.0, packing=NAMES)
        collector = Collector(plan)
        rng, tickets = np.random.default_rng(1), collector.issue(5000)
        items, holds = BITS[np.arange(5000) % 2], rng.random(5000) < 0.9
        collector.add(tickets, plan.reports(items, holds, tickets, rng))
        return collector

    def test_items_are_as_they_were_before_they_were_mixed(self, filled):
        lines = filled.histogram()
        assert {line.item for line in lines[:2]} == {"ANNA", "BOB"}
        assert lines == filled.histogram(Packing(20.0, LATIN))
        for line in lines[:2]:
            assert line.frequency == pytest.approx(0.45, abs=0.1)  # ten standard errors
            assert [type(number) for number in line[1:]] == [float] * 3

    def test_another_packing_is_refused(self, filled):
        for other in (Packing(20), Packing(20, LATIN[::-1]), Packing(20, LATIN, cut=True)):
            with pytest.raises(ValueError, match=r"^packing = .*: the plan's is Packing\(k=20"):
                filled.histogram(other)

    def test_a_plan_of_bits_leaves_the_packing_open(self):
        plan = Plan.choose(20_000, 20, 3.0)
        collector = Collector(plan)
        tickets = collector.issue(2000)
        collector.add(tickets, plan.reports(np.tile(BITS[1], (2000, 1)), [True] * 2000, tickets,
                                            np.random.default_rng(1)))  # fmt: skip
        line, *_ = collector.histogram()
        np.testing.assert_array_equal(line.item, BITS[1])
        assert collector.histogram(NAMES)[0].item == "BOB"
        with pytest.raises(ValueError, match=r"^packing = .*: items have k = 20 bits"):
            collector.histogram(Packing(21))


class TestState:
    @pytest.fixture
    def filled(self, plan):
        """A sum of two, with some tickets used and some reports rejected."""
        parts = [Collector(plan, KEY, first) for first in (0, 70)]
        for seed, collector in enumerate(parts):
            tickets, sent = reports_of(plan, collector, 33, seed)
            collector.add(tickets[::2], sent[::2])
            collector.receive([b"?", plan.to_bytes(tickets[:1], sent[:1])])
        return parts[0] + parts[1]

    def test_all_of_it_comes_back(self, filled, tmp_path):
        filled.save(tmp_path / "state")
        loaded = Collector.load(str(tmp_path / "state"))
        assert state(loaded) == state(filled)
        assert filled.rejected == {"foreign": 2, "replay": 2}
        assert loaded.tickets.key == KEY
        assert loaded.plan.to_json() == filled.plan.to_json()
        for collector in (filled, loaded):  # and it goes on alike
            tickets, sent = reports_of(collector.plan, collector, 5, seed=7)
            assert tickets["number"].tolist() == [33, 34, 35, 36, 37]
            collector.add(tickets, sent)
            collector.tickets.use([1, 2])
        assert state(loaded) == state(filled)
        loaded.save(tmp_path / "state")
        assert state(Collector.load(tmp_path / "state")) == state(filled)

    def test_an_empty_one(self, plan, tmp_path):
        Collector(plan, KEY, first=7).save(tmp_path / "state")
        loaded = Collector.load(tmp_path / "state")
        assert state(loaded) == state(Collector(plan, KEY, first=7))

    def test_nobody_else_may_read_the_key(self, tmp_path):
        before = os.umask(0)
        try:
            path = tmp_path / "state"
            path.write_bytes(b"")
            path.chmod(0o666)
            Collector(SMALL, KEY).save(path)
            assert path.stat().st_mode & 0o777 == 0o600
        finally:
            os.umask(before)

    def test_what_was_saved_stays_until_the_new_one_is_whole(self, tmp_path, monkeypatch):
        path, (collector, tickets, sent) = tmp_path / "state", ready(SMALL, 5)
        collector.save(path)
        content = path.read_bytes()
        collector.add(tickets, sent)
        monkeypatch.setattr(os, "fsync", lambda number: (_ for _ in ()).throw(OSError("full")))
        with pytest.raises(OSError, match="full"):
            collector.save(path)
        assert os.listdir(tmp_path) == ["state"]
        assert path.read_bytes() == content

    def test_no_damage_goes_unnoticed(self, tmp_path):
        """Bits of bytes everywhere, lengths of all kinds, and what is something else."""
        path, (collector, tickets, sent) = tmp_path / "state", ready(SMALL, 21)
        collector.add(tickets[:11], sent[:11])
        collector.save(path)
        content = path.read_bytes()
        damaged = [content[:length] for length in range(0, len(content), 31)]
        for place in [*range(0, 100, 2), *range(100, len(content), 7)]:
            damaged.append(bytearray(content))
            damaged[-1][place] ^= 1 << place % 8
        damaged += [content + b"\n", content[1:], b"", b"ldpcash collector 1\n" + content[20:]]
        for stored in damaged:
            path.write_bytes(stored)
            with pytest.raises(DamagedError, match=r"^state is "):
                Collector.load(path)
        path.write_bytes(content)
        assert state(Collector.load(path)) == state(collector)

    def test_a_state_that_never_was_one(self, tmp_path):
        """With a checksum that fits."""
        path, (collector, _, _) = tmp_path / "state", ready(SMALL, 21)
        collector.save(path)
        first, _, content = path.read_bytes().split(b"\n", 2)
        line, _, rest = content.partition(b"\n")
        head = json.loads(line)
        others = [b"", b"\n", b"{", b"[]", b"null", b"7", b"\xff", rest, line, line + b"\n"]
        others += [
            line + b"\n" + rest[:-1],
            line + b"\n" + rest + bytes(8),
            line + b"\n" + rest[8:],
        ]
        changes = {
            "plan": [None, "{}", Plan.choose(100, 9, 1.0).to_json()],
            "key": [None, "00", "key", 16 * "zz"],
            "first": [-1, None, "0", 5],
            "runs": [None, 7, [7], [[0, 22222]], [[0]], [[0, None]], [[0, 10**30]], []],
            "clients": [-5, 1.5, "50", None],
            "rejected": [None, 7, {"replay": -1}, {"replay": "many"}],
        }
        [[start, count]] = head["runs"]
        changes["runs"] += [[[start, count - 3], [start, 3]], [[start + 0.5, count]]]
        for name, values in changes.items():
            missing = {key: value for key, value in head.items() if key != name}
            for changed in [missing, *({**head, name: value} for value in values)]:
                others.append(json.dumps(changed).encode() + b"\n" + rest)
        for other in others:
            checksum = hashlib.sha256(other).hexdigest().encode()
            path.write_bytes(first + b"\n" + checksum + b"\n" + other)
            with pytest.raises(DamagedError, match=r"^state is no collector's state"):
                Collector.load(path)

    def test_no_file_is_not_damage(self, tmp_path):
        with pytest.raises(FileNotFoundError):
            Collector.load(tmp_path / "state")


SERVER = """
import sys
from pathlib import Path
from ldpcash.histogram.collector import Collector
collector = Collector.load(sys.argv[1])
size = 40 * collector.plan.report_size
reports = Path(sys.argv[2]).read_bytes()
again = max(0, collector.clients // 40 - 1)  # the last batch once more, as if nobody had answered
for start in range(again * size, len(reports), size):
    collector.receive_stream([reports[start : start + size]])
    collector.save(sys.argv[1])
    print(collector.clients, flush=True)
"""


def test_a_server_that_is_killed_goes_on(tmp_path, monkeypatch):
    """Thrice at random moments: nothing that it had saved is lost, and nothing counts twice."""
    plan, rng = Plan.choose(10**6, 20, 2.0), random.Random(13)
    expected, tickets, sent = ready(plan, 4000)
    kept, reports = tmp_path / "state", tmp_path / "reports"
    expected.save(kept)
    reports.write_bytes(plan.to_bytes(tickets, sent))
    expected.add(tickets, sent)  # nobody kills this one
    saved = 0
    for _ in range(3):
        server = subprocess.Popen(
            [sys.executable, "-c", SERVER, kept, reports], stdout=subprocess.PIPE, text=True
        )
        said = [int(server.stdout.readline()) for _ in range(rng.randrange(2, 6))]
        time.sleep(rng.uniform(0, 0.02))
        server.kill()
        said += map(int, server.communicate()[0].split())
        assert server.returncode < 0
        collector = Collector.load(kept)
        assert 4000 > collector.clients >= max(said) >= saved
        assert collector.clients % 40 == 0
        saved = collector.clients
        part, _, _ = ready(plan, 4000)
        part.add(tickets[:saved], sent[:saved])
        np.testing.assert_array_equal(collector.sums, part.sums)
    monkeypatch.setattr(sys, "argv", ["", kept, reports])
    exec(SERVER, {})
    collector = Collector.load(kept)
    assert collector.rejected == {"replay": 3 * 40}
    collector.rejected.clear()
    assert state(collector) == state(expected)
    assert [line[1:] for line in collector.histogram()] == [
        line[1:] for line in expected.histogram()
    ]
