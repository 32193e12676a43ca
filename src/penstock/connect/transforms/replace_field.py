"""ReplaceField: fields left out, kept, renamed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from penstock.connect.data.schema import Field, Schema
from penstock.connect.data.structs import Struct
from penstock.connect.errors import DataError, InvalidConfig
from penstock.connect.records import ConnectRecord
from penstock.connect.settings import Check, Kind, Setting, Settings
from penstock.connect.transforms.sides import (
    NULL_SETTING,
    PACKAGE,
    REPLACE_NULL,
    BySchema,
    OnKeyOrValue,
    null_refused,
    require_map,
    require_struct,
    with_basics,
)

_PURPOSE: Final = "field replacement"


def _renames(pairs: list[str]) -> dict[str, str]:
    renames = {}
    for pair in pairs:
        old, colon, new = pair.rstrip(":").partition(":")
        if not colon or ":" in new:
            raise InvalidConfig(
                f"Invalid value [{', '.join(pairs)}] for configuration renames: Invalid rename mapping: {pair}"
            )
        renames[old] = new
    return renames


def _refusal(name: str, value: list[str]) -> Any:
    try:
        _renames(value)
    except InvalidConfig as error:
        return error
    return None


class ReplaceField(OnKeyOrValue):
    settings = Settings(
        Setting(
            "exclude", Kind.LIST, "Fields that are left out, also when `include` names them.", default=[]
        ),
        Setting("include", Kind.LIST, "If there are any, only these fields are kept.", default=[]),
        Setting(
            "renames", Kind.LIST, "New names, as old:new.", default=[], check=Check("old:new,…", _refusal)
        ),
        NULL_SETTING,
    )

    def configure(self, given: Mapping[str, str]) -> None:
        super().configure(given)
        self._exclude = frozenset(self.values["exclude"])
        self._include = frozenset(self.values["include"])
        self._new_names = _renames(self.values["renames"])
        self._old_names = {new: old for old, new in self._new_names.items()}
        self._plans = BySchema(self._plan)

    def _is_kept(self, name: str) -> bool:
        return name not in self._exclude and (not self._include or name in self._include)

    def _plan(self, schema: Schema) -> tuple[Schema, tuple[tuple[int, Any, Field | None], ...]]:
        """The new schema, and for each of its fields: where its value stands, its default, and the field if it must have one."""
        with_defaults = self.values[REPLACE_NULL]
        updated = with_basics(
            schema,
            fields=[
                (self._new_names.get(field.name, field.name), field.schema)
                for field in schema.fields
                if self._is_kept(field.name)
            ],
        )
        sources = []
        for field in updated.fields:
            source = schema.field(self._old_names.get(field.name, field.name))
            if source is None:
                raise DataError(f"{self._old_names[field.name]} is not a valid field name")
            default = source.schema.default if with_defaults else None
            is_required = not field.schema.is_optional and default is None
            sources.append((source.index, default, field if is_required else None))
        return updated, tuple(sources)

    def apply(self, record: ConnectRecord) -> ConnectRecord:
        schema, value = self.operand(record)
        if value is None:
            return record
        if schema is None:
            return self.made(record, None, self._replaced(require_map(value, _PURPOSE)))
        row = require_struct(value, _PURPOSE)
        updated, sources = self._plans(row.schema)
        old, values = row.values, []
        for index, default, required in sources:
            found = old[index]
            if found is None:
                if required is not None:
                    raise null_refused(required.name, required.schema)
                found = default
            values.append(found)
        return self.made(record, updated, Struct.trusted(updated, values))

    def _replaced(self, value: dict[Any, Any]) -> dict[Any, Any]:
        names = self._new_names
        return {names.get(name, name): each for name, each in value.items() if self._is_kept(name)}


class ReplaceFieldKey(ReplaceField):
    is_key = True
    java_names = (PACKAGE + "ReplaceField$Key",)


class ReplaceFieldValue(ReplaceField):
    java_names = (PACKAGE + "ReplaceField$Value",)
