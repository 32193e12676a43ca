"""A sink's records: made of messages, and back to what they were when one is in trouble."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from penstock.connect.data.schema import Schema
from penstock.connect.records import Header, SinkRecord
from penstock.connect.tasks.assembly import Assembly
from penstock.connect.tasks.dead_letters import Letter
from penstock.connect.tasks.source_letters import converted

TIMESTAMP_TYPES: Final = ("NoTimestampType", "CreateTime", "LogAppendTime")


class DeliveredRecord(SinkRecord):
    """With the message that it was made of. Made for each record, so it is plain."""

    __slots__ = ("message",)

    def __init__(
        self,
        message: Any,
        place: tuple[str, int, int],
        key_schema: Schema | None,
        key: Any,
        value_schema: Schema | None,
        value: Any,
        timestamp: tuple[int, int],
        headers: tuple[Header, ...],
    ) -> None:
        self.message = message
        self.original = place
        self.topic, self.partition, self.offset = place
        self.key_schema = key_schema
        self.key = key
        self.value_schema = value_schema
        self.value = value
        self.timestamp_ms = timestamp[1] if timestamp[0] else None
        self.timestamp_type = TIMESTAMP_TYPES[timestamp[0]]
        self.headers = headers


class MessageOrigin(NamedTuple):
    message: Any

    def __str__(self) -> str:
        message = self.message
        kind, time_ms = message.timestamp()
        return (
            f"consumed record is {{topic='{message.topic()}', partition={message.partition()}, "
            f"offset={message.offset()}, timestamp={time_ms}, timestampType={TIMESTAMP_TYPES[kind]}}}"
        )


class RecordOrigin(NamedTuple):
    """A transform made it anew: what it was made of is not known any more."""

    record: SinkRecord

    def __str__(self) -> str:
        topic, partition, offset = self.record.original
        return f"consumed record is {{topic='{topic}', partition={partition}, offset={offset}}}"


def origin_of(record: SinkRecord) -> MessageOrigin | RecordOrigin:
    return MessageOrigin(record.message) if isinstance(record, DeliveredRecord) else RecordOrigin(record)


def letter_of(made: Assembly, origin: Any) -> Letter:
    if isinstance(origin, MessageOrigin):
        message = origin.message
        where = {"topic": message.topic(), "partition": message.partition(), "offset": message.offset()}
        kind, time_ms = message.timestamp()
        return Letter(
            message.key(), message.value(), list(message.headers() or ()), time_ms if kind else None, where
        )
    record: SinkRecord = origin.record
    topic, partition, offset = record.original
    return Letter(
        converted(lambda: made.key.from_value(topic, record.key_schema, record.key), record.key),
        converted(lambda: made.value.from_value(topic, record.value_schema, record.value), record.value),
        [(each.name, converted(made.header.from_header, each.value, topic, each)) for each in record.headers],
        record.timestamp_ms,
        {"topic": topic, "partition": partition, "offset": offset},
    )
