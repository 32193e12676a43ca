"""Values as text: as headers have them, and as Java's `toString` tells them.

text_of       {"id":1,"note":"first"}      Kafka's Values.convertToString: strings inside are quoted, bytes are base64
java_text     Struct{id=1,note=first}      what Kafka's StringConverter writes
"""

from __future__ import annotations

import base64
import datetime as dt
from collections.abc import Mapping
from decimal import Decimal
from typing import Any, Final

from penstock.connect.data.floats import float_text
from penstock.connect.data.logical import (
    DATE,
    EPOCH,
    TIME,
    TIMESTAMP,
    date_to_days,
    time_to_ms,
    timestamp_to_ms,
)
from penstock.connect.data.schema import Schema, Type
from penstock.connect.data.structs import Struct
from penstock.connect.errors import DataError

MAX_DEPTH: Final = 500
_MS_OF_DAY: Final = 86_400_000
_DAYS: Final = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
_MONTHS: Final = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")


def text_of(schema: Schema | None, value: Any) -> str | None:
    """DataError for what has no text."""
    if value is None:
        return None
    try:
        return _text(schema, value, is_inside=False)
    except RecursionError:
        raise DataError("the value is nested too deeply") from None


def java_text(schema: Schema | None, value: Any) -> str:
    try:
        return _java(schema, value)
    except RecursionError:
        raise DataError("the value is nested too deeply") from None


def time_text(value: dt.date | dt.time | dt.datetime) -> str:
    """What is in the first day of 1970 or before it is told as a time of the day, what is at midnight as a date. As
    in Kafka."""
    ms = _ms_of(value)
    when = EPOCH + dt.timedelta(milliseconds=ms)
    if ms < _MS_OF_DAY:
        return when.strftime("%H:%M:%S.") + f"{ms % 1000:03}Z"
    if ms % _MS_OF_DAY == 0:
        return f"{when.year:04}-{when:%m-%d}"
    return f"{when.year:04}-{when:%m-%dT%H:%M:%S.}{ms % 1000:03}Z"


def _ms_of(value: dt.date | dt.time | dt.datetime) -> int:
    if isinstance(value, dt.datetime):
        return timestamp_to_ms(TIMESTAMP, value)
    if isinstance(value, dt.date):
        return date_to_days(DATE, value) * _MS_OF_DAY
    return time_to_ms(TIME, value)


def _scalar(schema: Schema | None, value: Any) -> str | None:
    """Of numbers and booleans, which both forms tell alike."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (int, Decimal)):
        if schema is not None and schema.type in (Type.FLOAT32, Type.FLOAT64):
            return float_text(float(value), is_single=schema.type is Type.FLOAT32)
        return str(value)
    if isinstance(value, float):
        return float_text(value, is_single=schema is not None and schema.type is Type.FLOAT32)
    return None


def _text(schema: Schema | None, value: Any, *, is_inside: bool) -> str:
    if value is None:
        return "null"
    scalar = _scalar(schema, value)
    if scalar is not None:
        return scalar
    if isinstance(value, str):
        return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"' if is_inside else value
    if isinstance(value, (bytes, bytearray, memoryview)):
        said = base64.b64encode(value).decode("ascii")
        return f'"{said}"' if is_inside else said
    if isinstance(value, (dt.date, dt.time)):
        return time_text(value)
    if isinstance(value, (list, tuple)):
        items = schema.items if schema is not None else None
        return "[" + ",".join([_text(items, each, is_inside=True) for each in value]) + "]"
    if isinstance(value, Mapping):
        keys, items = (schema.keys, schema.items) if schema is not None else (None, None)
        pairs = [
            f"{_text(keys, key, is_inside=True)}:{_text(items, each, is_inside=True)}"
            for key, each in value.items()
        ]
        return "{" + ",".join(pairs) + "}"
    if isinstance(value, Struct):
        pairs = [
            f"{_text(None, field.name, is_inside=True)}:{_text(field.schema, value[field.name], is_inside=True)}"
            for field in value.schema.fields
        ]
        return "{" + ",".join(pairs) + "}"
    raise DataError(f"Failed to serialize unexpected value type {type(value).__name__}: {value}")


def _java(schema: Schema | None, value: Any) -> str:
    if value is None:
        return "null"
    scalar = _scalar(schema, value)
    if scalar is not None:
        return scalar
    if isinstance(value, str):
        return value
    if isinstance(value, (dt.date, dt.time)):
        return _java_date(value)
    if isinstance(value, (list, tuple)):
        items = schema.items if schema is not None else None
        return "[" + ", ".join([_java(items, each) for each in value]) + "]"
    if isinstance(value, Mapping):
        keys, items = (schema.keys, schema.items) if schema is not None else (None, None)
        return (
            "{" + ", ".join([f"{_java(keys, key)}={_java(items, each)}" for key, each in value.items()]) + "}"
        )
    if isinstance(value, Struct):
        fields = [
            f"{field.name}={_java_field(field.schema, given)}"
            for field, given in zip(value.schema.fields, value.values, strict=True)
            if given is not None
        ]
        return "Struct{" + ",".join(fields) + "}"
    if isinstance(value, (bytes, bytearray, memoryview)):
        # Java has an address here, which nobody can use.
        return base64.b64encode(value).decode("ascii")
    return str(value)


def _java_field(schema: Schema, value: Any) -> str:
    return _java(schema, value)


def _java_date(value: dt.date | dt.time | dt.datetime) -> str:
    when = EPOCH + dt.timedelta(milliseconds=_ms_of(value))
    return f"{_DAYS[when.weekday()]} {_MONTHS[when.month - 1]} {when:%d %H:%M:%S} UTC {when.year}"
