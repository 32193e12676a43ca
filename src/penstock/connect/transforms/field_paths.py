"""Paths to fields in structs in structs (KIP-821).

V1 takes the whole text for the name of one field. V2 takes dots for the ends of names; names with dots stand in backticks, and a
backtick inside of them that is followed by a dot has a backslash before it:

    a.b.c            a, b, c
    `a.b`.c          a.b, c
    `a\\`.b`.c        a`.b, c
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from penstock.connect.data.schema import Schema, Type
from penstock.connect.errors import DataError, InvalidConfig
from penstock.connect.settings import HIGH, Kind, Setting, one_of

SYNTAX_VERSION: Final = "field.syntax.version"
SYNTAX_SETTING: Final = Setting(
    SYNTAX_VERSION,
    Kind.STRING,
    "How fields are named. V1: by their names, on the first level only. V2: a dot goes into a struct or map, and a name that "
    "has dots stands in backticks.",
    default="V1",
    importance=HIGH,
    check=one_of("V1", "V2", any_case=True),
)


class Found(NamedTuple):
    steps: tuple[tuple[int, Any], ...]
    """The structs on the way: where each stands in the one around it, and its default."""
    place: int
    schema: Schema


def parse_path(text: str, version: str) -> tuple[str, ...]:
    """InvalidConfig."""
    if version.upper() == "V1":
        return (text,)
    steps: list[str] = []
    at = 0
    while at < len(text):
        if text[at] == "`":
            name, at = _quoted(text, at)
        else:
            dot = text.find(".", at)
            end = dot if dot >= 0 else len(text)
            name, at = text[at:end], end + 1
        steps.append(name)
    if text.endswith("."):
        steps.append("")
    return tuple(steps) or ("",)


def _quoted(text: str, start: int) -> tuple[str, int]:
    """The name between backticks, and where the next one begins. Only one before a dot, or at the end, closes it."""
    name = ""
    begin = at = start + 1
    while True:
        at = text.find("`", at)
        is_escaped = at > 0 and text[at - 1] == "\\"
        if at < 0 or (at == len(text) - 1 and is_escaped):
            raise InvalidConfig(
                f"Incomplete backtick pair in path: [{text}], consider adding a backslash before backtick at position {start} "
                "to escape it"
            )
        if at == len(text) - 1:
            return name + text[begin:at], at + 1
        if text[at + 1] != ".":
            at += 1
        elif is_escaped:
            name += text[begin : at - 1] + "`"
            at += 1
            begin = at
        else:
            return name + text[begin:at], at + 2


def find(schema: Schema, path: tuple[str, ...]) -> Found | None:
    """Where a path leads in a schema; None: nowhere."""
    steps = []
    current = schema
    for name in path[:-1]:
        field = _struct(current).field(name)
        if field is None:
            return None
        steps.append((field.index, field.schema.default))
        current = field.schema
    last = _struct(current).field(path[-1])
    return None if last is None else Found(tuple(steps), last.index, last.schema)


def _struct(schema: Schema) -> Schema:
    if schema.type is not Type.STRUCT:
        raise DataError("Cannot look up fields on non-struct type")
    return schema
