"""A topic as a stream or table: where its rows are, in which form, and which time is theirs."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from penstock.streams.plan.schema import Schema


class SourceKind(StrEnum):
    STREAM = "STREAM"
    TABLE = "TABLE"


class WindowKind(StrEnum):
    TUMBLING = "TUMBLING"
    HOPPING = "HOPPING"
    SESSION = "SESSION"
    SLIDING = "SLIDING"  # of the library: both ends are included


@dataclass(frozen=True, slots=True)
class Window:
    """Times in milliseconds. Grace None: the default, 24 hours with EMIT CHANGES and none with EMIT FINAL."""

    kind: WindowKind
    size_ms: int  # of a session: the gap
    advance_ms: int = 0  # of hopping windows
    grace_ms: int | None = None
    retention_ms: int | None = None


@dataclass(frozen=True, slots=True)
class Format:
    """`name`: KAFKA, JSON, DELIMITED, NONE, AVRO, JSON_SR, PROTOBUF, PROTOBUF_NOSR. Properties are the format's own:
    `delimiter`, `full_name`, `schema_id`, `nullable_representation`."""

    name: str
    properties: tuple[tuple[str, str], ...] = ()

    def property(self, name: str, default: str | None = None) -> str | None:
        return next((value for each, value in self.properties if each == name), default)


@dataclass(frozen=True, slots=True)
class Formats:
    """`wrap_value` False: the one value column stands bare, not in an object or record."""

    key: Format
    value: Format
    wrap_value: bool = True
    wrap_key: bool = False


@dataclass(frozen=True, slots=True)
class Timestamp:
    """ROWTIME is taken from this column: BIGINT, TIMESTAMP, or STRING with a Java pattern."""

    column: str
    pattern: str | None = None


@dataclass(frozen=True, slots=True)
class Source:
    """What CREATE STREAM and CREATE TABLE declare, and what a query's sink becomes."""

    name: str
    kind: SourceKind
    topic: str
    schema: Schema
    formats: Formats
    timestamp: Timestamp | None = None
    window: Window | None = None  # keys of the topic are windowed; size_ms 0 of a session
    statement: str = field(default="", compare=False)
    is_read_only: bool = False  # CREATE SOURCE …
    query_id: str | None = None  # the query that made it


DEFAULT_GRACE_MS: Final = 24 * 3600 * 1000
