"""What a partition accepts of transactions, up to where it is stable, and whom it wakes."""

from asyncio import AbstractEventLoop, new_event_loop
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from penstock.broker.handlers import describe_producers, list_offsets
from penstock.broker.partitions.openings import Openings
from penstock.broker.partitions.partition import READ_COMMITTED, Partition
from penstock.broker.partitions.waits import FetchWait
from penstock.broker.requests.later import Later
from penstock.model.errors import ApiError, ErrorCode
from penstock.records.build import build_batch
from penstock.runtime.files import OsDisk
from penstock.storage.log import Log
from penstock.storage.options import LogOptions
from penstock.wire.messages.describe_producers import DescribeProducersRequest, TopicRequest
from penstock.wire.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from tests.unit.storage.batches import NOW_MS, StillClock
from tests.unit.storage.committed_reader import read_committed


@pytest.fixture
def clock() -> StillClock:
    return StillClock()


@pytest.fixture
def partition(tmp_path: Path, clock: StillClock) -> Partition:
    log = Log.open(OsDisk(), str(tmp_path / "orders-0"), LogOptions(), clock)
    return Partition("orders", 0, log, clock, leader_epoch=0)


def batch(
    *,
    producer_id: int = 7,
    epoch: int = 0,
    sequence: int = 0,
    transactional: bool = True,
    timestamp: int = NOW_MS,
    value: bytes = b"v",
) -> bytearray:
    return build_batch(
        [(b"k", value, (), timestamp)],
        producer_id=producer_id,
        producer_epoch=epoch,
        base_sequence=sequence,
        transactional=transactional,
    )


def append(partition: Partition, *, verified: bool = False, starts_at_zero: bool = False, **of: Any) -> int:
    offset, _ = partition.append(
        memoryview(batch(**of)), verified_transaction=verified, starts_at_zero=starts_at_zero
    )
    return offset


def end(partition: Partition, *, committed: bool = True, **of: int) -> int:
    fields = {"producer_id": 7, "producer_epoch": 0, "coordinator_epoch": 0, **of}
    return partition.append_marker(committed=committed, **fields)


def refused(code: ErrorCode) -> Any:
    return pytest.raises(ApiError, check=lambda error: error.code is code)


# --- what is accepted


def test_a_transaction_begins_only_when_the_coordinator_knows_of_it(partition: Partition) -> None:
    with refused(ErrorCode.INVALID_TXN_STATE):
        append(partition)
    assert partition.log.end_offset == 0
    assert append(partition, verified=True) == 0
    assert append(partition, sequence=1) == 1


def test_a_transaction_that_has_ended_does_not_go_on(partition: Partition) -> None:
    append(partition, verified=True)
    end(partition)
    with refused(ErrorCode.INVALID_TXN_STATE):
        append(partition, sequence=1)
    assert append(partition, sequence=1, verified=True) == 2


def test_a_retry_is_recognised_also_after_the_end(partition: Partition) -> None:
    append(partition, verified=True)
    assert append(partition) == 0
    end(partition)
    assert append(partition) == 0
    assert partition.log.end_offset == 2


def test_a_batch_of_the_next_epoch_is_not_part_of_what_is_open(partition: Partition) -> None:
    append(partition, verified=True)
    assert partition.has_open_transaction(7, 0)
    assert not partition.has_open_transaction(7, 1)
    assert not partition.has_open_transaction(8, 0)
    with refused(ErrorCode.INVALID_TXN_STATE):
        append(partition, epoch=1)
    end(partition)
    assert not partition.has_open_transaction(7, 0)


def test_a_plain_batch_inside_a_transaction_is_refused(partition: Partition) -> None:
    append(partition, verified=True)
    with refused(ErrorCode.INVALID_TXN_STATE):
        append(partition, sequence=1, transactional=False)
    end(partition)
    append(partition, sequence=1, transactional=False)


def test_a_transactional_batch_without_a_producer_is_refused(partition: Partition) -> None:
    with refused(ErrorCode.INVALID_TXN_STATE):
        append(partition, producer_id=-1, epoch=-1, sequence=-1, verified=True)


def test_sequences_are_checked_within_a_transaction_and_over_its_end(partition: Partition) -> None:
    append(partition, verified=True)
    with refused(ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER):
        append(partition, sequence=2)
    end(partition)
    with refused(ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER):
        append(partition, sequence=2, verified=True)
    append(partition, sequence=1, verified=True)


def test_an_old_epoch_is_fenced_and_a_new_one_starts_at_zero(partition: Partition) -> None:
    append(partition, epoch=1, verified=True)
    end(partition, producer_epoch=2, transaction_version=2)
    with refused(ErrorCode.INVALID_PRODUCER_EPOCH):
        append(partition, epoch=1, sequence=1, verified=True)
    with refused(ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER):
        append(partition, epoch=2, sequence=1, verified=True)
    append(partition, epoch=2, verified=True)


def test_an_unknown_producer_of_version_2_starts_at_zero(partition: Partition) -> None:
    with refused(ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER):
        append(partition, sequence=5, verified=True, starts_at_zero=True)
    append(partition, sequence=5, verified=True)


# --- markers


def test_a_marker_is_appended_also_for_an_unknown_producer(partition: Partition) -> None:
    assert end(partition) == 0
    assert end(partition) == 1


def test_a_marker_of_an_old_producer_epoch_is_refused(partition: Partition) -> None:
    append(partition, epoch=3, verified=True)
    with refused(ErrorCode.INVALID_PRODUCER_EPOCH):
        end(partition, producer_epoch=2)
    assert partition.last_stable_offset == 0
    assert end(partition, producer_epoch=3) == 1


def test_a_marker_of_an_old_coordinator_is_refused(partition: Partition) -> None:
    append(partition, verified=True)
    end(partition, coordinator_epoch=5)
    append(partition, sequence=1, verified=True)
    with refused(ErrorCode.TRANSACTION_COORDINATOR_FENCED):
        end(partition, coordinator_epoch=4)
    assert partition.last_stable_offset == 2
    end(partition, coordinator_epoch=5)


def test_a_marker_of_version_2_must_bring_the_next_epoch(partition: Partition) -> None:
    append(partition, epoch=3, verified=True)
    with refused(ErrorCode.INVALID_PRODUCER_EPOCH):
        end(partition, producer_epoch=3, transaction_version=2)
    end(partition, producer_epoch=4, transaction_version=2)
    assert end(partition, producer_epoch=4, transaction_version=2) == 2  # it may come twice
    append(partition, epoch=4, verified=True)
    with refused(ErrorCode.INVALID_PRODUCER_EPOCH):
        end(partition, producer_epoch=4, transaction_version=2)


def test_at_the_last_epoch_there_is_no_next(partition: Partition) -> None:
    append(partition, epoch=32767, verified=True)
    assert end(partition, producer_epoch=32767, transaction_version=2) == 1
    assert partition.last_stable_offset == 2


def test_offsets_of_a_group_can_be_part_of_a_transaction(partition: Partition) -> None:
    assert partition.append_own(batch(sequence=-1, epoch=2)) == 0
    assert partition.append_own(batch(sequence=-1, epoch=2)) == 1
    assert partition.has_open_transaction(7, 2)
    assert partition.last_stable_offset == 0
    with refused(ErrorCode.INVALID_PRODUCER_EPOCH):
        partition.append_own(batch(sequence=-1, epoch=1))
    with refused(ErrorCode.INVALID_PRODUCER_EPOCH):
        partition.log.producers.check_epoch(producer_id=7, producer_epoch=1)
    partition.log.producers.check_epoch(producer_id=7, producer_epoch=2)
    partition.log.producers.check_epoch(producer_id=8, producer_epoch=0)
    end(partition, producer_epoch=2)
    assert partition.last_stable_offset == 3


# --- what is stable


def test_the_last_stable_offset_is_where_the_first_open_transaction_begins(partition: Partition) -> None:
    append(partition, producer_id=-1, epoch=-1, sequence=-1, transactional=False)
    assert partition.last_stable_offset == 1
    append(partition, verified=True)
    append(partition, producer_id=8, verified=True)
    assert (partition.last_stable_offset, partition.high_watermark) == (1, 3)
    end(partition)
    assert partition.last_stable_offset == 2
    end(partition, producer_id=8)
    assert partition.last_stable_offset == 5


def test_a_reader_of_committed_records_gets_neither_undecided_nor_aborted_ones(partition: Partition) -> None:
    append(partition, verified=True, value=b"aborted")
    append(partition, producer_id=8, verified=True, value=b"committed")
    assert partition.read(0, 1000, isolation_level=READ_COMMITTED, at_least_one=True) is None
    end(partition, committed=False)
    assert read_committed(partition, 0) == []
    end(partition, producer_id=8)
    append(partition, sequence=1, verified=True, value=b"undecided")
    assert [record.value for record in read_committed(partition, 0)] == [b"committed"]
    assert partition.read(4, 1000, isolation_level=READ_COMMITTED, at_least_one=True) is None
    assert partition.read(5, 1000, isolation_level=READ_COMMITTED, at_least_one=True) is None


def test_a_transaction_whose_start_was_deleted_holds_at_the_new_start(partition: Partition) -> None:
    append(partition, verified=True)
    append(partition, sequence=1)
    partition.delete_records(1)
    assert partition.last_stable_offset == 1


# --- who waits


@pytest.fixture
def loop() -> Iterator[AbstractEventLoop]:
    made = new_event_loop()
    yield made
    made.close()


def wait_for(
    partition: Partition, loop: AbstractEventLoop, *, missing_bytes: int, only_stable: bool
) -> list[bool]:
    woken: list[bool] = []
    FetchWait(
        loop, [partition], lambda: woken.append(True), missing_bytes=missing_bytes, max_wait_ms=60_000,
        only_stable=only_stable,
    )  # fmt: skip
    return woken


def turn(loop: AbstractEventLoop) -> None:
    loop.call_soon(loop.stop)
    loop.run_forever()


def test_only_what_is_stable_wakes_a_reader_of_committed_records(
    partition: Partition, loop: AbstractEventLoop
) -> None:
    anything = wait_for(partition, loop, missing_bytes=1, only_stable=False)
    stable = wait_for(partition, loop, missing_bytes=1, only_stable=True)
    append(partition, verified=True)
    append(partition, producer_id=8, verified=True)
    end(partition, producer_id=8)
    turn(loop)
    assert (anything, stable) == ([True], [])
    end(partition)
    turn(loop)
    assert stable == [True]
    assert partition.readers.of_stable == {}


def test_a_marker_counts_with_all_that_it_makes_stable(partition: Partition, loop: AbstractEventLoop) -> None:
    size = len(batch())
    two = wait_for(partition, loop, missing_bytes=2 * size, only_stable=True)
    four = wait_for(partition, loop, missing_bytes=4 * size + 78 + 1, only_stable=True)
    append(partition, verified=True)
    append(partition, sequence=1)
    partition.log.roll()
    append(partition, sequence=2)
    append(partition, sequence=3)
    end(partition)
    turn(loop)
    assert (two, four) == ([True], [])
    append(partition, producer_id=-1, epoch=-1, sequence=-1, transactional=False)
    turn(loop)
    assert four == [True]


# --- who asks


class _Node:
    def __init__(self, partition: Partition) -> None:
        self.partitions = self
        self.openings = Openings(None, None)  # type: ignore[arg-type]
        self._partition = partition

    def get(self, name: str, index: int) -> Partition:
        if (name, index) != ("orders", 0):
            raise ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        return self._partition


def offset_for(partition: Partition, time: int, isolation_level: int) -> int:
    wanted = ListOffsetsPartition(partition_index=0, timestamp=time, current_leader_epoch=-1)
    request = ListOffsetsRequest(
        replica_id=-1,
        isolation_level=isolation_level,
        topics=[ListOffsetsTopic(name="orders", partitions=[wanted])],
    )
    node: Any = _Node(partition)
    call: Any = type("Call", (), {"api_version": 11})()
    answer = list_offsets.handle(node, call, request)
    assert not isinstance(answer, Later)
    return answer.topics[0].partitions[0].offset


@pytest.mark.parametrize("isolation_level", [0, READ_COMMITTED])
def test_the_log_ends_at_the_last_stable_offset_for_who_asks_so(
    partition: Partition, isolation_level: int
) -> None:
    append(partition, producer_id=-1, epoch=-1, sequence=-1, transactional=False)
    append(partition, verified=True, timestamp=NOW_MS + 5)
    committed = isolation_level == READ_COMMITTED
    assert offset_for(partition, list_offsets.LATEST, isolation_level) == (1 if committed else 2)
    assert offset_for(partition, NOW_MS + 1, isolation_level) == (-1 if committed else 1)
    assert offset_for(partition, NOW_MS, isolation_level) == 0
    assert offset_for(partition, list_offsets.MAX_TIMESTAMP, isolation_level) == (-1 if committed else 1)
    assert offset_for(partition, list_offsets.EARLIEST, isolation_level) == 0


def test_the_producers_of_a_partition_are_described(partition: Partition) -> None:
    append(partition, epoch=2, verified=True)
    append(partition, epoch=2, sequence=1)
    end(partition, producer_id=8, producer_epoch=4, coordinator_epoch=9)
    node: Any = _Node(partition)
    call: Any = None
    asked = [
        TopicRequest(name="orders", partition_indexes=[0, 1]),
        TopicRequest(name="bad name", partition_indexes=[0]),
    ]
    answer = describe_producers.handle(node, call, DescribeProducersRequest(topics=asked))
    orders, bad = answer.topics
    known, unknown = orders.partitions
    assert [
        (p.producer_id, p.producer_epoch, p.last_sequence, p.coordinator_epoch, p.current_txn_start_offset)
        for p in known.active_producers
    ] == [(7, 2, 1, -1, 0), (8, 4, -1, 9, -1)]
    assert {p.last_timestamp for p in known.active_producers} == {NOW_MS}
    assert unknown.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert bad.partitions[0].error_code == ErrorCode.INVALID_TOPIC_EXCEPTION


# --- expiry


def test_idle_producers_expire_but_not_inside_a_transaction(partition: Partition, clock: StillClock) -> None:
    append(partition, verified=True)
    append(partition, producer_id=8, transactional=False)
    append(partition, producer_id=9, transactional=False, timestamp=NOW_MS + 1)
    producers = partition.log.producers
    assert producers.expire(now_ms=NOW_MS + 1000, expiration_ms=1000) == 1
    assert (7 in producers, 8 in producers, 9 in producers) == (True, False, True)
    end(partition)
    assert producers.expire(now_ms=NOW_MS + 1001, expiration_ms=1000) == 2
    assert len(producers) == 0
