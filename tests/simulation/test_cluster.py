"""A sweep on a Dask cluster: a real scheduler and real workers, each a process on loopback."""

import re
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from ldpcash import Collector, Plan, Point, SweepError, succinct_histogram, sweep
from ldpcash.beyond.bodies import body

DASK = Path(sys.executable).with_name("dask")
README = (Path(__file__).parents[2] / "README.md").read_text()
POINTS = [
    Point(protocol=protocol, epsilon=epsilon, frequency=0.6, clients=1000)
    for protocol in ("Cash", "Prot")
    for epsilon in (0.5, 1.0, 1.5)
]
pytestmark = pytest.mark.filterwarnings("ignore")  # of Dask's own


@pytest.fixture
def cluster(tmp_path):
    """A scheduler, two workers, and a client of them."""
    log = (tmp_path / "log").open("w")
    contact = tmp_path / "scheduler.json"

    def start(*command):
        return subprocess.Popen([DASK, *command], cwd=tmp_path, stdout=log, stderr=log)

    common = ["--scheduler-file", contact, "--host", "127.0.0.1", "--no-dashboard"]
    processes = [start("scheduler", *common, "--port", "0")]
    processes += [start("worker", *common, "--nthreads", "1") for _ in range(2)]
    try:
        end = time.monotonic() + 60
        while not contact.exists() and time.monotonic() < end:
            time.sleep(0.05)
        from distributed import Client  # here, as it takes seconds

        with Client(scheduler_file=str(contact), timeout=60) as client:
            client.wait_for_workers(2, timeout=60)
            client.scheduler_process = processes[0]
            yield client
    finally:
        for process in reversed(processes):
            process.kill()
            process.wait()
        log.close()


def test_the_readme_s_lines_move_a_sweep_to_a_cluster(cluster, tmp_path):
    lines = re.findall(r"```python\n(.*?)```", README, re.DOTALL)[4]
    assert len([line for line in lines.splitlines() if line]) == 3
    lines = lines.replace("tcp://scheduler:8786", cluster.scheduler.address)
    rule = {"min_errors": 60, "max_trials": 12_000}
    there = {"points": POINTS, "sweep": partial(sweep, **rule, store=tmp_path / "a")}
    exec(lines, there)
    there["client"].close()
    assert there["rows"] == sweep(POINTS, seed=1, **rule, workers=1, store=tmp_path / "b")


def test_a_million_clients_have_the_same_histogram_there(cluster):
    names = body("census", 40)
    strings = [*names.packing.unpack(names.bits), None]
    share = [*names.share, names.empty]
    who = np.random.default_rng(1).choice(len(share), 1_000_000, p=share)
    items = [strings[i] for i in who.tolist()]
    options = {"epsilon": 2.0, "seed": 1, "packing": names.packing, "list_size": 16}
    here = succinct_histogram(items, **options)
    assert {line.item for line in here[:3]} == {"JAMES", "JOHN", "ROBERT"}
    with cluster.get_executor() as executor:
        assert succinct_histogram(items, **options, executor=executor) == here
        stream_of_reports_has_the_same_histogram_there(names, executor)


def stream_of_reports_has_the_same_histogram_there(names, executor):
    """300,000 of them, with noise between and replays in the end."""
    clients = 300_000
    plan = Plan.choose(clients, 40, 4.0, packing=names.packing)
    here, there = (Collector(plan, bytes(16)) for _ in range(2))
    rng, tickets = np.random.default_rng(1), here.issue(clients)
    there.issue(clients)
    who = rng.choice(len(names.bits), clients, p=names.share / names.share.sum())
    mixed = plan.mixing.mix(names.bits)
    sent = plan.channels.reports(mixed, plan.channel_of(mixed), who, tickets["seed"], rng)
    reports = plan.to_bytes(tickets, sent)
    half = clients // 2 * plan.report_size
    stream = [reports[:half], b"noise", reports[half:], reports[-half:]]
    here.receive_stream(stream)
    there.receive_stream(stream, executor)
    assert here.clients == there.clients == clients
    assert here.rejected == there.rejected == {"foreign": 1, "replay": clients // 2}
    np.testing.assert_array_equal(here.sums, there.sums)
    lines = here.histogram()
    assert {line.item for line in lines[:3]} == {"JAMES", "JOHN", "ROBERT"}
    assert lines == there.histogram()


def test_a_scheduler_that_dies_is_one_clear_error(cluster, tmp_path):
    class Dying:
        """Dask's executor, whose scheduler dies after some chunks."""

        def __init__(self):
            self.executor = cluster.get_executor()
            self.submitted = 0

        def submit(self, task, /, *args):
            self.submitted += 1
            if self.submitted == 8:
                cluster.scheduler_process.kill()
            return self.executor.submit(task, *args)

    rule = {"seed": 1, "min_errors": 10**6, "max_trials": 30_000}
    with pytest.raises(SweepError, match=r"Finished chunks are kept in .* to go on"):
        sweep(POINTS, **rule, executor=Dying(), workers=1, store=tmp_path / "a", patience=30)
    assert list((tmp_path / "a").glob("*/*.json"))
    rows = sweep(POINTS, **rule, workers=1, store=tmp_path / "a")
    assert rows == sweep(POINTS, **rule, workers=1, store=tmp_path / "b")
