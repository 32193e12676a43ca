"""Rows from and to Avro's bytes, by the schema that a record names.

What fastavro reads with the writer's schema becomes a row by functions that are made once for a schema and the columns. A type
that does not become the column's type makes every record of that schema a bad one.
"""

from __future__ import annotations

import io
import struct as layouts
from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import Any, Final

import fastavro
from fastavro.read import SchemaResolutionError

from penstock.schemas.avro.decoding import Reading
from penstock.schemas.avro.fast_form import for_values
from penstock.schemas.avro.nodes import Array, Enum, Field, Map, Node, Record, Union
from penstock.schemas.avro.schema import AvroSchema
from penstock.schemas.model import InvalidValue, Schema
from penstock.streams.formats import avro_schemas
from penstock.streams.formats.failures import BadRecord
from penstock.streams.formats.values import WIDE, fitted, text_of, unscaled_bytes
from penstock.streams.plan.schema import Column
from penstock.streams.plan.types import Kind, SqlType, struct

Convert = Callable[[Any], Any]
_UNREADABLE: Final = (
    ArithmeticError, AttributeError, EOFError, LookupError, SchemaResolutionError, TypeError, ValueError, layouts.error,
)  # fmt: skip
_ACCEPTED: Final = {
    Kind.BOOLEAN: {"boolean"},
    Kind.INTEGER: {"int"},
    Kind.DATE: {"int"},
    Kind.TIME: {"int"},
    Kind.BIGINT: {"int", "long"},
    Kind.TIMESTAMP: {"int", "long"},
    Kind.DOUBLE: {"float", "double"},
    Kind.STRING: {"string", "enum", "int", "long", "float", "double", "boolean"},
    Kind.BYTES: {"bytes", "fixed"},
    Kind.DECIMAL: {"bytes", "fixed"},
}


def avro_reader(
    schema: Schema, columns: Sequence[Column], *, is_wrapped: bool
) -> Callable[[memoryview], Any]:
    """Of rows written with this schema. BadRecord when it does not fit the columns, and for each record that cannot be read."""
    assert isinstance(schema, AvroSchema)
    root = schema.root
    form = for_values(root)
    if is_wrapped:
        row = struct(*((column.name, column.type) for column in columns))
        convert = _reading(root, row, "")
        names = [column.name for column in columns]

        def to_row(value: Any) -> tuple[Any, ...] | None:
            if value is None:
                return None
            found = convert(value)
            return tuple([found[name] for name in names])
    else:
        convert_one = _reading(root, columns[0].type, "")

        def to_row(value: Any) -> tuple[Any, ...] | None:
            return (None if value is None else convert_one(value),)

    def read(data: memoryview) -> Any:
        try:
            if form is None:
                return to_row(Reading(bytes(data), is_plain=False).value(root))
            return to_row(fastavro.schemaless_reader(io.BytesIO(data), form, None))
        except BadRecord:
            raise
        except (InvalidValue, *_UNREADABLE) as error:
            raise BadRecord(f"the schema does not read it: {str(error) or 'it ends too early'}") from None

    return read


def _reading(node: Node, type_: SqlType, path: str) -> Convert:
    """Of values that are not None. BadRecord."""
    if isinstance(node, Union):
        return _reading_union(node, type_, path)
    if type_.kind == Kind.STRUCT and isinstance(node, Record):
        return _reading_struct(node, type_, path)
    if type_.kind == Kind.MAP and type_.element is not None:
        if isinstance(node, Map):
            convert = _optional(_reading(node.values, type_.element, f"{path}->MAP_VAL"))
            return lambda value: {key: convert(each) for key, each in value.items()}
        if isinstance(node, Array) and (entry := avro_schemas.entries_of(node)) is not None:
            convert_value = _optional(_reading(entry.fields["value"].type, type_.element, f"{path}->MAP_VAL"))
            return lambda value: {each["key"]: convert_value(each["value"]) for each in value}
    if type_.kind == Kind.ARRAY and isinstance(node, Array) and type_.element is not None:
        convert_item = _optional(_reading(node.items, type_.element, f"{path}->ARRAY"))
        return lambda value: [convert_item(each) for each in value]
    if node.type not in _ACCEPTED.get(type_.kind, ()):
        raise BadRecord(f"Cannot deserialize type {node.type} as type {type_} for path: {path}")
    return _reading_scalar(node, type_, path)


def _reading_scalar(node: Node, type_: SqlType, path: str) -> Convert:
    if type_.kind == Kind.DECIMAL:
        if not avro_schemas.is_decimal(node):
            raise BadRecord(f"Cannot deserialize type {node.type} as type {type_} for path: {path}")
        scale = int(node.props.get("scale", 0))
        return lambda value: fitted(
            Decimal(int.from_bytes(_raw(value), "big", signed=True)).scaleb(-scale, WIDE), type_
        )
    if type_.kind == Kind.BYTES:
        return _raw
    if type_.kind == Kind.STRING and node.type not in ("string", "enum"):
        return text_of
    if type_.kind == Kind.DOUBLE:
        return float
    return _as_it_is


def _reading_struct(node: Record, type_: SqlType, path: str) -> Convert:
    wanted = dict(type_.fields)
    steps: list[tuple[str, str, Convert]] = []
    for name, each in node.fields.items():
        own = name if name in wanted else name.upper()
        if own in wanted:
            steps.append((own, name, _optional(_reading(each.type, wanted[own], f"{path}->{own}"))))
    nothing = dict.fromkeys(wanted)

    def convert(value: Any) -> dict[str, Any]:
        row = nothing.copy()
        for own, name, convert_field in steps:
            row[own] = convert_field(value[name])
        return row

    return convert


def _reading_union(node: Union, type_: SqlType, path: str) -> Convert:
    branches = [branch for branch in node.branches if branch.type != "null"]
    if len(branches) == 1:
        return _reading(branches[0], type_, path)
    if type_.kind != Kind.STRUCT:
        raise BadRecord(f"Cannot deserialize type struct as type {type_} for path: {path}")
    wanted = dict(type_.fields)
    found: dict[str, tuple[str, Convert]] = {}
    for branch in branches:
        name = avro_schemas.member_name(branch)
        own = name if name in wanted else name.upper()
        if own in wanted:
            found[branch.full_name] = (own, _reading(branch, wanted[own], f"{path}->{own}"))
    nothing = dict.fromkeys(wanted)

    def convert(value: Any) -> dict[str, Any]:
        [(branch, inner)] = value.items()
        row = nothing.copy()
        if branch in found:
            own, convert_branch = found[branch]
            row[own] = convert_branch(inner)
        return row

    return convert


def _optional(convert: Convert) -> Convert:
    if convert is _as_it_is:
        return convert
    return lambda value: None if value is None else convert(value)


def _as_it_is(value: Any) -> Any:
    return value


def _raw(value: Any) -> bytes:
    return value.encode("latin-1") if isinstance(value, str) else bytes(value)


def avro_writer(schema: Schema, columns: Sequence[Column], *, is_wrapped: bool) -> Callable[[Any], bytes]:
    """Of rows, in this schema. BadRecord when it has no place for a column or wants what the columns do not have."""
    assert isinstance(schema, AvroSchema)
    root = schema.root
    form = for_values(root)
    if form is None:
        raise BadRecord("the schema contains itself, or names that fastavro does not take")
    if is_wrapped:
        for column in columns:
            if isinstance(root, Record) and column.name.replace(".", "_") not in root.fields:
                raise BadRecord(f"Schema from Schema Registry misses field with name: {column.name}")
        convert = _writing(root, struct(*((column.name, column.type) for column in columns)))
        names = [column.name for column in columns]
    else:
        convert = _writing(root, columns[0].type)
        names = []

    def write(row: Any) -> bytes:
        value = dict(zip(names, row, strict=True)) if is_wrapped else row[0]
        out = io.BytesIO()
        try:
            fastavro.schemaless_writer(out, form, convert(value))
        except (*_UNREADABLE, OverflowError) as error:
            raise BadRecord(f"the schema does not carry it: {error}") from None
        return out.getvalue()

    return write


def _writing(node: Node, type_: SqlType) -> Convert:
    """BadRecord."""
    if isinstance(node, Union):
        branches = [branch for branch in node.branches if branch.type != "null"]
        if len(branches) == 1:
            return _optional(_writing(branches[0], type_))
        raise BadRecord("a union of several types is not written")
    if type_.kind == Kind.STRUCT and isinstance(node, Record):
        return _writing_struct(node, type_)
    if type_.kind == Kind.MAP and type_.element is not None:
        if isinstance(node, Map):
            convert = _writing(node.values, type_.element)
            return lambda value: {key: convert(each) for key, each in value.items()}
        if isinstance(node, Array) and (entry := avro_schemas.entries_of(node)) is not None:
            convert_value = _writing(entry.fields["value"].type, type_.element)
            return lambda value: [{"key": key, "value": convert_value(each)} for key, each in value.items()]
    if type_.kind == Kind.ARRAY and isinstance(node, Array) and type_.element is not None:
        convert_item = _writing(node.items, type_.element)
        return lambda value: [convert_item(each) for each in value]
    if isinstance(node, Enum) and type_.kind == Kind.STRING:
        return _as_it_is
    if node.type not in _ACCEPTED.get(type_.kind, ()) and not (
        node.type == "long" and type_.kind in (Kind.INTEGER, Kind.DATE, Kind.TIME)
    ):
        raise BadRecord(f"{type_} is not written as Avro's {node.type}")
    if type_.kind == Kind.DECIMAL:
        if not avro_schemas.is_decimal(node):
            raise BadRecord(f"{type_} is not written as Avro's {node.type}")
        scale = int(node.props.get("scale", 0))
        return lambda value: unscaled_bytes(value, scale)
    if type_.kind == Kind.STRING and node.type not in ("string", "enum"):
        raise BadRecord(f"{type_} is not written as Avro's {node.type}")
    return _as_it_is


def _writing_struct(node: Record, type_: SqlType) -> Convert:
    """A field of the schema that is NULL, or that the columns do not have, is its default, as Connect takes it."""
    given = {name.replace(".", "_"): (name, each) for name, each in type_.fields}
    steps: list[tuple[str, str, Convert, Any]] = []
    defaults: dict[str, Any] = {}
    for name, field in node.fields.items():
        default = _default(field)
        if name in given:
            own, each = given[name]
            steps.append((name, own, _optional(_writing(field.type, each)), default))
        elif field.has_default or _may_be_null(field.type):
            defaults[name] = default
        else:
            raise BadRecord(
                f"Missing default value for required Avro field: [{name}]. This field appears in Avro schema in Schema Registry"
            )

    def convert(value: Any) -> dict[str, Any]:
        made = defaults.copy()
        for name, own, convert_field, default in steps:
            inner = value[own]
            made[name] = default if inner is None else convert_field(inner)
        return made

    return convert


def _may_be_null(node: Node) -> bool:
    return isinstance(node, Union) and any(branch.type == "null" for branch in node.branches)


def _default(field: Field) -> Any:
    if not field.has_default or field.default is None:
        return None
    node = field.type.branches[0] if isinstance(field.type, Union) else field.type
    if node.type in ("bytes", "fixed") and isinstance(field.default, str):
        return field.default.encode("latin-1")
    return field.default
