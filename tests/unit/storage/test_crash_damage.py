"""Files that are missing, empty, short or full of nonsense; every byte of the last batch; a directory copied while in use."""

from collections.abc import Callable

import pytest

from penstock.storage.log_directory import LogDirectory
from penstock.storage.meta_properties import LogDirectoryError
from penstock.testing.disk import MemoryDisk
from tests.unit.storage.batches import StillClock
from tests.unit.storage.crash_life import ORDERS, PATH, Life, batches_of, check_log, reopened

LOG_PATH = f"{PATH}/{ORDERS}"

DAMAGES: dict[str, Callable[[bytes], bytes | None]] = {
    "missing": lambda data: None,
    "empty": lambda data: b"",
    "short": lambda data: data[: len(data) // 2],
    "one byte short": lambda data: data[:-1],
    "zeros": lambda data: bytes(len(data)),
    "corrupt": lambda data: bytes(byte ^ 0xA5 for byte in data),
    "longer": lambda data: data + b"\xff" * 7,
}


def lived(*, clean: bool) -> Life:
    life = Life(MemoryDisk())
    life.run()
    if not clean:
        life.open()
        life.append(5, epoch=5)
    return life


LIVED = {clean: lived(clean=clean) for clean in (True, False)}
SIDE_FILES = sorted(
    {f"{ORDERS}/{name}" for name, _ in LIVED[True].disk.list_files(LOG_PATH) if not name.endswith(".log")}
    | {name for name, _ in LIVED[True].disk.list_files(PATH) if name not in (".lock", ".kafka_cleanshutdown")}
)


def damage(disk: MemoryDisk, path: str, how: str) -> None:
    data = DAMAGES[how](disk.read(path))
    if data is None:
        disk.delete(path)
    else:
        disk.write(path, data)


@pytest.mark.parametrize("how", DAMAGES)
@pytest.mark.parametrize("clean", [True, False])
def test_no_damage_to_a_file_beside_the_log_loses_a_record(clean: bool, how: str) -> None:
    life = LIVED[clean]
    for name in SIDE_FILES:
        disk = life.disk.kill()
        if not disk.exists(f"{PATH}/{name}"):
            continue
        damage(disk, f"{PATH}/{name}", how)
        try:
            _, log = reopened(disk)
            assert batches_of(log) == batches_of(life.log)
            assert log.end_offset == life.log.end_offset
            check_log(log)
        except LogDirectoryError:
            assert name == "meta.properties"
        except Exception as error:
            raise AssertionError(f"{name} was {how}") from error


@pytest.mark.parametrize("how", DAMAGES)
def test_all_files_beside_the_log_may_be_damaged_at_once(how: str) -> None:
    for life in LIVED.values():
        disk = life.disk.kill()
        for name in SIDE_FILES:
            if name != "meta.properties" and disk.exists(f"{PATH}/{name}"):
                damage(disk, f"{PATH}/{name}", how)
        _, log = reopened(disk)
        assert batches_of(log) == batches_of(life.log)
        check_log(log)


def test_a_lost_rename_of_a_checkpoint_leaves_the_one_before() -> None:
    disk = MemoryDisk()
    life = Life(disk)
    life.open()
    life.append(3, epoch=0)
    life.flush()
    life.checkpoint()
    life.append(3, epoch=0)
    life.flush()
    disk.fail("sync_directory", path=PATH)
    with pytest.raises(OSError, match="error"):
        life.checkpoint()
    directory, log = reopened(disk.crash())
    assert directory.high_watermarks == {ORDERS: 6}
    assert log.end_offset == 12


@pytest.mark.parametrize("how", ["flipped", "cut"])
def test_any_byte_of_the_last_batch_may_be_wrong_or_missing(how: str) -> None:
    life = LIVED[False]
    batches = batches_of(life.log)
    last = batches[-1][1]
    active = life.log.segments.active
    path = active.path(".log")
    data = life.disk.read(path)
    for at in range(len(data) - len(last), len(data)):
        disk = life.disk.kill()
        damaged = data[:at] if how == "cut" else data[:at] + bytes([data[at] ^ 0x40]) + data[at + 1 :]
        disk.write(path, damaged)
        _, log = reopened(disk)
        check_log(log, dense=how == "cut")
        # The leader epoch is not covered by the CRC, so that brokers can set it; nor is a larger base offset noticed.
        kept = [header.base_offset for header, _ in batches_of(log)]
        expected = [header.base_offset for header, _ in batches]
        assert kept[: len(expected) - 1] == expected[:-1]
        if how == "cut" or at - (len(data) - len(last)) >= 16:
            assert kept == expected[:-1]


def test_a_segment_that_lost_its_tail_at_the_end_of_a_batch_ends_the_log() -> None:
    life = Life(MemoryDisk())
    life.open()
    life.append(8, epoch=0)
    first = life.log.segments[0]
    sizes = [header.size_bytes for _, header in first.headers()]
    disk = life.disk.kill()
    disk.open(first.path(".log")).truncate(sum(sizes[:-1]))
    _, log = reopened(disk)
    check_log(log)
    assert len(batches_of(log)) == len(sizes) - 1
    assert log.report.removed_segments > 0


def test_a_directory_copied_while_in_use_opens_without_a_hole() -> None:
    """Each file as it was at another moment: the copy goes through the directory while the log goes on."""
    for pace in range(1, 6):
        life = Life(MemoryDisk())
        life.open()
        life.append(6, epoch=0)
        life.flush()
        life.checkpoint()
        copy = MemoryDisk()
        copy.make_directory(LOG_PATH)
        names = [f"{PATH}/{name}" for name, _ in life.disk.list_files(PATH)]
        names += [f"{LOG_PATH}/{name}" for name, _ in sorted(life.disk.list_files(LOG_PATH))]
        for number, name in enumerate(names):
            copy.write(name, life.disk.read(name))
            if number % pace == 0:
                life.append(1, epoch=number // 4)
        _, log = reopened(copy)
        check_log(log)
        found = [(header.base_offset, batch) for header, batch in batches_of(log)]
        assert found == life.versions[-1][: len(found)]
        assert log.end_offset >= life.flushed_end


def test_meta_properties_of_another_broker_are_refused_and_lost_ones_are_written_again() -> None:
    disk = LIVED[True].disk.kill()
    disk.delete(f"{PATH}/meta.properties")
    reopened(disk)
    directory = LogDirectory(disk.kill(), PATH, StillClock())
    with pytest.raises(LogDirectoryError, match=r"broker\.id=1"):
        directory.claim(broker_id=2, cluster_id="crash-test")
