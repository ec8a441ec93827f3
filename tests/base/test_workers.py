"""Worker processes: one thread each, deaf to Ctrl-C, gone with their parent."""

import os
import signal
import subprocess
import sys
import time
from multiprocessing import Pipe

import pytest

from ldpcash.base import workers
from ldpcash.base.workers import Here, Processes, cores


def test_workers_have_one_thread_and_block_ctrl_c():
    before = dict(os.environ)
    with Processes(2) as pool:
        threads = pool.submit(os.getenv, "OPENBLAS_NUM_THREADS").result()
        blocked = pool.submit(signal.getsignal, signal.SIGINT).result()
    assert threads == os.environ.get("OPENBLAS_NUM_THREADS", "1")
    assert blocked == signal.SIG_IGN
    assert dict(os.environ) == before
    assert signal.SIGINT not in signal.pthread_sigmask(signal.SIG_BLOCK, ())


@pytest.mark.parametrize("run_as", [["script.py"], ["-m", "script"]])
def test_a_script_is_not_run_again_and_keeps_its_name(tmp_path, run_as):
    """Without a guard; and workers have what they were asked to have."""
    (tmp_path / "script.py").write_text(
        "from ldpcash.base.workers import Processes\n"
        "before = __file__, __spec__\n"
        "with Processes(1, preload=['wave']) as pool:\n"
        '    print(pool.submit(eval, \'"wave" in __import__("sys").modules\').result())\n'
        "print((__file__, __spec__) == before)\n"
    )
    command = [sys.executable, *run_as]
    result = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert (result.stdout, result.stderr) == ("True\nTrue\n", "")


def test_cancelled_work_is_no_accident():
    """In a pool that ended as if its workers had crashed, a thread of its own fails on the futures
    that were cancelled, about once in fifty times; pytest makes that an error."""
    for _ in range(150):
        with Processes(2) as pool:
            futures = [pool.submit(time.sleep, 0.001) for _ in range(12)]
            futures[0].result()
            for future in futures:
                future.cancel()


def test_the_end_of_the_block_is_the_end_of_the_work():
    start = time.monotonic()
    with Processes(1) as pool:
        pid = pool.submit(os.getpid).result()
        pool.submit(time.sleep, 60)
        time.sleep(0.1)
    assert time.monotonic() - start < 20
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


def test_a_worker_ends_when_the_lifeline_does(monkeypatch):
    """In this process, with the exit replaced."""
    codes = []
    monkeypatch.setattr(workers.os, "_exit", codes.append)
    handler = signal.getsignal(signal.SIGINT)
    reader, writer = Pipe(duplex=False)
    try:
        workers._end_with_parent(reader)
    finally:
        signal.signal(signal.SIGINT, handler)
    time.sleep(0.05)
    assert codes == []
    writer.close()
    end = time.monotonic() + 5
    while not codes and time.monotonic() < end:
        time.sleep(0.01)
    assert codes == [1]


def test_ctrl_c_waits_for_the_end_of_the_block():
    order = []

    def interrupted_block():
        with workers._ctrl_c_later():
            signal.raise_signal(signal.SIGINT)
            order.append("the block went on")

    before = signal.getsignal(signal.SIGINT)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            interrupted_block()
    finally:
        signal.signal(signal.SIGINT, before)
    assert order == ["the block went on"]


def test_here_is_here_and_now():
    with Here() as here:
        assert here.submit(os.getpid).result() == os.getpid()
        with pytest.raises(ZeroDivisionError):
            here.submit(divmod, 1, 0).result()


def test_cores(monkeypatch):
    assert cores() == len(os.sched_getaffinity(0))
    monkeypatch.delattr(os, "sched_getaffinity")
    monkeypatch.setattr(os, "cpu_count", lambda: None)
    assert cores() == 1
