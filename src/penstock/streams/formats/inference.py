"""Columns from a registry: for CREATE without columns, and for KEY_SCHEMA_ID and VALUE_SCHEMA_ID. And the other way: what a new
topic's schema is, and its registration.

Names become upper case, but with a schema's id they stay as they are. Messages are ksqlDB's.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from penstock.schemas.model import AVRO, JSON, InvalidSchema, Schema
from penstock.streams.formats.avro_schemas import Unsupported
from penstock.streams.formats.failures import FormatRefused
from penstock.streams.formats.registered import KINDS, parsed
from penstock.streams.formats.registry import FoundSchema, SchemaLookup, subject_of
from penstock.streams.formats.schema_texts import schema_text
from penstock.streams.plan.schema import Column
from penstock.streams.plan.schema import Schema as Columns
from penstock.streams.plan.sources import Format, Formats
from penstock.streams.plan.types import Kind, SqlType

INFERABLE: Final = frozenset(KINDS)
"""Formats whose columns may come from a registry."""
_DOCS: Final = "https://docs.confluent.io/current/schema-registry/docs/"


class Inferred(NamedTuple):
    columns: tuple[Column, ...]
    schema_id: int
    full_name: str | None
    """Of the record or message that the columns are of."""


def infer(
    lookup: SchemaLookup,
    *,
    topic: str,
    form: Format,
    is_key: bool,
    is_wrapped: bool,
    schema_id: int | None = None,
) -> Inferred:
    """Of the newest schema of the topic's subject, or of the one with this id. FormatRefused, and what the registry raises."""
    wanted = KINDS.get(form.name.upper())
    if wanted is None:
        what = "KEY" if is_key else "VALUE"
        raise FormatRefused(
            f"{what}_FORMAT should support schema inference when {what}_SCHEMA_ID is provided. "
            f"Current format is {form.name.upper()}."
        )
    subject = subject_of(topic, is_key=is_key)
    found = lookup.latest(subject) if schema_id is None else lookup.by_id(schema_id)
    if found is None:
        raise FormatRefused(_not_found(topic, subject, schema_id, is_key))
    source = f"topic: {topic}" + (f", schema id: {schema_id}" if schema_id is not None else "")
    if found.kind != wanted:
        raise FormatRefused(
            f"{'Key' if is_key else 'Value'} schema is not in the expected format. You may want to set "
            f"{'KEY_FORMAT' if is_key else 'VALUE_FORMAT'} to '{found.kind}'.\n{source}\n"
            f"expected format: {wanted}\nactual format from Schema Registry: {found.kind}"
        )
    try:
        schema = parsed(found, lookup)
        full_name = form.property("full_name")
        if full_name is None:
            _refuse_several(schema, is_key)
        columns = _columns(
            schema,
            found,
            lookup,
            is_key,
            is_wrapped or form.name.upper() == "PROTOBUF",
            schema_id is not None,
            full_name,
        )
    except (InvalidSchema, Unsupported) as error:
        raise FormatRefused(
            f"Unable to verify if the {'key' if is_key else 'value'} schema for {source} is compatible with ksqlDB.\n"
            f"Reason: {error}\n\nSchema:{found.text}"
        ) from None
    if is_key and len(columns) > 1:
        raise FormatRefused(
            f"The key schema for {source} contains multiple columns, which is not supported by ksqlDB at this time.\n"
            f"Schema:{found.text}"
        )
    return Inferred(columns, found.id, full_name or schema.full_name)


def _not_found(topic: str, subject: str, schema_id: int | None, is_key: bool) -> str:
    return (
        f"Schema for message {'keys' if is_key else 'values'} on topic '{topic}' does not exist in the Schema Registry.\n"
        f"Subject: {subject}\n"
        + (f"Schema Id: {schema_id}\n" if schema_id is not None else "")
        + "Possible causes include:\n"
        "- The topic itself does not exist\n\t-> Use SHOW TOPICS; to check\n"
        "- Messages on the topic are not serialized using a format Schema Registry supports\n"
        f"\t-> Use PRINT '{topic}' FROM BEGINNING; to verify\n"
        "- Messages on the topic have not been serialized using a Confluent Schema Registry supported serializer\n"
        f"\t-> See {_DOCS}serializer-formatter.html\n"
        "- The schema is registered on a different instance of the Schema Registry\n"
        f"\t-> Use the REST API to list available subjects\t{_DOCS}api.html#get--subjects\n"
        "- You do not have permissions to access the Schema Registry.\n"
        f"\t-> See {_DOCS}security.html"
    )


def _refuse_several(schema: Schema, is_key: bool) -> None:
    from penstock.schemas.protobuf.schema import ProtobufSchema

    if not isinstance(schema, ProtobufSchema):
        return
    proto = schema.proto
    names = [f"{proto.package}.{each.name}" if proto.package else each.name for each in proto.message_type]
    if len(names) > 1:
        shown = "\n".join(f"- {name}" for name in names)
        raise FormatRefused(
            f"{'Key' if is_key else 'Value'} schema has multiple schema definitions. \n\n{shown}\n\n"
            f"Please specify a schema full name in the WITH clause using {'KEY' if is_key else 'VALUE'}_SCHEMA_FULL_NAME"
        )


def _columns(
    schema: Schema,
    found: FoundSchema,
    lookup: SchemaLookup,
    is_key: bool,
    is_wrapped: bool,
    keep_names: bool,
    full_name: str | None,
) -> tuple[Column, ...]:
    """Unsupported."""
    type_ = _type(schema, found, lookup, keep_names, full_name)
    if not is_wrapped:
        return (Column("ROWKEY" if is_key else "ROWVAL", type_),)
    if type_.kind != Kind.STRUCT:
        raise Unsupported(
            "Schema returned from schema registry is anonymous type. To use this schema with ksqlDB, set "
            "'WRAP_SINGLE_VALUE=false' in the WITH clause properties."
        )
    if not type_.fields:
        raise Unsupported("Schema does not include any columns with types that ksqlDB supports.")
    return tuple(Column(name, each) for name, each in type_.fields)


def _type(
    schema: Schema, found: FoundSchema, lookup: SchemaLookup, keep_names: bool, full_name: str | None
) -> SqlType:
    if schema.kind == AVRO:
        from penstock.schemas.avro.schema import AvroSchema
        from penstock.streams.formats import avro_schemas

        assert isinstance(schema, AvroSchema)
        return avro_schemas.type_of(schema.root, keep_names=keep_names)
    if schema.kind == JSON:
        from penstock.streams.formats import json_schemas

        others = lookup.texts_of(found.references) if found.references else {}
        texts = {name: each.text for name, each in others.items()}
        return json_schemas.type_of(found.text, keep_names=keep_names, others=texts)
    from penstock.schemas.protobuf.schema import ProtobufSchema
    from penstock.schemas.protobuf.values import message_descriptor
    from penstock.streams.formats import protobuf_schemas

    assert isinstance(schema, ProtobufSchema)
    path = schema.indexes.of(full_name) if full_name else (0,)
    if path is None:
        raise Unsupported(f"the schema has no message {full_name}")
    return protobuf_schemas.type_of(message_descriptor(schema, path), keep_names=keep_names)


class ToRegister(NamedTuple):
    subject: str
    kind: str
    text: str


def to_register(columns: Columns, formats: Formats, topic: str) -> tuple[ToRegister, ...]:
    """The schemas that a topic with these columns has: none, one or two. Those that were named by their id are not among them.
    FormatRefused."""
    from_headers = {name for name, _ in columns.headers}
    values = [column for column in columns.value if column.name not in from_headers]
    wanted: list[tuple[Sequence[Column], Format, bool, bool]] = [
        (columns.key, formats.key, formats.wrap_key or len(columns.key) != 1, True),
        (values, formats.value, formats.wrap_value or len(values) != 1, False),
    ]
    return tuple(
        ToRegister(
            subject_of(topic, is_key=is_key),
            KINDS[form.name.upper()],
            schema_text(each, form, is_wrapped=is_wrapped),
        )
        for each, form, is_wrapped, is_key in wanted
        if form.name.upper() in KINDS and each and form.property("schema_id") is None
    )
