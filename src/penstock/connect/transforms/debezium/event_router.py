"""EventRouter: a row of an outbox table becomes an event, in the topic of its aggregate, with the aggregate's id as the key."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from penstock.connect.data.schema import STRING, Field, Schema, Type, struct_of
from penstock.connect.data.structs import Struct
from penstock.connect.errors import ConnectError, DataError, InvalidConfig
from penstock.connect.interface import Transformation
from penstock.connect.records import ConnectRecord, Header
from penstock.connect.settings import HIGH, LOW, Check, Kind, Setting, Settings, one_of
from penstock.connect.transforms.checks import PATTERN
from penstock.connect.transforms.debezium.envelope import (
    AFTER,
    DELETE,
    OPERATION,
    PACKAGE,
    UPDATE,
    is_change,
    of_type,
)
from penstock.connect.transforms.debezium.json_payloads import JsonPayloads
from penstock.connect.transforms.java_patterns import Renaming, java_pattern
from penstock.connect.transforms.sides import require_struct

log = logging.getLogger("penstock.connect.transforms")

HEADER, ENVELOPE, PARTITION = "header", "envelope", "partition"
PAYLOAD: Final = "payload"
_MAX_SCHEMAS: Final = 1_000
_MS: Final[Mapping[str, int]] = {
    "io.debezium.time.Timestamp": 1,
    "io.debezium.time.MicroTimestamp": 1_000,
    "io.debezium.time.NanoTimestamp": 1_000_000,
}


class Placed(NamedTuple):
    """A further column, and where it goes under which name."""

    field: str
    place: str
    name: str


def _placed(texts: list[str]) -> list[Placed]:
    found = []
    for text in texts:
        parts = [part.strip() for part in text.split(":")]
        if len(parts) not in (2, 3):
            raise InvalidConfig(
                "A comma-separated list of valid String pairs or trios is expected but got: "
                + ",".join(texts)
            )
        place = parts[1].lower()
        if place not in (HEADER, ENVELOPE, PARTITION):
            raise InvalidConfig(f"{text}: a column goes to {HEADER}, {ENVELOPE} or {PARTITION}")
        found.append(Placed(parts[0], place, parts[-1] if len(parts) == 3 else parts[0]))
    return found


def _refusal(name: str, value: list[str]) -> Any:
    try:
        _placed(value)
    except InvalidConfig as error:
        return InvalidConfig(f"Invalid value {','.join(value)} for configuration {name}: {error}")
    return None


def _column(name: str, doc: str, default: str | None, importance: str = LOW) -> Setting:
    return Setting(name, Kind.STRING, doc, default=default, importance=importance)


class EventRouter(Transformation):
    java_names = (PACKAGE + "outbox.EventRouter",)
    settings = Settings(
        _column("table.field.event.id", "The column with the id of the event.", "id"),
        _column("table.field.event.key", "The column that becomes the key.", "aggregateid"),
        _column("table.field.event.type", "The column with the type of the event.", "type"),
        _column("table.field.event.payload", "The column that becomes the value.", PAYLOAD),
        _column(
            "table.field.event.timestamp",
            "The column that becomes the time of the record, instead of the change's.",
            None,
        ),
        Setting(
            "table.fields.additional.placement",
            Kind.LIST,
            "Further columns, as column:place or column:place:name. The places are header, envelope (the value is then a struct "
            "with the payload in it) and partition.",
            default=[],
            importance=HIGH,
            check=Check("column:place:name,…", _refusal),
        ),
        Setting(
            "table.field.additional.missing",
            Kind.STRING,
            "What is done when such a column is missing.",
            default="error",
            check=one_of("error", "ignore", any_case=True),
        ),
        _column("table.field.event.schema.version", "The column with the version of the schema.", None),
        Setting(
            "table.op.invalid.behavior",
            Kind.STRING,
            "What is done with updates, which an outbox should not have. fatal: the task fails. Else they are left out.",
            default="warn",
            check=one_of("warn", "error", "fatal", any_case=True),
        ),
        Setting(
            "table.expand.json.payload",
            Kind.BOOLEAN,
            "A payload that is JSON becomes a struct or array.",
            default=False,
        ),
        Setting(
            "table.json.payload.null.behavior",
            Kind.STRING,
            "What nulls in such JSON become: nothing, or optional bytes.",
            default="ignore",
            check=one_of("ignore", "optional_bytes", any_case=True),
        ),
        Setting(
            "table.json.payload.empty.array.behavior",
            Kind.STRING,
            "What empty arrays in such JSON become: nothing, or arrays of optional strings.",
            default="ignore",
            check=one_of("ignore", "optional_string", any_case=True),
        ),
        _column("route.by.field", "The column that says the topic.", "aggregatetype", HIGH),
        Setting(
            "route.topic.regex",
            Kind.STRING,
            "The pattern (a Java regular expression) for what that column says.",
            default="(?<routedByValue>.*)",
            importance=LOW,
            check=PATTERN,
        ),
        _column(
            "route.topic.replacement",
            "The topic, with what groups matched.",
            "outbox.event.${routedByValue}",
            HIGH,
        ),
        Setting(
            "route.tombstone.on.empty.payload",
            Kind.BOOLEAN,
            "An event without a payload becomes a tombstone.",
            default=False,
            importance=HIGH,
        ),
    )

    def configure(self, given: Mapping[str, str]) -> None:
        super().configure(given)
        values = self.values
        self._id, self._key = values["table.field.event.id"], values["table.field.event.key"]
        self._payload, self._time = values["table.field.event.payload"], values["table.field.event.timestamp"]
        self._route_by, self._version = values["route.by.field"], values["table.field.event.schema.version"]
        self._placed = _placed(values["table.fields.additional.placement"])
        self._ignores_missing = values["table.field.additional.missing"].lower() == "ignore"
        self._has_envelope = any(each.place == ENVELOPE for each in self._placed)
        pattern = java_pattern(values["route.topic.regex"])
        self._renaming = Renaming(pattern, values["route.topic.replacement"])
        self._json: JsonPayloads | None = None
        if values["table.expand.json.payload"]:
            self._json = JsonPayloads(
                keeps_nulls=values["table.json.payload.null.behavior"].lower() != "ignore",
                keeps_empty_arrays=values["table.json.payload.empty.array.behavior"].lower() != "ignore",
            )
        self._schemas: dict[Any, Schema] = {}

    def apply(self, record: ConnectRecord) -> ConnectRecord | None:
        if record.value is None:
            return None
        if not is_change(record):
            return record
        change = require_struct(record.value, "Detect Debezium Operation")
        operation = of_type(change, OPERATION, Type.STRING)
        if operation == DELETE:
            return None
        if operation == UPDATE:
            self._unexpected(record)
            return None
        return self._event(record, change, require_struct(change[AFTER], "Read Outbox Event"))

    def _unexpected(self, record: ConnectRecord) -> None:
        """A row of an outbox is written once."""
        behavior = self.values["table.op.invalid.behavior"].lower()
        if behavior == "fatal":
            raise ConnectError(f"Unexpected update message received {record.key!r}, fail.")
        level = logging.WARNING if behavior == "warn" else logging.ERROR
        log.log(level, "An update in the outbox table was left out")

    def _event(self, record: ConnectRecord, change: Struct, row: Struct) -> ConnectRecord:
        payload_schema: Schema = _field(row, self._payload, "payload field").schema
        payload = row[self._payload]
        headers = [Header("id", row[self._id], _field(row, self._id, "event-id field").schema)]
        if self._json is not None:
            payload_schema, payload = self._json.expanded(self._payload, payload_schema, payload)
        topic = of_type(row, self._route_by, Type.STRING)
        around = self._around(row, payload_schema, topic) if self._has_envelope else None
        values, partition = [payload], None
        for each in self._placed:
            field = row.schema.field(each.field)
            if field is None and self._ignores_missing:
                continue
            if each.place == ENVELOPE:
                values.append(row[each.field])
            elif each.place == HEADER:
                headers.append(Header(each.name, row[each.field], _field(row, each.field, "field").schema))
            else:
                partition = of_type(row, each.field, Type.INT32)
        value: Any = payload if around is None else Struct.trusted(around, values)
        schema: Schema | None = payload_schema if around is None else around
        if self.values["route.tombstone.on.empty.payload"] and (payload is None or not str(payload).strip()):
            schema = value = None
        key_field = row.schema.field(self._key)
        return record.replaced(
            topic=self._topic(topic),
            partition=partition,
            key_schema=STRING if key_field is None else key_field.schema,
            key=row[self._key],
            value_schema=schema,
            value=value,
            timestamp_ms=self._timestamp(change, row),
            headers=(*record.headers, *headers),
        )

    def _topic(self, value: str | None) -> str:
        if value is None:
            raise DataError(f"{self._route_by}, by which events are routed, is null")
        try:
            found = self._renaming(value)
        except ValueError as error:
            raise DataError(str(error)) from None
        return value if found is None else found

    def _timestamp(self, change: Struct, row: Struct) -> int | None:
        own: int | None = None
        if self._time is not None:
            field = _field(row, self._time, "timestamp field")
            own = of_type(row, self._time, Type.INT64)
            if own is not None:
                divisor = _MS.get(field.schema.name or "")
                if divisor is None:
                    raise ConnectError(
                        f"Unsupported field type {field.schema.name or field.schema.type.name} for event timestamp"
                    )
                return own // divisor if own >= 0 else -(-own // divisor)
        found: int | None = of_type(change, "ts_ms", Type.INT64)
        return found

    def _around(self, row: Struct, payload: Schema, topic: str | None) -> Schema:
        """The schema of the value when further columns go into it."""
        version = None if self._version is None else of_type(row, self._version, Type.INT32)
        # As in Debezium, one for each version if there are versions.
        place = payload if self._version is None else version
        found = self._schemas.get(place)
        if found is None:
            fields = [(PAYLOAD, payload)]
            for each in self._placed:
                if each.place == ENVELOPE and not (self._ignores_missing and each.field not in row):
                    fields.append((each.name, _field(row, each.field, "field").schema))
            found = struct_of(_schema_name(row.schema.name, topic), fields, version=version)
            if len(self._schemas) >= _MAX_SCHEMAS:
                self._schemas.clear()
            self._schemas[place] = found
        return found


def _field(row: Struct, name: str, what: str) -> Field:
    field = row.schema.field(name)
    if field is None:
        raise ConnectError(f"Unable to find {what} {name} in event")
    return field


def _schema_name(original: str | None, topic: str | None) -> str:
    """The topic stands before the last part of the name."""
    if original is None:
        return str(topic)
    start, dot, last = original.rpartition(".")
    return f"{start}{dot}{topic}.{last}"
