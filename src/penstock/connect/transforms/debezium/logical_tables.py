"""ByLogicalTableRouter: changes of several tables with the same columns go to one topic; keys say from which table they are."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from penstock.connect.data.schema import STRING, Schema
from penstock.connect.data.structs import Struct
from penstock.connect.errors import DataError, InvalidConfig
from penstock.connect.interface import Transformation
from penstock.connect.records import ConnectRecord
from penstock.connect.settings import LOW, Check, Kind, Setting, Settings, one_of
from penstock.connect.transforms.checks import PATTERN
from penstock.connect.transforms.debezium.envelope import AFTER, BEFORE, PACKAGE, SUFFIX, is_change
from penstock.connect.transforms.java_patterns import Renaming, java_pattern
from penstock.connect.transforms.sides import fields_of, require_struct

_MAX_SCHEMAS: Final = 1_000
_NOT_FOR_AVRO: Final = re.compile(r"[^A-Za-z0-9_.]")


def _pattern_or_nothing(name: str, value: str) -> Any:
    return PATTERN.refusal(name, value) if value else None


class ByLogicalTableRouter(Transformation):
    java_names = (PACKAGE + "ByLogicalTableRouter",)
    settings = Settings(
        Setting(
            "topic.regex",
            Kind.STRING,
            "The pattern (a Java regular expression) for the topic.",
            importance=LOW,
            check=PATTERN,
        ),
        Setting(
            "topic.replacement", Kind.STRING, "The new topic, with what the groups matched.", importance=LOW
        ),
        Setting(
            "key.enforce.uniqueness",
            Kind.BOOLEAN,
            "Keys get a field that says the table: two tables may have the same keys.",
            default=True,
            importance=LOW,
        ),
        Setting(
            "key.field.regex",
            Kind.STRING,
            "The pattern for the old topic that says what is in this field. Without it, it is the old topic.",
            default=None,
            importance=LOW,
            check=Check("valid regex", _pattern_or_nothing),
        ),
        Setting(
            "key.field.name",
            Kind.STRING,
            "The name of this field.",
            default="__dbz__physicalTableIdentifier",
            importance=LOW,
        ),
        Setting(
            "key.field.replacement",
            Kind.STRING,
            "What is in it, with what the groups matched.",
            default=None,
            importance=LOW,
        ),
        Setting(
            "schema.name.adjustment.mode",
            Kind.STRING,
            "avro: what cannot be in a name in Avro becomes an underscore in the names of schemas.",
            default="none",
            importance=LOW,
            check=one_of("none", "avro", any_case=True),
        ),
    )

    def configure(self, given: Mapping[str, str]) -> None:
        super().configure(given)
        values = self.values
        self._topics = Renaming(java_pattern(values["topic.regex"]), values["topic.replacement"])
        self._tables: Renaming | None = None
        if values["key.field.regex"]:
            if not values["key.field.replacement"]:
                raise InvalidConfig("key.field.replacement must be non-empty if key.field.regex is set.")
            self._tables = Renaming(java_pattern(values["key.field.regex"]), values["key.field.replacement"])
        self._marks_keys: bool = values["key.enforce.uniqueness"]
        self._field: str = values["key.field.name"]
        self._is_for_avro = values["schema.name.adjustment.mode"].lower() == "avro"
        self._schemas: dict[tuple[Schema, str], Schema] = {}

    def apply(self, record: ConnectRecord) -> ConnectRecord:
        try:
            topic = self._topics(record.topic)
            table = None if self._tables is None else self._tables(record.topic)
        except ValueError as error:
            raise DataError(str(error)) from None
        if not topic:
            return record
        changes: dict[str, Any] = {"topic": topic, "key_schema": None, "key": None}
        if record.key is not None:
            key = require_struct(record.key, "Updating schema")
            changes["key_schema"] = schema = self._kept(key.schema, topic + ".Key", self._key_schema)
            more = [table if table is not None else record.topic] if self._marks_keys else []
            changes["key"] = Struct.trusted(schema, [*key.values, *more])
        if record.value is not None and is_change(record):
            change = require_struct(record.value, "Updating schema")
            changes["value_schema"] = schema = self._kept(change.schema, topic, self._change_schema)
            changes["value"] = _moved(change, schema)
        return record.replaced(**changes)

    def _kept(self, schema: Schema, name: str, make: Any) -> Schema:
        found = self._schemas.get((schema, name))
        if found is None:
            found = make(schema, name)
            if len(self._schemas) >= _MAX_SCHEMAS:
                self._schemas.clear()
            self._schemas[schema, name] = found
        return found

    def _name(self, name: str) -> str:
        return _NOT_FOR_AVRO.sub("_", name) if self._is_for_avro else name

    def _key_schema(self, schema: Schema, name: str) -> Schema:
        more = [(self._field, STRING)] if self._marks_keys else []
        return schema.with_(name=self._name(name), fields=[*fields_of(schema), *more], default=None)

    def _change_schema(self, schema: Schema, topic: str) -> Schema:
        fields = dict(fields_of(schema))
        old = fields.get(BEFORE) or fields.get(AFTER)
        if old is not None:
            row = old.with_(name=self._name(topic + ".Value"), default=None)
            fields |= {name: row for name in (BEFORE, AFTER) if name in fields}
        return schema.with_(name=self._name(topic + SUFFIX), fields=list(fields.items()), default=None)


def _moved(change: Struct, schema: Schema) -> Struct:
    """The same values, with rows of the new schema."""
    values = []
    for field, value in zip(schema.fields, change.values, strict=True):
        if field.name in (BEFORE, AFTER) and isinstance(value, Struct):
            value = Struct.trusted(field.schema, value.values)
        values.append(value)
    return Struct.trusted(schema, values)
