"""From the text of a .proto file to its elements. The grammar is Protobuf's; InvalidSchema has the line."""

from __future__ import annotations

from typing import Final

from penstock.schemas.model import InvalidSchema
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
    Range,
    Reserved,
    Rpc,
    Service,
)
from penstock.schemas.protobuf.option_values import read_bracketed, read_option
from penstock.schemas.protobuf.tokens import MAX_ENUM_NUMBER, MAX_NUMBER, Tokens, shortened

MAX_NESTED_MESSAGES: Final = 32
"""As protoc has it."""
_LABELS: Final = ("optional", "required", "repeated")


def read_file(text: str) -> File:
    tokens = Tokens(text)
    file = File()
    _syntax(tokens, file)
    while tokens.next:
        _statement(tokens, file)
    return file


def _syntax(tokens: Tokens, file: File) -> None:
    while tokens.taken(";"):
        pass
    if tokens.next == "edition":
        raise InvalidSchema("editions are not supported: it must be proto2 or proto3")
    if tokens.taken("syntax"):
        tokens.require("=")
        syntax = tokens.text()
        if syntax not in (PROTO2, PROTO3):
            raise InvalidSchema(f"syntax {shortened(syntax)} is neither proto2 nor proto3")
        file.syntax = syntax
        tokens.require(";")


def _statement(tokens: Tokens, file: File) -> None:
    word = tokens.next
    if word == "message":
        file.messages.append(_message(tokens, file.is_proto3, 1))
    elif word == "enum":
        file.enums.append(_enum(tokens))
    elif word == "import":
        tokens.take()
        public = tokens.taken("public")
        if not public:
            tokens.taken("weak")
        (file.public_imports if public else file.imports).append(tokens.text())
        tokens.require(";")
    elif word == "package":
        if file.package:
            tokens.refuse("a file has one package")
        tokens.take()
        file.package = tokens.path()
        tokens.require(";")
    elif word == "option":
        tokens.take()
        file.options.append(read_option(tokens))
        tokens.require(";")
    elif word == "extend":
        file.extends.append(_extend(tokens, file.is_proto3, 1))
    elif word == "service":
        file.services.append(_service(tokens))
    elif not tokens.taken(";"):
        tokens.refuse("expected a message, an enum, an import, an option, an extension or a service")


def _message(tokens: Tokens, proto3: bool, depth: int) -> Message:
    tokens.require("message")
    message = Message(tokens.name())
    _body(tokens, message, proto3, depth)
    return message


def _body(tokens: Tokens, message: Message, proto3: bool, depth: int) -> None:
    if depth > MAX_NESTED_MESSAGES:
        tokens.refuse(f"messages are nested more than {MAX_NESTED_MESSAGES} deep")
    tokens.require("{")
    while not tokens.taken("}"):
        word = tokens.next
        if word == "option":
            tokens.take()
            message.options.append(read_option(tokens))
            tokens.require(";")
        elif word == "message":
            message.messages.append(_message(tokens, proto3, depth + 1))
        elif word == "enum":
            message.enums.append(_enum(tokens))
        elif word == "oneof":
            message.oneofs.append(_oneof(tokens, proto3, depth))
        elif word == "reserved":
            message.reserved.append(_reserved(tokens, MAX_NUMBER))
        elif word == "extensions":
            message.extensions.append(_extensions(tokens))
        elif word == "extend":
            message.extends.append(_extend(tokens, proto3, depth + 1))
        elif not tokens.taken(";"):
            _field_or_group(tokens, message.fields, message.groups, proto3, depth)


def _field_or_group(
    tokens: Tokens, fields: list[Field], groups: list[Group], proto3: bool, depth: int
) -> None:
    label = tokens.take() if tokens.next in _LABELS else ""
    if tokens.next == "group" and (label or proto3):
        groups.append(_group(tokens, label, proto3, depth))
        return
    if not (label or proto3 or tokens.next == "map"):
        tokens.refuse("expected 'optional', 'required' or 'repeated'")
    fields.append(_field(tokens, label))


def _field(tokens: Tokens, label: str) -> Field:
    key = ""
    if tokens.next == "map":
        kind = tokens.take()
        if tokens.taken("<"):
            if label:
                tokens.refuse(f"a map cannot be {label}")
            key = tokens.path()
            tokens.require(",")
            kind = tokens.path()
            tokens.require(">")
    else:
        kind = tokens.path()
    name = tokens.name()
    tokens.require("=")
    number = tokens.integer()
    field = Field(label, kind, name, number, read_bracketed(tokens) if tokens.next == "[" else [], key)
    tokens.require(";")
    return field


def _group(tokens: Tokens, label: str, proto3: bool, depth: int) -> Group:
    if proto3:
        tokens.refuse("there are no groups in proto3")
    tokens.require("group")
    name = tokens.name()
    tokens.require("=")
    group = Group(label, tokens.integer(), Message(name), read_bracketed(tokens))
    _body(tokens, group.message, proto3, depth + 1)
    return group


def _oneof(tokens: Tokens, proto3: bool, depth: int) -> Oneof:
    tokens.require("oneof")
    oneof = Oneof(tokens.name())
    tokens.require("{")
    while not tokens.taken("}"):
        if tokens.taken("option"):
            oneof.options.append(read_option(tokens))
            tokens.require(";")
        elif tokens.next in _LABELS:
            tokens.refuse("a field of a oneof has no label")
        elif tokens.next == "group":
            oneof.groups.append(_group(tokens, "", proto3, depth))
        elif not tokens.taken(";"):
            oneof.fields.append(_field(tokens, ""))
            if oneof.fields[-1].key:
                tokens.refuse("a map cannot be in a oneof")
    return oneof


def _extend(tokens: Tokens, proto3: bool, depth: int) -> Extend:
    tokens.require("extend")
    extend = Extend(tokens.path())
    tokens.require("{")
    while not tokens.taken("}"):
        if not tokens.taken(";"):
            _field_or_group(tokens, extend.fields, extend.groups, proto3, depth)
            if extend.fields and extend.fields[-1].key:
                tokens.refuse("a map cannot be an extension")
    return extend


def _enum(tokens: Tokens) -> Enum:
    tokens.require("enum")
    enum = Enum(tokens.name())
    tokens.require("{")
    while not tokens.taken("}"):
        if tokens.next == "reserved":
            enum.reserved.append(_reserved(tokens, MAX_ENUM_NUMBER))
        elif tokens.taken("option"):
            enum.options.append(read_option(tokens))
            tokens.require(";")
        elif not tokens.taken(";"):
            name = tokens.name()
            tokens.require("=")
            number = tokens.integer()
            enum.constants.append(Constant(name, number, read_bracketed(tokens)))
            tokens.require(";")
    return enum


def _range(tokens: Tokens, maximum: int) -> int | Range:
    start = tokens.integer()
    if not tokens.taken("to"):
        return start
    return Range(start, maximum if tokens.taken("max") else tokens.integer())


def _reserved(tokens: Tokens, maximum: int) -> Reserved:
    tokens.require("reserved")
    values: list[int | Range | str] = []
    while True:
        values.append(tokens.text() if tokens.next[:1] in ('"', "'") else _range(tokens, maximum))
        if tokens.taken(";"):
            return Reserved(values)
        tokens.require(",")


def _extensions(tokens: Tokens) -> Extensions:
    tokens.require("extensions")
    extensions = Extensions([_range(tokens, MAX_NUMBER)])
    while tokens.taken(","):
        extensions.values.append(_range(tokens, MAX_NUMBER))
    extensions.options = read_bracketed(tokens)
    tokens.require(";")
    return extensions


def _service(tokens: Tokens) -> Service:
    tokens.require("service")
    service = Service(tokens.name())
    tokens.require("{")
    while not tokens.taken("}"):
        if tokens.taken("option"):
            service.options.append(read_option(tokens))
            tokens.require(";")
        elif tokens.next == "rpc":
            service.rpcs.append(_rpc(tokens))
        elif not tokens.taken(";"):
            tokens.refuse("expected an rpc or an option")
    return service


def _rpc(tokens: Tokens) -> Rpc:
    tokens.require("rpc")
    name = tokens.name()
    request, request_streams = _rpc_type(tokens)
    tokens.require("returns")
    response, response_streams = _rpc_type(tokens)
    rpc = Rpc(name, request, response, request_streams, response_streams)
    if not tokens.taken("{"):
        tokens.require(";")
        return rpc
    while not tokens.taken("}"):
        if tokens.taken("option"):
            rpc.options.append(read_option(tokens))
            tokens.require(";")
        elif not tokens.taken(";"):
            tokens.refuse("expected an option")
    return rpc


def _rpc_type(tokens: Tokens) -> tuple[str, bool]:
    tokens.require("(")
    streams = tokens.taken("stream") and tokens.next != ")"
    kind = "stream" if not streams and tokens.next == ")" else tokens.path()
    tokens.require(")")
    return kind, streams
