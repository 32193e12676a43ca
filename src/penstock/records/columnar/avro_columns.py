"""Avro's values in records → one Arrow column of the reader's types, without a Python object for any of them.

    reader = AvroReader(parse_avro(text))
    reader.add(7, parse_avro(written))         # what has the id 7 was written with this schema
    found = reader.read(values, reader.ids(values))

Rows of several ids stand in one batch in any order.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa

from penstock.records.columnar import tree_layout as k
from penstock.records.columnar.avro_kernel import decode_rows, frame_ids
from penstock.records.columnar.avro_program import Programs
from penstock.records.columnar.avro_schema import AvroType
from penstock.records.columnar.tree_columns import Array, Growing

FRAME_BYTES: Final = 5
REASONS: Final = {
    k.ENDS_EARLY: "the value ends too early",
    k.BAD_LENGTH: "a length is negative",
    k.BAD_BRANCH: "a union has no branch of this number",
    k.BAD_SYMBOL: "an enum has no symbol of this number, or the reader's does not know it",
    k.NOT_UTF8: "a string is not UTF-8",
    k.TOO_MANY_ITEMS: "an array or map claims to have more items than there are bytes",
    k.TOO_DEEP: "the value is nested too deeply",
    k.OUT_OF_RANGE: "a number is too large for its type",
    k.NOT_RESOLVED: "the reader's schema cannot take this branch of a union",
    k.TOO_LARGE: "the value becomes too large",
    k.NOT_FRAMED: "the value does not begin with the id of a schema",
    k.UNKNOWN_SCHEMA: "the schema of the value is not known",
}


class Found(NamedTuple):
    column: pa.Array
    reasons: Array
    """Of each row; 0: it was read, or is null."""
    places: Array
    """Of those with a reason: how many bytes of the value were read."""

    def why(self, row: int | np.integer[Any]) -> str:
        reason = int(self.reasons[row])
        if reason in (k.NOT_FRAMED, k.UNKNOWN_SCHEMA):
            return REASONS[reason]
        return f"{REASONS[reason]} (at byte {self.places[row]})"


class Values(NamedTuple):
    """A column of bytes as the decoders take it."""

    data: Array
    ends: Array
    nulls: Array | None

    @property
    def rows(self) -> int:
        return len(self.ends) - 1


def values_of(column: pa.BinaryArray) -> Values:
    _, ends, data = column.buffers()
    rows = len(column)
    if ends is None:
        places = np.zeros(1, dtype=np.int32)
    else:
        places = np.frombuffer(ends, dtype=np.int32)[column.offset : column.offset + rows + 1]
    buffer = np.frombuffer(data, dtype=np.uint8) if data is not None else np.empty(0, dtype=np.uint8)
    if not len(buffer):
        buffer = np.zeros(1, dtype=np.uint8)
    nulls = column.is_null().to_numpy(zero_copy_only=False) if column.null_count else None
    return Values(buffer, places, nulls)


def ids_of(column: pa.BinaryArray) -> Array:
    """The id that each value begins with; IS_NULL, or IS_NOT_FRAMED where there is none."""
    values = values_of(column)
    ids = np.zeros(values.rows, dtype=np.int64)
    if values.nulls is not None:
        ids[values.nulls] = k.IS_NULL
    frame_ids(values.data, values.ends, ids)
    return ids


class AvroReader:
    """Of one reader's schema. UnreadableSchema where no columns can be made of it."""

    def __init__(self, schema: AvroType) -> None:
        self._programs = Programs(schema)
        self._entries: dict[int, int] = {}
        self._stack = np.zeros(k.STACK_WORDS, dtype=np.int64)
        self._entries_hint = 0
        self.type: Final[pa.DataType] = self._programs.root.type

    def add(self, schema_id: int, writer: AvroType) -> None:
        """NotResolvable or UnreadableSchema; then values with this id are not known."""
        self._entries[schema_id] = self._programs.add(writer)

    def knows(self, schema_id: int) -> bool:
        return schema_id in self._entries

    def read(self, column: pa.BinaryArray, ids: Array, *, skipped_bytes: int = FRAME_BYTES) -> Found:
        """`ids` as `ids_of` gives them."""
        return self._read(values_of(column), self._entries_of(ids), skipped_bytes)

    def _entries_of(self, ids: Array) -> Array:
        if len(ids) and ids[0] >= 0 and bool((ids == ids[0]).all()):
            return np.full(len(ids), self._entries.get(int(ids[0]), k.HAS_UNKNOWN_SCHEMA), dtype=np.int64)
        entries = np.where(ids < 0, ids, np.int64(k.HAS_UNKNOWN_SCHEMA))
        for schema_id in np.unique(ids):
            entry = self._entries.get(int(schema_id))
            if entry is not None and schema_id >= 0:
                entries[ids == schema_id] = entry
        return entries

    def _read(self, values: Values, entries: Array, skipped_bytes: int) -> Found:
        rows = values.rows
        growing = Growing(self._programs.root, rows, int(values.ends[-1] - values.ends[0]))
        reasons, places = np.zeros(rows, dtype=np.uint8), np.zeros(rows, dtype=np.int32)
        state = np.zeros(k.STATE_WORDS, dtype=np.int64)
        tables = self._programs.tables()
        too_large: list[int] = []
        while (
            decode_rows(
                values.data, values.ends, skipped_bytes, entries, *tables, growing.table,
                *self._programs.root_nulls, self._stack, state, reasons, places,
            )
            == k.ROOM
        ):  # fmt: skip
            if not growing.grow(int(state[k.LACKING]), int(state[k.NEEDED])):
                row = int(state[k.NEXT_ROW])
                if entries[row] == k.IS_NULL:
                    raise MemoryError("more rows than a column may have")
                entries[row] = k.IS_NULL
                too_large.append(row)
        reasons[too_large] = k.TOO_LARGE
        return Found(growing.array(), reasons, places)
