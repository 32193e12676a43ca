"""What the compaction tests share: logs of keyed records, and a cleaning without a worker process or a broker."""

from collections.abc import Callable, Sequence

from penstock.records.batch import BatchHeader, read_header
from penstock.records.build import build_batch
from penstock.records.walk import Record, iterate_records
from penstock.runtime.files import Disk
from penstock.storage.compaction.clean import Cleaning
from penstock.storage.compaction.swap import Swap
from penstock.storage.compaction.task import (
    ActiveProducer,
    CleanedSegment,
    CleaningResult,
    CleaningTask,
    SourceSegment,
)
from penstock.storage.log import Log
from tests.unit.storage.batches import NOW_MS

DELETE_RETENTION_MS = 1000
Pair = tuple[str | None, str | None]


def put(
    log: Log,
    *pairs: Pair,
    codec: int = 0,
    timestamp: int = NOW_MS,
    producer_id: int = -1,
    base_sequence: int = 0,
    transactional: bool = False,
) -> int:
    """Appends one batch of (key, value) records; None is null."""
    batch = build_batch(
        [(_bytes(key), _bytes(value), (), timestamp + number) for number, (key, value) in enumerate(pairs)],
        codec=codec,
        producer_id=producer_id,
        producer_epoch=0 if producer_id >= 0 else -1,
        base_sequence=base_sequence if producer_id >= 0 else -1,
        transactional=transactional,
    )
    return log.append(memoryview(batch), read_header(batch), 0)


def put_marker(log: Log, producer_id: int, *, commit: bool, timestamp: int = NOW_MS) -> int:
    key = (0).to_bytes(2, "big") + (1 if commit else 0).to_bytes(2, "big")
    value = (0).to_bytes(2, "big") + (0).to_bytes(4, "big")
    batch = build_batch(
        [(key, value, (), timestamp)],
        producer_id=producer_id,
        producer_epoch=0,
        transactional=True,
        control=True,
    )
    return log.append(memoryview(batch), read_header(batch), 0)


def _bytes(text: str | None) -> bytes | None:
    return None if text is None else text.encode()


def task_for(
    log: Log,
    *,
    first_dirty_offset: int = 0,
    end_offset: int | None = None,
    now_ms: int = NOW_MS,
    map_bytes: int = 1 << 20,
    buffer_bytes: int = 256 * 1024,
) -> CleaningTask:
    end_offset = log.segments.active.base_offset if end_offset is None else end_offset
    return CleaningTask(
        directory=log.directory,
        segments=[
            SourceSegment(
                segment.base_offset,
                segment.size_bytes,
                segment.offset_index.size_bytes,
                segment.time_index.size_bytes,
            )
            for segment in log.segments
            if segment.base_offset < end_offset
        ],
        first_dirty_offset=first_dirty_offset,
        end_offset=end_offset,
        now_ms=now_ms,
        delete_retention_ms=DELETE_RETENTION_MS,
        segment_bytes=log.options.segment_bytes,
        segment_index_bytes=log.options.segment_index_bytes,
        index_interval_bytes=log.options.index_interval_bytes,
        producers=[ActiveProducer(*fields) for fields in log.producers.last_offsets()],
        map_bytes=map_bytes,
        buffer_bytes=buffer_bytes,
    )


def swap_in(disk: Disk, log: Log, cleaned: CleanedSegment, pause: Callable[[], None] = lambda: None) -> None:
    swap = Swap(disk, log, cleaned)
    assert swap.begin()
    pause()
    swap.sync()
    removal = swap.take_over()
    assert removal is not None
    pause()
    swap.sync()
    swap.finish()
    swap.sync()
    pause()
    removal.run()


def run_cleaning(disk: Disk, log: Log, task: CleaningTask) -> CleaningResult:
    """With each segment swapped in as soon as it is ready, as the broker does it."""

    def report(message: float | CleanedSegment) -> None:
        if isinstance(message, CleanedSegment):
            swap_in(disk, log, message)

    return Cleaning(disk, task, report=report, throttle=lambda size: None).run()


def clean(
    disk: Disk, log: Log, *, first_dirty_offset: int = 0, now_ms: int = NOW_MS, map_bytes: int = 1 << 20
) -> CleaningResult:
    """All closed segments."""
    task = task_for(log, first_dirty_offset=first_dirty_offset, now_ms=now_ms, map_bytes=map_bytes)
    return run_cleaning(disk, log, task)


def batches(log: Log) -> list[tuple[BatchHeader, bytes]]:
    """In the order that a consumer would read them, through `Log.read`."""
    found = []
    offset = log.start_offset
    while offset < log.end_offset:
        part = log.read(offset, 1 << 20)
        if part.size_bytes == 0:
            break
        header = read_header(part.file.read_at(part.position, 61))
        found.append((header, part.file.read_at(part.position, header.size_bytes)))
        offset = header.last_offset + 1
    return found


def records(log: Log) -> list[Record]:
    return _records_in(batches(log))


def _records_in(stored: list[tuple[BatchHeader, bytes]]) -> list[Record]:
    return [
        record
        for header, batch in stored
        if not header.is_control
        for record in iterate_records(batch, header)
    ]


def shown(log: Log) -> list[tuple[int, str | None, str | None]]:
    """(offset, key, value) of each record."""
    return shown_in(batches(log))


def shown_in(stored: list[tuple[BatchHeader, bytes]]) -> list[tuple[int, str | None, str | None]]:
    return [(record.offset, _text(record.key), _text(record.value)) for record in _records_in(stored)]


def _text(data: bytes | None) -> str | None:
    return None if data is None else data.decode()


def pairs_of(keys: Sequence[str], value: str) -> list[Pair]:
    return [(key, value) for key in keys]
