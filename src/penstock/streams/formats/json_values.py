"""A value of JSON as a value of a column, by ksqlDB's lenient rules, whatever the value is.

Numbers are exact here: `exactly` reads those with a point as Decimal. It is the slow way, which `json_reading` takes when a value
is not simply what its column says: a number for STRING becomes its text, a text for a number is parsed, a number that is too
large for BIGINT loses its highest bits as in Java.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from decimal import Decimal
from typing import Any, Final

from penstock.streams.formats.values import (
    BIGINT_BOUND,
    INTEGER_BOUND,
    bytes_of,
    decimal_of,
    double_of,
    fitted,
    time_of,
    whole_of,
    wrapped,
)
from penstock.streams.plan.types import STRING, Kind, SqlType, array

_JAVA_NODES: Final = {
    bool: "BooleanNode",
    int: "IntNode",
    Decimal: "DecimalNode",
    str: "TextNode",
    list: "ArrayNode",
    dict: "ObjectNode",
}


class Unfit(Exception):
    """`path` grows on the way out."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason
        self.path: list[str] = []

    def __str__(self) -> str:
        return f"{self.reason}, path: ${''.join(reversed(self.path))}"


def _no_number(name: str) -> None:
    raise ValueError(f"{name} is not JSON")


_DECODER: Final = json.JSONDecoder(parse_float=Decimal, parse_constant=_no_number)


def exactly(data: bytes) -> Any:
    """ValueError or RecursionError. What stands behind the first value is not looked at."""
    text = data.decode("utf-8", "replace").lstrip(" \t\r\n")
    if not text:
        raise Unfit("there is no value")
    return _DECODER.raw_decode(text)[0]


def coerced(value: Any, type_: SqlType) -> Any:
    """Unfit."""
    if value is None:
        return None
    try:
        return _COERCE[type_.kind](value, type_)
    except Unfit:
        raise
    except (ValueError, ArithmeticError) as error:
        raise Unfit(str(error)) from None


def _refused(value: Any, type_: SqlType) -> Unfit:
    return Unfit(f"Can't convert type. sourceType: {_JAVA_NODES[type(value)]}, requiredType: {type_}")


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, Decimal)) and not isinstance(value, bool)


def _boolean(value: Any, type_: SqlType) -> Any:
    if isinstance(value, bool):
        return value
    raise _refused(value, type_)


def _whole(bound: int) -> Callable[[Any, SqlType], int]:
    def coerce(value: Any, type_: SqlType) -> int:
        if isinstance(value, Decimal):
            exponent = int(value.as_tuple().exponent)
            return 0 if exponent >= bound.bit_length() else wrapped(int(value), bound)
        if _is_number(value):
            return wrapped(value, bound)
        if isinstance(value, str):
            try:
                return whole_of(value, bound)
            except ValueError:
                raise Unfit(f"Can't coerce string to type. targetType: {type_}") from None
        raise _refused(value, type_)

    return coerce


def _double(value: Any, type_: SqlType) -> float:
    if _is_number(value):
        try:
            return float(value)
        except OverflowError:
            return float("inf") if value > 0 else float("-inf")
    if isinstance(value, str):
        try:
            return double_of(value)
        except ValueError:
            raise Unfit(f"Can't coerce string to type. targetType: {type_}") from None
    raise _refused(value, type_)


def _decimal(value: Any, type_: SqlType) -> Decimal:
    if _is_number(value):
        return fitted(Decimal(value), type_)
    if isinstance(value, str):
        return decimal_of(value, type_)
    raise _refused(value, type_)


def _string(value: Any, type_: SqlType) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, dict):
        return printed(value)
    if isinstance(value, list):
        return "[" + ", ".join("null" if each is None else each for each in coerced(value, _STRINGS)) + "]"
    return str(value)


def printed(value: Any) -> str:
    """JSON without spaces, with the digits that numbers came with."""
    if isinstance(value, dict):
        return "{" + ",".join(f"{_quoted(key)}:{printed(each)}" for key, each in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(printed, value)) + "]"
    return str(value) if isinstance(value, Decimal) else json.dumps(value, ensure_ascii=False)


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def _bytes(value: Any, type_: SqlType) -> bytes:
    if isinstance(value, str):
        return bytes_of(value)
    raise _refused(value, type_)


def _time(value: Any, type_: SqlType) -> int:
    return time_of(_whole(BIGINT_BOUND)(value, type_))


def _array(value: Any, type_: SqlType) -> list[Any]:
    if not isinstance(value, list):
        raise _refused(value, type_)
    assert type_.element is not None
    return [_inside(f"[{place}]", each, type_.element) for place, each in enumerate(value)]


def _map(value: Any, type_: SqlType) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise _refused(value, type_)
    assert type_.element is not None
    return {key: _inside(f".{key}.value", each, type_.element) for key, each in value.items()}


def _struct(value: Any, type_: SqlType) -> dict[str, Any]:
    return dict(zip((name for name, _ in type_.fields), fields_of(value, type_.fields, type_), strict=True))


def fields_of(value: Any, fields: tuple[tuple[str, SqlType], ...], type_: SqlType) -> list[Any]:
    """A column's own name is looked for first, then names that are it in upper case."""
    if not isinstance(value, dict):
        raise _refused(value, type_)
    upper = {name.upper(): each for name, each in value.items()}
    return [
        _inside(f".{name}", value[name] if name in value else upper.get(name), each) for name, each in fields
    ]


def _inside(step: str, value: Any, type_: SqlType) -> Any:
    try:
        return coerced(value, type_)
    except Unfit as unfit:
        unfit.path.append(step)
        raise


_STRINGS: Final = array(STRING)
_COERCE: Final[dict[Kind, Callable[[Any, SqlType], Any]]] = {
    Kind.BOOLEAN: _boolean,
    Kind.INTEGER: _whole(INTEGER_BOUND),
    Kind.BIGINT: _whole(BIGINT_BOUND),
    Kind.DOUBLE: _double,
    Kind.DECIMAL: _decimal,
    Kind.STRING: _string,
    Kind.BYTES: _bytes,
    Kind.TIME: _time,
    Kind.DATE: _whole(BIGINT_BOUND),
    Kind.TIMESTAMP: _whole(BIGINT_BOUND),
    Kind.ARRAY: _array,
    Kind.MAP: _map,
    Kind.STRUCT: _struct,
}
