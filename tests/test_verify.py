"""`make verify`: what it lets pass, and what it does not."""

import sys
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pytest

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tools"))
import verify  # noqa: E402


def draw(folder, height=1.0, value="0.333333333", note=b""):
    """A figure's files: a table, a picture, and a page."""
    (folder / "data").mkdir(parents=True)
    (folder / "data" / "fig9.csv").write_text(f"name,x\na,{value}\n")
    picture = np.zeros((20, 20, 3))
    picture[:10] = height
    plt.imsave(folder / "fig9.png", picture)
    (folder / "fig9.pdf").write_bytes(b"page" + note)
    return folder


@pytest.mark.parametrize(
    ("change", "line", "code"),
    [
        ({}, "the same bytes", 0),
        ({"note": b"!"}, "the same numbers and pixels (.pdf differ)", 0),
        ({"value": "0.3333333331"}, "the same numbers and pixels (.csv differ)", 0),
        ({"height": 0.99}, "the same numbers and pixels (.png differ)", 0),
        ({"value": "0.3334"}, "DIFFERS: other numbers", 1),
        ({"value": "a third"}, "DIFFERS: other numbers", 1),
        ({"value": "0.333333333\nb,1"}, "DIFFERS: other numbers", 1),
        ({"height": 0.5}, "DIFFERS: the same numbers, another picture", 1),
    ],
)
def test_each_figure_has_its_line(tmp_path, capsys, change, line, code):
    found = verify.compare(draw(tmp_path / "a"), draw(tmp_path / "b", **change))
    assert found == code
    assert capsys.readouterr().out.splitlines() == [
        f"{'fig9':28s} {line}",
        f"{1 - code} of 1 are as committed",
    ]


def test_a_missing_file_is_a_difference(tmp_path, capsys):
    committed, rebuilt = draw(tmp_path / "a"), draw(tmp_path / "b")
    (rebuilt / "fig9.pdf").unlink()
    assert verify.compare(committed, rebuilt) == 1
    assert "DIFFERS: fig9.pdf is on one side only" in capsys.readouterr().out
