"""Fields that a header names are dropped from the row, and from the key if that is wanted."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from penstock.connect.data.schema import Schema
from penstock.connect.data.structs import Struct
from penstock.connect.errors import DataError
from penstock.connect.records import ConnectRecord
from penstock.connect.settings import LOW, Kind, Setting, Settings
from penstock.connect.transforms.sides import fields_of, with_basics


class FieldsDropped:
    settings: ClassVar = Settings(
        Setting(
            "drop.fields.header.name",
            Kind.STRING,
            "The header that has a list of the names of fields that are dropped.",
            default=None,
            importance=LOW,
        ),
        Setting(
            "drop.fields.from.key",
            Kind.BOOLEAN,
            "They are dropped from the key, too.",
            default=False,
            importance=LOW,
        ),
        Setting(
            "drop.fields.keep.schema.compatible",
            Kind.BOOLEAN,
            "Only optional fields are dropped: readers with the old schema can read what is left.",
            default=True,
            importance=LOW,
        ),
    )

    def __init__(self, values: Mapping[str, Any]) -> None:
        self.header: str = (values["drop.fields.header.name"] or "").strip()
        self._from_key: bool = values["drop.fields.from.key"]
        self._only_optional: bool = values["drop.fields.keep.schema.compatible"]

    def __call__(self, record: ConnectRecord) -> ConnectRecord:
        found = next((header for header in record.headers if header.name == self.header), None)
        if found is None or not found.value:
            return record
        if not isinstance(found.value, list):
            raise DataError(f"The header {self.header} must be a list of names of fields")
        names = frozenset(found.value)
        changes: dict[str, Any] = {}
        if self._from_key and isinstance(record.key, Struct):
            changes["key_schema"], changes["key"] = self._without(record.key, names)
        if isinstance(record.value, Struct):
            changes["value_schema"], changes["value"] = self._without(record.value, names)
        return record.replaced(**changes)

    def _without(self, row: Struct, names: frozenset[str]) -> tuple[Schema, Struct]:
        kept = [
            field
            for field in row.schema.fields
            if field.name not in names or (self._only_optional and not field.schema.is_optional)
        ]
        if len(kept) == len(row.values):
            return row.schema, row
        everything = fields_of(row.schema)
        schema = with_basics(row.schema, fields=[everything[field.index] for field in kept])
        return schema, Struct.trusted(schema, [row[field.name] for field in kept])
