import os
from pathlib import Path

import pytest

from penstock.runtime.files import OsDisk
from penstock.runtime.page_cache import NotInMemory, memory_only

SIZE = 3 * 1024 * 1024


def cold_file(path: Path) -> None:
    path.write_bytes(os.urandom(SIZE))
    fd = os.open(path, os.O_RDONLY)
    os.fsync(fd)
    os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
    os.close(fd)


def test_what_is_not_in_memory_is_not_waited_for(tmp_path: Path) -> None:
    path = tmp_path / "file"
    cold_file(path)
    disk = OsDisk()
    file = disk.open(str(path))
    if not file.is_cold(0, SIZE):
        pytest.skip("the file system of the tests cannot tell, or has no disk below it")
    with pytest.raises(NotInMemory) as missing, memory_only:
        file.read_at(SIZE - 5000, 5000)
    missing.value.load()
    file.load(0, 2 * SIZE)
    assert not file.is_cold(0, SIZE)
    with memory_only:
        found = file.read_at(SIZE - 5000, 9000)
    assert found == path.read_bytes()[-5000:]


def test_outside_of_it_a_read_waits(tmp_path: Path) -> None:
    path = tmp_path / "file"
    cold_file(path)
    with memory_only:
        pass
    assert len(OsDisk().open(str(path)).read_at(0, SIZE)) == SIZE


def test_the_end_of_a_file_is_no_missing_page(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"abc")
    with memory_only:
        assert OsDisk().open(str(path)).read_at(1, 10) == b"bc"
        assert OsDisk().open(str(path)).read_at(7, 10) == b""
        assert OsDisk().read(str(path)) == b"abc"
