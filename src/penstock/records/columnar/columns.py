"""Columns that grow while records are decoded, and the Arrow record batch that they become without another copy."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa

from penstock.records.columnar import layout

KEY, VALUE, TOPIC, PARTITION, OFFSET = "key", "value", "topic", "partition", "offset"
TIMESTAMP, TIMESTAMP_TYPE, HEADERS = "timestamp", "timestampType", "headers"

HEADER_TYPE: Final = pa.struct([pa.field("key", pa.string(), nullable=False), pa.field("value", pa.binary())])
FIELDS: Final[dict[str, pa.Field]] = {
    KEY: pa.field(KEY, pa.binary()),
    VALUE: pa.field(VALUE, pa.binary()),
    TOPIC: pa.field(TOPIC, pa.string(), nullable=False),
    PARTITION: pa.field(PARTITION, pa.int32(), nullable=False),
    OFFSET: pa.field(OFFSET, pa.int64(), nullable=False),
    TIMESTAMP: pa.field(TIMESTAMP, pa.timestamp("ms", tz="UTC"), nullable=False),
    TIMESTAMP_TYPE: pa.field(TIMESTAMP_TYPE, pa.int32(), nullable=False),
    HEADERS: pa.field(HEADERS, pa.list_(pa.field("element", HEADER_TYPE, nullable=False))),
}
"""Names and order are those of Spark's Kafka source. A record without headers has null there, as in that source."""

_LEAST_ROWS = 4096
_LEAST_BYTES = 1 << 16
_WANTED = {KEY: layout.WANT_KEY, VALUE: layout.WANT_VALUE, HEADERS: layout.WANT_HEADERS}

Array = np.ndarray[Any, np.dtype[Any]]


class Columns:
    """The arrays that the walk writes to. `take` hands them over to Arrow and begins with new ones of the size that the
    last ones had in use, so that a long read seldom has to grow any."""

    def __init__(self, topic: str, names: Sequence[str]) -> None:
        self.schema: Final = pa.schema([FIELDS[name] for name in names])
        self.wanted: Final = sum(_WANTED.get(name, 0) for name in names)
        self.state: Final = np.zeros(layout.STATE_WORDS, dtype=np.int64)
        self._names = tuple(names)
        self._topic = topic
        self._topic_column = pa.array([], pa.string())
        self._longs: Array
        self._ints: Array
        self._flags: Array
        self._keys: Array
        self._values: Array
        self._header_ints: Array
        self._header_flags: Array
        self._header_keys: Array
        self._header_values: Array
        self._capacities = dict.fromkeys(
            (layout.LACKS_KEYS, layout.LACKS_VALUES, layout.LACKS_HEADERS, layout.LACKS_HEADER_KEYS,
             layout.LACKS_HEADER_VALUES, layout.LACKS_ROWS), 1
        )  # fmt: skip
        self._begin()

    @property
    def rows(self) -> int:
        return int(self.state[layout.ROWS])

    def arrays(self) -> tuple[Array, ...]:
        """In the order in which the walk takes them."""
        return (
            self._longs, self._ints, self._flags, self._keys, self._values, self._header_ints, self._header_flags,
            self._header_keys, self._header_values,
        )  # fmt: skip

    def grow(self, lacking: int, *, least_bytes: int) -> None:
        """Doubles what the walk found too small; a column of bytes at once to what the whole batch could need."""
        rows = self.rows
        capacity = self._capacities[lacking] * 2
        if lacking not in (layout.LACKS_ROWS, layout.LACKS_HEADERS):
            capacity = max(capacity, self._capacities[lacking] + least_bytes)
        self._capacities[lacking] = capacity
        if lacking == layout.LACKS_ROWS:
            self._longs = _enlarged(self._longs, capacity, rows)
            self._ints = _enlarged(self._ints, capacity + 1, rows + 1)
            self._flags = _enlarged(self._flags, capacity, rows)
        elif lacking == layout.LACKS_HEADERS:
            headers = int(self.state[layout.HEADERS])
            self._header_ints = _enlarged(self._header_ints, capacity + 1, headers + 1)
            self._header_flags = _enlarged(self._header_flags, capacity, headers)
        elif lacking == layout.LACKS_KEYS:
            self._keys = _enlarged(self._keys, capacity, int(self.state[layout.KEY_BYTES]))
        elif lacking == layout.LACKS_VALUES:
            self._values = _enlarged(self._values, capacity, int(self.state[layout.VALUE_BYTES]))
        elif lacking == layout.LACKS_HEADER_KEYS:
            self._header_keys = _enlarged(
                self._header_keys, capacity, int(self.state[layout.HEADER_KEY_BYTES])
            )
        else:
            self._header_values = _enlarged(
                self._header_values, capacity, int(self.state[layout.HEADER_VALUE_BYTES])
            )

    def take(self) -> pa.RecordBatch:
        rows = self.rows
        made = [self._column(name, rows) for name in self._names]
        state = self.state
        used = {
            layout.LACKS_ROWS: rows,
            layout.LACKS_KEYS: int(state[layout.KEY_BYTES]),
            layout.LACKS_VALUES: int(state[layout.VALUE_BYTES]),
            layout.LACKS_HEADERS: int(state[layout.HEADERS]),
            layout.LACKS_HEADER_KEYS: int(state[layout.HEADER_KEY_BYTES]),
            layout.LACKS_HEADER_VALUES: int(state[layout.HEADER_VALUE_BYTES]),
        }
        # An eighth more than was used: the next batch of columns seldom has exactly as much.
        self._capacities = {column: count + count // 8 + 1 for column, count in used.items()}
        state[layout.ROWS] = 0
        state[layout.KEY_BYTES : layout.HEADER_VALUE_BYTES + 1] = 0
        self._begin()
        return pa.RecordBatch.from_arrays(made, schema=self.schema)

    def _begin(self) -> None:
        sizes = self._capacities
        for column, size in sizes.items():
            is_count = column in (layout.LACKS_ROWS, layout.LACKS_HEADERS)
            sizes[column] = max(size, _LEAST_ROWS if is_count else _LEAST_BYTES)
        rows, headers = sizes[layout.LACKS_ROWS], sizes[layout.LACKS_HEADERS]
        self._longs = np.empty((2, rows), dtype=np.int64)
        self._ints = np.empty((5, rows + 1), dtype=np.int32)
        self._ints[:, 0] = 0  # where the first key, value and header list begin
        self._flags = np.empty((3, rows), dtype=np.uint8)
        self._header_ints = np.empty((2, headers + 1), dtype=np.int32)
        self._header_ints[:, 0] = 0
        self._header_flags = np.empty((1, headers), dtype=np.uint8)
        self._keys = np.empty(sizes[layout.LACKS_KEYS], dtype=np.uint8)
        self._values = np.empty(sizes[layout.LACKS_VALUES], dtype=np.uint8)
        self._header_keys = np.empty(sizes[layout.LACKS_HEADER_KEYS], dtype=np.uint8)
        self._header_values = np.empty(sizes[layout.LACKS_HEADER_VALUES], dtype=np.uint8)

    def _column(self, name: str, rows: int) -> pa.Array:
        kind = FIELDS[name].type
        if name == KEY:
            return _binary(self._flags[layout.HAS_KEY], self._ints[layout.KEY_ENDS], self._keys, rows)
        if name == VALUE:
            return _binary(self._flags[layout.HAS_VALUE], self._ints[layout.VALUE_ENDS], self._values, rows)
        if name == HEADERS:
            return self._headers(rows)
        if name == TOPIC:
            return self._topics(rows)
        if name == OFFSET:
            numbers = self._longs[layout.OFFSETS]
        elif name == TIMESTAMP:
            numbers = self._longs[layout.TIMESTAMPS]
        elif name == PARTITION:
            numbers = self._ints[layout.PARTITIONS]
        else:
            numbers = self._ints[layout.TIMESTAMP_TYPES]
        return pa.Array.from_buffers(kind, rows, [None, pa.py_buffer(numbers[:rows])])

    def _topics(self, rows: int) -> pa.Array:
        """All rows have the same topic: one column of the longest batch so far serves for all."""
        if len(self._topic_column) < rows:
            name = np.frombuffer(self._topic.encode(), dtype=np.uint8)
            ends = np.arange(0, (rows + 1) * len(name), max(len(name), 1), dtype=np.int32)[: rows + 1]
            data = pa.py_buffer(np.tile(name, rows))
            self._topic_column = pa.Array.from_buffers(
                pa.string(), rows, [None, pa.py_buffer(ends), data], null_count=0
            )
        return self._topic_column[:rows]

    def _headers(self, rows: int) -> pa.Array:
        count = int(self.state[layout.HEADERS])
        names = pa.Array.from_buffers(
            pa.string(),
            count,
            [
                None,
                pa.py_buffer(self._header_ints[layout.HEADER_KEY_ENDS, : count + 1]),
                pa.py_buffer(self._header_keys),
            ],
            null_count=0,
        )
        values = _binary(
            self._header_flags[0], self._header_ints[layout.HEADER_VALUE_ENDS], self._header_values, count
        )
        pairs = pa.Array.from_buffers(HEADER_TYPE, count, [None], null_count=0, children=[names, values])
        validity, nulls = _validity(self._flags[layout.HAS_HEADERS, :rows])
        ends = pa.py_buffer(self._ints[layout.HEADER_ENDS, : rows + 1])
        return pa.Array.from_buffers(FIELDS[HEADERS].type, rows, [validity, ends], nulls, children=[pairs])


def _binary(flags: Array, ends: Array, data: Array, rows: int) -> pa.Array:
    validity, nulls = _validity(flags[:rows])
    used = int(ends[rows])
    buffers = [validity, pa.py_buffer(ends[: rows + 1]), pa.py_buffer(data[:used])]
    return pa.Array.from_buffers(pa.binary(), rows, buffers, nulls)


def _validity(flags: Array) -> tuple[pa.Buffer | None, int]:
    nulls = len(flags) - int(np.count_nonzero(flags))
    if nulls == 0:
        return None, 0
    return pa.py_buffer(np.packbits(flags, bitorder="little")), nulls


def _enlarged(array: Array, capacity: int, used: int) -> Array:
    """A larger copy of what is in use."""
    larger = np.empty((*array.shape[:-1], capacity), dtype=array.dtype)
    larger[..., :used] = array[..., :used]
    return larger
