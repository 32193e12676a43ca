"""DELIMITED: the values in one line of text, with quotes where they are needed.

Quoting is as Apache Commons CSV 1.4 does it: a first value that does not begin with a letter of ASCII or a digit is quoted, so is
an empty text that comes first, one that begins with a character up to #, ends with a blank, or has a quote, a delimiter or the
end of a line inside. NULL is nothing at all, and what is nothing is read as NULL, as is an empty text in quotes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from penstock.streams.formats.failures import BadRecord, FormatRefused
from penstock.streams.formats.values import (
    BIGINT_BOUND,
    INTEGER_BOUND,
    base64_of,
    bytes_of,
    decimal_of,
    double_of,
    double_text,
    time_of,
    whole_of,
)
from penstock.streams.plan.schema import Column
from penstock.streams.plan.types import Kind, SqlType

_NAMED: Final = {"TAB": "\t", "SPACE": " "}
Read = Callable[[bytes], "tuple[Any, ...] | None"]
Write = Callable[["tuple[Any, ...]"], "bytes | None"]


def delimiter_of(text: str | None) -> str:
    """FormatRefused."""
    if text is None:
        return ","
    if not text.strip():
        raise FormatRefused(
            "Delimiter cannot be empty, if you meant to have a tab or space for delimiter, please use the special values "
            "'TAB' or 'SPACE'\nExample valid value: ';'"
        )
    if len(text) == 1:
        return text
    if text not in _NAMED:
        raise FormatRefused(
            f"Invalid delimiter value: '{text}'. Delimiter must be a single character or TAB,SPACE\nExample valid value: ';'"
        )
    return _NAMED[text]


def check(columns: Sequence[Column]) -> None:
    for column in columns:
        if column.type.kind not in _PARSERS:
            raise FormatRefused(
                f"The 'DELIMITED' format does not support type '{column.type.kind}', column: `{column.name}`"
            )


def delimited_reader(columns: Sequence[Column], delimiter: str) -> Read:
    """BadRecord."""
    parsers = [_PARSERS[column.type.kind](column.type) for column in columns]
    count = len(parsers)

    def decode(data: bytes) -> tuple[Any, ...]:
        text = data.decode("utf-8", "replace")
        if '"' in text or "\n" in text or "\r" in text:
            values = first_record(text, delimiter)
        else:
            values = text.split(delimiter) if text else []
        if not values:
            raise BadRecord("No fields in record")
        if len(values) != count:
            raise BadRecord(
                f"Column count mismatch on deserialization. expected: {count}, got: {len(values)}"
            )
        try:
            return tuple(
                parse(value) if value else None for parse, value in zip(parsers, values, strict=True)
            )
        except (ValueError, ArithmeticError) as error:
            raise BadRecord(f"Error deserializing delimited: {error}") from None

    return decode


def first_record(text: str, delimiter: str) -> list[str]:
    """The values of the first line that is not empty. BadRecord."""
    at, end = 0, len(text)
    while at < end and text[at] in "\r\n":
        at += 1
    values: list[str] = []
    if at == end:
        return values
    while True:
        if text[at : at + 1] == '"':
            value, at = _quoted(text, at + 1, delimiter)
        else:
            start = at
            while at < end and text[at] != delimiter and text[at] not in "\r\n":
                at += 1
            value = text[start:at]
        values.append(value)
        if at >= end or text[at] in "\r\n":
            return values
        at += 1


def _quoted(text: str, at: int, delimiter: str) -> tuple[str, int]:
    """The value behind an opening quote, and where it ends."""
    parts = []
    while True:
        close = text.find('"', at)
        if close < 0:
            raise BadRecord("Error deserializing delimited: a quote is not closed")
        parts.append(text[at:close])
        if text[close + 1 : close + 2] != '"':
            break
        parts.append('"')
        at = close + 2
    at = close + 1
    while at < len(text) and text[at] != delimiter and text[at] not in "\r\n":
        if not text[at].isspace():
            raise BadRecord(
                "Error deserializing delimited: invalid char between encapsulated token and delimiter"
            )
        at += 1
    return "".join(parts), at


def delimited_writer(columns: Sequence[Column], delimiter: str) -> Write:
    """BadRecord."""
    texts = [_TEXTS.get(column.type.kind, str) for column in columns]

    def encode(row: tuple[Any, ...]) -> bytes:
        parts = []
        for place, (text_of, value) in enumerate(zip(texts, row, strict=True)):
            parts.append("" if value is None else quoted(text_of(value), delimiter, is_first=not place))
        return delimiter.join(parts).encode("utf-8", "replace")

    return encode


def quoted(text: str, delimiter: str, *, is_first: bool) -> str:
    if not text:
        return '""' if is_first else ""
    first = text[0]
    if (
        (is_first and not (first.isascii() and first.isalnum()))
        or first <= "#"
        or text[-1] <= " "
        or delimiter in text
        or '"' in text
        or "\n" in text
        or "\r" in text
    ):
        return '"' + text.replace('"', '""') + '"'
    return text


def _boolean_text(value: bool) -> str:
    return "true" if value else "false"


_TEXTS: Final[dict[Kind, Callable[[Any], str]]] = {
    Kind.BOOLEAN: _boolean_text,
    Kind.DOUBLE: double_text,
    Kind.DECIMAL: lambda value: f"{value:f}",
    Kind.BYTES: base64_of,
}
_PARSERS: Final[dict[Kind, Callable[[SqlType], Callable[[str], Any]]]] = {
    Kind.BOOLEAN: lambda type_: lambda text: text.lower() == "true",
    Kind.INTEGER: lambda type_: lambda text: whole_of(text, INTEGER_BOUND),
    Kind.BIGINT: lambda type_: lambda text: whole_of(text, BIGINT_BOUND),
    Kind.DOUBLE: lambda type_: double_of,
    Kind.STRING: lambda type_: lambda text: text,
    Kind.BYTES: lambda type_: bytes_of,
    Kind.DECIMAL: lambda type_: lambda text: decimal_of(text, type_),
    Kind.TIME: lambda type_: lambda text: time_of(whole_of(text, BIGINT_BOUND)),
    Kind.DATE: lambda type_: lambda text: whole_of(text, INTEGER_BOUND),
    Kind.TIMESTAMP: lambda type_: lambda text: whole_of(text, BIGINT_BOUND),
}
