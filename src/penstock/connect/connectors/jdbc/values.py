"""A value of Connect as its column wants it.

A converter is chosen once for a column, by the schema and by the type that the column really has; most need none.
"""

from __future__ import annotations

import base64
import datetime as dt
from collections.abc import Callable
from decimal import Decimal
from typing import Any, Final
from zoneinfo import ZoneInfo

import orjson
from sqlalchemy import types

from penstock.connect.connectors.jdbc.column_types import POSTGRESQL, SQLITE
from penstock.connect.data.logical import TIMESTAMP_NAME, timestamp_to_ms
from penstock.connect.data.schema import Schema, Type
from penstock.connect.data.structs import Struct

Convert = Callable[[Any], Any]
_UTC: Final = "UTC"


def converter_of(dialect: str, schema: Schema | None, column: Any, zone: ZoneInfo) -> Convert | None:
    """None: the value goes as it is. `column` is SQLAlchemy's type of it."""
    if isinstance(column, types.JSON):
        return json_text
    if schema is None:
        return text_of if isinstance(column, types.String) else _plainly
    if schema.type in (Type.STRUCT, Type.MAP):
        return json_text
    if schema.type is Type.ARRAY:
        return _list_of if isinstance(column, types.ARRAY) else json_text
    if schema.name == TIMESTAMP_NAME:
        return _times(dialect, column, zone)
    if dialect == SQLITE:
        return _for_sqlite(schema)
    if (
        schema.type is Type.BOOLEAN
        and dialect == POSTGRESQL
        and isinstance(column, types.Integer | types.Numeric)
    ):
        return int
    if dialect == POSTGRESQL and schema.type is Type.BOOLEAN and isinstance(column, types.String):
        return text_of
    return None


def _plainly(value: Any) -> Any:
    return json_text(value) if isinstance(value, dict | list | Struct) else value


def text_of(value: Any) -> str:
    """For a column of text: what is no text as JSON."""
    return value if type(value) is str else json_text(value)


def json_text(value: Any) -> str:
    return orjson.dumps(value, default=_plain, option=orjson.OPT_NON_STR_KEYS).decode()


def _plain(value: Any) -> Any:
    if isinstance(value, Struct):
        return dict(value.items())
    if isinstance(value, bytes | bytearray | memoryview):
        return base64.b64encode(value).decode()
    if isinstance(value, Decimal):
        return str(value)
    raise TypeError(f"{type(value).__name__} cannot be told in JSON")


def _list_of(value: Any) -> list[Any]:
    return list(value)


def _times(dialect: str, column: Any, zone: ZoneInfo) -> Convert | None:
    if isinstance(column, types.Integer | types.Numeric) and not isinstance(column, types.DateTime):
        return _ms
    if getattr(column, "timezone", False):
        return _aware
    is_utc = zone.key == _UTC

    def local(value: dt.datetime) -> dt.datetime:
        aware = _aware(value)
        return (aware.astimezone(dt.UTC) if is_utc else aware.astimezone(zone)).replace(tzinfo=None)

    if dialect == SQLITE:
        return lambda value: local(value).isoformat(" ", "milliseconds")
    return local


def _aware(value: dt.datetime) -> dt.datetime:
    return value if value.tzinfo is not None else value.replace(tzinfo=dt.UTC)


def _ms(value: dt.datetime) -> int:
    ms: int = timestamp_to_ms(None, value)  # type: ignore[arg-type]
    return ms


def _for_sqlite(schema: Schema) -> Convert | None:
    """SQLite has no such types."""
    if schema.name is None:
        return None
    return _sqlite_value


def _sqlite_value(value: Any) -> Any:
    if isinstance(value, dt.date | dt.time):
        return value.isoformat()
    return str(value) if isinstance(value, Decimal) else value
