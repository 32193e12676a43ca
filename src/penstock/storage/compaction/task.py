"""What the broker asks of a worker and what it hears back: one JSON object per line, on the worker's stdin and stdout.

broker → worker   a CleaningTask
worker → broker   {"progress": 0.25}            of all bytes to be read, now and then
                  {"cleaned": …}                a CleanedSegment: its files are complete and on the device
                  {"done": …}                   a CleaningResult, the last line of a task
                  {"failed": "why", "corrupt": true}    instead of done; corrupt: trying again would not help
"""

import json
from typing import Any, NamedTuple

NO_OFFSET = -1


class SourceSegment(NamedTuple):
    base_offset: int
    size_bytes: int
    index_bytes: int
    time_index_bytes: int


class ActiveProducer(NamedTuple):
    """A producer whose last batch must stay, if only empty: it holds the sequence that the next one is checked by."""

    producer_id: int
    last_offset: int  # of its last data batch; NO_OFFSET when only markers are left of it
    epoch: int


class CleaningTask(NamedTuple):
    directory: str
    segments: list[SourceSegment]  # from the first of the log to the last that may be cleaned
    first_dirty_offset: int
    end_offset: int  # the base of the first segment that may not be cleaned
    now_ms: int
    delete_retention_ms: int
    segment_bytes: int
    segment_index_bytes: int
    index_interval_bytes: int
    producers: list[ActiveProducer]
    map_bytes: int = 128 * 1024 * 1024
    map_load_factor: float = 0.9
    buffer_bytes: int = 256 * 1024
    max_bytes_per_second: float = float("inf")


class CleanedSegment(NamedTuple):
    """A `.cleaned` segment that takes the place of some neighbours; the first of them has its base offset."""

    base_offset: int
    replaced: list[int]  # base offsets
    size_bytes: int
    index_bytes: int
    time_index_bytes: int


class CleaningResult(NamedTuple):
    next_dirty_offset: int
    bytes_read: int
    bytes_written: int
    records_read: int
    records_kept: int
    null_keys: int
    map_entries: int


class Failed(NamedTuple):
    reason: str
    corrupt: bool


Message = float | CleanedSegment | CleaningResult | Failed


def encode_task(task: CleaningTask) -> bytes:
    return json.dumps(task._asdict()).encode() + b"\n"


def decode_task(line: bytes) -> CleaningTask:
    fields = json.loads(line)
    fields["segments"] = [SourceSegment(*segment) for segment in fields["segments"]]
    fields["producers"] = [ActiveProducer(*producer) for producer in fields["producers"]]
    return CleaningTask(**fields)


def encode_message(message: Message) -> bytes:
    fields: dict[str, Any]
    if isinstance(message, CleanedSegment):
        fields = {"cleaned": message._asdict()}
    elif isinstance(message, CleaningResult):
        fields = {"done": message._asdict()}
    elif isinstance(message, Failed):
        fields = {"failed": message.reason, "corrupt": message.corrupt}
    else:
        fields = {"progress": message}
    return json.dumps(fields).encode() + b"\n"


def decode_message(line: bytes) -> Message:
    """ValueError when the line is none of ours."""
    fields = json.loads(line)
    if "progress" in fields:
        return float(fields["progress"])
    if "cleaned" in fields:
        return CleanedSegment(**fields["cleaned"])
    if "done" in fields:
        return CleaningResult(**fields["done"])
    if "failed" in fields:
        return Failed(fields["failed"], fields["corrupt"])
    raise ValueError(f"not a line of a compaction worker: {line[:80]!r}")
