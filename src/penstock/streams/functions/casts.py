"""CAST between all types: `caster(from, to)` gives the function for values that are not NULL, or refuses."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable
from decimal import ROUND_DOWN, Decimal
from functools import partial
from typing import Any, Final

from penstock.streams.functions import decimals, iso_times, java_text
from penstock.streams.functions.refusals import FunctionFailed, TypeRefused
from penstock.streams.plan.types import Kind, SqlType

Caster = Callable[[Any], Any]
_K = Kind


def decode_base64(text: str) -> bytes:
    """As Java's basic decoder: the padding at the end may be left out, but not a part of it."""
    if "=" not in text and len(text) % 4 > 1:
        text += "=" * (4 - len(text) % 4)
    if len(text) % 4:
        raise FunctionFailed("Not base64: Input byte array has wrong 4-byte ending unit")
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError) as error:
        raise FunctionFailed(f"Not base64: {error}") from None


def _whole_of_decimal(value: Decimal) -> int:
    return int(value.to_integral_value(ROUND_DOWN, context=decimals.WIDE))


_PLAIN: Final[dict[tuple[Kind, Kind], Caster]] = {
    (_K.INTEGER, _K.BIGINT): lambda value: value,
    (_K.INTEGER, _K.DOUBLE): float,
    (_K.BIGINT, _K.INTEGER): java_text.wrap_int,
    (_K.BIGINT, _K.DOUBLE): float,
    (_K.DECIMAL, _K.INTEGER): lambda value: java_text.wrap_int(_whole_of_decimal(value)),
    (_K.DECIMAL, _K.BIGINT): lambda value: java_text.wrap_long(_whole_of_decimal(value)),
    (_K.DECIMAL, _K.DOUBLE): float,
    (_K.DOUBLE, _K.INTEGER): java_text.int_of_double,
    (_K.DOUBLE, _K.BIGINT): java_text.long_of_double,
    (_K.STRING, _K.BOOLEAN): lambda value: java_text.exact_boolean(value.strip()) is True,
    (_K.STRING, _K.INTEGER): lambda value: java_text.parse_int(value.strip()),
    (_K.STRING, _K.BIGINT): lambda value: java_text.parse_long(value.strip()),
    (_K.STRING, _K.DOUBLE): lambda value: java_text.parse_double(value.strip()),
    (_K.STRING, _K.TIMESTAMP): lambda value: iso_times.parse_timestamp(value.strip()),
    (_K.STRING, _K.TIME): lambda value: iso_times.parse_time(value.strip()),
    (_K.STRING, _K.DATE): lambda value: iso_times.parse_date(value.strip()),
    (_K.STRING, _K.BYTES): lambda value: decode_base64(value.strip()),
    (_K.TIMESTAMP, _K.TIME): lambda value: value % iso_times.DAY_MS,
    (_K.TIMESTAMP, _K.DATE): lambda value: value // iso_times.DAY_MS,
    (_K.DATE, _K.TIMESTAMP): lambda value: value * iso_times.DAY_MS,
}
_TO_DECIMAL: Final[dict[Kind, Callable[..., Decimal]]] = {
    _K.INTEGER: decimals.from_int,
    _K.BIGINT: decimals.from_int,
    _K.DOUBLE: decimals.from_double,
    _K.DECIMAL: decimals.from_decimal,
    _K.STRING: decimals.from_text,
}
_TO_STRING: Final = frozenset(Kind) - {_K.BYTES, _K.STRING}


def caster(given: SqlType, wanted: SqlType) -> Caster:
    found = _caster(given, wanted)
    if found is None:
        raise TypeRefused(f"Cast of {given} to {wanted} is not supported")
    return found


def is_identity(given: SqlType | None, wanted: SqlType) -> bool:
    """The value stays what it is in a row."""
    return given is None or given == wanted or (given.kind is Kind.INTEGER and wanted.kind is Kind.BIGINT)


def _caster(given: SqlType, wanted: SqlType) -> Caster | None:
    if given == wanted:
        return lambda value: value
    if (plain := _PLAIN.get((given.kind, wanted.kind))) is not None:
        return plain
    if wanted.kind is Kind.DECIMAL and given.kind in _TO_DECIMAL:
        decimals.check_parameters(wanted.precision, wanted.scale)
        return partial(_to_decimal, _TO_DECIMAL[given.kind], wanted.precision, wanted.scale)
    if wanted.kind is Kind.STRING and given.kind in _TO_STRING:
        return lambda value: java_text.text_of(value, given)
    if given.kind is not wanted.kind:
        return None
    match given.kind:
        case Kind.ARRAY:
            return _of_arrays(given, wanted)
        case Kind.MAP:
            return _of_maps(given, wanted)
        case Kind.STRUCT:
            return _of_structs(given, wanted)
        case _:
            return None


def _to_decimal(make: Callable[..., Decimal], precision: int, scale: int, value: Any) -> Decimal:
    return make(value, precision, scale)


def _nullable(given: SqlType | None, wanted: SqlType | None) -> Caster | None:
    if given is None or wanted is None:
        return lambda value: value
    inner = _caster(given, wanted)
    return None if inner is None else lambda value: None if value is None else inner(value)


def _of_arrays(given: SqlType, wanted: SqlType) -> Caster | None:
    item = _nullable(given.element, wanted.element)
    return None if item is None else lambda value: [item(each) for each in value]


def _of_maps(given: SqlType, wanted: SqlType) -> Caster | None:
    key, item = _nullable(given.key, wanted.key), _nullable(given.element, wanted.element)
    if key is None or item is None:
        return None
    return lambda value: {key(each): item(inner) for each, inner in value.items()}


def _of_structs(given: SqlType, wanted: SqlType) -> Caster | None:
    """Fields that are only in the wanted type are NULL, those only in the given one go."""
    fields: list[tuple[str, Caster | None]] = []
    for name, type_ in wanted.fields:
        old = given.field(name)
        made = None if old is None else _nullable(old, type_)
        if old is not None and made is None:
            return None
        fields.append((name, made))
    return lambda value: {name: None if made is None else made(value.get(name)) for name, made in fields}
