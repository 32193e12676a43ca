"""A row's columns as fields of a struct, and their values as Connect has them."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import Any, Final, NamedTuple
from zoneinfo import ZoneInfo

from sqlalchemy import types
from sqlalchemy.dialects import mysql, postgresql

from penstock.connect.connectors.jdbc.column_types import MYSQL, POSTGRESQL
from penstock.connect.data.logical import DATE, TIME, TIMESTAMP, decimal
from penstock.connect.data.schema import (
    BOOLEAN,
    BYTES,
    FLOAT32,
    FLOAT64,
    INT8,
    INT16,
    INT32,
    INT64,
    STRING,
    Schema,
    array,
)
from penstock.connect.errors import DataError

Read = Callable[[Any], Any]
UNBOUNDED_SCALE: Final = 38
"""Of NUMERIC without a scale: more digits behind the point are refused."""
_EIGHT_BYTES_DIGITS: Final = 18
_MIDNIGHT: Final = dt.datetime(1970, 1, 1)


class SourceColumn(NamedTuple):
    name: str
    schema: Schema
    read: Read | None
    """Of a value that is not null; None: it is what the schema says already."""


def column_of(name: str, kind: Any, *, is_nullable: bool, mapping: str, zone: ZoneInfo) -> SourceColumn:
    """`kind` is SQLAlchemy's type."""
    schema, read = _of_type(kind, mapping, zone)
    return SourceColumn(name, schema.optional() if is_nullable else schema, read)


def _of_type(kind: Any, mapping: str, zone: ZoneInfo) -> tuple[Schema, Read | None]:
    if isinstance(kind, types.ARRAY):
        return _array(kind, mapping, zone)
    if isinstance(kind, types.Boolean):
        return BOOLEAN, bool
    if isinstance(kind, types.Integer):
        return _integer(kind), None
    if isinstance(kind, mysql.YEAR):
        return INT32, None
    if isinstance(kind, types.Float):
        return (FLOAT32 if isinstance(kind, types.REAL | mysql.FLOAT) else FLOAT64), float
    if isinstance(kind, types.Numeric):
        return _numeric(kind, mapping)
    if isinstance(kind, types.DateTime):
        return TIMESTAMP, _time_reader(kind, zone)
    if isinstance(kind, types.Date):
        return DATE, _date
    if isinstance(kind, types.Time):
        return TIME, _time
    if isinstance(kind, types.LargeBinary | types.BINARY | types.VARBINARY | postgresql.BYTEA | mysql.BIT):
        return BYTES, bytes
    return STRING, _text


def _integer(kind: Any) -> Schema:
    is_unsigned = bool(getattr(kind, "unsigned", False))
    if isinstance(kind, mysql.TINYINT):
        return INT16 if is_unsigned else INT8
    if isinstance(kind, types.SmallInteger):
        return INT32 if is_unsigned else INT16
    if isinstance(kind, types.BigInteger):
        return INT64
    return INT64 if is_unsigned else INT32


def _numeric(kind: Any, mapping: str) -> tuple[Schema, Read | None]:
    precision, scale = kind.precision, kind.scale
    if (
        mapping != "none"
        and precision is not None
        and scale is not None
        and scale <= 0
        and precision <= _EIGHT_BYTES_DIGITS
    ):
        schema = INT64 if precision > 9 else INT32 if precision > 4 else INT16 if precision > 2 else INT8
        return schema, int
    if mapping == "best_fit_eager_double" and (scale is None or scale > 0):
        return FLOAT64, float
    if mapping == "best_fit" and precision is not None and scale and precision <= _EIGHT_BYTES_DIGITS:
        return FLOAT64, float
    digits = UNBOUNDED_SCALE if scale is None and precision is None else scale or 0
    unit = Decimal(1).scaleb(-digits)

    def read(value: Any) -> Decimal:
        exact = value if isinstance(value, Decimal) else Decimal(str(value))
        if not exact.is_finite():
            raise DataError(f"{exact} is no number that a Decimal can tell")
        # More digits than the context of decimals has would be refused.
        if exact.as_tuple().exponent == -digits:
            return exact
        _, numbers, exponent = exact.as_tuple()
        assert isinstance(exponent, int)
        if -exponent > digits and any(numbers[exponent + digits :]):
            raise DataError(f"{exact} has more than {digits} digits behind the point")
        return exact.quantize(unit) if len(numbers) + exponent + digits <= 28 else _widened(exact, digits)

    return decimal(digits), read


def _widened(value: Decimal, digits: int) -> Decimal:
    sign, numbers, exponent = value.as_tuple()
    assert isinstance(exponent, int)
    missing = exponent + digits
    return Decimal((sign, numbers + (0,) * missing if missing >= 0 else numbers[:missing], -digits))


def _array(kind: Any, mapping: str, zone: ZoneInfo) -> tuple[Schema, Read | None]:
    schema, read = _of_type(kind.item_type, mapping, zone)
    for _ in range((kind.dimensions or 1) - 1):
        schema, read = array(schema.optional()), _each(read)
    return array(schema.optional()), _each(read)


def _each(read: Read | None) -> Read:
    if read is None:
        return list
    one = read
    return lambda values: [None if value is None else one(value) for value in values]


def _time_reader(kind: Any, zone: ZoneInfo) -> Read:
    # MySQL's TIMESTAMP comes in the zone of the session, which is UTC.
    own = ZoneInfo("UTC") if isinstance(kind, mysql.TIMESTAMP) else zone
    return lambda value: instant_of(value, own)


def instant_of(value: Any, zone: ZoneInfo) -> dt.datetime:
    """In UTC, of what drivers give: a time, text, or milliseconds. DataError."""
    if isinstance(value, str):
        try:
            value = dt.datetime.fromisoformat(value)
        except ValueError:
            raise DataError(f"{value!r} is no time") from None
    if isinstance(value, int | float):
        return dt.datetime.fromtimestamp(0, dt.UTC) + dt.timedelta(milliseconds=value)
    if not isinstance(value, dt.datetime):
        raise DataError(f"{value!r} is no time")
    aware = value if value.tzinfo is not None else value.replace(tzinfo=zone)
    return aware.astimezone(dt.UTC)


def _date(value: Any) -> dt.date:
    if isinstance(value, dt.datetime):
        return value.date()
    return value if isinstance(value, dt.date) else dt.date.fromisoformat(str(value))


def _time(value: Any) -> dt.time:
    if isinstance(value, dt.timedelta):  # MySQL's TIME is a span
        if not dt.timedelta() <= value < dt.timedelta(days=1):
            raise DataError(f"{value} is no time of a day")
        return (_MIDNIGHT + value).time()
    found = value if isinstance(value, dt.time) else dt.time.fromisoformat(str(value))
    return found.replace(tzinfo=None)


def _text(value: Any) -> str:
    if isinstance(value, str):
        return value
    return (
        bytes(value).decode("utf-8", "replace")
        if isinstance(value, bytes | bytearray | memoryview)
        else str(value)
    )


def columns_of_query(
    family: str, description: Sequence[Any], rows: Sequence[Sequence[Any]], mapping: str, zone: ZoneInfo
) -> list[SourceColumn]:
    """Of a query, which has no columns that could be looked up: what the driver says of them, or the first rows show."""
    found = []
    for place, told in enumerate(description):
        kind = _kind_of(family, told)
        if kind is not None:
            found.append(column_of(told[0], kind, is_nullable=True, mapping=mapping, zone=zone))
            continue
        schema, read = _of_value([row[place] for row in rows if row[place] is not None])
        found.append(SourceColumn(told[0], schema.optional(), read))
    return found


# By the numbers of PostgreSQL's types (pg_type.oid), and of MySQL's protocol.
_POSTGRESQL_KINDS: Final = {
    16: types.Boolean(), 17: postgresql.BYTEA(), 20: types.BigInteger(), 21: types.SmallInteger(), 23: types.Integer(),
    700: types.REAL(), 701: types.Float(), 1082: types.Date(), 1083: types.Time(), 1114: types.DateTime(),
    1184: types.DateTime(timezone=True),
}  # fmt: skip
_MYSQL_KINDS: Final = {
    1: mysql.TINYINT(), 2: types.SmallInteger(), 3: types.Integer(), 4: mysql.FLOAT(), 5: types.Float(), 7: mysql.TIMESTAMP(),
    8: types.BigInteger(), 9: types.Integer(), 10: types.Date(), 11: types.Time(), 12: types.DateTime(), 13: mysql.YEAR(),
}  # fmt: skip


def _kind_of(family: str, told: Sequence[Any]) -> Any:
    """SQLAlchemy's type of a driver's description: name, code, …, precision, scale."""
    code = told[1]
    if family == POSTGRESQL:
        if code == 1700:
            return types.Numeric(told[4], told[5])
        return _POSTGRESQL_KINDS.get(code, types.Text())
    if family == MYSQL:
        if code in (0, 246):
            return types.Numeric(told[4], told[5])
        return _MYSQL_KINDS.get(code)
    return None


def _of_value(sample: Sequence[Any]) -> tuple[Schema, Read | None]:
    kinds = {type(value) for value in sample}
    if kinds and kinds <= {bool}:
        return BOOLEAN, None
    if kinds and kinds <= {int}:
        return INT64, None
    if kinds and kinds <= {int, float}:
        return FLOAT64, float
    if kinds and kinds <= {bytes, memoryview, bytearray}:
        return BYTES, bytes
    return STRING, _text
