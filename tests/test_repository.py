"""The repository itself: examples of all that is public, one version, and the environment."""

import doctest
import importlib
import inspect
import os
import re
import sys
from pathlib import Path

import pytest
import yaml

import ldpcash

ROOT = Path(__file__).parents[1]

sys.path[:0] = [str(ROOT / "tools"), str(ROOT / "tools" / "site")]
import env  # noqa: E402
import make_site  # noqa: E402


def without_example(module):
    """What a module defines and describes, but shows no use of.

    A method may be used in the example of its class. An abstract class is shown by those below it.
    """
    parse = doctest.DocTestParser().get_examples
    for name, thing in vars(module).items():
        if name.startswith("_") or getattr(thing, "__module__", "") != module.__name__:
            continue
        if not callable(thing) or not thing.__doc__ or inspect.isabstract(thing):
            continue  # without a docstring it is not in the reference
        own = " ".join(example.source for example in parse(thing.__doc__))
        if not own:
            yield f"{module.__name__}.{name}"
        for method, function in vars(thing).items() if inspect.isclass(thing) else ():
            function = getattr(function, "fget", getattr(function, "__func__", function))
            if method.startswith("_") or not inspect.isfunction(function) or not function.__doc__:
                continue
            if not parse(function.__doc__) and not re.search(rf"\.{method}\b", own):
                yield f"{module.__name__}.{name}.{method}"


@pytest.mark.parametrize("name", list(make_site.modules()))
def test_everything_public_has_an_example(name):
    """The doctests run them all."""
    assert list(without_example(importlib.import_module(name))) == []


def test_one_version_everywhere():
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    changes = re.search(r"^## (\d\S+)$", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert citation["version"] == changes.group(1) == ldpcash.__version__


def test_conda_uses_the_same_lock():
    environment = yaml.safe_load((ROOT / "environment.yml").read_text())
    assert {"pip": ["-r requirements.lock"]} in environment["dependencies"]


def test_the_lock_is_hashed_complete_and_names_no_host():
    lock = (ROOT / "requirements.lock").read_text()
    assert not re.search(r"index-url|find-links|https?://|file:", lock)
    entries = re.findall(r"^([\w.-]+)(?:\[.+\])?==\S+.*\\\n    --hash=", lock, re.MULTILINE)
    assert len(entries) == len(re.findall(r"^[\w.-]+(?:\[.+\])?==", lock, re.MULTILINE))
    for line in (ROOT / "requirements.in").read_text().splitlines():
        wanted = re.match(r"[\w-]+", line)
        assert wanted is None or wanted.group(0) in entries


class TestSetUp:
    @pytest.fixture
    def elsewhere(self, tmp_path, monkeypatch):
        """An environment builder for a scratch folder, whose commands are only noted down."""
        monkeypatch.setattr(env, "VENV", str(tmp_path / ".venv"))
        monkeypatch.setattr(env, "STAMP", str(tmp_path / ".venv" / "ready"))
        monkeypatch.setattr(env, "LOG", str(tmp_path / "build" / "env.log"))
        monkeypatch.setattr(env, "run", self.run)
        self.commands = []
        self.failing = "nothing"
        self.interrupted = False
        return tmp_path

    def run(self, log, command):
        text = " ".join(command)
        self.commands.append(text)
        if "-m venv" in text:
            os.makedirs(env.VENV)
        if self.interrupted and "--editable" in text:
            raise KeyboardInterrupt
        return int(self.failing in text)

    def test_builds_once(self, elsewhere, capsys):
        assert env.main() == 0
        assert len(self.commands) == 4  # venv, uv, the lock, the package
        assert "the environment is ready" in capsys.readouterr().err
        assert env.main() == 0
        assert len(self.commands) == 4

    def test_an_interrupted_set_up_is_started_over(self, elsewhere, capsys):
        self.interrupted = True
        assert env.main() == 130
        assert not (elsewhere / ".venv" / "ready").exists()
        self.interrupted = False
        (elsewhere / ".venv" / "half.txt").write_text("half")
        assert env.main() == 0
        assert not (elsewhere / ".venv" / "half.txt").exists()
        assert "unfinished" in capsys.readouterr().err

    def test_another_lock_or_python_rebuilds(self, elsewhere, monkeypatch):
        assert env.main() == 0
        monkeypatch.setattr(env, "fingerprint", lambda: "another")
        assert env.main() == 0
        assert len(self.commands) == 8

    def test_plain_pip_where_uv_cannot_be_had(self, elsewhere):
        self.failing = "uv.lock"
        assert env.main() == 0
        assert "-m pip --disable-pip-version-check install --require-hashes" in self.commands[2]

    @pytest.mark.parametrize(
        ("failing", "sentence"),
        [
            ("requirements.lock", "could not be downloaded: is there a network?"),
            ("-m venv", "could not make a virtual environment"),
            ("--editable", "the package itself could not be installed"),
        ],
    )
    def test_a_failure_is_one_sentence(self, elsewhere, capsys, failing, sentence):
        self.failing = failing
        assert env.main() == 1
        last = capsys.readouterr().err.splitlines()[-1]
        assert last.startswith("make env: ")
        assert sentence in last
        assert not (elsewhere / ".venv" / "ready").exists()

    def test_an_old_python_is_told_so(self):
        with pytest.raises(env.SetupError, match=r"Python 3\.9, and 3\.11 or newer is needed"):
            env.check_python((3, 9, 18), "python3")
        env.check_python((3, 11, 0), "python3")
