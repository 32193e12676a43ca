"""Values become what orjson writes, by functions that are made once for a schema.

A struct whose fields all have a value of the usual Python type is one `dict(zip(…))` and a call for each field that JSON has no
form of (bytes, times, decimals); anything else is looked at field by field.
"""

from __future__ import annotations

import binascii
import datetime as dt
import json
import math
from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import Any, Final, NamedTuple

import orjson

from penstock.connect.converters.either import kind_of
from penstock.connect.data.floats import shortest
from penstock.connect.data.logical import (
    DATE_NAME,
    DECIMAL_NAME,
    TIME_NAME,
    TIMESTAMP_NAME,
    date_to_days,
    decimal_to_bytes,
    time_to_ms,
    timestamp_to_ms,
)
from penstock.connect.data.schema import INTEGER_BITS, Schema, Type
from penstock.connect.data.structs import Struct
from penstock.connect.errors import DataError
from penstock.model.java_values import java_float

Write = Callable[[Any], Any]

_LONG: Final = range(-(1 << 63), 1 << 63)
# What orjson writes by itself and Kafka refuses, or writes in another form.
_OPTIONS: Final = orjson.OPT_PASSTHROUGH_DATETIME | orjson.OPT_PASSTHROUGH_DATACLASS
_STRICT: Final = _OPTIONS | orjson.OPT_STRICT_INTEGER
_USUAL: Final[Mapping[Type, type]] = {
    Type.INT8: int, Type.INT16: int, Type.INT32: int, Type.INT64: int, Type.FLOAT32: float, Type.FLOAT64: float,
    Type.BOOLEAN: bool, Type.STRING: str, Type.BYTES: bytes, Type.ARRAY: list, Type.MAP: dict, Type.STRUCT: Struct,
}  # fmt: skip
_USUAL_LOGICAL: Final[Mapping[str, type]] = {
    DECIMAL_NAME: Decimal, DATE_NAME: dt.date, TIME_NAME: dt.time, TIMESTAMP_NAME: dt.datetime,
}  # fmt: skip


class Form(NamedTuple):
    is_numeric: bool = False
    """Decimals are numbers and not base64 of their bytes."""
    replaces_null: bool = True
    """By the default."""


def writer_of(schema: Schema, form: Form) -> Write:
    """Of values that may be None."""
    write = _present(schema, form)
    if schema.default is not None and form.replaces_null:
        default = write(schema.default)
        return lambda value: default if value is None else write(value)
    if schema.is_optional:
        return lambda value: None if value is None else write(value)

    def write_required(value: Any) -> Any:
        if value is None:
            raise DataError(
                "Conversion error: null value for field that is required and has no default value"
            )
        return write(value)

    return write_required


def dumped(value: Any) -> bytes:
    """Of what a writer made."""
    try:
        return orjson.dumps(value, option=orjson.OPT_STRICT_INTEGER)
    except TypeError:  # whole numbers of more than 53 bits among others
        _check_integers(value)
    try:
        return orjson.dumps(value)
    except TypeError:
        return _dumped_slowly(value)


def _check_integers(value: Any) -> None:
    """A struct's are not looked at one by one on their way."""
    waiting = [value]
    while waiting:
        each = waiting.pop()
        if isinstance(each, dict):
            waiting += each.values()
        elif isinstance(each, list):
            waiting += each
        elif isinstance(each, int) and each not in _LONG:
            raise DataError(f"{each} is no number of 64 bits")


def dumped_without_schema(value: Any) -> bytes:
    try:
        data = orjson.dumps(value, option=_STRICT)
    except TypeError:  # whole numbers of more than 53 bits among others
        return dumped(plain(value))
    if b"null" in data and _has_no_number(value):  # orjson writes null for it
        return dumped(plain(value))
    return data


def _has_no_number(value: Any) -> bool:
    """NaN or an infinity among its floats."""
    if isinstance(value, float):
        return not math.isfinite(value)
    if isinstance(value, dict):
        value = value.values()
    elif not isinstance(value, (list, tuple)):
        return False
    return any(_has_no_number(each) for each in value if isinstance(each, (float, dict, list, tuple)))


def plain(value: Any) -> Any:
    """A value without a schema, for orjson. DataError where Connect has no type for it."""
    if value is None or isinstance(value, (str, bool)):
        return value
    if isinstance(value, int):
        if value not in _LONG:
            raise DataError(
                f"{value} is no number of 64 bits, and does not have a corresponding schema type."
            )
        return value
    if isinstance(value, float):
        return _double(value)
    if isinstance(value, (bytes, bytearray, memoryview)):
        return _base64(value)
    if isinstance(value, (list, tuple)):
        return [plain(each) for each in value]
    if isinstance(value, Mapping):
        if all(isinstance(key, str) for key in value):
            return {key: plain(each) for key, each in value.items()}
        return [[plain(key), plain(each)] for key, each in value.items()]
    if isinstance(value, Struct):
        raise DataError("Mismatching schema.")
    raise DataError(f"Python {kind_of(value)} does not have corresponding schema type.")


def _dumped_slowly(value: Any) -> bytes:
    """Halves of characters (surrogates), and what is nested deeper than orjson goes."""
    try:
        return json.dumps(value, separators=(",", ":"), default=_raw).encode()
    except (TypeError, ValueError, RecursionError) as error:
        raise DataError(
            f"Converting Kafka Connect data to byte[] failed due to serialization error: {error}"
        ) from None


def _raw(value: Any) -> Any:
    if isinstance(value, orjson.Fragment):
        return json.loads(value.contents)
    raise TypeError(f"{kind_of(value)} is not JSON")


def _present(schema: Schema, form: Form) -> Write:
    logical = _LOGICAL.get(schema.name) if schema.name is not None else None
    if logical is not None:
        return logical(schema, form)
    if schema.type in INTEGER_BITS:
        return _integer(schema.type)
    if schema.type is Type.STRUCT:
        return _struct(schema, form)
    if schema.type is Type.ARRAY:
        return _array(schema, form)
    if schema.type is Type.MAP:
        return _map(schema, form)
    return _SCALARS[schema.type]


def _wrong(type_: Type, value: Any) -> DataError:
    return DataError(f"Invalid type for {type_.name}: {kind_of(value)}")


def _integer(type_: Type) -> Write:
    bits = INTEGER_BITS[type_]
    low, high = -(1 << (bits - 1)), (1 << (bits - 1)) - 1

    def write(value: Any) -> Any:
        if not isinstance(value, int) or isinstance(value, bool):
            raise _wrong(type_, value)
        if not low <= value <= high:
            raise DataError(f"{value} does not fit {type_.name}")
        return value

    return write


def _checked(type_: Type, kind: type) -> Write:
    def write(value: Any) -> Any:
        if not isinstance(value, kind):
            raise _wrong(type_, value)
        return value

    return write


def _double(value: Any) -> Any:
    """In the digits of Java: a key must have the same bytes whoever writes it."""
    if isinstance(value, bool) or not isinstance(value, (float, int)):
        raise _wrong(Type.FLOAT64, value)
    number = float(value)
    if 1e-3 <= number < 1e7 or -1e7 < number <= -1e-3 or number == 0:
        return number
    return _number_text(java_float(number)) if math.isfinite(number) else java_float(number)


def _single(value: Any) -> Any:
    if isinstance(value, bool) or not isinstance(value, (float, int)):
        raise _wrong(Type.FLOAT32, value)
    return _double(shortest(float(value)))


def _number_text(text: str) -> Any:
    return orjson.Fragment(text)


def _base64(value: Any) -> str:
    if not isinstance(value, (bytes, bytearray, memoryview)):
        raise DataError(f"Invalid type for bytes type: {kind_of(value)}")
    return binascii.b2a_base64(value, newline=False).decode("ascii")


_SCALARS: Final[Mapping[Type, Write]] = {
    Type.FLOAT32: _single, Type.FLOAT64: _double, Type.BYTES: _base64,
    Type.BOOLEAN: _checked(Type.BOOLEAN, bool), Type.STRING: _checked(Type.STRING, str),
}  # fmt: skip


def _is_plain(schema: Schema) -> bool:
    """Whether a value of the usual type is written as it is."""
    return schema.name not in _LOGICAL and (
        schema.type in INTEGER_BITS or schema.type in (Type.BOOLEAN, Type.STRING)
    )


def _struct(schema: Schema, form: Form) -> Write:
    names = [field.name for field in schema.fields]
    writers = [writer_of(field.schema, form) for field in schema.fields]
    usual = tuple(
        _USUAL_LOGICAL.get(field.schema.name or "") or _USUAL[field.schema.type] for field in schema.fields
    )
    special = [
        (field.name, field.index, _present(field.schema, form))
        for field in schema.fields
        if not _is_plain(field.schema)
    ]

    def write(value: Any) -> Any:
        if not isinstance(value, Struct):
            raise _wrong(Type.STRUCT, value)
        if value.schema is not schema and value.schema != schema:
            raise DataError("Mismatching schema.")
        values = value.values
        if tuple(map(type, values)) != usual:
            return {name: each(given) for name, each, given in zip(names, writers, values, strict=True)}
        made = dict(zip(names, values, strict=True))
        for name, index, each in special:
            made[name] = each(values[index])
        return made

    return write


def _array(schema: Schema, form: Form) -> Write:
    write_item = writer_of(schema.items, form) if schema.items is not None else plain
    is_plain = schema.items is not None and _is_plain(schema.items)
    usual = {_USUAL[schema.items.type]} if schema.items is not None else set()

    def write(value: Any) -> Any:
        if not isinstance(value, (list, tuple)):
            raise _wrong(Type.ARRAY, value)
        if (
            is_plain
            and schema.items is not None
            and schema.items.type in (Type.STRING, Type.BOOLEAN)
            and (set(map(type, value)) == usual)
        ):
            return value
        return [write_item(each) for each in value]

    return write


def _map(schema: Schema, form: Form) -> Write:
    write_key = writer_of(schema.keys, form) if schema.keys is not None else plain
    write_item = writer_of(schema.items, form) if schema.items is not None else plain
    is_object = schema.keys is not None and schema.keys.type is Type.STRING

    def write(value: Any) -> Any:
        if not isinstance(value, Mapping):
            raise _wrong(Type.MAP, value)
        if not is_object:
            return [[write_key(key), write_item(each)] for key, each in value.items()]
        made = {}
        for key, each in value.items():
            said = write_key(key)
            made["null" if said is None else said] = write_item(each)
        return made

    return write


def _decimal(schema: Schema, form: Form) -> Write:
    def write(value: Any) -> Any:
        if not isinstance(value, Decimal) or not value.is_finite():
            raise DataError(f"Invalid type for Decimal, expected BigDecimal but was {kind_of(value)}")
        if form.is_numeric:
            return _number_text(str(value))
        return _base64(decimal_to_bytes(schema, value))

    return write


def _time(name: str, kind: type, to_base: Callable[[Schema, Any], int]) -> Callable[[Schema, Form], Write]:
    def make(schema: Schema, form: Form) -> Write:
        def write(value: Any) -> Any:
            if not isinstance(value, kind) or (kind is dt.date and isinstance(value, dt.datetime)):
                raise DataError(f"Invalid type for {name}, expected Date but was {kind_of(value)}")
            return to_base(schema, value)

        return write

    return make


_LOGICAL: Final[Mapping[str | None, Callable[[Schema, Form], Write]]] = {
    DECIMAL_NAME: _decimal,
    DATE_NAME: _time("Date", dt.date, date_to_days),
    TIME_NAME: _time("Time", dt.time, time_to_ms),
    TIMESTAMP_NAME: _time("Timestamp", dt.datetime, timestamp_to_ms),
}
