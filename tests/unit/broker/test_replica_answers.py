"""What a leader with followers, and a follower, answer to ListOffsets, OffsetForLeaderEpoch and DeleteRecords."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from penstock.broker.handlers import delete_records, list_offsets, offset_for_leader_epoch
from penstock.broker.partitions.openings import Openings
from penstock.broker.partitions.partition import Partition
from penstock.broker.requests.later import Later, settled
from penstock.metadata import image
from penstock.model.errors import ErrorCode
from penstock.records.build import build_batch
from penstock.runtime.files import OsDisk
from penstock.storage.log import Log
from penstock.storage.options import LogOptions
from penstock.wire.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsPartitionResult,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from penstock.wire.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from penstock.wire.messages.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from tests.unit.storage.batches import NOW_MS, StillClock

RECORDS = 10
PATIENCE_MS = 60_000


class FakeNode:
    def __init__(self, partition: Partition) -> None:
        self.partitions = self
        self.openings = Openings(None, None)  # type: ignore[arg-type]
        self._partition = partition
        self.loop: asyncio.AbstractEventLoop

    def get(self, name: str, index: int) -> Partition:
        return self._partition

    def delete_records(self, partition: Partition, before_offset: int) -> int:
        partition.delete_records(before_offset)
        return partition.log.start_offset


@pytest.fixture
def partition(tmp_path: Path) -> Partition:
    """Ten records, of which none is known to be committed, and no role yet."""
    clock = StillClock()
    log = Log.open(OsDisk(), str(tmp_path / "orders-0"), LogOptions(), clock)
    partition = Partition("orders", 0, log, clock, leader_epoch=0)
    for _ in range(RECORDS):
        partition.append(memoryview(build_batch([(b"k", b"v", (), NOW_MS)])))
    partition.replica.high_watermark = 0
    return partition


def lead(partition: Partition, *, isr: tuple[int, ...] = (1, 2, 3), epoch: int = 1) -> None:
    placed = image.PartitionRegistration((1, 2, 3), isr, leader=1, leader_epoch=epoch, partition_epoch=epoch)
    partition.lead(placed, own_id=1)


def follow(partition: Partition) -> None:
    partition.follow(image.PartitionRegistration((1, 2, 3), (1, 2, 3), leader=2, leader_epoch=5))


def fetched(partition: Partition, *replica_ids: int, start_offset: int = 0) -> None:
    for replica_id in replica_ids:
        partition.follower_fetched(replica_id, partition.log.end_offset, start_offset=start_offset)


# --- ListOffsets


def list_offset(
    partition: Partition, *, replica_id: int = -1, time: int = list_offsets.LATEST, version: int = 7
) -> tuple[int, int]:
    wanted = ListOffsetsPartition(partition_index=0, timestamp=time, current_leader_epoch=-1)
    request = ListOffsetsRequest(
        replica_id=replica_id, topics=[ListOffsetsTopic(name="orders", partitions=[wanted])]
    )
    node: Any = FakeNode(partition)
    call: Any = type("Call", (), {"api_version": version})()
    answered = list_offsets.handle(node, call, request)
    assert not isinstance(answered, Later)
    answer = answered.topics[0].partitions[0]
    return answer.error_code, answer.offset


def test_a_consumer_is_told_of_the_high_watermark_a_follower_of_the_end(partition: Partition) -> None:
    lead(partition)
    fetched(partition, 2, 3)
    partition.append(memoryview(build_batch([(b"k", b"v", (), NOW_MS)])))
    assert list_offset(partition) == (0, RECORDS)
    assert list_offset(partition, replica_id=2) == (0, RECORDS + 1)


@pytest.mark.parametrize("version", [4, 5])
def test_a_new_leader_does_not_tell_an_end_that_may_be_lower_than_its_predecessors(
    partition: Partition, version: int
) -> None:
    lead(partition)
    code = ErrorCode.OFFSET_NOT_AVAILABLE if version >= 5 else ErrorCode.LEADER_NOT_AVAILABLE
    assert list_offset(partition, version=version) == (code, -1)
    assert list_offset(partition, version=version, time=NOW_MS) == (code, -1)
    assert list_offset(partition, version=version, time=list_offsets.EARLIEST) == (0, 0)
    fetched(partition, 2, 3)
    assert list_offset(partition, version=version) == (0, RECORDS)
    assert list_offset(partition, version=version, time=NOW_MS) == (0, 0)


def test_a_follower_answers_only_who_asks_any_replica(partition: Partition) -> None:
    follow(partition)
    assert list_offset(partition) == (ErrorCode.NOT_LEADER_OR_FOLLOWER, -1)
    assert list_offset(partition, replica_id=-2) == (0, RECORDS)


# --- OffsetForLeaderEpoch


def epoch_end(partition: Partition, *, current_leader_epoch: int = -1) -> tuple[int, int]:
    wanted = OffsetForLeaderPartition(partition=0, leader_epoch=0, current_leader_epoch=current_leader_epoch)
    request = OffsetForLeaderEpochRequest(topics=[OffsetForLeaderTopic(topic="orders", partitions=[wanted])])
    node: Any = FakeNode(partition)
    call: Any = None
    answer = offset_for_leader_epoch.handle(node, call, request).topics[0].partitions[0]
    return answer.error_code, answer.end_offset


def test_only_a_leader_says_where_an_epoch_ended(partition: Partition) -> None:
    lead(partition)
    assert epoch_end(partition) == (0, RECORDS)
    follow(partition)
    assert epoch_end(partition)[0] == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert epoch_end(partition, current_leader_epoch=4)[0] == ErrorCode.FENCED_LEADER_EPOCH


# --- DeleteRecords

Deleted = Awaitable[DeleteRecordsPartitionResult]


def in_loop(partition: Partition, work: Callable[[Callable[..., Deleted]], Awaitable[None]]) -> None:
    """`work` gets how to delete what is before an offset."""

    async def run() -> None:
        node: Any = FakeNode(partition)
        node.loop = asyncio.get_running_loop()

        async def delete(offset: int, timeout_ms: int = PATIENCE_MS) -> DeleteRecordsPartitionResult:
            wanted = DeleteRecordsPartition(partition_index=0, offset=offset)
            request = DeleteRecordsRequest(
                topics=[DeleteRecordsTopic(name="orders", partitions=[wanted])], timeout_ms=timeout_ms
            )
            call: Any = None
            answer = await settled(delete_records.handle(node, call, request))
            result: DeleteRecordsPartitionResult = answer.topics[0].partitions[0]
            return result

        await work(delete)

    asyncio.run(run())


async def turns() -> None:
    for _ in range(10):
        await asyncio.sleep(0)


def test_records_are_deleted_when_all_in_sync_replicas_have_forgotten_them(partition: Partition) -> None:
    async def work(delete: Callable[..., Any]) -> None:
        lead(partition)
        fetched(partition, 2, 3)
        deletion = asyncio.create_task(delete(4))
        await turns()
        assert partition.log.start_offset == 4
        fetched(partition, 2, start_offset=4)
        await turns()
        assert not deletion.done()
        fetched(partition, 3, start_offset=6)
        result = await deletion
        assert (result.error_code, result.low_watermark) == (0, 4)

    in_loop(partition, work)


def test_a_replica_that_leaves_the_in_sync_set_is_not_waited_for(partition: Partition) -> None:
    async def work(delete: Callable[..., Any]) -> None:
        lead(partition)
        fetched(partition, 2, 3)
        deletion = asyncio.create_task(delete(4))
        await turns()
        fetched(partition, 2, start_offset=4)
        partition.settle_isr(frozenset((1, 2)), 2)
        assert (await deletion).low_watermark == 4

    in_loop(partition, work)


def test_a_deletion_that_takes_too_long_says_how_far_it_is(partition: Partition) -> None:
    async def work(delete: Callable[..., Any]) -> None:
        lead(partition)
        fetched(partition, 2, 3)
        result = await delete(4, timeout_ms=1)
        assert (result.error_code, result.low_watermark) == (ErrorCode.REQUEST_TIMED_OUT, 0)

    in_loop(partition, work)


def test_a_deletion_ends_with_the_leadership(partition: Partition) -> None:
    async def work(delete: Callable[..., Any]) -> None:
        lead(partition)
        fetched(partition, 2, 3)
        deletion = asyncio.create_task(delete(4))
        await turns()
        follow(partition)
        result = await deletion
        assert (result.error_code, result.low_watermark) == (ErrorCode.NOT_LEADER_OR_FOLLOWER, -1)

    in_loop(partition, work)


def test_a_follower_deletes_nothing(partition: Partition) -> None:
    async def work(delete: Callable[..., Any]) -> None:
        follow(partition)
        assert (await delete(0)).error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER

    in_loop(partition, work)


# --- the last stable offset


def test_a_follower_holds_nothing_for_decided_that_its_leader_does_not(partition: Partition) -> None:
    follow(partition)
    partition.take_fetched(None, high_watermark=8, log_start_offset=0, last_stable_offset=5)
    assert (partition.high_watermark, partition.last_stable_offset) == (8, 5)
    partition.take_fetched(None, high_watermark=9, log_start_offset=0, last_stable_offset=9)
    assert partition.last_stable_offset == 9


def test_a_new_leader_holds_markers_for_decisions_when_its_followers_have_them(partition: Partition) -> None:
    follow(partition)
    partition.take_fetched(None, high_watermark=8, log_start_offset=0, last_stable_offset=5)
    lead(partition, epoch=6)
    assert partition.last_stable_offset == 5
    fetched(partition, 2, 3)
    assert partition.last_stable_offset == RECORDS
