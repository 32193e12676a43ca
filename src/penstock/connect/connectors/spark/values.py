"""Arrow's columns as Connect's schemas and values.

Spark's timestamps have microseconds and Connect's milliseconds: the rest is cut off where a converter writes them. Types that
Connect does not have (intervals, and whatever comes) are text.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa

from penstock.connect.data.logical import DATE, TIMESTAMP, decimal
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
    map_of,
    struct_of,
)
from penstock.connect.data.structs import Struct

Convert = Callable[[Any], Any]
_SCALARS = (
    (pa.types.is_boolean, BOOLEAN), (pa.types.is_int8, INT8), (pa.types.is_int16, INT16), (pa.types.is_int32, INT32),
    (pa.types.is_int64, INT64), (pa.types.is_float32, FLOAT32), (pa.types.is_float64, FLOAT64), (pa.types.is_string, STRING),
    (pa.types.is_large_string, STRING), (pa.types.is_binary, BYTES), (pa.types.is_large_binary, BYTES), (pa.types.is_date, DATE),
    (pa.types.is_timestamp, TIMESTAMP),
)  # fmt: skip


class Rows:
    """Of one Arrow schema."""

    def __init__(self, schema: pa.Schema) -> None:
        self.arrow = schema
        kinds = [_kind(field) for field in schema]
        self.schema = struct_of(
            None, [(field.name, kind) for field, (kind, _) in zip(schema, kinds, strict=True)]
        )
        self._converts = [convert for _, convert in kinds]

    def structs(self, table: pa.Table) -> list[Struct]:
        columns = [
            values if convert is None else [None if value is None else convert(value) for value in values]
            for values, convert in zip(map(_listed, table.columns), self._converts, strict=True)
        ]
        make, schema = Struct.trusted, self.schema
        return [make(schema, list(row)) for row in zip(*columns, strict=True)]


def _listed(column: Any) -> list[Any]:
    found: list[Any] = column.to_pylist(maps_as_pydicts="lossy")
    return found


def _turned(value: Any, turn: Convert | None) -> Any:
    return value if value is None or turn is None else turn(value)


def _kind(field: pa.Field) -> tuple[Schema, Convert | None]:
    schema, convert = _of_type(field.type, field.nullable)
    return (schema.optional() if field.nullable else schema), convert


def _of_type(kind: pa.DataType, is_optional: bool) -> tuple[Schema, Convert | None]:
    for is_it, schema in _SCALARS:
        if is_it(kind):
            return schema, None
    if pa.types.is_decimal(kind):
        return decimal(kind.scale), None
    if pa.types.is_struct(kind):
        inner = [_kind(field) for field in kind]
        made = struct_of(None, [(field.name, each) for field, (each, _) in zip(kind, inner, strict=True)])
        made = made.optional() if is_optional else made
        names = [(field.name, convert) for field, (_, convert) in zip(kind, inner, strict=True)]

        def to_struct(value: dict[str, Any]) -> Struct:
            return Struct.trusted(
                made,
                [_turned(value[name], turn) for name, turn in names],
            )

        return made, to_struct
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        items, turn = _kind(kind.value_field)
        if turn is None:
            return array(items), None
        return array(items), lambda value: [_turned(one, turn) for one in value]
    if pa.types.is_map(kind):
        keys, _ = _kind(kind.key_field)
        items, turn = _kind(kind.item_field)
        if turn is None:
            return map_of(keys, items), None
        return map_of(keys, items), lambda value: {name: _turned(one, turn) for name, one in value.items()}
    return STRING, str
