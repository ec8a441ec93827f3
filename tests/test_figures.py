"""Stored figures: all four files, the same bytes each time, and never half a file."""

import matplotlib.pyplot as plt
import numpy as np
import pytest

from ldpcash import figures


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
    figures.save_figure(draw(), "fig9_test", data)
    names = {"fig9_test.svg", "fig9_test.pdf", "fig9_test.png", "data/fig9_test.csv"}
    first = {name: (folder / name).read_bytes() for name in names}
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1000000000")
    figures.save_figure(draw(), "fig9_test", data)
    assert {path for path in names if (folder / path).read_bytes() == first[path]} == names
    stored = {str(p.relative_to(folder)) for p in folder.rglob("*") if p.is_file()}
    assert stored == names  # and nothing unfinished is left


def test_data(folder):
    figures.save_figure(
        draw(), "fig9_test", {"x": np.arange(2), "y": [1 / 3, np.float64(1e-9)], "name": ["a", "b"]}
    )
    expected = "x,y,name\n0,0.333333333,a\n1,1e-09,b\n"
    assert (folder / "data" / "fig9_test.csv").read_text() == expected


def test_columns_of_unequal_length_leave_nothing_behind(folder):
    with pytest.raises(ValueError, match=r"lengths .*'x': 2, 'y': 1"):
        figures.save_figure(draw(), "fig9_test", {"x": [1, 2], "y": [1]})
    assert not list(folder.iterdir())


def test_a_failed_write_keeps_the_old_file(folder, monkeypatch):
    figures.save_figure(draw(), "fig9_test", {"x": [1]})
    before = (folder / "fig9_test.svg").read_bytes()

    def full_disk(self, content):
        raise OSError("No space left on device")

    monkeypatch.setattr("pathlib.Path.write_bytes", full_disk)
    with pytest.raises(OSError, match="No space left"):
        figures.save_figure(plt.figure(), "fig9_test", {"x": [2]})
    assert (folder / "fig9_test.svg").read_bytes() == before


def test_default_folder(monkeypatch):
    monkeypatch.delenv("LDPCASH_FIGURES")
    assert figures.figure_folder().name == "figures"
    assert (figures.figure_folder().parent / "Makefile").exists()
