"""Reading ranges of a topic as Arrow batches, for one thread: what retention deletes meanwhile is stepped over, and said.

`Reader` has the connections. A search has one and closes it. `stopped` ends a read from another thread, within a tenth
of a second.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from types import TracebackType
from typing import Final

import pyarrow as pa

from penstock.client.errors import ReadFailed, UserError
from penstock.client.fetching import READ_COMMITTED, Range, fetch
from penstock.client.options import client_options
from penstock.client.properties import SECURITY_NAMES
from penstock.client.topics import EARLIEST, Client, Topic
from penstock.console.messages.model import Control, Counts
from penstock.records.batch import InvalidRecord, iterate_headers
from penstock.records.columnar.columns import (
    HEADERS,
    KEY,
    OFFSET,
    PARTITION,
    TIMESTAMP,
    TIMESTAMP_TYPE,
    VALUE,
)
from penstock.records.columnar.decode import Decoder
from penstock.records.marker import marker_of

COLUMNS: Final = (KEY, VALUE, PARTITION, OFFSET, TIMESTAMP, TIMESTAMP_TYPE, HEADERS)
SLICE_ROWS: Final = 64 << 10
SLICE_BYTES: Final = 4 << 20
"""Of one batch, and so of what is looked through between two looks at `stopped`; one record may be larger."""
OPTIONS: Final[Mapping[str, str | int]] = {
    "client.id": "penstock-console", "fetch.max.bytes": 8 << 20, "max.partition.fetch.bytes": 4 << 20,
    "request.timeout.ms": 10_000, "default.api.timeout.ms": 15_000,
}  # fmt: skip
READ_UNCOMMITTED: Final = 0


class Reader:
    """Use from one thread, as a context."""

    def __init__(
        self, bootstrap: str, properties: Mapping[str, str], *, committed: bool, stopped: threading.Event
    ) -> None:
        known = {name: value for name, value in properties.items() if name in SECURITY_NAMES}
        self._client = Client(client_options(bootstrap, {**OPTIONS, **known}))
        self._isolation_level = READ_COMMITTED if committed else READ_UNCOMMITTED
        self._stopped = stopped
        self.counts = Counts()

    def __enter__(self) -> Reader:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._client.close()

    def topic(self, name: str) -> Topic:
        return self._client.topic(name)

    @property
    def client(self) -> Client:
        return self._client

    @property
    def isolation_level(self) -> int:
        return self._isolation_level

    def offsets(self, topic: Topic, timestamps: Mapping[int, int]) -> dict[int, int | None]:
        return self._client.offsets(topic, timestamps, isolation_level=self._isolation_level)

    def batches(
        self, topic: Topic, ranges: Mapping[int, Range], *, with_control: bool = False
    ) -> Iterator[pa.RecordBatch | list[Control]]:
        """In order within each partition. It ends early when it is stopped. ReadFailed."""
        left = dict(ranges)
        while left:
            try:
                yield from self._attempt(topic, left, with_control=with_control)
                return
            except InvalidRecord as error:
                raise ReadFailed(f"{error}; it cannot be read past this") from None
            except ReadFailed:
                if not self._step_over_deleted(topic, left):
                    raise

    def _attempt(
        self, topic: Topic, left: dict[int, Range], *, with_control: bool
    ) -> Iterator[pa.RecordBatch | list[Control]]:
        """`left` is what has not been decoded yet: after a failure the rest is read once more."""
        counts = self.counts
        committed = self._isolation_level == READ_COMMITTED
        decoder = Decoder(topic.name, COLUMNS, max_rows=SLICE_ROWS, max_bytes=SLICE_BYTES)
        pieces = fetch(
            self._client, topic, dict(left), isolation_level=self._isolation_level, stopped=self._stopped
        )
        for piece in pieces:
            counts.bytes += len(piece.records)
            try:
                for batch in decoder.decode(
                    piece.records,
                    partition=piece.partition,
                    start_offset=piece.start_offset,
                    end_offset=piece.end_offset,
                    aborted=piece.aborted if committed else None,
                ):
                    counts.records += batch.num_rows
                    yield batch
                    if self._stopped.is_set():
                        return
            except InvalidRecord:
                yield from self._flushed(decoder)
                raise
            if with_control:
                found = _controls(piece.records, piece.partition, Range(piece.start_offset, piece.end_offset))
                if found:
                    yield found
            self._advance(left, piece.partition, min(decoder.next_offset, piece.end_offset))
            # Rows of this piece that still wait in the decoder are given before anything can fail.
            yield from self._flushed(decoder)
        if not self._stopped.is_set():
            for partition in list(left):  # what compaction has removed at the end of a range
                self._advance(left, partition, left[partition].end_offset)

    def _flushed(self, decoder: Decoder) -> Iterator[pa.RecordBatch]:
        rest = decoder.flush()
        if rest is not None:
            self.counts.records += rest.num_rows
            yield rest

    def _advance(self, left: dict[int, Range], partition: int, next_offset: int) -> None:
        one = left[partition]
        self.counts.offsets += max(0, next_offset - one.start_offset)
        if next_offset >= one.end_offset:
            del left[partition]
        else:
            left[partition] = Range(max(next_offset, one.start_offset), one.end_offset)

    def _step_over_deleted(self, topic: Topic, left: dict[int, Range]) -> bool:
        """Whether records were deleted from the beginning of what is left; if so it begins behind them."""
        firsts = self.offsets(topic, dict.fromkeys(left, EARLIEST))
        moved = False
        for partition, one in list(left.items()):
            first = firsts.get(partition) or 0
            if first > one.start_offset:
                moved = True
                gone = min(first, one.end_offset) - one.start_offset
                self.counts.deleted += gone
                self._advance(left, partition, one.start_offset + gone)
        return moved


def _controls(records: memoryview, partition: int, wanted: Range) -> list[Control]:
    found = []
    for position, header in iterate_headers(records):
        if not header.is_control or not wanted.start_offset <= header.base_offset < wanted.end_offset:
            continue
        marker = marker_of(records[position : position + header.size_bytes], header)
        kind = "control" if marker is None else "commit" if marker.committed else "abort"
        found.append(
            Control(
                partition,
                header.base_offset,
                header.max_timestamp,
                kind,
                header.producer_id,
                header.producer_epoch,
            )
        )
    return found


def no_partition(topic: Topic, number: int) -> UserError:
    return UserError(f"{topic.name} has no partition {number}: it has {len(topic.leaders)}")
