"""HeaderFrom: fields become headers; they are moved or copied."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from penstock.connect.data.schema import Schema
from penstock.connect.data.structs import Struct
from penstock.connect.errors import DataError, InvalidConfig
from penstock.connect.records import ConnectRecord, Header
from penstock.connect.settings import HIGH, Kind, Setting, Settings, one_of
from penstock.connect.transforms.checks import NOT_EMPTY
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

_MOVE: Final = "move"


class _NoSuchField(DataError):
    java_name = "java.lang.NullPointerException"


class _Plan(NamedTuple):
    schema: Schema
    kept: tuple[tuple[int, Any, str, Schema, bool], ...]
    """Of each field that stays: where it stands, its default, its name, its schema, whether it must have a value."""
    taken: tuple[tuple[str, int, Any, Schema], ...]
    """Of each header: its name, where the field stands, its default, its schema."""


class HeaderFrom(OnKeyOrValue):
    settings = Settings(
        Setting("fields", Kind.LIST, "The fields that become headers.", importance=HIGH, check=NOT_EMPTY),
        Setting(
            "headers",
            Kind.LIST,
            "The names of the headers, in the order of the fields.",
            importance=HIGH,
            check=NOT_EMPTY,
        ),
        Setting(
            "operation",
            Kind.STRING,
            "move: the fields are taken away. copy: they stay.",
            importance=HIGH,
            check=one_of(_MOVE, "copy"),
        ),
        NULL_SETTING,
    )

    def configure(self, given: Mapping[str, str]) -> None:
        super().configure(given)
        fields, headers = self.values["fields"], self.values["headers"]
        if len(fields) != len(headers):
            raise InvalidConfig("'fields' config must have the same number of elements as 'headers' config.")
        self._pairs: list[tuple[str, str]] = list(zip(fields, headers, strict=True))
        self._is_move = self.values["operation"] == _MOVE
        self._purpose = f"header {self.values['operation']}"
        self._plans = BySchema(self._plan)

    def _plan(self, schema: Schema) -> _Plan:
        with_defaults = self.values[REPLACE_NULL]
        names = {name for name, _ in self._pairs} if self._is_move else set()
        stay = [field for field in schema.fields if field.name not in names]
        updated = (
            with_basics(schema, fields=[(field.name, field.schema) for field in stay])
            if self._is_move
            else schema
        )
        kept, taken = [], []
        for field in stay:
            default = field.schema.default if with_defaults else None
            is_required = not field.schema.is_optional and default is None
            kept.append((field.index, default, field.name, field.schema, is_required))
        for name, header in self._pairs:
            found = schema.field(name)
            if found is None:
                raise _NoSuchField(f"Field does not exist: {name}")
            default = found.schema.default if with_defaults else None
            taken.append((header, found.index, default, found.schema))
        return _Plan(updated, tuple(kept), tuple(taken))

    def apply(self, record: ConnectRecord) -> ConnectRecord:
        schema, value = self.operand(record)
        if schema is None:
            return self._without_schema(record, require_map(value, self._purpose))
        row = require_struct(value, self._purpose)
        plan = self._plans(schema)
        added = []
        for name, index, default, of_field in plan.taken:
            found = row.values[index]
            if found is None:
                found = default
                if found is None and not of_field.is_optional:
                    raise DataError(f"A null value requires an optional schema but was {of_field!r}")
            added.append(Header(name, found, of_field))
        headers = (*record.headers, *added)
        if not self._is_move:
            return record.replaced(headers=headers)
        values = []
        for index, default, name, of_field, is_required in plan.kept:
            found = row.values[index]
            if found is None:
                if is_required:
                    raise null_refused(name, of_field)
                found = default
            values.append(found)
        return self.made(record, plan.schema, Struct.trusted(plan.schema, values), headers=headers)

    def _without_schema(self, record: ConnectRecord, value: dict[Any, Any]) -> ConnectRecord:
        added = tuple(Header(header, value.get(name)) for name, header in self._pairs)
        updated = value.copy()
        if self._is_move:
            for name, _ in self._pairs:
                updated.pop(name, None)
        return self.made(record, None, updated, headers=record.headers + added)


class HeaderFromKey(HeaderFrom):
    is_key = True
    java_names = (PACKAGE + "HeaderFrom$Key",)


class HeaderFromValue(HeaderFrom):
    java_names = (PACKAGE + "HeaderFrom$Value",)
