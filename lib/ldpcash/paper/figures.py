"""Figures: one style for all of them, one way to store them.

A notebook calls `use_style` once and `save_figure` at the end of each figure. A figure is stored as
SVG, PDF and PNG, with the numbers behind it as CSV; the same figure always gives the same bytes.
In the notebook it is shown as SVG, which nbval compares.
"""

from __future__ import annotations

import csv
import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from io import BytesIO, StringIO
from itertools import pairwise
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
from cycler import cycler
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import FancyArrowPatch, FancyBboxPatch
from numpy.typing import ArrayLike

from ldpcash.base.store import home_folder, write_whole
from ldpcash.simulation.trials import Row

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
# A date would differ from run to run, and the software named in a PNG from version to version. What
# a file says about its content has another name in each format.
_METADATA: dict[str, dict[str, None]] = {
    "svg": {"Date": None},
    "pdf": {"CreationDate": None},
    "png": {"Software": None},
}
_DESCRIPTION = {"svg": "Description", "pdf": "Subject", "png": "Description"}


def use_style() -> None:
    """Set the project's look, and show figures in notebooks as reproducible SVG.

    >>> use_style()
    >>> matplotlib.rcParams["font.family"]
    ['STIXGeneral']
    """
    matplotlib.rcdefaults()  # the reader's own matplotlibrc must not show
    matplotlib.rcParams.update(_STYLE)
    if "IPython" in sys.modules:
        from matplotlib_inline.backend_inline import set_matplotlib_formats

        set_matplotlib_formats("svg", bbox_inches=None, metadata=_METADATA["svg"])


def figure_folder() -> Path:
    """Where figures go: ``$LDPCASH_FIGURES`` if set, else ``figures`` in `home_folder`.

    >>> from unittest.mock import patch
    >>> with patch.dict(os.environ, {"LDPCASH_FIGURES": "build/mine"}):
    ...     figure_folder().as_posix()
    'build/mine'
    """
    chosen = os.environ.get("LDPCASH_FIGURES")
    return Path(chosen) if chosen else home_folder() / "figures"


def save_figure(fig: Figure, name: str, data: Mapping[str, Iterable[object]], claim: str) -> None:
    """Store a figure as ``name.svg``, ``.pdf`` and ``.png``, and its numbers as ``data/name.csv``.

    Args:
        fig: the finished figure.
        name: file name without ending, such as "fig2_bler".
        data: columns of equal length, by name: every number the figure shows.
        claim: one sentence, what the figure is there to show; it goes into the files and into
            ``manifest.csv``.

    >>> import matplotlib.pyplot as plt
    >>> fig, ax = plt.subplots()
    >>> line = ax.plot([1, 2], [0.1, 0.01])
    >>> save_figure(fig, "example", {"epsilon": [1, 2], "rate": [0.1, 0.01]}, "The rate falls.")
    >>> print((figure_folder() / "data" / "example.csv").read_text(), end="")
    epsilon,rate
    1,0.1
    2,0.01
    >>> plt.close(fig)
    """
    folder = figure_folder()
    table = _as_csv(data)
    for ending, metadata in _METADATA.items():
        image = BytesIO()
        with matplotlib.rc_context(_STYLE):
            described = {**metadata, _DESCRIPTION[ending]: claim}
            fig.savefig(image, format=ending, metadata=described)
        fig.set_layout_engine("none")  # worked out once: it takes longer than the drawing
        write_whole(folder / f"{name}.{ending}", image.getvalue())
    write_whole(folder / "data" / f"{name}.csv", table)


def save_table(name: str, data: Mapping[str, Iterable[object]]) -> None:
    """Store a table that belongs to no figure as ``name.csv``.

    Args:
        name: file name without ending, such as "claims".
        data: columns of equal length, by name.

    >>> save_table("example", {"claim": ["C01", "C02"], "verdict": ["holds", "holds"]})
    >>> print((figure_folder() / "example.csv").read_text(), end="")
    claim,verdict
    C01,holds
    C02,holds
    """
    write_whole(figure_folder() / f"{name}.csv", _as_csv(data))


def save_page(name: str, text: str) -> None:
    """Store a page of Markdown that belongs to no figure as ``name.md``.

    Args:
        name: file name without ending, such as "claims".
        text: the page.

    >>> save_page("example", "# An example\\n")
    >>> (figure_folder() / "example.md").read_text()
    '# An example\\n'
    """
    write_whole(figure_folder() / f"{name}.md", text.encode())


def plot_rates(ax: Axes, x: ArrayLike, rows: Sequence[Row], fmt: str = "o-", **style: Any) -> None:
    """Draw block error rates on a logarithmic scale, with their 95 % bands.

    Where no error was seen there is no rate to draw: a triangle marks the interval's upper end.

    Args:
        ax: where to draw.
        x: ``(len(rows),)``, the abscissa of each row.
        rows: what a sweep found.
        fmt, style: of the line, as `Axes.plot` takes them.

    >>> import matplotlib.pyplot as plt
    >>> from ldpcash.simulation.points import Point
    >>> from ldpcash.simulation.trials import Tally
    >>> points = [Point(protocol="Cash", epsilon=e, frequency=1, clients=100) for e in (1, 2, 3)]
    >>> tallies = [Tally(1000, 100), Tally(1000, 10), Tally(1000, 0)]
    >>> fig, ax = plt.subplots()
    >>> plot_rates(ax, [1, 2, 3], [Row.of(*pair) for pair in zip(points, tallies)])
    >>> [line.get_ydata().round(4).tolist() for line in ax.lines]  # the curve, and the triangle
    [[0.1, 0.01], [0.0037]]
    >>> plt.close(fig)
    """
    x = np.asarray(x)
    if x.shape != (len(rows),) or len(rows) == 0:
        raise ValueError(f"x has shape {x.shape}: needs one number for each of {len(rows)} rows")
    rate, low, high = np.array([(row.rate, row.low, row.high) for row in rows]).T
    seen = rate > 0
    (line,) = ax.plot(x[seen], rate[seen], fmt, **style)
    ax.fill_between(x[seen], low[seen], high[seen], color=line.get_color(), alpha=0.2, linewidth=0)
    ax.plot(x[~seen], high[~seen], "v", color=line.get_color(), markersize=2.5, fillstyle="none")
    ax.set_yscale("log")


def draw_flow(ax: Axes, boxes: Sequence[tuple[float, float, str]]) -> None:
    """Draw a diagram of boxes in a row, each joined to the next by an arrow.

    Args:
        ax: where to draw; the row is at a height of 0.22 to 0.62.
        boxes: left edge, width and text of each box, from left to right.

    >>> import matplotlib.pyplot as plt
    >>> fig, ax = plt.subplots()
    >>> draw_flow(ax, [(0.0, 0.3, "encode"), (0.4, 0.3, "send"), (0.8, 0.2, "decode")])
    >>> len(ax.texts), len(ax.patches)  # two of the patches are arrows
    (3, 5)
    >>> plt.close(fig)
    """
    for left, width, text in boxes:
        shape = FancyBboxPatch((left, 0.22), width, 0.4, boxstyle="round,pad=0.004")
        shape.set(facecolor="white", edgecolor="black", linewidth=0.8)
        ax.add_patch(shape)
        ax.text(left + width / 2, 0.42, text, ha="center", va="center", fontsize=7)
    for (left, width, _), (following, _, _) in pairwise(boxes):
        ends = (left + width + 0.004, 0.42), (following - 0.004, 0.42)
        ax.add_patch(FancyArrowPatch(*ends, arrowstyle="-|>", mutation_scale=7, color="black"))


def _as_csv(data: Mapping[str, Iterable[object]]) -> bytes:
    """Columns as CSV."""
    columns = [[_cell(value) for value in column] for column in data.values()]
    lengths = {name: len(column) for name, column in zip(data, columns, strict=True)}
    if len(set(lengths.values())) != 1:
        raise ValueError(f"data has columns of lengths {lengths}: all must be the same")
    text = StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(data)
    writer.writerows(zip(*columns, strict=True))
    return text.getvalue().encode()


def _cell(value: object) -> str:
    """Floats with nine digits, which every machine agrees on; nothing for None."""
    if isinstance(value, (float, np.floating)):
        return format(value, ".9g")
    return "" if value is None else str(value)
