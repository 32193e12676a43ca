"""Values of rows as ksqlDB's REST API has them in JSON: dates and times as ISO texts, decimals as numbers with all their
decimals."""

from __future__ import annotations

import base64
import math
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from typing import Any, Final

import orjson

from penstock.streams.plan.types import Kind, SqlType

EPOCH: Final = date(1970, 1, 1)
EPOCH_TIME: Final = datetime(1970, 1, 1, tzinfo=UTC)
Convert = Callable[[Any], Any]


def converter(type_: SqlType) -> Convert | None:
    """None: the value is JSON as it is."""
    match type_.kind:
        case Kind.DECIMAL:
            return lambda value: orjson.Fragment(format(value, "f").encode())
        case Kind.DOUBLE:
            return _double
        case Kind.BYTES:
            return lambda value: base64.b64encode(value).decode()
        case Kind.DATE:
            return _date
        case Kind.TIME:
            return _time
        case Kind.TIMESTAMP:
            return _timestamp
        case Kind.ARRAY:
            assert type_.element is not None
            return _of_items(converter(type_.element))
        case Kind.MAP:
            assert type_.element is not None
            return _of_map(converter(type_.element))
        case Kind.STRUCT:
            return _of_struct({name: converter(each) for name, each in type_.fields})
        case _:
            return None


def row_writer(types: list[SqlType]) -> Callable[[tuple[Any, ...]], list[Any]]:
    converters = [(place, found) for place, type_ in enumerate(types) if (found := converter(type_))]

    def write(values: tuple[Any, ...]) -> list[Any]:
        row = list(values)
        for place, convert in converters:
            if row[place] is not None:
                row[place] = convert(row[place])
        return row

    return write


def _double(value: float) -> Any:
    if math.isfinite(value):
        return value
    return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"


def _date(days: int) -> str:
    try:
        return (EPOCH + timedelta(days=days)).isoformat()
    except OverflowError:
        return str(days)


def _time(milliseconds: int) -> str:
    moment = EPOCH_TIME + timedelta(milliseconds=milliseconds)
    return moment.strftime("%H:%M:%S") if not milliseconds % 1000 else moment.strftime("%H:%M:%S.%f")[:-3]


def _timestamp(milliseconds: int) -> str:
    try:
        moment = EPOCH_TIME + timedelta(milliseconds=milliseconds)
    except OverflowError:
        return str(milliseconds)
    return moment.strftime("%Y-%m-%dT%H:%M:%S.") + f"{moment.microsecond // 1000:03d}"


def _of_items(convert: Convert | None) -> Convert | None:
    if convert is None:
        return None
    return lambda items: [None if each is None else convert(each) for each in items]


def _of_map(convert: Convert | None) -> Convert | None:
    if convert is None:
        return lambda entries: {_key(key): value for key, value in entries.items()}
    return lambda entries: {
        _key(key): None if value is None else convert(value) for key, value in entries.items()
    }


def _key(key: Any) -> str:
    return key if isinstance(key, str) else str(key).lower() if isinstance(key, bool) else str(key)


def _of_struct(by_name: dict[str, Convert | None]) -> Convert:
    def convert(fields: dict[str, Any]) -> dict[str, Any]:
        return {
            name: value if value is None or (inner := by_name.get(name)) is None else inner(value)
            for name, value in fields.items()
        }

    return convert
