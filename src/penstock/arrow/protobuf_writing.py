"""A column of structs → Protobuf's messages, one by one with Google's library; and the text of a schema for a column."""

from __future__ import annotations

import datetime as dt
from typing import Any, Final

import pyarrow as pa
from google.protobuf import message_factory
from google.protobuf.descriptor import Descriptor, FieldDescriptor

_TIMES: Final = ("google.protobuf.Timestamp", "google.protobuf.Duration")
_WRAPPERS: Final = "google.protobuf."
_NAMES: Final = {
    pa.bool_(): "bool", pa.int8(): "int32", pa.int16(): "int32", pa.int32(): "int32", pa.int64(): "int64",
    pa.float32(): "float", pa.float64(): "double", pa.string(): "string", pa.large_string(): "string",
    pa.binary(): "bytes", pa.large_binary(): "bytes", pa.decimal128(20, 0): "uint64",
}  # fmt: skip


class NotWritable(ValueError):
    """A column or a row does not fit the message; the message says where and why."""


class ProtobufWriter:
    """Of one message and one type of columns. NotWritable where these do not fit."""

    def __init__(self, descriptor: Descriptor, kind: pa.DataType, frame: bytes) -> None:
        self._new = message_factory.GetMessageClass(descriptor)
        self._frame = frame
        _check(descriptor, kind, "")

    def write(self, column: pa.Array) -> pa.BinaryArray:
        written: list[bytes | None] = []
        for row, value in enumerate(column.to_pylist()):
            if value is None:
                written.append(None)
                continue
            message = self._new()
            try:
                _fill(message, value)
                written.append(self._frame + message.SerializeToString())
            except (TypeError, ValueError, KeyError, OverflowError) as error:
                raise NotWritable(f"row {row}: {' '.join(str(error).split())}") from None
        return pa.array(written, pa.binary())


def _check(descriptor: Descriptor, kind: pa.DataType, path: str) -> None:
    if not pa.types.is_struct(kind):
        raise NotWritable(
            f"{path or 'the column'}: {kind} is not written as the message {descriptor.full_name}"
        )
    fields = descriptor.fields_by_name
    for each in kind:
        field = fields.get(each.name)
        if field is None:
            raise NotWritable(f"{path}/{each.name}: the message {descriptor.full_name} has no such field")
        own = each.type
        if _is_repeated(field) != (pa.types.is_list(own) or pa.types.is_map(own)):
            raise NotWritable(f"{path}/{each.name}: {own} is not written as {_shown(field)}")
        if pa.types.is_list(own):
            own = own.value_type
        if pa.types.is_struct(own) and field.message_type is not None:
            _check(field.message_type, own, f"{path}/{each.name}")


def _is_repeated(field: Any) -> bool:
    said = getattr(field, "is_repeated", None)
    return bool(field.label == FieldDescriptor.LABEL_REPEATED if said is None else said)


def _shown(field: FieldDescriptor) -> str:
    return f"the {'repeated' if _is_repeated(field) else 'single'} field {field.full_name}"


def _fill(message: Any, value: dict[str, Any]) -> None:
    """Null is not set."""
    fields = message.DESCRIPTOR.fields_by_name
    for name, one in value.items():
        if one is None:
            continue
        field, target = fields[name], getattr(message, name)
        if field.message_type is None:
            if isinstance(one, list):
                target.extend(_scalar(field, each) for each in one)
            else:
                setattr(message, name, _scalar(field, one))
        elif field.message_type.GetOptions().map_entry:
            of_value = field.message_type.fields_by_name["value"]
            for key, each in one:
                if of_value.message_type is None:
                    target[key] = _scalar(of_value, each)
                else:
                    _set_message(target[key], each)
        elif _is_repeated(field):
            for each in one:
                _set_message(target.add(), each)
        else:
            target.SetInParent()
            _set_message(target, one)


def _set_message(target: Any, value: Any) -> None:
    name = target.DESCRIPTOR.full_name
    if value is None:
        raise ValueError(f"{name} is null where a message must be")
    if isinstance(value, dt.datetime):
        target.FromDatetime(value)
    elif isinstance(value, dt.timedelta):
        target.FromTimedelta(value)
    elif isinstance(value, dict):
        _fill(target, value)
    elif isinstance(value, bytes):
        target.ParseFromString(value)
    else:
        target.value = _scalar(target.DESCRIPTOR.fields_by_name["value"], value)


def _scalar(field: FieldDescriptor, value: Any) -> Any:
    if field.enum_type is not None and isinstance(value, str):
        known = field.enum_type.values_by_name.get(value)
        if known is None:
            raise ValueError(f"{field.full_name} has no value {value}")
        return known.number
    if field.cpp_type in (FieldDescriptor.CPPTYPE_UINT64, FieldDescriptor.CPPTYPE_INT64):
        return int(value)
    return value


def proto_text_of(kind: pa.DataType, name: str) -> str:
    """NotWritable where Protobuf has no form for a column."""
    if not pa.types.is_struct(kind):
        raise NotWritable(f"Protobuf's values are messages, which {kind} is not")
    body = _Body()
    lines = body.message(kind, name[:1].upper() + name[1:], "")
    imports = [f'import "google/protobuf/{each}.proto";' for each in sorted(body.imports)]
    return "\n".join(['syntax = "proto3";', *imports, *lines, ""])


class _Body:
    def __init__(self) -> None:
        self.imports: set[str] = set()

    def message(self, kind: pa.DataType, name: str, indent: str) -> list[str]:
        nested: list[str] = []
        fields = []
        inner = f"{indent}  "
        for number, each in enumerate(kind, 1):
            if not (each.name.isidentifier() and each.name.isascii()):
                raise NotWritable(f"'{each.name}' is no name in Protobuf: letters, digits and '_'")
            own, label = each.type, "optional "
            if pa.types.is_list(own):
                own, label = own.value_type, "repeated "
            made = f"{each.name[:1].upper()}{each.name[1:]}Message"
            if pa.types.is_map(own):
                item = own.item_type
                if own.key_type not in (pa.string(), pa.int32(), pa.int64(), pa.bool_()):
                    raise NotWritable(f"{each.name}: a map of Protobuf has no keys of {own.key_type}")
                said, label = f"map<{_NAMES[own.key_type]}, {self._name(item, made)}>", ""
                own = item
            else:
                said = self._name(own, made)
            if pa.types.is_struct(own):
                nested += self.message(own, made, inner)
            fields.append(f"{inner}{label}{said} {each.name} = {number};")
        return [f"{indent}message {name} {{", *fields, *nested, f"{indent}}}"]

    def _name(self, kind: pa.DataType, made: str) -> str:
        if pa.types.is_struct(kind):
            return made
        for unit, is_one in (
            ("timestamp", pa.types.is_timestamp(kind)),
            ("duration", pa.types.is_duration(kind)),
        ):
            if is_one:
                self.imports.add(unit)
                return f"google.protobuf.{unit.capitalize()}"
        found = _NAMES.get(kind)
        if found is None:
            raise NotWritable(f"Protobuf has no type for {kind}")
        return found
