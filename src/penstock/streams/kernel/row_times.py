"""ROWTIME from a column, where a source or sink says so."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from penstock.streams.functions import date_parsing
from penstock.streams.functions.zones import UTC_ZONE
from penstock.streams.plan.schema import Schema
from penstock.streams.plan.sources import Timestamp

TimestampOf = Callable[[tuple[Any, ...] | None, tuple[Any, ...]], int]


def timestamp_reader(timestamp: Timestamp, schema: Schema) -> TimestampOf:
    """Of a key and a value. It raises where there is no time: a NULL, a text that does not fit the pattern."""
    name, pattern = timestamp.column, timestamp.pattern
    in_key = [column.name for column in schema.key]
    at = in_key.index(name) if name in in_key else [column.name for column in schema.value].index(name)

    def read(key: tuple[Any, ...] | None, value: tuple[Any, ...]) -> int:
        found = (key[at] if key is not None else None) if name in in_key else value[at]
        if found is None:
            raise ValueError(f"the timestamp column {name} is NULL")
        return int(found) if pattern is None else date_parsing.timestamp(found, pattern, UTC_ZONE)

    return read
