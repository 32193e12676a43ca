"""The functions about JSON in texts."""

from __future__ import annotations

import base64
from collections.abc import Callable
from decimal import Decimal
from functools import lru_cache
from typing import Any, Final

from penstock.model.java_values import java_float
from penstock.streams.functions import iso_times, java_text, json_text
from penstock.streams.functions.refusals import FunctionFailed
from penstock.streams.functions.registry import scalar
from penstock.streams.functions.signatures import Argument
from penstock.streams.plan.types import Kind, SqlType

_JSON: Final = "JSON"


@lru_cache(512)
def path_tokens(path: str) -> tuple[str, ...]:
    """`$.a."b"[0]` as its steps."""
    reader = _PathReader(path)
    return tuple(reader.steps())


class _PathReader:
    def __init__(self, path: str) -> None:
        self.path = path
        self.at = 0

    def steps(self) -> list[str]:
        self._take("$")
        found: list[str] = []
        while self.at < len(self.path):
            if self._try("."):
                found.append(self._name(":@_"))
                continue
            self._take("[")
            found.append(self._quoted() if self._try('"') else self._name("_"))
            self._take("]")
        return found

    def _try(self, wanted: str) -> bool:
        if self.path[self.at : self.at + 1] != wanted:
            return False
        self.at += 1
        return True

    def _take(self, wanted: str) -> None:
        if not self._try(wanted):
            raise FunctionFailed(f"Invalid JSON path: '{self.path}'")

    def _name(self, also: str) -> str:
        start = self.at
        while self.at < len(self.path) and (self.path[self.at].isalnum() or self.path[self.at] in also):
            self.at += 1
        if start == self.at:
            raise FunctionFailed(f"Invalid JSON path: '{self.path}'")
        return self.path[start : self.at]

    def _quoted(self) -> str:
        found = ""
        while self.at < len(self.path) and self.path[self.at] != '"':
            self.at += self.path[self.at] == "\\"
            character = self.path[self.at : self.at + 1]
            if not character or (
                self.path[self.at - 1] == "\\" and character not in '"\\' and found[-1:] != "\\"
            ):
                raise FunctionFailed(f"Invalid JSON path: '{self.path}'")
            found += character
            self.at += 1
        self._take('"')
        return found


@scalar(
    "EXTRACTJSONFIELD",
    "STRING input, STRING path -> STRING",
    category=_JSON,
    about="Given a STRING that contains JSON data, extract the value at the specified JSONPath or NULL if it does not exist.",
)
def extract_json_field(text: str, path: str) -> str | None:
    tokens = path_tokens(path)
    node = json_text.read(text)
    for token in tokens:
        if isinstance(node, list):
            if not token.isascii() or not token.isdigit() or int(token) >= len(node):
                return None
            node = node[int(token)]
        elif isinstance(node, dict) and token in node:
            node = node[token]
        else:
            return None
    return "" if node is json_text.MISSING else json_text.kept_text(node)


@scalar(
    "IS_JSON_STRING",
    "STRING input -> BOOLEAN",
    category=_JSON,
    nulls="own",
    about="Given a string, returns true if it can be parsed as a valid JSON value, false otherwise.",
)
def is_json_string(text: str | None) -> bool:
    if text is None:
        return False
    try:
        return json_text.read(text) is not json_text.MISSING
    except FunctionFailed:
        return False


@scalar(
    "JSON_ARRAY_LENGTH",
    "STRING jsonArray -> INTEGER",
    category=_JSON,
    about="The length of the top-level array; NULL if it is none.",
)
def json_array_length(text: str) -> int | None:
    value = json_text.read(text)
    return len(value) if isinstance(value, list) else None


@scalar(
    "JSON_KEYS",
    "STRING jsonObj -> ARRAY<STRING>",
    category=_JSON,
    about="The top-level keys of a JSON object; NULL if it is none.",
)
def json_keys(text: str) -> list[str] | None:
    value = json_text.read(text)
    return list(value) if isinstance(value, dict) else None


@scalar(
    "JSON_RECORDS",
    "STRING jsonObj -> MAP<STRING, STRING>",
    category=_JSON,
    about="The top-level keys and values of a JSON object.",
)
def json_records(text: str) -> dict[str, str] | None:
    value = json_text.read(text)
    return (
        {key: json_text.kept_text(each) for key, each in value.items()} if isinstance(value, dict) else None
    )


@scalar(
    "JSON_ITEMS",
    "STRING jsonItems -> ARRAY<STRING>",
    category=_JSON,
    about="The elements of a JSON array, each as its JSON text.",
)
def json_items(text: str) -> list[str] | None:
    value = json_text.read(text)
    if not isinstance(value, list):
        raise FunctionFailed(f"Invalid JSON format:{text[:200]}")
    return [json_text.write(each) for each in value]


@scalar(
    "JSON_CONCAT",
    "STRING... jsonStrings -> STRING",
    category=_JSON,
    about="Merges objects (the last value of a key counts), appends arrays, and takes anything else as an array of one.",
)
def json_concat(*texts: str) -> str | None:
    values = [json_text.read(text) for text in texts]
    if any(value is json_text.MISSING for value in values):
        return None
    if len(values) == 1:
        return json_text.write(values[0], is_plain=True)
    if all(isinstance(value, dict) for value in values):
        return json_text.write({key: each for value in values for key, each in value.items()}, is_plain=True)
    items = [each for value in values for each in (value if isinstance(value, list) else [value])]
    return json_text.write(items, is_plain=True)


@scalar(
    "JSON_ARRAY_CONTAINS",
    "STRING jsonArray, T val -> BOOLEAN",
    category=_JSON,
    nulls="own",
    about="Parses a JSON array and determines whether or not the supplied value is contained within the array.",
)
def json_array_contains(text: str | None, value: Any) -> bool:
    if text is None:
        raise FunctionFailed("the JSON array is NULL")
    try:
        items = json_text.read(text)
    except FunctionFailed:
        return False
    return isinstance(items, list) and any(_is_same(item, value) for item in items)


def _is_same(item: Any, value: Any) -> bool:
    if item is None or value is None:
        return item is value
    if isinstance(value, float):
        return isinstance(item, Decimal) and float(item) == value
    if isinstance(value, bool) or isinstance(item, bool):
        return item is value
    return isinstance(value, int | str) and type(item) is type(value) and item == value


@scalar(
    "TO_JSON_STRING",
    "T val -> STRING",
    category=_JSON,
    nulls="own",
    bound=True,
    about="Given any ksqlDB type returns the equivalent JSON string.",
)
def to_json_string(arguments: tuple[Argument, ...], result: SqlType) -> Callable[[Any], str]:
    given = arguments[0] if isinstance(arguments[0], SqlType) else None
    return lambda value: _json_of(value, given)


def _json_of(value: Any, type_: SqlType | None) -> str:
    if value is None or type_ is None:
        return "null"
    match type_.kind:
        case Kind.STRUCT:
            pairs = [(name, _json_of(value.get(name), each)) for name, each in type_.fields]
            return _object(pairs)
        case Kind.MAP:
            keys = [(java_text.text_of(key, type_.key) if type_.key else str(key), key) for key in value]
            return _object([(name, _json_of(value[key], type_.element)) for name, key in keys])
        case Kind.ARRAY:
            return "[" + ",".join(_json_of(each, type_.element) for each in value) + "]"
        case Kind.BYTES:
            return json_text.quoted(base64.b64encode(value).decode())
        case Kind.DOUBLE:
            text = java_float(value)
            return text if text[-1].isdigit() else f'"{text}"'
        case Kind.TIME:
            return json_text.quoted(iso_times.time_text(value))
        case Kind.DATE | Kind.TIMESTAMP | Kind.STRING:
            return json_text.quoted(java_text.text_of(value, type_))
        case _:
            return java_text.text_of(value, type_)


def _object(pairs: list[tuple[str, str]]) -> str:
    return "{" + ",".join(f"{json_text.quoted(name)}:{text}" for name, text in sorted(pairs)) + "}"
