"""Which type a new column gets, by the schema of its values."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Mapping
from decimal import Decimal
from typing import Any, Final

from penstock.connect.data.logical import DATE_NAME, DECIMAL_NAME, TIME_NAME, TIMESTAMP_NAME, scale_of
from penstock.connect.data.schema import BOOLEAN, FLOAT64, INT64, STRING, Schema, Type
from penstock.connect.errors import DataError

POSTGRESQL, MYSQL, SQLITE = "postgresql", "mysql", "sqlite"

_PLAIN: Final[Mapping[str, Mapping[Type, str]]] = {
    POSTGRESQL: {
        Type.INT8: "SMALLINT", Type.INT16: "SMALLINT", Type.INT32: "INTEGER", Type.INT64: "BIGINT", Type.FLOAT32: "REAL",
        Type.FLOAT64: "DOUBLE PRECISION", Type.BOOLEAN: "BOOLEAN", Type.STRING: "TEXT", Type.BYTES: "BYTEA",
    },
    MYSQL: {
        Type.INT8: "TINYINT", Type.INT16: "SMALLINT", Type.INT32: "INT", Type.INT64: "BIGINT", Type.FLOAT32: "FLOAT",
        Type.FLOAT64: "DOUBLE", Type.BOOLEAN: "TINYINT(1)", Type.STRING: "LONGTEXT", Type.BYTES: "LONGBLOB",
    },
    SQLITE: {
        Type.INT8: "INTEGER", Type.INT16: "INTEGER", Type.INT32: "INTEGER", Type.INT64: "INTEGER", Type.FLOAT32: "REAL",
        Type.FLOAT64: "REAL", Type.BOOLEAN: "INTEGER", Type.STRING: "TEXT", Type.BYTES: "BLOB",
    },
}  # fmt: skip
_LOGICAL: Final[Mapping[str, Mapping[str, str]]] = {
    POSTGRESQL: {DATE_NAME: "DATE", TIME_NAME: "TIME", TIMESTAMP_NAME: "TIMESTAMP"},
    MYSQL: {DATE_NAME: "DATE", TIME_NAME: "TIME(3)", TIMESTAMP_NAME: "DATETIME(3)"},
    SQLITE: {DATE_NAME: "TEXT", TIME_NAME: "TEXT", TIMESTAMP_NAME: "TEXT"},
}
_JSON: Final = {POSTGRESQL: "JSONB", MYSQL: "JSON", SQLITE: "TEXT"}
# MySQL indexes only the beginning of long texts; a key is compared whole.
_MYSQL_KEYS: Final = {Type.STRING: "VARCHAR(255)", Type.BYTES: "VARBINARY(255)"}
_CONTAINERS: Final = (Type.ARRAY, Type.MAP, Type.STRUCT)
CONTAINER: Final = Schema(Type.MAP, is_optional=True, holds_nulls=True)
"""Of objects and lists without a schema."""


def type_of(dialect: str, schema: Schema, *, is_key: bool) -> str:
    """DataError for what no column can hold."""
    if schema.name == DECIMAL_NAME and schema.type is Type.BYTES:
        scale = scale_of(schema)
        return {POSTGRESQL: "DECIMAL", MYSQL: f"DECIMAL(65,{scale})", SQLITE: "NUMERIC"}[dialect]
    if schema.name in _LOGICAL[dialect] and schema.name is not None:
        return _LOGICAL[dialect][schema.name]
    if schema.type in _CONTAINERS:
        if is_key:
            raise DataError(f"{schema.type} cannot be (a part of) a primary key")
        items = schema.items
        if (
            dialect == POSTGRESQL
            and schema.type is Type.ARRAY
            and items is not None
            and items.type not in _CONTAINERS
        ):
            return f"{type_of(dialect, items, is_key=False)}[]"
        return _JSON[dialect]
    if dialect == MYSQL and is_key and schema.type in _MYSQL_KEYS:
        return _MYSQL_KEYS[schema.type]
    return _PLAIN[dialect][schema.type]


def default_of(dialect: str, schema: Schema) -> str | None:
    """The default as a literal; None: there is none that a column can have."""
    value = schema.default
    if value is None or schema.type in _CONTAINERS:
        return None
    if isinstance(value, bool):
        return str(value).lower() if dialect == POSTGRESQL else str(int(value))
    if isinstance(value, int | float | Decimal):
        return str(value)
    if isinstance(value, str):
        # MySQL takes no default for a long text.
        return None if dialect == MYSQL else "'" + value.replace("'", "''") + "'"
    if isinstance(value, dt.datetime):
        return f"'{value.strftime('%Y-%m-%d %H:%M:%S.%f')[:-3]}'"
    if isinstance(value, dt.date | dt.time):
        return f"'{value.isoformat()}'"
    return None


def inferred(values: Iterable[Any]) -> Schema:
    """What values without a schema have in common; text takes all."""
    kinds = {type(value) for value in values if value is not None}
    if not kinds:
        return STRING.optional()
    if kinds <= {bool}:
        return BOOLEAN.optional()
    if kinds <= {int}:
        return INT64.optional()
    if kinds <= {int, float}:
        return FLOAT64.optional()
    if kinds <= {dict, list}:
        return CONTAINER
    return STRING.optional()
