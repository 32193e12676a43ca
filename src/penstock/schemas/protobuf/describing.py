"""From elements to a FileDescriptorProto, with the names of types as they are written. `linking` makes them full ones,
`options` fills in the options.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from google.protobuf import descriptor_pb2
from google.protobuf.descriptor_pb2 import FieldDescriptorProto as _Proto

from penstock.schemas.model import InvalidSchema
from penstock.schemas.protobuf.elements import (
    Enum,
    Extend,
    Extensions,
    Field,
    File,
    Group,
    Message,
    Option,
    OptionValue,
    Range,
    Service,
    Word,
)
from penstock.schemas.protobuf.tokens import MAX_NUMBER, is_text, shortened

SCALARS: Final[dict[str, int]] = {
    name.removeprefix("TYPE_").lower(): number
    for name, number in _Proto.Type.items()
    if name not in ("TYPE_GROUP", "TYPE_MESSAGE", "TYPE_ENUM")
}
_LABELS: Final = {
    "": _Proto.LABEL_OPTIONAL,
    "optional": _Proto.LABEL_OPTIONAL,
    "required": _Proto.LABEL_REQUIRED,
    "repeated": _Proto.LABEL_REPEATED,
}
KEY_TYPES: Final = frozenset(SCALARS) - {"double", "float", "bytes"}


class Pending(NamedTuple):
    """Options that wait for what they are called."""

    holder: Any
    """A message that has `options`."""
    options: list[Option]
    scope: str
    """In which names are looked up."""


class Described(NamedTuple):
    proto: descriptor_pb2.FileDescriptorProto
    pending: list[Pending]


def describe(file: File, name: str) -> Described:
    return _Describing(file, name).done()


class _Describing:
    def __init__(self, file: File, name: str) -> None:
        self._file = file
        self._proto3 = file.is_proto3
        self._proto = descriptor_pb2.FileDescriptorProto(name=name)
        self._pending: list[Pending] = []

    def done(self) -> Described:
        file, proto = self._file, self._proto
        if file.package:
            proto.package = file.package
        if self._proto3:
            proto.syntax = file.syntax
        proto.dependency.extend(dict.fromkeys([*file.imports, *file.public_imports]))
        for path in dict.fromkeys(file.public_imports):
            proto.public_dependency.append(list(proto.dependency).index(path))
        self._later(proto, file.options, file.package)
        for message in file.messages:
            self._message(proto.message_type.add(), message, file.package)
        for enum in file.enums:
            self._enum(proto.enum_type.add(), enum, file.package)
        for extend in file.extends:
            self._extend(proto.extension, proto.message_type, extend, file.package)
        for service in file.services:
            self._service(proto.service.add(), service, file.package)
        return Described(proto, self._pending)

    def _later(self, holder: Any, options: list[Option], scope: str) -> None:
        if options:
            self._pending.append(Pending(holder, options, scope))

    def _message(self, proto: descriptor_pb2.DescriptorProto, message: Message, scope: str) -> None:
        proto.name = message.name
        full = f"{scope}.{message.name}" if scope else message.name
        self._later(proto, message.options, full)
        for reserved in message.reserved:
            for value in reserved.values:
                if isinstance(value, str):
                    proto.reserved_name.append(value)
                else:
                    _span(proto.reserved_range.add(), value, full)
        # The order of the canonical text, so that it and the text as it came make one descriptor.
        for field in message.fields:
            self._field(proto, proto.field.add(), field, full)
        for oneof in message.oneofs:
            index = len(proto.oneof_decl)
            declared = proto.oneof_decl.add(name=oneof.name)
            self._later(declared, oneof.options, full)
            for field in oneof.fields:
                added = proto.field.add(oneof_index=index)
                self._field(proto, added, field, full)
            for group in oneof.groups:
                self._group(proto.field.add(oneof_index=index), proto.nested_type, group, full)
        self._optionals(proto, message)
        for group in message.groups:
            self._group(proto.field.add(), proto.nested_type, group, full)
        for extensions in message.extensions:
            self._extensions(proto, extensions, full)
        for extend in message.extends:
            self._extend(proto.extension, proto.nested_type, extend, full)
        for nested in message.messages:
            self._message(proto.nested_type.add(), nested, full)
        for enum in message.enums:
            self._enum(proto.enum_type.add(), enum, full)

    def _optionals(self, proto: descriptor_pb2.DescriptorProto, message: Message) -> None:
        """`optional` of proto3: each is in a oneof of its own that nobody sees, after the others."""
        if not self._proto3 or not any(field.label == "optional" for field in message.fields):
            return
        taken = {each.name for each in proto.field} | {each.name for each in proto.oneof_decl}
        for field, described in zip(message.fields, proto.field, strict=False):
            if field.label == "optional":
                name = f"_{field.name}"
                while name in taken:
                    name = f"X{name}"
                taken.add(name)
                described.proto3_optional = True
                described.oneof_index = len(proto.oneof_decl)
                proto.oneof_decl.add(name=name)

    def _field(
        self, owner: descriptor_pb2.DescriptorProto | None, proto: _Proto, field: Field, scope: str
    ) -> None:
        proto.name = field.name
        proto.number = _int32(field.number, scope, field.name)
        if field.key:
            assert owner is not None  # extensions are no maps
            proto.label = _Proto.LABEL_REPEATED
            proto.type_name = f".{scope}.{self._entry(owner, field, scope)}"
        else:
            if self._proto3 and field.label == "required":
                raise InvalidSchema(f"{scope}.{field.name} is required, which proto3 does not have")
            proto.label = _LABELS[field.label]
            _typed(proto, field.type)
        if field.options:
            self._field_options(proto, field.options, scope)

    def _field_options(self, proto: _Proto, options: list[Option], scope: str) -> None:
        others = []
        for option in options:
            if option.extension or option.name not in ("default", "json_name"):
                others.append(option)
            elif option.name == "default":
                if self._proto3:
                    raise InvalidSchema(f"{scope}.{proto.name} has a default, which proto3 does not have")
                proto.default_value = _default(proto, option.value, scope)
            elif isinstance(option.value, str) and is_text(option.value):
                proto.json_name = option.value
            else:
                raise InvalidSchema(f"json_name of {scope}.{proto.name} must be a string in quotes")
        self._later(proto, others, scope)

    def _entry(self, owner: descriptor_pb2.DescriptorProto, field: Field, scope: str) -> str:
        """The type of a map's entries, which nobody writes: its name."""
        if field.key not in KEY_TYPES:
            raise InvalidSchema(f"{scope}.{field.name}: a key of a map cannot be {shortened(field.key)}")
        name = entry_name(field.name)
        entry = owner.nested_type.add(name=name)
        entry.options.map_entry = True
        key = entry.field.add(name="key", number=1, label=_Proto.LABEL_OPTIONAL)
        _typed(key, field.key)
        value = entry.field.add(name="value", number=2, label=_Proto.LABEL_OPTIONAL)
        _typed(value, field.type)
        return name

    def _group(self, proto: _Proto, types: Any, group: Group, scope: str) -> None:
        name = group.message.name
        if not name[0].isupper():
            raise InvalidSchema(f"{scope}: the name of the group {name} must begin with a capital letter")
        proto.name = name.lower()
        proto.number = _int32(group.number, scope, name)
        proto.label = _LABELS[group.label]
        proto.type = _Proto.TYPE_GROUP
        proto.type_name = f".{scope}.{name}" if scope else f".{name}"
        if group.options:
            self._field_options(proto, group.options, scope)
        self._message(types.add(), group.message, scope)

    def _extend(self, fields: Any, types: Any, extend: Extend, scope: str) -> None:
        for field in extend.fields:
            proto = fields.add(extendee=extend.name)
            self._field(None, proto, field, scope)
            if self._proto3 and field.label == "optional":
                proto.proto3_optional = True
        for group in extend.groups:
            self._group(fields.add(extendee=extend.name), types, group, scope)

    def _extensions(self, proto: descriptor_pb2.DescriptorProto, extensions: Extensions, scope: str) -> None:
        if self._proto3:
            raise InvalidSchema(f"{scope} has a range of extensions, which proto3 does not have")
        for value in extensions.values:
            added = proto.extension_range.add()
            _span(added, value, scope)
            self._later(added, extensions.options, scope)

    def _enum(self, proto: descriptor_pb2.EnumDescriptorProto, enum: Enum, scope: str) -> None:
        proto.name = enum.name
        full = f"{scope}.{enum.name}" if scope else enum.name
        self._later(proto, enum.options, full)
        for constant in enum.constants:
            added = proto.value.add(name=constant.name, number=_int32(constant.number, full, constant.name))
            self._later(added, constant.options, full)
        for reserved in enum.reserved:
            for value in reserved.values:
                if isinstance(value, str):
                    proto.reserved_name.append(value)
                    continue
                start, end = (value.start, value.end) if isinstance(value, Range) else (value, value)
                proto.reserved_range.add(
                    start=_int32(start, full, "reserved"), end=_int32(end, full, "reserved")
                )

    def _service(self, proto: descriptor_pb2.ServiceDescriptorProto, service: Service, scope: str) -> None:
        proto.name = service.name
        full = f"{scope}.{service.name}" if scope else service.name
        self._later(proto, service.options, full)
        for rpc in service.rpcs:
            method = proto.method.add(name=rpc.name, input_type=rpc.request, output_type=rpc.response)
            if rpc.request_streams:
                method.client_streaming = True
            if rpc.response_streams:
                method.server_streaming = True
            self._later(method, rpc.options, full)


def entry_name(field_name: str) -> str:
    """As protoc makes it: `some_map` has entries of the type SomeMapEntry."""
    return "".join(part[:1].upper() + part[1:] for part in field_name.split("_")) + "Entry"


def _typed(proto: _Proto, kind: str) -> None:
    scalar = SCALARS.get(kind)
    if scalar is None:
        proto.type_name = kind
    else:
        proto.type = scalar


def _int32(number: int, scope: str, name: str) -> int:
    if not -(1 << 31) <= number < 1 << 31:
        raise InvalidSchema(f"{scope}.{name}: {str(number)[:20]} is out of range")
    return number


def _span(
    proto: descriptor_pb2.DescriptorProto.ReservedRange | descriptor_pb2.DescriptorProto.ExtensionRange,
    value: int | Range,
    scope: str,
) -> None:
    start, last = (value.start, value.end) if isinstance(value, Range) else (value, value)
    if not 0 < start <= last <= MAX_NUMBER:
        raise InvalidSchema(f"{scope}: {start} to {last} is no range of fields")
    proto.start = start
    proto.end = last + 1


def _default(proto: _Proto, value: OptionValue, scope: str) -> str:
    """As descriptors have it: bytes with octal escapes, all others as they are written."""
    if isinstance(value, str):
        if proto.type == _Proto.TYPE_STRING and is_text(value):
            return value
        if proto.type == _Proto.TYPE_BYTES:
            return _escaped(value)
    if isinstance(value, Word) and proto.type == _Proto.TYPE_BYTES:
        return _escaped(value.text)  # Confluent's registry prints them without quotes
    if isinstance(value, Word) and proto.type not in (_Proto.TYPE_STRING, _Proto.TYPE_BYTES):
        return _number(value.text) if proto.type and proto.type != _Proto.TYPE_BOOL else value.text
    raise InvalidSchema(f"the default of {scope}.{proto.name} does not fit its type")


def _escaped(text: str) -> str:
    raw = text.encode("utf-8", "surrogateescape")
    return "".join(
        chr(byte) if 32 <= byte < 127 and byte not in b"\\'\"" else f"\\{byte:03o}" for byte in raw
    )


def _number(text: str) -> str:
    """Hexadecimal and octal ones are decimal in descriptors."""
    digits = text.removeprefix("-")
    sign = text[: len(text) - len(digits)]
    if digits[:2] in ("0x", "0X"):
        return f"{sign}{int(digits, 16)}"
    if digits.isdigit() and digits[0] == "0" and len(digits) > 1 and set(digits) <= set("01234567"):
        return f"{sign}{int(digits, 8)}"
    if digits[-1:] in "fF" and digits[:1].isdigit():
        return text[:-1]
    return text
