"""Kafka Connect's logical types: a type with a name, which is another type in Python.

Decimal    bytes (unscaled, big endian; the scale is a parameter)   decimal.Decimal
Date       int32, days since 1970                                   datetime.date
Time       int32, milliseconds since midnight                       datetime.time
Timestamp  int64, milliseconds since 1970                           datetime.datetime, in UTC
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Mapping
from decimal import (
    MAX_EMAX,
    MIN_EMIN,
    Context,
    Decimal,
    DecimalException,
    Inexact,
    InvalidOperation,
    Overflow,
    Underflow,
)
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from penstock.connect.data.schema import Schema, Type
from penstock.connect.errors import DataError

_PACKAGE: Final = "org.apache.kafka.connect.data."
DECIMAL_NAME: Final = _PACKAGE + "Decimal"
DATE_NAME: Final = _PACKAGE + "Date"
TIME_NAME: Final = _PACKAGE + "Time"
TIMESTAMP_NAME: Final = _PACKAGE + "Timestamp"
SCALE: Final = "scale"

EPOCH: Final = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
_FIRST_DAY: Final = dt.date(1970, 1, 1).toordinal()
_MS_OF_DAY: Final = 86_400_000
# Unscaled values may have any number of digits.
_EXACT: Final = Context(
    prec=100_000, Emax=MAX_EMAX, Emin=MIN_EMIN, traps=[Inexact, InvalidOperation, Overflow, Underflow]
)

DATE: Final = Schema(Type.INT32, name=DATE_NAME, version=1)
TIME: Final = Schema(Type.INT32, name=TIME_NAME, version=1)
TIMESTAMP: Final = Schema(Type.INT64, name=TIMESTAMP_NAME, version=1)


def decimal(scale: int) -> Schema:
    return Schema(Type.BYTES, name=DECIMAL_NAME, version=1, parameters={SCALE: str(scale)})


def scale_of(schema: Schema) -> int:
    text = schema.parameters.get(SCALE)
    if text is None:
        raise DataError("Invalid Decimal schema: scale parameter not found.")
    try:
        return int(text)
    except ValueError:
        raise DataError("Invalid scale parameter found in Decimal schema: " + text) from None


def decimal_to_bytes(schema: Schema, value: Decimal) -> bytes:
    scale = scale_of(schema)
    exponent = value.as_tuple().exponent
    if not isinstance(exponent, int) or -exponent != scale:
        raise DataError(
            f"Decimal value has mismatching scale for given Decimal schema. Schema has scale {scale}, value has scale "
            f"{-exponent if isinstance(exponent, int) else value}."
        )
    unscaled = _unscaled(value, scale)
    bits = unscaled.bit_length() if unscaled >= 0 else (-unscaled - 1).bit_length()
    return unscaled.to_bytes(bits // 8 + 1, "big", signed=True)


def _unscaled(value: Decimal, scale: int) -> int:
    try:
        return int(value.scaleb(scale, _EXACT))
    except DecimalException:
        raise DataError(f"a decimal of scale {scale} cannot be told with all its digits") from None


def decimal_from_bytes(schema: Schema, data: bytes) -> Decimal:
    return decimal_of(int.from_bytes(data, "big", signed=True), scale_of(schema))


def decimal_of(unscaled: int, scale: int) -> Decimal:
    try:
        return Decimal(unscaled).scaleb(-scale, _EXACT)
    except DecimalException:
        raise DataError(
            f"a decimal of scale {scale} with {unscaled.bit_length()} bits cannot be told"
        ) from None


def date_to_days(schema: Schema, value: dt.date) -> int:
    return value.toordinal() - _FIRST_DAY


def date_from_days(schema: Schema, days: int) -> dt.date:
    try:
        return dt.date.fromordinal(days + _FIRST_DAY)
    except (ValueError, OverflowError):
        raise DataError(f"{days} days since 1970 is no date that can be told") from None


def time_to_ms(schema: Schema, value: dt.time) -> int:
    return ((value.hour * 60 + value.minute) * 60 + value.second) * 1000 + value.microsecond // 1000


def time_from_ms(schema: Schema, ms: int) -> dt.time:
    if not 0 <= ms < _MS_OF_DAY:
        raise DataError("Time values must use number of milliseconds greater than 0 and less than 86400000")
    seconds, ms = divmod(ms, 1000)
    minutes, second = divmod(seconds, 60)
    hour, minute = divmod(minutes, 60)
    return dt.time(hour, minute, second, ms * 1000)


def timestamp_to_ms(schema: Schema, value: dt.datetime) -> int:
    """A time without a zone is taken for UTC."""
    aware = value if value.tzinfo is not None else value.replace(tzinfo=dt.UTC)
    return (aware - EPOCH) // dt.timedelta(milliseconds=1)


def timestamp_from_ms(schema: Schema, ms: int) -> dt.datetime:
    try:
        return EPOCH + dt.timedelta(milliseconds=ms)
    except OverflowError:
        raise DataError(f"{ms} ms since 1970 is no time that can be told") from None


class Logical(NamedTuple):
    python: type
    base: Type
    to_base: Callable[[Schema, Any], Any]
    from_base: Callable[[Schema, Any], Any]


LOGICAL: Final[Mapping[str, Logical]] = MappingProxyType({
    DECIMAL_NAME: Logical(Decimal, Type.BYTES, decimal_to_bytes, decimal_from_bytes),
    DATE_NAME: Logical(dt.date, Type.INT32, date_to_days, date_from_days),
    TIME_NAME: Logical(dt.time, Type.INT32, time_to_ms, time_from_ms),
    TIMESTAMP_NAME: Logical(dt.datetime, Type.INT64, timestamp_to_ms, timestamp_from_ms),
})  # fmt: skip


def logical_of(schema: Schema) -> Logical | None:
    return LOGICAL.get(schema.name) if schema.name is not None else None
