"""Values of Confluent's AvroConverter as columns, by the compiled decoders of `penstock.arrow`."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import Any, Final

import pyarrow as pa

from penstock.arrow.registry_schemas import Registry, SchemaText, registry_of, with_references
from penstock.arrow.registry_values import RegistryValues, reader_of
from penstock.client.errors import BadOption, Refused, Unreachable, UserError
from penstock.connect.converters.avro_schemas import AvroForm
from penstock.connect.converters.avro_to_connect import from_avro
from penstock.connect.converters.registry import AvroConverter
from penstock.connect.data.schema import Schema, Type
from penstock.connect.interface import Converter
from penstock.connect.tasks.columnar_sink import Decode, NotColumns, struct_table
from penstock.schemas.model import AVRO, InvalidSchema

MAX_SCHEMAS: Final = 256
FRAME_BYTES: Final = 5
_SETTINGS: Final = (
    "schema.registry.url", "basic.auth.user.info", "basic.auth.credentials.source", "bearer.auth.token",
)  # fmt: skip


def avro_columns(converter: Converter) -> Decode | None:
    """None where the converter is another one, or has settings that the decoders do not know."""
    if type(converter) is not AvroConverter:
        return None
    values = converter.values
    given = converter.given
    if values["enhanced.avro.schema.support"] or not values["connect.meta.data"]:
        return None
    options = {}
    for name in given:
        short = name.removeprefix("schema.registry.")
        if name in _SETTINGS or short in _SETTINGS or short.startswith("ssl."):
            options[name if name == "schema.registry.url" else f"schema.registry.{short}"] = given[name]
    try:
        registry = registry_of(options)
    except BadOption:
        return None
    form = AvroForm(True, False, values["scrub.invalid.names"], values["allow.optional.map.keys"])
    return AvroColumns(registry, form)


class AvroColumns:
    """Each value by the schema that it was written with."""

    def __init__(self, registry: Registry, form: AvroForm) -> None:
        self._registry, self._form = registry, form
        self._known: dict[int, tuple[Schema, RegistryValues]] = {}

    def __call__(self, values: Sequence[bytes]) -> list[tuple[Schema, pa.Table]]:
        tables = []
        for frame, run in _by_frame(values):
            if len(frame) < FRAME_BYTES or frame[0]:
                raise NotColumns("a value does not begin with the id of a schema")
            schema, reader = self._of(int.from_bytes(frame[1:], "big"))
            found = reader.read(pa.array(run, pa.binary()))
            if found.why:
                raise NotColumns(next(iter(found.why.values())))
            tables.append((schema, struct_table(found.column, schema)))
        return tables

    def _of(self, schema_id: int) -> tuple[Schema, RegistryValues]:
        known = self._known.get(schema_id)
        if known is None:
            if len(self._known) >= MAX_SCHEMAS:
                self._known.clear()
            known = self._known[schema_id] = self._look_up(schema_id)
        return known

    def _look_up(self, schema_id: int) -> tuple[Schema, RegistryValues]:
        try:
            client = self._registry.client()
            text: SchemaText = with_references(client, client.by_id(schema_id))._replace(id=schema_id)
            if text.kind != AVRO:
                raise NotColumns(f"schema {schema_id} is {text.kind}, not Avro")
            parsed: Any = text.parsed()
            schema = from_avro(parsed.root, self._form)
            if schema.type is not Type.STRUCT or _has_defaults(schema):
                raise NotColumns(f"schema {schema_id} is no record that columns are made of")
            return schema, reader_of(self._registry, text)
        except (Unreachable, Refused, UserError, InvalidSchema, ValueError) as error:
            raise NotColumns(f"schema {schema_id}: {error}") from None


def _has_defaults(schema: Schema) -> bool:
    """Optional ones with a default of their own: a null becomes that, which the decoders do not do."""
    return any(
        (each.schema.is_optional and each.schema.default is not None) or _has_defaults(each.schema)
        for each in schema.fields
    )


def _by_frame(values: Sequence[bytes]) -> list[tuple[bytes, list[bytes]]]:
    first = values[0][:FRAME_BYTES]
    if all(value.startswith(first) for value in values):
        return [(first, list(values))]
    return [(frame, list(run)) for frame, run in groupby(values, lambda value: value[:FRAME_BYTES])]
