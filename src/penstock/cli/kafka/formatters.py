"""How the console consumer prints a record: Kafka's DefaultMessageFormatter with all its properties, and its small brothers."""

import sys
from typing import Any

from penstock.cli.kafka.options import UsageError
from penstock.inspection.dump.coordinator_records import UnknownType, Unreadable, read_record, to_json
from penstock.inspection.dump.coordinator_schemas import (
    CLASSIC_GROUP_TYPE,
    GROUP_RECORDS,
    TRANSACTION_RECORDS,
    RecordType,
)
from penstock.model.java_values import BadData, Deserialize, deserializer

TIMESTAMP_TYPES = {1: "CreateTime", 2: "LogAppendTime"}


class DefaultFormatter:
    """Columns in this order, each only if asked for: timestamp, partition, offset, delivery, epoch, headers, key, value."""

    def __init__(self, properties: dict[str, str]) -> None:
        def flag(name: str, default: bool = False) -> bool:
            text = properties.get(f"print.{name}")
            return default if text is None else text.strip().lower() == "true"

        self.timestamp = flag("timestamp")
        self.partition = flag("partition")
        self.offset = flag("offset")
        self.delivery = flag("delivery")
        self.epoch = flag("epoch")
        self.headers = flag("headers")
        self.key = flag("key")
        self.value = flag("value", default=True)
        self.key_separator = properties.get("key.separator", "\t").encode()
        self.line_separator = properties.get("line.separator", "\n").encode()
        self.headers_separator = properties.get("headers.separator", ",").encode()
        self.null_literal = properties.get("null.literal", "null").encode()
        self.key_deserializer = _named(properties, "key.deserializer")
        self.value_deserializer = _named(properties, "value.deserializer")
        self.headers_deserializer = _named(properties, "headers.deserializer") or _named(
            properties, "header.deserializer"
        )

    def format(self, record: Any) -> bytes:
        columns: list[bytes] = []
        if self.timestamp:
            kind, timestamp_ms = record.timestamp()
            name = TIMESTAMP_TYPES.get(kind)
            columns.append(f"{name}:{timestamp_ms}".encode() if name else b"NO_TIMESTAMP")
        if self.partition:
            columns.append(b"Partition:%d" % record.partition())
        if self.offset:
            columns.append(b"Offset:%d" % record.offset())
        if self.delivery:
            columns.append(b"Delivery:NOT_PRESENT")
        if self.epoch:
            columns.append(b"Epoch:NOT_PRESENT")
        if self.headers:
            columns.append(self._headers(record.headers()))
        if self.key:
            columns.append(self._text(record.key(), self.key_deserializer))
        if self.value:
            columns.append(self._text(record.value(), self.value_deserializer))
        return self.key_separator.join(columns) + self.line_separator if columns else b""

    def _headers(self, headers: list[tuple[str, bytes | None]] | None) -> bytes:
        if not headers:
            return b"NO_HEADERS"
        return self.headers_separator.join(
            name.encode() + b":" + self._text(value, self.headers_deserializer) for name, value in headers
        )

    def _text(self, data: bytes | None, deserialize: Deserialize | None) -> bytes:
        if data is None:
            return self.null_literal
        return data if deserialize is None else deserialize(data)


class NoOpFormatter:
    def format(self, record: Any) -> bytes:
        return b""


class LoggingFormatter(DefaultFormatter):
    """As the default, and a line for the log on stderr."""

    def format(self, record: Any) -> bytes:
        kind, timestamp_ms = record.timestamp()
        name = TIMESTAMP_TYPES.get(kind)
        stamp = f"{name}:{timestamp_ms}, " if name else ""
        key = "null " if record.key() is None else record.key().decode("utf-8", "replace") + ", "
        value = "null" if record.value() is None else record.value().decode("utf-8", "replace")
        print(f"{stamp}key:{key}value:{value}", file=sys.stderr)
        return super().format(record)


class CoordinatorFormatter:
    """Records of an internal topic as JSON, one a line; only those of some types, and nothing for what cannot be read."""

    def __init__(self, types: dict[int, RecordType], wanted: tuple[int, ...]) -> None:
        self._types = types
        self._wanted = wanted

    def format(self, record: Any) -> bytes:
        if record.key() is None:
            return b""
        try:
            found = read_record(self._types, record.key(), record.value())
        except (UnknownType, Unreadable):
            return b""
        if found.type_id not in self._wanted:
            return b""
        value = None if found.value is None else {"version": found.version, "data": found.value}
        text = to_json({"key": {"type": found.type_id, "data": found.key}, "value": value})
        return text.encode() + b"\n"


COORDINATORS = {
    "OffsetsMessageFormatter": CoordinatorFormatter(GROUP_RECORDS, (0, 1)),
    "GroupMetadataMessageFormatter": CoordinatorFormatter(GROUP_RECORDS, (CLASSIC_GROUP_TYPE,)),
    "TransactionLogMessageFormatter": CoordinatorFormatter(TRANSACTION_RECORDS, (0,)),
}
Formatter = DefaultFormatter | NoOpFormatter | CoordinatorFormatter


def formatter(class_name: str, properties: dict[str, str]) -> Formatter:
    name = class_name.rpartition(".")[2]
    if name == "DefaultMessageFormatter":
        return DefaultFormatter(properties)
    if name == "LoggingMessageFormatter":
        return LoggingFormatter(properties)
    if name == "NoOpMessageFormatter":
        return NoOpFormatter()
    if name in COORDINATORS:
        return COORDINATORS[name]
    from penstock.cli.kafka.schema_formatter import FORMATTERS, SchemaFormatter

    if name in FORMATTERS:
        return SchemaFormatter(properties, FORMATTERS[name])
    raise UsageError(class_name)


def _named(properties: dict[str, str], name: str) -> Deserialize | None:
    class_name = properties.get(name)
    if not class_name:
        return None
    found = deserializer(class_name)
    if found is None:
        print(
            f"ERROR Unable to instantiate a deserializer from {class_name}: bytes are shown as they are",
            file=sys.stderr,
        )
    return found


__all__ = ["BadData", "DefaultFormatter", "Formatter", "formatter"]
