import os
from pathlib import Path

import pytest

from penstock.runtime import files
from penstock.runtime.files import OsDisk, write_atomically


def test_a_short_write_is_completed(disk: OsDisk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = disk.open(str(tmp_path / "x"), create=True)
    monkeypatch.setattr(files, "_write", lambda fd, data: os.write(fd, bytes(data)[:3]))
    file.append(memoryview(b"0123456789"))
    assert file.read_at(0, 100) == b"0123456789"
    assert file.size == 10


def test_a_failed_append_leaves_the_file_as_it_was(
    disk: OsDisk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = disk.open(str(tmp_path / "x"), create=True)
    file.append(b"before")
    calls = []

    def fail_halfway(fd: int, data: bytes) -> int:
        calls.append(data)
        if len(calls) > 1:
            raise OSError(28, "No space left on device")
        return os.write(fd, bytes(data)[:3])

    monkeypatch.setattr(files, "_write", fail_halfway)
    with pytest.raises(OSError, match="No space"):
        file.append(b"after")
    assert file.read_at(0, 100) == b"before"
    assert file.size == 6


def test_half_an_append_that_could_not_be_taken_off_is_so_before_the_next_one(
    disk: OsDisk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = disk.open(str(tmp_path / "x"), create=True)
    file.append(b"before")

    def fail(*_: object) -> int:
        raise OSError(5, "Input/output error")

    def write_half_and_fail(fd: int, data: bytes) -> int:
        os.write(fd, bytes(data)[:3])
        return fail()

    with monkeypatch.context() as patch:
        patch.setattr(files, "_write", write_half_and_fail)
        patch.setattr(os, "ftruncate", fail)
        with pytest.raises(OSError, match="Input/output"):
            file.append(b"after")
    file.append(b"later")
    assert file.read_at(0, 100) == b"beforelater"
    assert file.size == 11


def test_a_file_is_readable_until_its_last_reference_goes(disk: OsDisk, tmp_path: Path) -> None:
    file = disk.open(str(tmp_path / "x"), create=True)
    file.append(b"data")
    disk.delete(str(tmp_path / "x"))
    fd = file.fileno()
    assert file.read_at(1, 2) == b"at"
    del file
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(fd)


def test_a_lock_is_exclusive(disk: OsDisk, tmp_path: Path) -> None:
    lock = disk.lock(str(tmp_path / ".lock"))
    with pytest.raises(BlockingIOError):
        disk.lock(str(tmp_path / ".lock"))
    lock.close()
    disk.lock(str(tmp_path / ".lock")).close()


def test_a_tree_is_deleted_with_all_in_it(disk: OsDisk, tmp_path: Path) -> None:
    disk.make_directory(str(tmp_path / "a" / "b"))
    disk.write(str(tmp_path / "a" / "b" / "c"), b"x", sync=True)
    disk.delete_tree(str(tmp_path / "a"))
    disk.delete_tree(str(tmp_path / "a"))
    assert not disk.exists(str(tmp_path / "a"))


def test_an_atomic_write_leaves_nothing_aside(disk: OsDisk, tmp_path: Path) -> None:
    write_atomically(disk, str(tmp_path / "x"), b"one", sync=True)
    write_atomically(disk, str(tmp_path / "x"), b"two")
    assert disk.list_files(str(tmp_path)) == [("x", 3)]
    assert disk.size(str(tmp_path / "x")) == 3
