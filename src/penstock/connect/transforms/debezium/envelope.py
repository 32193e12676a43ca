"""The envelope in which Debezium puts a change."""

from __future__ import annotations

from typing import Any, Final

from penstock.connect.data.schema import Schema, Type
from penstock.connect.data.structs import Struct
from penstock.connect.errors import DataError
from penstock.connect.records import ConnectRecord

PACKAGE: Final = "io.debezium.transforms."
BEFORE, AFTER, SOURCE, OPERATION, TRANSACTION = "before", "after", "source", "op", "transaction"
CREATE, UPDATE, DELETE = "c", "u", "d"
SUFFIX: Final = ".Envelope"


def is_change(record: ConnectRecord) -> bool:
    """Heartbeats, changes of schemas and others are none."""
    schema = record.value_schema
    return schema is not None and schema.name is not None and schema.name.endswith(SUFFIX)


def of_type(row: Struct, name: str, wanted: Type) -> Any:
    """The value of a field that must have this type. DataError."""
    field = row.schema.field(name)
    if field is None:
        raise DataError(f"{name} is not a valid field name")
    if field.schema.type is not wanted:
        raise DataError(f"Field '{name}' is not of type {wanted.name}")
    return row.values[field.index]


def bare_optional(schema: Schema) -> Schema:
    """Optional and without its default."""
    return schema.with_(is_optional=True, default=None)
