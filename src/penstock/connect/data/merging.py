"""Which schema the elements of an array, or the keys or values of a map, have in common; and the elements by that schema."""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Iterable, Mapping
from decimal import Decimal
from typing import Any, Final

from penstock.connect.data.floats import to_single
from penstock.connect.data.logical import (
    DATE_NAME,
    TIME_NAME,
    TIMESTAMP_NAME,
    date_from_days,
    time_from_ms,
    timestamp_from_ms,
)
from penstock.connect.data.schema import INTEGER_BITS, Schema, Type
from penstock.connect.errors import DataError

_WIDTHS: Final[Mapping[Type, int]] = {
    Type.INT8: 1, Type.INT16: 2, Type.INT32: 3, Type.INT64: 4, Type.FLOAT32: 5, Type.FLOAT64: 6,
}  # fmt: skip
_TIMES: Final = frozenset((DATE_NAME, TIME_NAME, TIMESTAMP_NAME))


class Merging:
    """Elements without a schema (nulls) do not count. Once two do not go together there is none."""

    def __init__(self) -> None:
        self.common: Schema | None = None
        self._is_possible = True

    def add(self, schema: Schema | None) -> None:
        if schema is None or not self._is_possible:
            return
        self.common = schema if self.common is None else merged(self.common, schema)
        self._is_possible = self.common is not None


def merged(one: Schema, other: Schema) -> Schema | None:
    """The wider of two numbers; of one type the last; None when they do not go together."""
    if one.type is other.type:
        return other
    left, right = _WIDTHS.get(one.type), _WIDTHS.get(other.type)
    if left is None or right is None:
        return None
    return one if left > right else other


def aligned(schema: Schema | None, values: Iterable[Any]) -> list[Any]:
    """DataError: a null, or a value that does not become one of this schema."""
    if schema is None:
        return list(values)
    return [_aligned(schema, value) for value in values]


aligned_keys = aligned


def is_number(value: float) -> bool:
    return math.isfinite(value)


def _aligned(schema: Schema, value: Any) -> Any:
    if value is None:
        raise DataError("Unable to convert a null value to a schema that requires a value")
    if schema.name in _TIMES:
        return _time(schema, value)
    if isinstance(value, (dt.date, dt.time)):
        raise DataError(f"Unable to convert {value} to {schema.type.name}")
    if schema.type in INTEGER_BITS:
        return value
    if schema.type is Type.FLOAT32 and not isinstance(value, Decimal):
        return to_single(float(value))
    if schema.type is Type.FLOAT64 and not isinstance(value, Decimal):
        return float(value)
    return value


def _time(schema: Schema, value: Any) -> Any:
    """One kind of time may become another, and a number one: days or milliseconds."""
    is_time = isinstance(value, (dt.date, dt.time))
    if schema.name == DATE_NAME:
        if isinstance(value, dt.datetime):
            return value.date()
        if isinstance(value, dt.time):
            return date_from_days(schema, 0)
        return value if is_time else date_from_days(schema, value)
    if schema.name == TIME_NAME:
        if isinstance(value, dt.datetime):
            return value.time()
        if isinstance(value, dt.time):
            return value
        return dt.time() if is_time else time_from_ms(schema, value)
    if isinstance(value, dt.datetime):
        return value
    if isinstance(value, dt.time):
        return dt.datetime.combine(dt.date(1970, 1, 1), value, dt.UTC)
    return dt.datetime.combine(value, dt.time(), dt.UTC) if is_time else timestamp_from_ms(schema, value)
