"""Rows from and to what Python programs use.

The kernel has TIMESTAMP, DATE and TIME as numbers, a struct as a dict with every field, a DECIMAL with all its decimals. Programs
have datetime, date and time, may leave fields out, and may give a number where a DECIMAL is wanted. What needs no change is not
touched: most types are the same on both sides.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal, InvalidOperation
from typing import Any, Final

from penstock.streams.library.failures import one_line, unknown
from penstock.streams.plan.schema import Column
from penstock.streams.plan.types import Kind, SqlType

BARE: Final = "value"  # a value of this one column stands for itself, not in an object
EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
EPOCH_DAY: Final = date(1970, 1, 1).toordinal()
DAY_MS: Final = 24 * 3600 * 1000
_MILLISECOND: Final = timedelta(milliseconds=1)
_BOUNDS: Final = {Kind.INTEGER: 1 << 31, Kind.BIGINT: 1 << 63}
Convert = Callable[[Any], Any]


class BadValue(ValueError):
    """A value that does not fit its column."""


def milliseconds_of(moment: datetime) -> int:
    """A datetime without a zone is UTC."""
    return ((moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)) - EPOCH) // _MILLISECOND


def time_milliseconds(moment: time) -> int:
    return (moment.hour * 3600 + moment.minute * 60 + moment.second) * 1000 + moment.microsecond // 1000


# ---------------------------------------------------------------- to the program


def to_python(type_: SqlType) -> Convert | None:
    """None: the value is the same."""
    match type_.kind:
        case Kind.TIMESTAMP:
            return _or_none(lambda value: EPOCH + timedelta(milliseconds=value))
        case Kind.DATE:
            return _or_none(lambda value: date.fromordinal(EPOCH_DAY + value))
        case Kind.TIME:
            return _or_none(lambda value: (EPOCH + timedelta(milliseconds=value)).time())
        case Kind.ARRAY | Kind.MAP:
            assert type_.element is not None
            inner = to_python(type_.element)
            if inner is None:
                return None
            if type_.kind is Kind.ARRAY:
                return _or_none(lambda value: [inner(each) for each in value])
            return _or_none(lambda value: {key: inner(each) for key, each in value.items()})
        case Kind.STRUCT:
            changed = {name: made for name, each in type_.fields if (made := to_python(each)) is not None}
            if not changed:
                return None
            return _or_none(
                lambda value: {
                    name: changed[name](each) if name in changed else each for name, each in value.items()
                }
            )
        case _:
            return None


def _or_none(convert: Convert) -> Convert:
    return lambda value: None if value is None else convert(value)


class RowReader:
    """Values of columns as a dict."""

    def __init__(self, columns: Sequence[Column]) -> None:
        self.names = tuple(column.name for column in columns)
        self._converts = [
            (column.name, made) for column in columns if (made := to_python(column.type)) is not None
        ]

    def __call__(self, values: Sequence[Any]) -> dict[str, Any]:
        return self.changed(dict(zip(self.names, values, strict=True)))

    def changed(self, row: dict[str, Any]) -> dict[str, Any]:
        """The same dict, with Python's types."""
        for name, convert in self._converts:
            row[name] = convert(row[name])
        return row


def plain(columns: Sequence[Column], values: Sequence[Any] | None, *, is_key: bool) -> Any:
    """A key of one column, and a value of the one column `value`, is that column's value; else a dict."""
    if values is None or not columns:
        return None
    row = RowReader(columns)(values)
    return row[columns[0].name] if is_single(columns, is_key=is_key) else row


def is_single(columns: Sequence[Column], *, is_key: bool) -> bool:
    return len(columns) == 1 and (is_key or columns[0].name == BARE)


# ---------------------------------------------------------------- from the program


def from_python(value: Any, type_: SqlType, where: str) -> Any:
    """BadValue says what does not fit, and where."""
    if value is None:
        return None
    try:
        found = _FROM[type_.kind](value, type_, where)
    except (ValueError, OverflowError, InvalidOperation) as error:
        if isinstance(error, BadValue):
            raise
        raise _unfit(value, type_, where, one_line(error)) from None
    return found


def _unfit(value: Any, type_: SqlType, where: str, why: str = "") -> BadValue:
    shown = repr(value)
    shown = shown if len(shown) <= 60 else shown[:57] + "..."
    return BadValue(f"{where} is {type_}, and was given {shown} ({type(value).__name__}){why and ': ' + why}")


def _boolean(value: Any, type_: SqlType, where: str) -> Any:
    if isinstance(value, bool):
        return value
    raise _unfit(value, type_, where)


def _whole(value: Any, type_: SqlType, where: str) -> Any:
    if isinstance(value, bool) or not isinstance(value, int):
        raise _unfit(value, type_, where)
    bound = _BOUNDS[type_.kind]
    if not -bound <= value < bound:
        raise _unfit(value, type_, where, "it is too large")
    return int(value)


def _double(value: Any, type_: SqlType, where: str) -> Any:
    if isinstance(value, bool) or not isinstance(value, (int, float, Decimal)):
        raise _unfit(value, type_, where)
    return float(value)


def _decimal(value: Any, type_: SqlType, where: str) -> Any:
    if isinstance(value, bool) or not isinstance(value, (int, float, Decimal)):
        raise _unfit(value, type_, where)
    number = Decimal(repr(value)) if isinstance(value, float) else Decimal(value)
    found = number.quantize(Decimal(1).scaleb(-type_.scale))
    if found.adjusted() >= type_.precision - type_.scale and found != 0:
        raise _unfit(value, type_, where, "it has too many digits")
    return found


def _string(value: Any, type_: SqlType, where: str) -> Any:
    if isinstance(value, str):
        return str(value)
    raise _unfit(value, type_, where)


def _bytes(value: Any, type_: SqlType, where: str) -> Any:
    if isinstance(value, (bytes, bytearray, memoryview)):
        return bytes(value)
    raise _unfit(value, type_, where)


def _timestamp(value: Any, type_: SqlType, where: str) -> Any:
    if isinstance(value, datetime):
        return milliseconds_of(value)
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    raise _unfit(value, type_, where)


def _date(value: Any, type_: SqlType, where: str) -> Any:
    if isinstance(value, date) and not isinstance(value, datetime):
        return value.toordinal() - EPOCH_DAY
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    raise _unfit(value, type_, where)


def _time(value: Any, type_: SqlType, where: str) -> Any:
    if isinstance(value, time):
        return time_milliseconds(value)
    if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < DAY_MS:
        return value
    raise _unfit(value, type_, where)


def _array(value: Any, type_: SqlType, where: str) -> Any:
    if not isinstance(value, (list, tuple)):
        raise _unfit(value, type_, where)
    assert type_.element is not None
    return [from_python(each, type_.element, f"{where}[{at}]") for at, each in enumerate(value)]


def _map(value: Any, type_: SqlType, where: str) -> Any:
    if not isinstance(value, Mapping):
        raise _unfit(value, type_, where)
    assert type_.element is not None
    assert type_.key is not None
    return {
        from_python(key, type_.key, f"a key of {where}"): from_python(
            each, type_.element, f"{where}[{key!r}]"
        )
        for key, each in value.items()
    }


def _struct(value: Any, type_: SqlType, where: str) -> Any:
    if not isinstance(value, Mapping):
        raise _unfit(value, type_, where)
    known = dict(type_.fields)
    for name in value:
        if name not in known:
            raise BadValue(str(unknown(f"field of {where}", str(name), known)))
    return {name: from_python(value.get(name), each, f"{where}.{name}") for name, each in type_.fields}


_FROM: Final[dict[Kind, Callable[[Any, SqlType, str], Any]]] = {
    Kind.BOOLEAN: _boolean,
    Kind.INTEGER: _whole,
    Kind.BIGINT: _whole,
    Kind.DOUBLE: _double,
    Kind.DECIMAL: _decimal,
    Kind.STRING: _string,
    Kind.BYTES: _bytes,
    Kind.TIMESTAMP: _timestamp,
    Kind.DATE: _date,
    Kind.TIME: _time,
    Kind.ARRAY: _array,
    Kind.MAP: _map,
    Kind.STRUCT: _struct,
}


def values_of(given: Any, columns: Sequence[Column], *, is_key: bool) -> tuple[Any, ...] | None:
    """A row's key or value as a program gives it: a dict, or the value of the only column. BadValue."""
    if given is None or not columns:
        return None
    what = "key" if is_key else "value"
    if isinstance(given, Mapping) and columns[0].type.kind not in (Kind.MAP, Kind.STRUCT):
        named = given
    elif is_single(columns, is_key=is_key):
        return (from_python(given, columns[0].type, f"column {columns[0].name}"),)
    elif isinstance(given, Mapping):
        named = given
    elif isinstance(given, tuple) and len(given) == len(columns):
        named = dict(zip((column.name for column in columns), given, strict=True))
    else:
        names = ", ".join(column.name for column in columns)
        raise BadValue(f"the {what} is a dict of {names}, and was given {given!r}")
    names_known = [column.name for column in columns]
    for name in named:
        if name not in names_known:
            raise BadValue(str(unknown("column", str(name), names_known)))
    return tuple(
        from_python(named.get(column.name), column.type, f"column {column.name}") for column in columns
    )
