"""Which columns an Avro schema becomes: the types that Spark's `from_avro` gives.

A union with null is the other branch, nullable; [int, long] is a long and [float, double] a double; another union is a struct
with a field for each branch but null: member0, member1, … A date, a timestamp of milli- or microseconds (local ones
without a time zone) and a decimal of up to 38 digits are what they say; other logical types are the numbers, texts and
bytes that they are written as.
"""

from __future__ import annotations

from typing import Final

import pyarrow as pa

from penstock.records.columnar import tree_layout as k
from penstock.records.columnar.avro_schema import AvroType, UnreadableSchema
from penstock.records.columnar.tree_columns import MAX_COLUMNS, Column

_STORAGE: Final = {
    "null": (k.NOTHING, pa.null()),
    "boolean": (k.BYTE, pa.bool_()),
    "int": (k.FOUR, pa.int32()),
    "long": (k.EIGHT, pa.int64()),
    "float": (k.FOUR, pa.float32()),
    "double": (k.EIGHT, pa.float64()),
    "bytes": (k.VARIABLE, pa.binary()),
    "fixed": (k.VARIABLE, pa.binary()),
    "string": (k.VARIABLE, pa.string()),
    "enum": (k.VARIABLE, pa.string()),
}
_LOGICAL: Final = {
    "date": pa.date32(),
    "timestamp-millis": pa.timestamp("us", tz="UTC"),
    "timestamp-micros": pa.timestamp("us", tz="UTC"),
    "local-timestamp-millis": pa.timestamp("us"),
    "local-timestamp-micros": pa.timestamp("us"),
}
_NUMBERS: Final = {frozenset({"int", "long"}): "long", frozenset({"float", "double"}): "double"}


def branches_of(union: AvroType) -> tuple[AvroType, ...]:
    """Those that need a column: one for which no struct is needed, several for the members of one."""
    others = tuple(each for each in union.branches if each.kind != "null")
    if len(others) == 2 and not any(each.logical for each in others):
        wider = _NUMBERS.get(frozenset(each.kind for each in others))
        if wider is not None:
            return (AvroType(wider),)
    return others


def columns_of(schema: AvroType) -> Column:
    """UnreadableSchema for a type that is within itself, which no column can be."""
    return _Columns().make(schema, -1)


class _Columns:
    def __init__(self) -> None:
        self._count = 0
        self._open: list[AvroType] = []

    def make(self, schema: AvroType, parent: int) -> Column:
        if schema in self._open:
            raise UnreadableSchema(
                f"{schema.name} is within itself, and a column cannot be; "
                "give a reader's schema without that field"
            )
        if schema.kind == "union":
            return self._union(schema, parent)
        if self._count >= MAX_COLUMNS:
            raise UnreadableSchema(f"the schema has more than {MAX_COLUMNS:,} columns")
        column = Column(self._count, k.NOTHING, pa.null(), parent)
        self._count += 1
        self._open.append(schema)
        if schema.kind == "record":
            column.storage = k.STRUCT
            column.children = [self.make(field.type, column.number) for field in schema.fields]
            names = [field.name for field in schema.fields]
            column.type = _struct(names, column.children)
        elif schema.kind == "array":
            column.storage = k.LIST
            column.children = [self.make(schema.element, column.number)]
            column.type = pa.list_(pa.field("element", column.children[0].type))
        elif schema.kind == "map":
            column.storage = k.LIST
            column.children = [self._key(column.number), self.make(schema.element, column.number)]
            column.type = pa.map_(pa.string(), column.children[1].type)
        elif schema.logical == "decimal":
            column.storage, column.type = k.SIXTEEN, pa.decimal128(schema.precision, schema.scale)
        else:
            column.storage, column.type = _STORAGE[schema.kind]
            column.type = _LOGICAL.get(schema.logical, column.type)
        self._open.pop()
        return column

    def _union(self, schema: AvroType, parent: int) -> Column:
        branches = branches_of(schema)
        if len(branches) == 1:
            return self.make(branches[0], parent)
        if not branches:
            return self.make(AvroType("null"), parent)
        column = Column(self._count, k.STRUCT, pa.null(), parent)
        self._count += 1
        column.children = [self.make(each, column.number) for each in branches]
        column.type = _struct([f"member{number}" for number in range(len(branches))], column.children)
        return column

    def _key(self, parent: int) -> Column:
        key = Column(self._count, k.VARIABLE, pa.string(), parent)
        self._count += 1
        return key


def _struct(names: list[str], children: list[Column]) -> pa.DataType:
    return pa.struct([pa.field(name, child.type) for name, child in zip(names, children, strict=True)])
