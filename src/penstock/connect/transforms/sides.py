"""What most transforms share: they work on the key or on the value of a record, with a schema or without one.

Java's classes come in pairs (`Cast$Key`, `Cast$Value`), ours too; `is_key` tells them apart.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from decimal import Decimal
from typing import Any, ClassVar, Final, Generic, TypeVar

from penstock.connect.data.schema import Schema, Type
from penstock.connect.data.structs import Struct
from penstock.connect.errors import DataError
from penstock.connect.interface import Transformation
from penstock.connect.records import ConnectRecord
from penstock.connect.settings import MEDIUM, Kind, Setting

PACKAGE: Final = "org.apache.kafka.connect.transforms."
MAX_SCHEMAS: Final = 64
"""How many schemas a transform knows the outcome of; the oldest gives way."""
REPLACE_NULL: Final = "replace.null.with.default"
NULL_SETTING: Final = Setting(
    REPLACE_NULL,
    Kind.BOOLEAN,
    "A field that is null and whose schema has a default gets the default. Otherwise it stays null.",
    default=True,
    importance=MEDIUM,
)
_JAVA_CLASSES: Final[dict[type, str]] = {
    bool: "java.lang.Boolean", int: "java.lang.Long", float: "java.lang.Double", str: "java.lang.String", bytes: "[B",
    list: "java.util.ArrayList", dict: "java.util.HashMap", Decimal: "java.math.BigDecimal", dt.date: "java.util.Date",
    dt.time: "java.util.Date", dt.datetime: "java.util.Date", Struct: "org.apache.kafka.connect.data.Struct",
}  # fmt: skip
_BY_TYPE: Final[dict[Type, str]] = {
    Type.INT8: "java.lang.Byte",
    Type.INT16: "java.lang.Short",
    Type.INT32: "java.lang.Integer",
    Type.FLOAT32: "java.lang.Float",
}

Made = TypeVar("Made")


class BySchema(Generic[Made]):
    """What is made once for a schema and used for all its records, which mostly come one behind the other."""

    __slots__ = ("_last", "_last_made", "_made", "_make")

    def __init__(self, make: Callable[[Schema], Made]) -> None:
        self._make = make
        self._made: dict[Schema, Made] = {}
        self._last: Schema | None = None
        self._last_made: Made

    def __call__(self, schema: Schema) -> Made:
        if schema is self._last:
            return self._last_made
        found = self._made.get(schema)
        if found is None:
            found = self._make(schema)
            if len(self._made) >= MAX_SCHEMAS:
                del self._made[next(iter(self._made))]
            self._made[schema] = found
        self._last, self._last_made = schema, found
        return found

    def __len__(self) -> int:
        return len(self._made)


class OnKeyOrValue(Transformation):
    is_key: ClassVar[bool] = False

    def operand(self, record: ConnectRecord) -> tuple[Schema | None, Any]:
        if self.is_key:
            return record.key_schema, record.key
        return record.value_schema, record.value

    def made(self, record: ConnectRecord, schema: Schema | None, value: Any, **more: Any) -> ConnectRecord:
        if self.is_key:
            return record.replaced(key_schema=schema, key=value, **more)
        return record.replaced(value_schema=schema, value=value, **more)


class Copier:
    """The values of a struct, to be put into another one: a null gets its default, if that is wanted, and one that remains in
    a required field is refused, as Java's `Struct.put` does."""

    __slots__ = ("_defaults", "_required")

    def __init__(self, schema: Schema, *, with_defaults: bool) -> None:
        self._defaults = tuple(
            (field.index, field.schema.default)
            for field in schema.fields
            if with_defaults and field.schema.default is not None
        )
        self._required = tuple(
            (field.index, field)
            for field in schema.fields
            if not field.schema.is_optional and (field.schema.default is None or not with_defaults)
        )

    def __call__(self, value: Struct) -> list[Any]:
        values = value.values.copy()
        for index, default in self._defaults:
            if values[index] is None:
                values[index] = default
        for index, field in self._required:
            if values[index] is None:
                raise null_refused(field.name, field.schema)
        return values


def null_refused(name: str, schema: Schema) -> DataError:
    return DataError(
        f'Invalid value: null used for required field: "{name}", schema type: {schema.type.name}'
    )


def require_map(value: Any, purpose: str) -> dict[Any, Any]:
    if not isinstance(value, dict):
        raise DataError(
            f"Only Map objects supported in absence of schema for [{purpose}], found: {java_class(value)}"
        )
    return value


def require_struct(value: Any, purpose: str) -> Struct:
    if not isinstance(value, Struct):
        raise DataError(f"Only Struct objects supported for [{purpose}], found: {java_class(value)}")
    return value


def java_class(value: Any, schema: Schema | None = None) -> str:
    """What Kafka's messages call the type of a value."""
    if value is None:
        return "null"
    if schema is not None and schema.type in _BY_TYPE and isinstance(value, (int, float)):
        return _BY_TYPE[schema.type]
    return _JAVA_CLASSES.get(type(value), type(value).__qualname__)


def with_basics(source: Schema, **changes: Any) -> Schema:
    """A schema with the name, version, doc and parameters of another one. Required and without a default, unless `changes` say
    so: most of Kafka's transforms lose both."""
    kept: dict[str, Any] = {
        "type": source.type,
        "name": source.name,
        "version": source.version,
        "doc": source.doc,
        "parameters": source.parameters,
    }
    return Schema(**(kept | changes))


def fields_of(schema: Schema) -> list[tuple[str, Schema]]:
    return [(field.name, field.schema) for field in schema.fields]


def with_struct_default(schema: Schema, values: list[Any]) -> Schema:
    """A default that is a struct of this schema can only be made after it."""
    schema.default = Struct.trusted(schema, values)
    return schema
