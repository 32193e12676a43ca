"""ValueToKey: the key is made anew from fields of the value."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from penstock.connect.data.schema import Field, Schema, struct_of
from penstock.connect.data.structs import Struct
from penstock.connect.errors import DataError
from penstock.connect.interface import Transformation
from penstock.connect.records import ConnectRecord
from penstock.connect.settings import HIGH, Kind, Setting, Settings
from penstock.connect.transforms.checks import NOT_EMPTY
from penstock.connect.transforms.sides import (
    NULL_SETTING,
    PACKAGE,
    REPLACE_NULL,
    BySchema,
    null_refused,
    require_map,
    require_struct,
)

_PURPOSE: Final = "copying fields from value to key"


class ValueToKey(Transformation):
    java_names = (PACKAGE + "ValueToKey",)
    settings = Settings(
        Setting(
            "fields", Kind.LIST, "Fields of the value that become the key.", importance=HIGH, check=NOT_EMPTY
        ),
        NULL_SETTING,
    )

    def configure(self, given: Mapping[str, str]) -> None:
        super().configure(given)
        self._fields: list[str] = self.values["fields"]
        self._plans = BySchema(self._plan)

    def _plan(self, schema: Schema) -> tuple[Schema, tuple[tuple[int, Any, Field | None], ...]]:
        found = []
        for name in self._fields:
            field = schema.field(name)
            if field is None:
                raise DataError(f"Field does not exist: {name}")
            found.append(field)
        sources = []
        for field in found:
            default = field.schema.default if self.values[REPLACE_NULL] else None
            is_required = not field.schema.is_optional and default is None
            sources.append((field.index, default, field if is_required else None))
        return struct_of(None, [(field.name, field.schema) for field in found]), tuple(sources)

    def apply(self, record: ConnectRecord) -> ConnectRecord:
        if record.value_schema is None:
            value = require_map(record.value, _PURPOSE)
            return record.replaced(key_schema=None, key={name: value.get(name) for name in self._fields})
        row = require_struct(record.value, _PURPOSE)
        schema, sources = self._plans(row.schema)
        old, values = row.values, []
        for index, default, required in sources:
            found = old[index]
            if found is None:
                if required is not None:
                    raise null_refused(required.name, required.schema)
                found = default
            values.append(found)
        return record.replaced(key_schema=schema, key=Struct.trusted(schema, values))
