"""What a log is made of, read from file sizes, index tails and the checkpoints: no log is read as a whole."""

import os
import struct
from typing import Any, NamedTuple

from penstock.inspection.check_indexes import used_entries
from penstock.inspection.check_segment import SegmentPlace
from penstock.inspection.dump.log_bytes import NotABatch, map_file, stored_batches
from penstock.inspection.places import LogPlace, Place
from penstock.inspection.verify import segments_of
from penstock.model.ids import TopicPartition
from penstock.records.batch import HEADER_SIZE, MAGIC, read_header
from penstock.runtime.files import OsDisk
from penstock.storage import checkpoints, names
from penstock.storage.index import OFFSET_ENTRY, TIME_ENTRY
from penstock.storage.leader_epochs import LeaderEpochs

CLEAN, DIRTY, CLOSED, ACTIVE = "clean", "dirty", "closed", "active"


class SegmentLayout(NamedTuple):
    """One segment of a log, and what its indexes say."""

    base_offset: int
    end_offset: int
    """Of a closed segment: where the next one begins; its last batches may be compacted away."""
    size_bytes: int
    offset_index_entries: int
    time_index_entries: int
    first_timestamp: int
    largest_timestamp: int
    state: str
    """`closed`: not the last, in a log that was never cleaned."""


class LogLayout(NamedTuple):
    """One log with its segments. Offsets that no checkpoint tells are None."""

    topic_partition: TopicPartition
    path: str
    segments: list[SegmentLayout]
    start_offset: int
    high_watermark: int | None
    recovery_point: int | None
    cleaner_offset: int | None
    leader_epoch: int

    @property
    def size_bytes(self) -> int:
        return sum(segment.size_bytes for segment in self.segments)

    @property
    def end_offset(self) -> int:
        return self.segments[-1].end_offset if self.segments else self.start_offset

    @property
    def largest_timestamp(self) -> int:
        """-1 where no record has one."""
        return max((segment.largest_timestamp for segment in self.segments), default=-1)

    @property
    def has_deleted(self) -> bool:
        """Records before the start offset that are still on disk."""
        return bool(self.segments) and self.start_offset > self.segments[0].base_offset

    def size_of(self, state: str) -> int:
        return sum(segment.size_bytes for segment in self.segments if segment.state == state)

    @property
    def dirty_ratio(self) -> float | None:
        """Of what a cleaner may look at; None when it was never cleaned."""
        if self.cleaner_offset is None:
            return None
        clean, dirty = self.size_of(CLEAN), self.size_of(DIRTY)
        return dirty / (clean + dirty) if clean + dirty else 0.0

    def as_json(self) -> dict[str, Any]:
        return {
            "topic": self.topic_partition.topic,
            "partition": self.topic_partition.partition,
            "directory": self.path,
            "size_bytes": self.size_bytes,
            "start_offset": self.start_offset,
            "end_offset": self.end_offset,
            "high_watermark": self.high_watermark,
            "recovery_point": self.recovery_point,
            "cleaner_offset": self.cleaner_offset,
            "dirty_ratio": self.dirty_ratio,
            "leader_epoch": self.leader_epoch,
            "segments": [segment._asdict() for segment in self.segments],
        }


def read_layouts(place: Place) -> list[LogLayout]:
    """Of every log of the place. Reads headers and indexes; OSError where a file cannot be read."""
    offsets = {
        name: _offsets(place.log_directory, name)
        for name in (
            checkpoints.LOG_START_OFFSET_CHECKPOINT,
            checkpoints.HIGH_WATERMARK_CHECKPOINT,
            checkpoints.RECOVERY_POINT_CHECKPOINT,
            checkpoints.CLEANER_CHECKPOINT,
        )
    }
    return [_read(log, offsets) for log in place.logs]


def _offsets(directory: str, name: str) -> dict[TopicPartition, int]:
    try:
        return checkpoints.read_offsets(OsDisk(), os.path.join(directory, name))
    except checkpoints.CorruptCheckpoint:
        return {}


def _read(log: LogPlace, offsets: dict[str, dict[TopicPartition, int]]) -> LogLayout:
    known = {name: by_log.get(log.topic_partition) for name, by_log in offsets.items()}
    cleaner_offset = known[checkpoints.CLEANER_CHECKPOINT]
    segments = [_segment(place, cleaner_offset) for place in segments_of(log.path)]
    start_offset = known[checkpoints.LOG_START_OFFSET_CHECKPOINT] or 0
    if segments:
        start_offset = max(start_offset, segments[0].base_offset)
    epochs = LeaderEpochs(OsDisk(), os.path.join(log.path, names.LEADER_EPOCH_CHECKPOINT))
    epochs.load()
    return LogLayout(
        log.topic_partition,
        log.path,
        segments,
        start_offset,
        known[checkpoints.HIGH_WATERMARK_CHECKPOINT],
        known[checkpoints.RECOVERY_POINT_CHECKPOINT],
        cleaner_offset,
        epochs.latest,
    )


def _segment(place: SegmentPlace, cleaner_offset: int | None) -> SegmentLayout:
    is_last = place.end_offset is None
    offsets_count, last_entry = _index_tail(place.path(names.OFFSET_INDEX_SUFFIX), OFFSET_ENTRY, is_last)
    times_count, last_time = _index_tail(place.path(names.TIME_INDEX_SUFFIX), TIME_ENTRY, is_last)
    data = map_file(place.path(names.LOG_SUFFIX))
    first_timestamp = -1
    if len(data) >= HEADER_SIZE:
        header = read_header(data)
        first_timestamp = header.base_timestamp if header.magic == MAGIC else -1
    end_offset, largest = place.end_offset, last_time[0]
    if end_offset is None:
        end_offset, largest = _tail(data, place, position=last_entry[1], largest=largest)
    if is_last:
        state = ACTIVE
    elif cleaner_offset is None:
        state = CLOSED
    else:
        state = CLEAN if end_offset <= cleaner_offset else DIRTY
    return SegmentLayout(
        place.base_offset,
        end_offset,
        len(data),
        offsets_count,
        times_count,
        first_timestamp,
        largest,
        state,
    )


def _index_tail(path: str, entry: struct.Struct, is_last: bool) -> tuple[int, tuple[int, int]]:
    """(entries in use, the last of them); the file of a last segment may be longer than it needs."""
    nothing = (-1, 0)
    try:
        size = os.path.getsize(path)
        with open(path, "rb") as file:
            if not is_last:
                count = size // entry.size
                file.seek(max(count - 1, 0) * entry.size)
                data = file.read(entry.size)
            else:
                whole = file.read()
                count = used_entries(whole, entry.size)
                data = whole[max(count - 1, 0) * entry.size :][: entry.size]
    except FileNotFoundError:
        return 0, nothing
    if count == 0 or len(data) < entry.size:
        return 0, nothing
    first, second = entry.unpack(data)
    return count, (first, second)


def _tail(data: memoryview, place: SegmentPlace, *, position: int, largest: int) -> tuple[int, int]:
    """(end offset, largest timestamp) of the last segment, from the batches behind its last index entry."""
    end_offset = place.base_offset
    try:
        for batch in stored_batches(data, place.directory, position):
            end_offset = batch.last_offset + 1
            if batch.header is not None:
                largest = max(largest, batch.header.max_timestamp)
    except NotABatch:
        pass  # `penstock log verify` tells about it
    return end_offset, largest
