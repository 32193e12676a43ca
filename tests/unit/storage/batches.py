"""What the storage tests share: a clock that stands still, and batches made to size."""

from penstock.records.batch import BatchHeader, read_header
from penstock.records.build import build_batch
from penstock.storage.log import Log

NOW_MS = 1_700_000_000_000


class StillClock:
    def __init__(self) -> None:
        self.ms = NOW_MS

    def now_ms(self) -> int:
        return self.ms

    def monotonic(self) -> float:
        return self.ms / 1000

    def since_boot(self) -> float:
        return self.ms / 1000


def make_batch(
    count: int = 1,
    *,
    value_bytes: int = 10,
    timestamp: int = NOW_MS,
    producer_id: int = -1,
    producer_epoch: int = 0,
    base_sequence: int = 0,
    base_offset: int = 0,
    leader_epoch: int = 0,
    transactional: bool = False,
) -> tuple[memoryview, BatchHeader]:
    has_producer = producer_id >= 0
    batch = build_batch(
        [(None, bytes(value_bytes), (), timestamp) for _ in range(count)],
        producer_id=producer_id,
        producer_epoch=producer_epoch if has_producer else -1,
        base_sequence=base_sequence if has_producer else -1,
        base_offset=base_offset,
        leader_epoch=leader_epoch,
        transactional=transactional,
    )
    return memoryview(batch), read_header(batch)


def append(
    log: Log,
    count: int = 1,
    *,
    value_bytes: int = 10,
    timestamp: int = NOW_MS,
    leader_epoch: int = 0,
    producer_id: int = -1,
    base_sequence: int = 0,
) -> int:
    batch, header = make_batch(
        count,
        value_bytes=value_bytes,
        timestamp=timestamp,
        producer_id=producer_id,
        base_sequence=base_sequence,
    )
    return log.append(batch, header, leader_epoch)


def close_cleanly(log: Log) -> None:
    flush = log.prepare_close()
    if flush is not None:
        flush.run()
        log.flushed(flush)
    log.close()


def stored_bytes(log: Log) -> bytes:
    return b"".join(segment.open_file().read_at(0, segment.size_bytes) for segment in log.segments)


def base_offsets(log: Log, offset: int | None = None) -> list[int]:
    start = log.start_offset if offset is None else offset
    return [header.base_offset for _, _, header in log.headers(start)]
