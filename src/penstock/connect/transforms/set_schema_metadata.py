"""SetSchemaMetadata: the schema gets another name, another version, or both."""

from __future__ import annotations

from collections.abc import Mapping

from penstock.connect.data.schema import Schema
from penstock.connect.data.structs import Struct
from penstock.connect.errors import DataError, InvalidConfig
from penstock.connect.records import ConnectRecord
from penstock.connect.settings import HIGH, Kind, Setting, Settings
from penstock.connect.transforms.sides import (
    NULL_SETTING,
    PACKAGE,
    REPLACE_NULL,
    BySchema,
    Copier,
    OnKeyOrValue,
    with_struct_default,
)


class SetSchemaMetadata(OnKeyOrValue):
    settings = Settings(
        Setting("schema.name", Kind.STRING, "The new name.", default=None, importance=HIGH),
        Setting("schema.version", Kind.INT, "The new version.", default=None, importance=HIGH),
        NULL_SETTING,
    )

    def configure(self, given: Mapping[str, str]) -> None:
        super().configure(given)
        names = {"name": "schema.name", "version": "schema.version"}
        self._changes = {
            name: self.values[setting] for name, setting in names.items() if self.values[setting] is not None
        }
        if not self._changes:
            raise InvalidConfig("Neither schema name nor version configured")
        self._plans = BySchema(self._plan)

    def _plan(self, schema: Schema) -> tuple[Schema, Copier]:
        default = schema.default
        if isinstance(default, Struct):
            updated = with_struct_default(schema.with_(**self._changes, default=None), default.values)
        else:
            updated = schema.with_(**self._changes)
        return updated, Copier(schema, with_defaults=self.values[REPLACE_NULL])

    def apply(self, record: ConnectRecord) -> ConnectRecord:
        schema, value = self.operand(record)
        if schema is None:
            if value is None:
                return record
            raise DataError("Schema required for [updating schema metadata]")
        updated, copied = self._plans(schema)
        if isinstance(value, Struct):
            value = Struct.trusted(updated, copied(value))
        return self.made(record, updated, value)


class SetSchemaMetadataKey(SetSchemaMetadata):
    is_key = True
    java_names = (PACKAGE + "SetSchemaMetadata$Key",)


class SetSchemaMetadataValue(SetSchemaMetadata):
    java_names = (PACKAGE + "SetSchemaMetadata$Value",)
