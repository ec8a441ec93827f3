"""Which code a result hangs on: whatever can change it gives it another version."""

import importlib
import json
import os
import shutil
import subprocess
import sys
import time
import zipfile
from pathlib import Path

import numpy as np
import pytest

import ldpcash
from ldpcash.simulation import version
from ldpcash.simulation.points import DECODERS, PROTOCOLS
from ldpcash.simulation.trials import code_version
from ldpcash.simulation.version import Code, same_code, version_of

PACKAGE = Path(ldpcash.__file__).parent
OLD = 1_000_000_000  # a date long before any process that runs this


def write(path, text):
    """A file that has been there for long."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    os.utime(path, (OLD, OLD))


def run(folder, *command):
    """What a Python process prints that runs in a folder and finds modules there first."""
    environment = {**os.environ, "PYTHONPATH": str(folder), "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(
        [sys.executable, *command],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
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
            "    print(Code.of(['ldpcash.simulation.trials']).digest)\n"
        )
        harmless = ["paper/figures.py", "histogram/search.py", "beyond/codes.py"]
        harmless += ["simulation/sweeps.py", "base/store.py", "simulation/progress.py"]
        paths = ["base/checks.py", "base/arrays.py", "codec/scl.py", "codec/list_search.py"]
        paths += ["codec/polar.py", "privacy/calibration.py", "protocols/prot.py"]
        paths += ["protocols/laws.py", "simulation/points.py", "simulation/trials.py"]
        paths += ["codec/__init__.py", "__init__.py"]
        first, *others = run(tmp_path, "-c", script.format(paths=harmless + paths)).splitlines()
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
        imported = json.loads(run(PACKAGE.parent, "-c", script))
        found = Code.of(["ldpcash.simulation.trials"]).modules
        ours = {name for name in found if name.startswith("ldpcash")}
        late = {"ldpcash.codec.compiled"}  # imported when a long code is decoded
        assert ours - attributes(found) == {*imported, *late}
        assert {"numpy", "scipy"} <= found.keys()

    def test_it_is_that_of_the_code_that_was_imported(self, tmp_path):
        """Code that is changed on disk afterwards does not lend its name to what runs."""
        shutil.copytree(PACKAGE, tmp_path / "ldpcash")
        script = (
            "from ldpcash.simulation import trials\n"
            "open(trials.__file__, 'a').write('# changed')\n"
            "print(trials.code_version())"
        )
        assert run(tmp_path, "-c", script) == code_version()

    def test_other_versions_of_packages_and_of_python(self, monkeypatch):
        first = Code.of(["ldpcash.codec.polar"]).digest
        monkeypatch.setattr(np, "__version__", "3.0")
        version._package_of.cache_clear()
        second = Code.of(["ldpcash.codec.polar"]).digest
        monkeypatch.undo()
        version._package_of.cache_clear()
        monkeypatch.setattr(sys, "version", "4.0")
        assert len({first, second, Code.of(["ldpcash.codec.polar"]).digest}) == 3


PROTOCOL = "from ldpcash import Cash\n{imports}\nclass Own(Cash):\n    pass\n"


class TestTheUsers:
    """A protocol of one's own, and what it imports, in files that have been there for long."""

    @pytest.fixture
    def folder(self, tmp_path, monkeypatch):
        before = set(sys.modules)
        monkeypatch.syspath_prepend(tmp_path)
        monkeypatch.setattr(version, "_last_change", lambda path: path.stat().st_mtime)
        yield tmp_path
        for name in {*sys.modules} - before:
            if name.partition(".")[0] in ("own", "helper", "pack", "thing", "mine"):
                del sys.modules[name]

    def test_its_file_counts(self, folder):
        write(folder / "own.py", PROTOCOL.format(imports=""))
        first = Code.of(["own"])
        assert first.traceable
        write(folder / "own.py", PROTOCOL.format(imports="# mended"))
        assert Code.of(["own"]).digest != first.digest
        write(folder / "own.py", PROTOCOL.format(imports=""))
        assert Code.of(["own"]).digest == first.digest

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
        assert Code.of(["own"]).digest != first.digest

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
        assert not Code.of(["own"]).traceable
        kinds = [importlib.import_module("own").Own]
        one, other = (version_of(kinds, Code.of(["ldpcash.codec.ml"])) for _ in range(2))
        assert one != other
        assert same_code(one, other)  # workers of a sweep are not refused for it

    @pytest.mark.parametrize("reading", ["open('f')", "np.load('f')", "os.environ['F']"])
    def test_nor_is_what_reads_something_else(self, folder, reading):
        lines = f"import os\nimport numpy as np\ndef factor():\n    return {reading}\n"
        write(folder / "own.py", PROTOCOL.format(imports=lines))
        assert Code.of(["own"]).reads

    def test_nor_is_a_file_that_may_not_be_what_was_imported(self, folder):
        write(folder / "own.py", PROTOCOL.format(imports="import helper"))
        (folder / "helper.py").write_text("CONSTANT = 1\n")  # now
        assert not Code.of(["own"]).traceable

    def test_not_even_if_it_has_an_old_date(self, folder, monkeypatch):
        """As copies have that keep the date: `cp -p`, `rsync -t`, `tar`."""
        write(folder / "own.py", PROTOCOL.format(imports=""))
        assert Code.of(["own"]).traceable
        monkeypatch.undo()
        monkeypatch.syspath_prepend(folder)
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
        assert Code.of(["own"]).digest != first.digest

    def test_to_look_at_a_module_does_not_run_its_package(self, folder):
        write(folder / "pack" / "__init__.py", "raise RuntimeError('needs a GPU')\n")
        write(folder / "pack" / "helper.py", "")
        late = "def late():\n    import pack.helper"
        write(folder / "own.py", PROTOCOL.format(imports=late))
        assert {"pack", "pack.helper"} <= Code.of(["own"]).modules.keys()

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
        write(info / "RECORD", "thing/__init__.py,sha256=one,13\nthing-1.0.dist-info/INSTALLER,,\n")
        version._package_of.cache_clear()  # as in another process
        assert Code.of(["own"]).digest == first.digest
        write(info / "RECORD", "thing/__init__.py,sha256=two,13\n")
        version._package_of.cache_clear()
        assert Code.of(["own"]).digest != first.digest
        (info / "RECORD").unlink()
        version._package_of.cache_clear()
        unknown = Code.of(["own"])
        assert not unknown.traceable
        assert unknown.digest == Code.of(["own"]).digest  # so workers agree


SCRIPT = """{first}
from ldpcash import PROTOCOLS
from ldpcash.simulation.trials import code_version
{own}
PROTOCOLS["Own"] = {kind}
print(code_version())
"""
HELPER = "FACTOR = {factor}\n"
USING = "{imports}\nfrom ldpcash import Cash\n\n\nclass Own(Cash):\n    factor = {value}\n"
PLAIN = USING.format(imports="", value=1)
OF_HELPER = USING.format(imports="import helper", value="helper.FACTOR")
MAIN = SCRIPT.format(first="", own="import own", kind="own.Own")
MAKE = "from ldpcash import Cash\ndef make(f):\n    return type('Own', (Cash,), {'factor': f})\n"


class TestAProgram:
    """A script, run twice: in between nothing changes but one number, wherever it stands."""

    @pytest.mark.parametrize(
        ("files", "command"),
        [
            ({"main.py": MAIN, "own.py": OF_HELPER, "helper.py": HELPER}, ["main.py"]),
            (
                {
                    "pack/__init__.py": "",
                    "pack/main.py": SCRIPT.format(
                        first="",
                        own=USING.format(imports="from .helper import FACTOR", value="FACTOR"),
                        kind="Own",
                    ),
                    "pack/helper.py": HELPER,
                },
                ["-m", "pack.main"],
            ),
            (
                {
                    "main.py": MAIN,
                    "own.py": USING.format(imports="import this", value="this.FACTOR"),
                    "this.py": HELPER,  # a name of the standard library's
                },
                ["main.py"],
            ),
            (
                {
                    "main.py": SCRIPT.format(
                        first="import sys\nsys.path.insert(0, 'helper.zip')",
                        own="import own",
                        kind="own.Own",
                    ),
                    "own.py": OF_HELPER,
                    "helper.zip": HELPER,
                },
                ["main.py"],
            ),
            (
                {
                    "main.py": SCRIPT.format(
                        first="", own="import own\nown.Own.factor = {factor}", kind="own.Own"
                    ),
                    "own.py": PLAIN,
                },
                ["main.py"],
            ),
            (
                {
                    "main.py": SCRIPT.format(first="", own="import own", kind="own.make({factor})"),
                    "own.py": MAKE,
                },
                ["main.py"],
            ),
            (
                {
                    "main.py": SCRIPT.format(
                        first="import sys",
                        own="import own\nown.Own.factor = sys.argv[1]",
                        kind="own.Own",
                    ),
                    "own.py": PLAIN,
                },
                ["main.py", "{factor}"],
            ),
            (
                {
                    "main.py": MAIN,
                    "own.py": USING.format(
                        imports="import builtins", value="builtins.__import__('helper').FACTOR"
                    ),
                    "helper.py": HELPER,
                },
                ["main.py"],
            ),
            (
                {
                    "main.py": SCRIPT.format(
                        first="import own, base",
                        own="",
                        kind="type('Own', (own.Mixin, base.Own), {{}})",
                    ),
                    "base.py": OF_HELPER,
                    "own.py": "class Mixin:\n    pass\n",
                    "helper.py": HELPER,
                },
                ["main.py"],
            ),
        ],
        ids=["plain", "-m", "shadow", "zip", "patched", "made", "argument", "import", "mixed"],
    )
    def test_another_number_is_another_version(self, tmp_path, files, command, request):
        versions = []
        for factor in ("1.0", "3.0"):
            for name, text in files.items():
                changed = text.replace("{factor}", factor).replace("{{}}", "{}")
                if name.endswith(".zip"):
                    with zipfile.ZipFile(tmp_path / name, "w") as archive:
                        archive.writestr("helper.py", changed)
                else:
                    write(tmp_path / name, changed)
            time.sleep(0.1)  # so that files are older than the process, for certain
            changed = [part.replace("{factor}", factor) for part in command]
            versions.append(run(tmp_path, *changed).split("-"))
        assert versions[0] != versions[1]
        followed = request.node.callspec.id in ("plain", "-m", "shadow", "patched", "argument")
        assert {len(parts) for parts in versions} == {2 if followed else 3}


def test_a_changed_helper_is_not_answered_with_old_results(tmp_path):
    """The whole way: a sweep, a helper's constant changed, the same sweep again."""
    write(
        tmp_path / "own.py",
        "import helper\nfrom ldpcash import Cash\n\nclass Own(Cash):\n"
        "    def __init__(self, code, epsilon, decoder=None):\n"
        "        super().__init__(code, epsilon, decoder=decoder)\n"
        "        self.sigma *= helper.FACTOR\n",
    )
    write(
        tmp_path / "main.py",
        "from ldpcash import PROTOCOLS, Point, sweep\nimport own\nPROTOCOLS['Own'] = own.Own\n"
        "point = Point(protocol='Own', epsilon=2.0, frequency=0.6, clients=1000)\n"
        "[row] = sweep([point], 1, max_trials=3000, workers=1, store='results')\n"
        "print(row.errors)\n",
    )
    errors, stored = [], []
    for factor in (1.0, 2.0, 1.0, 1.0):
        write(tmp_path / "helper.py", f"FACTOR = {factor}\n")
        time.sleep(0.1)  # so that the file is older than the process, for certain
        errors.append(int(run(tmp_path, "main.py")))
        chunks = sorted((tmp_path / "results").glob("*/*.json"))
        stored.append([chunk.stat().st_mtime_ns for chunk in chunks])
    assert errors[0] == errors[2] == errors[3]
    assert errors[1] > 100 + errors[0]
    assert stored[2] == stored[3]  # the same once more is found, and not computed


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
    assert run(tmp_path, "-c", script) == "3000"
