"""A text becomes a schema of its kind."""

from __future__ import annotations

import importlib
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Final, Protocol, runtime_checkable

from penstock.schemas.model import (
    AVRO,
    JSON,
    MAX_TEXT_CHARACTERS,
    PROTOBUF,
    InvalidSchema,
    Parse,
    Referred,
    Schema,
    SchemaReference,
)


@runtime_checkable
class Strict(Protocol):
    """Schemas of which more is asked when they are new."""

    def check_new(self) -> None: ...


# Loaded when the first schema of the kind comes: each brings libraries of its own.
HOMES: Final = {
    AVRO: "penstock.schemas.avro.parsing",
    JSON: "penstock.schemas.json_schema.parsing",
    PROTOBUF: "penstock.schemas.protobuf.parsing",
}
NO_TEXTS: Final[Mapping[str, Referred]] = MappingProxyType({})


def parse(
    kind: str,
    text: str,
    references: Sequence[SchemaReference] = (),
    texts: Mapping[str, Referred] = NO_TEXTS,
) -> Schema:
    """InvalidSchema when it is none of its kind, or too large."""
    if kind not in HOMES:
        raise InvalidSchema(f"Invalid schema type {kind}")
    if len(text) > MAX_TEXT_CHARACTERS:
        raise InvalidSchema(
            f"a schema has at most {MAX_TEXT_CHARACTERS:,} characters, this one {len(text):,}"
        )
    home: Parse = importlib.import_module(HOMES[kind]).parse
    return home(text, references, texts)


def check_new(schema: Schema) -> None:
    """InvalidSchema when a registry that has it may keep it, but a new one like it is refused: Avro's names of other letters
    than A to Z, and defaults that do not fit."""
    if isinstance(schema, Strict):
        schema.check_new()
