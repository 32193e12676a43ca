"""`normalize=true`: everything in a fixed order, names in full, as Confluent's registry has it.

It differs where Confluent's result would mean something else: the first value of an enum stays the first, because it is the
default; and numbers with a fraction stay as they are written.
"""

from __future__ import annotations

from typing import TypeVar

from penstock.schemas.protobuf.describing import SCALARS
from penstock.schemas.protobuf.elements import (
    Enum,
    Extend,
    Extensions,
    Field,
    File,
    Group,
    Message,
    Oneof,
    Option,
    Range,
    Reserved,
    Rpc,
    Service,
    is_map_entry,
    key_and_value,
)
from penstock.schemas.protobuf.linking import Names
from penstock.schemas.protobuf.normal_options import normal_options

_Value = TypeVar("_Value", int | Range | str, int | Range)


def normalize(file: File, names: Names) -> File:
    return _Normalizing(names).file(file)


class _Normalizing:
    def __init__(self, names: Names) -> None:
        self._names = names
        self._entries: dict[str, tuple[Field, Field, str]] = {}
        """Of maps that are written out, by full name: key, value, and the scope of their names."""

    def file(self, file: File) -> File:
        scope = file.package
        for message in file.messages:
            self._find_entries(message, scope)
        return File(
            syntax=file.syntax if file.is_proto3 else "",
            package=scope,
            imports=sorted(set(file.imports)),
            public_imports=sorted(set(file.public_imports)),
            options=self._options(file.options, scope),
            messages=[self._message(each, scope) for each in file.messages],
            enums=[self._enum(each, scope) for each in file.enums],
            extends=self._extends(file.extends, scope),
            services=[self._service(each, scope) for each in file.services],
        )

    def _find_entries(self, message: Message, scope: str) -> None:
        full = f"{scope}.{message.name}" if scope else message.name
        if is_map_entry(message):
            both = key_and_value(message)
            if both is not None:
                self._entries[full] = (*both, full)
        for nested in message.messages:
            self._find_entries(nested, full)

    def _message(self, message: Message, scope: str) -> Message:
        full = f"{scope}.{message.name}" if scope else message.name
        oneofs = [self._oneof(each, full) for each in message.oneofs if each.fields or each.groups]
        return Message(
            message.name,
            reserved=_one_by_one(message.reserved),
            options=self._options(message.options, full),
            fields=self._fields(message.fields, full),
            oneofs=sorted(oneofs, key=_first_number),
            groups=self._groups(message.groups, full),
            extensions=self._extensions(message.extensions, full),
            extends=self._extends(message.extends, full),
            messages=[self._message(each, full) for each in message.messages if not is_map_entry(each)],
            enums=[self._enum(each, full) for each in message.enums],
        )

    def _fields(self, fields: list[Field], scope: str) -> list[Field]:
        return [self._field(each, scope) for each in sorted(fields, key=lambda each: each.number)]

    def _field(self, field: Field, scope: str) -> Field:
        kind, key, label = field.type, field.key, field.label
        if kind not in SCALARS:
            full = self._names.type(kind, scope)
            entry = self._entries.get(full or "")
            if entry is not None and not key:
                key, label = entry[0].type, ""
                kind = self._type(entry[1].type, entry[2])
            else:
                kind = self._type(kind, scope)
        return Field(label, kind, field.name, field.number, self._options(field.options, scope), key)

    def _type(self, name: str, scope: str) -> str:
        full = None if name in SCALARS else self._names.type(name, scope)
        return name if full is None else f".{full}"

    def _oneof(self, oneof: Oneof, scope: str) -> Oneof:
        return Oneof(
            oneof.name,
            self._options(oneof.options, scope),
            self._fields(oneof.fields, scope),
            self._groups(oneof.groups, scope),
        )

    def _groups(self, groups: list[Group], scope: str) -> list[Group]:
        return [
            Group(
                each.label,
                each.number,
                self._message(each.message, scope),
                self._options(each.options, scope),
            )
            for each in sorted(groups, key=lambda each: each.number)
        ]

    def _extensions(self, extensions: list[Extensions], scope: str) -> list[Extensions]:
        single = [
            Extensions([_short(value)], self._options(each.options, scope))
            for each in extensions
            for value in each.values
        ]
        return sorted(single, key=lambda each: _rank(each.values[0]))

    def _extends(self, extends: list[Extend], scope: str) -> list[Extend]:
        merged: dict[str, Extend] = {}
        for extend in extends:
            name = self._type(extend.name, scope)
            held = merged.setdefault(name, Extend(name))
            held.fields += extend.fields
            held.groups += extend.groups
        for extend in merged.values():
            extend.fields = self._fields(extend.fields, scope)
            extend.groups = self._groups(extend.groups, scope)
        return list(merged.values())

    def _enum(self, enum: Enum, scope: str) -> Enum:
        full = f"{scope}.{enum.name}" if scope else enum.name
        constants = enum.constants[:1] + sorted(enum.constants[1:], key=lambda each: (each.number, each.name))
        for index, constant in enumerate(constants):
            if constant.options:
                options = self._options(constant.options, full)
                constants[index] = type(constant)(constant.name, constant.number, options)
        return Enum(enum.name, _one_by_one(enum.reserved), self._options(enum.options, full), constants)

    def _service(self, service: Service, scope: str) -> Service:
        full = f"{scope}.{service.name}" if scope else service.name
        rpcs = [
            Rpc(
                each.name,
                self._type(each.request, full),
                self._type(each.response, full),
                each.request_streams,
                each.response_streams,
                self._options(each.options, full),
            )
            for each in service.rpcs
        ]
        return Service(service.name, self._options(service.options, full), rpcs)

    def _options(self, options: list[Option], scope: str) -> list[Option]:
        return normal_options(options, scope, self._names) if options else options


def _one_by_one(reserved: list[Reserved]) -> list[Reserved]:
    single = [Reserved([_short(value)]) for each in reserved for value in each.values]
    return sorted(single, key=lambda each: (_rank(each.values[0]), str(each.values[0])))


def _short(value: _Value) -> _Value:
    if isinstance(value, Range) and value.start == value.end:
        return value.start
    return value


def _rank(value: int | Range | str) -> int:
    if isinstance(value, str):
        return 1 << 31
    return value.start if isinstance(value, Range) else value


def _first_number(oneof: Oneof) -> int:
    return oneof.fields[0].number if oneof.fields else oneof.groups[0].number
