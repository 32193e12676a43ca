"""Values as Java's toString writes them, and numbers as Java's parsers take them."""

from __future__ import annotations

import math
import re
from decimal import Decimal
from typing import Any, Final

from penstock.model.java_values import java_float
from penstock.streams.functions import iso_times
from penstock.streams.functions.refusals import FunctionFailed
from penstock.streams.plan.types import Kind, SqlType

_INTEGER: Final = re.compile(r"[+-]?\d{1,40}", re.ASCII)
_DOUBLE: Final = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?[fFdD]?", re.ASCII)
_INT_MIN, _INT_MAX = -(2**31), 2**31 - 1
_LONG_MIN, _LONG_MAX = -(2**63), 2**63 - 1


def decimal_text(value: Decimal) -> str:
    """BigDecimal.toString: with an exponent when the scale is negative or the number very small."""
    return str(value)


def text_of(value: Any, type_: SqlType) -> str:
    """What CAST(… AS STRING) gives; `value` is not NULL."""
    match type_.kind:
        case Kind.STRING:
            return str(value)
        case Kind.BOOLEAN:
            return "true" if value else "false"
        case Kind.INTEGER | Kind.BIGINT:
            return str(value)
        case Kind.DOUBLE:
            return java_float(value)
        case Kind.DECIMAL:
            return format(value, "f")
        case Kind.TIMESTAMP:
            return iso_times.timestamp_text(value)
        case Kind.DATE:
            return iso_times.date_text(value)
        case Kind.TIME:
            return iso_times.time_text(value)
        case _:
            return _inner(value, type_)


def _inner(value: Any, type_: SqlType | None) -> str:
    """Inside an array, map or struct."""
    if value is None or type_ is None:
        return "null"
    match type_.kind:
        case Kind.DECIMAL:
            return decimal_text(value)
        case Kind.BYTES:
            return f"java.nio.HeapByteBuffer[pos=0 lim={len(value)} cap={len(value)}]"
        case Kind.ARRAY:
            return "[" + ", ".join(_inner(each, type_.element) for each in value) + "]"
        case Kind.MAP:
            pairs = (f"{_inner(k, type_.key)}={_inner(v, type_.element)}" for k, v in value.items())
            return "{" + ", ".join(pairs) + "}"
        case Kind.STRUCT:
            shown = (f"{n}={_inner(value.get(n), f)}" for n, f in type_.fields if value.get(n) is not None)
            return "Struct{" + ",".join(shown) + "}"
        case _:
            return text_of(value, type_)


def parse_int(text: str) -> int:
    return _parse_whole(text, _INT_MIN, _INT_MAX)


def parse_long(text: str) -> int:
    return _parse_whole(text, _LONG_MIN, _LONG_MAX)


def _parse_whole(text: str, least: int, most: int) -> int:
    if _INTEGER.fullmatch(text) is None or not least <= (value := int(text)) <= most:
        raise FunctionFailed(f'For input string: "{text}"')
    return value


def parse_double(text: str) -> float:
    """Infinity and NaN are refused."""
    if _DOUBLE.fullmatch(text) is None:
        raise FunctionFailed(f'For input string: "{text}"')
    value = float(text.rstrip("fFdD"))
    if math.isinf(value):
        raise FunctionFailed(f"Invalid double value: {text}")
    return value


def exact_boolean(text: str) -> bool | None:
    """Beginnings of true, false, yes and no in any case; None for anything else."""
    word = text.lower()
    if not word:
        return None
    if "true".startswith(word) or "yes".startswith(word):
        return True
    return False if "false".startswith(word) or "no".startswith(word) else None


def int_of_double(value: float) -> int:
    """Java's (int): cut off, NaN is 0, too large is the largest."""
    return _whole_of_double(value, _INT_MIN, _INT_MAX)


def long_of_double(value: float) -> int:
    return _whole_of_double(value, _LONG_MIN, _LONG_MAX)


def _whole_of_double(value: float, least: int, most: int) -> int:
    if value != value:
        return 0
    if value >= most:
        return most
    return least if value <= least else int(value)


def wrap_int(value: int) -> int:
    return ((value + 0x80000000) & 0xFFFFFFFF) - 0x80000000


def wrap_long(value: int) -> int:
    return ((value + 0x8000000000000000) & 0xFFFFFFFFFFFFFFFF) - 0x8000000000000000
