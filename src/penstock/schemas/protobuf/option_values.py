"""Reading options: `name = value`, in brackets and out of them, with values in Protobuf's text form."""

from __future__ import annotations

from typing import Final

from penstock.schemas.protobuf.elements import Option, OptionValue, Word
from penstock.schemas.protobuf.tokens import Tokens, is_path, shortened

MAX_OPTION_DEPTH: Final = 32


def read_bracketed(tokens: Tokens) -> list[Option]:
    """What is in the brackets behind a field; none, if there are no brackets."""
    options: list[Option] = []
    if not tokens.taken("["):
        return options
    while True:
        options.append(read_option(tokens))
        if tokens.taken("]"):
            return options
        tokens.require(",")


def read_option(tokens: Tokens) -> Option:
    parts: list[tuple[str, bool]] = []  # the name's, and whether each is in parentheses
    while True:
        if tokens.taken("("):
            parts.append((tokens.path(), True))
            tokens.require(")")
        else:
            parts += [(part, False) for part in tokens.take().lstrip(".").split(".")]
            if not all(is_path(part) for part, extension in parts if not extension):
                tokens.refuse("expected the name of an option before this")
        if len(parts) > MAX_OPTION_DEPTH:
            tokens.refuse("the name of an option has too many parts")
        if tokens.next == ".":
            tokens.take()
        elif not (tokens.next[:1] == "." and is_path(tokens.next)):
            break
    tokens.require("=")
    value = read_value(tokens)
    for name, extension in reversed(parts[1:]):
        value = Option(name, value, extension)
    return Option(parts[0][0], value, parts[0][1])


def read_value(tokens: Tokens, depth: int = 0) -> OptionValue:
    if depth > MAX_OPTION_DEPTH:
        tokens.refuse(f"the value of an option is nested more than {MAX_OPTION_DEPTH} deep")
    first = tokens.next
    if first[:1] in ('"', "'") and first:
        return tokens.string()
    if first in ("{", "<"):
        return _fields(tokens, depth)
    if first == "[":
        return _list(tokens, depth)
    if first in ("-", "+"):
        tokens.take()
        return Word((first if first == "-" else "") + _word(tokens))
    return Word(_word(tokens))


def _word(tokens: Tokens) -> str:
    word = tokens.take()
    if not (word[0].isalnum() or word[0] in "_."):
        tokens.refuse(f"{shortened(word)} is no value")
    return word


def _list(tokens: Tokens, depth: int) -> list[OptionValue]:
    tokens.require("[")
    values: list[OptionValue] = []
    while not tokens.taken("]"):
        values.append(read_value(tokens, depth + 1))
        if not tokens.taken(",") and tokens.next != "]":
            tokens.refuse("expected ',' or ']'")
    return values


def _fields(tokens: Tokens, depth: int) -> dict[str, OptionValue]:
    """Of a message in text form. What is given more than once becomes a list."""
    end = "}" if tokens.take() == "{" else ">"
    fields: dict[str, OptionValue] = {}
    while not tokens.taken(end):
        name = _field_name(tokens)
        if not tokens.taken(":") and tokens.next not in ("{", "<"):
            tokens.refuse("expected ':'")
        value = read_value(tokens, depth + 1)
        if name not in fields:
            fields[name] = value
        else:
            held = fields[name]
            if not isinstance(held, list):
                held = fields[name] = [held]
            if isinstance(value, list):
                held += value
            else:
                held.append(value)
        if not tokens.taken(","):
            tokens.taken(";")
    return fields


def _field_name(tokens: Tokens) -> str:
    if not tokens.taken("["):
        return tokens.path()
    parts = []
    while not tokens.taken("]"):  # an extension's name, or the URL of an Any's type
        parts.append(tokens.take())
    return f"[{''.join(parts)}]"
