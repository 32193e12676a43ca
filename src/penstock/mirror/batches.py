"""Batches as they were fetched, made fit to be produced again. Pure.

Most go as they are: only the header changes, and its CRC. A batch is opened and built anew where a broker would refuse it:
offsets that a compaction has left gaps between, the broker's own time instead of the producer's, records before the offset that
was asked for. Markers of transactions, what was taken back, and batches without records are left out.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Final, NamedTuple

from penstock.records.batch import (
    ATTRIBUTES_AT,
    CODEC_MASK,
    CRC_AT,
    HEADER,
    LENGTH_OVERHEAD,
    TRANSACTIONAL_BIT,
    BatchHeader,
    InvalidRecord,
    iterate_headers,
)
from penstock.records.build import build_batch
from penstock.records.crc import crc32c
from penstock.records.marker import marker_of
from penstock.records.walk import Record, iterate_records

_PRODUCER: Final = struct.Struct(">qhi")
_PRODUCER_AT: Final = 43
_CRC: Final = struct.Struct(">I")
_BATCH_HEAD: Final = struct.Struct(">qii")
_KEPT: Final = CODEC_MASK
MAX_SEQUENCE: Final = 0x7FFFFFFF

Run = tuple[int, int, int]
"""(offset at the source, number in the batch, how many on end)"""


class Outgoing:
    """A batch that can be sent. `stamp` gives it the producer's numbers."""

    __slots__ = ("count", "data", "next_offset", "runs")

    def __init__(self, data: bytearray, count: int, next_offset: int, runs: Sequence[Run]) -> None:
        self.data, self.count, self.next_offset, self.runs = data, count, next_offset, runs

    def stamp(self, producer_id: int, epoch: int, sequence: int, *, is_transactional: bool) -> None:
        data = self.data
        # The source's leader epoch means nothing to another cluster.
        _BATCH_HEAD.pack_into(data, 0, 0, len(data) - LENGTH_OVERHEAD, -1)
        data[ATTRIBUTES_AT] = 0
        data[ATTRIBUTES_AT + 1] = data[ATTRIBUTES_AT + 1] & _KEPT | (
            TRANSACTIONAL_BIT if is_transactional else 0
        )
        _PRODUCER.pack_into(data, _PRODUCER_AT, producer_id, epoch, sequence)
        _CRC.pack_into(data, CRC_AT, crc32c(memoryview(data)[ATTRIBUTES_AT:]))


class Fetched(NamedTuple):
    batches: list[Outgoing]
    next_offset: int
    """At the source, behind all that was looked at."""


class Damaged(InvalidRecord):
    """A batch whose CRC says that it is not what was written."""


def outgoing(records: memoryview, start_offset: int, aborted: Sequence[tuple[int, int]]) -> Fetched:
    """`aborted`: producer ids, and where what they took back begins. InvalidRecord."""
    found: list[Outgoing] = []
    next_offset = start_offset
    waiting = sorted(aborted, key=lambda one: one[1], reverse=True)
    taken_back: set[int] = set()
    for position, header in iterate_headers(records):
        end = header.last_offset + 1
        if end <= start_offset:
            continue
        next_offset = end
        batch = records[position : position + header.size_bytes]
        if waiting or taken_back:
            while waiting and waiting[-1][1] <= header.last_offset:
                taken_back.add(waiting.pop()[0])
            if header.is_control:
                marker = marker_of(batch, header)
                if marker is not None and not marker.committed:
                    taken_back.discard(header.producer_id)
                continue
            if header.is_transactional and header.producer_id in taken_back:
                continue
        if header.is_control or not header.records_count:
            continue
        if crc32c(batch[ATTRIBUTES_AT:]) != header.crc & 0xFFFFFFFF:
            raise Damaged(
                f"the batch at offset {header.base_offset} is damaged: its CRC is not that of its bytes"
            )
        if _is_whole(header, start_offset):
            found.append(
                Outgoing(
                    bytearray(batch),
                    header.records_count,
                    end,
                    [(header.base_offset, 0, header.records_count)],
                )
            )
        else:
            found.extend(_built(batch, header, start_offset))
    return Fetched(found, next_offset)


def _is_whole(header: BatchHeader, start_offset: int) -> bool:
    return (
        header.base_offset >= start_offset
        and header.records_count == header.last_offset_delta + 1
        and not header.timestamp_type
    )


def _built(batch: memoryview, header: BatchHeader, start_offset: int) -> list[Outgoing]:
    left = [record for record in iterate_records(batch, header) if record.offset >= start_offset]
    if not left:
        return []
    data = build_batch([(one.key, one.value, one.headers, one.timestamp) for one in left], codec=header.codec)
    return [Outgoing(data, len(left), header.last_offset + 1, runs_of(left))]


def runs_of(records: Sequence[Record]) -> list[Run]:
    runs: list[Run] = []
    for number, record in enumerate(records):
        if runs and record.offset == runs[-1][0] + runs[-1][2]:
            first, at, count = runs[-1]
            runs[-1] = (first, at, count + 1)
        else:
            runs.append((record.offset, number, 1))
    return runs


def next_sequence(sequence: int, count: int) -> int:
    """Behind so many records; they wrap to 0."""
    return (sequence + count) & MAX_SEQUENCE


assert HEADER.size == _PRODUCER_AT + _PRODUCER.size + 4
