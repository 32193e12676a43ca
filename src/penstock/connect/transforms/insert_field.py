"""InsertField: where a record is from (topic, partition, offset, time) or a text of one's own, as fields of it."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

from penstock.connect.data.logical import TIMESTAMP, timestamp_from_ms
from penstock.connect.data.schema import INT32, INT64, STRING, Schema
from penstock.connect.data.structs import Struct
from penstock.connect.errors import DataError, InvalidConfig
from penstock.connect.records import ConnectRecord, SinkRecord
from penstock.connect.settings import Kind, Setting, Settings
from penstock.connect.transforms.sides import (
    NULL_SETTING,
    PACKAGE,
    REPLACE_NULL,
    BySchema,
    Copier,
    OnKeyOrValue,
    fields_of,
    require_map,
    require_struct,
    with_basics,
)

_PURPOSE: Final = "field insertion"
_SUFFIXES: Final = "With ! at its end the field is required, with ? it is optional (the default)."
_JAVA_RECORD: Final = "org.apache.kafka.connect.source.SourceRecord"


class _Insertion(NamedTuple):
    name: str
    schema: Schema
    read: Callable[[ConnectRecord], Any]
    """None: there is none, and the field stays empty."""


class InsertField(OnKeyOrValue):
    settings = Settings(
        Setting("topic.field", Kind.STRING, f"The field for the topic. {_SUFFIXES}", default=None),
        Setting("partition.field", Kind.STRING, f"The field for the partition. {_SUFFIXES}", default=None),
        Setting(
            "offset.field", Kind.STRING, f"The field for the offset; only in sinks. {_SUFFIXES}", default=None
        ),
        Setting(
            "timestamp.field", Kind.STRING, f"The field for the record's time. {_SUFFIXES}", default=None
        ),
        Setting("static.field", Kind.STRING, f"The field for a text of your own. {_SUFFIXES}", default=None),
        Setting("static.value", Kind.STRING, "The text of your own.", default=None),
        NULL_SETTING,
    )

    def configure(self, given: Mapping[str, str]) -> None:
        super().configure(given)
        static = self.values["static.value"]
        sources: tuple[tuple[str, Schema, Callable[[ConnectRecord], Any]], ...] = (
            ("topic.field", STRING, lambda record: record.topic),
            ("partition.field", INT32, lambda record: record.partition),
            ("offset.field", INT64, _offset),
            ("timestamp.field", TIMESTAMP, _timestamp),
            ("static.field", STRING, lambda record: static),
        )
        self._insertions = [
            _insertion(self.values[setting], schema, read)
            for setting, schema, read in sources
            if self.values[setting] is not None
        ]
        if not self._insertions:
            raise InvalidConfig("No field insertion configured")
        if self.values["static.field"] is not None and static is None:
            raise InvalidConfig(
                "Invalid value null for configuration static.value: "
                f"No value specified for static field: {self.values['static.field']}"
            )
        self._reads = tuple(insertion.read for insertion in self._insertions)
        self._plans = BySchema(self._plan)

    def _plan(self, schema: Schema) -> tuple[Schema, Copier]:
        added = [(insertion.name, insertion.schema) for insertion in self._insertions]
        copier = Copier(schema, with_defaults=self.values[REPLACE_NULL])
        return with_basics(schema, fields=fields_of(schema) + added), copier

    def apply(self, record: ConnectRecord) -> ConnectRecord:
        schema, value = self.operand(record)
        if value is None:
            return record
        if schema is None:
            return self.made(record, None, self._inserted(record, require_map(value, _PURPOSE)))
        row = require_struct(value, _PURPOSE)
        updated, copier = self._plans(row.schema)
        values = copier(row)
        for read in self._reads:
            values.append(read(record))
        return self.made(record, updated, Struct.trusted(updated, values))

    def _inserted(self, record: ConnectRecord, value: dict[Any, Any]) -> dict[Any, Any]:
        updated = value.copy()
        for insertion in self._insertions:
            # Without a schema the time is a number.
            found = record.timestamp_ms if insertion.read is _timestamp else insertion.read(record)
            if found is not None:
                updated[insertion.name] = found
        return updated


def _insertion(spec: str, schema: Schema, read: Callable[[ConnectRecord], Any]) -> _Insertion:
    name = spec[:-1] if spec.endswith(("!", "?")) else spec
    return _Insertion(name, schema if spec.endswith("!") else schema.optional(), read)


def _offset(record: ConnectRecord) -> int:
    if not isinstance(record, SinkRecord):
        raise DataError(f"Only SinkRecord supported for [{_PURPOSE}], found: {_JAVA_RECORD}")
    return record.offset


def _timestamp(record: ConnectRecord) -> dt.datetime | None:
    ms = record.timestamp_ms
    return None if ms is None else timestamp_from_ms(TIMESTAMP, ms)


class InsertFieldKey(InsertField):
    is_key = True
    java_names = (PACKAGE + "InsertField$Key",)


class InsertFieldValue(InsertField):
    java_names = (PACKAGE + "InsertField$Value",)
