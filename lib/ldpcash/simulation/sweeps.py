"""Sweeps: many points, simulated until each has seen enough errors, with nothing ever lost.

A sweep is a list of points and a rule when to stop. Chunks go to an executor and come back in any
order; each is stored at once; the rule is applied in the order of chunks, and what lies behind the
last chunk that counts is thrown away. So the rows that come out depend on the points, the rule and
the seed alone: not on the number of workers, on who was faster, or on interruptions.

A sweep that was stopped, in whatever way, goes on where it was; one with more trials than before
computes only the new ones.
"""

from __future__ import annotations

import math
import re
import time
import warnings
from collections.abc import Iterable
from concurrent.futures import FIRST_COMPLETED, Executor, Future, wait
from contextlib import ExitStack, suppress
from itertools import count
from pathlib import Path
from typing import Any

from ldpcash.base.checks import positive, whole_number
from ldpcash.base.store import DamagedError, Store, result_folder
from ldpcash.base.workers import Here, Processes, cores
from ldpcash.simulation.points import Point
from ldpcash.simulation.progress import Silent, progress_bar
from ldpcash.simulation.trials import Row, Tally, chunk_size, code_version, full_cost, run_chunk

_SMALL = 2**27  # trials times their cost: less than a second, which workers take to start


def sweep(
    points: Iterable[Point],
    seed: int,
    *,
    min_errors: int = 100,
    max_trials: int = 1_000_000,
    executor: Executor | None = None,
    workers: int | None = None,
    store: str | Path | None = None,
    progress: bool | None = None,
    patience: float = 600.0,
) -> list[Row]:
    """Simulate each point until it has seen enough: one `Row` for each point, in their order.

    Args:
        points: what to simulate.
        seed: a whole number from 0; with the points it decides every number that comes out.
        min_errors: a point is done at the end of the chunk that brings this many block errors,
        max_trials: or after this many trials.
        executor: where the chunks are computed, any `concurrent.futures.Executor`; it is left open.
            Processes on this machine unless given.
        workers: how many chunks are computed at the same time: one for each core of this machine
            unless given. One, without an executor, means in this very process; so does a sweep that
            is over before workers have started.
        store: folder for finished chunks; `ldpcash.base.store.result_folder` unless given.
        progress: whether to show a bar; to a person only, unless given.
        patience: seconds without a finished chunk after which the sweep gives up. (A cluster that
            lost its workers lets tasks wait for ever.)

    >>> point = Point(protocol="Cash", epsilon=2.0, frequency=0.6, clients=1000)
    >>> [row] = sweep([point], seed=1, max_trials=5000, workers=1)
    >>> row.trials, row.errors
    (5000, 98)
    """
    seed = whole_number("seed", seed, 0)
    min_errors = whole_number("min_errors", min_errors, 1)
    max_trials = whole_number("max_trials", max_trials, 1)
    at_once = None if workers is None else whole_number("workers", workers, 1)
    patience = positive("patience", patience)
    if progress not in (None, True, False):
        raise ValueError(f"progress = {progress!r}: needs True, False or None")
    if not (executor is None or hasattr(executor, "submit")):
        raise ValueError(f"executor = {executor!r}: needs a concurrent.futures.Executor")
    if not isinstance(points, Iterable):
        raise ValueError(f"points = {points!r}: needs a list of points")
    points = list(points)
    for point in points:
        if not isinstance(point, Point):
            raise ValueError(f"points holds {point!r}: needs a Point")
    chunks = _Chunks(Store(result_folder() if store is None else store), seed)
    jobs = {point: _Job(point, min_errors, max_trials) for point in points}
    for job in jobs.values():
        chunks.recall(job)
    chunks.warn()
    if at_once is None:
        most = sum(job.most_work() for job in jobs.values())
        at_once = 1 if executor is None and most <= _SMALL else cores()
    with ExitStack() as stack:
        bar = progress_bar(progress)
        stack.callback(bar.close)
        if executor is None:
            executor = stack.enter_context(Here() if at_once == 1 else Processes(at_once))
        ahead = 1 if isinstance(executor, Here) else 2 * at_once  # the next ones lie ready
        _run(list(jobs.values()), chunks, executor, ahead, bar, patience)
    return [Row.of(point, jobs[point].tally) for point in points]


class SweepError(RuntimeError):
    """A sweep that could not go on. What was finished is stored, and the next run uses it.

    >>> class Lost(Executor):
    ...     def submit(self, task, /, *args):
    ...         raise OSError("the network is down")
    >>> point = Point(protocol="Cash", epsilon=2.0, frequency=0.6, clients=1000)
    >>> try:
    ...     sweep([point], seed=1, max_trials=3333, executor=Lost())
    ... except SweepError as error:
    ...     print(str(error).partition(".")[0])
    the network is down (OSError)
    """


class _Job:
    """How far one point has come."""

    def __init__(self, point: Point, min_errors: int, max_trials: int) -> None:
        self.point = point
        self.min_errors = min_errors
        self.max_trials = max_trials
        self.tally = Tally()
        self.counted = 0  # chunks in the tally
        self.waiting: dict[int, Tally] = {}  # chunks that came before an earlier one
        self.running: set[int] = set()

    @property
    def finished(self) -> bool:
        return self.tally.errors >= self.min_errors or self.size(self.counted) == 0

    def size(self, chunk: int) -> int:
        return chunk_size(self.point, chunk, self.max_trials)

    def add(self, chunk: int, tally: Tally) -> None:
        """Take in a chunk; chunks count in their order, and only until the rule says stop."""
        self.waiting[chunk] = tally
        while not self.finished and self.counted in self.waiting:
            self.tally = self.tally.plus(self.waiting.pop(self.counted))
            self.counted += 1

    def next_chunk(self) -> int | None:
        """The first chunk that nobody has begun."""
        begun = self.waiting.keys() | self.running
        chunk = next(chunk for chunk in count(self.counted) if chunk not in begun)
        return chunk if self.size(chunk) else None

    def most_work(self) -> int:
        """What is left to do if no more errors come; in trials times their cost."""
        left = 0 if self.finished else self.max_trials - self.tally.trials
        return left * full_cost(self.point)

    def work(self) -> tuple[float, float]:
        """Work done and, as far as one can tell, to do; in trials times their cost."""
        trials, errors = self.tally.trials, self.tally.errors
        expected = min(self.max_trials, trials * self.min_errors / errors if errors else math.inf)
        left = 0.0 if self.finished else max(expected - trials, self.size(self.counted))
        return trials * full_cost(self.point), left * full_cost(self.point)


class _Chunks:
    """The stored chunks of a sweep."""

    def __init__(self, store: Store, seed: int) -> None:
        self.store = store
        self.seed = seed
        self.version = code_version()  # once: what cannot be followed has another each time
        self.damaged: list[str] = []

    def recall(self, job: _Job) -> None:
        """Add what is stored of a point."""
        for chunk in self._stored(job):
            if job.finished:
                break
            name, about = self._name_and_about(job, chunk)
            try:
                result = self.store.load(name, about)
            except DamagedError as error:
                self.damaged.append(str(error))
            else:
                if result is not None:
                    job.add(chunk, Tally(**result))

    def _stored(self, job: _Job) -> list[int]:
        """Which chunks have a file, for this seed and of the right size."""
        ours = f"{job.point.key}/{self.seed}-"
        names = (name.removeprefix(ours) for name in self.store.names(job.point.key))
        found = (re.fullmatch(r"(\d+)-(\d+)", name) for name in names)  # copies have other names
        numbers = [(int(match[1]), int(match[2])) for match in found if match]
        return sorted(chunk for chunk, size in numbers if size == job.size(chunk))

    def warn(self) -> None:
        """Say what was found damaged."""
        if self.damaged:
            others = f", and {len(self.damaged) - 1} more" if len(self.damaged) > 1 else ""
            warnings.warn(f"stored chunk {self.damaged[0]}{others}: computed again", stacklevel=3)

    def keep(self, job: _Job, chunk: int, tally: Tally) -> None:
        """Store a finished chunk."""
        self.store.save(*self._name_and_about(job, chunk), tally._asdict())

    def _name_and_about(self, job: _Job, chunk: int) -> tuple[str, dict[str, Any]]:
        about = {
            "code": self.version,
            "point": job.point.parameters,
            "seed": self.seed,
            "chunk": chunk,
            "trials": job.size(chunk),
        }
        return f"{job.point.key}/{self.seed}-{chunk}-{job.size(chunk)}", about


def _run(
    jobs: list[_Job],
    chunks: _Chunks,
    executor: Executor,
    ahead: int,
    bar: Silent,
    patience: float,
) -> None:
    """Finish all jobs, with up to ``ahead`` chunks in the executor's hands."""
    running: dict[Future[Tally], tuple[_Job, int]] = {}
    clock = _Clock(jobs)
    last_sign_of_life = time.monotonic()
    bar.update(*clock.read())
    try:
        while not all(job.finished for job in jobs):
            while len(running) < ahead and (next_one := _most_urgent(jobs)):
                job, chunk = next_one
                task = (job.point, chunks.seed, chunk, job.size(chunk), chunks.version)
                running[executor.submit(run_chunk, *task)] = job, chunk
                job.running.add(chunk)
            done = wait(running, timeout=0.5, return_when=FIRST_COMPLETED).done
            for future in sorted(done, key=_has_failed):  # what is finished is kept first
                tally = future.result()
                job, chunk = running.pop(future)
                chunks.keep(job, chunk, tally)
                job.running.remove(chunk)
                job.add(chunk, tally)
                last_sign_of_life = time.monotonic()
            if time.monotonic() - last_sign_of_life > patience:
                raise TimeoutError(f"no chunk was finished for {patience:g} seconds")
            for future in [f for f, (job, _) in running.items() if job.finished]:
                future.cancel()  # past the stopping rule
                del running[future]
            bar.update(*clock.read())
    except Exception as error:
        _keep_finished(running, chunks)
        raise SweepError(
            f"{str(error).rstrip('.') or 'the executor gave up'} ({type(error).__name__})."
            f" Finished chunks are kept in {chunks.store.folder}: run the sweep again to go on."
        ) from error
    finally:
        for future in running:
            future.cancel()


def _keep_finished(running: dict[Future[Tally], tuple[_Job, int]], chunks: _Chunks) -> None:
    """Store what others have finished, or finish soon, when one has failed."""
    begun = [future for future in running if not future.cancel()]
    for future in wait(begun, timeout=5).done:
        if not _has_failed(future):
            with suppress(OSError):  # a full disk may be the failure
                chunks.keep(*running[future], future.result())


def _has_failed(future: Future[Tally]) -> bool:
    return future.cancelled() or future.exception() is not None


def _most_urgent(jobs: list[_Job]) -> tuple[_Job, int] | None:
    """The next chunk of the job with the fewest chunks ahead of it, which may turn out useless."""
    best = None
    for job in jobs:
        chunk = None if job.finished else job.next_chunk()
        if chunk is not None and (best is None or chunk - job.counted < best[1] - best[0].counted):
            best = job, chunk
    return best


class _Clock:
    """Points done, errors so far and time left, for the progress bar."""

    def __init__(self, jobs: list[_Job]) -> None:
        self.jobs = jobs
        self.start = time.monotonic()
        self.found = self.work()[0]  # stored work took no time

    def work(self) -> tuple[float, float]:
        work = [job.work() for job in self.jobs]
        return sum(done for done, _ in work), sum(left for _, left in work)

    def read(self) -> tuple[float, str]:
        done, left = self.work()
        finished = sum(job.finished for job in self.jobs)
        errors = sum(job.tally.errors for job in self.jobs)
        text = f"{finished}/{len(self.jobs)} points, {errors:,} errors"
        elapsed = time.monotonic() - self.start
        if done > self.found and elapsed > 2:  # before that, workers are still starting
            seconds = left * elapsed / (done - self.found)
            text += f", {int(seconds) // 60}:{int(seconds) % 60:02} left"
        return done / ((done + left) or 1), text
