"""The schema that the columns of a stream or table have in a registry."""

from __future__ import annotations

from collections.abc import Sequence

from penstock.streams.formats.failures import FormatRefused
from penstock.streams.plan.schema import Column
from penstock.streams.plan.sources import Format


def schema_text(columns: Sequence[Column], form: Format, *, is_wrapped: bool) -> str:
    """FormatRefused. Protobuf's rows are wrapped always."""
    name = form.name.upper()
    full_name = form.property("full_name")
    if name == "AVRO":
        from penstock.streams.formats.avro_schemas import avro_text

        return avro_text(columns, is_wrapped=is_wrapped, full_name=full_name)
    if name == "JSON_SR":
        from penstock.streams.formats.json_schemas import json_text

        return json_text(columns, is_wrapped=is_wrapped, full_name=full_name)
    if name in ("PROTOBUF", "PROTOBUF_NOSR"):
        from penstock.streams.formats.protobuf_schemas import protobuf_text

        nullable = form.property("nullable_representation")
        return protobuf_text(columns, full_name=full_name if name == "PROTOBUF" else None, nullable=nullable)
    raise FormatRefused(f"The '{name}' format has no schemas")
