"""Which code a result hangs on: whatever can change it gives it another version."""

import importlib
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import ldpcash
from ldpcash.simulation import version
from ldpcash.simulation.points import DECODERS, PROTOCOLS
from ldpcash.simulation.trials import code_version
from ldpcash.simulation.version import Code, same_code

PACKAGE = Path(ldpcash.__file__).parent
OLD = 1_000_000_000  # a date long before any process that runs this


def write(path, text):
    """A file that has been there for long."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    os.utime(path, (OLD, OLD))


def run(folder, script):
    """What a script prints in a new process that finds modules in a folder first."""
    environment = {**os.environ, "PYTHONPATH": str(folder), "PYTHONDONTWRITEBYTECODE": "1"}
    command = [sys.executable, "-c", script]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    return done.stdout.strip()


def attributes(modules):
    """What is imported from modules and is none."""
    return {name for name, content in modules.items() if content == "nowhere"}


class TestOurs:
    def test_what_results_hang_on_is_part_of_it(self, tmp_path):
        shutil.copytree(PACKAGE, tmp_path / "ldpcash")
        script = (
            "from pathlib import Path\nimport ldpcash\n"
            "from ldpcash.simulation.trials import code_version\n"
            "from ldpcash.simulation.version import Code\n"
            "print(code_version())\n"
            "for path in {paths!r}:\n"
            "    with Path(ldpcash.__file__).parent.joinpath(path).open('a') as file:\n"
            "        file.write('# another')\n"
            "    print(Code.of(['ldpcash.simulation.trials']).version)\n"
        )
        harmless = ["paper/figures.py", "histogram/search.py", "beyond/codes.py"]
        harmless += ["simulation/sweeps.py", "base/store.py", "simulation/progress.py"]
        paths = ["base/checks.py", "base/arrays.py", "codec/scl.py", "codec/list_search.py"]
        paths += ["codec/polar.py", "privacy/calibration.py", "protocols/prot.py"]
        paths += ["protocols/laws.py", "simulation/points.py", "simulation/trials.py"]
        paths += ["codec/__init__.py", "__init__.py"]
        first, *others = run(tmp_path, script.format(paths=harmless + paths)).splitlines()
        assert first == code_version()
        assert others[: len(harmless)] == [first] * len(harmless)
        assert len({first, *others}) == 1 + len(paths)

    def test_it_has_every_module_that_is_imported_for_a_chunk(self):
        """Against Python itself: what the simulation's modules have imported when they are loaded
        by themselves, without the package's own list of exports."""
        script = (
            "import sys, types, json\n"
            "from importlib.util import find_spec\n"
            "package = types.ModuleType('ldpcash')\n"
            "package.__path__ = list(find_spec('ldpcash').submodule_search_locations)\n"
            "sys.modules['ldpcash'] = package\n"
            "import ldpcash.simulation.trials\n"
            "print(json.dumps([name for name in sys.modules if name.startswith('ldpcash')]))"
        )
        imported = json.loads(run(PACKAGE.parent, script))
        found = Code.of(["ldpcash.simulation.trials"]).modules
        ours = {name for name in found if name.startswith("ldpcash")}
        assert ours - attributes(found) == set(imported)
        assert {"numpy", "scipy"} <= found.keys()

    def test_it_is_that_of_the_code_that_was_imported(self, tmp_path):
        """Code that is changed on disk afterwards does not lend its name to what runs."""
        shutil.copytree(PACKAGE, tmp_path / "ldpcash")
        script = (
            "from ldpcash.simulation import trials\n"
            "open(trials.__file__, 'a').write('# changed')\n"
            "print(trials.code_version())"
        )
        assert run(tmp_path, script) == code_version()

    def test_other_versions_of_packages_and_of_python(self, monkeypatch):
        first = Code.of(["ldpcash.codec.polar"]).version
        monkeypatch.setattr(np, "__version__", "3.0")
        version._package_of.cache_clear()
        second = Code.of(["ldpcash.codec.polar"]).version
        monkeypatch.undo()
        version._package_of.cache_clear()
        monkeypatch.setattr(sys, "version", "4.0")
        assert len({first, second, Code.of(["ldpcash.codec.polar"]).version}) == 3


PROTOCOL = "from ldpcash import Cash\n{imports}\nclass Own(Cash):\n    pass\n"


class TestTheUsers:
    """A protocol of one's own, and what it imports, in files that have been there for long."""

    @pytest.fixture
    def folder(self, tmp_path, monkeypatch):
        before = set(sys.modules)
        monkeypatch.syspath_prepend(tmp_path)
        yield tmp_path
        for name in {*sys.modules} - before:
            if name.partition(".")[0] in ("own", "helper", "pack", "thing", "mine"):
                del sys.modules[name]

    def test_its_file_counts(self, folder):
        write(folder / "own.py", PROTOCOL.format(imports=""))
        first = Code.of(["own"]).version
        assert Code.of(["own"]).version == first
        assert "-" not in first
        write(folder / "own.py", PROTOCOL.format(imports="# mended"))
        assert Code.of(["own"]).version != first
        write(folder / "own.py", PROTOCOL.format(imports=""))
        assert Code.of(["own"]).version == first

    @pytest.mark.parametrize(
        ("imports", "helper"),
        [
            ("import helper", "helper.py"),
            ("import helper as h, math", "helper.py"),
            ("from helper import CONSTANT", "helper.py"),
            ("import pack.helper", "pack/helper.py"),
            ("import pack.helper", "pack/__init__.py"),
            ("from pack import helper", "pack/helper.py"),
            ("from pack.helper import CONSTANT", "pack/helper.py"),
            ("from pack import between", "pack/helper.py"),
            ("from pack.between import *", "pack/helper.py"),
            ("def late():\n    import helper", "helper.py"),
            ("try:\n    import helper\nexcept ImportError:\n    pass", "helper.py"),
        ],
    )
    def test_and_what_it_imports(self, folder, imports, helper):
        """Directly or not, at once or later: the constant of a helper decides about results."""
        write(folder / "helper.py", "CONSTANT = 1\n")
        write(folder / "pack" / "__init__.py", "")
        write(folder / "pack" / "helper.py", "CONSTANT = 1\n")
        write(folder / "pack" / "between.py", "from .helper import CONSTANT\n")
        write(folder / "own.py", PROTOCOL.format(imports=imports))
        first = Code.of(["own"])
        assert first.traceable
        write(folder / helper, "CONSTANT = 2\n")
        assert Code.of(["own"]).version != first.version

    def test_also_from_the_annex(self, folder):
        write(folder / "own.py", PROTOCOL.format(imports="from ldpcash.beyond import codes"))
        assert {"ldpcash.beyond.codes", "ldpcash.protocols.cash"} <= Code.of(["own"]).modules.keys()

    @pytest.mark.parametrize(("book", "kind"), [(PROTOCOLS, "Cash"), (DECODERS, "MLDecoder")])
    def test_whatever_was_entered_counts(self, folder, monkeypatch, book, kind):
        write(folder / "mine.py", f"from ldpcash import {kind}\nclass Mine({kind}): pass\n")
        before = code_version()
        monkeypatch.setitem(book, "Mine", importlib.import_module("mine").Mine)
        assert code_version() != before

    @pytest.mark.parametrize(
        "imports",
        [
            "import importlib",
            "from importlib import import_module",
            "exec('CONSTANT = 1')",
            "CONSTANT = eval('1')",
            "json = __import__('json')",
        ],
    )
    def test_what_cannot_be_followed_is_never_the_same(self, folder, imports):
        write(folder / "own.py", PROTOCOL.format(imports=imports))
        code = Code.of(["own"])
        assert code.version != code.version
        assert same_code(code.version, code.version)  # workers of a sweep are not refused for it

    def test_nor_is_a_file_that_may_not_be_what_was_imported(self, folder):
        write(folder / "own.py", PROTOCOL.format(imports="import helper"))
        (folder / "helper.py").write_text("CONSTANT = 1\n")  # now
        assert not Code.of(["own"]).traceable

    def test_nor_is_a_class_without_a_file(self, monkeypatch):
        names = {"__name__": "nowhere"}
        exec("from ldpcash import Cash\nclass Own(Cash): pass", names)
        monkeypatch.setitem(PROTOCOLS, "Own", names["Own"])
        assert code_version() != code_version()

    def test_a_module_that_is_not_there_is_no_obstacle(self, folder):
        optional = "try:\n    import helper\nexcept ImportError:\n    pass"
        write(folder / "own.py", PROTOCOL.format(imports=optional))
        first = Code.of(["own"])
        assert first.traceable
        write(folder / "helper.py", "")
        importlib.invalidate_caches()
        assert Code.of(["own"]).version != first.version

    def test_an_installed_package_counts_as_it_was_installed(self, folder, monkeypatch):
        """Also if it was installed anew, with other content, under the same version."""
        site = folder / "site-packages"
        monkeypatch.syspath_prepend(site)
        write(site / "thing" / "__init__.py", "CONSTANT = 1\n")
        info = site / "thing-1.0.dist-info"
        write(info / "METADATA", "Metadata-Version: 2.1\nName: thing\nVersion: 1.0\n")
        write(info / "RECORD", "thing/__init__.py,sha256=one,13\n")
        write(info / "top_level.txt", "thing\n")
        write(folder / "own.py", PROTOCOL.format(imports="import thing"))
        first = Code.of(["own"])
        assert first.traceable
        assert Code.of(["own"]).version == first.version
        write(info / "RECORD", "thing/__init__.py,sha256=two,13\n")
        version._package_of.cache_clear()  # as in another process
        assert Code.of(["own"]).version != first.version


def test_a_changed_helper_is_not_answered_with_old_results(tmp_path):
    """The whole way: a sweep, a helper's constant changed, the same sweep again."""
    write(
        tmp_path / "own.py",
        "import helper\nfrom ldpcash import Cash\n\nclass Own(Cash):\n"
        "    def __init__(self, code, epsilon, decoder=None):\n"
        "        super().__init__(code, epsilon, decoder=decoder)\n"
        "        self.sigma *= helper.FACTOR\n",
    )
    script = (
        "from ldpcash import PROTOCOLS, Point, sweep\nimport own\nPROTOCOLS['Own'] = own.Own\n"
        "point = Point(protocol='Own', epsilon=2.0, frequency=0.6, clients=1000)\n"
        f"[row] = sweep([point], 1, max_trials=3000, workers=1, store={str(tmp_path / 's')!r})\n"
        "print(row.errors, row.trials)"
    )
    errors = []
    for factor in (1.0, 2.0, 1.0):
        write(tmp_path / "helper.py", f"FACTOR = {factor}\n")
        errors.append(int(run(tmp_path, script).split()[0]))
    assert errors[0] == errors[2]
    assert errors[1] > 100 + errors[0]


def test_a_sweep_of_what_cannot_be_followed_runs_in_workers(tmp_path):
    write(tmp_path / "own.py", PROTOCOL.format(imports="import importlib"))
    script = (
        "from ldpcash import PROTOCOLS, Point, sweep\nimport own\nPROTOCOLS['Own'] = own.Own\n"
        "point = Point(protocol='Own', epsilon=2.0, frequency=0.6, clients=1000)\n"
        "from concurrent.futures import ThreadPoolExecutor\n"
        "with ThreadPoolExecutor(2) as pool:\n"
        f"    [row] = sweep([point], 1, max_trials=3000, executor=pool, store={str(tmp_path)!r})\n"
        "print(row.trials)"
    )
    assert run(tmp_path, script) == "3000"
