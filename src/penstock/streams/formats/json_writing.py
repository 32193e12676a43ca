"""Rows as JSON: every column is written, NULL as null, and numbers as Java writes them.

A function is made for the columns. orjson writes all but doubles outside of 0.001 to 10,000,000 and decimals: those are
pieces of text that it takes in as they are.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import Any, Final

import orjson

from penstock.model.java_values import java_float
from penstock.streams.formats.failures import BadRecord
from penstock.streams.formats.values import base64_of, has_kind, is_finite, text_of
from penstock.streams.plan.schema import Column
from penstock.streams.plan.types import Kind, SqlType, struct

Write = Callable[["tuple[Any, ...]"], "bytes | None"]
_WRITTEN_OTHERWISE: Final = (Kind.DOUBLE, Kind.DECIMAL, Kind.BYTES)


def json_writer(columns: Sequence[Column], *, is_wrapped: bool) -> Write:
    """Of rows. A bare value that is NULL gives None, which is a tombstone. BadRecord."""
    whole = struct(*((column.name, column.type) for column in columns))
    convert = _object(whole, lambda place, name: f"o[{place}]") if is_wrapped else None
    bare = None if is_wrapped else (_converter(columns[0].type) or _as_it_is)
    dumps = orjson.dumps

    def encode_object(row: tuple[Any, ...]) -> bytes:
        try:
            return dumps(convert(row))  # type: ignore[misc]
        except (TypeError, ValueError, AttributeError) as error:
            raise BadRecord(f"JSON does not carry it: {error}") from None

    def encode_bare(row: tuple[Any, ...]) -> bytes | None:
        if row[0] is None:
            return None
        try:
            return dumps(bare(row[0]))  # type: ignore[misc]
        except (TypeError, ValueError, AttributeError) as error:
            raise BadRecord(f"JSON does not carry it: {error}") from None

    return encode_object if is_wrapped else encode_bare


def _as_it_is(value: Any) -> Any:
    return value


def _object(type_: SqlType, place_of: Callable[[int, str], str]) -> Callable[[Any], Any]:
    """A function from a row or a struct to a dict that orjson writes as we want it."""
    scope: dict[str, Any] = {"double": _double}
    parts = []
    for place, (name, each) in enumerate(type_.fields):
        value = place_of(place, name)
        if each.kind == Kind.DOUBLE:
            parts.append(
                f"{name!r}: v if (v := {value}).__class__ is float and 1e-3 <= v < 1e7 else double(v)"
            )
        elif (convert := _converter(each)) is not None:
            scope[f"convert{place}"] = convert
            parts.append(f"{name!r}: None if (v := {value}) is None else convert{place}(v)")
        else:
            parts.append(f"{name!r}: {value}")
    exec(f"def make(o): return {{{', '.join(parts)}}}", scope)
    function: Callable[[Any], Any] = scope["make"]
    return function


def _converter(type_: SqlType) -> Callable[[Any], Any] | None:
    """Of values that are not None. None: orjson writes them rightly as they are."""
    if type_.kind == Kind.MAP:
        return _map(type_)
    if type_.kind == Kind.STRUCT:
        return _object(type_, lambda place, name: f"o[{name!r}]")
    if not has_kind(type_, *_WRITTEN_OTHERWISE, Kind.MAP, Kind.STRUCT):
        return None
    if type_.kind == Kind.ARRAY:
        assert type_.element is not None
        convert = _converter(type_.element)
        if convert is None:
            return None
        return lambda value: [None if each is None else convert(each) for each in value]
    return _PIECES[type_.kind]


def _map(type_: SqlType) -> Callable[[Any], Any]:
    assert type_.element is not None
    convert = _converter(type_.element) or _as_it_is
    if type_.key is None or type_.key.kind == Kind.STRING:
        return lambda value: {
            "null" if key is None else key: None if each is None else convert(each)
            for key, each in value.items()
        }
    return lambda value: {
        text_of(key): None if each is None else convert(each) for key, each in value.items()
    }


def _double(value: float | None) -> Any:
    if value is None:
        return None
    if is_finite(value):
        return orjson.Fragment(java_float(float(value)))
    return java_float(value)  # in quotes, as Jackson has it


def _decimal(value: Decimal) -> Any:
    return orjson.Fragment(str(value))


_PIECES: Final[dict[Kind, Callable[[Any], Any]]] = {
    Kind.DOUBLE: _double,
    Kind.DECIMAL: _decimal,
    Kind.BYTES: base64_of,
}
