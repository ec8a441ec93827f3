"""Notebooks: fit for nbval, readable as a course, and guarded against misspelt parameters."""

import ast
import csv
import hashlib
import json
import re
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import matplotlib.pyplot as plt
import nbformat
import numpy as np
import pytest
import yaml

ROOT = Path(__file__).parents[1]
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))

sys.path.insert(0, str(ROOT / "tools"))
import notebooks as runner  # noqa: E402


@pytest.fixture(params=NOTEBOOKS, ids=lambda path: path.stem)
def notebook(request):
    return nbformat.read(request.param, as_version=4)


def code_cells(notebook):
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


def outputs(notebook):
    return [output for cell in code_cells(notebook) for output in cell.outputs]


def test_there_are_notebooks():
    assert NOTEBOOKS


def test_was_run_from_top_to_bottom(notebook):
    """nbval passes a cell without a count, whatever it prints."""
    counts = [cell.execution_count for cell in code_cells(notebook)]
    assert counts == list(range(1, len(counts) + 1))


def test_outputs_are_there_and_clean(notebook):
    assert outputs(notebook)
    for output in outputs(notebook):
        assert output.output_type in ("stream", "display_data")  # no error, no bare object
        assert output.get("name") != "stderr"


def test_outputs_hold_no_paths_and_no_memory_addresses(notebook):
    for output in outputs(notebook):
        text = output.get("text", "") + output.get("data", {}).get("text/plain", "")
        assert not re.search(r"(^|[\s'\"(])/\w+/\w|0x[0-9a-f]{6,}", text)


def test_is_prose_for_at_least_half(notebook):
    assert 2 * len(code_cells(notebook)) <= len(notebook.cells)


def test_defines_no_long_function(notebook):
    for cell in code_cells(notebook):
        for node in ast.walk(ast.parse(cell.source)):
            if isinstance(node, ast.FunctionDef):
                assert node.end_lineno - node.lineno < 10


def test_parameters_are_commented_literals(notebook):
    tagged = [
        cell for cell in code_cells(notebook) if "parameters" in cell.metadata.get("tags", [])
    ]
    assert len(tagged) == 1
    for line in tagged[0].source.splitlines():
        assert re.fullmatch(r"\w+ = .+  # .+", line)
    names = set()
    for statement in ast.parse(tagged[0].source).body:
        assert isinstance(statement, ast.Assign)
        ast.literal_eval(statement.value)
        names.add(statement.targets[0].id)
    assert "seed" in names


def test_carries_no_trace_of_the_run(notebook):
    assert "papermill" not in notebook.metadata
    for cell in notebook.cells:
        assert set(cell.metadata) <= {"tags"}


def test_figures_are_shown_as_svg(notebook):
    """nbval does not compare PNG: a wrong picture would pass."""
    for output in outputs(notebook):
        assert "image/png" not in output.get("data", {})


def write_notebook(folder, name, *sources):
    cells = [nbformat.v4.new_code_cell(source) for source in sources]
    cells[0].metadata["tags"] = ["parameters"]
    kernel = {"name": "python3", "display_name": "Python 3", "language": "python"}
    notebook = nbformat.v4.new_notebook(cells=cells, metadata={"kernelspec": kernel})
    nbformat.write(notebook, folder / f"{name}.ipynb")


@pytest.fixture
def workshop(tmp_path, monkeypatch):
    """The runner, on notebooks of our own."""
    monkeypatch.setattr(runner, "ROOT", tmp_path)
    monkeypatch.setattr(runner, "NOTEBOOKS", tmp_path)
    monkeypatch.setattr(runner, "EXECUTED", tmp_path / "build")
    monkeypatch.setattr(runner, "SECONDS", tmp_path / "seconds.yaml")
    (tmp_path / "seconds.yaml").write_text("01_good: 100")
    monkeypatch.setenv("LDPCASH_FIGURES", str(tmp_path / "figures"))
    monkeypatch.setenv("LDPCASH_RESULTS", str(tmp_path / "results"))
    speak = "for _ in range(3):\n    print('size', size, flush=True)\n    time.sleep(0.3)"
    write_notebook(tmp_path, "01_good", "size = 2  # a size", f"import time\n{speak}")
    return tmp_path


def test_a_misspelt_parameter_stops_the_run(workshop, capsys):
    (workshop / "values.yaml").write_text("01_good: {sise: 3}")
    assert runner.main(["run", "--parameters", str(workshop / "values.yaml")]) == 1
    assert "01_good: there is no parameter 'sise'; it has size" in capsys.readouterr().err
    assert not (workshop / "build").exists()


def test_a_relative_folder_is_where_the_command_was_given(workshop, monkeypatch):
    monkeypatch.chdir(workshop)
    monkeypatch.setenv("LDPCASH_FIGURES", "mine")
    source = "import os; print(os.path.isabs(os.environ['LDPCASH_FIGURES']))"
    write_notebook(workshop, "02_where", "x = 1  # a number", source)
    assert runner.main(["run", "02_where"]) == 0
    assert outputs(nbformat.read(workshop / "build" / "02_where.ipynb", 4))[0].text == "True\n"


def test_an_unknown_notebook_stops_the_run(workshop, capsys):
    (workshop / "values.yaml").write_text("02_bad: {size: 3}")
    assert runner.main(["run", "--parameters", str(workshop / "values.yaml")]) == 1
    assert runner.main(["run", "03_worse"]) == 1
    messages = capsys.readouterr().err
    assert "02_bad: there is no such notebook" in messages
    assert "03_worse: there is no such notebook" in messages


def test_parameters_arrive(workshop):
    (workshop / "values.yaml").write_text("01_good: {size: 3}")
    assert runner.main(["run", "--parameters", str(workshop / "values.yaml")]) == 0
    executed = nbformat.read(workshop / "build" / "01_good.ipynb", as_version=4)
    assert executed.cells[-1].outputs[0].text.startswith("size 3\n")


def test_a_failure_names_notebook_cell_and_error_and_keeps_the_rest(workshop, capsys):
    write_notebook(
        workshop, "02_bad", "x = 1  # a number", "y = 2", "raise ValueError('too small')"
    )
    assert runner.main(["run"]) == 1
    message = "02_bad, cell [3], `raise ValueError('too small')`: ValueError: too small"
    assert message in capsys.readouterr().err
    assert (workshop / "build" / "01_good.ipynb").exists()


def test_a_kernel_that_dies_is_told(workshop, capsys):
    write_notebook(workshop, "02_bad", "x = 1  # a number", "import os; os._exit(3)")
    assert runner.main(["run"]) == 1
    assert "02_bad: Kernel died" in capsys.readouterr().err


@pytest.mark.parametrize("error", [runner.NotebookError, OSError])
def test_any_error_ends_the_run(tmp_path, monkeypatch, error):
    """Whatever waits is not started; what runs beside it may finish."""
    begun, over = [], threading.Event()

    def execute(name, values, scratch, started):
        begun.append(name)
        if name == "1":
            raise error("no")
        over.wait(60)

    class Pool(ThreadPoolExecutor):
        def shutdown(self, wait=True, *, cancel_futures=False):
            super().shutdown(False, cancel_futures=cancel_futures)
            over.set()
            super().shutdown(wait)

    monkeypatch.setattr(runner, "execute", execute)
    monkeypatch.setattr(runner, "ThreadPoolExecutor", Pool)
    with pytest.raises(error):
        runner.execute_all([*"1234"], {}, tmp_path, keep=False)
    assert sorted(begun) in (["1", "2"], ["1", "2", "3"])  # 3 takes the place of 1 at once


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["refresh", "--parameters", "empty.yaml"], "no --parameters"),
        (["run", "--parameters", "none.yaml"], "none.yaml: there is no such file"),
    ],
)
def test_a_wrong_argument_is_told(workshop, monkeypatch, capsys, arguments, sentence):
    monkeypatch.chdir(workshop)
    (workshop / "empty.yaml").write_text("")
    before = (workshop / "01_good.ipynb").read_bytes()
    with pytest.raises(SystemExit):
        runner.main(arguments)
    assert sentence in capsys.readouterr().err
    assert (workshop / "01_good.ipynb").read_bytes() == before


@pytest.mark.parametrize("text", ["", "01_good:"])
def test_no_parameters_are_those_of_the_notebook(workshop, text):
    (workshop / "values.yaml").write_text(text)
    assert runner.main(["run", "--parameters", str(workshop / "values.yaml")]) == 0
    executed = nbformat.read(workshop / "build" / "01_good.ipynb", as_version=4)
    assert executed.cells[-1].outputs[0].text.startswith("size 2\n")


def test_a_refresh_uses_no_old_result(workshop, monkeypatch):
    monkeypatch.setenv("LDPCASH_RESULTS", "/old")
    write_notebook(
        workshop, "02_where", "x = 1  # a number", "import os; print(os.environ['LDPCASH_RESULTS'])"
    )
    assert runner.main(["run", "02_where"]) == 0
    assert outputs(nbformat.read(workshop / "build" / "02_where.ipynb", 4))[0].text == "/old\n"
    assert runner.main(["refresh", "02_where"]) == 0
    assert outputs(nbformat.read(workshop / "02_where.ipynb", 4))[0].text != "/old\n"


def test_a_second_refresh_changes_nothing(workshop):
    assert runner.main(["refresh"]) == 0
    first = (workshop / "01_good.ipynb").read_bytes()
    (output,) = nbformat.reads(first, as_version=4).cells[-1].outputs  # however often it flushed
    assert output.text == "size 2\n" * 3
    assert runner.main(["refresh"]) == 0
    assert (workshop / "01_good.ipynb").read_bytes() == first


class TestProgress:
    def test_the_line_tells_time_notebooks_and_points(self, tmp_path):
        (tmp_path / "06_fig2").write_text("3/9 points, 20 errors")
        started = {"01_polar": 0.0, "06_fig2": 1.0, "07_fig3": 2.0}
        line = runner.status(75.4, started, {"01_polar": 3.0}, tmp_path)
        assert line == "1:15 left; 06_fig2 3/9 points, 20 errors; 07_fig3"
        assert runner.status(None, {}, {}, tmp_path) == ""

    def test_a_kernel_s_sweep_is_seen(self, workshop, monkeypatch):
        """The runner reads what a sweep in the notebook writes."""
        sweep = (
            "import time\nfrom ldpcash.simulation.progress import progress_bar\n"
            "bar = progress_bar()\nbar.update(0.5, 'half of it')\ntime.sleep(1)\n"
            "bar.close()\nprint(x)"
        )
        write_notebook(workshop, "02_sweep", "x = 1  # a number", sweep)
        lines = []
        bar = type("Bar", (), {"close": lambda self: None})
        bar.update = lambda self, fraction, text: lines.append(text)
        monkeypatch.setattr(runner, "progress_bar", bar)
        assert runner.main(["run"]) == 0
        assert any("02_sweep half of it" in line for line in lines)
        executed = nbformat.read(workshop / "build" / "02_sweep.ipynb", as_version=4)
        assert executed.cells[-1].execution_count == 2  # telling the kernel was not a cell

    def test_time_left(self):
        expected = {"a": 10, "b": 20, "c": 40, "d": 8}
        assert runner.time_left(expected, {}, {}, 0.0) == 50  # a, then c, while b and d run
        started = {"a": 100.0, "b": 100.0}
        assert runner.time_left(expected, started, {}, 105.0) == 45
        # a took four times as long, which with 60 s at the expected pace makes 100 s for 70
        left = runner.time_left(expected, started, {"a": 40.0}, 125.0)
        assert left == pytest.approx(40 * 100 / 70)
        # all take longer than expected: there is always something left
        assert runner.time_left({"a": 10}, {"a": 0.0}, {}, 30.0) == 3
        assert runner.time_left({"a": 10}, {"a": 0.0}, {"a": 20.0}, 30.0) is None
        assert runner.time_left({}, {"a": 0.0}, {}, 30.0) is None

    def test_it_is_known_how_long_each_takes(self):
        """And the index, which is prose, says about the same."""
        expected = runner.expected_seconds([path.stem for path in NOTEBOOKS])
        assert list(expected) == [path.stem for path in NOTEBOOKS]
        index = (ROOT / "notebooks" / "00_index.ipynb").read_text()
        told = re.findall(r"\((\w+)\.ipynb\)[^\n]*\| (\d+) s \|", index)
        assert [name for name, _ in told] == list(expected)[1:]
        for name, seconds in told:
            assert 0.5 <= int(seconds) / expected[name] <= 2

    def test_only_a_full_refresh_writes_down_how_long_it_took(self, workshop):
        file = workshop / "seconds.yaml"
        assert runner.main(["run"]) == 0
        assert runner.main(["refresh", "01_good"]) == 0
        assert file.read_text() == "01_good: 100"
        assert runner.main(["refresh"]) == 0
        assert yaml.safe_load(file.read_text())["01_good"] < 100

    def test_what_was_about_right_stays(self, workshop):
        (workshop / "seconds.yaml").write_text("a: 50\nb: 50\nc: 50\ngone: 7")
        runner.keep_seconds({"a": 26.0, "b": 99.0, "c": 24.0, "d": 61.0})
        known = yaml.safe_load((workshop / "seconds.yaml").read_text())
        assert known == {"a": 50, "b": 50, "c": 25, "d": 65}


with (ROOT / "figures" / "manifest.csv").open(newline="") as file:
    MANIFEST = {row["figure"]: row for row in csv.DictReader(file)}


class TestManifest:
    def test_has_every_figure_and_its_checksums(self):
        stored = {path.stem for path in (ROOT / "figures").glob("*.svg")}
        assert set(MANIFEST) == stored
        assert {
            "fig1_protocol",
            "fig2_bler",
            "fig3_frequency_error",
            "fig4_length_clients",
        } <= stored
        for name, row in MANIFEST.items():
            for ending in ("svg", "pdf", "png", "csv"):
                (path,) = (ROOT / "figures").rglob(f"{name}.{ending}")
                assert row[ending] == hashlib.sha256(path.read_bytes()).hexdigest()

    def test_says_where_it_comes_from(self):
        for row in MANIFEST.values():
            assert (ROOT / "notebooks" / f"{row['notebook']}.ipynb").exists()
            assert row["claim"].endswith(".")
            assert json.loads(row["parameters"])["seed"] == int(row["seed"])

    def test_is_read_off_notebooks_and_files(self, workshop, monkeypatch):
        monkeypatch.setenv("LDPCASH_FIGURES", str(workshop / "figures"))
        draw = (
            "import matplotlib.pyplot as plt\nfrom ldpcash.paper.figures import save_figure\n"
            "save_figure(plt.figure(), 'fig9_new', {'x': [size]}, 'It is new.')"
        )
        write_notebook(workshop, "01_good", "size = 2  # a size\nseed = 4  # a seed", draw)
        assert runner.main(["run"]) == 0
        with (workshop / "figures" / "manifest.csv").open() as file:
            (row,) = csv.DictReader(file)
        assert (row["figure"], row["notebook"], row["seed"]) == ("fig9_new", "01_good", "4")
        assert (row["claim"], row["parameters"]) == ("It is new.", '{"size": 2, "seed": 4}')
        data = (workshop / "figures" / "data" / "fig9_new.csv").read_bytes()
        assert row["csv"] == hashlib.sha256(data).hexdigest()


def test_the_index_lists_every_notebook_in_order():
    index = nbformat.read(ROOT / "notebooks" / "00_index.ipynb", as_version=4)
    listed = re.findall(r"\]\((\w+)\.ipynb\)", "".join(cell.source for cell in index.cells))
    assert ["00_index", *listed] == [path.stem for path in NOTEBOOKS]


def test_smoke_parameters_are_real_ones():
    values = yaml.safe_load((ROOT / "tools" / "smoke.yaml").read_text())
    for name, parameters in values.items():
        runner.check_parameters(name, parameters)


def invitations():
    """What each notebook invites to try: parameters to change, and expressions to look at."""
    for path in NOTEBOOKS:
        prose = nbformat.read(path, as_version=4).cells[-1].source
        words = re.search(r"\*\*Try\.\*\*(.*?)\n\n", prose, re.DOTALL).group(1)
        for piece in re.findall(r"`([^`]+)`", words):
            statement = ast.parse(piece).body[0]
            changes = isinstance(statement, ast.Assign)
            if changes or not isinstance(
                statement.value, ast.Name
            ):  # a name alone is no invitation
                yield pytest.param(path, piece, changes, id=f"{path.stem}: {piece}")


@pytest.mark.parametrize(("path", "piece", "changes"), list(invitations()))
def test_what_a_notebook_invites_to_try_works(path, piece, changes, monkeypatch):
    """With the parameters of `make smoke`, but for the one that it says to change."""
    monkeypatch.chdir(path.parent)
    quick = yaml.safe_load((ROOT / "tools" / "smoke.yaml").read_text()).get(path.stem, {})
    if changes:
        name, value = piece.split(" = ")
        quick[name] = ast.literal_eval(value)
    runner.check_parameters(path.stem, quick)
    names = {}
    with np.printoptions(), plt.rc_context():  # which notebooks change
        for cell in code_cells(nbformat.read(path, as_version=4)):
            exec(compile(cell.source, path.stem, "exec"), names)
            if "parameters" in cell.metadata.get("tags", []):
                names |= quick
        if not changes:
            assert eval(piece, names) is not None
    plt.close("all")


def test_every_notebook_invites_to_try_something():
    assert {parameter.values[0] for parameter in invitations()} == set(NOTEBOOKS)
