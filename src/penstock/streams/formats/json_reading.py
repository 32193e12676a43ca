"""Rows from JSON.

A function is made for the columns, which takes values that are what their columns say; whenever one is not, the record is read
again by `json_values`, exactly and leniently. orjson rounds what is not read exactly, so a DECIMAL column costs the slower reader
of the standard library.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from decimal import Decimal
from operator import itemgetter
from typing import Any, Final

import orjson

from penstock.streams.formats import json_values
from penstock.streams.formats.failures import BadRecord
from penstock.streams.formats.values import (
    BIGINT_BOUND,
    INTEGER_BOUND,
    MILLIS_OF_A_DAY,
    bytes_of,
    fitted,
    has_kind,
)
from penstock.streams.plan.schema import Column
from penstock.streams.plan.types import Kind, SqlType, struct

MAX_SHAPES: Final = 1000
"""Of objects whose names are remembered."""
Read = Callable[[bytes], "tuple[Any, ...] | None"]
_BOUNDS: Final = {
    Kind.INTEGER: INTEGER_BOUND,
    Kind.BIGINT: BIGINT_BOUND,
    Kind.DATE: BIGINT_BOUND,
    Kind.TIMESTAMP: BIGINT_BOUND,
}


class _Unusual(Exception):
    """The exact way decides what this value is."""


def json_reader(columns: Sequence[Column], *, is_wrapped: bool) -> Read:
    """BadRecord. JSON's null is None when rows are objects; a bare value is a row of one value."""
    whole = struct(*((column.name, column.type) for column in columns))
    is_exact = any(has_kind(column.type, Kind.DECIMAL) for column in columns)
    loads: Callable[[bytes], Any] = _exact_loads if is_exact else orjson.loads
    read: Callable[[Any], tuple[Any, ...] | None]
    if is_wrapped:
        read = _row_function(whole)
    else:
        (column,) = columns
        convert = _converter(column.type)

        def read(value: Any) -> tuple[Any, ...]:
            return (None if value is None else convert(value),)

    def slowly(data: bytes) -> tuple[Any, ...] | None:
        try:
            value = json_values.exactly(data)
            if not is_wrapped:
                return (json_values.coerced(value, columns[0].type),)
            return None if value is None else tuple(json_values.fields_of(value, whole.fields, whole))
        except json_values.Unfit as unfit:
            raise BadRecord(str(unfit)) from None
        except RecursionError:
            raise BadRecord("the value is nested too deeply") from None
        except ValueError as error:
            raise BadRecord(f"it is not JSON: {error}") from None

    def decode(data: bytes) -> tuple[Any, ...] | None:
        try:
            return read(loads(data))
        except (_Unusual, ValueError, ArithmeticError, RecursionError):
            return slowly(data)

    return decode


def _no_number(name: str) -> None:
    raise ValueError(name)


_EXACTLY: Final = json.JSONDecoder(parse_float=Decimal, parse_constant=_no_number)


def _exact_loads(data: bytes) -> Any:
    return _EXACTLY.decode(data.decode())


def _row_function(type_: SqlType) -> Callable[[Any], tuple[Any, ...] | None]:
    return _made(type_, lambda names: f"({''.join(name + ', ' for name in names)})")


def _struct_function(type_: SqlType) -> Callable[[Any], Any]:
    keys = [name for name, _ in type_.fields]
    return _made(
        type_,
        lambda names: (
            "{" + ", ".join(f"{key!r}: {name}" for key, name in zip(keys, names, strict=True)) + "}"
        ),
    )


def _made(type_: SqlType, result: Callable[[list[str]], str]) -> Callable[[Any], Any]:
    """Source of one function for these fields: look each up, look at its class, and give the result."""
    scope: dict[str, Any] = {
        "Decimal": Decimal,
        "Unusual": _Unusual,
        "bytes_of": bytes_of,
    }
    names = [f"v{place}" for place in range(len(type_.fields))]
    keys = [name for name, _ in type_.fields]
    lines = ["def read(o):", " if o is None: return None", " if o.__class__ is not dict: raise Unusual"]
    if keys:
        scope["fields"] = _Fields(keys)
        looked_up = ", ".join(f"o[{key!r}]" for key in keys)
        lines += [
            f" try: {', '.join(names)}, = {looked_up},",
            f" except KeyError: {', '.join(names)}, = fields(o)",
        ]
    for name, (_, each) in zip(names, type_.fields, strict=True):
        lines.append(f" if {name} is not None:")
        lines += [f"  {line}" for line in _checks(name, each, scope)]
    lines.append(f" return {result(names)}")
    exec("\n".join(lines), scope)
    function: Callable[[Any], Any] = scope["read"]
    return function


class _Fields:
    """The values for columns of objects that have other names. Records of one topic have few shapes: which name is which column's
    is found once for each."""

    def __init__(self, keys: list[str]) -> None:
        self._keys = keys
        self._shapes: dict[tuple[str, ...], Callable[[dict[str, Any]], Sequence[Any]]] = {}

    def __call__(self, found: dict[str, Any]) -> Sequence[Any]:
        shape = tuple(found)
        values = self._shapes.get(shape)
        if values is None:
            values = self._made(shape)
            if len(self._shapes) < MAX_SHAPES:
                self._shapes[shape] = values
        return values(found)

    def _made(self, shape: tuple[str, ...]) -> Callable[[dict[str, Any]], Sequence[Any]]:
        upper = {name.upper(): name for name in shape}
        names = [key if key in shape else upper.get(key) for key in self._keys]
        if len(names) > 1 and None not in names:
            return itemgetter(*names)
        return lambda found: [None if name is None else found[name] for name in names]


def _checks(name: str, type_: SqlType, scope: dict[str, Any]) -> list[str]:
    match type_.kind:
        case Kind.STRING:
            return [
                f"if {name}.__class__ is not str:",
                f" if {name}.__class__ is not int: raise Unusual",
                f" {name} = str({name})",
            ]
        case Kind.BOOLEAN:
            return [f"if {name}.__class__ is not bool: raise Unusual"]
        case Kind.DOUBLE:
            return [
                f"if {name}.__class__ is not float:",
                f" if {name}.__class__ is not int and {name}.__class__ is not Decimal: raise Unusual",
                f" {name} = float({name})",
            ]
        case Kind.INTEGER | Kind.BIGINT | Kind.DATE | Kind.TIMESTAMP:
            bound = _BOUNDS[type_.kind]
            return [f"if {name}.__class__ is not int or not {-bound} <= {name} < {bound}: raise Unusual"]
        case Kind.TIME:
            return [f"if {name}.__class__ is not int or not 0 <= {name} <= {MILLIS_OF_A_DAY}: raise Unusual"]
        case _:
            convert = f"convert_{name}"
            scope[convert] = _converter(type_)
            return [f"{name} = {convert}({name})"]


def _converter(type_: SqlType) -> Callable[[Any], Any]:
    """Of values that are not None."""
    match type_.kind:
        case Kind.STRUCT:
            return _struct_function(type_)
        case Kind.ARRAY:
            return _array(type_)
        case Kind.MAP:
            return _map(type_)
        case Kind.DECIMAL:
            return lambda value: _decimal(value, type_)
        case Kind.BYTES:
            return _bytes
        case _:
            scope: dict[str, Any] = {"Decimal": Decimal, "Unusual": _Unusual}
            lines = ["def convert(v):", *(f" {line}" for line in _checks("v", type_, scope)), " return v"]
            exec("\n".join(lines), scope)
            function: Callable[[Any], Any] = scope["convert"]
            return function


def _array(type_: SqlType) -> Callable[[Any], Any]:
    assert type_.element is not None
    convert = _converter(type_.element)

    def read(value: Any) -> list[Any]:
        if value.__class__ is not list:
            raise _Unusual
        return [None if each is None else convert(each) for each in value]

    return read


def _map(type_: SqlType) -> Callable[[Any], Any]:
    assert type_.element is not None
    convert = _converter(type_.element)

    def read(value: Any) -> dict[str, Any]:
        if value.__class__ is not dict:
            raise _Unusual
        return {key: None if each is None else convert(each) for key, each in value.items()}

    return read


def _decimal(value: Any, type_: SqlType) -> Decimal:
    if value.__class__ is Decimal:
        return fitted(value, type_)
    if value.__class__ is int:
        return fitted(Decimal(value), type_)
    raise _Unusual


def _bytes(value: Any) -> bytes:
    if value.__class__ is not str:
        raise _Unusual
    return bytes_of(value)
