"""The repository itself: the README's words, the environment's rules, the make targets."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

import ldpcash

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text()

sys.path.insert(0, str(ROOT / "tools"))
import env  # noqa: E402
import notebooks as runner  # noqa: E402


def run_example(number):
    """What the README's example of this number prints; `test_cluster.py` runs the third."""
    example = re.findall(r"```python\n(.*?)```", README, re.DOTALL)[number]
    run = [sys.executable, "-c", example]
    return subprocess.run(run, capture_output=True, text=True, check=True).stdout.strip()


def test_the_readme_s_example_runs_as_written():
    assert f"It prints `{run_example(0)}`" in README


def test_the_readme_s_sweep_runs_as_written():
    lines = run_example(1).splitlines()
    assert [line.split()[:2] for line in lines] == [
        [protocol, epsilon]
        for protocol in ("Cash", "Prot")
        for epsilon in ("0.5", "1.0", "1.5", "2.0")
    ]


def test_the_readme_s_code_runs_as_written():
    lines = run_example(2).splitlines()
    assert lines[0].startswith("PolarCode(8, [3, 5], {")
    assert lines[1] == "True"


def test_the_readme_s_parameter_is_one():
    name, values = re.search(r"`(\w+): (\{.*\})` into `mine.yaml`", README).groups()
    runner.check_parameters(name, yaml.safe_load(values))
    assert f"tools/notebooks.py run {name} --parameters mine.yaml" in README


def test_the_readme_shows_pictures_that_exist():
    pictures = re.findall(r"!\[.+\]\((.+)\)", README)
    assert len(pictures) >= 2
    for picture in pictures:
        assert (ROOT / picture).exists()


def test_the_readme_s_histogram_runs_as_written():
    lines = run_example(4).splitlines()
    assert [line.split()[0] for line in lines] == ["ANNA", "BOB"]


def test_the_readme_names_every_target_and_file():
    listed = subprocess.run(["make", "help"], cwd=ROOT, capture_output=True, text=True, check=True)
    targets = re.findall(r"^make (\w+) +\S", listed.stdout, re.MULTILINE)
    makefile = (ROOT / "Makefile").read_text()
    phony = re.search(r"^\.PHONY: (.*)", makefile, re.MULTILINE).group(1).split()
    assert sorted(targets) == sorted(phony)
    for target in targets:
        assert re.search(rf"`{target}`|make {target}\b", README), target
    for name in re.findall(r"^\| `([\w/.]+)`", README, re.MULTILINE):
        assert (ROOT / name).exists(), name
    for module in (ROOT / "lib" / "ldpcash").rglob("[a-z]*.py"):
        assert module.name in README


def test_ci_runs_the_readme_s_commands():
    commands = re.search(r"```sh\n(.*?)```", README, re.DOTALL).group(1)
    commands = [line.split("#")[0].strip() for line in commands.splitlines()]
    assert (ROOT / ".ci" / "run").read_text().splitlines()[-1] in commands
    workflow = yaml.safe_load((ROOT / ".github" / "workflows" / "ci.yml").read_text())
    steps = [step["run"] for step in workflow["jobs"]["ci"]["steps"] if "run" in step]
    assert steps == commands


def test_one_version_everywhere():
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    changes = re.search(r"^## (\S+)$", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
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
