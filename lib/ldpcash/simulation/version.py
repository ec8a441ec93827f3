"""Which code a stored result hangs on: a hash, so that no result of other code is ever found again.

What a chunk of trials depends on is the code that simulates it: the protocol, the decoder, and
every module that one of them imports, directly or not. Imports are read off the source::

    a module's file -> its imports, wherever they stand -> files of ours and the user's -> and so on
                                                        -> installed packages, as installed

That is all as long as protocols and decoders are this library's. As soon as one is the user's, so
is the program around it, which may change anything: then all modules count that are loaded from the
user's own files, and the script with its arguments.

What cannot be followed counts as changed: a class made in a function, or in a notebook; a module
that calls ``exec``, imports ``importlib`` or opens files; one without a file; and a file that
changed after this process had started, and may not be what was imported. Results that hang on such
code are stored and never found again.
"""

from __future__ import annotations

import ast
import hashlib
import os
import secrets
import sys
import sysconfig
import time
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field
from functools import cache, lru_cache
from importlib import metadata
from importlib.machinery import ModuleSpec
from pathlib import Path
from typing import Any

OURS = __name__.partition(".")[0]
_SAME_BY_VERSION = ("numpy", "scipy")  # other packages may change without a new version
_UNTRACEABLE = {"exec", "eval", "__import__", "importlib", "pkgutil", "runpy", "ctypes"}
_READING = {"open", "read_text", "read_bytes", "load", "loadtxt", "genfromtxt", "fromfile"}
_READING |= {"environ", "getenv"}


@dataclass(frozen=True)
class Code:
    """Modules, by name, with a hash of the content of each; whether these are all there are, and
    whether one of the user's reads what is no module.

    >>> polar = Code.of(["ldpcash.codec.polar"])
    >>> "ldpcash.codec.construction" in polar.modules, "ldpcash.codec.scl" in polar.modules
    (True, False)
    """

    modules: dict[str, str] = field(default_factory=dict)
    traceable: bool = True
    reads: bool = False

    @classmethod
    def of(cls, modules: Iterable[str], known: Code | None = None) -> Code:
        """Some modules, by name, and all that they import.

        Args:
            modules: names. One that is not there, such as that of a notebook, cannot be followed.
            known: code that is as it was imported, and is part of the result. The files of all
                other code have to be older than this process, or nobody knows what was imported.
        """
        found = dict(known.modules) if known else {}
        waiting = [(name, True) for name in modules]
        roots, followed = {name for name, _ in waiting}, {*found}
        traceable, reads = True, False
        while waiting:
            name, follow = waiting.pop()
            if name in followed or _is_standard(name):
                continue
            top = name.partition(".")[0]
            home = _file_of(top)
            if top != OURS and home and _is_installed(home):
                found[top], known_by = _package_of(top)
                traceable &= known_by
                continue
            path = _file_of(name)
            if path is None:  # optional, or what is imported from a module, or folders of modules
                found[name] = "nowhere"
                traceable &= not _is_unseen(name) and (name not in roots or _is_folder(name))
                continue
            source = _parsed(path.read_bytes(), _full_name(name), path.name)
            found[name] = source.content
            if top != OURS:
                traceable &= source.traceable
                reads |= source.reads
            if known or top != OURS:
                traceable &= _last_change(path) < _process_start()
            if follow:
                followed.add(name)
                waiting += [(other, True) for other in source.imports]
            # To import a module runs the packages around it. Ours hand on names and do no more.
            if "." in name:
                waiting.append((name.rpartition(".")[0], top != OURS))
        return cls(found, traceable and (known is None or known.traceable), reads)

    @property
    def digest(self) -> str:
        """32 digits for all of it.

        >>> len(Code.of(["ldpcash.codec.polar"]).digest)
        32
        """
        digest = hashlib.sha256(sys.version.encode())
        for name, content in sorted(self.modules.items()):
            digest.update(f"{name}\0{content}\0".encode())
        return digest.hexdigest()[:32]


def version_of(kinds: Collection[Any], known: Code) -> str:
    """A name for the code that classes hang on.

    It is 32 digits. If a class is the user's, 32 more for all that is around it follow; and if that
    is not all there is, a part that never comes again.

    Args:
        kinds: the classes of protocols and decoders.
        known: this library's own code, as it was imported.

    >>> known = Code.of(["ldpcash.codec.polar"])
    >>> version_of([], known) == known.digest
    True
    """
    bases = [base for kind in kinds for base in getattr(kind, "__mro__", [kind])]
    homes = {base.__module__ for base in bases if not _is_standard(base.__module__)}
    users = {name for name in homes if name.partition(".")[0] != OURS}
    if homes - users - known.modules.keys():  # of the annex
        known = Code.of(homes - users, known)
    hidden = not all(_is_where_it_says(base) for base in bases)
    if not users and not hidden:
        return known.digest + _never_again(not known.traceable)
    theirs = Code.of(users, known)
    around = Code.of(users | {*_loaded()}, known)
    everything = hashlib.sha256(f"{around.digest}\0{sys.argv[1:]}".encode()).hexdigest()[:32]
    more = theirs.reads or hidden or not around.traceable
    return f"{theirs.digest}-{everything}" + _never_again(more)


def _is_where_it_says(kind: Any) -> bool:
    """Whether a class is what its module has under its name, and not one made in a function."""
    there: Any = sys.modules.get(kind.__module__)
    for name in getattr(kind, "__qualname__", "").split("."):
        there = getattr(there, name, None)
    return there is kind


def _never_again(needed: bool) -> str:
    return f"-{secrets.token_hex(8)}" if needed else ""


def same_code(one: str, other: str) -> bool:
    """Whether two versions agree in the classes themselves, and all that these import.

    What is around them is of no interest to a worker, whose program is another.

    >>> same_code("0123", "0123-abcd"), same_code("0123", "4567")
    (True, False)
    """
    return one.partition("-")[0] == other.partition("-")[0]


@dataclass(frozen=True)
class _Source:
    content: str  # a hash
    imports: tuple[str, ...] = ()  # names, some of which may be no modules
    traceable: bool = True
    reads: bool = False


@cache
def _parsed(raw: bytes, name: str, file: str) -> _Source:
    """What a module's file says."""
    content = hashlib.sha256(raw).hexdigest()
    if not file.endswith(".py"):  # compiled: what it imports cannot be seen
        return _Source(content, traceable=False)
    nodes = list(ast.walk(ast.parse(raw)))
    imports = tuple(_imports(nodes, name, file == "__init__.py"))
    used = {node.id for node in nodes if isinstance(node, ast.Name)}
    used |= {node.attr for node in nodes if isinstance(node, ast.Attribute)}
    used |= {part for other in imports for part in other.split(".")}
    return _Source(content, imports, not used & _UNTRACEABLE, bool(used & _READING))


def _imports(nodes: list[ast.AST], name: str, is_package: bool) -> Iterator[str]:
    """All that a module's source imports; of ``from a import b``, a, and a.b in case it is one."""
    for node in nodes:
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            around = name.split(".")[: len(name.split(".")) + is_package - node.level]
            base = ".".join([*(around if node.level else []), *filter(None, [node.module])])
            yield base
            yield from (f"{base}.{alias.name}" for alias in node.names)


# Where modules are, found without importing any


def _full_name(name: str) -> str:
    """What imports are relative to: `python -m pack.main` calls pack.main "__main__"."""
    package = getattr(sys.modules.get(name), "__package__", None)
    return f"{package}.{name}" if name == "__main__" and package else name


def _spec_of(name: str) -> ModuleSpec | None:
    """What would be imported, if anything; the packages around it are not run for that."""
    around = name.rpartition(".")[0]
    path: Any = None
    if around in sys.modules:
        path = getattr(sys.modules[around], "__path__", None)
    elif around:
        path = getattr(_spec_of(around), "submodule_search_locations", None)
    if around and path is None:  # what is around it is no package
        return None
    found = (finder.find_spec(name, path) for finder in sys.meta_path)
    return next((spec for spec in found if spec), None)


def _file_of(name: str) -> Path | None:
    """The file of a module; None if it has none, or is no module."""
    if name in sys.modules:
        path = getattr(sys.modules[name], "__file__", None)
    else:
        spec = _spec_of(name)
        path = spec.origin if spec and spec.has_location else None
    return Path(path) if path and Path(path).is_file() else None


def _is_folder(name: str) -> bool:
    """Whether this is a package without a file, which only holds others."""
    there = sys.modules.get(name) or _spec_of(name)
    paths = ("__path__", "submodule_search_locations")
    return any(getattr(there, path, None) is not None for path in paths)


def _is_unseen(name: str) -> bool:
    """Whether this is a module whose source is out of sight, such as one in a zip file."""
    return (name in sys.modules or _spec_of(name) is not None) and not _is_folder(name)


def _is_standard(name: str) -> bool:
    """Whether a module is Python's own, and not the user's of the same name."""
    top = name.partition(".")[0]
    if top not in sys.stdlib_module_names or top == "__main__":
        return False
    path = _file_of(top)
    return path is None or (path.is_relative_to(_STANDARD) and not _is_installed(path))


def _is_installed(path: Path) -> bool:
    return bool({"site-packages", "dist-packages"} & {*path.parts})


def _loaded() -> Iterator[str]:
    """All modules that are the user's, by name; not those that code made, which is code enough."""
    for name, module in [*sys.modules.items()]:
        made = name != "__main__" and getattr(module, "__spec__", None) is None
        top = name.partition(".")[0]
        home = _file_of(top)
        theirs = top != OURS and not _is_standard(name) and not (home and _is_installed(home))
        if theirs and not made:
            yield name


@cache
def _package_of(top: str) -> tuple[str, bool]:
    """What an installed package is known by, and whether that tells all of it."""
    known, complete = [], True
    own = metadata.packages_distributions().get(top, [])
    for name in sorted({*own}):
        version = getattr(sys.modules.get(top), "__version__", metadata.version(name))
        known.append(f"{name} {version}")
        if top not in _SAME_BY_VERSION:
            record = metadata.distribution(name).read_text("RECORD") or ""
            code = [line for line in record.splitlines() if line.split(",")[0].endswith(_CODE)]
            known, complete = known + sorted(code), complete and bool(code)
    return hashlib.sha256("\n".join(known).encode()).hexdigest(), complete and bool(own)


def _last_change(path: Path) -> float:
    status = path.stat()
    return max(status.st_mtime, status.st_ctime)


@lru_cache(maxsize=1)
def _process_start() -> float:
    """When this process started, or at the latest: files that are older are what was imported."""
    try:
        ticks = int(Path("/proc/self/stat").read_text().rpartition(")")[2].split()[19])
        up = float(Path("/proc/uptime").read_text().split()[0])
        return min(_IMPORTED, time.time() - up + ticks / os.sysconf("SC_CLK_TCK"))
    except (OSError, ValueError):  # not on Linux
        return _IMPORTED


_IMPORTED = time.time()
_STANDARD = Path(sysconfig.get_path("stdlib"))
_CODE = (".py", ".so", ".pyd")
