"""Values by their schema: from JSON to the bytes in a record, and back."""

from __future__ import annotations

import importlib
from typing import Any, Final, Protocol

from penstock.schemas.model import AVRO, JSON, PROTOBUF, Schema

HOMES: Final = {
    AVRO: "penstock.schemas.avro.values",
    JSON: "penstock.schemas.json_schema.values",
    PROTOBUF: "penstock.schemas.protobuf.values",
}


class ValueCodec(Protocol):
    """Of one schema. The bytes are those behind the schema's id; Protobuf's begin with the indexes of the message. Two threads
    may use it."""

    def encode(self, value: Any) -> bytes:
        """From what `json.loads` gives, in the form of the kind's JSON (Avro's JSON encoding, where the branch of a union may be
        left out if only one fits; Protobuf's JSON mapping). InvalidValue."""

    def decode(self, data: bytes | memoryview) -> Any:
        """To what `json.dumps` takes, in the same form. InvalidValue."""


def codec_of(
    schema: Schema, *, plain: bool = False, original_names: bool = True, message: str | None = None
) -> ValueCodec:
    """`plain`: values of Avro's unions are read without the names of their branches; `original_names`: Protobuf's fields are read
    as `user_id` and not as `userId`; `message`: the full name of Protobuf's message that is written, by default the first. To the
    other kinds it is the same. InvalidValue when the schema has no such message."""
    options: dict[str, Any] = {}
    if schema.kind == AVRO and plain:
        options["plain"] = True
    elif schema.kind == PROTOBUF:
        options |= {"original_names": original_names, "message": message}
    codec: ValueCodec = importlib.import_module(HOMES[schema.kind]).codec_of(schema, **options)
    return codec
