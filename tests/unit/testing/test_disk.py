"""The disk in memory: it does what the real one does, and forgets what a real one may."""

import errno
from pathlib import Path
from random import Random

import pytest

from penstock.runtime.files import Disk, OsDisk, write_atomically
from penstock.testing.disk import MemoryDisk, Operation, PowerCut


@pytest.fixture(params=["memory", "os"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[Disk, str]:
    if request.param == "os":
        return OsDisk(), str(tmp_path)
    disk = MemoryDisk()
    disk.make_directory("/data")
    return disk, "/data"


def filled(disk: MemoryDisk, path: str = "/data/a", data: bytes = b"abcd") -> None:
    disk.make_directory("/data")
    disk.sync_directory("/")
    disk.write(path, data, sync=True)
    disk.sync_directory("/data")


def test_it_behaves_as_the_real_one(place: tuple[Disk, str]) -> None:
    disk, root = place
    disk.make_directory(f"{root}/x/y")
    disk.make_directory(f"{root}/x/y")
    file = disk.open(f"{root}/x/a", create=True)
    file.append(b"hello")
    file.append(memoryview(b" world"))
    assert (file.size, file.read_at(6, 100), disk.read(f"{root}/x/a")) == (11, b"world", b"hello world")
    file.truncate(5)
    disk.open(f"{root}/x/a").append(b"!")
    assert disk.size(f"{root}/x/a") == 6
    disk.replace(f"{root}/x/a", f"{root}/x/b")
    assert not disk.exists(f"{root}/x/a")
    assert disk.list_files(f"{root}/x") == [("b", 6)]
    assert disk.list_directories(f"{root}/x") == ["y"]
    disk.delete(f"{root}/x/b")
    disk.delete(f"{root}/x/b")
    assert file.read_at(0, 10) == b"hello!"
    write_atomically(disk, f"{root}/x/c", b"1", sync=True)
    disk.sync_file(f"{root}/x/c")
    disk.sync_directory(f"{root}/x")
    disk.delete_tree(f"{root}/x")
    disk.delete_tree(f"{root}/x")
    assert disk.list_directories(root) == []


def test_it_refuses_what_the_real_one_refuses(place: tuple[Disk, str]) -> None:
    disk, root = place
    disk.make_directory(f"{root}/full/inside")
    disk.make_directory(f"{root}/other")
    for missing in (disk.read, disk.open, disk.size, disk.list_files, disk.sync_file, disk.sync_directory):
        with pytest.raises(FileNotFoundError):
            missing(f"{root}/none")
    with pytest.raises(FileNotFoundError):
        disk.write(f"{root}/none/a", b"")
    with pytest.raises(FileNotFoundError):
        disk.replace(f"{root}/none", f"{root}/some")
    with pytest.raises(OSError, match="not empty"):
        disk.replace(f"{root}/other", f"{root}/full")
    held = disk.lock(f"{root}/.lock")
    with pytest.raises(BlockingIOError):
        disk.lock(f"{root}/.lock")
    held.close()
    disk.lock(f"{root}/.lock").close()


def test_bytes_that_were_not_synced_are_gone_after_a_power_failure_but_not_after_a_kill() -> None:
    disk = MemoryDisk()
    filled(disk)
    disk.open("/data/a").append(b"ef")
    assert disk.crash().read("/data/a") == b"abcd"
    assert disk.crash(keep="everything").read("/data/a") == b"abcdef"
    assert disk.kill().read("/data/a") == b"abcdef"
    assert disk.kill().crash().read("/data/a") == b"abcd"


def test_a_name_lasts_when_its_directory_was_synced() -> None:
    disk = MemoryDisk()
    filled(disk)
    disk.write("/data/b", b"new", sync=True)
    disk.replace("/data/b", "/data/a")
    assert disk.crash().read("/data/a") == b"abcd"
    assert not disk.crash().exists("/data/b")
    disk.sync_directory("/data")
    assert disk.crash().read("/data/a") == b"new"
    disk.delete("/data/a")
    assert disk.crash().exists("/data/a")
    assert not disk.kill().exists("/data/a")


def test_some_pages_may_be_there_and_others_zeros() -> None:
    disk = MemoryDisk(page_bytes=2)
    filled(disk)
    disk.open("/data/a").append(b"efgh")
    seen = {disk.crash(keep=Random(seed)).read("/data/a") for seed in range(50)}
    assert seen == {b"abcd", b"abcdef", b"abcd\0\0gh", b"abcdefgh"}
    assert disk.crash(keep=Random(3)).read("/data/a") == disk.crash(keep=Random(3)).read("/data/a")


def test_names_are_kept_in_order_unless_told_otherwise() -> None:
    disk = MemoryDisk()
    filled(disk)
    for name in "xy":
        disk.write(f"/data/{name}", b"")

    def seen(*, ordered: bool) -> set[str]:
        crashed = [disk.crash(keep=Random(seed), ordered=ordered) for seed in range(50)]
        return {"".join(sorted(name for name, _ in one.list_files("/data"))) for one in crashed}

    assert seen(ordered=True) == {"a", "ax", "axy"}
    assert seen(ordered=False) == {"a", "ax", "ay", "axy"}


def test_the_power_goes_for_good_and_a_write_may_be_torn() -> None:
    for tear, expected in ((False, b"abcd"), (True, b"abcdef")):
        disk = MemoryDisk()
        filled(disk)
        disk.stop_after(0, tear=tear)
        with pytest.raises(PowerCut):
            disk.open("/data/a").append(b"efgh")
        with pytest.raises(PowerCut):
            disk.read("/data/a")
        assert disk.kill().read("/data/a") == expected


def test_it_fails_when_told_to() -> None:
    disk = MemoryDisk()
    filled(disk)
    disk.fail("append", errno.ENOSPC, path="*/a", skip=1, times=1)
    file = disk.open("/data/a")
    file.append(b"e")
    with pytest.raises(OSError, match="No space") as caught:
        file.append(b"f")
    assert caught.value.errno == errno.ENOSPC
    file.append(b"g")
    assert disk.read("/data/a") == b"abcdeg"
    disk.fail("*")
    with pytest.raises(OSError, match="Input/output error"):
        disk.list_files("/data")
    disk.heal()
    disk.fail("write", written_bytes=2)
    with pytest.raises(OSError, match="Input/output error"):
        disk.write("/data/b", b"xyz")
    assert disk.read("/data/b") == b"xy"


def test_it_tells_what_was_asked_of_it() -> None:
    disk = MemoryDisk()
    filled(disk)
    disk.trace = []
    disk.read("/data/a")
    disk.open("/data/a").append(b"e")
    assert disk.trace == [
        Operation("read", "/data/a", 4),
        Operation("open", "/data/a"),
        Operation("append", "/data/a", 1),
    ]
