"""The log of a shard: how outcomes are written to it, and how a new shard is loaded from it."""

from asyncio import AbstractEventLoop, Future
from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING, Final

from penstock.broker.partitions.cold_reads import is_cold, look_up
from penstock.coordination.form import NO_PRODUCER_ID, Outcome, Shard
from penstock.model.errors import ApiError, ErrorCode
from penstock.records.batch import CONTROL_BIT, TRANSACTIONAL_BIT, InvalidRecord, iterate_headers
from penstock.records.build import build_batch
from penstock.records.marker import marker_of
from penstock.records.walk import Steps, read_pairs, unfold_in_steps
from penstock.runtime.pools import Pool

if TYPE_CHECKING:
    from penstock.broker.partitions.openings import Openings
    from penstock.broker.partitions.partition import Partition

LOAD_CHUNK_BYTES: Final = 64 * 1024
"""Read at a time."""
STEP_RECORDS: Final = 256
"""Replayed before others get their turn: about a millisecond."""
BATCH_BYTES: Final = 4 * 1024 * 1024
"""An outcome is one batch, which a crash keeps or loses as a whole. Only more than this (tens of thousands of offsets that are
forgotten together) becomes several."""

Records = list[tuple[bytes, bytes | None]]


def append(partition: "Partition", outcome: Outcome, *, now_ms: int) -> None:
    batch = _build(outcome.records, outcome.producer, now_ms)
    if len(batch) <= BATCH_BYTES:
        partition.append_own(batch)
    else:
        for records in _in_batches(outcome.records):
            partition.append_own(_build(records, outcome.producer, now_ms))


def _build(records: Records, producer: tuple[int, int] | None, now_ms: int) -> bytearray:
    to_write = [(key, value, (), now_ms) for key, value in records]
    if producer is None:
        return build_batch(to_write)
    producer_id, epoch = producer
    return build_batch(to_write, producer_id=producer_id, producer_epoch=epoch, transactional=True)


def _in_batches(records: Records) -> Iterator[Records]:
    start = size = 0
    for end, (key, value) in enumerate(records):
        size += len(key) + len(value or b"")
        if size > BATCH_BYTES and end > start:
            yield records[start:end]
            start, size = end, 0
    yield records[start:]


async def replay_log(
    loop: AbstractEventLoop, reads: Pool, partition: "Partition", shard: Shard, openings: "Openings"
) -> int:
    """Tell a new shard all that its log says; how many records make no sense.

    It ends when what earlier leaders have left in the log is committed: until then it may be in our log alone, and nobody may
    be told of it. NOT_COORDINATOR when our leadership ends first.
    """
    inherited_end = partition.log.end_offset
    offset, unread = await _replay_from(reads, partition, shard, openings, partition.log.start_offset)
    while partition.high_watermark < inherited_end:
        await _until_committed(loop, partition)
        # Markers may have been written meanwhile.
        offset, misread = await _replay_from(reads, partition, shard, openings, offset)
        unread += misread
    return unread


async def _replay_from(
    reads: Pool, partition: "Partition", shard: Shard, openings: "Openings", offset: int
) -> tuple[int, int]:
    """To the end of the log, also what is not committed: the offset behind it, and how many records make no sense."""
    unread = 0
    while offset < partition.log.end_offset:  # which markers may move while we read
        part = await look_up(reads, partial(partition.log.read, offset, LOAD_CHUNK_BYTES))
        if part.size_bytes == 0:
            break
        if is_cold(part):
            raw = await reads.run(part.file.read_at, part.position, part.size_bytes)
        else:
            raw = part.file.read_at(part.position, part.size_bytes)
        behind, misread = await openings.in_steps(replay(shard, raw))
        if behind <= offset:
            raise InvalidRecord(f"no whole record batch at offset {offset} of {partition}")
        offset = behind
        unread += misread
        check_led(partition)
    return offset, unread


async def _until_committed(loop: AbstractEventLoop, partition: "Partition") -> None:
    """Until the log as it is now is committed, or a new epoch of our leadership begins."""
    told: Future[None] = loop.create_future()
    commit = partition.when_committed(
        partition.log.end_offset, lambda error: None if told.done() else told.set_result(None)
    )
    try:
        await told
    finally:
        if commit is not None:
            commit.cancel()
    check_led(partition)


def check_led(partition: "Partition") -> None:
    if not partition.is_leader:
        raise ApiError(ErrorCode.NOT_COORDINATOR)


def replay(shard: Shard, batches: bytes) -> Steps[tuple[int, int]]:
    """Tell a shard what whole batches of its log say: the offset behind them, and how many records make no sense."""
    offset = unread = 0
    left = STEP_RECORDS
    view = memoryview(batches)
    replay = shard.replay
    for position, header in iterate_headers(view):
        offset = header.last_offset + 1
        batch = view[position : position + header.size_bytes]
        if header.attributes & CONTROL_BIT:
            marker = marker_of(batch, header)
            if marker is not None:
                shard.replay_marker(header.producer_id, committed=marker.committed)
            continue
        is_pending = header.attributes & TRANSACTIONAL_BIT
        producer_id = header.producer_id if is_pending else NO_PRODUCER_ID
        plain = yield from unfold_in_steps(batch, header)
        for pairs in read_pairs(plain, header.records_count, at_a_time=STEP_RECORDS):
            for key, value in pairs:
                try:
                    replay(key or b"", value, producer_id)
                except ValueError:
                    unread += 1
            left -= len(pairs)
            if left <= 0:
                yield None
                left = STEP_RECORDS
    yield None
    return offset, unread
