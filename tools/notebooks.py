"""Run the notebooks: `run` regenerates the figures, `refresh` also keeps the outputs.

Both go through papermill in reading order, with ``notebooks`` as the working directory, as in
JupyterLab. Executed copies go to ``build/notebooks``; only `refresh` touches ``notebooks``, and a
second refresh changes nothing. `run` uses stored results of simulations, `refresh` computes all.
"""

import argparse
import os
import sys
import tempfile
from pathlib import Path

import nbformat
import papermill
import yaml
from papermill.exceptions import PapermillExecutionError

ROOT = Path(__file__).resolve().parents[1]
NOTEBOOKS = ROOT / "notebooks"
EXECUTED = ROOT / "build" / "notebooks"


class NotebookError(Exception):
    """A notebook that cannot be run or did not run through: which, where and why."""


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("action", choices=["run", "refresh"])
    parser.add_argument(
        "notebooks", nargs="*", help="names such as 01_polar_codes; all unless given"
    )
    parser.add_argument("--parameters", type=Path, help="YAML: {notebook: {parameter: value}}")
    options = parser.parse_args(arguments)
    names = options.notebooks or sorted(path.stem for path in NOTEBOOKS.glob("*.ipynb"))
    values = yaml.safe_load(options.parameters.read_text()) if options.parameters else {}
    try:
        for name in {*names, *values}:
            check_parameters(name, values.get(name, {}))
        with tempfile.TemporaryDirectory() as scratch:
            if options.action == "refresh":
                os.environ["LDPCASH_RESULTS"] = scratch
            for number, name in enumerate(names, start=1):
                print(f"[{number}/{len(names)}] {name}", flush=True)
                executed = execute(name, values.get(name, {}))
                if options.action == "refresh":
                    nbformat.write(without_traces(executed), NOTEBOOKS / f"{name}.ipynb")
    except NotebookError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


def check_parameters(name, values):
    """papermill takes a misspelt parameter with a warning; here it is an error."""
    path = NOTEBOOKS / f"{name}.ipynb"
    if not path.exists():
        raise NotebookError(f"{name}: there is no such notebook")
    known = papermill.inspect_notebook(path)
    for parameter in values:
        if parameter not in known:
            raise NotebookError(
                f"{name}: there is no parameter {parameter!r}; it has {', '.join(sorted(known))}"
            )


def execute(name, values):
    """Run one notebook; the executed notebook, which is also left in build/notebooks."""
    EXECUTED.mkdir(parents=True, exist_ok=True)
    target = EXECUTED / f"{name}.ipynb"
    try:
        return papermill.execute_notebook(
            NOTEBOOKS / f"{name}.ipynb",
            target,
            parameters=values,
            kernel_name="python3",
            cwd=NOTEBOOKS,
        )
    except PapermillExecutionError as error:
        raise NotebookError(
            f"{name}, cell {error.cell_index}: {error.ename}: {error.evalue}\n"
            f"what it printed until then is in {target.relative_to(ROOT)}"
        ) from None


def without_traces(notebook):
    """The notebook without what differs from run to run: times, tags, and how prints were split."""
    notebook.metadata.pop("papermill", None)
    for cell in notebook.cells:
        for key in ("papermill", "execution"):
            cell.metadata.pop(key, None)
        if not cell.metadata.get("tags"):
            cell.metadata.pop("tags", None)
        if cell.cell_type == "code":
            cell.outputs = joined(cell.outputs)
    return notebook


def joined(outputs):
    """Outputs with neighbouring prints to the same stream made one."""
    result = []
    for output in outputs:
        previous = result[-1] if result else {}
        if output.output_type == "stream" and previous.get("name") == output.name:
            previous.text += output.text
        else:
            result.append(output)
    return result


if __name__ == "__main__":
    sys.exit(main())
