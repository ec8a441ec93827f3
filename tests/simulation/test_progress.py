"""The progress bar: seen by a person, by nobody else."""

import os
import pty
import subprocess
import sys

import pytest
from jupyter_client.manager import start_new_kernel

from ldpcash.simulation import progress
from ldpcash.simulation.progress import Notebook, Silent, Terminal, progress_bar

SCRIPT = """
import sys
from ldpcash import Point, sweep
points = [Point(protocol="Cash", epsilon=e, frequency=0.6, clients=1000) for e in (1.0, 2.0, 3.0)]
rows = sweep(points, 1, min_errors=2000, max_trials=8_000_000, workers=1, store={store!r})
"""


def in_a_terminal(script, **environment):
    """What a person sees: all that a script writes to a terminal."""
    person, terminal = pty.openpty()
    environment = {**os.environ, "COLUMNS": "80", **environment}
    process = subprocess.Popen(
        [sys.executable, "-c", script], stderr=terminal, stdout=terminal, env=environment
    )
    os.close(terminal)
    seen = b""
    while True:
        try:
            seen += os.read(person, 4096)
        except OSError:  # the other side is closed
            break
    os.close(person)
    assert process.wait() == 0
    return seen.decode()


@pytest.fixture
def no_ci(monkeypatch):
    monkeypatch.delenv("CI", raising=False)


def test_a_terminal_has_a_bar_and_is_clean_afterwards(tmp_path, no_ci):
    seen = in_a_terminal(SCRIPT.format(store=str(tmp_path)) + "print(len(rows))")
    lines = seen.split("\r\x1b[2K")
    assert lines[0] == ""
    assert lines[1].startswith("[....................] 0/3 points, 0 errors")
    assert lines[-1] == "3\r\n"
    assert any(" left" in line for line in lines)
    assert any("2/3 points" in line and "#" in line for line in lines)
    assert all(len(line) < 80 for line in lines)


def test_ci_has_none(tmp_path):
    assert in_a_terminal(SCRIPT.format(store=str(tmp_path)), CI="true") == ""


def test_a_log_has_none(tmp_path, no_ci):
    result = subprocess.run(
        [sys.executable, "-c", SCRIPT.format(store=str(tmp_path))], capture_output=True, check=True
    )
    assert result.stdout + result.stderr == b""


def messages(script, **environment):
    """What a kernel sends to the front end while it runs a cell."""
    manager, client = start_new_kernel(env={**os.environ, **environment})
    try:
        seen = []
        client.execute_interactive(script, output_hook=seen.append, timeout=120)
        return [(m["msg_type"], m["content"]) for m in seen]
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)


def outputs(messages):
    return [
        content["data"]["text/html"]
        for kind, content in messages
        if kind in ("display_data", "update_display_data")
    ]


@pytest.mark.filterwarnings("ignore")  # of jupyter_client's
def test_jupyterlab_has_a_bar_that_goes_away(tmp_path, no_ci):
    seen = messages(SCRIPT.format(store=str(tmp_path)), JPY_SESSION_NAME="some.ipynb")
    assert {kind for kind, _ in seen} <= {
        *("status", "execute_input", "display_data", "update_display_data"),
    }
    bars = outputs(seen)
    assert bars[0].startswith(
        '<div><progress value="0.000" max="1" aria-label="sweep"></progress> 0/3'
    )
    assert any("2/3 points" in bar and " left" in bar for bar in bars)
    assert bars[-1] == ""


@pytest.mark.filterwarnings("ignore")
def test_a_kernel_without_a_reader_has_none(tmp_path, no_ci, monkeypatch):
    """papermill and nbval start kernels themselves."""
    monkeypatch.delenv("JPY_SESSION_NAME", raising=False)
    seen = messages(SCRIPT.format(store=str(tmp_path)))
    assert {kind for kind, _ in seen} <= {"status", "execute_input"}


@pytest.mark.filterwarnings("ignore")
def test_a_kernel_can_report_to_whoever_runs_it(tmp_path, no_ci):
    file = tmp_path / "progress"
    script = SCRIPT.format(store=str(tmp_path / "store"))
    watch = (
        "import ldpcash.simulation.progress, pathlib, os\n"
        "unlink, texts = pathlib.Path.unlink, []\n"
        "def look(path, **options):\n"
        "    if str(path) == os.environ['LDPCASH_PROGRESS']:\n"
        "        texts.append(path.read_text())\n"
        "    unlink(path, **options)\n"
        "pathlib.Path.unlink = look\n"
    )
    seen = messages(watch + script + "print(texts)", LDPCASH_PROGRESS=str(file))
    (text,) = [content["text"] for kind, content in seen if kind == "stream"]
    assert "/3 points, " in text
    assert not file.exists()


class TestBars:
    def test_the_one_asked_for(self, monkeypatch):
        assert type(progress_bar(False)) is Silent
        assert type(progress_bar(True)) is Terminal
        monkeypatch.setitem(sys.modules, "IPython", Kernel)
        assert type(progress_bar(True)) is Notebook

    def test_updates_are_at_most_ten_a_second(self, monkeypatch, capsys):
        now = 100.0
        monkeypatch.setattr(progress.time, "monotonic", lambda: now)
        bar = Terminal()
        bar.update(0.5, "half")
        bar.update(0.6, "more")
        now = 100.2
        bar.update(1.5, "all")
        bar.close()
        shown = capsys.readouterr().err.split("\r\x1b[2K")[1:]
        assert shown == ["[##########..........] half", "[####################] all", ""]

    @pytest.mark.parametrize(
        ("columns", "line"),
        [
            ("30", "[###.........] a line of text"),
            ("20", "[#....] a line of t"),
            ("9", "[#....] "),
        ],
    )
    def test_a_narrow_terminal_has_a_short_bar_and_fewer_words(
        self, columns, line, monkeypatch, capsys
    ):
        monkeypatch.setenv("COLUMNS", columns)
        Terminal().update(0.25, "a line of text")
        assert capsys.readouterr().err == f"\r\x1b[2K{line}"

    def test_a_notebook_s_text_is_escaped(self, monkeypatch):
        shown = []
        monkeypatch.setattr("IPython.display.display", lambda data, **_: shown.append(data) or self)
        self.update = lambda data, raw: shown.append(data)
        bar = Notebook()
        bar.close()
        assert shown == []
        bar.update(0.25, "1 < 2")
        bar.close()
        assert [data["text/html"] for data in shown] == [
            '<div><progress value="0.250" max="1" aria-label="sweep"></progress> 1 &lt; 2</div>',
            "",
        ]

    def test_a_file(self, monkeypatch, tmp_path):
        monkeypatch.setitem(sys.modules, "IPython", Kernel)
        monkeypatch.setenv("LDPCASH_PROGRESS", str(tmp_path / "file"))
        bar = progress_bar()
        bar.update(0.5, "half")
        assert (tmp_path / "file").read_text() == "half"
        bar.close()
        bar.close()
        assert list(tmp_path.iterdir()) == []

    def test_silence(self, capsys):
        bar = Silent()
        bar.update(0.5, "half")
        bar.close()
        assert capsys.readouterr() == ("", "")


class Kernel:
    """Stands for IPython in a kernel."""

    @staticmethod
    def get_ipython():
        return type("Shell", (), {"kernel": None})()
