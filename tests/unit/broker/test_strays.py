"""Logs that the metadata does not place here are kept, and taken back when it does."""

import asyncio
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from penstock.broker.partitions.held_partitions import HeldPartitions
from penstock.broker.upkeep.strays import take_back
from penstock.metadata.image import PartitionRegistration, Topic
from penstock.model.ids import TopicPartition
from penstock.runtime.clock import SystemClock
from penstock.runtime.files import OsDisk
from penstock.runtime.pools import Pools
from penstock.storage.log import Log
from penstock.storage.options import LogOptions
from penstock.storage.strays import list_strays, measure
from tests.unit.storage.batches import append

ORDERS = TopicPartition("orders", 0)
OLD_ID = bytes([1] * 16)
NEW_ID = bytes([2] * 16)
OURS = PartitionRegistration(replicas=(1,), isr=(1,), leader=1)
NOT_IN_SYNC = PartitionRegistration(replicas=(2, 1), isr=(2,), leader=2)


def held(tmp_path: Path, *names: str) -> HeldPartitions:
    paths = [str(tmp_path / name) for name in names or ("a",)]
    return HeldPartitions(OsDisk(), paths, SystemClock(), broker_id=1, is_clustered=True)


@pytest.fixture
def partitions(tmp_path: Path) -> Iterator[HeldPartitions]:
    holding = held(tmp_path)
    yield holding
    holding.release()


def make(partitions: HeldPartitions, topic_id: bytes, records: int) -> Log:
    log = partitions.ensure(topic_id, ORDERS, LogOptions(), is_new=True).log
    if records:
        append(log, records)
    return log


def open_topic(
    partitions: HeldPartitions, topic_id: bytes, placed: PartitionRegistration = OURS, *, name: str = "orders"
) -> Log:
    """As at the start."""
    for _ in partitions.open_topic(
        Topic(name, topic_id=topic_id, partitions=[placed]), LogOptions(), is_new=False
    ):
        pass
    return partitions.get(name, 0).log


def directories(tmp_path: Path) -> list[str]:
    return sorted(path.name for path in (tmp_path / "a").iterdir() if path.is_dir())


def stray_name(topic_id: bytes) -> str:
    return f"orders-0.{topic_id.hex()}-stray"


def test_a_topic_that_the_metadata_has_no_more_is_kept_under_its_id(
    partitions: HeldPartitions, tmp_path: Path
) -> None:
    make(partitions, OLD_ID, 3)
    removals: list[object] = []
    partitions.run_later = removals.append
    partitions.set_topic_aside("orders")
    assert directories(tmp_path) == [stray_name(OLD_ID)]
    assert partitions.log_directories.all_logs() == []
    assert removals == []


def test_a_topic_that_somebody_deleted_goes(partitions: HeldPartitions, tmp_path: Path) -> None:
    make(partitions, OLD_ID, 3)
    partitions.delete_topic("orders")
    assert directories(tmp_path) == []


def test_another_topic_of_the_same_name_does_not_cost_the_old_one(
    partitions: HeldPartitions, tmp_path: Path
) -> None:
    make(partitions, OLD_ID, 3)
    assert make(partitions, NEW_ID, 1).end_offset == 1
    assert directories(tmp_path) == ["orders-0", stray_name(OLD_ID)]


def test_an_unopened_log_of_another_topic_of_the_same_name_is_kept(
    partitions: HeldPartitions, tmp_path: Path
) -> None:
    make(partitions, OLD_ID, 3)
    partitions.close()
    again = held(tmp_path)
    assert open_topic(again, NEW_ID).end_offset == 0
    assert directories(tmp_path) == ["orders-0", stray_name(OLD_ID)]
    again.release()
    third = held(tmp_path)  # no start removes it
    third.begin_leftovers()
    assert stray_name(OLD_ID) in directories(tmp_path)
    third.release()


def test_the_same_partition_twice_astray_is_kept_twice(partitions: HeldPartitions, tmp_path: Path) -> None:
    for _ in range(2):
        make(partitions, OLD_ID, 1)
        partitions.set_topic_aside("orders")
    assert len(directories(tmp_path)) == 2
    assert len(partitions.log_directories.strays_of(OLD_ID, 0)) == 2


def test_a_stray_is_taken_back_where_the_metadata_counts_it_as_in_sync(
    partitions: HeldPartitions, tmp_path: Path
) -> None:
    log = make(partitions, OLD_ID, 5)
    log.advance_start_offset(2)
    partitions.set_topic_aside("orders")
    back = open_topic(partitions, OLD_ID)
    assert (back.start_offset, back.end_offset) == (2, 5)
    assert directories(tmp_path) == ["orders-0"]
    assert not (tmp_path / "a" / "orders-0" / "stray.properties").exists()
    assert partitions.log_directories.strays_of(OLD_ID, 0) == []


def test_a_stray_is_taken_back_under_another_name(partitions: HeldPartitions, tmp_path: Path) -> None:
    make(partitions, OLD_ID, 5)
    partitions.set_topic_aside("orders")
    assert open_topic(partitions, OLD_ID, name="rescued").end_offset == 5
    assert directories(tmp_path) == ["rescued-0"]


def test_a_stray_that_others_do_not_count_on_stays_one(partitions: HeldPartitions, tmp_path: Path) -> None:
    make(partitions, OLD_ID, 5)
    partitions.set_topic_aside("orders")
    assert open_topic(partitions, OLD_ID, NOT_IN_SYNC).end_offset == 0
    assert directories(tmp_path) == ["orders-0", stray_name(OLD_ID)]


def test_a_stray_is_taken_back_from_under_an_open_log_of_its_name(
    partitions: HeldPartitions, tmp_path: Path
) -> None:
    """A store that was wiped is restored while the brokers live."""
    make(partitions, OLD_ID, 3)
    other = make(partitions, NEW_ID, 1)

    async def take() -> None:
        node: Any = SimpleNamespace(partitions=partitions, pools=Pools(asyncio.get_running_loop()))
        await take_back(node, OLD_ID, [ORDERS], LogOptions())
        node.pools.close()

    asyncio.run(take())
    assert other.is_deleted
    assert partitions.topic("orders") is None
    assert make(partitions, OLD_ID, 0).end_offset == 3
    assert directories(tmp_path) == ["orders-0", stray_name(NEW_ID)]
    assert [stray.is_clean for _, stray in partitions.log_directories.strays_of(NEW_ID, 0)] == [False]


def test_of_two_strays_the_one_that_goes_further_is_taken_back(
    partitions: HeldPartitions, tmp_path: Path
) -> None:
    for records in (2, 7, 4):
        make(partitions, OLD_ID, records)
        partitions.set_topic_aside("orders")
    assert open_topic(partitions, OLD_ID).end_offset == 7
    assert len(partitions.log_directories.strays_of(OLD_ID, 0)) == 2


def test_a_stray_is_known_after_a_restart_and_taken_back(partitions: HeldPartitions, tmp_path: Path) -> None:
    make(partitions, OLD_ID, 5)
    partitions.set_topic_aside("orders")
    make(partitions, NEW_ID, 1)
    partitions.release()
    again = held(tmp_path)
    assert open_topic(again, OLD_ID).end_offset == 5
    assert directories(tmp_path) == ["orders-0", stray_name(NEW_ID)]
    again.release()


def test_a_torn_tail_of_a_stray_is_cut_when_it_is_taken_back(
    partitions: HeldPartitions, tmp_path: Path
) -> None:
    make(partitions, OLD_ID, 5)
    partitions.set_topic_aside("orders")
    with open(tmp_path / "a" / stray_name(OLD_ID) / f"{0:020d}.log", "ab") as file:
        file.write(b"torn")
    assert open_topic(partitions, OLD_ID).end_offset == 5


def test_a_log_of_two_topics_in_two_directories_is_kept_twice(tmp_path: Path) -> None:
    for name, topic_id, records in (("a", OLD_ID, 5), ("b", NEW_ID, 1)):
        one = held(tmp_path, name)
        make(one, topic_id, records)
        one.close()
    both = held(tmp_path, "a", "b")
    assert (tmp_path / "b" / stray_name(NEW_ID)).is_dir()
    assert open_topic(both, OLD_ID).end_offset == 5
    both.release()


def test_a_stray_begins_where_its_first_segment_does(partitions: HeldPartitions, tmp_path: Path) -> None:
    log = make(partitions, OLD_ID, 10)
    log.roll()
    partitions.set_topic_aside("orders")
    path = tmp_path / "a" / stray_name(OLD_ID)
    for file in path.glob(f"{0:020d}.*"):
        file.rename(f"{file}.deleted")
    # As where a broker was killed after retention, and before the checkpoint of start offsets.
    (path / "stray.properties").unlink()
    disk = OsDisk()
    (found,) = list_strays(disk, str(tmp_path / "a"))
    extent = measure(disk, found)
    assert (extent.start_offset, extent.end_offset) == (10, 10)
    kept = [file for file in path.iterdir() if file.suffix != ".deleted"]
    assert extent.size_bytes == sum(file.stat().st_size for file in kept)


def test_a_long_topic_name_is_not_lost(tmp_path: Path) -> None:
    place = TopicPartition("t" * 249, 3)
    one = held(tmp_path)
    one.ensure(OLD_ID, place, LogOptions(), is_new=True)
    one.set_topic_aside(place.topic)
    (directory,) = one.log_directories.online
    assert [stray.topic_partition for stray in directory.strays] == [place]
    assert len(directory.strays[0].name) == 255
    one.release()
