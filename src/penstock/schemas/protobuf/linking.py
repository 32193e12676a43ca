"""Names of types become full ones, by Protobuf's scopes: from the innermost outwards, in the file, what it imports, and what
that imports publicly.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from typing import NamedTuple, NoReturn

from google.protobuf import descriptor_pb2
from google.protobuf.descriptor_pb2 import FieldDescriptorProto as _Proto

from penstock.schemas.model import InvalidSchema
from penstock.schemas.protobuf.tokens import shortened

MESSAGE = "message"
ENUM = "enum"


class Linked(NamedTuple):
    """A file with full names everywhere."""

    proto: descriptor_pb2.FileDescriptorProto
    types: dict[str, str]
    """Its own: by full name, whether it is a message or an enum."""
    extensions: dict[str, _Proto]
    """Its own, by full name."""
    exported: tuple[Linked, ...]
    """What a file that imports it sees through it, by `import public`, besides itself."""


class Names:
    """What a file sees."""

    def __init__(self, own: descriptor_pb2.FileDescriptorProto, imported: Collection[Linked]) -> None:
        self.types: dict[str, str] = {}
        self.extensions: dict[str, _Proto] = {}
        for file in imported:
            for seen in (file, *file.exported):
                self.types.update(seen.types)
                self.extensions.update(seen.extensions)
        self.own_types = dict(_types(own.package, own.message_type, own.enum_type))
        self.own_extensions = dict(_extensions(own.package, own.extension, own.message_type))
        self._files = [own, *(seen.proto for file in imported for seen in (file, *file.exported))]
        self._messages: dict[str, descriptor_pb2.DescriptorProto] | None = None
        self.types.update(self.own_types)
        self.extensions.update(self.own_extensions)

    def type(self, name: str, scope: str) -> str | None:
        """The full name, without a dot before it."""
        return _resolved(self.types, name, scope)

    def message(self, full_name: str) -> descriptor_pb2.DescriptorProto | None:
        if self._messages is None:
            found: dict[str, descriptor_pb2.DescriptorProto] = {}
            for file in self._files:
                found.update(_messages(file.package, file.message_type))
            self._messages = found  # whole at once: two threads may ask
        return self._messages.get(full_name)

    def extension(self, name: str, scope: str) -> str | None:
        return _resolved(self.extensions, name, scope)


def link(proto: descriptor_pb2.FileDescriptorProto, imported: dict[str, Linked]) -> tuple[Linked, Names]:
    """In place. `imported` has the files that it imports, by path. InvalidSchema."""
    names = Names(proto, imported.values())
    package = proto.package
    for message in proto.message_type:
        _link_message(names, message, package)
    _link_fields(names, proto.extension, package)
    for service in proto.service:
        scope = f"{package}.{service.name}" if package else service.name
        for method in service.method:
            method.input_type = f".{_message(names, method.input_type, scope)}"
            method.output_type = f".{_message(names, method.output_type, scope)}"
    exported: dict[int, Linked] = {}
    for index in proto.public_dependency:
        public = imported[proto.dependency[index]]
        for file in (public, *public.exported):
            exported[id(file)] = file
    return Linked(proto, names.own_types, names.own_extensions, tuple(exported.values())), names


def _link_message(names: Names, message: descriptor_pb2.DescriptorProto, scope: str) -> None:
    full = f"{scope}.{message.name}" if scope else message.name
    _link_fields(names, message.field, full)
    _link_fields(names, message.extension, full)
    for nested in message.nested_type:
        _link_message(names, nested, full)


def _link_fields(names: Names, fields: Iterable[_Proto], scope: str) -> None:
    for field in fields:
        if field.type_name:
            full = names.type(field.type_name, scope)
            if full is None:
                _unknown(field.type_name, f"{scope}.{field.name}" if scope else field.name)
            field.type_name = f".{full}"
            if names.types[full] == ENUM:
                field.type = _Proto.TYPE_ENUM
            elif field.type != _Proto.TYPE_GROUP:
                field.type = _Proto.TYPE_MESSAGE
        if field.extendee:
            field.extendee = f".{_message(names, field.extendee, scope)}"


def _message(names: Names, name: str, scope: str) -> str:
    full = names.type(name, scope)
    if full is None:
        _unknown(name, scope)
    if names.types[full] != MESSAGE:
        raise InvalidSchema(f"{full} is an enum where a message is needed")
    return full


def _unknown(name: str, user: str) -> NoReturn:
    raise InvalidSchema(f"{shortened(name)}, which {user} uses, is neither defined nor imported")


def _resolved(
    known: dict[str, object] | dict[str, str] | dict[str, _Proto], name: str, scope: str
) -> str | None:
    if name.startswith("."):
        return name[1:] if name[1:] in known else None
    while scope:
        candidate = f"{scope}.{name}"
        if candidate in known:
            return candidate
        scope = scope.rpartition(".")[0]
    return name if name in known else None


def _types(
    scope: str,
    messages: Iterable[descriptor_pb2.DescriptorProto],
    enums: Iterable[descriptor_pb2.EnumDescriptorProto],
) -> Iterator[tuple[str, str]]:
    prefix = f"{scope}." if scope else ""
    for message in messages:
        yield prefix + message.name, MESSAGE
        yield from _types(prefix + message.name, message.nested_type, message.enum_type)
    for enum in enums:
        yield prefix + enum.name, ENUM


def _extensions(
    scope: str, fields: Iterable[_Proto], messages: Iterable[descriptor_pb2.DescriptorProto]
) -> Iterator[tuple[str, _Proto]]:
    prefix = f"{scope}." if scope else ""
    for field in fields:
        yield prefix + field.name, field
    for message in messages:
        yield from _extensions(prefix + message.name, message.extension, message.nested_type)


def _messages(
    scope: str, messages: Iterable[descriptor_pb2.DescriptorProto]
) -> Iterator[tuple[str, descriptor_pb2.DescriptorProto]]:
    for message in messages:
        full = f"{scope}.{message.name}" if scope else message.name
        yield full, message
        yield from _messages(full, message.nested_type)
