"""ExtractField: a field takes the place of the whole key or value."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from penstock.connect.data.schema import Schema
from penstock.connect.errors import DataError
from penstock.connect.records import ConnectRecord
from penstock.connect.settings import Kind, Setting, Settings
from penstock.connect.transforms.field_paths import SYNTAX_SETTING, SYNTAX_VERSION, Found, find, parse_path
from penstock.connect.transforms.sides import (
    NULL_SETTING,
    PACKAGE,
    REPLACE_NULL,
    BySchema,
    OnKeyOrValue,
    require_map,
    require_struct,
)

_PURPOSE: Final = "field extraction"


class UnknownField(DataError):
    """The schema has no such field."""

    java_name = "java.lang.IllegalArgumentException"


class ExtractField(OnKeyOrValue):
    settings = Settings(
        Setting("field", Kind.STRING, "The field that is taken out, or the path to it."),
        NULL_SETTING,
        SYNTAX_SETTING,
    )

    def configure(self, given: Mapping[str, str]) -> None:
        super().configure(given)
        self._path = parse_path(self.values["field"], self.values[SYNTAX_VERSION])
        self._with_default: bool = self.values[REPLACE_NULL]
        self._plans = BySchema(self._plan)

    def _plan(self, schema: Schema) -> Found:
        found = find(schema, self._path)
        if found is None:
            raise UnknownField(f"Unknown field: {self.values['field']}")
        return found

    def apply(self, record: ConnectRecord) -> ConnectRecord:
        schema, value = self.operand(record)
        if schema is None:
            return self.made(record, None, None if value is None else self._inside(value))
        if value is not None:
            value = require_struct(value, _PURPOSE)
        found = self._plans(schema)
        if value is not None:
            for index, default in found.steps:
                value = value.values[index]
                if value is None and (value := default) is None:
                    return self.made(record, found.schema, None)
            value = value.values[found.place]
            if value is None and self._with_default:
                value = found.schema.default
        return self.made(record, found.schema, value)

    def _inside(self, value: Any) -> Any:
        inner = require_map(value, _PURPOSE)
        for name in self._path[:-1]:
            found = inner.get(name)
            if found is None:
                return None
            inner = require_map(found, "nested field access")
        return inner.get(self._path[-1])


class ExtractFieldKey(ExtractField):
    is_key = True
    java_names = (PACKAGE + "ExtractField$Key",)


class ExtractFieldValue(ExtractField):
    java_names = (PACKAGE + "ExtractField$Value",)
