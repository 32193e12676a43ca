"""Rows of Arrow batches as records ◇."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import repeat
from typing import Any, Final

import numpy as np
import pyarrow as pa

from penstock.console.messages.model import Headers, Raw
from penstock.console.messages.rows import Rows
from penstock.records.columnar.columns import (
    HEADERS,
    KEY,
    OFFSET,
    PARTITION,
    TIMESTAMP,
    TIMESTAMP_TYPE,
    VALUE,
)

Array = np.ndarray[Any, np.dtype[Any]]
AT_ONCE: Final = 512
"""Rows that become objects between two looks at whether anybody still wants them."""


def raws(batch: pa.RecordBatch, hits: Sequence[int] | Array) -> Iterator[Raw]:
    """These rows, in their order."""
    for start in range(0, len(hits), AT_ONCE):
        part = batch.take(pa.array(hits[start : start + AT_ONCE], pa.int64()))
        headers = part.column(HEADERS)
        yield from map(
            Raw,
            part.column(PARTITION).to_pylist(),
            part.column(OFFSET).to_pylist(),
            part.column(TIMESTAMP).cast(pa.int64()).to_pylist(),
            (kind == 1 for kind in part.column(TIMESTAMP_TYPE).to_pylist()),
            part.column(KEY).to_pylist(),
            part.column(VALUE).to_pylist(),
            repeat(()) if headers.null_count == len(headers) else map(_pairs, headers.to_pylist()),
        )


def _pairs(headers: list[dict[str, Any]] | None) -> Headers:
    return tuple((each["key"], each["value"]) for each in headers or ())


def times(batch: pa.RecordBatch) -> Array:
    """The column of times, in milliseconds, without a copy."""
    return np.frombuffer(batch.column(TIMESTAMP).buffers()[1], dtype=np.int64)[: batch.num_rows]


def searchable(rows: Rows, batch: pa.RecordBatch, hits: Sequence[int] | Array) -> pa.RecordBatch:
    """The rows as the visitor may see them, to be looked through once more."""
    records = list(raws(batch, hits))
    headers = [
        [
            {"key": name, "value": value.encode() if isinstance(value, str) else value}
            for name, value in rows.headers(each.headers)
        ]
        for each in records
    ]
    return pa.RecordBatch.from_arrays(
        [
            pa.array([rows.key.searchable(each.key) for each in records], pa.binary()),
            pa.array([rows.value.searchable(each.value) for each in records], pa.binary()),
            pa.array(headers, batch.schema.field(HEADERS).type),
        ],
        schema=pa.schema([batch.schema.field(name) for name in (KEY, VALUE, HEADERS)]),
    )
