"""Keys and values of a topic from and to bytes, by its formats and columns. A codec is made once and used for every record."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from penstock.streams.formats import delimited, kafka_values
from penstock.streams.formats.failures import BadRecord, FormatRefused
from penstock.streams.formats.json_reading import json_reader
from penstock.streams.formats.json_writing import json_writer
from penstock.streams.formats.registry import SchemaLookup
from penstock.streams.formats.windowed import with_window, without_window
from penstock.streams.plan.schema import Column, Schema
from penstock.streams.plan.sources import Format, Formats, Window

__all__ = ["BadRecord", "FormatRefused", "KeyCodec", "ValueCodec", "key_codec", "value_codec"]

Values = tuple[Any, ...]
Bounds = tuple[int, int]
Read = Callable[[bytes], "Values | None"]
Write = Callable[[Values], "bytes | None"]


class ValueCodec:
    """None stands for no value on both sides, whatever the format."""

    def __init__(self, read: Read, write: Write, topic: str) -> None:
        self._read = read
        self._write = write
        self._topic = topic

    def encode(self, value: Values | None) -> bytes | None:
        """BadRecord."""
        try:
            return None if value is None else self._write(value)
        except BadRecord as bad:
            raise BadRecord(f"Error serializing value to topic: {self._topic}. {bad}") from None

    def decode(self, data: bytes | None) -> Values | None:
        """BadRecord."""
        try:
            return None if data is None else self._read(data)
        except BadRecord as bad:
            raise BadRecord(f"Failed to deserialize value from topic: {self._topic}. {bad}") from None


class KeyCodec:
    """None stands for no key on both sides."""

    def __init__(self, read: Read, write: Write, window: Window | None, topic: str) -> None:
        self._read = read
        self._write = write
        self._window = window
        self._topic = topic

    def encode(self, key: Values | None, window: Bounds | None = None) -> bytes | None:
        """`window` is the start and end, where the topic's keys are windowed. BadRecord."""
        if key is None:
            return None
        try:
            data = self._write(key)
        except BadRecord as bad:
            raise BadRecord(f"Error serializing key to topic: {self._topic}. {bad}") from None
        if self._window is None or data is None:
            return data
        if window is None:
            raise BadRecord(
                f"Error serializing key to topic: {self._topic}. A key of {self._window.kind} windows has no window"
            )
        return with_window(data, window, self._window)

    def decode(self, data: bytes | None) -> tuple[Values | None, Bounds | None]:
        """The key, and its window where the topic's keys are windowed. BadRecord."""
        if data is None:
            return None, None
        try:
            if self._window is None:
                return self._read(data), None
            inner, bounds = without_window(data, self._window)
            return self._read(inner), bounds
        except BadRecord as bad:
            raise BadRecord(f"Failed to deserialize key from topic: {self._topic}. {bad}") from None


def key_codec(
    schema: Schema,
    formats: Formats,
    *,
    window: Window | None,
    topic: str,
    registry: SchemaLookup | None = None,
) -> KeyCodec:
    """FormatRefused when the format does not carry these columns."""
    is_wrapped = formats.wrap_key or len(schema.key) != 1
    read, write = _functions(schema.key, formats.key, is_wrapped, topic, True, registry)
    return KeyCodec(read, write, window, topic)


def value_codec(
    schema: Schema, formats: Formats, *, topic: str, registry: SchemaLookup | None = None
) -> ValueCodec:
    """Columns that come from headers are not in the bytes: None stands in their places, and they are not written. FormatRefused
    when the format does not carry the other columns."""
    from_headers = {name for name, _ in schema.headers}
    columns = [column for column in schema.value if column.name not in from_headers]
    is_wrapped = formats.wrap_value or len(columns) != 1
    read, write = _functions(columns, formats.value, is_wrapped, topic, False, registry)
    if from_headers:
        places = [place for place, column in enumerate(schema.value) if column.name not in from_headers]
        read, write = _with_gaps(read, places, len(schema.value)), _without_gaps(write, places)
    return ValueCodec(read, write, topic)


def _functions(
    columns: Sequence[Column],
    form: Format,
    is_wrapped: bool,
    topic: str,
    is_key: bool,
    registry: SchemaLookup | None,
) -> tuple[Read, Write]:
    name = form.name.upper()
    if name == "JSON":
        return json_reader(columns, is_wrapped=is_wrapped), json_writer(columns, is_wrapped=is_wrapped)
    if name == "KAFKA":
        kafka_values.check(columns)
        return kafka_values.kafka_reader(columns), kafka_values.kafka_writer(columns)
    if name == "DELIMITED":
        delimited.check(columns)
        delimiter = delimited.delimiter_of(form.property("delimiter"))
        return delimited.delimited_reader(columns, delimiter), delimited.delimited_writer(columns, delimiter)
    if name == "NONE":
        if columns:
            shown = ", ".join(f"`{column.name}` {column.type}" for column in columns)
            raise FormatRefused(
                f"The 'NONE' format can only be used when no columns are defined. Got: [{shown}]"
            )
        return _NOTHING
    if name == "PROTOBUF_NOSR":
        return _protobuf_without_registry(columns, form)
    if name in ("AVRO", "JSON_SR", "PROTOBUF"):
        return _registered(columns, form, is_wrapped or name == "PROTOBUF", topic, is_key, registry)
    raise FormatRefused(f"Unknown format: {name}")


def _registered(
    columns: Sequence[Column],
    form: Format,
    is_wrapped: bool,
    topic: str,
    is_key: bool,
    registry: SchemaLookup | None,
) -> tuple[Read, Write]:
    from penstock.streams.formats.registered import RegisteredReader, RegisteredWriter
    from penstock.streams.formats.schema_texts import schema_text

    if registry is None:
        raise FormatRefused(
            f"Cannot create topic '{topic}' with format {form.name.upper()} without configuring 'ksql.schema.registry.url'"
        )
    schema_text(columns, form, is_wrapped=is_wrapped)  # refuses what no schema can say
    reader = RegisteredReader(columns, form, is_wrapped, registry)
    return reader, RegisteredWriter(columns, form, is_wrapped, registry, topic=topic, is_key=is_key)


def _protobuf_without_registry(columns: Sequence[Column], form: Format) -> tuple[Read, Write]:
    """The message is made from the columns on both sides."""
    from penstock.schemas.parsing import parse
    from penstock.schemas.protobuf.values import message_descriptor
    from penstock.streams.formats.protobuf_values import protobuf_reader, protobuf_writer
    from penstock.streams.formats.schema_texts import schema_text

    message = message_descriptor(parse("PROTOBUF", schema_text(columns, form, is_wrapped=True)))
    return protobuf_reader(message, columns), protobuf_writer(message, columns)


def _no_values(data: bytes) -> Values | None:
    return None


def _no_bytes(values: Values) -> bytes | None:
    return None


_NOTHING: Final[tuple[Read, Write]] = (_no_values, _no_bytes)


def _with_gaps(read: Read, places: list[int], width: int) -> Read:
    def padded(data: bytes) -> Values | None:
        found = read(data)
        if found is None:
            return None
        row: list[Any] = [None] * width
        for place, value in zip(places, found, strict=True):
            row[place] = value
        return tuple(row)

    return padded


def _without_gaps(write: Write, places: list[int]) -> Write:
    return lambda values: write(tuple([values[place] for place in places]))
