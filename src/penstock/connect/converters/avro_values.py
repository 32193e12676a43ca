"""Connect's values from and to Avro's bytes, by functions that are made once for a schema. fastavro does the bytes where it may
(`penstock.schemas.avro.fast_form` says where), else our own encoder and reader."""

from __future__ import annotations

import io
import struct
from collections.abc import Callable, Mapping
from typing import Any, Final

import fastavro
from fastavro.read import SchemaResolutionError

from penstock.connect.converters.avro_schemas import AvroForm, is_string_map, is_union, scrubbed
from penstock.connect.converters.avro_to_connect import branch_name, is_entry
from penstock.connect.data.logical import LOGICAL
from penstock.connect.data.schema import INTEGER_BITS, Schema, Type
from penstock.connect.data.structs import Struct
from penstock.connect.errors import DataError
from penstock.schemas.avro.decoding import Reading
from penstock.schemas.avro.encoding import Encoder
from penstock.schemas.avro.fast_form import for_values
from penstock.schemas.avro.nodes import Array, Enum, Map, Node, Record, Union
from penstock.schemas.avro.schema import AvroSchema
from penstock.schemas.model import InvalidValue

Convert = Callable[[Any], Any]
_UNREADABLE: Final = (
    ArithmeticError, AttributeError, EOFError, LookupError, SchemaResolutionError, TypeError, ValueError, struct.error,
)  # fmt: skip
_WORDS: Final = {"NaN": float("nan"), "Infinity": float("inf"), "-Infinity": float("-inf")}


def avro_writer(
    schema: Schema, avro: AvroSchema, form: AvroForm, *, is_own: bool, keeps_null: bool
) -> Callable[[Any], bytes]:
    """`is_own`: the Avro schema was made of this schema. Another one may leave fields out, or have more with defaults.
    `keeps_null`: a default does not replace null."""
    convert = _Writing(form, keeps_null).optional(schema, avro.root)
    fast = for_values(avro.root) if is_own else None
    if fast is None:
        encoder = Encoder(avro.root)

        def write_slowly(value: Any) -> bytes:
            try:
                return encoder.encode(convert(value))
            except InvalidValue as error:
                raise DataError(str(error)) from None

        return write_slowly

    def write(value: Any) -> bytes:
        converted = convert(value)
        out = io.BytesIO()
        try:
            fastavro.schemaless_writer(out, fast, converted)
        except (*_UNREADABLE, OverflowError) as error:
            raise DataError(f"the schema does not carry it: {error}") from None
        return out.getvalue()

    return write


class _Writing:
    def __init__(self, form: AvroForm, keeps_null: bool) -> None:
        self._form = form
        self._keeps_null = keeps_null

    def optional(self, schema: Schema, node: Node) -> Convert:
        has_null = isinstance(node, Union) and any(branch.type == "null" for branch in node.branches)
        convert = self._present(schema, _single(node))
        default = None if self._keeps_null and schema.is_optional else schema.default
        if default is not None:
            written = convert(default)
            return lambda value: written if value is None else convert(value)
        if schema.is_optional and has_null:
            return lambda value: None if value is None else convert(value)

        def convert_required(value: Any) -> Any:
            if value is None:
                raise DataError("Invalid value: null used for required field")
            return convert(value)

        return convert_required

    def _present(self, schema: Schema, node: Node) -> Convert:
        logical = LOGICAL.get(schema.name or "")
        if logical is not None and schema.type is logical.base:
            return lambda value: logical.to_base(schema, _of(logical.python, schema, value))
        if is_union(schema):
            return self._union(schema, node)
        if isinstance(node, Union):
            raise DataError(f"the Avro schema has several types where the record has {schema.type.name}")
        if schema.type is Type.STRUCT:
            return self._struct(schema, node)
        if schema.type is Type.ARRAY and isinstance(node, Array) and schema.items is not None:
            convert = self.optional(schema.items, node.items)
            return lambda value: [convert(each) for each in _of((list, tuple), schema, value)]
        if schema.type is Type.MAP:
            return self._map(schema, node)
        if schema.type in INTEGER_BITS:
            return _integer(schema)
        return _SCALARS.get(schema.type) or _unfit(schema, node)

    def _map(self, schema: Schema, node: Node) -> Convert:
        assert schema.items is not None
        assert schema.keys is not None
        if is_string_map(schema, self._form) and isinstance(node, Map):
            convert = self.optional(schema.items, node.values)
            return lambda value: {key: convert(each) for key, each in _of(Mapping, schema, value).items()}
        if not isinstance(node, Array) or not is_entry(node.items):
            return _unfit(schema, node)
        entry = node.items
        assert isinstance(entry, Record)
        convert_key = self.optional(schema.keys, entry.fields["key"].type)
        convert_item = self.optional(schema.items, entry.fields["value"].type)
        return lambda value: [
            {"key": convert_key(key), "value": convert_item(each)}
            for key, each in _of(Mapping, schema, value).items()
        ]

    def _struct(self, schema: Schema, node: Node) -> Convert:
        if not isinstance(node, Record):
            return _unfit(schema, node)
        steps = []
        for field in schema.fields:
            name = scrubbed(field.name) if self._form.scrubs_names else field.name
            if name in node.fields:
                steps.append((name, field.index, self.optional(field.schema, node.fields[name].type)))

        def convert(value: Any) -> Any:
            if not isinstance(value, Struct) or (value.schema is not schema and value.schema != schema):
                raise DataError("Mismatching schema.")
            values = value.values
            return {name: step(values[index]) for name, index, step in steps}

        return convert

    def _union(self, schema: Schema, node: Node) -> Convert:
        branches = [branch for branch in _branches(node) if branch.type != "null"]
        steps = [
            (branch.full_name, self._present(field.schema, branch))
            for branch, field in zip(branches, schema.fields, strict=True)
        ]
        is_plain = len(branches) == 1

        def convert(value: Any) -> Any:
            for given, (name, step) in zip(value.values, steps, strict=True):
                if given is not None:
                    return step(given) if is_plain else {name: step(given)}
            raise DataError("a union has none of its fields set")

        return convert


def _branches(node: Node) -> list[Node]:
    return node.branches if isinstance(node, Union) else [node]


def _single(node: Node) -> Node:
    """The type beside null, if there is one only."""
    others = [branch for branch in _branches(node) if branch.type != "null"]
    return others[0] if len(others) == 1 else node


def _unfit(schema: Schema, node: Node) -> Convert:
    raise DataError(f"the Avro schema has {node.type} where the record has {schema.type.name}")


def _of(kinds: Any, schema: Schema, value: Any) -> Any:
    if not isinstance(value, kinds):
        raise DataError(f"Invalid type for {schema.name or schema.type.name}: {type(value).__name__}")
    return value


def _integer(schema: Schema) -> Convert:
    bits = INTEGER_BITS[schema.type]
    low, high = -(1 << (bits - 1)), (1 << (bits - 1)) - 1

    def convert(value: Any) -> Any:
        if not isinstance(value, int) or isinstance(value, bool) or not low <= value <= high:
            raise DataError(f"Invalid type for {schema.type.name}: {value!r}")
        return value

    return convert


def _scalar(type_: Type, *kinds: type) -> Convert:
    def convert(value: Any) -> Any:
        if not isinstance(value, kinds) or (isinstance(value, bool) and type_ is not Type.BOOLEAN):
            raise DataError(f"Invalid type for {type_.name}: {type(value).__name__}")
        return value

    return convert


_SCALARS: Final[Mapping[Type, Convert]] = {
    Type.BOOLEAN: _scalar(Type.BOOLEAN, bool), Type.STRING: _scalar(Type.STRING, str),
    Type.FLOAT32: _scalar(Type.FLOAT32, float, int), Type.FLOAT64: _scalar(Type.FLOAT64, float, int),
    Type.BYTES: lambda value: bytes(_scalar(Type.BYTES, bytes, bytearray, memoryview)(value)),
}  # fmt: skip


def avro_reader(avro: AvroSchema, schema: Schema, form: AvroForm) -> Callable[[memoryview], Any]:
    """`schema` is `from_avro` of the other."""
    root = avro.root
    fast = for_values(root)
    convert = _reading(root, schema, form)

    def read(data: memoryview) -> Any:
        try:
            if fast is None:
                value = Reading(bytes(data), is_plain=False).value(root)
            else:
                value = fastavro.schemaless_reader(io.BytesIO(data), fast, None)
            return None if value is None else convert(value)
        except DataError:
            raise
        except (InvalidValue, *_UNREADABLE) as error:
            raise DataError(f"the schema does not read it: {str(error) or 'it ends too early'}") from None

    return read


def _as_it_is(value: Any) -> Any:
    return value


def _optional(convert: Convert) -> Convert:
    if convert is _as_it_is:
        return convert
    return lambda value: None if value is None else convert(value)


def _reading(node: Node, schema: Schema, form: AvroForm) -> Convert:
    if isinstance(node, Union):
        branches = [branch for branch in node.branches if branch.type != "null"]
        if len(branches) > 1:
            return _reading_union(branches, schema, form)
        has_name = len(node.branches) != 2  # a union of one type alone is plain as well
        inner = _reading(branches[0], schema, form)
        return inner if not has_name else _unwrapped(branches[0].full_name, inner)
    logical = LOGICAL.get(schema.name or "")
    if logical is not None and schema.type is logical.base:
        if schema.type is Type.BYTES:
            return lambda value: logical.from_base(schema, _raw(value))
        return lambda value: logical.from_base(schema, value)
    if isinstance(node, Record):
        return _reading_struct(node, schema, form)
    if isinstance(node, Map) and schema.items is not None:
        convert = _optional(_reading(node.values, schema.items, form))
        return lambda value: {key: convert(each) for key, each in value.items()}
    if isinstance(node, Array) and schema.items is not None:
        if schema.type is Type.MAP:
            return _reading_entries(node.items, schema, form)
        convert = _optional(_reading(node.items, schema.items, form))
        return _as_it_is if convert is _as_it_is else lambda value: [convert(each) for each in value]
    if node.type in ("bytes", "fixed"):
        return _raw
    if node.type in ("float", "double"):
        return lambda value: _WORDS[value] if isinstance(value, str) else value
    assert isinstance(node, (Enum, Node))
    return _as_it_is


def _unwrapped(name: str, convert: Convert) -> Convert:
    return lambda value: convert(value[name] if isinstance(value, dict) and list(value) == [name] else value)


def _raw(value: Any) -> bytes:
    return value.encode("latin-1") if isinstance(value, str) else bytes(value)


def _reading_struct(node: Record, schema: Schema, form: AvroForm) -> Convert:
    steps = [
        (name, _optional(_reading(field.type, schema.fields[index].schema, form)))
        for index, (name, field) in enumerate(node.fields.items())
    ]
    trusted = Struct.trusted
    return lambda value: trusted(schema, [step(value[name]) for name, step in steps])


def _reading_entries(entry: Node, schema: Schema, form: AvroForm) -> Convert:
    assert isinstance(entry, Record)
    assert schema.keys is not None
    assert schema.items is not None
    read_key = _optional(_reading(entry.fields["key"].type, schema.keys, form))
    read_item = _optional(_reading(entry.fields["value"].type, schema.items, form))
    return lambda value: {read_key(each["key"]): read_item(each["value"]) for each in value}


def _reading_union(branches: list[Node], schema: Schema, form: AvroForm) -> Convert:
    steps: dict[str, tuple[int, Convert]] = {}
    for branch in branches:
        field = schema.field(branch_name(branch, form))
        assert field is not None
        steps[branch.full_name] = (field.index, _reading(branch, field.schema, form))

    def convert(value: Any) -> Any:
        [(name, inner)] = value.items()
        index, step = steps[name]
        values: list[Any] = [None] * len(branches)
        values[index] = step(inner)
        return Struct.trusted(schema, values)

    return convert
