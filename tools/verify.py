"""Rebuild every figure from nothing and compare it with the committed one: `make verify`.

`make figures` writes over figures/, so what is compared with is what git has; without git, figures/
as it stands, and a line says so. `make test` has rebuilt all figures when nbval is through: with
their folder as argument, these are compared with figures/ as it stands.

One line a figure. Files are compared byte by byte. Where bytes differ, as they may between versions
of a font or image library, numbers are compared with a tolerance and pictures by their pixels: that
is still a pass, and the line says so. Anything else is a difference, and the exit code is 1.
"""

from __future__ import annotations

import argparse
import csv
import io
import os
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from matplotlib.image import imread

import notebooks

ROOT = Path(__file__).resolve().parents[1]
NUMBERS = 1e-6  # largest relative difference of two numbers that count as the same
PIXELS = 0.02  # largest root mean square difference of two pictures, of a range of 1


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Compare rebuilt figures with those in figures/.")
    parser.add_argument("rebuilt", nargs="?", type=Path, help="a folder that has them already")
    options = parser.parse_args(arguments)
    if options.rebuilt:
        return compare(ROOT / "figures", options.rebuilt)
    with tempfile.TemporaryDirectory(prefix="ldpcash-verify-") as scratch:
        os.environ["LDPCASH_FIGURES"] = str(Path(scratch) / "figures")
        os.environ["LDPCASH_RESULTS"] = str(Path(scratch) / "results")
        if notebooks.main(["run"]):
            return 1
        return compare(committed_figures(Path(scratch)), Path(scratch) / "figures")


def committed_figures(scratch: Path) -> Path:
    """The folder of figures as committed, unpacked in ``scratch``."""
    command = ["git", "-C", str(ROOT), "archive", "--format=zip", "HEAD", "figures"]
    try:
        archive = subprocess.run(command, capture_output=True, check=True).stdout
    except (OSError, subprocess.CalledProcessError):
        print("git does not know the committed figures: comparing with figures/ as it stands")
        return ROOT / "figures"
    with zipfile.ZipFile(io.BytesIO(archive)) as files:
        files.extractall(scratch / "committed")
    return scratch / "committed" / "figures"


def compare(committed: Path, rebuilt: Path) -> int:
    """Print a line for each figure and table; 1 if any differs, else 0."""
    names = {path.stem for folder in (committed, rebuilt) for path in folder.rglob("*.*")}
    verdicts = {name: verdict(name, committed, rebuilt) for name in sorted(names - {"manifest"})}
    for name, found in verdicts.items():
        print(f"{name:28s} {found}")
    bad = [name for name, found in verdicts.items() if found.startswith("DIFFERS")]
    print(f"{len(verdicts) - len(bad)} of {len(verdicts)} are as committed")
    return 1 if bad else 0


def verdict(name: str, committed: Path, rebuilt: Path) -> str:
    """How a figure's files, or a table, compare."""
    files = {path.relative_to(committed) for path in committed.rglob(f"{name}.*")}
    others = {path.relative_to(rebuilt) for path in rebuilt.rglob(f"{name}.*")}
    if files != others:
        return f"DIFFERS: {', '.join(map(str, sorted(files ^ others)))} is on one side only"
    changed = [
        file for file in files if (committed / file).read_bytes() != (rebuilt / file).read_bytes()
    ]
    if not changed:
        return "the same bytes"
    tables = [file for file in files if file.suffix == ".csv"]
    if not all(same_numbers(committed / file, rebuilt / file) for file in tables):
        return "DIFFERS: other numbers"
    pictures = [file for file in files if file.suffix == ".png"]
    if not all(same_picture(committed / file, rebuilt / file) for file in pictures):
        return "DIFFERS: the same numbers, another picture"
    return f"the same numbers and pixels ({', '.join(sorted(f.suffix for f in changed))} differ)"


def same_numbers(one: Path, other: Path) -> bool:
    """Whether two tables hold the same words, and numbers within the tolerance."""
    tables = [list(csv.reader(path.read_text().splitlines())) for path in (one, other)]
    if [len(row) for row in tables[0]] != [len(row) for row in tables[1]]:
        return False
    cells = [[cell for row in table for cell in row] for table in tables]
    return all(a == b or close(a, b) for a, b in zip(*cells, strict=True))


def close(a: str, b: str) -> bool:
    try:
        return bool(np.isclose(float(a), float(b), rtol=NUMBERS, atol=0))
    except ValueError:
        return False


def same_picture(one: Path, other: Path) -> bool:
    a, b = imread(one), imread(other)
    return a.shape == b.shape and float(np.sqrt(np.mean((a - b) ** 2))) <= PIXELS


if __name__ == "__main__":
    sys.exit(main())
