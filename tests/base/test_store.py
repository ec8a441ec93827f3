"""The store: whole files or none, and never a wrong number out of a damaged one."""

import os
import resource
import subprocess
import sys

import pytest

import ldpcash.base.store
from ldpcash.base.store import DamagedError, Store, home_folder, result_folder, write_whole

ABOUT = {"code": "v1", "seed": 3, "epsilon": 0.1}
RESULT = {"errors": 12, "off": 0.1 + 0.2}


@pytest.fixture
def store(tmp_path):
    store = Store(tmp_path / "results")
    store.save("point/chunk", ABOUT, RESULT)
    return store


def test_what_is_saved_comes_back_to_the_last_bit(store):
    assert store.load("point/chunk", ABOUT) == RESULT
    assert list(store.names("point")) == ["point/chunk"]
    assert list(store.names("another")) == []


@pytest.mark.parametrize(
    "about", [{**ABOUT, "code": "v2"}, {**ABOUT, "epsilon": 0.1 + 1e-16 + 1e-17}, {}]
)
def test_nothing_is_used_for_something_else(store, about):
    assert about != ABOUT
    assert store.load("point/chunk", about) is None


def test_no_flipped_bit_gives_another_result(store):
    path = store.folder / "point" / "chunk.json"
    content = path.read_bytes()
    survived = 0
    for position in range(len(content)):
        for bit in range(8):
            damaged = bytearray(content)
            damaged[position] ^= 1 << bit
            path.write_bytes(damaged)
            try:
                assert store.load("point/chunk", ABOUT) == RESULT
                survived += 1  # one blank for another
            except DamagedError:
                pass
    assert survived < 0.02 * 8 * len(content)


def test_no_truncated_file_is_used(store):
    path = store.folder / "point" / "chunk.json"
    content = path.read_bytes()
    for length in range(len(content) - 1):  # the last byte is a line's end
        path.write_bytes(content[:length])
        with pytest.raises(DamagedError, match="damaged"):
            store.load("point/chunk", ABOUT)


@pytest.mark.parametrize("content", [b"[]", b"null", b'"text"', b"{}", b'{"sha256": 1}', b"\xff"])
def test_nor_one_that_holds_something_else(store, content):
    (store.folder / "point" / "chunk.json").write_bytes(content)
    with pytest.raises(DamagedError, match="damaged"):
        store.load("point/chunk", ABOUT)


def test_a_folder_that_cannot_be_written_to_is_one_clear_error(tmp_path):
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(ValueError, match=r"store = '.*file/results': .* cannot be written to: Not"):
        Store(tmp_path / "file" / "results")


def test_writing_leaves_the_old_file_until_the_new_one_is_whole(tmp_path):
    """With a real limit on file sizes: the system refuses the write, as it does on a full disk."""
    path = tmp_path / "file"
    path.write_bytes(b"old")
    script = (
        "import resource, sys\nfrom pathlib import Path\n"
        "from ldpcash.base.store import write_whole\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))\n"
        "write_whole(Path(sys.argv[1]), bytes(101))"
    )
    assert resource.getrlimit(resource.RLIMIT_FSIZE)[0] == resource.RLIM_INFINITY
    result = subprocess.run([sys.executable, "-c", script, path], capture_output=True, text=True)
    assert "OSError: [Errno 27] File too large" in result.stderr
    assert path.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["file"]
    write_whole(path, b"new")
    assert path.read_bytes() == b"new"


def test_results_are_kept_where_the_environment_says(monkeypatch, tmp_path):
    monkeypatch.setenv("LDPCASH_RESULTS", str(tmp_path))
    assert result_folder() == tmp_path
    monkeypatch.delenv("LDPCASH_RESULTS")
    assert result_folder().parts[-2:] == ("build", "results")


def test_a_copy_without_a_repository_uses_the_current_folder(tmp_path, monkeypatch):
    """As after `pip install`, where modules lie far from any pyproject.toml."""
    assert (home_folder() / "pyproject.toml").is_file()
    monkeypatch.setattr(
        ldpcash.base.store, "__file__", str(tmp_path / "a" / "b" / "c" / "d" / "e.py")
    )
    monkeypatch.chdir(tmp_path)
    assert home_folder() == tmp_path


def test_others_may_read_it_unless_they_may_not(tmp_path):
    before = os.umask(0o022)
    try:
        write_whole(tmp_path / "open", b"")
        write_whole(tmp_path / "closed", b"", mode=0o600)
    finally:
        os.umask(before)
    assert [os.stat(tmp_path / name).st_mode & 0o777 for name in ("open", "closed")] == [
        0o644, 0o600]  # fmt: skip


def test_what_is_lasting_is_on_the_disk_before_it_takes_its_place(tmp_path, monkeypatch):
    path, steps = tmp_path / "file", []
    path.write_bytes(b"old")
    monkeypatch.setattr(os, "fsync", lambda number: steps.append(path.read_bytes()))
    write_whole(path, b"new", lasting=True)
    assert steps == [b"old"]
    assert path.read_bytes() == b"new"
    write_whole(path, b"newer")
    assert len(steps) == 1
