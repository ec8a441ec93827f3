"""Imports go one way: each room of the library imports only from those before it."""

import re
import sys
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

import ldpcash

sys.path.insert(0, str(Path(__file__).parents[1] / "tools"))
from map import PACKAGE, ROOMS, arrows, imports, modules, room_of


def wrong_ways(package=PACKAGE):
    """Imports from a later room, or from the package itself, which is after all of them."""
    order = {room: place for place, room in enumerate([*ROOMS, ""])}
    for importer, imported in imports(package):
        if order[room_of(importer)] < order[room_of(imported)]:
            yield f"{importer} imports from {imported}"


def check_no_cycle(package=PACKAGE):
    graph = {name: set() for name in modules(package)}
    for importer, imported in imports(package):
        graph[importer].add(imported)
    TopologicalSorter(graph).prepare()


def test_imports_go_one_way():
    assert len(list(imports())) > 200
    assert list(wrong_ways()) == []


def test_imports_are_written_as_imports():
    """Or this file would not see them. `simulation.version` follows imports, and makes none."""
    hidden = re.compile(r"(import|from) importlib\b(?!\.(metadata|resources))|__import__")
    found = {name for name, path in modules().items() if hidden.search(path.read_text())}
    assert found <= {"ldpcash.simulation.version"}


def test_no_module_needs_itself():
    check_no_cycle()


def test_the_rooms_are_the_folders_and_what_the_package_says():
    folders = {path.parent.name for path in PACKAGE.glob("*/__init__.py")}
    assert sorted(ROOMS) == sorted(folders)
    assert tuple(re.findall(r"^    (\w+)  +\S", ldpcash.__doc__, re.MULTILINE)) == ROOMS
    assert sorted(path.name for path in PACKAGE.glob("*.py")) == ["__init__.py", "__main__.py"]


@pytest.fixture
def small(tmp_path):
    """A library of three modules in two rooms."""
    files = {
        "__init__.py": "from ldpcash.codec.tree import Tree",
        "base/__init__.py": '"""An example, which is no import:\n\n>>> import ldpcash\n"""',
        "base/arrays.py": "import numpy",
        "base/checks.py": "",
        "codec/__init__.py": "",
        "codec/tree.py": "from ldpcash.base import arrays\n",
    }
    for name, text in files.items():
        path = tmp_path / "ldpcash" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return tmp_path / "ldpcash"


def test_a_small_library(small):
    assert set(imports(small)) == {
        ("ldpcash", "ldpcash.codec.tree"),
        ("ldpcash.codec.tree", "ldpcash.base.arrays"),
    }
    assert list(wrong_ways(small)) == []
    check_no_cycle(small)


@pytest.mark.parametrize(
    ("line", "imported"),
    [
        ("from ldpcash.codec.tree import Tree", "ldpcash.codec.tree"),
        ("from ldpcash.codec import tree", "ldpcash.codec.tree"),
        ("from ldpcash.codec import Tree", "ldpcash.codec"),
        ("import ldpcash.codec.tree", "ldpcash.codec.tree"),
        ("from ..codec.tree import Tree", "ldpcash.codec.tree"),
        ("from .. import codec", "ldpcash.codec"),
        ("from ldpcash import Tree", "ldpcash"),
        ("import ldpcash", "ldpcash"),
        ("def later():\n    from ldpcash.codec import tree", "ldpcash.codec.tree"),
    ],
)
def test_a_line_the_wrong_way_is_seen(small, line, imported):
    (small / "base" / "arrays.py").write_text(line)
    assert list(wrong_ways(small)) == [f"ldpcash.base.arrays imports from {imported}"]


def test_a_cycle_within_a_room_is_seen(small):
    (small / "base" / "arrays.py").write_text("from . import checks")
    check_no_cycle(small)
    (small / "base" / "checks.py").write_text("from .arrays import Reals")
    assert list(wrong_ways(small)) == []
    with pytest.raises(CycleError):
        check_no_cycle(small)


def test_arrows_that_follow_from_others_are_left_out():
    pairs = {("codec", "base"), ("privacy", "base"), ("privacy", "codec"), ("paper", "base")}
    assert arrows(pairs) == [("codec", "base"), ("privacy", "codec"), ("paper", "base")]
