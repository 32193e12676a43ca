"""A scripted life of a log directory on a disk that may lose its power, and what must be true of it afterwards."""

from penstock.model.ids import TopicPartition
from penstock.records.batch import ATTRIBUTES_AT, BatchHeader, iterate_headers
from penstock.records.crc import crc32c
from penstock.storage.chores import Chores, run_here
from penstock.storage.log import Log
from penstock.storage.log_directory import LogDirectory
from penstock.storage.options import LogOptions
from penstock.storage.producer_state import ProducerState
from penstock.testing.disk import MemoryDisk
from tests.unit.storage.batches import NOW_MS, StillClock, make_batch

PATH = "/data"
ORDERS = TopicPartition("orders", 3)
TOPIC_ID = bytes(range(16))
OPTIONS = LogOptions(segment_bytes=420, index_interval_bytes=100, file_delete_delay_ms=0)
SMALL_RETENTION = LogOptions(
    segment_bytes=420, index_interval_bytes=100, file_delete_delay_ms=0, retention_bytes=450
)

Batches = list[tuple[int, bytes]]


class Life:
    """Runs the script and remembers what was promised so far, however suddenly it ends."""

    def __init__(self, disk: MemoryDisk) -> None:
        self.disk = disk
        self.clock = StillClock()
        self.versions: list[Batches] = [[]]  # what the log held; a truncation begins a new one
        self.acknowledged_end = 0  # `append` returned: survives the process
        self.acknowledged_least = 0  # the same, but lower while a truncation is under way
        self.flushed_end = 0  # a flush ended: survives the machine
        self.latest_start = 0  # the start offset was never asked to be above
        self.earliest_start = 0  # a checkpoint of it is on the device
        self.closed_cleanly = False
        self.appended = 0
        self.sequences = {7: 0, 8: 0}
        self.log: Log
        self.directory: LogDirectory

    def open(self, options: LogOptions = OPTIONS) -> None:
        self.closed_cleanly = False
        self.directory = LogDirectory(self.disk, PATH, self.clock)
        self.directory.claim(broker_id=1, cluster_id="crash-test")
        self.log = self.directory.open_log(ORDERS, options, topic_id=TOPIC_ID)

    def append(self, times: int, *, epoch: int) -> None:
        for _ in range(times):
            producer_id = 7 + self.appended % 2
            count = 1 + self.appended % 3
            batch, header = make_batch(
                count,
                value_bytes=5 + self.appended % 11,
                timestamp=NOW_MS + (self.appended * 7) % 50,
                producer_id=producer_id,
                base_sequence=self.sequences[producer_id],
            )
            before = self.versions[-1]
            expected = self.log.end_offset
            batch[0:8] = expected.to_bytes(8, "big")
            batch[12:16] = epoch.to_bytes(4, "big")
            self.versions[-1] = [*before, (expected, bytes(batch))]  # a cut append may be there or not
            self.log.append(batch, header, epoch)
            self.sequences[producer_id] += count
            self.appended += 1
            self.acknowledged_end = self.acknowledged_least = self.log.end_offset

    def flush(self, *, include_active: bool = True) -> None:
        flush = self.log.prepare_flush(include_active=include_active)
        if flush is not None:
            flush.run()
            self.flushed_end = max(self.flushed_end, flush.end_offset)
            self.log.flushed(flush)

    def checkpoint(self) -> None:
        start_offset = self.log.start_offset
        self.directory.checkpoint([self.log], {ORDERS: self.log.end_offset})
        self.earliest_start = start_offset

    def delete_records(self, offset: int) -> None:
        self.latest_start = offset
        removal = self.log.advance_start_offset(offset)
        if removal is not None:
            removal.run()

    def retain(self) -> None:
        self.latest_start = self.log.end_offset
        removal = self.log.apply_retention(now_ms=self.clock.now_ms(), end_offset=self.log.end_offset)
        if removal is not None:
            removal.run()
        self.latest_start = self.log.start_offset

    def truncate(self, offset: int) -> None:
        run_here(self.truncating(offset))

    def truncating(self, offset: int) -> Chores:
        kept = [(base, batch) for base, batch in self.versions[-1] if base < offset]
        self.flushed_end = min(self.flushed_end, offset)
        self.acknowledged_least = min(self.acknowledged_least, offset)
        self.latest_start = min(self.latest_start, offset)
        self.versions.append(kept)
        yield from self.log.truncating_to(offset)
        self.acknowledged_end = self.log.end_offset
        self.sequences = {7: 1000 * len(self.versions), 8: 1000 * len(self.versions)}

    def close(self) -> None:
        self.directory.close([self.log], {ORDERS: self.log.end_offset})
        self.flushed_end = self.acknowledged_end
        self.earliest_start = self.log.start_offset
        self.closed_cleanly = True

    def run(self) -> None:
        self.open()
        self.append(7, epoch=0)
        self.flush()
        self.checkpoint()
        self.append(5, epoch=1)
        self.delete_records(8)
        self.checkpoint()
        self.append(2, epoch=1)
        self.truncate(self.versions[-1][-5][0])
        self.checkpoint()
        self.append(5, epoch=2)
        self.flush(include_active=False)
        self.checkpoint()
        self.log.options = SMALL_RETENTION
        self.retain()
        self.append(1, epoch=3)
        self.close()
        self.open()
        self.append(4, epoch=4)
        self.log.roll()
        self.append(1, epoch=4)
        self.flush()
        self.close()


def reopened(disk: MemoryDisk) -> tuple[LogDirectory, Log]:
    directory = LogDirectory(disk, PATH, StillClock())
    directory.claim(broker_id=1, cluster_id="crash-test")
    return directory, directory.open_log(ORDERS, OPTIONS, topic_id=TOPIC_ID)


def batches_of(log: Log) -> list[tuple[BatchHeader, bytes]]:
    found = []
    for segment in log.segments:
        data = segment.open_file().read_at(0, segment.size_bytes)
        for position, header in iterate_headers(memoryview(data)):
            found.append((header, data[position : position + header.size_bytes]))
    return found


def check_log(log: Log, *, dense: bool = True) -> None:
    """What is true of every open log, whatever happened to it."""
    batches = batches_of(log)
    end_offset = log.segments[0].base_offset
    for header, batch in batches:
        assert header.base_offset == end_offset or (not dense and header.base_offset > end_offset)
        assert crc32c(batch[ATTRIBUTES_AT:]) == header.crc
        end_offset = header.last_offset + 1
    assert log.end_offset == end_offset or (not dense and log.end_offset > end_offset)
    assert log.segments[0].base_offset <= log.start_offset <= log.end_offset
    assert log.recovery_point <= log.end_offset
    check_indexes(log)
    check_producers(log, batches)
    check_reads(log, batches)
    if dense:  # else an epoch may begin before its first batch that is left
        check_epochs(log, batches)


def check_epochs(log: Log, batches: list[tuple[BatchHeader, bytes]]) -> None:
    """Where a lost checkpoint moved the start offset back, the first epochs may be unknown: nobody asks for them."""
    epochs: dict[int, int] = {}
    for header, _ in batches:
        if header.last_offset >= log.start_offset:
            epochs.setdefault(header.partition_leader_epoch, max(header.base_offset, log.start_offset))
    expected = list(epochs.items())
    known = log.leader_epochs.entries
    if known:
        expected = expected[-len(known) :]
        assert expected[0][0] == known[0][0]
        assert expected[0][1] <= known[0][1]
    assert known[1:] == expected[1:]


def check_indexes(log: Log) -> None:
    for segment in log.segments:
        by_position = dict(segment.headers())
        for relative, position in segment.offset_index.entries():
            assert by_position[position].last_offset == segment.base_offset + relative
        last_timestamp = -1
        for timestamp, relative in segment.time_index.entries():
            assert timestamp > last_timestamp
            last_timestamp = timestamp
            offset = segment.base_offset + relative
            timestamps = {h.last_offset: h.max_timestamp for h in by_position.values()}
            assert timestamps[offset] == timestamp
            assert timestamp == max(seen for last, seen in timestamps.items() if last <= offset)
        largest = max((header.max_timestamp for header in by_position.values()), default=-1)
        assert segment.max_timestamp == largest


def check_producers(log: Log, batches: list[tuple[BatchHeader, bytes]]) -> None:
    replayed = ProducerState()
    for header, _ in batches:
        if header.producer_id >= 0 and not header.is_control:
            replayed.update(header, header.base_offset)
    known = {producer_id: (last, epoch) for producer_id, last, epoch in log.producers.last_offsets()}
    for producer_id, last, epoch in replayed.last_offsets():
        assert known.get(producer_id) == (last, epoch)
    assert all(last < log.end_offset for last, _ in known.values())


def check_reads(log: Log, batches: list[tuple[BatchHeader, bytes]]) -> None:
    for header, batch in batches:
        if header.base_offset >= log.start_offset:
            found = log.read(header.last_offset, 1)
            assert found.file.read_at(found.position, found.size_bytes) == batch
    assert log.read(log.end_offset, 1).size_bytes == 0


def check_after_crash(life: Life, disk: MemoryDisk, *, least_end: int, ordered: bool = True) -> None:
    _, log = reopened(disk)
    check_log(log)
    found = [(header.base_offset, batch) for header, batch in batches_of(log)]
    first = log.segments[0].base_offset
    assert any(
        found == [entry for entry in version if first <= entry[0] < log.end_offset]
        for version in life.versions
    ), "not a part of what was appended"
    assert log.end_offset >= least_end
    assert life.earliest_start <= log.start_offset
    # When names are kept in any order, the first segment may be lost and the second there, before any flush.
    assert log.start_offset <= life.latest_start or (not ordered and life.flushed_end == 0)
    again_disk = disk.kill()
    _, again = reopened(again_disk)
    assert (again.start_offset, again.end_offset) == (log.start_offset, log.end_offset)
    assert batches_of(again) == batches_of(log)
    assert again.report.truncated_bytes == 0
    assert again.producers.snapshot() == log.producers.snapshot()
    batch, header = make_batch(2)
    assert again.append(batch, header, 9) == log.end_offset
    check_log(again)
