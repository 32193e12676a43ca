"""Arrow batches of a query → what a producer takes. Columns as Spark's Kafka sink has them; others are left out."""

from __future__ import annotations

from collections.abc import Container, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow as pa

from penstock.spark.failures import BadOption

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

CHUNK_MAX_ROWS = 10_000
CHUNK_MAX_BYTES = 8 * 1024 * 1024


class Chunk(NamedTuple):
    """Rows of one topic, in their order."""

    topic: str
    partition: int | None  # of all of them; None: their keys decide, or each says its own
    messages: list[dict[str, Any]]  # as Producer.produce_batch and Producer.produce take them
    size_bytes: int
    is_plain: bool  # neither headers nor partitions of their own: librdkafka takes them together


class Columns(NamedTuple):
    """Where the columns are; None for those that the query does not have."""

    value: int
    key: int | None
    topic: int | None
    partition: int | None
    headers: int | None


def columns_of(schema: StructType, *, topic: str | None, encoded: Container[str] = ()) -> Columns:
    """BadOption or TypeError in Spark's sense: what cannot be written is known before the first row.

    Columns that are `encoded` may have any type.
    """
    types = {field.name.lower(): field.dataType.simpleString() for field in schema.fields}
    places = {field.name.lower(): place for place, field in enumerate(schema.fields)}
    if "value" not in types:
        raise TypeError(
            f"a column 'value' is needed to write to a topic; there is {', '.join(types) or 'none'}"
        )
    for name, allowed in (
        ("key", ("string", "binary")),
        ("value", ("string", "binary")),
        ("topic", ("string",)),
        ("partition", ("int",)),
        ("headers", ("array<struct<key:string,value:binary>>",)),
    ):
        if name in types and types[name] not in allowed and name not in encoded:
            raise TypeError(f"column '{name}' must be {' or '.join(allowed)}, not {types[name]}")
    if topic is None and "topic" not in types:
        raise BadOption("topic", "must name the topic, unless there is a column 'topic'")
    return Columns(
        places["value"],
        places.get("key"),
        None if topic is not None else places["topic"],
        places.get("partition"),
        places.get("headers"),
    )


def chunks(batch: pa.RecordBatch, columns: Columns, topic: str | None) -> Iterator[Chunk]:
    """In pieces whose memory is bounded: Python objects are made for one of them at a time."""
    if not batch.num_rows:
        return
    rows = min(CHUNK_MAX_ROWS, max(1, CHUNK_MAX_BYTES * batch.num_rows // max(1, batch.nbytes)))
    for start in range(0, batch.num_rows, rows):
        part = batch.slice(start, rows)
        messages = _messages(part, columns)
        has_headers = columns.headers is not None and part.column(columns.headers).null_count < part.num_rows
        for (name, partition), own in _groups(part, columns, topic, messages):
            size_bytes = part.nbytes * len(own) // len(messages)
            is_plain = not has_headers and not any("partition" in message for message in own)
            yield Chunk(name, partition, own, size_bytes, is_plain)


def _groups(
    batch: pa.RecordBatch, columns: Columns, topic: str | None, messages: list[dict[str, Any]]
) -> list[tuple[tuple[str, int | None], list[dict[str, Any]]]]:
    """Rows that go to the same place, which keep their order among themselves."""
    if topic is not None and columns.partition is None:
        return [((topic, None), messages)]
    names: list[str] = [topic or ""] * len(messages)
    if topic is None:
        assert columns.topic is not None
        if batch.column(columns.topic).null_count:
            raise ValueError("a row has no topic: its column 'topic' is null")
        names = batch.column(columns.topic).to_pylist()
    partitions: list[int | None] = [None] * len(messages)
    if columns.partition is not None:
        partitions = batch.column(columns.partition).to_pylist()
    if None in partitions and partitions.count(None) < len(partitions):
        # A row whose key decides may go where another says it goes: one after the other, then.
        for message, partition in zip(messages, partitions, strict=True):
            if partition is not None:
                message["partition"] = partition
        partitions = [None] * len(messages)
    groups: dict[tuple[str, int | None], list[dict[str, Any]]] = {}
    for name, partition, message in zip(names, partitions, messages, strict=True):
        groups.setdefault((name, partition), []).append(message)
    return list(groups.items())


def _messages(batch: pa.RecordBatch, columns: Columns) -> list[dict[str, Any]]:
    values = _bytes(batch.column(columns.value))
    keys = [None] * len(values) if columns.key is None else _bytes(batch.column(columns.key))
    messages: list[dict[str, Any]] = [
        {"key": key, "value": value} for key, value in zip(keys, values, strict=True)
    ]
    if columns.headers is not None:
        for message, headers in zip(messages, batch.column(columns.headers).to_pylist(), strict=True):
            if headers:
                message["headers"] = [(header["key"], header["value"]) for header in headers]
    return messages


def _bytes(column: pa.Array) -> list[Any]:
    if not pa.types.is_binary(column.type):
        column = column.cast(pa.binary())
    return column.to_numpy(zero_copy_only=False).tolist()  # type: ignore[no-any-return]
