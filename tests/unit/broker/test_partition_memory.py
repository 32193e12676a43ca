"""What an open partition that nobody uses costs."""

import tracemalloc

from penstock.broker.partitions.partition import Partition
from penstock.model.ids import TopicPartition
from penstock.storage.log_directory import LogDirectory
from penstock.storage.options import LogOptions
from penstock.testing.disk import MemoryDisk
from tests.unit.storage.batches import StillClock, append

PARTITIONS = 100
MOST_BYTES = 20 * 1024


def test_an_open_idle_partition_of_three_segments_is_small() -> None:
    disk, clock, options = MemoryDisk(), StillClock(), LogOptions()
    directory = LogDirectory(disk, "/data", clock)
    topic_partitions = [TopicPartition("orders", number) for number in range(PARTITIONS)]
    logs = []
    for topic_partition in topic_partitions:
        log = directory.open_log(topic_partition, options, topic_id=bytes(16))
        for at in range(3):
            if at:
                log.roll()
            append(log, 10, value_bytes=1000, producer_id=at)
        logs.append(log)
    directory.close(logs, {})
    disk = disk.crash()
    directory = LogDirectory(disk, "/data", clock)
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        partitions = [
            Partition(
                name.topic,
                name.partition,
                directory.open_log(name, options, topic_id=bytes(16)),
                clock,
                leader_epoch=0,
            )
            for name in topic_partitions
        ]
        used = tracemalloc.get_traced_memory()[0] - before
    finally:
        tracemalloc.stop()
    assert all(len(partition.log.segments) == 3 for partition in partitions)
    assert used / PARTITIONS < MOST_BYTES
    assert used / PARTITIONS < 8 * 1024, "more than it was: look what grew"
