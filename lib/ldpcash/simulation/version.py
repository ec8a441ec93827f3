"""Which code a stored result hangs on: a hash, so that no result of other code is ever found again.

What a chunk of trials depends on is the code that simulates it: the protocol, the decoder, and
every module that one of them imports, directly or not. Imports are read off the source::

    a module's file -> its imports, wherever they stand -> files of ours and the user's -> and so on
                                                        -> installed packages, as installed

What cannot be followed counts as changed: a class without a file, such as one of a notebook; a
module that calls ``exec`` or imports ``importlib``; a file that changed after this process had
started, and may not be what was imported. Results that hang on such code are stored and never found
again. What a protocol reads while it runs, such as a data file or the environment, nobody can
follow: make it an option of the protocol, which is a parameter of its points.
"""

from __future__ import annotations

import ast
import hashlib
import importlib.util
import os
import secrets
import sys
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib import metadata
from pathlib import Path

OURS = __name__.partition(".")[0]
_SAME_BY_VERSION = ("numpy", "scipy")  # other packages may change without a new version
_UNTRACEABLE = {"exec", "eval", "__import__", "importlib", "runpy"}


@dataclass(frozen=True)
class Code:
    """Modules, by name, with a hash of the content of each; and whether that is all there is.

    >>> polar = Code.of(["ldpcash.codec.polar"])
    >>> "ldpcash.codec.construction" in polar.modules, "ldpcash.codec.scl" in polar.modules
    (True, False)
    """

    modules: dict[str, str]
    traceable: bool

    @classmethod
    def of(cls, modules: Iterable[str]) -> Code:
        """Some modules, by name, and all that they import."""
        found: dict[str, str] = {}
        waiting = [(name, True) for name in modules]
        roots, followed, traceable = {name for name, _ in waiting}, set(), True
        while waiting:
            name, follow = waiting.pop()
            top = name.partition(".")[0]
            if name in followed or (top in sys.stdlib_module_names and top != "__main__"):
                continue
            if (home := _file_of(top)) and (package := _package_of(top, home)):
                found[top] = package
                continue
            path = _file_of(name)
            if path is None:
                found[name] = "nowhere"  # optional, or what is imported from a module
                traceable &= name not in roots
                continue
            source = _parsed(path.read_bytes(), name, path.name)
            found[name] = source.content
            if top != OURS:
                traceable &= source.traceable and path.stat().st_mtime < _process_start()
            if follow:
                followed.add(name)
                waiting += [(other, True) for other in source.imports]
            # To import a module runs the packages around it. Ours hand on names and do no more.
            if "." in name:
                waiting.append((name.rpartition(".")[0], top != OURS))
        return cls(found, traceable)

    def __or__(self, other: Code) -> Code:
        """Both; where they have the same module, as it is here."""
        return Code({**other.modules, **self.modules}, self.traceable and other.traceable)

    @property
    def version(self) -> str:
        """A name for it: 32 digits, and if it is not all there is, a part that never comes again.

        >>> polar = Code.of(["ldpcash.codec.polar"])
        >>> polar.version == Code.of(["ldpcash.codec.polar"]).version
        True
        """
        digest = hashlib.sha256(sys.version.encode())
        for name, content in sorted(self.modules.items()):
            digest.update(f"{name}\0{content}\0".encode())
        once = "" if self.traceable else f"-{secrets.token_hex(8)}"
        return digest.hexdigest()[:32] + once


def same_code(one: str, other: str) -> bool:
    """Whether two versions agree in all that can be told.

    >>> same_code("0123", "0123-abcd"), same_code("0123", "4567")
    (True, False)
    """
    return one.partition("-")[0] == other.partition("-")[0]


@dataclass(frozen=True)
class _Source:
    content: str  # a hash
    imports: tuple[str, ...]  # names, some of which may be no modules
    traceable: bool


@cache
def _parsed(raw: bytes, name: str, file: str) -> _Source:
    """What a module's file says."""
    content = hashlib.sha256(raw).hexdigest()
    if not file.endswith(".py"):  # compiled: what it imports cannot be seen
        return _Source(content, (), False)
    nodes = list(ast.walk(ast.parse(raw)))
    imports = tuple(_imports(nodes, name, file == "__init__.py"))
    used = {node.id for node in nodes if isinstance(node, ast.Name)}
    used |= {other.partition(".")[0] for other in imports}
    return _Source(content, imports, not used & _UNTRACEABLE)


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


def _file_of(name: str) -> Path | None:
    """The file of a module; None if it has none, or is no module."""
    path = getattr(sys.modules.get(name), "__file__", None)
    if path is None and name not in sys.modules:
        try:
            spec = importlib.util.find_spec(name)
        except (ImportError, AttributeError, ValueError):
            return None
        path = spec.origin if spec and spec.has_location else None
    return Path(path) if path and Path(path).is_file() else None


@cache
def _package_of(top: str, path: Path) -> str | None:
    """What an installed package is known by; None for a module that was not installed."""
    if not {"site-packages", "dist-packages"} & {*path.parts}:
        return None
    names = [top] if top in _SAME_BY_VERSION else metadata.packages_distributions().get(top, [])
    if not names:
        return None
    known = []
    for name in sorted(names):
        version = getattr(sys.modules.get(top), "__version__", metadata.version(name))
        known.append(f"{name} {version}")
        if name not in _SAME_BY_VERSION:
            known.append(metadata.distribution(name).read_text("RECORD") or secrets.token_hex(8))
    return hashlib.sha256("\n".join(known).encode()).hexdigest()


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
