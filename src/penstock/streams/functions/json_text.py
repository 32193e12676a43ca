"""JSON as Jackson reads and writes it: numbers keep their digits, what follows the first value does not count."""

from __future__ import annotations

import json
import re
from decimal import Decimal
from typing import Any, Final

from penstock.streams.functions.refusals import FunctionFailed

_SPACE: Final = " \t\n\r"
_ESCAPED: Final = re.compile(r'["\\\x00-\x1f]')
_SHORT: Final = {'"': '\\"', "\\": "\\\\", "\b": "\\b", "\t": "\\t", "\n": "\\n", "\f": "\\f", "\r": "\\r"}


class Missing:
    """An empty text has no value at all."""


MISSING: Final = Missing()


def _refused(text: str) -> Any:
    raise ValueError(text)


_DECODER: Final = json.JSONDecoder(parse_float=Decimal, parse_constant=_refused)


def read(text: str) -> Any:
    start = len(text) - len(text.lstrip(_SPACE))
    if start == len(text):
        return MISSING
    try:
        value, end = _DECODER.raw_decode(text, start)
    except (ValueError, RecursionError, ArithmeticError):
        raise FunctionFailed(f"Invalid JSON format:{text[:200]}") from None
    if not isinstance(value, dict | list | str) and end < len(text) and text[end] not in _SPACE:
        raise FunctionFailed(f"Invalid JSON format:{text[:200]}")
    return value


def quoted(text: str) -> str:
    return (
        '"'
        + _ESCAPED.sub(lambda found: _SHORT.get(found.group()) or f"\\u{ord(found.group()):04X}", text)
        + '"'
    )


def write(value: Any, *, is_plain: bool = False) -> str:
    """`is_plain`: numbers without exponents."""
    match value:
        case None:
            return "null"
        case bool():
            return "true" if value else "false"
        case str():
            return quoted(value)
        case Decimal():
            return format(value, "f") if is_plain else str(value)
        case list():
            return "[" + ",".join(write(each, is_plain=is_plain) for each in value) + "]"
        case dict():
            pairs = (f"{quoted(key)}:{write(each, is_plain=is_plain)}" for key, each in value.items())
            return "{" + ",".join(pairs) + "}"
        case _:
            return str(value)


def kept_text(value: Any) -> str:
    """A text as it is, anything else as JSON."""
    return value if isinstance(value, str) else write(value)
