"""Run the notebooks: `run` regenerates the figures, `refresh` also keeps the outputs.

Both go through papermill in reading order, with ``notebooks`` as the working directory, as in
JupyterLab. Executed copies go to ``build/notebooks``; only `refresh` touches ``notebooks``, and a
second refresh changes nothing. `run` uses stored results of simulations, `refresh` computes all.
After all notebooks, with the parameters that they have, and after a refresh, ``manifest.csv`` is
written beside the figures: which notebook, parameters and claim are behind each, and the checksums
of its files.

papermill has a bar for the cells of one notebook. How long all of them still take, two at a time,
it does not tell: that is worked out here from ``seconds.yaml``, which a full `refresh` keeps up to
date.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import hashlib
import json
import math
import os
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from pathlib import Path
from typing import Any

import nbformat
import papermill
import yaml
from jupyter_core.utils import ensure_event_loop
from nbformat import NotebookNode
from papermill.exceptions import PapermillExecutionError

from ldpcash.paper.figures import figure_folder, save_table
from ldpcash.simulation.progress import progress_bar

ROOT = Path(__file__).resolve().parents[1]
NOTEBOOKS = ROOT / "notebooks"
EXECUTED = ROOT / "build" / "notebooks"
SECONDS = ROOT / "tools" / "seconds.yaml"
AT_ONCE = 2
PACE_PRIOR = 60  # seconds of work that count as done at the expected pace


class NotebookError(Exception):
    """A notebook that cannot be run or did not run through: which, where and why."""


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("action", choices=["run", "refresh"])
    parser.add_argument(
        "notebooks", nargs="*", help="names such as 01_polar_codes; all unless given"
    )
    parser.add_argument("--parameters", type=Path, help="YAML: {notebook: {parameter: value}}")
    options = parser.parse_args(arguments)
    if options.parameters and options.action == "refresh":
        parser.error("refresh keeps what the notebooks' own parameters give: no --parameters")
    if options.parameters and not options.parameters.is_file():
        parser.error(f"--parameters {options.parameters}: there is no such file")
    os.environ.setdefault("IPYTHONDIR", str(Path(__file__).resolve().parent / "ipython"))
    for folder in {"LDPCASH_FIGURES", "LDPCASH_RESULTS"} & os.environ.keys():
        os.environ[folder] = os.path.abspath(os.environ[folder])  # kernels run in another folder
    names = options.notebooks or sorted(path.stem for path in NOTEBOOKS.glob("*.ipynb"))
    given = yaml.safe_load(options.parameters.read_text()) if options.parameters else None
    values = {name: parameters or {} for name, parameters in (given or {}).items()}
    try:
        for name in {*names, *values}:
            check_parameters(name, values.get(name, {}))
        with tempfile.TemporaryDirectory() as scratch:
            if options.action == "refresh":
                os.environ["LDPCASH_RESULTS"] = str(Path(scratch) / "results")
            seconds = execute_all(names, values, Path(scratch), keep=options.action == "refresh")
        if options.action == "refresh" and not options.notebooks:
            keep_seconds(seconds)
        if options.action == "refresh" or not (options.notebooks or values):
            save_table("manifest", manifest())
    except NotebookError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


def execute_all(
    names: Sequence[str], values: Mapping[str, dict[str, Any]], scratch: Path, keep: bool
) -> dict[str, float]:
    """Run notebooks two at a time: one computes while the other starts. The first error ends it.

    Returned is how many seconds each took.
    """
    line = progress_bar()
    started: dict[str, float] = {}  # when
    seconds: dict[str, float] = {}  # how long it took, once it is finished
    expected = {} if values else expected_seconds(names)
    with ThreadPoolExecutor(AT_ONCE) as pool:
        running = {
            pool.submit(execute, name, values.get(name, {}), scratch, started): name
            for name in names
        }
        try:
            while running:
                for future in wait(running, timeout=0.2, return_when=FIRST_COMPLETED).done:
                    name = running.pop(future)
                    executed = future.result()
                    seconds[name] = time.monotonic() - started[name]
                    if keep:
                        nbformat.write(without_traces(executed), NOTEBOOKS / f"{name}.ipynb")
                    line.close()
                    print(
                        f"[{len(seconds)}/{len(names)}] {name}: {seconds[name]:.0f} s", flush=True
                    )
                left = time_left(expected, started, seconds, time.monotonic())
                line.update(len(seconds) / len(names), status(left, started, seconds, scratch))
        except Exception:
            pool.shutdown(cancel_futures=True)
            raise
        except KeyboardInterrupt:
            line.close()
            kept = "" if keep else "; finished chunks of simulations are kept for the next run"
            print(f"interrupted{kept}", file=sys.stderr, flush=True)
            os._exit(130)  # kernels end with this process
        finally:
            line.close()
    return seconds


def expected_seconds(names: Sequence[str]) -> dict[str, int]:
    """How long each notebook takes, as far as that is known."""
    known = yaml.safe_load(SECONDS.read_text()) or {}
    return {name: known[name] for name in names if name in known}


def keep_seconds(seconds: Mapping[str, float]) -> None:
    """Write down how long notebooks took; what was about right stays as it is."""
    known = expected_seconds([*seconds])
    for name, measured in seconds.items():
        if not 0.5 < measured / known.get(name, math.inf) < 2:
            known[name] = 5 * math.ceil(measured / 5)
    SECONDS.write_text(
        "# Seconds that each notebook takes, beside another; `make refresh` writes this.\n"
        + yaml.safe_dump(known)
    )


def time_left(
    expected: Mapping[str, float],
    started: Mapping[str, float],
    seconds: Mapping[str, float],
    now: float,
) -> float | None:
    """Seconds until all notebooks are done, or None if nothing is known about them.

    Those that are finished tell how fast this machine is, the longer the surer. One that has taken
    longer than that lets expect will take a tenth longer still; and whoever is done first takes the
    next that waits.
    """
    known = [name for name in seconds if name in expected]
    took, should = (sum(table[name] for name in known) for table in (seconds, expected))
    pace = (took + PACE_PRIOR) / (should + PACE_PRIOR)
    unfinished = [name for name in expected if name not in seconds]
    ends: list[float] = []
    for name in sorted(unfinished, key=lambda name: name not in started):  # those that run first
        elapsed = now - started.get(name, now)
        begin = 0.0 if len(ends) < AT_ONCE else ends.pop(0)
        ends = sorted([*ends, begin + max(pace * expected[name] - elapsed, elapsed / 10)])
    return ends[-1] if ends else None


def status(
    left: float | None, started: Mapping[str, float], seconds: Mapping[str, float], scratch: Path
) -> str:
    """How long still, which notebooks are running, and how far the sweep of each is."""
    parts = [] if left is None else [f"{int(left) // 60}:{int(left) % 60:02} left"]
    for name in list(started):  # which other threads add to
        if name not in seconds:
            sweep = ""
            with contextlib.suppress(FileNotFoundError):  # it has none, or that has just ended
                sweep = f" {(scratch / name).read_text()}"
            parts.append(name + sweep)
    return "; ".join(parts)


def check_parameters(name: str, values: Mapping[str, Any]) -> None:
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


def execute(
    name: str, values: dict[str, Any], scratch: Path, started: dict[str, float]
) -> NotebookNode:
    """Run one notebook, and return it with its outputs; a copy is left in build/notebooks.

    The kernel reports its sweeps to a file in ``scratch``, which it is told before anything else.
    """
    EXECUTED.mkdir(parents=True, exist_ok=True)
    target = EXECUTED / f"{name}.ipynb"
    started[name] = time.monotonic()
    report = f"import os; os.environ['LDPCASH_PROGRESS'] = {str(scratch / name)!r}"
    try:
        return papermill.execute_notebook(
            NOTEBOOKS / f"{name}.ipynb",
            target,
            parameters=values,
            kernel_name="python3",
            cwd=NOTEBOOKS,
            progress_bar=False,
            extra_arguments=[f"--IPKernelApp.exec_lines={report}"],
        )
    except PapermillExecutionError as error:
        first_line = error.source.strip().partition("\n")[0]
        raise NotebookError(
            f"{name}, cell [{error.exec_count}], `{first_line}`: {error.ename}: {error.evalue}\n"
            f"what it printed until then is in {target.relative_to(ROOT)}"
        ) from None
    except RuntimeError as error:  # such as a kernel that was killed
        raise NotebookError(f"{name}: {error}") from error
    finally:
        ensure_event_loop().close()  # this thread's, which papermill leaves open


def manifest() -> dict[str, list[Any]]:
    """Where each figure comes from, as columns; read off the notebooks and the stored files."""
    rows = [row for path in sorted(NOTEBOOKS.glob("*.ipynb")) for row in figures_of(path)]
    return {name: [row[name] for row in rows] for name in rows[0]} if rows else {"figure": []}


def figures_of(path: Path) -> Iterator[dict[str, Any]]:
    """The rows of one notebook: its `save_figure` calls have the name second and the claim last."""
    cells = [cell for cell in nbformat.read(path, as_version=4).cells if cell.cell_type == "code"]
    parameters = {}
    for cell in cells:
        if "parameters" in cell.metadata.get("tags", []):
            for assignment in ast.parse(cell.source).body:
                parameters[assignment.targets[0].id] = ast.literal_eval(assignment.value)
    for cell in cells:
        for node in ast.walk(ast.parse(cell.source)):
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "save_figure":
                name, claim = (ast.literal_eval(node.args[i]) for i in (1, 3))
                yield {
                    "figure": name,
                    "notebook": path.stem,
                    "claim": claim,
                    "seed": parameters.get("seed"),
                    "parameters": json.dumps(parameters),
                    **{ending: checksum(name, ending) for ending in ("svg", "pdf", "png", "csv")},
                }


def checksum(name: str, ending: str) -> str:
    folder = figure_folder() / "data" if ending == "csv" else figure_folder()
    return hashlib.sha256((folder / f"{name}.{ending}").read_bytes()).hexdigest()


def without_traces(notebook: NotebookNode) -> NotebookNode:
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


def joined(outputs: list[NotebookNode]) -> list[NotebookNode]:
    """Outputs with neighbouring prints to the same stream made one."""
    result: list[NotebookNode] = []
    for output in outputs:
        previous = result[-1] if result else NotebookNode()
        if output.output_type == "stream" and previous.get("name") == output.name:
            previous.text += output.text
        else:
            result.append(output)
    return result


if __name__ == "__main__":
    sys.exit(main())
