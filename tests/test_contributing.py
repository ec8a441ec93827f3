"""CONTRIBUTING.md: its map is the real one, and what it names exists."""

import re
import sys
from pathlib import Path

import yaml

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "CONTRIBUTING.md").read_text()
TO_BE_WRITTEN = ("15_laplace", "laplace.py", "test_laplace.py")  # by who follows the page

sys.path.insert(0, str(ROOT / "tools"))
import map as house_map  # noqa: E402


def test_the_map_is_drawn_from_the_real_imports():
    [shown] = re.findall(r"```mermaid\n(.*?)\n```", PAGE, re.DOTALL)
    assert shown == house_map.draw()
    assert house_map.on_page(PAGE.replace(shown, "flowchart BT\n    old")) == PAGE


def test_what_it_names_exists():
    paths = re.findall(r"[`\s]((?:lib|notebooks|tests|tools|figures)/[\w./]+)`", PAGE)
    assert len(paths) >= 15
    for path in paths:
        if not path.endswith(TO_BE_WRITTEN) and "15_laplace" not in path:
            assert (ROOT / path).exists(), path
    makefile = (ROOT / "Makefile").read_text()
    for target in re.findall(r"\bmake ([a-z]+)\b`", PAGE):
        assert re.search(rf"^{target}:", makefile, re.MULTILINE), target


def test_it_names_what_python_has():
    """Names in backticks that look like ours: each stands somewhere in the library."""
    library = "\n".join(path.read_text() for path in (ROOT / "lib").rglob("*.py"))
    names = re.findall(r"`(?:self\.)?(\w*[a-z]_\w+)(?:\(.*?\))?`", PAGE)
    names = [name for name in names if not name.startswith("test_")]
    assert len(names) >= 8
    for name in names:
        assert re.search(rf"\b{name}\b", library), name
    for test in re.findall(r"`(test_\w+)`", PAGE):
        assert any(test in path.read_text() for path in (ROOT / "tests").rglob("*.py")), test


def test_pre_commit_runs_what_ci_runs():
    hooks = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text())["repos"][0]["hooks"]
    commands = [hook["entry"].removeprefix(".venv/bin/") for hook in hooks]
    recipe = re.search(r"^test: \.venv.*\n((?:\t.*\n)+)", (ROOT / "Makefile").read_text(), re.M)
    in_ci = re.findall(r"\$\(BIN\)/((?:ruff|mypy).*)", recipe.group(1))
    assert commands == in_ci
