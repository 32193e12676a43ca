"""Avro, as registry_values.py reads and registry_writing.py writes it."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa

from penstock.arrow.registry_schemas import SchemaText
from penstock.records.columnar.avro_schema import MISSING, AvroField, AvroType, set_logical
from penstock.schemas.avro.nodes import Array, Enum, Fixed, Map, Named, Node, Record, Union
from penstock.schemas.avro.schema import AvroSchema


def avro_type(schema: SchemaText) -> AvroType:
    """ValueError."""
    root = schema.parsed()
    assert isinstance(root, AvroSchema)
    return _Types().of(root.root)


class _Types:
    """From the tree of `schemas.avro` to that of `records.columnar`. A type that is named in two places is one."""

    def __init__(self) -> None:
        self._made: dict[int, AvroType] = {}

    def of(self, node: Node) -> AvroType:
        found = self._made.get(id(node))
        if found is None:
            found = self._made[id(node)] = AvroType(node.type)
            set_logical(found, node.props)
            self._fill(found, node)
        return found

    def _fill(self, found: AvroType, node: Node) -> None:
        if isinstance(node, Named):
            found.name = node.full_name
            found.aliases = tuple(node.alias_names)
        if isinstance(node, Fixed):
            found.size = node.size
        elif isinstance(node, Enum):
            found.symbols, found.default_symbol = tuple(node.symbols), node.default
        elif isinstance(node, Array):
            found.items = self.of(node.items)
        elif isinstance(node, Map):
            found.items = self.of(node.values)
        elif isinstance(node, Union):
            found.branches = tuple(self.of(branch) for branch in node.branches)
        elif isinstance(node, Record):
            found.kind = "record"
            found.fields = tuple(
                AvroField(
                    each.name,
                    self.of(each.type),
                    each.default if each.has_default else MISSING,
                    tuple(each.aliases),
                )
                for each in node.fields.values()
            )


class AvroFormat:
    needs_writers = True

    def __init__(self, schema: SchemaText) -> None:
        from penstock.records.columnar.avro_types import columns_of

        self._schema = avro_type(schema)
        self.type: pa.DataType = columns_of(self._schema).type
        self._made: Any = None

    @property
    def _reader(self) -> Any:
        if (
            self._made is None
        ):  # not on the driver, which needs the type only: compiled code takes a moment to load
            from penstock.records.columnar.avro_columns import AvroReader

            self._made = AvroReader(self._schema)
        return self._made

    def add(self, schema_id: int, writer: SchemaText) -> None:
        self._reader.add(schema_id, avro_type(writer))

    def knows(self, schema_id: int) -> bool:
        return bool(self._reader.knows(schema_id))

    def ids(self, column: pa.BinaryArray) -> Any:
        from penstock.records.columnar.avro_columns import ids_of

        return ids_of(column)

    def read(self, column: pa.BinaryArray, ids: Any) -> Any:
        return self._reader.read(column, ids)


def format_reader(schema: SchemaText) -> AvroFormat:
    return AvroFormat(schema)


def format_writer(schema: SchemaText, kind: pa.DataType, frame: bytes) -> Any:
    """ValueError where the column does not fit."""
    from penstock.records.columnar.avro_encode import AvroWriter

    return AvroWriter(avro_type(schema), kind, frame=frame)


def schema_text_of(kind: pa.DataType, name: str) -> str:
    """ValueError where Avro has no type for it."""
    from penstock.records.columnar.avro_encode import avro_of

    return json.dumps(avro_of(kind, name), separators=(",", ":"))


def full_name(schema: SchemaText) -> str | None:
    return schema.parsed().full_name
