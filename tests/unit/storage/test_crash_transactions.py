"""A power failure at any operation of a transactional life: no aborted record is ever read as committed."""

from random import Random

import pytest

from penstock.broker.partitions.partition import Partition
from penstock.model.ids import TopicPartition
from penstock.storage.log_directory import LogDirectory
from penstock.storage.options import LogOptions
from penstock.testing.disk import MemoryDisk, PowerCut
from tests.unit.storage.batches import StillClock, make_batch
from tests.unit.storage.committed_reader import read_committed

PATH = "/data"
ORDERS = TopicPartition("orders", 3)
OPTIONS = LogOptions(segment_bytes=500, index_interval_bytes=100)
ABORTING = (7, 8)  # the transactions of 9 are committed
ABORTED_BYTES = 3
COMMITTED_BYTES = 5


class Life:
    def __init__(self, disk: MemoryDisk) -> None:
        self.disk = disk
        self.flushed_end = 0
        self.sequences = {7: 0, 8: 0, 9: 0}

    def open(self) -> None:
        self.directory = LogDirectory(self.disk, PATH, StillClock())
        self.directory.claim(broker_id=1, cluster_id="crash-test")
        log = self.directory.open_log(ORDERS, OPTIONS, topic_id=bytes(range(16)))
        self.partition = Partition("orders", 3, log, StillClock(), leader_epoch=0)

    def put(self, producer_id: int) -> None:
        size = ABORTED_BYTES if producer_id in ABORTING else COMMITTED_BYTES
        batch, _ = make_batch(
            producer_id=producer_id,
            base_sequence=self.sequences[producer_id],
            transactional=True,
            value_bytes=size,
        )
        self.partition.append(batch, verified_transaction=True)
        self.sequences[producer_id] += 1

    def end(self, producer_id: int) -> None:
        self.partition.append_marker(
            producer_id=producer_id,
            producer_epoch=0,
            committed=producer_id not in ABORTING,
            coordinator_epoch=0,
        )

    def flush(self) -> None:
        flush = self.partition.log.prepare_flush()
        if flush is not None:
            flush.run()
            self.partition.log.flushed(flush)
        self.directory.checkpoint([self.partition.log], {})
        self.flushed_end = self.partition.log.end_offset

    def run(self) -> None:
        self.open()
        for _ in range(3):
            for producer_id in (7, 9, 8, 7):
                self.put(producer_id)
            self.end(8)
            self.end(9)
            self.put(9)
            self.end(7)
            self.flush()
            self.put(8)
            self.end(9)
        self.directory.close([self.partition.log], {})
        self.open()
        self.end(8)
        self.put(9)
        self.end(9)


def all_changes() -> int:
    disk = MemoryDisk()
    Life(disk).run()
    return disk.changes


def check(life: Life, disk: MemoryDisk) -> None:
    again = Life(disk)
    again.open()
    log = again.partition.log
    assert log.end_offset >= life.flushed_end
    open_producers = {
        known.producer_id for known in log.producers.known() if known.transaction_first_offset >= 0
    }
    for producer_id in open_producers:
        again.end(producer_id)
    assert again.partition.last_stable_offset == log.end_offset
    found = read_committed(again.partition, 0)
    assert {len(record.value or b"") for record in found} <= {COMMITTED_BYTES}
    written = [
        header.base_offset
        for _, _, header in log.headers(0)
        if not header.is_control and header.producer_id not in ABORTING
    ]
    assert [record.offset for record in found] == written


@pytest.mark.parametrize("seed", [None, 1, 2])
def test_whatever_is_lost_what_was_aborted_stays_so(seed: int | None) -> None:
    """Without a seed only what was synced is there, with one also some of the rest, torn."""
    for number in range(1, all_changes()):
        disk = MemoryDisk()
        life = Life(disk)
        disk.stop_after(number)
        try:
            life.run()
        except PowerCut:
            pass
        check(life, disk.crash() if seed is None else disk.crash(keep=Random(seed * 1000 + number)))


def test_a_killed_process_loses_no_abort() -> None:
    for number in range(1, all_changes()):
        disk = MemoryDisk()
        life = Life(disk)
        disk.stop_after(number)
        try:
            life.run()
        except PowerCut:
            pass
        check(life, disk.kill())
