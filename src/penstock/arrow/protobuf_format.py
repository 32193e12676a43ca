"""Protobuf, as registry_values.py reads it. protobuf_writing.py has the other direction.

A value is read as the reader's message, whichever schema it was written with: fields are known by their numbers. The schema of
the value is asked only which message the numbers before it mean.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa
from google.protobuf.descriptor import Descriptor

from penstock.arrow.protobuf_writing import ProtobufWriter, proto_text_of
from penstock.arrow.registry_schemas import SchemaText
from penstock.schemas.model import InvalidSchema, InvalidValue
from penstock.schemas.protobuf.schema import ProtobufSchema

MAX_INDEXES: Final = 10
_NOT_FRAMED, _UNKNOWN, _OTHER_MESSAGE, _BROKEN, _TOO_LARGE = range(1, 6)
_REASONS: Final = {
    _NOT_FRAMED: "the value does not begin with the id of a schema",
    _UNKNOWN: "the schema of the value is not known",
    _OTHER_MESSAGE: "the value is another message than the one that is read",
    _BROKEN: "the value is no message of this type",
    _TOO_LARGE: "the value becomes too large",
}
Array = np.ndarray[Any, np.dtype[Any]]


class Found(NamedTuple):
    column: pa.Array
    reasons: Array

    def why(self, row: int) -> str:
        return _REASONS[int(self.reasons[row])]


class ProtobufFormat:
    needs_writers = True

    def __init__(self, schema: SchemaText) -> None:
        from penstock.records.columnar.protobuf_shapes import shape_of

        parsed = protobuf_schema(schema)
        self._descriptor = message_of(parsed, schema.message)
        self._shape = shape_of(self._descriptor)
        self.type: pa.DataType = self._shape.type
        self._writers: dict[int, ProtobufSchema] = {}

    def add(self, schema_id: int, writer: SchemaText) -> None:
        self._writers[schema_id] = protobuf_schema(writer)

    def knows(self, schema_id: int) -> bool:
        return schema_id in self._writers

    def ids(self, column: pa.BinaryArray) -> Array:
        from penstock.records.columnar.avro_columns import ids_of

        return ids_of(column)

    def read(self, column: pa.BinaryArray, ids: Array) -> Found:
        from penstock.records.columnar.avro_columns import values_of
        from penstock.records.columnar.protobuf_columns import read_messages
        from penstock.records.columnar.protobuf_walk import read_indexes

        values = values_of(column)
        paths = np.zeros((values.rows, MAX_INDEXES + 1), dtype=np.int64)
        starts = np.zeros(values.rows, dtype=np.int32)
        read_indexes(values.data, values.ends, (ids >= 0).astype(np.uint8), ids, paths, starts)
        reasons = self._reasons(ids, paths)
        there = (reasons == 0).astype(np.uint8)
        if values.nulls is not None:
            there[values.nulls] = reasons[values.nulls] = 0
        found = read_messages(values.data, starts, values.ends[1:], there, self._shape)
        reasons[found.bad == 1] = _BROKEN
        reasons[found.bad == 2] = _TOO_LARGE
        return Found(found.column, reasons)

    def _reasons(self, ids: Array, paths: Array) -> Array:
        rows = len(ids)
        if rows and bool((ids == ids[0]).all()) and bool((paths == paths[0]).all()):
            return np.full(rows, self._reason(int(ids[0]), paths[0]), dtype=np.uint8)
        kinds, places = np.unique(np.column_stack([ids, paths]), axis=0, return_inverse=True)
        known = [self._reason(int(kind[0]), kind[1:]) for kind in kinds]
        return np.array(known, dtype=np.uint8)[places.reshape(-1)]

    def _reason(self, schema_id: int, path: Array) -> int:
        if schema_id < 0:
            return _NOT_FRAMED
        writer = self._writers.get(schema_id)
        if writer is None:
            return _UNKNOWN
        if path[0] < 0:
            return _BROKEN
        try:
            name = writer.indexes.name(tuple(int(index) for index in path[1 : 1 + int(path[0])]))
        except InvalidValue:
            return _BROKEN
        return 0 if name == self._descriptor.full_name else _OTHER_MESSAGE


def protobuf_schema(schema: SchemaText) -> ProtobufSchema:
    parsed = schema.parsed()
    assert isinstance(parsed, ProtobufSchema)
    return parsed


def message_of(schema: ProtobufSchema, name: str) -> Descriptor:
    """By its full name, or the first. InvalidSchema."""
    wanted = name or schema.full_name
    try:
        if wanted is not None and schema.indexes.of(wanted) is not None:
            return schema.message(wanted)
    except KeyError:
        pass
    raise InvalidSchema(f"there is no message {name}" if name else "there is no message in it")


def format_reader(schema: SchemaText) -> ProtobufFormat:
    return ProtobufFormat(schema)


def format_writer(schema: SchemaText, kind: pa.DataType, frame: bytes) -> ProtobufWriter:
    from penstock.schemas.protobuf.indexes import written

    parsed = protobuf_schema(schema)
    descriptor = message_of(parsed, schema.message)
    path = parsed.indexes.of(descriptor.full_name)
    assert path is not None
    return ProtobufWriter(descriptor, kind, frame + written(path))


def schema_text_of(kind: pa.DataType, name: str) -> str:
    return proto_text_of(kind, name)


def full_name(schema: SchemaText) -> str | None:
    return schema.message or protobuf_schema(schema).full_name
