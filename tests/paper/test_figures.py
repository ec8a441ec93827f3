"""Stored figures: all four files, the same bytes each time, and never half a file."""

import subprocess
import sys

import matplotlib.pyplot as plt
import numpy as np
import pytest

from ldpcash.paper import figures
from ldpcash.simulation.points import Point
from ldpcash.simulation.trials import Row, Tally

CLAIM = "Lines go down."


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("LDPCASH_FIGURES", str(tmp_path))
    figures.use_style()
    yield tmp_path
    plt.close("all")


def draw():
    fig, ax = plt.subplots()
    ax.plot([1, 2, 3], [0.1, 0.01, 0.001], label="$f = 0.5$")
    ax.set_yscale("log")
    ax.legend()
    return fig


def test_the_same_figure_gives_the_same_bytes(folder, monkeypatch):
    data = {"x": [1, 2, 3], "y": np.array([1 / 3, 1e-9, 2.0]), "name": ["a", "b, c", "d"]}
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "0")  # what matplotlib takes for the date
    figures.save_figure(draw(), "fig9_test", data, CLAIM)
    names = {"fig9_test.svg", "fig9_test.pdf", "fig9_test.png", "data/fig9_test.csv"}
    first = {name: (folder / name).read_bytes() for name in names}
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1000000000")
    figures.save_figure(draw(), "fig9_test", data, CLAIM)
    assert {path for path in names if (folder / path).read_bytes() == first[path]} == names
    stored = {str(p.relative_to(folder)) for p in folder.rglob("*") if p.is_file()}
    assert stored == names  # and nothing unfinished is left


def test_a_reader_s_own_settings_do_not_show(folder):
    first = folder / "fig9_test.png"
    figures.save_figure(draw(), "fig9_test", {"x": [1]}, CLAIM)
    expected = first.read_bytes()
    plt.rcParams["axes.facecolor"] = "red"  # as from a matplotlibrc
    figures.use_style()
    figures.save_figure(draw(), "fig9_test", {"x": [1]}, CLAIM)
    assert first.read_bytes() == expected


def test_data(folder):
    figures.save_figure(
        draw(),
        "fig9_test",
        {"x": np.arange(2), "y": [1 / 3, np.float64(1e-9)], "name": ["a", None]},
        CLAIM,
    )
    expected = "x,y,name\n0,0.333333333,a\n1,1e-09,\n"
    assert (folder / "data" / "fig9_test.csv").read_text() == expected


def test_a_table_of_its_own(folder):
    figures.save_table("claims", {"number": ["C01"], "verdict": ["holds, always"]})
    assert (folder / "claims.csv").read_text() == 'number,verdict\nC01,"holds, always"\n'


def test_columns_of_unequal_length_leave_nothing_behind(folder):
    with pytest.raises(ValueError, match=r"lengths .*'x': 2, 'y': 1"):
        figures.save_figure(draw(), "fig9_test", {"x": [1, 2], "y": [1]}, CLAIM)
    assert not list(folder.iterdir())


def test_a_failed_write_keeps_the_old_file(folder, monkeypatch):
    figures.save_figure(draw(), "fig9_test", {"x": [1]}, CLAIM)
    before = (folder / "fig9_test.svg").read_bytes()

    def full_disk(self, target):
        raise OSError("No space left on device")

    monkeypatch.setattr("pathlib.Path.replace", full_disk)
    with pytest.raises(OSError, match="No space left"):
        figures.save_figure(plt.figure(), "fig9_test", {"x": [2]}, CLAIM)
    assert (folder / "fig9_test.svg").read_bytes() == before


def test_default_folder(monkeypatch):
    monkeypatch.delenv("LDPCASH_FIGURES")
    assert figures.figure_folder().name == "figures"
    assert (figures.figure_folder().parent / "Makefile").exists()


def test_the_files_say_what_they_show(folder):
    figures.save_figure(draw(), "fig9_test", {"x": [1]}, CLAIM)
    for ending in ("svg", "pdf", "png"):
        assert CLAIM.encode() in (folder / f"fig9_test.{ending}").read_bytes()


def test_rates_have_bands_and_what_was_never_seen_is_a_bound(folder):
    point = Point(protocol="Cash", epsilon=1.0, frequency=0.6, clients=1000)
    rows = [Row.of(point, Tally(1000, errors)) for errors in (100, 10, 0)]
    _, ax = plt.subplots()
    figures.plot_rates(ax, [1.0, 2.0, 3.0], rows, label="BLER")
    line, bounds = ax.lines
    assert line.get_xydata().tolist() == [[1.0, 0.1], [2.0, 0.01]]
    assert bounds.get_xydata().tolist() == [[3.0, rows[2].high]]
    (band,) = ax.collections
    corners = band.get_paths()[0].vertices
    assert {tuple(corner) for corner in corners} >= {(1.0, rows[0].low), (2.0, rows[1].high)}
    assert ax.get_yscale() == "log"
    figures.plot_rates(ax, np.array([1.0, 2.0, 3.0]), np.array(rows))  # rows may be an array's
    assert ax.lines[2].get_xydata().tolist() == line.get_xydata().tolist()
    for x, some in (([1.0, 2.0], rows), ([], [])):
        with pytest.raises(ValueError, match=rf"^x has shape .*: needs one .* {len(some)} rows"):
            figures.plot_rates(ax, x, some)


def test_a_flow_has_a_box_for_each_step_and_arrows_between(folder):
    _, ax = plt.subplots()
    figures.draw_flow(ax, [(0.0, 0.2, "one"), (0.4, 0.2, "two"), (0.8, 0.1, "three")])
    assert [text.get_text() for text in ax.texts] == ["one", "two", "three"]
    assert len(ax.patches) == 3 + 2


def test_style_needs_no_notebook():
    """Neither IPython nor what shows figures in it is needed by a plain script."""
    script = (
        "import sys; sys.modules['matplotlib_inline'] = None;"
        " from ldpcash.paper.figures import use_style; use_style(); print('IPython' in sys.modules)"
    )
    run = [sys.executable, "-c", script]
    assert subprocess.run(run, capture_output=True, text=True, check=True).stdout == "False\n"
