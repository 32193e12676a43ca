"""What a .proto file has in it, as it is written: names are not resolved, options not looked into."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple, TypeAlias

PROTO2 = "proto2"
PROTO3 = "proto3"


class Word(NamedTuple):
    """A value without quotes: a number, true, false, or a value of an enum."""

    text: str


@dataclass(slots=True)
class Option:
    name: str
    value: OptionValue
    extension: bool = False
    """Whether its name is in parentheses."""


OptionValue: TypeAlias = "str | Word | dict[str, OptionValue] | list[OptionValue] | Option"
"""An Option as a value is what comes behind the dot in `(name).more = 1`. A name in a dict may be `[full.name]`."""


class Range(NamedTuple):
    start: int
    end: int
    """Inclusive."""


@dataclass(slots=True)
class Reserved:
    values: list[int | Range | str]


@dataclass(slots=True)
class Extensions:
    values: list[int | Range]
    options: list[Option] = field(default_factory=list)


@dataclass(slots=True)
class Field:
    label: str
    """'', optional, required or repeated."""
    type: str
    """Of a map, that of its values."""
    name: str
    number: int
    options: list[Option] = field(default_factory=list)
    """With `default` and `json_name`."""
    key: str = ""
    """A map's type of keys."""


@dataclass(slots=True)
class Oneof:
    name: str
    options: list[Option] = field(default_factory=list)
    fields: list[Field] = field(default_factory=list)
    groups: list[Group] = field(default_factory=list)


@dataclass(slots=True)
class Extend:
    name: str
    fields: list[Field] = field(default_factory=list)
    groups: list[Group] = field(default_factory=list)


@dataclass(slots=True)
class Constant:
    name: str
    number: int
    options: list[Option] = field(default_factory=list)


@dataclass(slots=True)
class Enum:
    name: str
    reserved: list[Reserved] = field(default_factory=list)
    options: list[Option] = field(default_factory=list)
    constants: list[Constant] = field(default_factory=list)


@dataclass(slots=True)
class Message:
    name: str
    reserved: list[Reserved] = field(default_factory=list)
    options: list[Option] = field(default_factory=list)
    fields: list[Field] = field(default_factory=list)
    oneofs: list[Oneof] = field(default_factory=list)
    groups: list[Group] = field(default_factory=list)
    extensions: list[Extensions] = field(default_factory=list)
    extends: list[Extend] = field(default_factory=list)
    messages: list[Message] = field(default_factory=list)
    enums: list[Enum] = field(default_factory=list)


@dataclass(slots=True)
class Group:
    """A field and its type in one."""

    label: str
    number: int
    message: Message
    options: list[Option] = field(default_factory=list)


@dataclass(slots=True)
class Rpc:
    name: str
    request: str
    response: str
    request_streams: bool = False
    response_streams: bool = False
    options: list[Option] = field(default_factory=list)


@dataclass(slots=True)
class Service:
    name: str
    options: list[Option] = field(default_factory=list)
    rpcs: list[Rpc] = field(default_factory=list)


@dataclass(slots=True)
class File:
    syntax: str = ""
    """As written; '' where it is not, which means proto2."""
    package: str = ""
    imports: list[str] = field(default_factory=list)
    public_imports: list[str] = field(default_factory=list)
    options: list[Option] = field(default_factory=list)
    messages: list[Message] = field(default_factory=list)
    enums: list[Enum] = field(default_factory=list)
    extends: list[Extend] = field(default_factory=list)
    services: list[Service] = field(default_factory=list)

    @property
    def is_proto3(self) -> bool:
        return self.syntax == PROTO3


def is_map_entry(message: Message) -> bool:
    """Written out, as serialized descriptors have the entries of a map."""
    return any(
        option.name == "map_entry" and not option.extension and option.value == Word("true")
        for option in message.options
    )


def key_and_value(entry: Message) -> tuple[Field, Field] | None:
    by_name = {each.name: each for each in entry.fields}
    if set(by_name) != {"key", "value"}:
        return None
    return by_name["key"], by_name["value"]
