"""Several log directories, one of which fails: what goes offline, what goes on, and what the next start finds."""

import asyncio
import errno
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from penstock.broker.partitions.held_partitions import HeldPartitions
from penstock.broker.upkeep.flushes import Flushes
from penstock.broker.upkeep.log_directories import LogDirectories, is_of_the_disk
from penstock.broker.upkeep.log_moves import LogMoves
from penstock.metadata.image import PartitionRegistration, Topic
from penstock.model.errors import ApiError, ErrorCode
from penstock.model.ids import TopicPartition
from penstock.records.build import build_batch
from penstock.runtime.clock import SystemClock
from penstock.runtime.files import OsDisk, OsFile
from penstock.runtime.pools import Pools
from penstock.storage.options import LogOptions

PLACED = PartitionRegistration(replicas=(1,), isr=(1,), leader=1)


def checkpoint(partitions: HeldPartitions) -> list[tuple[str, OSError]]:
    """All steps of it at once; the directories that cannot be written to."""
    gathering = partitions.gather_checkpoint()
    while True:
        try:
            next(gathering)
        except StopIteration as gathered:
            failed: list[tuple[str, OSError]] = gathered.value()
            return failed


class FailingDisk(OsDisk):
    """A disk under a path that answers every question with an error from some moment on."""

    __slots__ = ("broken", "code")

    def __init__(self) -> None:
        self.broken: set[str] = set()
        self.code = errno.EIO

    def check(self, path: str) -> None:
        if any(path == broken or path.startswith(broken + "/") for broken in self.broken):
            raise OSError(self.code, "the disk is broken", path)

    def open(self, path: str, *, create: bool = False) -> OsFile:
        self.check(path)
        return super().open(path, create=create)

    def read(self, path: str) -> bytes:
        self.check(path)
        return super().read(path)

    def write(self, path: str, data: Any, *, sync: bool = False) -> None:
        self.check(path)
        super().write(path, data, sync=sync)

    def replace(self, source: str, target: str) -> None:
        self.check(source)
        super().replace(source, target)

    def make_directory(self, path: str) -> None:
        self.check(path)
        super().make_directory(path)

    def list_directories(self, path: str) -> list[str]:
        self.check(path)
        return super().list_directories(path)

    def sync_directory(self, path: str) -> None:
        self.check(path)
        super().sync_directory(path)


def topic(name: str, count: int, *, number: int = 1) -> Topic:
    return Topic(name, topic_id=bytes([number]) * 16, partitions=[PLACED] * count)


def records(count: int = 1) -> memoryview:
    return memoryview(build_batch([(b"k", b"v" * 100, (), 1_700_000_000_000)] * count))


@pytest.fixture
def disk() -> FailingDisk:
    return FailingDisk()


@pytest.fixture
def paths(tmp_path: Path) -> list[str]:
    return [str(tmp_path / name) for name in ("a", "b", "c")]


@pytest.fixture
def partitions(disk: FailingDisk, paths: list[str]) -> Iterator[HeldPartitions]:
    held = HeldPartitions(disk, paths, SystemClock(), broker_id=1)
    yield held
    held.release()


def open_all(partitions: HeldPartitions, wanted: Topic, *, is_new: bool = True) -> None:
    for _ in partitions.open_topic(wanted, LogOptions(), is_new=is_new):
        pass


def home(partitions: HeldPartitions, name: str, index: int) -> str:
    found = partitions.log_directories.home(TopicPartition(name, index))
    assert found is not None
    return found.path


def refusal(partitions: HeldPartitions, name: str, index: int) -> ErrorCode:
    with pytest.raises(ApiError) as refused:
        partitions.get(name, index)
    return refused.value.code


def test_new_logs_go_where_there_are_the_fewest(partitions: HeldPartitions, paths: list[str]) -> None:
    open_all(partitions, topic("orders", 7))
    homes = [home(partitions, "orders", index) for index in range(7)]
    assert sorted(homes.count(path) for path in paths) == [2, 2, 3]
    partitions.delete_topic("orders")
    open_all(partitions, topic("others", 3))
    assert {home(partitions, "others", index) for index in range(3)} == set(paths)


def test_a_failed_directory_takes_only_its_partitions_offline(
    partitions: HeldPartitions, paths: list[str]
) -> None:
    open_all(partitions, topic("orders", 6))
    told: list[TopicPartition] = []
    partitions.on_offline = told.extend
    partitions.fail(paths[1], OSError(errno.EIO, "broken"))
    partitions.fail(paths[1], OSError(errno.EIO, "again"))
    lost = [index for index in range(6) if home(partitions, "orders", index) == paths[1]]
    assert [index for _, index in told] == lost
    for index in range(6):
        if index in lost:
            assert refusal(partitions, "orders", index) == ErrorCode.KAFKA_STORAGE_ERROR
        else:
            assert partitions.get("orders", index).append(records())[0] == 0
    assert refusal(partitions, "orders", 6) == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert refusal(partitions, "orders", -1) == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    open_all(partitions, topic("new", 4, number=2))
    assert {home(partitions, "new", index) for index in range(4)} == {paths[0], paths[2]}
    assert checkpoint(partitions) == []


def test_who_waits_on_a_partition_that_goes_offline_is_woken(
    partitions: HeldPartitions, paths: list[str]
) -> None:
    open_all(partitions, topic("orders", 1))
    partition = partitions.get("orders", 0)
    woken: list[bool] = []
    wait = type("Wait", (), {"wake": lambda self: woken.append(True)})()
    partition.readers.of_committed[wait] = None  # type: ignore[index]
    partitions.fail(home(partitions, "orders", 0), OSError(errno.EIO, "broken"))
    assert woken == [True]
    assert partition.is_gone


def test_a_new_log_that_cannot_be_made_in_one_directory_is_made_in_another(
    partitions: HeldPartitions, disk: FailingDisk, paths: list[str]
) -> None:
    disk.broken = {paths[0]}
    disk.code = errno.ENOSPC
    open_all(partitions, topic("orders", 4))
    assert {home(partitions, "orders", index) for index in range(4)} == set(paths[1:])
    assert list(partitions.log_directories.failed) == [paths[0]]


def test_without_any_directory_a_new_topic_is_refused_and_all_are_told(
    partitions: HeldPartitions, disk: FailingDisk, paths: list[str]
) -> None:
    disk.broken = set(paths)
    with pytest.raises(OSError, match="every log directory has failed"):
        open_all(partitions, topic("orders", 1))
    assert partitions.log_directories.online == []


def test_a_start_with_an_unusable_directory_serves_the_others(disk: FailingDisk, paths: list[str]) -> None:
    first = HeldPartitions(disk, paths, SystemClock(), broker_id=1)
    open_all(first, topic("orders", 3))
    lost = next(index for index in range(3) if home(first, "orders", index) == paths[2])
    first.close()
    disk.broken = {paths[2]}
    again = HeldPartitions(disk, paths, SystemClock(), broker_id=1)
    told: list[TopicPartition] = []
    again.on_offline = told.extend
    open_all(again, topic("orders", 3), is_new=False)
    assert told == [("orders", lost)]
    assert refusal(again, "orders", lost) == ErrorCode.KAFKA_STORAGE_ERROR
    assert {partition.index for partition in again} == {0, 1, 2} - {lost}
    again.close()
    disk.broken = set(paths)
    with pytest.raises(OSError, match="broken"):
        HeldPartitions(disk, paths, SystemClock(), broker_id=1)


def test_a_directory_that_fails_when_its_logs_are_opened_goes_offline_with_all_of_them(
    disk: FailingDisk, paths: list[str]
) -> None:
    first = HeldPartitions(disk, paths, SystemClock(), broker_id=1)
    open_all(first, topic("orders", 6))
    first.close()
    again = HeldPartitions(disk, paths, SystemClock(), broker_id=1)
    disk.broken = {paths[0]}
    open_all(again, topic("orders", 6), is_new=False)
    assert len(list(again)) == 4
    assert list(again.log_directories.failed) == [paths[0]]
    again.release()


def test_a_checkpoint_that_cannot_be_written_names_its_directory(
    partitions: HeldPartitions, disk: FailingDisk, paths: list[str]
) -> None:
    open_all(partitions, topic("orders", 3))
    disk.broken = {paths[1]}
    failed = checkpoint(partitions)
    assert [path for path, _ in failed] == [paths[1]]
    assert Path(paths[2], "recovery-point-offset-checkpoint").read_text().startswith("0\n1\norders")


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        (errno.EIO, True), (errno.ENOSPC, True), (errno.EROFS, True), (errno.ENOENT, True), (errno.EACCES, True),
        (errno.EMFILE, False), (errno.EFBIG, False), (errno.ENOMEM, False),
    ],
)  # fmt: skip
def test_a_limit_of_the_process_is_no_fault_of_the_disk(code: int, expected: bool) -> None:
    assert is_of_the_disk(OSError(code, "")) is expected


def test_a_log_in_two_directories_goes_on_where_there_is_more_of_it(
    disk: FailingDisk, paths: list[str], tmp_path: Path
) -> None:
    first = HeldPartitions(disk, paths, SystemClock(), broker_id=1)
    open_all(first, topic("orders", 1))
    first.get("orders", 0).append(records())
    first.close()
    shutil.copytree(tmp_path / "a" / "orders-0", tmp_path / "b" / "orders-0")
    second = HeldPartitions(disk, [paths[1]], SystemClock(), broker_id=1)
    open_all(second, topic("orders", 1), is_new=False)
    second.get("orders", 0).append(records())
    second.close()
    directories = LogDirectories(disk, paths, SystemClock())
    found = directories.home(TopicPartition("orders", 0))
    assert found is not None
    assert found.path == paths[1]
    assert not (tmp_path / "a" / "orders-0").exists()
    removals, moves = directories.leftovers()
    assert (len(removals), moves) == (1, [])
    directories.release()


class FakeNode:
    """As much of a node as flushes and moves ask for."""

    def __init__(self, partitions: HeldPartitions) -> None:
        node: Any = self
        self.partitions = partitions
        self.loop = asyncio.get_running_loop()
        self.pools = Pools(self.loop)
        self.is_stopping = False
        self.faults: list[str] = []
        self.flushes = Flushes(node)
        self.log_moves = LogMoves(node)

    def report_disk_fault(
        self, what: str, error: OSError, partition: object = None, *, path: str = ""
    ) -> None:
        self.faults.append(f"{what} {path}".strip())


async def until(condition: Any) -> None:
    async with asyncio.timeout(60):
        while not condition():
            await asyncio.sleep(0.001)


def test_a_replica_moves_while_it_is_written_and_both_ends_agree(
    partitions: HeldPartitions, paths: list[str], tmp_path: Path
) -> None:
    async def scenario() -> None:
        node = FakeNode(partitions)
        for _ in partitions.open_topic(topic("orders", 1), LogOptions(segment_bytes=4000)):
            pass
        partition = partitions.get("orders", 0)
        removals: list[Any] = []
        partitions.run_later = removals.append
        for _ in range(100):
            partition.append(records(3))
        part = partition.read(0, 10_000, isolation_level=0, at_least_one=True)
        target = partitions.log_directories.at(paths[1])
        assert target is not None
        assert partition.log.directory == f"{paths[0]}/orders-0"
        node.log_moves.begin(partition, target)
        node.log_moves.begin(partition, target)
        ((_, move),) = node.log_moves.all()
        appended = 0
        while node.log_moves.all():
            if appended < 5_000:  # a slow disk must be able to catch up before the files run out
                partition.append(records(2))
                appended += 1
            assert move.future.end_offset <= partition.log.end_offset
            await asyncio.sleep(0)
        assert node.faults == []
        assert partition.log.directory == f"{paths[1]}/orders-0"
        assert home(partitions, "orders", 0) == paths[1]
        assert partition.log.end_offset == partition.high_watermark == 300 + 2 * appended
        assert partition.append(records())[0] == 300 + 2 * appended
        headers = [header.base_offset for _, _, header in partition.log.headers(0)]
        assert len(headers) == 100 + appended + 1
        assert not (tmp_path / "a" / "orders-0").exists()
        assert part is not None
        assert len(part.file.read_at(part.position, part.size_bytes)) == part.size_bytes
        await until(lambda: not list(tmp_path.glob("b/*-future")))
        for removal in removals:
            removal.run()
        assert [path.name for path in (tmp_path / "a").iterdir() if path.is_dir()] == []
        target_again = partitions.log_directories.at(paths[1])
        assert target_again is not None
        node.log_moves.begin(partition, target_again)
        assert node.log_moves.all() == []

    asyncio.run(scenario())


def test_a_move_to_a_disk_that_breaks_leaves_the_log_where_it_is(
    partitions: HeldPartitions, disk: FailingDisk, paths: list[str]
) -> None:
    async def scenario() -> None:
        node = FakeNode(partitions)
        open_all(partitions, topic("orders", 1))
        partition = partitions.get("orders", 0)
        partition.append(records())
        target = partitions.log_directories.at(paths[2])
        assert target is not None
        disk.broken = {paths[2]}
        node.log_moves.begin(partition, target)
        await until(lambda: not node.log_moves.all())
        assert node.faults == [f"cannot move orders-0 to {paths[2]} {paths[2]}"]
        assert partition.log.directory == f"{paths[0]}/orders-0"
        assert partition.append(records())[0] == 1

    asyncio.run(scenario())


def test_a_move_that_a_crash_ended_is_begun_again_at_the_next_start(
    disk: FailingDisk, paths: list[str], tmp_path: Path
) -> None:
    first = HeldPartitions(disk, paths, SystemClock(), broker_id=1)
    open_all(first, topic("orders", 1))
    first.close()
    half = tmp_path / "c" / f"orders-0.{bytes(16).hex()}-future"
    half.mkdir()
    orphan = tmp_path / "c" / f"lost-0.{bytes(16).hex()}-future"
    orphan.mkdir()
    again = HeldPartitions(disk, paths, SystemClock(), broker_id=1)
    open_all(again, topic("orders", 1), is_new=False)
    ((topic_partition, target),) = again.begin_leftovers()
    assert (topic_partition, target.path) == (("orders", 0), paths[2])
    assert not half.exists()
    assert orphan.exists()  # its original cannot be seen now: it may be all that there is
    again.release()


def test_a_topic_deleted_during_a_move_leaves_nothing(
    partitions: HeldPartitions, paths: list[str], tmp_path: Path
) -> None:
    async def scenario() -> None:
        node = FakeNode(partitions)
        open_all(partitions, topic("orders", 1))
        partition = partitions.get("orders", 0)
        partition.append(records())
        target = partitions.log_directories.at(paths[1])
        assert target is not None
        node.log_moves.begin(partition, target)
        partitions.delete_topic("orders")
        await until(lambda: not node.log_moves.all() and not list(tmp_path.glob("?/orders*")))

    asyncio.run(scenario())


def test_flushes_that_are_asked_for_together_are_done_together(partitions: HeldPartitions) -> None:
    async def scenario() -> None:
        node = FakeNode(partitions)
        open_all(partitions, topic("orders", 1))
        partition = partitions.get("orders", 0)
        partition.append(records())
        first = node.flushes.ask(partition)
        await asyncio.sleep(0)
        partition.append(records())
        second, third = node.flushes.ask(partition), node.flushes.ask(partition)
        assert second is third
        assert second is not first
        assert await first is None
        assert await second is None
        assert partition.log.recovery_point == 2
        assert await node.flushes.ask(partition) is None
        assert node.faults == []

    asyncio.run(scenario())
