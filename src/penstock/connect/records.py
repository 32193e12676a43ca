"""Records on their way through Connect: from a source task to a topic, and from a topic to a sink task."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple, Self

from penstock.connect.data.schema import Schema


class Header(NamedTuple):
    name: str
    value: Any
    schema: Schema | None = None


class ConnectRecord:
    """What transforms see of both kinds. `replaced` makes a changed copy: a record itself is not changed."""

    __slots__ = (
        "headers",
        "key",
        "key_schema",
        "partition",
        "timestamp_ms",
        "topic",
        "value",
        "value_schema",
    )

    topic: str
    partition: int | None
    key: Any
    key_schema: Schema | None
    value: Any
    value_schema: Schema | None
    timestamp_ms: int | None
    headers: tuple[Header, ...]

    def replaced(self, **changes: Any) -> Self:
        copy = object.__new__(type(self))
        for name in _names_of(type(self)):
            setattr(copy, name, changes[name] if name in changes else getattr(self, name))
        return copy

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.topic} key={self.key!r} value={self.value!r}>"


class SourceRecord(ConnectRecord):
    """`source_partition` says of which part of the source it is (a file, a table), `source_offset` where in it the next
    run begins: both are JSON objects, and both are kept by Connect."""

    __slots__ = ("source_offset", "source_partition")

    def __init__(
        self,
        source_partition: Mapping[str, Any] | None,
        source_offset: Mapping[str, Any] | None,
        topic: str,
        value: Any,
        *,
        key: Any = None,
        value_schema: Schema | None = None,
        key_schema: Schema | None = None,
        partition: int | None = None,
        timestamp_ms: int | None = None,
        headers: Iterable[Header] = (),
    ) -> None:
        self.source_partition = source_partition
        self.source_offset = source_offset
        self.topic = topic
        self.partition = partition
        self.key = key
        self.key_schema = key_schema
        self.value = value
        self.value_schema = value_schema
        self.timestamp_ms = timestamp_ms
        self.headers = tuple(headers)


class SinkRecord(ConnectRecord):
    """`topic`, `partition` and `offset` may be changed by transforms; `original` is where the record really is."""

    __slots__ = ("offset", "original", "timestamp_type")

    def __init__(
        self,
        topic: str,
        partition: int,
        offset: int,
        value: Any,
        *,
        key: Any = None,
        value_schema: Schema | None = None,
        key_schema: Schema | None = None,
        timestamp_ms: int | None = None,
        timestamp_type: str = "CreateTime",
        headers: Iterable[Header] = (),
    ) -> None:
        self.topic = topic
        self.partition = partition
        self.offset = offset
        self.original = (topic, partition, offset)
        self.key = key
        self.key_schema = key_schema
        self.value = value
        self.value_schema = value_schema
        self.timestamp_ms = timestamp_ms
        self.timestamp_type = timestamp_type
        self.headers = tuple(headers)


def _names_of(kind: type) -> tuple[str, ...]:
    found = _NAMES.get(kind)
    if found is None:
        found = tuple(name for each in reversed(kind.__mro__) for name in getattr(each, "__slots__", ()))
        _NAMES[kind] = found
    return found


_NAMES: dict[type, tuple[str, ...]] = {}
