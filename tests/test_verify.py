"""`make verify`: what it lets pass, and what it does not."""

import subprocess
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


def test_is_held_against_what_was_committed(tmp_path, monkeypatch, capsys):
    """And not against what `make figures` has just written."""
    monkeypatch.setattr(verify, "ROOT", tmp_path)
    draw(tmp_path / "figures")
    assert verify.committed_figures(tmp_path / "scratch") == tmp_path / "figures"
    assert "git does not know the committed figures" in capsys.readouterr().out
    git = ["git", "-C", str(tmp_path), "-c", "user.name=a", "-c", "user.email=b"]
    for command in (["init", "-q"], ["add", "."], ["commit", "-qm", "Draw"]):
        subprocess.run([*git, *command], check=True)
    table = tmp_path / "figures" / "data" / "fig9.csv"
    committed = table.read_text()
    table.write_text("other")
    found = verify.committed_figures(tmp_path / "scratch")
    assert (found / "data" / "fig9.csv").read_text() == committed
    assert verify.compare(found, tmp_path / "figures") == 1


def test_a_folder_is_held_against_the_figures_as_they_stand(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(verify, "ROOT", tmp_path)
    draw(tmp_path / "figures")
    assert verify.main([str(draw(tmp_path / "same"))]) == 0
    assert verify.main([str(draw(tmp_path / "other", value="2.5"))]) == 1
    assert verify.main([str(tmp_path / "none")]) == 1
    assert "0 of 1 are as committed" in capsys.readouterr().out


def test_a_missing_file_is_a_difference(tmp_path, capsys):
    committed, rebuilt = draw(tmp_path / "a"), draw(tmp_path / "b")
    (rebuilt / "fig9.pdf").unlink()
    assert verify.compare(committed, rebuilt) == 1
    assert "DIFFERS: fig9.pdf is on one side only" in capsys.readouterr().out
