"""Batches that a producer repeats to a broker that was started in between: a snapshot remembers only the last of them."""

from pathlib import Path

import pytest

from penstock.broker.partitions.partition import Partition
from penstock.model.errors import ApiError, ErrorCode
from penstock.records.build import build_batch
from penstock.runtime.files import Disk, OsDisk
from penstock.storage.log import Log
from penstock.storage.options import LogOptions
from penstock.testing.disk import MemoryDisk
from tests.unit.storage.batches import NOW_MS, StillClock


def send(partition: Partition, sequence: int, *, producer_id: int = 7) -> int:
    batch = build_batch(
        [(None, b"v" * 500, (), NOW_MS)], producer_id=producer_id, producer_epoch=0, base_sequence=sequence
    )
    return partition.append(memoryview(batch))[0]


def opened(path: Path, *, segment_bytes: int = 1 << 20, disk: Disk | None = None) -> Partition:
    options = LogOptions(segment_bytes=segment_bytes, index_interval_bytes=1024)
    log = Log.open(disk or OsDisk(), str(path / "orders-0"), options, StillClock(), clean=True)
    return Partition("orders", 0, log, StillClock(), leader_epoch=0)


def stopped(partition: Partition) -> None:
    flush = partition.log.prepare_close()
    if flush is not None:
        flush.run()
        partition.log.flushed(flush)
    partition.log.close()


@pytest.mark.parametrize("segment_bytes", [1 << 20, 3000])
def test_each_of_the_last_five_is_recognised_after_a_restart(tmp_path: Path, segment_bytes: int) -> None:
    partition = opened(tmp_path, segment_bytes=segment_bytes)
    offsets = {}
    for sequence in range(12):
        send(partition, sequence, producer_id=8)
        offsets[sequence] = send(partition, sequence)
    stopped(partition)
    again = opened(tmp_path, segment_bytes=segment_bytes)
    recognised = [8, 10, 9, 11] if segment_bytes == 3000 else [7, 9, 8, 11, 10]
    for sequence in recognised:
        assert send(again, sequence) == offsets[sequence], sequence
    assert send(again, 12) == again.log.end_offset - 1


def test_what_is_older_or_was_never_sent_is_still_out_of_order(tmp_path: Path) -> None:
    partition = opened(tmp_path)
    for sequence in range(12):
        send(partition, sequence)
    stopped(partition)
    again = opened(tmp_path)
    for sequence in (3, 20):
        with pytest.raises(ApiError) as refused:
            send(again, sequence)
        assert refused.value.code is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert send(again, 12) == 12


def test_a_producer_comes_again_while_its_earlier_batches_are_not_in_memory() -> None:
    disk, path = MemoryDisk(), Path("/data")
    partition = opened(path, disk=disk)
    offsets = [send(partition, sequence) for sequence in range(12)]
    stopped(partition)
    again = opened(path, disk=disk)
    disk.cool()
    refusals = []
    while True:
        try:
            assert send(again, 8) == offsets[8]
            break
        except ApiError as refused:
            refusals.append(refused.code)
    assert set(refusals) == {ErrorCode.NOT_LEADER_OR_FOLLOWER}
    assert len(refusals) <= 2  # for the index, and for the log
