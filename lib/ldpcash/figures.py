"""Figures: one style for all of them, one way to store them.

A notebook calls `use_style` once and `save_figure` at the end of each figure. A figure is stored as
SVG, PDF and PNG, with the numbers behind it as CSV; the same figure always gives the same bytes.
In the notebook it is shown as SVG, which nbval compares.
"""

from __future__ import annotations

import csv
import os
from collections.abc import Iterable, Mapping
from io import BytesIO, StringIO
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
from cycler import cycler
from matplotlib.figure import Figure
from matplotlib_inline.backend_inline import set_matplotlib_formats

from ldpcash.store import write_whole

COLUMN = 3.5  # inches: one column of an IEEE page
PAGE = 7.16  # both columns

# Okabe and Ito's colours, told apart by most readers; lines also differ in dashes and markers.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")

_STYLE: dict[Any, Any] = {
    "figure.figsize": (COLUMN, 2.5),
    "figure.dpi": 120,
    "figure.constrained_layout.use": True,
    "font.family": "STIXGeneral",  # ships with matplotlib and goes with Times
    "font.size": 8,
    "mathtext.fontset": "stix",
    "axes.prop_cycle": cycler(color=COLOURS),
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.linewidth": 0.4,
    "grid.color": "#d0d0d0",
    "lines.linewidth": 1.0,
    "lines.markersize": 3.5,
    "legend.fontsize": 7,
    "legend.framealpha": 1.0,
    "savefig.dpi": 300,
    "svg.hashsalt": "ldpcash",  # element names in an SVG are otherwise random
}
# What a file says about when and with what it was made would differ from run to run.
_METADATA: dict[str, dict[str, None]] = {
    "svg": {"Date": None},
    "pdf": {"CreationDate": None},
    "png": {"Software": None},
}


def use_style() -> None:
    """Set the project's look, and show figures in notebooks as reproducible SVG.

    >>> use_style()
    >>> matplotlib.rcParams["font.family"]
    ['STIXGeneral']
    """
    matplotlib.rcParams.update(_STYLE)
    set_matplotlib_formats("svg", bbox_inches=None, metadata=_METADATA["svg"])


def figure_folder() -> Path:
    """Where figures go: ``$LDPCASH_FIGURES`` if set, else the repository's ``figures``."""
    chosen = os.environ.get("LDPCASH_FIGURES")
    return Path(chosen) if chosen else Path(__file__).resolve().parents[2] / "figures"


def save_figure(fig: Figure, name: str, data: Mapping[str, Iterable[object]]) -> None:
    """Store a figure as ``name.svg``, ``.pdf`` and ``.png``, and its numbers as ``data/name.csv``.

    Args:
        fig: the finished figure.
        name: file name without ending, such as "fig2_bler".
        data: columns of equal length, by name: every number the figure shows.
    """
    folder = figure_folder()
    table = _as_csv(data)
    for ending, metadata in _METADATA.items():
        image = BytesIO()
        with matplotlib.rc_context(_STYLE):
            fig.savefig(image, format=ending, metadata=metadata)
        write_whole(folder / f"{name}.{ending}", image.getvalue())
    write_whole(folder / "data" / f"{name}.csv", table)


def _as_csv(data: Mapping[str, Iterable[object]]) -> bytes:
    """Columns as CSV; floats with nine digits, which every machine agrees on."""
    columns = [
        [format(v, ".9g") if isinstance(v, (float, np.floating)) else str(v) for v in column]
        for column in data.values()
    ]
    lengths = {name: len(column) for name, column in zip(data, columns, strict=True)}
    if len(set(lengths.values())) != 1:
        raise ValueError(f"data has columns of lengths {lengths}: all must be the same")
    text = StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(data)
    writer.writerows(zip(*columns, strict=True))
    return text.getvalue().encode()
