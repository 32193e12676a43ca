"""JSON as Avro's Java library reads and writes it: comments are read over, numbers with a fraction are doubles.

Written: no spaces, the order as it was, control characters as \\u001F, doubles as Java prints them (1.0E10).
"""

from __future__ import annotations

import json
import math
import re
from typing import Any, Final, NoReturn

from penstock.model.java_values import java_float
from penstock.schemas.model import InvalidSchema

_COMMENT: Final = re.compile(r'"|//|/\*')
_STRING_END: Final = re.compile(r'[^"\\]*(?:\\.[^"\\]*)*"', re.DOTALL)
_ESCAPED: Final = re.compile(r'["\\\x00-\x1f]')
_SURROGATE: Final = re.compile(r"\\u[dD][89a-fA-F]")
_SHORT: Final = {'"': '\\"', "\\": "\\\\", "\b": "\\b", "\t": "\\t", "\n": "\\n", "\f": "\\f", "\r": "\\r"}
_SHOWN_CHARACTERS: Final = 200


def read(text: str) -> Any:
    """InvalidSchema."""
    try:
        value = _loaded(text)
        if _SURROGATE.search(text):
            written(value).encode()
        text.encode()
    except UnicodeEncodeError:
        raise InvalidSchema("it has half of a character (a surrogate without its other half)") from None
    except RecursionError:
        raise InvalidSchema("its JSON is nested too deeply") from None
    except ValueError as error:
        raise InvalidSchema(f"it is not JSON: {error}") from None
    return value


def _loaded(text: str) -> Any:
    try:
        return json.loads(text, parse_constant=_refuse)
    except ValueError:
        without = _without_comments(text)
        if without is None:
            raise
    return json.loads(without, parse_constant=_refuse)


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is no number of JSON")


def _without_comments(text: str) -> str | None:
    """None when there are none, or one does not end."""
    kept, position, start = [], 0, 0
    while found := _COMMENT.search(text, position):
        if found[0] == '"':
            string = _STRING_END.match(text, found.end())
            if string is None:
                return None
            position = string.end()
            continue
        end = text.find("\n" if found[0] == "//" else "*/", found.end())
        if end < 0 and found[0] == "/*":
            return None
        kept.append(text[start : found.start()])
        start = position = len(text) if end < 0 else end + (0 if found[0] == "//" else 2)
    return " ".join([*kept, text[start:]]) if kept else None


def written(value: Any, *, is_sorted: bool = False) -> str:
    """`is_sorted`: the keys of each object in order."""
    parts: list[str] = []
    _write(value, parts, is_sorted)
    return "".join(parts)


def quoted(text: str) -> str:
    return f'"{_ESCAPED.sub(_escaped, text)}"'


def shown(value: Any) -> str:
    """As much of it as fits into a message."""
    text = written(value).encode(errors="replace").decode()
    return text if len(text) <= _SHOWN_CHARACTERS else text[:_SHOWN_CHARACTERS] + "…"


def java_order(text: str) -> bytes:
    """By which Java's TreeMap has strings in order."""
    return text.encode("utf-16-be", "surrogatepass")


def _escaped(found: re.Match[str]) -> str:
    return _SHORT.get(found[0]) or f"\\u{ord(found[0]):04X}"


def _write(value: Any, parts: list[str], is_sorted: bool) -> None:
    if isinstance(value, str):
        parts.append(quoted(value))
    elif isinstance(value, dict):
        between = "{"
        for key in sorted(value, key=java_order) if is_sorted else value:
            parts.append(f"{between}{quoted(key)}:")
            _write(value[key], parts, is_sorted)
            between = ","
        parts.append("}" if value else "{}")
    elif isinstance(value, list):
        between = "["
        for each in value:
            parts.append(between)
            _write(each, parts, is_sorted)
            between = ","
        parts.append("]" if value else "[]")
    else:
        parts.append(_scalar(value))


def _scalar(value: Any) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        text = java_float(value)
        return text if math.isfinite(value) else quoted(text)
    return str(value)
