"""Sweeps: the same rows whatever happens on the way."""

import os
import random
import re
import signal
import subprocess
import sys
import threading
import time
import uuid
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from ldpcash import SweepError, sweep
from ldpcash.base.workers import Here
from ldpcash.simulation.points import Point
from ldpcash.simulation.trials import Row, Tally, code_version, run_chunk

POINTS = [
    Point(protocol=protocol, epsilon=epsilon, frequency=0.6, clients=1000)
    for protocol in ("Cash", "Prot")
    for epsilon in (0.5, 1.0, 1.5)
]
RULE = {"seed": 7, "min_errors": 60, "max_trials": 12_000}


@pytest.fixture(scope="module")
def expected(tmp_path_factory):
    return sweep(POINTS, **RULE, workers=1, store=tmp_path_factory.mktemp("expected"))


class Shuffling(ThreadPoolExecutor):
    """Runs tasks one by one in a random order."""

    def __init__(self, seed):
        super().__init__(1)
        self.rng = random.Random(seed)
        self.queue = []
        self.submitted = []
        self.started = []

    def submit(self, task, /, *args):
        future = Future()
        self.queue.append((future, task, args))
        self.submitted.append(args[:3])
        super().submit(self.run_one)
        return future

    def run_one(self):
        time.sleep(0.002)  # let some tasks gather
        future, task, args = self.queue.pop(self.rng.randrange(len(self.queue)))
        if future.set_running_or_notify_cancel():
            self.started.append(args[:3])
            future.set_result(task(*args))


class Noting(Here):
    """Runs tasks at once and notes them down; fails at a given one."""

    def __init__(self, fails_at=None):
        self.fails_at = fails_at
        self.started = []

    def submit(self, task, /, *args):
        self.started.append(args[:3])
        if len(self.started) == self.fails_at:
            raise MemoryError("no more")
        return super().submit(task, *args)


def chunks_in(folder):
    return list(folder.glob("*/[!.]*.json"))


class TestResults:
    def test_each_point_stops_at_the_first_chunk_with_enough_errors(self, expected):
        for point, row in zip(POINTS, expected, strict=True):
            tally = Tally()
            for chunk, size in enumerate([1024, 2048, 4096, 4832]):
                tally = tally.plus(run_chunk(point, 7, chunk, size, code_version()))
                if tally.errors >= 60:
                    break
            assert row == Row.of(point, tally)
        stopped = [row.trials < 12_000 for row in expected]
        assert any(stopped)
        assert not all(stopped)

    @pytest.mark.parametrize("workers", [2, 8])
    def test_any_number_of_workers(self, expected, workers, tmp_path):
        assert sweep(POINTS, **RULE, workers=workers, store=tmp_path) == expected

    def test_any_order_of_points_and_any_neighbours(self, expected, tmp_path):
        backwards = sweep([*POINTS[::-1], POINTS[2]], **RULE, workers=1, store=tmp_path)
        assert backwards[-2::-1] == expected
        assert backwards[-1] == expected[2]
        for number, point in enumerate(POINTS):
            alone = sweep([point], **RULE, workers=1, store=tmp_path / str(number))
            assert alone == [expected[number]]

    @pytest.mark.parametrize("seed", range(5))
    def test_any_order_of_completion(self, expected, seed, tmp_path):
        with Shuffling(seed) as executor:
            assert sweep(POINTS, **RULE, executor=executor, workers=4, store=tmp_path) == expected
        assert executor.started != [task for task in executor.submitted if task in executor.started]

    def test_any_executor_which_is_left_open(self, expected, tmp_path):
        with ThreadPoolExecutor(3) as threads:
            assert sweep(POINTS, **RULE, executor=threads, store=tmp_path) == expected
            assert threads.submit(abs, -1).result() == 1

    def test_no_points_no_rows(self, tmp_path):
        assert sweep([], 1, store=tmp_path) == []


class TestStored:
    def test_a_second_run_computes_nothing(self, expected, tmp_path):
        sweep(POINTS, **RULE, workers=1, store=tmp_path)
        executor = Noting()
        assert sweep(POINTS, **RULE, executor=executor, store=tmp_path) == expected
        assert executor.started == []

    def test_more_trials_compute_only_the_new_ones(self, expected, tmp_path):
        short = {**RULE, "max_trials": 1024 + 2048}
        sweep(POINTS, **short, workers=1, store=tmp_path)
        executor = Noting()
        assert sweep(POINTS, **RULE, executor=executor, store=tmp_path) == expected
        assert executor.started
        assert all(chunk >= 2 for _, _, chunk in executor.started)

    @pytest.mark.parametrize("fails_at", [1, 4, 7])
    def test_an_executor_that_fails_loses_nothing(self, expected, fails_at, tmp_path):
        failing = Noting(fails_at=fails_at)
        with pytest.raises(
            SweepError, match=r"^no more \(MemoryError\)\. Finished chunks are kept"
        ):
            sweep(POINTS, **RULE, executor=failing, store=tmp_path)
        assert len(chunks_in(tmp_path)) == fails_at - 1
        executor = Noting()
        assert sweep(POINTS, **RULE, executor=executor, store=tmp_path) == expected
        assert not set(executor.started) & set(failing.started[: fails_at - 1])

    @pytest.mark.parametrize("damage", ["truncated", "flipped", "empty", "gone"])
    def test_damage_is_found_named_and_mended(self, expected, damage, tmp_path):
        sweep(POINTS, **RULE, workers=1, store=tmp_path)
        before = {path: path.read_bytes() for path in chunks_in(tmp_path)}
        victim = sorted(before)[3]
        content = bytearray(before[victim])
        if damage == "truncated":
            victim.write_bytes(content[: len(content) // 2])
        elif damage == "flipped":
            content[content.index(b'"errors": ') + 10] ^= 1
            victim.write_bytes(content)
        elif damage == "empty":
            victim.write_bytes(b"")
        else:
            victim.unlink()
        executor = Noting()
        run = {**RULE, "executor": executor, "store": tmp_path}
        if damage == "gone":
            assert sweep(POINTS, **run) == expected
        else:
            name = re.escape(f"{victim.parent.name}/{victim.stem}")
            with pytest.warns(
                UserWarning, match=f"^stored chunk {name} is damaged: computed again$"
            ):
                assert sweep(POINTS, **run) == expected
        assert len(executor.started) == 1
        assert {path: path.read_bytes() for path in chunks_in(tmp_path)} == before

    def test_all_damage_is_one_warning(self, expected, tmp_path):
        sweep(POINTS, **RULE, workers=1, store=tmp_path)
        for path in chunks_in(tmp_path):
            path.write_bytes(b"")
        with pytest.warns(UserWarning, match=r"is damaged, and \d+ more: computed again$") as found:
            assert sweep(POINTS, **RULE, workers=1, store=tmp_path) == expected
        assert len(found) == 1

    def test_another_version_of_the_code_starts_over(self, expected, tmp_path, monkeypatch):
        sweep(POINTS, **RULE, workers=1, store=tmp_path)
        for module in ("ldpcash.simulation.sweeps", "ldpcash.simulation.trials"):
            monkeypatch.setattr(f"{module}.code_version", lambda: "another")
        executor = Noting()
        assert sweep(POINTS, **RULE, executor=executor, store=tmp_path) == expected
        assert len(executor.started) == len(chunks_in(tmp_path))

    def test_another_seed_has_results_of_its_own(self, expected, tmp_path):
        sweep(POINTS, **RULE, workers=1, store=tmp_path)
        other = sweep(POINTS, **{**RULE, "seed": 8}, workers=1, store=tmp_path)
        assert all(
            a.frequency_error != b.frequency_error for a, b in zip(other, expected, strict=True)
        )

    def test_a_full_disk_stops_the_sweep_and_the_next_one_goes_on(self, expected, tmp_path):
        """A real limit on file sizes from the fifth chunk on: the system refuses the write."""
        script = FILLING + SCRIPT.replace("workers=2", "executor=Filling()")
        result = run_script(script, tmp_path)
        last = result.stderr.splitlines()[-1]
        assert last.startswith(
            "ldpcash.simulation.sweeps.SweepError: [Errno 27] File too large (OSError)."
        )
        assert last.endswith("run the sweep again to go on.")
        files = [name for _, _, names in os.walk(tmp_path) for name in names]
        assert len(files) == 4 + 1  # and the one that shows that the folder can be written to
        assert rows_of(run_script(SCRIPT, tmp_path)) == repr(expected)


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        ({"seed": -1}, "seed = -1: needs a whole number from 0"),
        ({"seed": 0.5}, "seed = 0.5: needs a whole number from 0"),
        ({"min_errors": 0}, "min_errors = 0: needs a whole number from 1"),
        ({"max_trials": 0}, "max_trials = 0: needs a whole number from 1"),
        ({"workers": 0}, "workers = 0: needs a whole number from 1"),
        ({"seed": True}, "seed = True: needs a whole number from 0"),
        ({"max_trials": None}, "max_trials = None: needs a whole number from 1"),
        ({"max_trials": float("nan")}, "max_trials = nan: needs a whole number from 1"),
        ({"patience": "long"}, "patience = 'long': needs a"),
        ({"patience": 0}, "patience = 0: needs a positive number"),
        ({"progress": "no"}, "progress = 'no': needs True, False or None"),
        ({"executor": 5}, "executor = 5: needs a concurrent.futures.Executor"),
        ({"store": ""}, "store = '': needs a folder"),
        ({"store": "/dev/null/results"}, "store = '/dev/null/results': the folder cannot be writ"),
    ],
)
def test_a_wrong_argument_is_named(wrong, sentence):
    with pytest.raises(ValueError, match=sentence):
        sweep(POINTS, **{**RULE, **wrong})


def test_points_must_be_points():
    with pytest.raises(ValueError, match=r"points holds \{'epsilon': 1\}: needs a Point"):
        sweep([{"epsilon": 1}], 1)
    with pytest.raises(ValueError, match=r"points = Point\(.*: needs a list of points"):
        sweep(POINTS[0], 1)


def test_files_of_others_in_the_store_are_left_alone(expected, tmp_path):
    """Such as a copy that a file manager made."""
    sweep(POINTS, **RULE, workers=1, store=tmp_path)
    for path in list(tmp_path.glob("*/*.json")):
        path.with_stem(f"{path.stem} (1)").write_bytes(path.read_bytes())
    assert sweep(POINTS, **RULE, workers=1, store=tmp_path) == expected


def test_numbers_may_be_numpy_s(expected, tmp_path):
    rule = {"seed": np.int64(7), "min_errors": 60.0, "max_trials": np.float64(12e3)}
    assert sweep(POINTS, **rule, workers=np.int8(1), store=tmp_path) == expected


def test_sweeps_in_threads_share_a_store(expected, tmp_path):
    main = sys.modules["__main__"]

    def run(workers):
        return sweep(POINTS, **RULE, workers=workers, store=tmp_path)

    with ThreadPoolExecutor(4) as threads:
        assert list(threads.map(run, [1, 1, 2, 2])) == [expected] * 4
    assert sys.modules["__main__"] is main


def test_what_is_finished_is_kept_when_others_fail(tmp_path):
    class Failing(ThreadPoolExecutor):
        """Of three tasks one fails, and all end at the same time."""

        gate = threading.Barrier(3)

        def submit(self, task, /, *args):
            return super().submit(self.meet, task, *args)

        def meet(self, task, point, seed, chunk, *rest):
            try:
                if chunk == 1:
                    raise MemoryError("no more")
                return task(point, seed, chunk, *rest)
            finally:
                self.gate.wait()

    rule = {"seed": 7, "min_errors": 10**6, "max_trials": 1024 + 2048 + 4096}
    for attempt in range(5):
        with Failing(3) as executor, pytest.raises(SweepError, match="no more"):
            sweep(POINTS[:1], **rule, executor=executor, store=tmp_path / str(attempt), workers=2)
        assert len(chunks_in(tmp_path / str(attempt))) == 2


def test_a_cluster_without_workers_is_given_up(tmp_path):
    class Deaf(Executor):
        def submit(self, task, /, *args):
            return Future()

    with pytest.raises(SweepError, match=r"no chunk was finished for 0\.1 seconds"):
        sweep(POINTS, 1, executor=Deaf(), store=tmp_path, patience=0.1)


# In processes of its own: kill, interrupt, watch

SCRIPT = f"""
import sys
from ldpcash import Point, sweep
points = [
    Point(protocol=protocol, epsilon=epsilon, frequency=0.6, clients=1000)
    for protocol in ("Cash", "Prot")
    for epsilon in (0.5, 1.0, 1.5)
]
rows = sweep(points, **{RULE!r}, workers=2, store=sys.argv[1])
print(rows)
"""
FILLING = """
import resource
from ldpcash.base.workers import Here
class Filling(Here):
    started = 0
    def submit(self, task, /, *args):
        self.started += 1
        if self.started == 5:
            resource.setrlimit(resource.RLIMIT_FSIZE, (300, 300))
        return super().submit(task, *args)
"""
LONG = SCRIPT.replace(
    "'min_errors': 60, 'max_trials': 12000", "'min_errors': 10**9, 'max_trials': 10**8"
)


STARTED = []


def start_script(script, folder):
    marked = {**os.environ, "LDPCASH_TEST": uuid.uuid4().hex}
    file = Path(f"{folder}.py")  # a file, because workers would run only that again
    file.write_text(script)
    process = subprocess.Popen(
        [sys.executable, str(file), str(folder)],
        env=marked,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # which "&" ignores
    )
    process.mark = marked["LDPCASH_TEST"]
    STARTED.append(process)
    return process


@pytest.fixture(autouse=True)
def nobody_is_left():
    yield
    while STARTED:
        process = STARTED.pop()
        process.kill()
        process.communicate()


def run_script(script, folder):
    process = start_script(script, folder)
    stdout, stderr = process.communicate(timeout=120)
    return subprocess.CompletedProcess(script, process.returncode, stdout, stderr)


def rows_of(result):
    assert result.returncode == 0, result.stderr
    assert result.stderr == ""
    return result.stdout.strip()


def relatives(process):
    """The processes that came from this one, even if it is gone: they have its environment."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if process.mark.encode() in (folder / "environ").read_bytes():
                found.append(folder.name)
        except OSError:
            pass  # it ended
    return found


def wait_until(condition, seconds=20):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.02)


linux = pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="needs /proc")


@linux
class TestProcesses:
    def test_a_short_sweep_starts_no_workers(self, expected, tmp_path, monkeypatch):
        monkeypatch.setattr("ldpcash.simulation.sweeps.Processes", None)
        assert sweep(POINTS, **RULE, store=tmp_path) == expected
        with pytest.raises(TypeError):
            sweep(POINTS, **{**RULE, "max_trials": 10**6}, store=tmp_path / "long")
        assert sweep(POINTS, **RULE, store=tmp_path) == expected

    def test_a_script_needs_no_guard_and_leaves_nobody_behind(self, expected, tmp_path):
        process = start_script(SCRIPT, tmp_path)
        stdout, stderr = process.communicate(timeout=120)
        assert stderr == ""
        assert stdout.strip() == repr(expected)
        wait_until(lambda: not relatives(process))

    def test_killed_at_random_moments(self, expected, tmp_path):
        """Three times at least, in as many sweeps as that takes: a fast machine ends one early."""
        rng = random.Random(11)
        kills = sweeps = 0
        while kills < 3 and sweeps < 20:
            sweeps += 1
            folder = tmp_path / str(sweeps)
            while (ended := self.killed(folder, rng))[0] != 0:
                kills += 1
            assert ended == (0, repr(expected) + "\n", "")
        assert kills >= 3

    def killed(self, folder, rng):
        """A sweep that is killed soon after it has stored some chunks, unless it was done by then:
        its exit code, and what it wrote to stdout and stderr."""
        process = start_script(SCRIPT, folder)
        enough = len(chunks_in(folder)) + rng.randrange(1, 4)
        while process.poll() is None and len(chunks_in(folder)) < enough:
            time.sleep(0.001)
        time.sleep(rng.uniform(0, 0.01))
        process.kill()
        written = process.communicate()
        wait_until(lambda: not relatives(process))
        return process.returncode, *written

    def test_ctrl_c_stops_quickly_and_quietly(self, tmp_path):
        process = start_script(LONG, tmp_path)
        wait_until(lambda: len(chunks_in(tmp_path)) > 8)
        os.killpg(process.pid, signal.SIGINT)  # a terminal sends it to all of them
        start = time.monotonic()
        _, stderr = process.communicate(timeout=60)
        assert time.monotonic() - start < 5
        assert stderr.count("Traceback") == 1
        assert stderr.splitlines()[-1] == "KeyboardInterrupt"
        wait_until(lambda: not relatives(process))
        kept = {path: path.stat().st_mtime_ns for path in chunks_in(tmp_path)}
        again = start_script(LONG, tmp_path)
        wait_until(lambda: len(chunks_in(tmp_path)) > len(kept))
        os.killpg(again.pid, signal.SIGINT)
        again.communicate(timeout=60)
        assert all(path.stat().st_mtime_ns == when for path, when in kept.items())

    def test_ctrl_c_while_workers_start(self, tmp_path):
        """After each delay there is one traceback, and nobody left."""
        for delay in (0.0, 0.1, 0.2, 0.3, 0.5):
            process = start_script(LONG, tmp_path)
            wait_until((tmp_path / "writable").exists)
            time.sleep(delay)
            os.killpg(process.pid, signal.SIGINT)
            _, stderr = process.communicate(timeout=60)
            assert stderr.count("Traceback") == 1, stderr
            assert stderr.splitlines()[-1] == "KeyboardInterrupt"
            wait_until(lambda: not relatives(process))  # noqa: B023
            (tmp_path / "writable").unlink()

    def test_a_worker_that_dies_is_one_clear_error(self, expected, tmp_path):
        process = start_script(LONG, tmp_path)
        wait_until(lambda: len(chunks_in(tmp_path)) > 8)
        workers = [
            pid
            for pid in relatives(process)
            if "forkserver" in Path(f"/proc/{pid}/cmdline").read_text()
        ]
        os.kill(int(max(workers, key=int)), signal.SIGKILL)
        _, stderr = process.communicate(timeout=60)
        last = stderr.splitlines()[-1]  # Python words it by what it was doing when it saw
        assert re.match(
            r"ldpcash\.simulation\.sweeps\.SweepError: A .*process .*terminated abruptly", last
        )
        assert "(BrokenProcessPool). Finished chunks are kept in" in last
        wait_until(lambda: not relatives(process))
