"""The README: its examples run, its commands exist, and its numbers are those in figures/."""

import csv
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import yaml

from ldpcash import Cash, Plan, PolarCode
from ldpcash.beyond.compare import CONTENDERS
from ldpcash.beyond.converse import least_frequency
from ldpcash.paper.theory import error_mean

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text()
TEXT = " ".join(README.split())  # whatever its lines are

sys.path.insert(0, str(ROOT / "tools"))
import notebooks as runner  # noqa: E402


def run_example(number):
    """What the README's example of this number prints; `test_cluster.py` runs that of a cluster."""
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


def test_the_readme_s_protocol_runs_as_written():
    """And its two laws agree: five standard errors of means and variances, below 1e-6 each."""
    rows = [line.split() for line in run_example(3).splitlines()]
    assert [row[0] for row in rows] == ["False", "True"]  # its option, which reached the trials
    soft, rounded = (int(errors) / int(trials) for _, errors, trials in rows)
    assert 0 < soft < rounded < 1
    example = re.findall(r"```python\n(.*?)```", README, re.DOTALL)[3]
    names = {}
    exec(example.partition('PROTOCOLS["Laplace"]')[0], names)
    protocol = names["Laplace"](PolarCode.construct(8, 3), epsilon=5.0)
    item, clients, times = [1, 0, 1], 40, 2000
    rng = np.random.default_rng(1)
    holds = np.tile(np.arange(clients) < 30, times)
    sent = protocol.reports(np.tile(item, (clients * times, 1)), holds, rng)
    by_clients = sent.reshape(times, clients, 8).mean(axis=1)
    by_law = protocol.mean_reports(np.tile(item, (times, 1)), 0.75, clients, rng)
    spread = protocol.scale * np.sqrt(2 / clients)
    signal = 0.75 * (2.0 * protocol.code.encode(item) - 1) / np.sqrt(8)
    for means in (by_clients, by_law):
        assert abs(means.mean(axis=0) - signal).max() < 5.4 * spread / np.sqrt(times)
        assert abs((means - signal).var() / spread**2 - 1) < 6 * np.sqrt(2 / (8 * times))


def test_the_readme_s_parameters_run(tmp_path):
    """The command as it stands, in a copy of what it needs, with fewer trials."""
    name, values = re.search(r"`(\w+): (\{.*\})` into `mine.yaml`", README).groups()
    runner.check_parameters(name, yaml.safe_load(values))
    [command] = re.findall(r"`(LDPCASH_FIGURES=.*mine\.yaml)`", README)
    assert f" {name} " in command
    for folder in ("notebooks", "tools"):
        shutil.copytree(ROOT / folder, tmp_path / folder)
    quick = values.replace("}", ", min_errors: 5, max_trials: 2000}")
    (tmp_path / "mine.yaml").write_text(f"{name}: {quick}")
    command = command.replace(".venv/bin/python", sys.executable)
    environment = {k: v for k, v in os.environ.items() if k != "LDPCASH_FIGURES"}
    subprocess.run(command, shell=True, cwd=tmp_path, env=environment, check=True)
    [table] = (tmp_path / "build" / "mine" / "data").glob("*.csv")
    with table.open() as file:
        assert {row["clients"] for row in csv.DictReader(file)} == {"1000", "2000"}
    misspelt = (tmp_path / "mine.yaml").read_text().replace("clients", "client")
    (tmp_path / "mine.yaml").write_text(misspelt)
    stopped = subprocess.run(
        command, shell=True, cwd=tmp_path, env=environment, stderr=subprocess.PIPE, text=True
    )
    assert stopped.returncode == 1
    assert "client" in stopped.stderr


def test_the_readme_shows_pictures_that_exist():
    pictures = re.findall(r"!\[.+\]\((.+)\)", README)
    assert len(pictures) >= 2
    for picture in pictures:
        assert (ROOT / picture).exists()


def test_the_readme_s_histogram_runs_as_written():
    lines = run_example(5).splitlines()
    assert [line.split()[0] for line in lines] == ["ANNA", "BOB"]


def test_the_readme_names_every_target_and_room():
    listed = subprocess.run(["make", "help"], cwd=ROOT, capture_output=True, text=True, check=True)
    targets = re.findall(r"^make (\w+) +\S", listed.stdout, re.MULTILINE)
    makefile = (ROOT / "Makefile").read_text()
    phony = re.search(r"^\.PHONY: (.*)", makefile, re.MULTILINE).group(1).split()
    assert sorted(targets) == sorted(phony)
    for target in targets:
        assert re.search(rf"`{target}`|make {target}\b", README), target
    rooms = [path.parent.name for path in (ROOT / "lib" / "ldpcash").glob("*/__init__.py")]
    listed = re.search(r"each imports only from those before it: (.*?)\.", TEXT).group(1)
    assert sorted(re.findall(r"`(\w+)`", listed)) == sorted(rooms)


def test_ci_runs_the_readme_s_commands():
    commands = re.search(r"```sh\n(.*?)```", README, re.DOTALL).group(1)
    commands = [line.split("#")[0].strip() for line in commands.splitlines()]
    assert (ROOT / ".ci" / "run").read_text().splitlines()[-1] in commands
    workflow = yaml.safe_load((ROOT / ".github" / "workflows" / "ci.yml").read_text())
    steps = [step["run"] for step in workflow["jobs"]["ci"]["steps"] if "run" in step]
    assert steps == commands


# Its numbers


def rows_of(name, **wanted):
    """Rows of a figure's data by epsilon, true frequency and clients, those with these values."""
    with (ROOT / "figures" / "data" / f"{name}.csv").open() as file:
        return {
            tuple(float(row[key]) for key in ("epsilon", "frequency", "clients")): row
            for row in csv.DictReader(file)
            if all(row[key] == value for key, value in wanted.items())
        }


AS_SPECIFIED = {"protocol": "Prot", "decoder": "ML", "empty": "uniform"}


def test_the_baseline_is_better_at_every_setting_of_fig_2():
    """By intervals that do not overlap, unless both guess."""
    assert "the baseline `Prot` is better at every setting of Figs. 2 and 3" in TEXT
    cash, prot = rows_of("fig2_bler", protocol="Cash"), rows_of("fig2_bler", **AS_SPECIFIED)
    both = cash.keys() & prot.keys()
    assert len(both) >= 9
    for setting in both:
        assert float(prot[setting]["rate"]) < float(cash[setting]["rate"])
        if float(prot[setting]["low"]) < 0.9:
            assert float(prot[setting]["high"]) < float(cash[setting]["low"])


def test_the_estimates_of_fig_3():
    """The error of each, by three standard errors of their difference at least."""

    def beats(one, other, setting):
        means = [float(rows[setting]["frequency_error"]) for rows in (one, other)]
        errors = [float(rows[setting]["frequency_error_se"]) for rows in (one, other)]
        return means[1] - means[0] > 3 * sum(error**2 for error in errors) ** 0.5

    cash = rows_of("fig3_frequency_error", protocol="Cash")
    mean, rounded = (
        rows_of("fig3_frequency_error", **AS_SPECIFIED, frequency_from=choice)
        for choice in ("mean", "rounded")
    )
    assert cash.keys() == mean.keys() == rounded.keys()
    assert all(beats(mean, cash, setting) for setting in cash)
    lost = {setting[0] for setting in cash if not beats(cash, rounded, setting)}
    first = float(re.search(r"of Fig\. 3, from ε = ([\d.]+) on", TEXT).group(1))
    assert max(lost) < first == min(epsilon for epsilon, *_ in cash if epsilon > max(lost))


def test_the_longer_code_of_fig_4():
    """As the paper says with the ga construction, and not with the pw one."""
    assert "of Fig. 4 if the longer code is constructed by the Gaussian approximation" in TEXT
    short = rows_of("fig4_length_clients", n="64")
    for method, clients in (("ga", 500), ("ga", 1000), ("pw", 500), ("pw", 1000)):
        long = rows_of("fig4_length_clients", n="256", method=method, clients=str(clients))
        clear = [s for s in long if float(long[s]["high"]) < float(short[s]["low"])]
        assert (len(clear) >= 3) is (method == "ga")
        assert not any(float(long[s]["low"]) > float(short[s]["high"]) for s in long)


def test_the_table_of_names():
    with (ROOT / "figures" / "data" / "fig10_recall.csv").open() as file:
        found = {
            (row["method"], float(row["epsilon"])): row
            for row in csv.DictReader(file)
            if (row["body"], row["clients"]) == ("census", "1000000")
        }
    table = README.partition("how many true names")[2].partition("Up to")[0]
    names = dict(re.findall(r"^\| (\w\D+?) \| ([\d. |]+) \|$", table, re.MULTILINE))
    assert len(names) == 5
    for name, shown in names.items():
        method = "symbols" if name == "this" else name
        rows = [found[method, epsilon] for epsilon in (1.0, 2.0, 4.0, 8.0)]
        true = [(int(row["found"]) - int(row["false"])) / int(row["trials"]) for row in rows]
        assert shown == " | ".join(f"{value:.1f}" for value in true)


def test_the_coverage():
    with (ROOT / "tools" / "coverage.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert {row["body"] for row in rows} == {"english", "german"}
    assert len(rows) == 48
    found, false, covered = (
        sum(int(row[name]) for row in rows) for name in ("found", "false", "covered")
    )
    told = re.search(r"Of ([\d,]+) words .*? frequency of ([\d.]+) %, and ([\d.]+) % were", TEXT)
    rates = f"{100 * covered / (found - false):.1f}", f"{100 * false / found:.1f}"
    assert told.groups() == (f"{found:,}", *rates)
    for row in rows:  # no cell is clearly outside of what is asked for
        if row["low"]:
            assert float(row["low"]) < 0.97
            assert float(row["high"]) > 0.93


def test_the_table_of_smallest_frequencies():
    with (ROOT / "figures" / "data" / "fig6_smallest_frequency.csv").open() as file:
        found = {
            (row["protocol"], float(row["epsilon"])): row["eta_min"]
            for row in csv.DictReader(file)
            if row["clients"] == "1000"
        }
    names = {"Cash": "`Cash` (δ = 0.0001)", "Prot, soft": "`Prot`", "Blank": "`Blank`"}
    epsilons = [0.5, 1.0, 2.0, 4.0, 8.0]
    assert "| ε | 0.5 | 1 | 2 | 4 | 8 |" in README
    for name in CONTENDERS:
        values = [found[name, epsilon] for epsilon in epsilons]
        cells = " | ".join(f"{float(value):.3f}" if value else "none" for value in values)
        assert f"| {names.get(name, name)} | {cells} |" in README or name == "Prot, hard"
    limits = " | ".join(f"{least_frequency(8, 1e-3, e, 1000):.3f}" for e in epsilons)
    assert f"| limit | {limits} |" in README


def test_blank_in_the_place_of_cash(capsys):
    """As the text below the example says."""
    example = re.findall(r"```python\n(.*?)```", README, re.DOTALL)[0]
    blank = re.search(r"With `(Blank\(.*?\))`", TEXT).group(1)
    example = example.replace("Cash(PolarCode.construct(64, 8), epsilon=2.0, delta=1e-4)", blank)
    example = example.replace("< 700", "< 150")
    exec("from ldpcash import Blank, hadamard_code\n" + example, {})
    assert capsys.readouterr().out.startswith("[1 0 1 1 0 0 1 0] 0.1")


def test_numbers_in_the_text():
    cash = Cash(PolarCode.construct(64, 8), epsilon=2.0, delta=1e-4)
    assert f"with a typical error of {error_mean(cash.sigma, 1000):.2f}" in TEXT
    assert f"in a report of {Plan.choose(10_000, 20, 2.0).report_size} bytes" in TEXT
