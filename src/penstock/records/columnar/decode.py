"""Fetched bytes of one topic's partitions, piece by piece, to Arrow record batches."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

import numpy as np
import pyarrow as pa

from penstock.records import compression
from penstock.records.batch import HEADER_SIZE, Buffer, InvalidRecord, read_header
from penstock.records.columnar import kernels, layout
from penstock.records.columnar.columns import FIELDS, HEADERS, Columns

DEFAULT_MAX_ROWS: Final = 64 * 1024
DEFAULT_MAX_BYTES: Final = 16 << 20
DEFAULT_COLUMNS: Final = tuple(name for name in FIELDS if name != HEADERS)
LARGEST_MAX_BYTES: Final = 1 << 30
NO_END: Final = (1 << 63) - 1

_REASONS = {
    layout.NOT_FORMAT_2: "no record batch of format 2",
    layout.WRONG_CRC: "the batch has a wrong CRC",
    layout.WRONG_COUNT: "a count is more than there are bytes for",
    layout.WRONG_LENGTH: "the length of a record is wrong",
    layout.FIELD_PASSES_END: "a field passes the end of its record",
    layout.HEADER_WITHOUT_KEY: "a record header without a key",
    layout.HEADER_KEY_NOT_UTF8: "a record header whose key is not UTF-8",
    layout.OFFSET_OUTSIDE: "a record's offset lies outside of its batch",
    layout.BYTES_LEFT: "bytes after the last record of a batch",
    layout.WRONG_MARKER: "a control batch that cannot be read",
}


class Decoder:
    """One per reader; partitions may take turns. Rows leave in the order in which their bytes came.

    A record batch is full with `max_rows` rows or `max_bytes` in one column, or up to one batch of Kafka's more.
    """

    def __init__(
        self,
        topic: str,
        columns: Sequence[str] = DEFAULT_COLUMNS,
        *,
        max_rows: int = DEFAULT_MAX_ROWS,
        max_bytes: int = DEFAULT_MAX_BYTES,
    ) -> None:
        self.next_offset = 0
        """After `decode`: where that partition's next fetch begins."""
        self._topic = topic
        self._columns = Columns(topic, columns)
        self._options = np.zeros(layout.OPTION_WORDS, dtype=np.int64)
        self._options[layout.WANTED] = self._columns.wanted
        self._options[layout.MAX_ROWS] = max(1, max_rows)
        self._options[layout.MAX_BYTES] = min(max(1, max_bytes), LARGEST_MAX_BYTES)

    @property
    def schema(self) -> pa.Schema:
        return self._columns.schema

    def decode(
        self,
        records: Buffer,
        *,
        partition: int,
        start_offset: int,
        end_offset: int = NO_END,
        aborted: Sequence[tuple[int, int]] | None = None,
    ) -> Iterator[pa.RecordBatch]:
        """The record batches that became full; what is left waits for more, or for `flush`.

        `aborted` is the list of the fetch answer, (producer id, first offset), for a reader of committed records; None
        reads everything. Example: start 105 and end 108 over a batch of 100 … 109 give the rows 105, 106, 107.
        """
        buffer = np.frombuffer(records, dtype=np.uint8)
        buffer.flags.writeable = False
        columns, options, state = self._columns, self._options, self._columns.state
        options[layout.PARTITION] = partition
        options[layout.START_OFFSET] = start_offset
        options[layout.END_OFFSET] = end_offset
        options[layout.SKIP_ABORTED] = aborted is not None
        begun = sorted(aborted or (), key=lambda entry: entry[1])
        transactions = np.array(begun, dtype=np.int64).reshape(-1, 2).T.copy()
        open_producers = np.empty(len(begun), dtype=np.int64)
        state[layout.POSITION] = state[layout.NEXT_ABORTED] = state[layout.OPEN_ABORTED] = 0
        state[layout.NEXT_OFFSET] = self.next_offset = start_offset
        while True:
            status = kernels.decode_batches(
                buffer, options, transactions, open_producers, state, *columns.arrays()
            )
            if status == layout.COMPRESSED:
                status = self._decode_compressed(buffer)
                if status == layout.DONE:
                    continue
            elif status == layout.ROOM:
                columns.grow(int(state[layout.LACKING]), least_bytes=self._batch_bytes(buffer))
            if status == layout.FULL:
                yield columns.take()
            elif status == layout.INVALID:
                raise self._complaint(int(state[layout.REASON]))
            elif status == layout.DONE:
                break
        self.next_offset = int(state[layout.NEXT_OFFSET])

    def flush(self) -> pa.RecordBatch | None:
        """The rows that are left; None where there are none."""
        return self._columns.take() if self._columns.rows else None

    def _decode_compressed(self, buffer: np.ndarray[tuple[int], np.dtype[np.uint8]]) -> int:
        columns = self._columns
        position = int(columns.state[layout.POSITION])
        view = buffer.data[position:]
        header = read_header(view)
        try:
            plain = compression.decompress(header.codec, view[HEADER_SIZE : header.size_bytes])
        except InvalidRecord as error:
            raise InvalidRecord(f"{self._topic} offset {header.base_offset}: {error}") from None
        payload = np.frombuffer(plain, dtype=np.uint8)
        while True:
            status: int = kernels.decode_payload(
                payload, buffer, self._options, columns.state, *columns.arrays()
            )
            if status != layout.ROOM:
                return status
            columns.grow(int(columns.state[layout.LACKING]), least_bytes=len(plain))

    def _batch_bytes(self, buffer: np.ndarray[tuple[int], np.dtype[np.uint8]]) -> int:
        return read_header(buffer.data, int(self._columns.state[layout.POSITION])).batch_length

    def _complaint(self, reason: int) -> InvalidRecord:
        partition = int(self._options[layout.PARTITION])
        offset = int(self._columns.state[layout.BAD_OFFSET])
        return InvalidRecord(f"{self._topic}-{partition} offset {offset}: {_REASONS[reason]}")
