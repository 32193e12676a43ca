"""Formats whose schemas are in a registry: AVRO, JSON_SR and PROTOBUF.

    00 | id of the schema, four bytes | the value, which in Protobuf begins with the indexes of its message
    01 | GUID of the schema, sixteen  | the same; this is read, and not written

A record is read with the schema that it names. What is written has the schema of the columns, which is registered under
`<topic>-key` or `<topic>-value` when the first row comes, or the one that `schema_id` names. Functions for a schema are made
when it is met first, and kept.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any, Final, TypeVar
from uuid import UUID

from penstock.schemas.framing import FRAME_BYTES, MAGIC, framed, unframed
from penstock.schemas.model import AVRO, JSON, PROTOBUF, InvalidSchema, InvalidValue, Schema, SchemaReference
from penstock.schemas.parsing import parse
from penstock.streams.formats.failures import BadRecord, FormatRefused, SchemasUnavailable
from penstock.streams.formats.json_reading import json_reader
from penstock.streams.formats.json_writing import json_writer
from penstock.streams.formats.registry import FoundSchema, SchemaLookup, subject_of
from penstock.streams.formats.schema_texts import schema_text
from penstock.streams.plan.schema import Column
from penstock.streams.plan.sources import Format

T = TypeVar("T")
KINDS: Final = {"AVRO": AVRO, "JSON_SR": JSON, "PROTOBUF": PROTOBUF}
_MAGIC: Final = bytes([MAGIC])
MAX_SCHEMAS: Final = 1000
"""Of one topic, whose functions are kept. More are made anew for each record."""
Read = Callable[[Any], "tuple[Any, ...] | None"]
Write = Callable[["tuple[Any, ...]"], bytes]


def asked(call: Callable[[], T]) -> T:
    """SchemasUnavailable, whatever the registry's client raises."""
    try:
        return call()
    except Exception as error:
        raise SchemasUnavailable(str(error)) from error


def parsed(found: FoundSchema, lookup: SchemaLookup) -> Schema:
    """InvalidSchema, SchemasUnavailable."""
    references = [SchemaReference(*each) for each in found.references]
    texts = asked(lambda: lookup.texts_of(found.references)) if references else {}
    return parse(found.kind, found.text, references, texts)


class RegisteredReader:
    def __init__(
        self, columns: Sequence[Column], form: Format, is_wrapped: bool, lookup: SchemaLookup
    ) -> None:
        self._columns = columns
        self._kind = KINDS[form.name.upper()]
        self._is_wrapped = is_wrapped
        self._lookup = lookup
        self._read_json = json_reader(columns, is_wrapped=is_wrapped) if self._kind == JSON else None
        self._readers: dict[int | UUID, Read] = {}

    def __call__(self, data: bytes) -> tuple[Any, ...] | None:
        """BadRecord, SchemasUnavailable."""
        if data[:1] == _MAGIC and len(data) >= FRAME_BYTES:
            schema: int | UUID = int.from_bytes(data[1:FRAME_BYTES], "big", signed=True)
            value: Any = data[FRAME_BYTES:]
        else:
            try:
                schema, value = unframed(data)
            except InvalidValue:
                raise BadRecord("Unknown magic byte!") from None
        if self._read_json is not None:
            return self._read_json(bytes(value))
        read = self._readers.get(schema)
        if read is None:
            read = self._made(schema)
            if len(self._readers) < MAX_SCHEMAS:
                self._readers[schema] = read
        return read(value)

    def _made(self, schema_id: int | UUID) -> Read:
        if isinstance(schema_id, UUID):
            found = asked(lambda: self._lookup.by_guid(schema_id))
        else:
            found = asked(lambda: self._lookup.by_id(schema_id))
        if found is None:
            what = "GUID" if isinstance(schema_id, UUID) else "id"
            raise BadRecord(f"the schema registry has no schema with the {what} {schema_id}")
        if found.kind != self._kind:
            raise BadRecord(f"the schema {schema_id} is of {found.kind}, not of {self._kind}")
        try:
            schema = parsed(found, self._lookup)
        except InvalidSchema as error:
            raise BadRecord(f"the schema {schema_id} cannot be used: {error}") from None
        try:
            if self._kind == AVRO:
                from penstock.streams.formats.avro_values import avro_reader

                return avro_reader(schema, self._columns, is_wrapped=self._is_wrapped)
            return _protobuf_reader(schema, self._columns)
        except BadRecord as bad:
            return _always(str(bad))


def _always(message: str) -> Read:
    def refuse(data: Any) -> Any:
        raise BadRecord(message)

    return refuse


def _protobuf_reader(schema: Schema, columns: Sequence[Column]) -> Read:
    """The indexes before a value say which message it is; each has functions of its own."""
    from penstock.schemas.protobuf import indexes
    from penstock.schemas.protobuf.values import message_descriptor
    from penstock.streams.formats.protobuf_values import protobuf_reader

    readers: dict[tuple[int, ...], Read] = {}

    def read(data: memoryview) -> tuple[Any, ...] | None:
        try:
            path, end = indexes.read(data)
            reader = readers.get(path)
            if reader is None:
                reader = protobuf_reader(message_descriptor(schema, path), columns)
                readers[path] = reader
        except InvalidValue as error:
            raise BadRecord(str(error)) from None
        return reader(bytes(data[end:]))

    return read


class RegisteredWriter:
    def __init__(
        self,
        columns: Sequence[Column],
        form: Format,
        is_wrapped: bool,
        lookup: SchemaLookup,
        *,
        topic: str,
        is_key: bool,
    ) -> None:
        self._columns = columns
        self._form = form
        self._is_wrapped = is_wrapped
        self._lookup = lookup
        self._subject = subject_of(topic, is_key=is_key)
        self._ready: tuple[int, Write] | None = None

    def __call__(self, row: tuple[Any, ...]) -> bytes | None:
        """BadRecord, SchemasUnavailable."""
        if not self._is_wrapped and row[0] is None:
            return None
        schema_id, write = self._ready or self._prepared()
        return framed(schema_id, write(row))

    def _prepared(self) -> tuple[int, Write]:
        kind = KINDS[self._form.name.upper()]
        given = self._form.property("schema_id")
        if given is not None:
            by_id = asked(lambda: self._lookup.by_id(int(given)))
            if by_id is None:
                raise BadRecord(f"the schema registry has no schema with the id {given}")
            found = by_id
        else:
            try:
                text = schema_text(self._columns, self._form, is_wrapped=self._is_wrapped)
            except FormatRefused as refused:
                raise BadRecord(str(refused)) from None
            schema_id = asked(lambda: self._lookup.register(self._subject, kind, text))
            found = FoundSchema(schema_id, kind, text)
        try:
            write = self._writer(kind, parsed(found, self._lookup))
        except InvalidSchema as error:
            raise BadRecord(f"the schema {found.id} cannot be used: {error}") from None
        self._ready = found.id, write
        return self._ready

    def _writer(self, kind: str, schema: Schema) -> Write:
        if kind == JSON:
            return self._json_writer(schema)
        if kind == AVRO:
            from penstock.streams.formats.avro_values import avro_writer

            return avro_writer(schema, self._columns, is_wrapped=self._is_wrapped)
        return _protobuf_writer(schema, self._columns, self._form.property("full_name"))

    def _json_writer(self, schema: Schema) -> Write:
        """With a schema by its id, what the columns do not have is written, too: as its default, or null."""
        write = json_writer(self._columns, is_wrapped=self._is_wrapped)
        more = b""
        if self._is_wrapped and self._form.property("schema_id") is not None:
            properties = json.loads(schema.text).get("properties") or {}
            for column in self._columns:
                if column.name not in properties:
                    raise BadRecord(f"Schema from Schema Registry misses field with name: {column.name}")
            names = {column.name for column in self._columns}
            others = {
                name: each.get("default") if isinstance(each, dict) else None
                for name, each in properties.items()
                if name not in names
            }
            more = json.dumps(others).encode()[1:-1]
        if not more:
            return lambda row: write(row) or b"null"
        comma = b"," if self._columns else b""
        return lambda row: (write(row) or b"{}")[:-1] + comma + more + b"}"


def _protobuf_writer(schema: Schema, columns: Sequence[Column], full_name: str | None) -> Write:
    from penstock.schemas.protobuf import indexes
    from penstock.schemas.protobuf.schema import ProtobufSchema
    from penstock.schemas.protobuf.values import message_descriptor
    from penstock.streams.formats.protobuf_values import protobuf_writer

    assert isinstance(schema, ProtobufSchema)
    path = (schema.indexes.of(full_name) if full_name else None) or (0,)
    write = protobuf_writer(message_descriptor(schema, path), columns)
    head = indexes.written(path)
    return lambda row: head + write(row)
