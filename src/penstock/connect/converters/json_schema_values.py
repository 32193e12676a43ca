"""Connect's values as JSON with a schema in the registry. The JSON is Kafka's (`json_writing`, `json_reading`) but for a map
whose keys are no text, an array of objects {key, value} here, and a union, which is the value of the field that is set."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from penstock.connect.converters.json_reading import MISSING, Read, Rounded, loads, loads_exactly, reader_of
from penstock.connect.converters.json_schema_schemas import (
    JsonSchemaForm,
    from_json_schema,
    is_string_map,
    is_union,
)
from penstock.connect.converters.json_writing import Write, dumped, writer_of
from penstock.connect.data.schema import Schema, Type
from penstock.connect.data.structs import Struct
from penstock.connect.errors import DataError
from penstock.schemas.json_schema.parsing import JsonSchema
from penstock.schemas.json_schema.values import JsonCodec
from penstock.schemas.model import Referred

Convert = Callable[[Any], Any]

__all__ = ["JsonSchemaForm", "json_schema_reader", "json_schema_writer"]


def json_schema_writer(
    schema: Schema, written: JsonSchema, form: JsonSchemaForm, *, validates: bool
) -> Callable[[Any], bytes]:
    write = _writer(schema, form)
    if not validates:
        return lambda value: dumped(write(value))
    codec = JsonCodec(written)
    return lambda value: codec.encode(json.loads(dumped(write(value))))


def json_schema_reader(
    written: JsonSchema, referred: Mapping[str, Referred], form: JsonSchemaForm, *, validates: bool
) -> Callable[[memoryview], tuple[Schema | None, Any]]:
    texts = {name: json.loads(each.text) for name, each in referred.items()}
    schema = from_json_schema(json.loads(written.text), texts, form)
    read = _reader(schema, form)
    codec = JsonCodec(written) if validates else None

    def convert(data: memoryview) -> tuple[Schema | None, Any]:
        if codec is not None:
            codec.decode(data, validate=True)
        value = loads(data)
        try:
            return schema, None if value is MISSING else read(value)
        except Rounded:
            return schema, read(loads_exactly(data))

    return convert


def _is_special(schema: Schema) -> bool:
    """Whether there is a union, or a map without text for keys, in it."""
    if is_union(schema) or (schema.type is Type.MAP and not is_string_map(schema)):
        return True
    inner = [field.schema for field in schema.fields] + [each for each in (schema.keys, schema.items) if each]
    return any(map(_is_special, inner))


def _writer(schema: Schema, form: JsonSchemaForm) -> Write:
    if not _is_special(schema):
        return writer_of(schema, form.form)
    write = _special_writer(schema, form)

    def convert(value: Any) -> Any:
        if value is None and schema.default is not None and not form.keeps_null:
            return write(schema.default)
        if value is None and not schema.is_optional:
            raise DataError(
                "Conversion error: null value for field that is required and has no default value"
            )
        return None if value is None else write(value)

    return convert


def _special_writer(schema: Schema, form: JsonSchemaForm) -> Write:
    writers = [_writer(field.schema, form) for field in schema.fields]
    if is_union(schema):
        return lambda value: _of_union(value, writers)
    if schema.type is Type.STRUCT:
        names = [field.name for field in schema.fields]

        def write_struct(value: Any) -> Any:
            if not isinstance(value, Struct) or value.schema != schema:
                raise DataError("Mismatching schema.")
            return {name: write(each) for name, write, each in zip(names, writers, value.values, strict=True)}

        return write_struct
    assert schema.items is not None
    write_item = _writer(schema.items, form)
    if schema.type is Type.ARRAY:
        return lambda value: [write_item(each) for each in _of((list, tuple), value)]
    assert schema.keys is not None
    write_key = _writer(schema.keys, form)
    if is_string_map(schema):
        return lambda value: {key: write_item(each) for key, each in _of(Mapping, value).items()}
    return lambda value: [
        {"key": write_key(key), "value": write_item(each)} for key, each in _of(Mapping, value).items()
    ]


def _of(kinds: Any, value: Any) -> Any:
    if not isinstance(value, kinds):
        raise DataError(f"Invalid type: {type(value).__name__}")
    return value


def _of_union(value: Any, writers: list[Write]) -> Any:
    for each, write in zip(_of(Struct, value).values, writers, strict=True):
        if each is not None:
            return write(each)
    raise DataError("a union has none of its fields set")


def _reader(schema: Schema, form: JsonSchemaForm) -> Read:
    if not _is_special(schema):
        return reader_of(schema, replaces_null=not form.keeps_null)
    read = _special_reader(schema, form)

    def convert(value: Any) -> Any:
        if value is None and schema.default is not None and not form.keeps_null:
            return schema.default
        if value is None and not schema.is_optional:
            raise DataError(f"Invalid null value for required {schema.type.name} field")
        return None if value is None else read(value)

    return convert


def _special_reader(schema: Schema, form: JsonSchemaForm) -> Read:
    readers = [_reader(field.schema, form) for field in schema.fields]
    if is_union(schema):
        return lambda value: _to_union(schema, readers, value)
    if schema.type is Type.STRUCT:
        names = [field.name for field in schema.fields]
        return lambda value: Struct.trusted(
            schema, [read(_of(dict, value).get(name)) for name, read in zip(names, readers, strict=True)]
        )
    assert schema.items is not None
    read_item = _reader(schema.items, form)
    if schema.type is Type.ARRAY:
        return lambda value: [read_item(each) for each in _of(list, value)]
    assert schema.keys is not None
    read_key = _reader(schema.keys, form)
    if is_string_map(schema):
        return lambda value: {key: read_item(each) for key, each in _of(dict, value).items()}
    return lambda value: {
        read_key(_of(dict, each).get("key")): read_item(each.get("value")) for each in _of(list, value)
    }


_KINDS: Mapping[Type, Callable[[Any], bool]] = {
    Type.BOOLEAN: lambda value: isinstance(value, bool),
    Type.STRING: lambda value: isinstance(value, str),
    Type.BYTES: lambda value: isinstance(value, str),
    Type.ARRAY: lambda value: isinstance(value, list),
    Type.MAP: lambda value: isinstance(value, (dict, list)),
    Type.STRUCT: lambda value: isinstance(value, dict),
    Type.FLOAT32: lambda value: isinstance(value, (int, float)) and not isinstance(value, bool),
    Type.FLOAT64: lambda value: isinstance(value, (int, float)) and not isinstance(value, bool),
}


def _to_union(schema: Schema, readers: list[Read], value: Any) -> Any:
    """The first alternative that reads it; of objects, the one with the most of its properties."""
    best: tuple[int, int, Any] | None = None
    for field, read in zip(schema.fields, readers, strict=True):
        kind = _KINDS.get(
            field.schema.type, lambda each: isinstance(each, int) and not isinstance(each, bool)
        )
        if not kind(value):
            continue
        try:
            found = read(value)
        except DataError:
            continue
        names = {each.name for each in field.schema.fields}
        score = len(names & value.keys()) if isinstance(value, dict) else 0
        if best is None or score > best[0]:
            best = (score, field.index, found)
    if best is None:
        raise DataError("the value fits none of the schema's alternatives")
    values: list[Any] = [None] * len(schema.fields)
    values[best[1]] = best[2]
    return Struct.trusted(schema, values)
