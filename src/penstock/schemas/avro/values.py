"""Values by an Avro schema, to and from JSON.

fastavro reads them where that is safe (see `decoding`). They are written here: to check a value, for a message that names the
place, and to choose the branches of unions is nearly all the work.
"""

from __future__ import annotations

import io
import struct
from typing import Any

import fastavro
from fastavro.read import SchemaResolutionError

from penstock.schemas.avro.decoding import Reading, double
from penstock.schemas.avro.encoding import Encoder
from penstock.schemas.avro.fast_form import for_reading, for_resolving
from penstock.schemas.avro.nodes import Node
from penstock.schemas.avro.schema import AvroSchema
from penstock.schemas.model import InvalidSchema, InvalidValue, Schema

_UNREADABLE = (
    ArithmeticError, AttributeError, EOFError, LookupError, SchemaResolutionError, TypeError, ValueError, struct.error
)  # fmt: skip


class AvroCodec:
    """`plain`: a value of a union is read as it is, without the name of its branch. Both forms are written always."""

    def __init__(self, schema: AvroSchema, *, plain: bool = False) -> None:
        self._root = schema.root
        self._plain = plain
        self._encoder = Encoder(schema.root)
        self._form = for_reading(schema.root, is_plain=plain)

    def encode(self, value: Any) -> bytes:
        return self._encoder.encode(value)

    def decode(self, data: bytes | memoryview) -> Any:
        if self._form is None:
            return Reading(bytes(data), is_plain=self._plain).value(self._root)
        source = io.BytesIO(data)
        try:
            value = fastavro.schemaless_reader(source, self._form, None)
        except _UNREADABLE as error:
            raise _unreadable(error) from None
        left = len(data) - source.tell()
        if left:
            raise InvalidValue(f"{left} bytes are left after the value")
        return value

    def decode_as(self, reader: Schema) -> AvroReader:
        """Of what this schema wrote, as `reader` has it. InvalidSchema when fastavro does not take one of the two."""
        if not isinstance(reader, AvroSchema):
            raise InvalidSchema(f"what Avro wrote is not read with a schema of {reader.kind}")
        return AvroReader(self._root, reader)


class AvroReader:
    """Reads with one schema what another wrote: fields are added, left out and promoted. Values of unions are plain."""

    def __init__(self, writer: Node, reader: AvroSchema) -> None:
        self._writer = writer
        self._writer_form, self._reader_form = for_resolving(writer), for_resolving(reader.root)
        self._is_bounded = for_reading(writer, is_plain=True) is not None

    def decode(self, data: bytes | memoryview) -> Any:
        if not self._is_bounded:
            Reading(bytes(data), is_plain=True).value(self._writer)
        try:
            value = fastavro.schemaless_reader(io.BytesIO(data), self._writer_form, self._reader_form)
            return _as_json(value)
        except _UNREADABLE as error:
            raise _unreadable(error) from None


def codec_of(schema: Schema, *, plain: bool = False) -> AvroCodec:
    if not isinstance(schema, AvroSchema):
        raise TypeError(f"{schema.kind} is not Avro")
    return AvroCodec(schema, plain=plain)


def _as_json(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _as_json(each) for key, each in value.items()}
    if isinstance(value, list):
        return [_as_json(each) for each in value]
    if isinstance(value, bytes):
        return value.decode("latin-1")
    return double(value) if isinstance(value, float) else value


def _unreadable(error: Exception) -> InvalidValue:
    if isinstance(error, SchemaResolutionError):
        return InvalidValue(f"the schemas do not go together: {error}")
    return InvalidValue(f"the schema does not read these bytes: {str(error) or 'they end too early'}")
