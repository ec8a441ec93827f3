"""Notebooks: fit for nbval, readable as a course, and guarded against misspelt parameters."""

import ast
import re
import sys
from pathlib import Path

import nbformat
import pytest

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
    speak = "for _ in range(3):\n    print('size', size, flush=True)\n    time.sleep(0.3)"
    write_notebook(tmp_path, "01_good", "size = 2  # a size", f"import time\n{speak}")
    return tmp_path


def test_a_misspelt_parameter_stops_the_run(workshop, capsys):
    (workshop / "values.yaml").write_text("01_good: {sise: 3}")
    assert runner.main(["run", "--parameters", str(workshop / "values.yaml")]) == 1
    assert "01_good: there is no parameter 'sise'; it has size" in capsys.readouterr().err
    assert not (workshop / "build").exists()


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
    assert "02_bad, cell 2: ValueError: too small" in capsys.readouterr().err
    assert (workshop / "build" / "01_good.ipynb").exists()


def test_a_second_refresh_changes_nothing(workshop):
    assert runner.main(["refresh"]) == 0
    first = (workshop / "01_good.ipynb").read_bytes()
    (output,) = nbformat.reads(first, as_version=4).cells[-1].outputs  # however often it flushed
    assert output.text == "size 2\n" * 3
    assert runner.main(["refresh"]) == 0
    assert (workshop / "01_good.ipynb").read_bytes() == first
