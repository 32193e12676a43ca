"""From a FileDescriptorProto, such as clients in Python register, to elements.

Names of types have a dot before them, and the entries of maps are written out with `map_entry`, as in Confluent's registry.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Any, Final

from google.protobuf import descriptor_pb2, message, text_format
from google.protobuf.descriptor_pb2 import DescriptorProto
from google.protobuf.descriptor_pb2 import FieldDescriptorProto as _Proto

from penstock.schemas.model import InvalidSchema
from penstock.schemas.protobuf.describing import SCALARS
from penstock.schemas.protobuf.elements import (
    PROTO2,
    PROTO3,
    Constant,
    Enum,
    Extend,
    Extensions,
    Field,
    File,
    Group,
    Message,
    Oneof,
    Option,
    OptionValue,
    Range,
    Reserved,
    Rpc,
    Service,
    Word,
)
from penstock.schemas.protobuf.option_values import read_value
from penstock.schemas.protobuf.reading import MAX_NESTED_MESSAGES
from penstock.schemas.protobuf.tokens import Tokens, shortened, unescaped

_SCALAR_NAMES: Final = {number: name for name, number in SCALARS.items()}
_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)
_PATH: Final = re.compile(r"\.?[A-Za-z_][A-Za-z0-9_]*(?:\.[A-Za-z_][A-Za-z0-9_]*)*", re.ASCII)
_WORD: Final = re.compile(
    r"-?(?:[A-Za-z_][A-Za-z0-9_.]*|0[xX][0-9a-fA-F]+|[0-9]*\.?[0-9]+\.?(?:[eE][+-]?[0-9]+)?)", re.ASCII
)
_LABELS: Final = {_Proto.LABEL_OPTIONAL: "optional", _Proto.LABEL_REQUIRED: "required"}
# Confluent's order, where it is not that of the numbers.
_RANKS: Final = {
    "java_package": 0, "java_outer_classname": 1, "java_multiple_files": 2, "java_generate_equals_and_hash": 3,
    "java_string_check_utf8": 4, "optimize_for": 5, "ctype": 0, "packed": 1, "jstype": 2,
}  # fmt: skip
Reread = Callable[[Any], message.Message]
"""Options again, with the extensions that are known."""


def undescribe(proto: descriptor_pb2.FileDescriptorProto, reread: Reread) -> File:
    if proto.syntax not in ("", PROTO2, PROTO3):
        raise InvalidSchema("editions are not supported: it must be proto2 or proto3")
    return _Undescribing(proto, reread).file()


def has_text_only(proto: message.Message) -> bool:
    """The library hands out bytes where a string is none."""
    waiting = [proto]
    while waiting:
        for field, value in waiting.pop().ListFields():
            values = value if hasattr(value, "append") or hasattr(value, "add") else (value,)
            if field.message_type is not None:
                waiting += values
            elif field.type == field.TYPE_STRING and any(isinstance(each, bytes) for each in values):
                return False
    return True


class _Undescribing:
    def __init__(self, proto: descriptor_pb2.FileDescriptorProto, reread: Reread) -> None:
        self._proto = proto
        self._proto3 = proto.syntax == PROTO3
        self._reread = reread

    def file(self) -> File:
        proto = self._proto
        public = set(proto.public_dependency)
        return File(
            syntax=proto.syntax,
            package=_path(proto.package) if proto.package else "",
            imports=[path for index, path in enumerate(proto.dependency) if index not in public],
            public_imports=[path for index, path in enumerate(proto.dependency) if index in public],
            options=self._options(proto),
            messages=[self._message(each, 1) for each in _shown(proto.message_type, proto.extension)],
            enums=[self._enum(each) for each in proto.enum_type],
            extends=self._extends(proto.extension, proto.message_type, 1),
            services=[self._service(each) for each in proto.service],
        )

    def _message(self, proto: DescriptorProto, depth: int) -> Message:
        if depth > MAX_NESTED_MESSAGES:
            raise InvalidSchema(f"messages are nested more than {MAX_NESTED_MESSAGES} deep")
        made = Message(
            _name(proto.name),
            reserved=[Reserved([_range(each.start, each.end - 1)]) for each in proto.reserved_range]
            + [Reserved([name]) for name in proto.reserved_name],
            options=self._options(proto),
            extensions=[
                Extensions([_range(each.start, each.end - 1)], self._options(each))
                for each in proto.extension_range
            ],
            extends=self._extends(proto.extension, proto.nested_type, depth),
            messages=[
                self._message(each, depth + 1)
                for each in _shown(proto.nested_type, [*proto.field, *proto.extension])
            ],
            enums=[self._enum(each) for each in proto.enum_type],
        )
        oneofs = [Oneof(_name(each.name), self._options(each)) for each in proto.oneof_decl]
        for field in proto.field:
            oneof = None
            if field.HasField("oneof_index") and not field.proto3_optional:
                if not 0 <= field.oneof_index < len(oneofs):
                    raise InvalidSchema(f"{proto.name}.{field.name} is in a oneof that is not there")
                oneof = oneofs[field.oneof_index]
            if field.type == _Proto.TYPE_GROUP:
                group = self._group(field, proto.nested_type, depth, in_oneof=oneof is not None)
                (made.groups if oneof is None else oneof.groups).append(group)
            else:
                added = self._field(field, in_oneof=oneof is not None)
                (made.fields if oneof is None else oneof.fields).append(added)
        made.oneofs = [each for each in oneofs if each.fields or each.groups]
        return made

    def _field(self, proto: _Proto, *, in_oneof: bool) -> Field:
        kind = _path(proto.type_name) if proto.type_name else _SCALAR_NAMES.get(proto.type)
        if not kind:
            raise InvalidSchema(f"the field {proto.name} has no type")
        label = "" if in_oneof else self._label(proto)
        return Field(label, kind, _name(proto.name), proto.number, self._field_options(proto))

    def _group(self, proto: _Proto, types: Iterable[DescriptorProto], depth: int, *, in_oneof: bool) -> Group:
        name = proto.type_name.rpartition(".")[2]
        for each in types:
            if each.name == name:
                label = "" if in_oneof else self._label(proto)
                return Group(label, proto.number, self._message(each, depth + 1), self._field_options(proto))
        raise InvalidSchema(f"the group {proto.name} has no message")

    def _label(self, proto: _Proto) -> str:
        if proto.label == _Proto.LABEL_REPEATED:
            return "repeated"
        if self._proto3:
            return "optional" if proto.proto3_optional else ""
        return _LABELS[proto.label]

    def _field_options(self, proto: _Proto) -> list[Option]:
        options = self._options(proto)
        if proto.HasField("default_value"):
            text = proto.default_value
            value: OptionValue
            if proto.type == _Proto.TYPE_STRING:
                value = text
            elif proto.type != _Proto.TYPE_BYTES:
                value = _word(text)
            else:
                value = unescaped(text).decode("utf-8", "surrogateescape")
            options.append(Option("default", value))
        if proto.HasField("json_name"):
            options.append(Option("json_name", proto.json_name))
        return options

    def _extends(
        self, fields: Iterable[_Proto], types: Iterable[DescriptorProto], depth: int
    ) -> list[Extend]:
        extends: dict[str, Extend] = {}
        for field in fields:
            extend = extends.setdefault(field.extendee, Extend(_path(field.extendee)))
            if field.type == _Proto.TYPE_GROUP:
                extend.groups.append(self._group(field, types, depth, in_oneof=False))
            else:
                extend.fields.append(self._field(field, in_oneof=False))
        return list(extends.values())

    def _enum(self, proto: descriptor_pb2.EnumDescriptorProto) -> Enum:
        return Enum(
            _name(proto.name),
            reserved=[Reserved([_range(each.start, each.end)]) for each in proto.reserved_range]
            + [Reserved([name]) for name in proto.reserved_name],
            options=self._options(proto),
            constants=[Constant(_name(each.name), each.number, self._options(each)) for each in proto.value],
        )

    def _service(self, proto: descriptor_pb2.ServiceDescriptorProto) -> Service:
        rpcs = [
            Rpc(
                _name(each.name),
                _path(each.input_type),
                _path(each.output_type),
                each.client_streaming,
                each.server_streaming,
                self._options(each),
            )
            for each in proto.method
        ]
        return Service(_name(proto.name), self._options(proto), rpcs)

    def _options(self, holder: Any) -> list[Option]:
        if not holder.HasField("options"):
            return []
        found: list[Option] = []
        read = self._reread(holder.options)
        fields = sorted(
            read.ListFields(), key=lambda each: (each[0].is_extension, _RANKS.get(each[0].name, 9))
        )
        for field, value in fields:
            if field.name == "uninterpreted_option" and not field.is_extension:
                found += map(_reinterpreted, value)
                continue
            name = field.full_name if field.is_extension else field.name
            for each in value if hasattr(value, "append") or hasattr(value, "add") else [value]:
                found.append(Option(name, _value(field, each), field.is_extension))
        return found


def _shown(types: Iterable[DescriptorProto], fields: Iterable[_Proto]) -> list[DescriptorProto]:
    """Without those of groups, which are written where the field is."""
    groups = {each.type_name.rpartition(".")[2] for each in fields if each.type == _Proto.TYPE_GROUP}
    return [each for each in types if each.name not in groups]


def _name(text: str) -> str:
    """What a text could not say is refused."""
    if not _NAME.fullmatch(text):
        raise InvalidSchema(f"{shortened(text)} is no name")
    return text


def _path(text: str) -> str:
    if not _PATH.fullmatch(text):
        raise InvalidSchema(f"{shortened(text)} is no name")
    return text


def _word(text: str) -> Word:
    if not _WORD.fullmatch(text):
        raise InvalidSchema(f"{shortened(text)} is no value")
    return Word(text)


def _range(start: int, end: int) -> int | Range:
    return start if start == end else Range(start, end)


def _value(field: Any, value: Any) -> OptionValue:
    if isinstance(value, str):
        return value
    if isinstance(value, bytes):
        return value.decode("utf-8", "surrogateescape")
    if isinstance(value, bool):
        return Word("true" if value else "false")
    if field.enum_type is not None:
        known = field.enum_type.values_by_number.get(value)
        return Word(known.name if known else str(value))
    if isinstance(value, int):
        return Word(str(value))
    if isinstance(value, float):
        return Word(text_format.PrintFieldValueToString(field, value) if _is_single(field) else repr(value))
    return {_key(each): _all(each, inner) for each, inner in value.ListFields()}


def _is_single(field: Any) -> bool:
    return bool(field.type == field.TYPE_FLOAT)


def _key(field: Any) -> str:
    return f"[{field.full_name}]" if field.is_extension else str(field.name)


def _all(field: Any, value: Any) -> OptionValue:
    if hasattr(value, "keys"):
        entry = field.message_type.fields_by_name
        return [
            {"key": _value(entry["key"], key), "value": _value(entry["value"], value[key])}
            for key in sorted(value.keys())
        ]
    if hasattr(value, "append") or hasattr(value, "add"):
        return [_value(field, each) for each in value]
    return _value(field, value)


def _reinterpreted(option: descriptor_pb2.UninterpretedOption) -> Option:
    value: OptionValue
    if option.HasField("string_value"):
        value = option.string_value.decode("utf-8", "surrogateescape")
    elif option.HasField("aggregate_value"):
        value = read_value(Tokens(f"{{{option.aggregate_value}}}"))
    elif option.HasField("positive_int_value"):
        value = Word(str(option.positive_int_value))
    elif option.HasField("negative_int_value"):
        value = Word(str(option.negative_int_value))
    elif option.HasField("double_value"):
        value = Word(repr(option.double_value))
    else:
        value = _word(option.identifier_value)
    parts = list(option.name)
    if not parts:
        raise InvalidSchema("an option has no name")
    for part in reversed(parts[1:]):
        value = Option(_path(part.name_part), value, part.is_extension)
    return Option(_path(parts[0].name_part), value, parts[0].is_extension)
