"""Flatten: fields of structs in structs, or of maps in maps, become fields of one; their names are joined. Arrays stay."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

from penstock.connect.data.schema import Field, Schema, Type
from penstock.connect.data.structs import Struct
from penstock.connect.errors import DataError
from penstock.connect.records import ConnectRecord
from penstock.connect.settings import Kind, Setting, Settings
from penstock.connect.transforms.sides import (
    PACKAGE,
    BySchema,
    OnKeyOrValue,
    java_class,
    null_refused,
    require_map,
    require_struct,
    with_basics,
)

_PURPOSE: Final = "flattening"
_KEPT: Final = (bool, int, float, str, bytes, bytearray, memoryview, list, tuple)
_MAX_DEPTH: Final = 500
"""Of maps in maps without a schema."""


class _Leaf(NamedTuple):
    place: int
    default: Any
    required: tuple[str, Schema] | None
    """Its new name and schema, if it must have a value."""


class _Branch(NamedTuple):
    place: int
    parts: tuple[Any, ...]
    width: int
    """How many fields it becomes."""


class Flatten(OnKeyOrValue):
    settings = Settings(Setting("delimiter", Kind.STRING, "What stands between the names.", default="."))

    def configure(self, given: Mapping[str, str]) -> None:
        super().configure(given)
        self._delimiter: str = self.values["delimiter"]
        self._plans = BySchema(self._plan)

    def apply(self, record: ConnectRecord) -> ConnectRecord:
        schema, value = self.operand(record)
        if value is None:
            return record
        if schema is None:
            updated = dict(self._entries(require_map(value, _PURPOSE), "", 0))
            return self.made(record, None, updated)
        row = require_struct(value, _PURPOSE)
        flat, parts = self._plans(schema)
        values: list[Any] = []
        _collect(row.values, parts, values)
        return self.made(record, flat, Struct.trusted(flat, values))

    def _name(self, prefix: str, name: Any) -> str:
        return f"{prefix}{self._delimiter}{name}" if prefix else str(name)

    def _plan(self, schema: Schema) -> tuple[Schema, tuple[Any, ...]]:
        fields: list[tuple[str, Schema]] = []
        parts = self._parts(schema, "", schema.is_optional, schema.default, fields)
        return with_basics(schema, fields=fields), parts

    def _parts(
        self,
        schema: Schema,
        prefix: str,
        is_optional: bool,
        around: Struct | None,
        fields: list[tuple[str, Schema]],
    ) -> tuple[Any, ...]:
        """`around`: the default of the struct, which says those of its fields."""
        parts: list[_Leaf | _Branch] = []
        for field in schema.fields:
            name = self._name(prefix, field.name)
            may_be_null = is_optional or field.schema.is_optional
            default = field.schema.default
            if default is None and around is not None:
                default = around[field.name]
            if field.schema.type is Type.STRUCT:
                before = len(fields)
                inside = self._parts(field.schema, name, may_be_null, default, fields)
                parts.append(_Branch(field.index, inside, len(fields) - before))
            elif field.schema.type is Type.MAP:
                raise DataError(
                    f"Flatten transformation does not support MAP for record with schemas (for field {name})."
                )
            else:
                flat = self._flat(field, may_be_null, default)
                fields.append((name, flat))
                is_required = not may_be_null and field.schema.default is None
                parts.append(_Leaf(field.index, field.schema.default, (name, flat) if is_required else None))
        return tuple(parts)

    def _flat(self, field: Field, is_optional: bool, default: Any) -> Schema:
        return with_basics(field.schema, items=field.schema.items, is_optional=is_optional, default=default)

    def _entries(self, value: dict[Any, Any], prefix: str, depth: int) -> Iterator[tuple[str, Any]]:
        if depth > _MAX_DEPTH:
            raise DataError(f"Maps are nested in one another more than {_MAX_DEPTH} times")
        for key, each in value.items():
            name = self._name(prefix, key)
            if isinstance(each, dict):
                yield from self._entries(each, name, depth + 1)
            elif each is None or isinstance(each, _KEPT):
                yield name, each
            elif isinstance(each, Struct):
                raise DataError(
                    f"Flatten transformation does not support class {java_class(each)} for record without schemas "
                    f"(for field {name})."
                )
            else:
                raise DataError(
                    f"Flatten transformation was passed a value of type class {java_class(each)} which is not supported by "
                    "Connect's data API"
                )


def _collect(values: list[Any], parts: tuple[Any, ...], flat: list[Any]) -> None:
    for part in parts:
        found = values[part[0]]
        if type(part) is _Leaf:
            if found is None:
                found = part.default
                if found is None and part.required is not None:
                    raise null_refused(*part.required)
            flat.append(found)
        elif found is None:
            flat.extend([None] * part.width)
        else:
            _collect(found.values, part.parts, flat)


class FlattenKey(Flatten):
    is_key = True
    java_names = (PACKAGE + "Flatten$Key",)


class FlattenValue(Flatten):
    java_names = (PACKAGE + "Flatten$Value",)
