"""Schemas of tests: JSON or text to what programs are made from."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from penstock.arrow.avro_format import avro_type
from penstock.arrow.registry_schemas import SchemaText
from penstock.records.columnar.avro_schema import AvroType
from penstock.schemas.model import AVRO, Referred, SchemaReference


def parse_avro(text: str, referred: Sequence[str] = ()) -> AvroType:
    names = [str(number) for number in range(len(referred))]
    return avro_type(
        SchemaText(
            AVRO,
            text,
            tuple(SchemaReference(name, name, 1) for name in names),
            tuple((name, Referred(each)) for name, each in zip(names, referred, strict=True)),
        )
    )


def parsed(schema: Any) -> AvroType:
    return parse_avro(json.dumps(schema))
