"""Schemas of Connect's data model: a type, whether null may stand in its place, a name, a version, a default, and what
containers hold.

    from penstock.connect.data import INT64, STRING, struct

    ORDER = struct("order", id=INT64, note=STRING.optional())
    row = ORDER.new(id=1, note="first")          # a Struct: row["id"], row["note"]

In Python the values are: INT8 to INT64 `int`, FLOAT32 and FLOAT64 `float`, BOOLEAN `bool`, STRING `str`, BYTES `bytes`,
ARRAY `list`, MAP `dict`, STRUCT `Struct`. The logical types of Kafka Connect are schemas with a name (`logical`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

from penstock.connect.errors import SchemaError

if TYPE_CHECKING:
    from penstock.connect.data.structs import Struct


class Type(StrEnum):
    """By the names in Kafka Connect's JSON schemas."""

    INT8 = "int8"
    INT16 = "int16"
    INT32 = "int32"
    INT64 = "int64"
    FLOAT32 = "float"
    FLOAT64 = "double"
    BOOLEAN = "boolean"
    STRING = "string"
    BYTES = "bytes"
    ARRAY = "array"
    MAP = "map"
    STRUCT = "struct"


INTEGER_BITS: Final[Mapping[Type, int]] = MappingProxyType(
    {Type.INT8: 8, Type.INT16: 16, Type.INT32: 32, Type.INT64: 64}
)
NO_PARAMETERS: Final[Mapping[str, str]] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Field:
    name: str
    index: int
    schema: Schema


class Schema:
    """Never changed once made; equal by what it says. `with_` makes another one from it."""

    __slots__ = (
        "_by_name", "_hash", "default", "doc", "fields", "holds_nulls", "is_optional", "items", "keys", "name", "parameters",
        "type", "version",
    )  # fmt: skip

    def __init__(
        self,
        type: Type,
        *,
        is_optional: bool = False,
        name: str | None = None,
        version: int | None = None,
        default: Any = None,
        doc: str | None = None,
        parameters: Mapping[str, str] | None = None,
        fields: Iterable[tuple[str, Schema]] = (),
        keys: Schema | None = None,
        items: Schema | None = None,
        holds_nulls: bool = False,
    ) -> None:
        """`items`: of an array's elements or a map's values; `keys`: of a map's keys. With `holds_nulls` they may be missing:
        such a container has nothing but nulls in it, or what has no schema in common (Kafka makes these of headers)."""
        self.type = type
        self.is_optional = is_optional
        self.name = name
        self.version = version
        self.default = default
        self.doc = doc
        self.parameters: Mapping[str, str] = (
            MappingProxyType(dict(parameters)) if parameters else NO_PARAMETERS
        )
        self.fields = tuple(Field(each, index, schema) for index, (each, schema) in enumerate(fields))
        self.keys = keys
        self.items = items
        self._by_name = {field.name: field for field in self.fields}
        self._hash: int | None = None
        self.holds_nulls = holds_nulls
        if len(self._by_name) < len(self.fields):
            names = [field.name for field in self.fields]
            twice = next(name for name in names if names.count(name) > 1)
            raise SchemaError(f"Cannot create field because of field name duplication {twice}")
        if "" in self._by_name:
            raise SchemaError("fieldName cannot be null.")
        if type is Type.MAP and (keys is None or items is None) and not holds_nulls:
            raise SchemaError("a map needs a schema of its keys and one of its values")
        if type is Type.ARRAY and items is None and not holds_nulls:
            raise SchemaError("an array needs a schema of its elements")
        if default is not None:
            from penstock.connect.data.checking import check

            check(self, default)

    def field(self, name: str) -> Field | None:
        return self._by_name.get(name)

    def new(self, **values: Any) -> Struct:
        """A struct with these values, checked."""
        return self.of(values)

    def of(self, values: Mapping[str, Any]) -> Struct:
        from penstock.connect.data.structs import Struct

        return Struct.of(self, values)

    def optional(self) -> Schema:
        return self if self.is_optional else self.with_(is_optional=True)

    def required(self) -> Schema:
        return self.with_(is_optional=False) if self.is_optional else self

    def with_(self, **changes: Any) -> Schema:
        """Another schema: the same but for the attributes that are named."""
        kept: dict[str, Any] = {
            "type": self.type,
            "is_optional": self.is_optional,
            "name": self.name,
            "version": self.version,
            "default": self.default,
            "doc": self.doc,
            "parameters": self.parameters,
            "fields": [(field.name, field.schema) for field in self.fields],
            "keys": self.keys,
            "items": self.items,
            "holds_nulls": self.holds_nulls,
        }
        return Schema(**(kept | changes))

    def _said(self) -> tuple[Any, ...]:
        return (
            self.type, self.is_optional, self.name, self.version, self.doc, tuple(sorted(self.parameters.items())),
            self.fields, self.keys, self.items,
        )  # fmt: skip

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if not isinstance(other, Schema):
            return NotImplemented
        return self._said() == other._said() and self.default == other.default

    def __hash__(self) -> int:
        if self._hash is None:
            self._hash = hash(self._said())
        return self._hash

    def __reduce__(self) -> tuple[Any, ...]:
        kept = {
            "is_optional": self.is_optional, "name": self.name, "version": self.version, "default": self.default,
            "doc": self.doc, "parameters": dict(self.parameters), "keys": self.keys, "items": self.items,
            "holds_nulls": self.holds_nulls,
            "fields": [(field.name, field.schema) for field in self.fields],
        }  # fmt: skip
        return _remade, (self.type, kept)

    def __repr__(self) -> str:
        name = f" {self.name}" if self.name else ""
        return f"<Schema {self.type}{name}{'?' if self.is_optional else ''}>"


def _remade(type: Type, kept: dict[str, Any]) -> Schema:
    return Schema(type, **kept)


INT8: Final = Schema(Type.INT8)
INT16: Final = Schema(Type.INT16)
INT32: Final = Schema(Type.INT32)
INT64: Final = Schema(Type.INT64)
FLOAT32: Final = Schema(Type.FLOAT32)
FLOAT64: Final = Schema(Type.FLOAT64)
BOOLEAN: Final = Schema(Type.BOOLEAN)
STRING: Final = Schema(Type.STRING)
BYTES: Final = Schema(Type.BYTES)
OPTIONAL_STRING: Final = STRING.optional()
OPTIONAL_BYTES: Final = BYTES.optional()


def struct(name: str | None = None, /, **fields: Schema) -> Schema:
    """A struct; for names of fields that are no names in Python: `struct_of`."""
    return struct_of(name, fields.items())


def struct_of(name: str | None, fields: Iterable[tuple[str, Schema]], **more: Any) -> Schema:
    return Schema(Type.STRUCT, name=name, fields=fields, **more)


def array(items: Schema) -> Schema:
    return Schema(Type.ARRAY, items=items)


def map_of(keys: Schema, values: Schema) -> Schema:
    return Schema(Type.MAP, keys=keys, items=values)
