"""The command line: whole collections in files and pipes, and what it says if something is wrong.

Reports here take the randomness of the operating system, as real ones do: no seed makes them the
same. Where a test hangs on them, it says its false-alarm rate.
"""

import csv
import fcntl
import importlib
import io
import json
import math
import os
import re
import select
import shlex
import signal
import stat
import subprocess
import sys
import time
import tomllib
from pathlib import Path

import numpy as np
import pytest

import ldpcash
from ldpcash import Collector, Packing, Plan
from ldpcash.histogram import command, streams
from ldpcash.histogram.command import main
from ldpcash.histogram.lines import ticket_lines

ROOT = Path(__file__).parents[2]
PROGRAM = [sys.executable, "-m", "ldpcash"]
SPOKEN = " ".join(map(shlex.quote, PROGRAM))
COMMANDS = ("plan", "tickets", "report", "collect", "merge", "table")
SIGMAS = 7  # of a normal estimate: a false alarm of 3e-12, so that a law not quite normal has room
PLAN = ["plan", "--clients", "4000", "--epsilon", "3", "--length", "4", "--alphabet", "A-Z"]


def shell(script, folder):
    """What a script prints, with `ldpcash` as a command; an error if one of its lines fails."""
    run = ["bash", "-e", "-c", script.replace("ldpcash ", f"{SPOKEN} ")]
    done = subprocess.run(run, cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done


def check_table(text, **frequencies):
    """The most frequent items of a table, in order: they stand out, with their frequencies."""
    rows = list(csv.reader(io.StringIO(text)))
    assert rows[0] == ["item", "frequency", "low", "high"]
    assert len(rows) > len(frequencies)
    for row, (item, true) in zip(rows[1:], frequencies.items(), strict=False):
        frequency, low, high = map(float, row[1:])
        assert row[0] == item
        assert low < frequency < high < low + 0.1
        assert abs(frequency - true) < SIGMAS * (high - low) / 3.92


class TestAsProcesses:
    def test_the_readme_s_lines_run_as_written_and_a_second_server_joins(self, tmp_path):
        """The first in pipes, the second in files."""
        blocks = re.findall(r"```sh\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
        [lines] = [block for block in blocks if "ldpcash plan" in block]
        assert len(lines.splitlines()) == 5
        done = shell(lines.replace(".venv/bin/ldpcash", "ldpcash"), tmp_path)
        assert done.stderr.startswith("ldpcash: an item that ")
        taken_in, _, table = done.stdout.partition("item,")
        assert taken_in == (
            "taken in: 10000\nrejected: 0\nin the state: 10000 reports, of 10000 tickets\n"
        )
        check_table(f"item,{table}", ANNA=0.6, BOB=0.4)
        items = np.random.default_rng(1).permutation(["CLEO"] * 2500 + [""] * 1500).tolist()
        (tmp_path / "more").write_text("\r\n".join(items))  # another system's, and no end
        script = """
            ldpcash tickets second 4000 --beside state --first 1e6 --output tickets
            ldpcash report plan.json tickets more --output reports
            ldpcash collect second reports items.txt > told
            ldpcash merge state second --output both
            ldpcash table both
        """
        done = shell(script, tmp_path)
        assert (tmp_path / "told").read_text() == (
            "taken in: 4000\n"
            "rejected: 1\n"
            "  foreign: 1 (no report)\n"
            "in the state: 4000 reports, of 4000 tickets\n"
        )
        assert done.stderr == ""
        merged, _, table = done.stdout.partition("item,")
        assert merged == "in the state: 14000 reports, of 14000 tickets\n"
        check_table(f"item,{table}", ANNA=6 / 14, BOB=4 / 14, CLEO=2.5 / 14)
        for name in ("state", "second", "both"):
            assert stat.S_IMODE((tmp_path / name).stat().st_mode) == 0o600
        assert not list(tmp_path.glob(".*"))  # no lock is left, and nothing unfinished

    def test_a_kill_loses_nothing_that_was_saved_and_nothing_counts_twice(self, tmp_path):
        plan = Plan.choose(2000, 20, 2.0)
        server, alone = Collector(plan), tmp_path / "state"
        tickets = server.issue(2000)
        server.save(alone)
        items = np.tile(np.arange(20) % 2, (2000, 1))
        sent = plan.reports(items, np.ones(2000, bool), tickets, np.random.default_rng(1))
        reports = plan.to_bytes(tickets, sent)
        server.receive_stream([reports])  # what would have been without a kill
        reader, writer = os.pipe()
        run = [*PROGRAM, "collect", str(alone), "--save-every", "0"]
        running = subprocess.Popen(run, stdin=reader, stderr=subprocess.PIPE)
        size = 50 * plan.report_size
        given = range(0, len(reports) // 2, size)
        for start in given:
            os.write(writer, reports[start : start + size])
            while select.select([reader], [], [], 0)[0]:  # until it has taken this piece alone
                assert running.poll() is None
                time.sleep(0.001)
        patience = time.monotonic() + 30
        while (saved := Collector.load(alone).clients) == 0:
            assert running.poll() is None
            assert time.monotonic() < patience
            time.sleep(0.001)
        assert main(["tickets", str(alone), "1"]) == 2  # meanwhile nobody else may change it
        running.send_signal(signal.SIGKILL)
        running.communicate()
        os.close(reader)
        os.close(writer)
        assert 0 < saved <= Collector.load(alone).clients <= len(given) * 50 == 1000
        saved = Collector.load(alone).clients
        (tmp_path / "reports").write_bytes(reports)
        assert main(["collect", str(alone), str(tmp_path / "reports")]) == 0
        whole = Collector.load(alone)
        assert whole.clients == 2000
        assert whole.rejected == {"replay": saved}
        np.testing.assert_array_equal(whole.sums, server.sums)

    def test_a_reader_that_has_seen_enough_is_no_error(self, tmp_path):
        Collector(Plan.choose(100, 8, 1.0)).save(tmp_path / "state")
        run = [*PROGRAM, "tickets", "state", "100000"]
        streams = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        with subprocess.Popen(run, cwd=tmp_path, **streams) as running:
            assert len(running.stdout.readline()) == 25
            running.stdout.close()
            assert running.stderr.read() == b""
        assert running.returncode == 141  # as the shell says of whatever SIGPIPE ends

    def test_a_full_disk_is_one_line(self, tmp_path, capfd):
        if not os.path.exists("/dev/full"):
            pytest.skip("this system has no /dev/full")
        error = "ldpcash: No space left on device\n"
        assert main([*PLAN, "--output", "/dev/full"]) == 2
        assert capfd.readouterr() == ("", error)
        Collector(Plan.choose(100, 8, 1.0)).save(tmp_path / "state")
        run = [*PROGRAM, "collect", str(tmp_path / "state"), os.devnull]
        usual = {k: v for k, v in os.environ.items() if k != "PYTHONUNBUFFERED"}
        with open("/dev/full", "w") as full:
            done = subprocess.run(run, env=usual, stdout=full, stderr=subprocess.PIPE, text=True)
        assert (done.returncode, done.stderr) == (2, error)


def test_the_installed_script_is_the_same(monkeypatch, capfd):
    scripts = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["scripts"]
    module, _, name = scripts["ldpcash"].partition(":")
    assert module == "ldpcash.__main__"
    monkeypatch.setattr(sys, "argv", ["ldpcash", "--version"])
    assert getattr(importlib.import_module(module), name)() == 0
    assert capfd.readouterr().out == f"ldpcash {ldpcash.__version__}\n"


# In this process


@pytest.fixture
def told(tmp_path, monkeypatch, capfdbinary):
    """Run a command in a folder of its own: exit code, stdout and stderr, as text."""
    monkeypatch.chdir(tmp_path)

    def run(*arguments, stdin=b"", typed=False):
        Path(".stdin").write_bytes(stdin)
        with open(".stdin") as file:
            file.isatty = lambda: typed
            monkeypatch.setattr(sys, "stdin", file)
            code = main(list(map(str, arguments)), "1.2.3")
        out, err = capfdbinary.readouterr()
        return code, out.decode(errors="replace"), err.decode()

    return run


def prepare(told, *options, clients=200):
    """A plan and a state with tickets, in the current folder."""
    assert told(*(options or PLAN), "--output", "plan.json")[0] == 0
    assert told("tickets", "state", clients, "--plan", "plan.json", "--output", "tickets")[0] == 0
    return Plan.from_json(Path("plan.json").read_text())


class TestPlan:
    def test_what_is_given_is_in_it(self, told):
        options = ["--empty", "0.3", "--fdr", "0.01", "--hash-seed", "7", "--cut"]
        code, text, noted = told(*PLAN, *options)
        plan = Plan.from_json(text)
        packing = Packing(20, "ABCDEFGHIJKLMNOPQRSTUVWXYZ", cut=True)
        wanted = Plan.choose(4000, 20, 3, empty=0.3, fdr=0.01, hash_seed=7, packing=packing)
        assert (code, plan.to_json()) == (0, wanted.to_json())
        share = 100 * plan.smallest(4000)
        assert noted == (
            f"ldpcash: an item that {share:.3g} % of 4000 clients hold is found half of the time;"
            f" a report has {plan.report_size} bytes\n"
        )

    def test_other_kinds_of_items(self, told):
        common = ["plan", "--clients", "1e6", "--epsilon", "1", "--hash-seed", "7"]
        bits = told(*common, "--bits", "20")[1]
        assert Plan.from_json(bits).to_json() == Plan.choose(10**6, 20, 1, hash_seed=7).to_json()
        text = Plan.from_json(told(*common, "--length", "5", "--text")[1])
        assert text.packing == Packing(40)
        odd = Plan.from_json(told(*common, "--bits", "33", "--alphabet", "a-z")[1])
        assert odd.packing == Packing(33, "abcdefghijklmnopqrstuvwxyz")

    def test_cash(self, told):
        common = ["plan", "--clients", "1000", "--epsilon", "2", "--bits", "8", "--hash-seed", "7"]
        text = told(*common, "--protocol", "Cash", "--delta", "1e-5")[1]
        wanted = Plan.choose(1000, 8, 2, protocol="Cash", delta=1e-5, hash_seed=7)
        assert Plan.from_json(text).to_json() == wanted.to_json()

    def test_nobody_chooses_the_hash(self, told):
        """Two of 2**53 numbers are the same in one of 10**16 runs."""
        one, other = (Plan.from_json(told(*PLAN)[1]).hash_seed for _ in range(2))
        assert one != other
        assert max(one, other) < 2**53  # JSON's numbers are floating point elsewhere

    def test_too_few_clients(self, told):
        few = told("plan", "--clients", "3", "--epsilon", "0.1", "--bits", "8")[2]
        assert few.startswith("ldpcash: 3 clients are too few for any item to be found;")


class TestTickets:
    def test_they_are_the_collector_s(self, told):
        prepare(told, clients=70_000)
        collector = Collector.load("state")
        numbers = np.arange(70_003)
        again = Collector(collector.plan, collector.tickets.key).issue(len(numbers))
        assert Path("tickets").read_bytes() == ticket_lines(again[:70_000])
        code, more, _ = told("tickets", "state", 3)  # goes on where it ended
        assert (code, more.encode()) == (0, ticket_lines(again[70_000:]))
        assert collector.tickets.key != bytes(16)

    def test_a_first_number(self, told):
        prepare(told)
        told("tickets", "other", 2, "--plan", "plan.json", "--first", 258)
        assert told("tickets", "other", 1)[1].startswith("00000104")
        assert Collector.load("other").tickets.key != Collector.load("state").tickets.key

    def test_a_server_beside(self, told):
        prepare(told)
        assert told("tickets", "there", 50, "--beside", "state", "--first", 200)[0] == 0
        here, there = Collector.load("state"), Collector.load("there")
        assert here.tickets.key == there.tickets.key
        assert here.plan.to_json() == there.plan.to_json()
        assert stat.S_IMODE(Path("there").stat().st_mode) == 0o600


class TestReport:
    def test_real_randomness_and_no_other(self, told, monkeypatch):
        """Two times 200 reports at epsilon = 3 are the same with a probability far below 1e-6: each
        symbol is a false one with a probability above 0.05, and 0.95**200 squared is 1e-9."""
        prepare(told)
        given = []
        real = Plan.reports

        def noted(plan, bits, holds, tickets, *more):
            given.append(more)
            return real(plan, bits, holds, tickets, *more)

        monkeypatch.setattr(Plan, "reports", noted)
        items = b"ANNA\n" * 200
        one, other = (told("report", "plan.json", "tickets", stdin=items)[1] for _ in range(2))
        assert one != other
        assert given == [(), ()]
        names = {action for action in vars(command) if "seed" in action.lower()}
        assert names == {"_SEED_BITS"}  # of the plan

    def test_in_batches_it_is_the_same(self, told, monkeypatch):
        monkeypatch.setattr(command, "_PIECE", 700)

        def sent(bits, holds):
            return bits[:, 4] + 2 * bits[:, -1] + 4 * np.asarray(holds, dtype=np.uint8)

        monkeypatch.setattr(Plan, "reports", lambda plan, bits, holds, _: sent(bits, holds))
        plan = prepare(told)
        items = [b"ANNA", b"BOB", b"", b"ABBA"] * 50
        told("report", "plan.json", "tickets", "--output", "reports", stdin=b"\n".join(items))
        rows = np.frombuffer(Path("reports").read_bytes(), np.uint8).reshape(-1, plan.report_size)
        bits = plan.packing.pack(map(bytes.decode, items))
        holds = [item != b"" for item in items]
        expected = sent(bits, holds)
        assert rows[:, 19].tolist() == expected.tolist()
        assert rows[:, 7].tolist() == list(range(200))  # each with its ticket

    def test_one_client(self, told):
        plan = prepare(told)
        own = Path("tickets").read_text().splitlines()[16]
        Path("mine").write_text(own)
        code, _, noted = told("report", "plan.json", "mine", "--output", "report", stdin=b"BOB")
        assert (code, noted) == (0, "")
        assert len(Path("report").read_bytes()) == plan.report_size
        assert told("collect", "state", "report")[1].startswith("taken in: 1\nrejected: 0\n")

    @pytest.mark.parametrize("which", ["plan", "tickets", "items"])
    def test_any_one_of_its_inputs_from_stdin(self, told, which):
        plan = prepare(told)
        Path("items").write_text("ANNA\n")
        names = {"plan": "plan.json", "tickets": "tickets", "items": "items"}
        content = Path(names[which]).read_bytes()
        arguments = ["-" if name == which else path for name, path in names.items()]
        code, _, _ = told("report", *arguments, "--output", "report", stdin=content)
        assert (code, Path("report").stat().st_size) == (0, plan.report_size)

    @pytest.mark.parametrize(
        ("line", "message"),
        [
            (b"xyzzy", "items, line 3: has a letter that is none of the alphabet"),
            (b"XYZZYX", "items, line 3: has 6 letters"),
            (b"XYZZ\xff", "items, line 3: is not UTF-8"),
            (b"XYZZ\0", "items, line 3: has"),
        ],
    )
    def test_a_wrong_item_is_not_quoted_and_no_report_is_made(self, told, line, message):
        prepare(told)
        code, out, error = told("report", "plan.json", "tickets", stdin=b"ANNA\n\n" + line)
        assert (code, out) == (2, "")
        assert error.startswith(f"ldpcash: {message}")
        assert error.count("\n") == 1
        assert "yzz" not in error.lower().replace("abcdefghijklmnopqrstuvwxyz", "")

    def test_what_follows_an_error_keeps_the_old_file(self, told):
        prepare(told)
        Path("reports").write_bytes(b"of before")
        assert told("report", "plan.json", "tickets", "--output", "reports", stdin=b"?")[0] == 2
        assert Path("reports").read_bytes() == b"of before"


class TestCollect:
    def filled(self, told, clients=200, *options):
        plan = prepare(told, *options, clients=clients)
        items = b"ANNA\n" * (clients - 50) + b"\n" * 50
        told("report", "plan.json", "tickets", "--output", "reports", stdin=items)
        return plan, Path("reports").read_bytes()

    def test_twice_the_same_counts_once(self, told):
        self.filled(told)
        first = told("collect", "state", "reports")
        once = Collector.load("state")
        again = told("collect", "state", "reports", "reports")
        assert first == (
            0,
            "taken in: 200\nrejected: 0\nin the state: 200 reports, of 200 tickets\n",
            "",
        )
        assert again == (
            0,
            "taken in: 0\n"
            "rejected: 400\n"
            "  replay: 400 (the ticket was used before)\n"
            "in the state: 200 reports, of 200 tickets\n",
            "",
        )
        np.testing.assert_array_equal(Collector.load("state").sums, once.sums)

    def test_each_kind_of_rejection_is_counted_and_explained(self, told):
        plan, reports = self.filled(told)
        size = plan.report_size
        told(*PLAN, "--output", "other.json")
        told("report", "other.json", "tickets", "--output", "other", stdin=b"BOB\n" * 3)
        told("tickets", "foreign", 2, "--plan", "plan.json", "--output", "forged")
        told("report", "plan.json", "forged", "--output", "forged", stdin=b"BOB\n" * 2)
        damaged = bytearray(reports[:size])
        damaged[-1] ^= 1
        wrong = Path("other").read_bytes() + Path("forged").read_bytes() + bytes(damaged)
        wrong += reports[size : 2 * size] * 5 + b"GET / HTTP/1.1" + reports[2 * size : 4 * size]
        code, out, error = told("collect", "state", stdin=wrong + reports[-size:-2])
        assert (code, error) == (0, "")
        # The first of five counts, and both behind what is no report. What was made with another
        # plan is skipped as one piece.
        assert out.startswith("taken in: 3\nrejected: ")
        shown = dict(re.findall(r"^  (\w+): (\d+) \(.+\)$", out, re.MULTILINE))
        assert {name: int(count) for name, count in shown.items()} | {"parameters": 0} == {
            "damaged": 1,
            "foreign": 1,
            "parameters": 0,
            "replay": 4,
            "size": 1,
            "ticket": 2,
        }
        assert int(shown["parameters"]) >= 1
        assert sum(map(int, shown.values())) == int(re.search(r"rejected: (\d+)", out)[1])
        assert "of no use" not in out
        assert dict(Collector.load("state").rejected) == {k: int(v) for k, v in shown.items()}
        assert told("collect", "state", "reports")[1].startswith("taken in: 197\nrejected: 3\n")

    def test_several_cores_give_the_same(self, told):
        self.filled(told)
        told("tickets", "state", 1)  # and a ticket that is never used
        Path("alike").write_bytes(Path("state").read_bytes())
        one = told("collect", "state", "reports", "reports")
        assert told("collect", "alike", "reports", "reports", "--workers", 2) == one
        assert Path("state").read_bytes() == Path("alike").read_bytes()

    def test_it_saves_now_and_then(self, told, monkeypatch):
        plan, reports = self.filled(told)
        monkeypatch.setattr(streams, "_PART", 10 * plan.report_size)
        saved, clock = [], iter(range(10**6))
        real = Collector.save
        monkeypatch.setattr(
            Collector, "save", lambda c, path: (saved.append(c.clients), real(c, path))
        )
        monkeypatch.setattr(command.time, "monotonic", lambda: 10 * next(clock))
        assert told("collect", "state", stdin=reports[: 20 * plan.report_size])[0] == 0
        # The clock is ten seconds on whenever someone looks. A report that ends as one begins is
        # only taken in with the next one.
        assert saved[0] in (9, 10)
        assert saved[-2:] == [20, 20]
        assert len(saved) <= 4
        saved.clear()
        assert told("collect", "state", "reports", "--save-every", 10**9)[0] == 0
        assert saved == [200]

    def test_an_interruption_says_what_to_do(self, told, monkeypatch):
        self.filled(told)

        def interrupted(*_):
            raise KeyboardInterrupt

        monkeypatch.setattr(Collector, "receive_stream", interrupted)
        code, out, error = told("collect", "state", "reports")
        assert (code, out) == (130, "")
        assert error == "ldpcash: interrupted; run it again with the same reports\n"

    def test_two_at_once_are_refused(self, told):
        self.filled(told)
        before = Path("state").read_bytes()
        os.symlink("state", "alias")
        with open(".state.lock", "wb") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            for name in ("state", "alias"):
                code, _, error = told("collect", name, "reports")
                assert (code, error) == (2, f"ldpcash: {name}: another command is changing it\n")
        assert Path("state").read_bytes() == before
        assert told("collect", "alias", "reports")[0] == 0  # whoever held it has ended
        assert Path("alias").is_symlink()
        assert Collector.load("state").clients == 200

    def test_progress_in_a_terminal_only(self, told, monkeypatch):
        self.filled(told)
        assert told("collect", "state", "reports")[2] == ""
        screen = io.StringIO()
        screen.isatty = lambda: True
        monkeypatch.setattr(sys, "stderr", screen)
        assert told("collect", "state", "reports", "reports")[0] == 0
        start, shown, *rest = screen.getvalue().split("\r\x1b[2K")
        assert re.fullmatch(r"0 of 0 MB, [\d,]+ reports a second", shown)
        assert start == rest[-1] == ""  # nothing of it is left


class TestTable:
    @pytest.fixture
    def state(self, told):
        """A state that was drawn, with few digits to show and a number below zero."""
        packing = Packing(24)
        plan = Plan.choose(4000, 24, 3.0, packing=packing)
        names = ['a,"', "=é"]
        collector = ldpcash.draw_collector(
            plan, packing.pack(names), [2000, 1000], np.random.default_rng(1), empty=1000
        )
        collector.rejected["foreign"] = 2
        collector.save("state")
        return collector

    def test_csv_and_json_say_the_same(self, told, state):
        code, text, error = told("table", "state")
        assert (code, error) == (0, "")
        rows = list(csv.DictReader(io.StringIO(text)))
        found = json.loads(told("table", "state", "--json")[1])
        assert (found["clients"], found["rejected"]) == (4000, {"foreign": 2})
        numbers = ("frequency", "low", "high")
        assert found["items"] == [
            {"item": row["item"], **{name: float(row[name]) for name in numbers}} for row in rows
        ]
        assert [row["item"] for row in rows][:2] == ['a,"', "=é"]
        entries = state.histogram()
        digits = len(rows[0]["frequency"].partition(".")[2])
        standard_error = state.plan.channels.noise / math.sqrt(4000)
        assert 10 <= 10**digits * standard_error < 100  # two digits of it
        for row, entry in zip(rows, entries, strict=True):
            for name in numbers:
                assert row[name] == f"{getattr(entry, name):.{digits}f}"

    def test_a_file(self, told, state):
        text = told("table", "state")[1]
        assert told("table", "state", "--output", "table.csv") == (0, "", "")
        assert Path("table.csv").read_bytes() == text.encode()

    def test_items_that_are_bits(self, told):
        plan, item = Plan.choose(4000, 12, 3.0), [0, 1] * 6
        collector = ldpcash.draw_collector(plan, [item], [4000], np.random.default_rng(1))
        collector.save("bits")
        assert told("table", "bits")[1].splitlines()[1].startswith("010101010101,")

    @pytest.mark.parametrize(
        ("clients", "told_so"),
        [(3, "they are too few"), (4000, r"that takes about [\d.]+ % of them")],
    )
    def test_nothing_stands_out(self, told, clients, told_so):
        plan = Plan.choose(4000, 12, 1.0)
        empty = np.random.default_rng(1)
        ldpcash.draw_collector(plan, [[0] * 12], [0], empty, empty=clients).save("state")
        code, text, error = told("table", "state")
        assert (code, text) == (0, "item,frequency,low,high\n")
        pattern = rf"ldpcash: no item stands out of the {clients} reports: {told_so}\n"
        assert re.fullmatch(pattern, error)


@pytest.mark.parametrize("command_name", ["", *COMMANDS])
def test_help(told, command_name):
    code, text, error = told(*filter(None, [command_name]), "--help")
    assert (code, error) == (0, "")
    assert text.startswith(f"usage: ldpcash {command_name}".strip())
    assert "%%" not in text
    assert max(map(len, text.splitlines())) <= 88
    if not command_name:
        for name in COMMANDS:
            assert re.search(rf"^    {name} +\w", text, re.MULTILINE)
            assert name == "merge" or f"  ldpcash {name} " in text


WRONG = {
    "": "the following arguments are required: COMMAND; see ldpcash --help",
    "plans": r"argument COMMAND: invalid choice: 'plans' .*; see ldpcash --help",
    "plan --clients 9": r"the following arguments are required: --epsilon; see ldpcash plan --help",
    "plan --clients 9 --epsilon 1": "one of the arguments --bits --length is required; .*",
    "plan --clients 9 --epsilon 1 --bits 8 --seed 3": "unrecognized arguments: --seed 3; .*",
    "plan --clients 9 --epsilon x --bits 8": "argument --epsilon: 'x' is no number; .*",
    "plan --clients 9 --epsilon nan --bits 8": "epsilon = nan: needs a positive number",
    "plan --clients 0 --epsilon 1 --bits 8": "clients = 0: needs a whole number from 1",
    "plan --clients 9.5 --epsilon 1 --bits 8": r"clients = 9\.5: needs a whole number from 1",
    "plan --clients 9 --epsilon 1 --bits 0": "k = 0: needs a whole number from 1 to 1000",
    "plan --clients 9 --epsilon 1 --bits 8 --empty 2": "empty = 2: needs a number from 0 to 1",
    "plan --clients 9 --epsilon 1 --bits 8 --fdr 1": "fdr = 1: needs a number from 1e-06 to 0.5",
    "plan --clients 9 --epsilon 1 --bits 8 --delta 0.1": r"delta = 0\.1: Prot is private .*",
    "plan --clients 9 --epsilon 1 --bits 8 --cut": "--length and --cut are about text: .*",
    "plan --clients 9 --epsilon 1 --length 8": "--length and --cut are about text: .*",
    "plan --clients 9 --epsilon 1 --length 999 --text": "k = 7992: needs .* to 1000",
    "plan --clients 9 --epsilon 1 --bits 4 --text": "k = 4: a letter alone takes 8 bits",
    "plan --clients 9 --epsilon 1 --bits 8 --alphabet AA": "alphabet = 'AA': needs letters, .*",
    "plan --clients 9 --epsilon 1 --bits 8 --text --alphabet A": "argument --alphabet: not allow.*",
    "plan --clients 9 --epsilon 1 --bits 8 --hash-seed -1": "hash_seed = -1: needs a whole .*",
    "plan --clients 9 --epsilon 1 --bits 8 --output no/where": "no/where: No such file or direc.*",
    "tickets state": "the following arguments are required: COUNT; .*",
    "tickets state 0": "count = 0: needs a whole number from 1 to 4294967296",
    "tickets state 4294967296": "count = 4294967296: needs a whole number from 0 to 4294967096",
    "tickets nowhere 5": "nowhere: No such file or directory",
    "tickets state 5 --plan plan.json": "state: is there already, .*",
    "tickets state 5 --first 9": "--first is about a new state: it needs --plan or --beside",
    "tickets new 5 --plan nowhere": "nowhere: No such file or directory",
    "tickets new 5 --plan items": "items: text is not a plan, .*",
    "tickets new 5 --plan tickets": "tickets: text is not a plan, .*",
    "tickets new 5 --plan plan.json --first -1": "first = -1: needs a whole number from 0 .*",
    "tickets new 5 --plan plan.json --beside state": "argument --beside: not allowed with .*",
    "tickets new 5 --beside state": "--beside needs --first: no two states .*",
    "tickets new 5 --beside state --first 199": "state: tickets of which number 199 was issued .*",
    "tickets new 5 --beside items --first 300": "items is not a collector's state .*",
    "tickets no/new 5 --plan plan.json": ".*/no: No such file or directory",
    "report plan.json": "the following arguments are required: TICKETS; .*",
    "report plan.json nowhere": "nowhere: No such file or directory",
    "report plan.json tickets nowhere": "nowhere: No such file or directory",
    "report plan.json tickets .": ".*: Is a directory",
    "report plan.json - -": "only one of PLAN, TICKETS and ITEMS can come from stdin",
    "report plan.json plan.json": "tickets, line 1: is no ticket",
    "report plan.json few items": "2 items and only 1 tickets: needs one for each",
    "report state tickets": "state: .*",
    "collect": "the following arguments are required: STATE, REPORTS; .*",
    "collect nowhere": "nowhere: No such file or directory",
    "collect items": "items is not a collector's state of this version",
    "collect damaged": "damaged is damaged",
    "collect state nowhere": "nowhere: No such file or directory",
    "collect state --workers 0": "workers = 0: needs a whole number from 1",
    "collect state --save-every -1": "save-every = -1: needs a number from 0",
    "merge state": "the following arguments are required: --output; .*",
    "merge state state --output new": "state: tickets of which number 0 was issued in both: .*",
    "merge state another --output new": "another: a collector with another plan: .*",
    "merge state stranger --output new": "stranger: tickets of another key: .*",
    "merge state nowhere --output new": "nowhere: No such file or directory",
    "merge state --output items": "items: is there already, .*",
    "table state": "clients = 0: no report was taken in",
    "table nowhere": "nowhere: No such file or directory",
    "table .": ".*: Is a directory",
    "table damaged": "damaged is damaged",
}


@pytest.mark.parametrize("line", WRONG, ids=lambda line: line.replace("/", ":") or "nothing")
def test_what_is_wrong_is_said_in_one_line(line, told):
    prepare(told)
    told(*PLAN, "--output", "another.json")
    told("tickets", "another", 5, "--plan", "another.json")
    told("tickets", "stranger", 5, "--plan", "plan.json", "--first", 900)
    Path("items").write_text("ANNA\nBOB\n")
    Path("few").write_bytes(Path("tickets").read_bytes()[:25])
    damaged = bytearray(Path("state").read_bytes())
    damaged[-1] ^= 1
    Path("damaged").write_bytes(damaged)
    before = {path.name: path.read_bytes() for path in Path().iterdir()}
    code, out, error = told(*line.split(), stdin=b"ANNA\n")
    assert (code, out) == (2, "")
    assert re.fullmatch(f"ldpcash: {WRONG[line]}\n", error)
    after = {path.name: path.read_bytes() for path in Path().iterdir()}
    assert after == {**before, ".stdin": b"ANNA\n"}  # nothing was changed, nothing is left


def test_items_can_be_typed(told):
    prepare(told)
    run = ["report", "plan.json", "tickets", "--output", "reports"]
    hint = "ldpcash: type items, one a line, and Ctrl-D in the end\n"
    assert told(*run, stdin=b"ANNA\n", typed=True) == (0, "", hint)


def test_reports_cannot(told):
    prepare(told)
    error = "ldpcash: no reports: name a file, or send them into a pipe\n"
    assert told("collect", "state", typed=True) == (2, "", error)


def test_reports_are_not_for_the_eye(told, monkeypatch):
    prepare(told)
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    error = "ldpcash: reports are bytes: send them to a file or a pipe\n"
    assert told("report", "plan.json", "tickets", stdin=b"ANNA\n") == (2, "", error)
