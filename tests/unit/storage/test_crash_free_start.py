"""A start after a clean stop: what it reads, and how much that is for each partition."""

from collections import Counter

from penstock.model.ids import TopicPartition
from penstock.storage.log_directory import LogDirectory
from penstock.storage.options import LogOptions
from penstock.testing.disk import MemoryDisk, Operation
from tests.unit.storage.batches import StillClock, append

PATH = "/data"
OPTIONS = LogOptions(segment_bytes=20_000)
SEGMENTS = 3
BATCHES = 3


def stopped_disk(partitions: int, *, batches: int = BATCHES) -> MemoryDisk:
    disk = MemoryDisk()
    directory = LogDirectory(disk, PATH, StillClock())
    logs = []
    for number in range(partitions):
        log = directory.open_log(TopicPartition("orders", number), OPTIONS, topic_id=bytes(16))
        for at in range(SEGMENTS):
            if at:
                log.roll()
            for batch in range(batches):
                append(log, 2, value_bytes=2500, producer_id=5, base_sequence=2 * (at * batches + batch))
        logs.append(log)
    directory.close(logs, {})
    return disk.crash()


def operations_of_a_start(disk: MemoryDisk) -> list[Operation]:
    trace: list[Operation] = []
    disk.trace = trace
    directory = LogDirectory(disk, PATH, StillClock())
    assert directory.clean
    for topic_partition in directory.list_partitions():
        log = directory.open_log(topic_partition, OPTIONS, topic_id=bytes(16))
        assert len(log.segments) == SEGMENTS
        assert log.report.lines == []
    return trace


def test_only_the_headers_behind_the_last_index_entry_are_read_of_a_log() -> None:
    trace = operations_of_a_start(stopped_disk(20))
    read = [operation for operation in trace if operation.kind == "read" and operation.path.endswith(".log")]
    assert len(read) == 20
    assert sum(operation.size_bytes for operation in read) <= 20 * 4096


def test_a_longer_log_does_not_make_a_start_longer() -> None:
    short, long = (operations_of_a_start(stopped_disk(3, batches=batches)) for batches in (2, 3))
    assert len(long) == len(short)


def test_the_work_for_each_further_partition_is_bounded() -> None:
    few, many = (Counter(op.kind for op in operations_of_a_start(stopped_disk(n))) for n in (10, 110))
    each = {kind: (many[kind] - few[kind]) / 100 for kind in many}
    assert each["list"] == 1
    assert each["open"] <= 2 * SEGMENTS + 3
    assert each["read"] <= 2 * SEGMENTS + 6
    assert sum(each.values()) <= 4 * SEGMENTS + 12


def test_a_start_after_a_clean_stop_changes_only_the_marker() -> None:
    disk = stopped_disk(5)
    before = disk.changes
    operations_of_a_start(disk)
    assert disk.changes - before <= 3
