"""JsonConverter: JSON, with the schema beside each payload or without.

    {"schema": {"type": "struct", "fields": […]}, "payload": {"id": 1}}     schemas.enable=true
    {"id": 1}                                                               schemas.enable=false

The schema's bytes are the same in each record, so they are written from what is kept and, once they were seen, not read again.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

import orjson

from penstock.connect.converters.either import TYPE_SETTING, EitherConverter, Recent
from penstock.connect.converters.json_reading import (
    MISSING,
    Read,
    Rounded,
    loads,
    loads_exactly,
    loads_slowly,
    loads_without_schema,
    plain,
    reader_of,
)
from penstock.connect.converters.json_schemas import schema_from_json, schema_to_json
from penstock.connect.converters.json_writing import Form, Write, dumped, dumped_without_schema, writer_of
from penstock.connect.data.schema import Schema
from penstock.connect.errors import DataError
from penstock.connect.settings import HIGH, LOW, MEDIUM_WIDTH, Kind, Setting, Settings, one_of

SCHEMAS_ENABLE: Final = "schemas.enable"
SCHEMAS_CACHE_SIZE: Final = "schemas.cache.size"
SCHEMA_CONTENT: Final = "schema.content"
DECIMAL_FORMAT: Final = "decimal.format"
REPLACE_NULL: Final = "replace.null.with.default"
MAX_BEGINNINGS: Final = 8
"""Of records whose schema is known by its bytes: those of a topic have one, or a few while it changes."""
MAX_BEGINNING_BYTES: Final = 1 << 20
_PAYLOAD: Final = re.compile(rb',\s*"payload"\s*:\s*')
_NO_ENVELOPE: Final = (
    'JsonConverter with schemas.enable requires "schema" and "payload" fields and may not contain additional fields. If you are '
    "trying to deserialize plain JSON data, set schemas.enable=false in your converter configuration."
)
_SCHEMAS, _SERIALIZATION = "Schemas", "Serialization"


class _Writing(NamedTuple):
    schema: Schema
    beginning: bytes
    """Of an envelope, up to the payload."""
    write: Write


class _Reading(NamedTuple):
    schema: Schema
    read: Read


class JsonConverter(EitherConverter):
    java_names = ("org.apache.kafka.connect.json.JsonConverter",)
    settings = Settings(
        TYPE_SETTING,
        Setting(
            SCHEMAS_ENABLE, Kind.BOOLEAN, "Whether each key and value has its schema with it.", default=True,
            importance=HIGH, group=_SCHEMAS, width=MEDIUM_WIDTH, display_name="Enable Schemas",
        ),
        Setting(
            SCHEMAS_CACHE_SIZE, Kind.INT, "How many schemas are kept at most by this converter.", default=1000,
            importance=HIGH, group=_SCHEMAS, width=MEDIUM_WIDTH, display_name="Schema Cache Size",
        ),
        Setting(
            SCHEMA_CONTENT, Kind.STRING,
            "The schema of all messages that are read, as JSON; what they say of a schema themselves is then not looked for. "
            "For sinks, with schemas.enable=true.", default=None,
            importance=HIGH, group=_SCHEMAS, width=MEDIUM_WIDTH, display_name="Schema Content",
        ),
        Setting(
            DECIMAL_FORMAT, Kind.STRING, "How decimals are written: BASE64 (of their bytes) or NUMERIC. Any case.",
            default="BASE64", check=one_of("BASE64", "NUMERIC", any_case=True),
            importance=LOW, group=_SERIALIZATION, width=MEDIUM_WIDTH, display_name="Decimal Format",
        ),
        Setting(
            REPLACE_NULL, Kind.BOOLEAN, "Whether a field that is null becomes its default, if it has one.", default=True,
            importance=LOW, group=_SERIALIZATION, width=MEDIUM_WIDTH, display_name="Replace null with default",
        ),
    )  # fmt: skip

    def configure(self, given: Mapping[str, str]) -> None:
        super().configure(given)
        values = self.values
        self._has_schemas: bool = values[SCHEMAS_ENABLE]
        self._replaces_null: bool = values[REPLACE_NULL]
        self._form = Form(values[DECIMAL_FORMAT].upper() == "NUMERIC", self._replaces_null)
        self._writings = Recent[_Writing](values[SCHEMAS_CACHE_SIZE])
        self._readings = Recent[_Reading](values[SCHEMAS_CACHE_SIZE])
        self._last: _Writing | None = None
        self._beginnings: list[tuple[bytes, _Reading]] = []
        self._fixed = self._of_content(values[SCHEMA_CONTENT]) if values[SCHEMA_CONTENT] else None

    def _of_content(self, text: str) -> _Reading | None:
        try:
            said = loads_slowly(text.encode())
        except DataError as error:
            raise DataError(
                f"Failed to parse schema in converter config due to serialization error: {error}"
            ) from None
        schema = None if said is MISSING else schema_from_json(said, replaces_null=self._replaces_null)
        return None if schema is None else self._reading(schema)

    def from_value(self, topic: str, schema: Schema | None, value: Any) -> bytes | None:
        if schema is None:
            if value is None:
                return None
            data = dumped_without_schema(value)
            return b'{"schema":null,"payload":' + data + b"}" if self._has_schemas else data
        last = self._last
        if last is None or last.schema is not schema:
            last = self._last = self._writings.get(schema, lambda: self._writing(schema))
        if not self._has_schemas:
            return dumped(last.write(value))
        return last.beginning + dumped(last.write(value)) + b"}"

    def to_value(self, topic: str, data: bytes | None) -> tuple[Schema | None, Any]:
        if data is None:
            return None, None
        if not self._has_schemas:
            value = loads_without_schema(data)
            return None, None if value is MISSING else value
        if self._fixed is not None:
            return self._fixed.schema, self._payload(self._fixed.read, loads(data), data)
        if data.endswith(b"}"):
            for beginning, reading in self._beginnings:
                if data.startswith(beginning):
                    try:
                        payload = orjson.loads(memoryview(data)[len(beginning) : -1])
                        return reading.schema, reading.read(payload)
                    except (ValueError, Rounded):
                        break  # there is more in it, or its numbers need more care
        return self._envelope(data)

    def _envelope(self, data: bytes) -> tuple[Schema | None, Any]:
        try:
            return self._opened(loads(data), data)
        except Rounded:
            return self._opened(loads_exactly(data), data)

    def _opened(self, envelope: Any, data: bytes) -> tuple[Schema | None, Any]:
        if not isinstance(envelope, dict) or envelope.keys() != {"schema", "payload"}:
            raise DataError(_NO_ENVELOPE)
        said, payload = envelope["schema"], envelope["payload"]
        if said is None:
            return None, plain(payload)
        reading = self._readings.get(json.dumps(said, default=str), lambda: self._reading_of(said))
        value = reading.read(payload)
        self._remember(data, said, reading)
        return reading.schema, value

    def _reading_of(self, said: Any) -> _Reading:
        schema = schema_from_json(said, replaces_null=self._replaces_null)
        assert schema is not None
        return self._reading(schema)

    def _reading(self, schema: Schema) -> _Reading:
        return _Reading(schema, reader_of(schema, replaces_null=self._replaces_null))

    def _payload(self, read: Read, value: Any, data: bytes) -> Any:
        try:
            return read(value)
        except Rounded:
            return read(loads_exactly(data))

    def _remember(self, data: bytes, said: Any, reading: _Reading) -> None:
        """Where the payload begins: a later record with the same bytes before it has the same schema."""
        for found in _PAYLOAD.finditer(data, 0, MAX_BEGINNING_BYTES):
            beginning = data[: found.end()]
            try:
                whole = orjson.loads(beginning + b"null}")
            except ValueError:
                continue  # it was in a text
            if isinstance(whole, dict) and list(whole) == ["schema", "payload"] and whole["schema"] == said:
                self._beginnings = [(beginning, reading), *self._beginnings[: MAX_BEGINNINGS - 1]]
            return

    def _writing(self, schema: Schema) -> _Writing:
        write = writer_of(schema, self._form)
        said = dumped(schema_to_json(schema, self._form)) if self._has_schemas else b""
        return _Writing(schema, b'{"schema":' + said + b',"payload":', write)
