"""From elements to the canonical text: what Confluent's registry prints for the same file.

Its form: package right after syntax; then imports, options, messages before enums, extensions, services, each set after an
empty line. In a message: reserved, options, fields, oneofs, groups, extension ranges, extensions, types. An empty line inside a
message is indented too.

It differs where Confluent's text would mean something else: bytes that are no text are written as octal escapes, weak imports
stay, groups keep all that is in them, and a default of bytes keeps its quotes.
"""

from __future__ import annotations

from typing import Final

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
    OptionValue,
    Range,
    Reserved,
    Rpc,
    Service,
    Word,
)
from penstock.schemas.protobuf.tokens import MAX_ENUM_NUMBER, MAX_NUMBER, quoted

_STEP: Final = "  "
_LAST_OPTIONS: Final = ("default", "json_name")
_KEPT_EXTENSIONS: Final = "confluent."


def write(file: File, *, ignore_extensions: bool = False) -> str:
    writer = _Writer(ignore_extensions)
    writer.file(file)
    return "\n".join(writer.lines) + "\n" if writer.lines else ""


def without_extensions(options: list[Option]) -> list[Option]:
    return [
        each
        for each in options
        if not each.extension or each.name.removeprefix(".").startswith(_KEPT_EXTENSIONS)
    ]


class _Writer:
    def __init__(self, ignore_extensions: bool) -> None:
        self._ignore_extensions = ignore_extensions
        self.lines: list[str] = []

    def file(self, file: File) -> None:
        lines = self.lines
        if file.syntax:
            lines.append(f'syntax = "{file.syntax}";')
        if file.package:
            lines.append(f"package {file.package};")
        if file.imports or file.public_imports:
            lines.append("")
            lines += [f"import {quoted(each)};" for each in file.imports]
            lines += [f"import public {quoted(each)};" for each in file.public_imports]
        options = self._shown(file.options)
        if options:
            lines.append("")
            self._options(options, "")
        if file.messages or file.enums:
            lines.append("")
            self._types(file.messages, file.enums, "")
        if file.extends and not self._ignore_extensions:
            lines.append("")
            for extend in file.extends:
                self._extend(extend, "")
        if file.services:
            lines.append("")
            for service in file.services:
                self._service(service)

    def _types(self, messages: list[Message], enums: list[Enum], indent: str) -> None:
        for message in messages:
            self._block(f"message {message.name}", message, indent)
        for enum in enums:
            self._enum(enum, indent)

    def _block(self, head: str, message: Message, indent: str) -> None:
        """A message, or a group, which has the same things in it."""
        lines = self.lines
        start = len(lines)
        inner = indent + _STEP
        lines.append(f"{indent}{head} {{")
        for reserved in message.reserved:
            lines.append(inner + _reserved(reserved))
        options = self._shown(message.options)
        if options:
            self._gap(start, indent)
            self._options(options, inner)
        if message.fields:
            self._gap(start, indent)
            for field in message.fields:
                self._field(field, inner)
        if message.oneofs:
            self._gap(start, indent)
            for oneof in message.oneofs:
                self._oneof(oneof, inner)
        if message.groups:
            self._gap(start, indent)
            self._groups(message.groups, inner)
        if message.extensions and not self._ignore_extensions:
            self._gap(start, indent)
            for extensions in message.extensions:
                self._extensions(extensions, inner)
        if message.extends and not self._ignore_extensions:
            self._gap(start, indent)
            for extend in message.extends:
                self._extend(extend, inner)
        if message.messages or message.enums:
            self._gap(start, indent)
            self._types(message.messages, message.enums, inner)
        self._close(start, indent)

    def _gap(self, start: int, indent: str) -> None:
        """An empty line before the next set, unless it is the first after the head."""
        if len(self.lines) > start + 1:
            self.lines.append(indent)

    def _close(self, start: int, indent: str) -> None:
        if len(self.lines) == start + 1:
            self.lines[start] += "}"  # nothing is in it
        else:
            self.lines.append(f"{indent}}}")

    def _enum(self, enum: Enum, indent: str) -> None:
        start = len(self.lines)
        inner = indent + _STEP
        self.lines.append(f"{indent}enum {enum.name} {{")
        self.lines += [inner + _reserved(each, MAX_ENUM_NUMBER) for each in enum.reserved]
        self._options(self._shown(enum.options), inner)
        for constant in enum.constants:
            self._ended(f"{constant.name} = {constant.number}", constant.options, inner)
        self._close(start, indent)

    def _oneof(self, oneof: Oneof, indent: str) -> None:
        start = len(self.lines)
        self.lines.append(f"{indent}oneof {oneof.name} {{")
        self._options(self._shown(oneof.options), indent + _STEP)
        if oneof.fields:
            self._gap(start, indent)
            for field in oneof.fields:
                self._field(field, indent + _STEP)
        if oneof.groups:
            self._gap(start, indent)
            self._groups(oneof.groups, indent + _STEP)
        self._close(start, indent)

    def _groups(self, groups: list[Group], indent: str) -> None:
        for group in groups:
            label = f"{group.label} " if group.label else ""
            options = self._shown(group.options)
            behind = f" {_bracketed(options, indent)}" if options else ""
            self._block(f"{label}group {group.message.name} = {group.number}{behind}", group.message, indent)

    def _extend(self, extend: Extend, indent: str) -> None:
        start = len(self.lines)
        self.lines.append(f"{indent}extend {extend.name} {{")
        for field in extend.fields:
            self._field(field, indent + _STEP)
        self._groups(extend.groups, indent + _STEP)
        self._close(start, indent)

    def _extensions(self, extensions: Extensions, indent: str) -> None:
        self._ended(f"extensions {_ranges(extensions.values)}", extensions.options, indent)

    def _field(self, field: Field, indent: str) -> None:
        kind = f"map<{field.key}, {field.type}>" if field.key else field.type
        label = f"{field.label} " if field.label else ""
        self._ended(f"{label}{kind} {field.name} = {field.number}", field.options, indent)

    def _ended(self, words: str, options: list[Option], indent: str) -> None:
        """A line with the options in brackets behind it."""
        if options:
            options = in_order(self._shown(options))
        behind = f" {_bracketed(options, indent)}" if options else ""
        self.lines.append(f"{indent}{words}{behind};")

    def _service(self, service: Service) -> None:
        start = len(self.lines)
        self.lines.append(f"service {service.name} {{")
        self._options(self._shown(service.options), _STEP)
        if service.rpcs:
            self._gap(start, "")
            for rpc in service.rpcs:
                self._rpc(rpc)
        self._close(start, "")

    def _rpc(self, rpc: Rpc) -> None:
        request = ("stream " if rpc.request_streams else "") + rpc.request
        response = ("stream " if rpc.response_streams else "") + rpc.response
        head = f"{_STEP}rpc {rpc.name} ({request}) returns ({response})"
        options = self._shown(rpc.options)
        if not options:
            self.lines.append(f"{head};")
            return
        self.lines.append(f"{head} {{")
        self._options(options, _STEP * 2)
        self.lines.append(f"{_STEP}}};")

    def _options(self, options: list[Option], indent: str) -> None:
        self.lines += [f"{indent}option {_option(each, indent)};" for each in options]

    def _shown(self, options: list[Option]) -> list[Option]:
        return without_extensions(options) if self._ignore_extensions and options else options


def in_order(options: list[Option]) -> list[Option]:
    """`default` and `json_name` are said last, and once."""
    special = {each.name: each for each in options if each.name in _LAST_OPTIONS and not each.extension}
    if not special:
        return options
    others = [each for each in options if each.extension or each.name not in _LAST_OPTIONS]
    return others + [special[name] for name in _LAST_OPTIONS if name in special]


def _option(option: Option, indent: str) -> str:
    name = f"({option.name})" if option.extension else option.name
    value = option.value
    if isinstance(value, Option):
        return f"{name}.{_option(value, indent)}"
    if isinstance(value, list):
        return f"{name} = {_bracketed(value, indent)}"
    return f"{name} = {_value(value, indent)}"


def _bracketed(values: list[Option] | list[OptionValue], indent: str) -> str:
    """One stays on the line."""
    if len(values) == 1:
        return f"[{_value(values[0], indent)}]"
    return _list(values, indent)


def _list(values: list[Option] | list[OptionValue], indent: str) -> str:
    inner = indent + _STEP
    rows = ",\n".join(f"{inner}{_value(each, inner)}" for each in values)
    return f"[\n{rows}\n{indent}]" if rows else f"[\n{indent}]"


def _value(value: OptionValue, indent: str) -> str:
    if isinstance(value, str):
        return quoted(value)
    if isinstance(value, Word):
        return value.text
    if isinstance(value, Option):
        return _option(value, indent)
    if isinstance(value, list):
        return _list(value, indent)
    inner = indent + _STEP
    rows = ",\n".join(f"{inner}{name}: {_value(each, inner)}" for name, each in value.items())
    return f"{{\n{rows}\n{indent}}}" if rows else f"{{\n{indent}}}"


def _reserved(reserved: Reserved, maximum: int = MAX_NUMBER) -> str:
    return f"reserved {_ranges(reserved.values, maximum)};"


def _ranges(values: list[int | Range | str] | list[int | Range], maximum: int = MAX_NUMBER) -> str:
    return ", ".join(_range(each, maximum) for each in values)


def _range(value: int | Range | str, maximum: int) -> str:
    if isinstance(value, str):
        return quoted(value)
    if isinstance(value, int):
        return str(value)
    return f"{value.start} to {value.end if value.end < maximum else 'max'}"
