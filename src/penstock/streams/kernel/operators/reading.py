"""Read: records of a topic become rows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from penstock.streams.kernel.building import Building, Emit, Entry, kept
from penstock.streams.kernel.records import Headers, InputRecord, Row
from penstock.streams.kernel.row_times import timestamp_reader
from penstock.streams.plan import nodes
from penstock.streams.plan.nodes import TABLE
from penstock.streams.plan.schema import Schema

LATEST: Final = 1 << 62
"""The last moment of any row. Windows, graces and retentions are added to times, and all must fit into 64 bits."""


def read(node: nodes.Read, building: Building, emit: Emit) -> None:
    topic = building.topic_name(node.source.topic)
    if node.kind is not TABLE:
        building.entry(topic, reader(node, building, topic, emit))
        return
    if not building.needs.wants_store(node):
        building.entry(topic, reader(node, building, topic, with_key(emit)))
        return
    store, give_old = building.store(node.name), building.needs.wants_old(node)
    building.entry(topic, reader(node, building, topic, with_key(kept(store, emit, give_old=give_old))))
    nobody = kept(store, lambda row: None, give_old=False)
    building.restores.setdefault(topic, []).append(reader(node, building, topic, with_key(nobody)))


def with_key(emit: Emit) -> Emit:
    """A record of a table that has no key says nothing."""

    def process(row: Row) -> None:
        if row.key is not None:
            emit(row)

    return process


def reader(node: nodes.Read, building: Building, topic: str, emit: Emit) -> Entry:
    source = node.source
    window = node.window if node.window is not None else source.window
    decode_key = building.key_codec(node.schema, source.formats, window, topic).decode
    decode_value = building.value_codec(without_headers(node.schema), source.formats, topic).decode
    timestamp_of = None if source.timestamp is None else timestamp_reader(source.timestamp, node.schema)
    add_headers = None if not node.schema.headers else header_columns(node.schema)

    def enter(record: InputRecord) -> None:
        try:
            key, bounds = decode_key(record.key)
            value = decode_value(record.value)
        except Exception as error:  # whatever a format says to bytes that are not its own
            building.trouble(node, "deserialize", error, record)
            return
        if value is not None and add_headers is not None:
            value = add_headers(value, record.headers)
        timestamp = record.timestamp
        if timestamp_of is not None and value is not None:
            try:
                timestamp = timestamp_of(key, value)
            except Exception as error:  # a text that is no time, a NULL
                building.trouble(node, "timestamp", error, record)
                return
        if not 0 <= timestamp <= LATEST:
            said = "the time is before 1970" if timestamp < 0 else "the time is too far in the future"
            building.trouble(node, "timestamp", said, record)
            return
        if timestamp > building.stream_time:
            building.stream_time = timestamp
        emit(Row(key, value, timestamp, None, bounds, record.headers, record.partition, record.offset))

    return enter


def without_headers(schema: Schema) -> Schema:
    """What stands in the record's value."""
    if not schema.headers:
        return schema
    names = {name for name, _ in schema.headers}
    return Schema(schema.key, tuple(column for column in schema.value if column.name not in names))


def header_columns(schema: Schema) -> Callable[[tuple[Any, ...], Headers], tuple[Any, ...]]:
    wanted = dict(schema.headers)
    plan = [(column.name in wanted, wanted.get(column.name)) for column in schema.value]

    def add(value: tuple[Any, ...], headers: Headers) -> tuple[Any, ...]:
        rest = iter(value)
        return tuple(header_value(headers, key) if is_header else next(rest) for is_header, key in plan)

    return add


def header_value(headers: Headers, key: str | None) -> Any:
    """All headers, or the last one with this key."""
    if key is None:
        return [{"KEY": name, "VALUE": data} for name, data in headers]
    return next((data for name, data in reversed(headers) if name == key), None)
