"""JSON as the registry keeps it: the order of keys and the forms of numbers stay, spaces go.

Confluent's registry reads a schema with Jackson and prints it again: without spaces, keys in their order (of a key that is there
twice, the last value at the first place), whole numbers as they were, others as Java's BigDecimal prints them (`1e5` is `1E+5`).
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from decimal import Decimal, InvalidOperation
from typing import Any, Final, NamedTuple, NoReturn

from penstock.schemas.model import InvalidSchema

_LIMITS: Final = (sys.float_info.max, -sys.float_info.max)
_CONTROL: Final = re.compile(r"\\u00[01][0-9a-f]")
_quoted: Final = json.encoder.encode_basestring


class JsonText(NamedTuple):
    value: Any
    """With plain floats; one that is too large for a float is the largest float."""
    text: str


class _Floats:
    """Counts the numbers whose form a float would lose."""

    def __init__(self) -> None:
        self.seen = 0

    def read(self, text: str) -> float:
        self.seen += 1
        value = float(text)
        return min(max(value, _LIMITS[1]), _LIMITS[0])


def read(text: str) -> JsonText:
    """InvalidSchema when it is not JSON."""
    floats = _Floats()
    try:
        value = json.loads(text, parse_float=floats.read, parse_constant=_refuse_constant)
        if floats.seen:
            return JsonText(value, _exact(text))
        printed = _java_escapes(json.dumps(value, ensure_ascii=False, separators=(",", ":")))
        printed.encode()
    except RecursionError:
        raise InvalidSchema("it is nested too deeply") from None
    except UnicodeEncodeError:
        raise InvalidSchema("it contains half of a surrogate pair") from None
    except json.JSONDecodeError as error:
        raise InvalidSchema(
            f"it is not JSON: {error.msg} (line {error.lineno}, column {error.colno})"
        ) from None
    except (ValueError, InvalidOperation) as error:
        raise InvalidSchema(f"it is not JSON: {error}") from None
    return JsonText(value, printed)


def with_sorted_keys(text: str) -> str:
    """The same, every object's keys in the order of Java's strings."""
    value = json.loads(text, parse_float=Decimal)
    return _printed(value, in_order=True)


def key_of(value: Any) -> str:
    """The same text for the same JSON, whatever the order of keys."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"))


def _exact(text: str) -> str:
    printed = _printed(json.loads(text, parse_float=Decimal), in_order=False)
    printed.encode()
    return printed


def _refuse_constant(name: str) -> NoReturn:
    raise InvalidSchema(f"it is not JSON: {name} is no number")


def _java_escapes(text: str) -> str:
    """Jackson writes the digits of an escaped control character in capitals."""
    if "\\u00" not in text:
        return text
    return (
        _CONTROL.sub(_capitals, text) if "\\\\u00" not in text else _printed(json.loads(text), in_order=False)
    )


def _capitals(found: re.Match[str]) -> str:
    return "\\u00" + found.group()[4:].upper()


def _printed(value: Any, *, in_order: bool) -> str:
    """By a stack of its own: depth is no matter."""
    out: list[str] = []
    stack: list[Iterator[str | Any]] = [iter((_Value(value),))]
    while stack:
        piece = next(stack[-1], None)
        if piece is None:
            stack.pop()
        elif isinstance(piece, str):
            out.append(piece)
        else:
            inner = piece.value
            if isinstance(inner, dict):
                stack.append(_object_pieces(inner, in_order=in_order))
            elif isinstance(inner, list):
                stack.append(_array_pieces(inner))
            else:
                out.append(_scalar(inner))
    return "".join(out)


class _Value(NamedTuple):
    value: Any


def _object_pieces(value: dict[str, Any], *, in_order: bool) -> Iterator[str | _Value]:
    lead = "{"
    for key in sorted(value, key=_utf16) if in_order else value:
        yield f"{lead}{_string(key)}:"
        yield _Value(value[key])
        lead = ","
    yield "{}" if lead == "{" else "}"


def _array_pieces(value: list[Any]) -> Iterator[str | _Value]:
    lead = "["
    for each in value:
        yield lead
        yield _Value(each)
        lead = ","
    yield "[]" if lead == "[" else "]"


def _utf16(key: str) -> bytes:
    return key.encode("utf-16-be", "surrogatepass")


def _scalar(value: Any) -> str:
    match value:
        case str():
            return _string(value)
        case True:
            return "true"
        case False:
            return "false"
        case None:
            return "null"
        case Decimal():
            return str(value.copy_abs() if value.is_zero() else value)
    return str(value)


def _string(value: str) -> str:
    quoted = _quoted(value)
    if "\\u00" not in quoted:
        return quoted
    return '"' + "".join(_character(each) for each in value) + '"'


def _character(each: str) -> str:
    quoted = _quoted(each)[1:-1]
    return "\\u" + quoted[2:].upper() if quoted.startswith("\\u") else quoted
