"""Connect's schemas as Protobuf's and back, by the rules of Confluent's converter.

    INT8            int32 [(confluent.field_meta) = {params: [{key: "connect.type", value: "int8"}]}]
    Decimal         confluent.type.Decimal; Date google.type.Date; Time google.type.TimeOfDay; Timestamp google.protobuf.Timestamp
    optional        a plain field, which is not set for null; `optional` or a wrapper message where the configuration says so
    struct          a message; inside of another it is defined there; without a name ConnectDefault1, ConnectDefault2, …
    map             map<…> where keys are text, whole numbers or booleans
    union           a struct io.confluent.connect.protobuf.Union.NAME: a oneof

The number of a field is its place, or what its parameter io.confluent.connect.protobuf.Tag says. Arrays in arrays or in maps
have no form in Protobuf. Parameters of schemas other than these are not kept.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from functools import cache
from typing import Any, Final, NamedTuple

from google.protobuf import message_factory
from google.protobuf.descriptor import Descriptor, FieldDescriptor, OneofDescriptor

from penstock.connect.data.logical import (
    DATE,
    DATE_NAME,
    DECIMAL_NAME,
    TIME,
    TIME_NAME,
    TIMESTAMP,
    TIMESTAMP_NAME,
    decimal,
    scale_of,
)
from penstock.connect.data.schema import Schema, Type
from penstock.connect.errors import DataError
from penstock.schemas.model import PROTOBUF
from penstock.schemas.parsing import parse

DEFAULT_NAME: Final = "ConnectDefault"
UNION: Final = "io.confluent.connect.protobuf.Union"
ENUM: Final = "io.confluent.connect.protobuf.Enum"
TAG: Final = "io.confluent.connect.protobuf.Tag"
MESSAGES: Final[Mapping[str, tuple[str, str]]] = {
    DECIMAL_NAME: ("confluent.type.Decimal", "confluent/type/decimal.proto"),
    DATE_NAME: ("google.type.Date", "google/type/date.proto"),
    TIME_NAME: ("google.type.TimeOfDay", "google/type/timeofday.proto"),
    TIMESTAMP_NAME: ("google.protobuf.Timestamp", "google/protobuf/timestamp.proto"),
}
LOGICAL_NAMES: Final = {message: name for name, (message, _) in MESSAGES.items()}
_META: Final = "confluent/meta.proto"
_WRAPPERS: Final = "google/protobuf/wrappers.proto"
_SCALARS: Final[Mapping[Type, str]] = {
    Type.INT8: "int32", Type.INT16: "int32", Type.INT32: "int32", Type.INT64: "int64", Type.FLOAT32: "float",
    Type.FLOAT64: "double", Type.BOOLEAN: "bool", Type.STRING: "string", Type.BYTES: "bytes",
}  # fmt: skip
_WRAPPED: Final = {
    "int32": "Int32Value", "int64": "Int64Value", "float": "FloatValue", "double": "DoubleValue", "bool": "BoolValue",
    "string": "StringValue", "bytes": "BytesValue",
}  # fmt: skip
_KEYS: Final = frozenset((Type.INT8, Type.INT16, Type.INT32, Type.INT64, Type.BOOLEAN, Type.STRING))
_PLAIN: Final = {
    FieldDescriptor.CPPTYPE_INT32: Type.INT32, FieldDescriptor.CPPTYPE_UINT32: Type.INT64,
    FieldDescriptor.CPPTYPE_INT64: Type.INT64, FieldDescriptor.CPPTYPE_UINT64: Type.INT64,
    FieldDescriptor.CPPTYPE_FLOAT: Type.FLOAT32, FieldDescriptor.CPPTYPE_DOUBLE: Type.FLOAT64,
    FieldDescriptor.CPPTYPE_BOOL: Type.BOOLEAN,
}  # fmt: skip
_BAD: Final = re.compile(r"[^A-Za-z0-9_]")


class ProtobufForm(NamedTuple):
    has_meta_data: bool = True
    uses_optional: bool = False
    uses_wrappers: bool = False
    numbers_unions: bool = True
    is_enhanced: bool = False
    scrubs_names: bool = False
    has_int_enums: bool = False


def is_union(schema: Schema) -> bool:
    return schema.type is Type.STRUCT and (schema.name or "").startswith(UNION)


def clean(name: str, form: ProtobufForm) -> str:
    if not form.scrubs_names:
        return name
    made = _BAD.sub("_", name)
    return made if made[:1].isalpha() else "x" + made


def to_protobuf(schema: Schema, form: ProtobufForm) -> str:
    """The text of the file. DataError."""
    if schema.type is not Type.STRUCT or is_union(schema):
        raise DataError(f"Unsupported root schema of type {schema.type.name}")
    try:
        return _Writing(form).file(schema)
    except RecursionError:
        raise DataError("the schema is nested too deeply") from None


class _Writing:
    def __init__(self, form: ProtobufForm) -> None:
        self._form = form
        self._imports: dict[str, None] = {}
        self._unnamed = 0

    def file(self, schema: Schema) -> str:
        space = (schema.name or "").rpartition(".")[0]
        package = ".".join(clean(part, self._form) for part in space.split(".")) if space else ""
        message = self._message(self._name(schema), schema)
        lines = ['syntax = "proto3";', *([f"package {package};"] if package else [])]
        lines += [f'import "{each}";' for each in self._imports]
        return "\n".join((*lines, message))

    def _name(self, schema: Schema) -> str:
        if schema.name:
            return clean(schema.name.rpartition(".")[2], self._form)
        self._unnamed += 1
        return f"{DEFAULT_NAME}{self._unnamed}"

    def _message(self, name: str, schema: Schema) -> str:
        lines = []
        if self._form.has_meta_data:
            params = {} if schema.version is None else {"connect.version": str(schema.version)}
            meta = self._meta(schema.doc, params)
            if meta:
                lines.append(f"option (confluent.message_meta) = {meta};")
        number, nested = 1, dict[str, Schema]()
        for field in schema.fields:
            if is_union(field.schema):
                members = []
                for inner in field.schema.fields:
                    line, number = self._field(inner.name, inner.schema, number, nested, is_member=True)
                    members.append(line)
                lines.append(
                    f"oneof {clean(_oneof_name(field.name, field.schema), self._form)} {{ {' '.join(members)} }}"
                )
                continue
            line, number = self._field(field.name, field.schema, number, nested)
            lines.append(line)
        types = [self._message(each, inner) for each, inner in nested.items()]
        return f"message {name} {{ {' '.join((*lines, *types))} }}"

    def _field(
        self, name: str, schema: Schema, number: int, nested: dict[str, Schema], *, is_member: bool = False
    ) -> tuple[str, int]:
        tag = schema.parameters.get(TAG, "")
        number = int(tag) if tag.isdigit() else number
        params: dict[str, str] = {}
        label = ""
        if schema.type is Type.MAP:
            type_ = self._map(schema, nested, params)
        elif schema.type is Type.ARRAY:
            if schema.items is None or schema.items.type in (Type.ARRAY, Type.MAP):
                raise DataError("Array cannot be nested")
            label, type_ = "repeated ", self._type(schema.items, nested, params)
        else:
            type_ = self._type(schema, nested, params)
            if schema.is_optional and not is_member and type_ in _WRAPPED:
                if self._form.uses_wrappers:
                    self._imports[_WRAPPERS] = None
                    type_ = f"google.protobuf.{_WRAPPED[type_]}"
                elif self._form.uses_optional:
                    label = "optional "
        meta = self._meta(schema.doc if schema.type is not Type.STRUCT else None, params)
        options = f" [(confluent.field_meta) = {meta}]" if meta and self._form.has_meta_data else ""
        return f"{label}{type_} {clean(name, self._form)} = {number}{options};", number + 1

    def _map(self, schema: Schema, nested: dict[str, Schema], params: dict[str, str]) -> str:
        keys, items = schema.keys, schema.items
        if keys is None or items is None or keys.type not in _KEYS or keys.name is not None:
            raise DataError("a map's keys are text, whole numbers or booleans in Protobuf")
        if items.type in (Type.ARRAY, Type.MAP):
            raise DataError("Map values cannot be arrays or maps in Protobuf")
        return f"map<{_SCALARS[keys.type]}, {self._type(items, nested, params)}>"

    def _type(self, schema: Schema, nested: dict[str, Schema], params: dict[str, str]) -> str:
        known = MESSAGES.get(schema.name or "")
        if known is not None:
            if schema.name == DECIMAL_NAME:
                params["scale"] = str(scale_of(schema))
            self._imports[known[1]] = None
            return known[0]
        if schema.type is Type.STRUCT:
            if is_union(schema):
                raise DataError("a union in an array or a map has no form in Protobuf")
            name = self._name(schema)
            if name in nested and nested[name].required() != schema.required():
                raise DataError(f"two schemas have the name {name}")
            nested[name] = schema
            return name
        if schema.type in (Type.INT8, Type.INT16):
            params["connect.type"] = str(schema.type)
        return _SCALARS[schema.type]

    def _meta(self, doc: str | None, params: Mapping[str, str]) -> str:
        if not self._form.has_meta_data or (doc is None and not params):
            return ""
        self._imports[_META] = None
        parts = [] if doc is None else [f"doc: {json.dumps(doc)}"]
        pairs = ", ".join(
            f"{{key: {json.dumps(key)}, value: {json.dumps(each)}}}" for key, each in params.items()
        )
        if pairs:
            parts.append(f"params: [{pairs}]")
        return f"{{{', '.join(parts)}}}"


def _oneof_name(field: str, schema: Schema) -> str:
    """The struct's name has it; what is configured may have put a number behind the field's."""
    said = (schema.name or "").removeprefix(UNION).lstrip(".")
    return said or field


class Meta(NamedTuple):
    doc: str | None
    params: Mapping[str, str]


@cache
def _holder() -> Any:
    """A message with `confluent.Meta` where options have it as an extension, which our pools do not resolve."""
    schema: Any = parse(
        PROTOBUF, f'syntax = "proto3"; import "{_META}"; message Holder {{ confluent.Meta meta = 1088; }}'
    )
    return message_factory.GetMessageClass(schema.message("Holder"))


def meta_of(descriptor: Any) -> Meta:
    found = _holder().FromString(descriptor.GetOptions().SerializeToString()).meta
    return Meta(found.doc or None, dict(found.params))


def from_protobuf(message: Descriptor, form: ProtobufForm) -> Schema:
    """DataError for a message that contains itself."""
    return _Reading(form).message(message)


def union_field(oneof: OneofDescriptor, form: ProtobufForm) -> str:
    return f"{oneof.name}_{oneof.index}" if form.numbers_unions else oneof.name


def real_oneof(field: Any) -> Any:
    """Of a field that stands in a oneof which somebody wrote; that of `optional` is the compiler's."""
    oneof = field.containing_oneof
    return None if oneof is None or (len(oneof.fields) == 1 and oneof.name.startswith("_")) else oneof


def is_map(field: Any) -> bool:
    return field.message_type is not None and bool(field.message_type.GetOptions().map_entry)


def is_wrapper(message: Any, form: ProtobufForm) -> bool:
    return form.uses_wrappers and message.full_name.removeprefix("google.protobuf.") in _WRAPPED.values()


class _Reading:
    def __init__(self, form: ProtobufForm) -> None:
        self._form = form
        self._inside: set[str] = set()

    def message(self, message: Any) -> Schema:
        if message.full_name in self._inside:
            raise DataError(f"the message {message.full_name} contains itself: Connect has no schema for it")
        self._inside.add(message.full_name)
        fields: list[tuple[str, Schema]] = []
        done: set[str] = set()
        for field in message.fields:
            oneof = real_oneof(field)
            if oneof is None:
                fields.append((field.name, self._field(field)))
            elif oneof.name not in done:
                done.add(oneof.name)
                members = [(each.name, self._field(each).optional()) for each in oneof.fields]
                union = Schema(Type.STRUCT, name=f"{UNION}.{oneof.name}", fields=members, is_optional=True)
                fields.append((union_field(oneof, self._form), union))
        self._inside.discard(message.full_name)
        made = Schema(
            Type.STRUCT, name=message.full_name if self._form.is_enhanced else message.name, fields=fields
        )
        if not self._form.has_meta_data:
            return made
        meta = meta_of(message)
        version = meta.params.get("connect.version", "")
        return made.with_(doc=meta.doc, version=int(version) if version.isdigit() else None)

    def _field(self, field: Any) -> Schema:
        meta = meta_of(field) if self._form.has_meta_data else Meta(None, {})
        if is_map(field):
            key, value = (field.message_type.fields_by_name[name] for name in ("key", "value"))
            made = Schema(Type.MAP, keys=self._type(key, _NO_META), items=self._type(value, meta))
        elif field.is_repeated:
            made = Schema(Type.ARRAY, items=self._type(field, meta))
        else:
            made = self._type(field, meta)
        parameters = {**made.parameters, TAG: str(field.number)}
        doc = meta.doc if meta.doc is not None else made.doc
        return made.with_(parameters=parameters, is_optional=self._is_optional(field), doc=doc)

    def _is_optional(self, field: Any) -> bool:
        if self._form.uses_optional:
            return bool(field.has_presence)
        if self._form.uses_wrappers:
            return field.message_type is not None and not is_map(field) and not field.is_repeated
        return True

    def _type(self, field: Any, meta: Meta) -> Schema:
        message = field.message_type
        if message is not None:
            if is_wrapper(message, self._form):
                return self._type(message.fields_by_name["value"], meta)
            return self._logical(message, meta) or self.message(message)
        if field.enum_type is not None:
            if self._form.has_int_enums:
                return Schema(Type.INT32)
            values = {f"{ENUM}.{each.name}": str(each.number) for each in field.enum_type.values}
            return Schema(Type.STRING, parameters={ENUM: field.enum_type.name, **values})
        if field.cpp_type == FieldDescriptor.CPPTYPE_STRING:
            return Schema(Type.BYTES if field.type == FieldDescriptor.TYPE_BYTES else Type.STRING)
        said = meta.params.get("connect.type")
        if said in (str(Type.INT8), str(Type.INT16)) and field.cpp_type == FieldDescriptor.CPPTYPE_INT32:
            return Schema(Type(said))
        return Schema(_PLAIN[field.cpp_type])

    def _logical(self, message: Any, meta: Meta) -> Schema | None:
        name = LOGICAL_NAMES.get(message.full_name)
        if name == DECIMAL_NAME:
            scale = meta.params.get("scale", "0")
            return decimal(int(scale) if scale.lstrip("-").isdigit() else 0)
        return next((each for each in (DATE, TIME, TIMESTAMP) if each.name == name), None)


_NO_META: Final = Meta(None, {})
