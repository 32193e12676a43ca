"""A source's record in trouble: as text for the log, and as a dead letter."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, NamedTuple

from penstock.connect.data import Struct
from penstock.connect.records import SourceRecord
from penstock.connect.tasks.assembly import Assembly
from penstock.connect.tasks.dead_letters import Headers, Letter


class SourceOrigin(NamedTuple):
    record: SourceRecord

    def __str__(self) -> str:
        record = self.record
        return (
            f"source record is {{topic='{record.topic}', partition={record.partition}, source partition="
            f"{record.source_partition!r}, source offset={record.source_offset!r}, key={record.key!r}, "
            f"value={record.value!r}}}"
        )


class ProducedOrigin(NamedTuple):
    """The client keeps no more of it."""

    topic: str
    key: bytes | None
    value: bytes | None

    def __str__(self) -> str:
        return f"produced record is {{topic='{self.topic}', key={self.key!r}, value={self.value!r}}}"


def letter_of(made: Assembly, origin: Any) -> Letter:
    """What can be converted is; the rest is text."""
    if isinstance(origin, ProducedOrigin):
        return Letter(origin.key, origin.value, [], None, {"topic": origin.topic})
    record: SourceRecord = origin.record
    topic = record.topic
    where = {
        "topic": topic,
        "source.partition": record.source_partition,
        "source.offset": record.source_offset,
    }
    headers: Headers = [
        (each.name, converted(made.header.from_header, each.value, topic, each)) for each in record.headers
    ]
    return Letter(
        converted(lambda: made.key.from_value(topic, record.key_schema, record.key), record.key),
        converted(lambda: made.value.from_value(topic, record.value_schema, record.value), record.value),
        headers,
        record.timestamp_ms,
        where,
    )


def converted(convert: Callable[..., bytes | None], value: Any, *given: Any) -> bytes | None:
    """What the converter makes of it, or its text."""
    try:
        return convert(*given)
    except Exception:
        return _as_text(value)


def _as_text(value: Any) -> bytes | None:
    if value is None or isinstance(value, bytes):
        return value
    if isinstance(value, str):
        return value.encode(errors="replace")
    return json.dumps(value, default=_plain, ensure_ascii=False).encode(errors="replace")


def _plain(value: Any) -> Any:
    if isinstance(value, Struct):
        return dict(value.items())
    return value.hex() if isinstance(value, bytes) else str(value)
