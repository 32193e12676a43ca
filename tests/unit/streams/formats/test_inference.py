import json

import pytest

from penstock.streams.formats.failures import FormatRefused
from penstock.streams.formats.inference import infer, to_register
from penstock.streams.plan.schema import Column, Schema
from penstock.streams.plan.sources import Format, Formats
from penstock.streams.plan.types import INTEGER, STRING
from tests.unit.streams.formats.fake_registry import FakeLookup
from tests.unit.streams.formats.rows import values
from tests.unit.streams.formats.test_registered import COLUMNS


def shown(registry, form: str, *, is_key=False, is_wrapped=True, schema_id=None, **properties: str) -> str:
    found = infer(
        registry, topic="t", form=Format(form, tuple(properties.items())), is_key=is_key, is_wrapped=is_wrapped,
        schema_id=schema_id,
    )  # fmt: skip
    return ", ".join(f"{name} {type_}" for name, type_ in found.columns)


@pytest.mark.parametrize("form", ["AVRO", "JSON_SR", "PROTOBUF"])
def test_the_columns_of_a_schema_that_we_wrote(form):
    registry = FakeLookup()
    values(form, *COLUMNS, registry=registry).encode((None,) * len(COLUMNS))
    assert shown(registry, form) == ", ".join(f"{name} {type_}" for name, type_ in COLUMNS)


def test_columns_of_avro():
    registry = FakeLookup()
    schema = {
        "type": "record", "name": "r", "fields": [
            {"name": "a", "type": ["null", "float"]}, {"name": "nothing", "type": "null"},
            {"name": "u", "type": ["int", "string"]}, {"name": "r", "type": {"type": "record", "name": "i", "fields": [
                {"name": "x", "type": {"type": "map", "values": "bytes"}}, {"name": "again", "type": ["null", "i"]}]}},
        ],
    }  # fmt: skip
    schema_id = registry.register("t-value", "AVRO", json.dumps(schema | {"fields": schema["fields"][:3]}))
    assert shown(registry, "AVRO") == "A DOUBLE, U STRUCT<`INT` INTEGER, `STRING` STRING>"
    assert (
        shown(registry, "AVRO", schema_id=schema_id) == "a DOUBLE, u STRUCT<`int` INTEGER, `string` STRING>"
    )
    registry.register("t-key", "AVRO", '"long"')
    assert shown(registry, "AVRO", is_key=True, is_wrapped=False) == "ROWKEY BIGINT"


def test_columns_of_json_schema():
    registry = FakeLookup()
    schema = {
        "type": "object",
        "definitions": {"inner": {"type": "object", "properties": {"n": {"type": "integer", "connect.type": "int16"}}}},
        "properties": {
            "a": {"type": ["null", "string"]}, "b": {"type": "array", "items": {"$ref": "#/definitions/inner"}},
            "c": {"type": "object", "additionalProperties": {"type": "number"}}, "d": {"enum": ["x"]}, "e": True,
        },
    }  # fmt: skip
    registry.register("t-value", "JSON", json.dumps(schema))
    assert (
        shown(registry, "JSON_SR")
        == "A STRING, B ARRAY<STRUCT<`N` INTEGER>>, C MAP<STRING, DOUBLE>, D STRING"
    )


def test_columns_of_protobuf():
    registry = FakeLookup()
    text = (
        'syntax = "proto3"; message A { int32 x = 1; } message B { uint32 y = 1; oneof o { string l = 2; } }'
    )
    registry.register("t-value", "PROTOBUF", text)
    with pytest.raises(
        FormatRefused,
        match=r"(?s)Value schema has multiple schema definitions.*- A\n- B.*VALUE_SCHEMA_FULL_NAME",
    ):
        shown(registry, "PROTOBUF")
    assert shown(registry, "PROTOBUF", full_name="B") == "O_0 STRUCT<`L` STRING>, Y BIGINT"


def test_what_is_not_found_or_does_not_fit():
    registry = FakeLookup()
    with pytest.raises(
        FormatRefused, match=r"(?s)Schema for message values on topic 't' does not exist.*Subject: t-value"
    ):
        shown(registry, "AVRO")
    registry.register("t-value", "AVRO", '"string"')
    with pytest.raises(
        FormatRefused, match=r"(?s)You may want to set VALUE_FORMAT to 'AVRO'.*expected format: JSON"
    ):
        shown(registry, "JSON_SR")
    with pytest.raises(FormatRefused, match="'WRAP_SINGLE_VALUE=false' in the WITH clause"):
        shown(registry, "AVRO")
    with pytest.raises(
        FormatRefused, match="VALUE_FORMAT should support schema inference when VALUE_SCHEMA_ID is provided"
    ):
        shown(registry, "JSON", schema_id=1)


def test_what_a_new_topic_registers():
    schema = Schema((Column("K", STRING),), (Column("V", INTEGER),))
    both = to_register(schema, Formats(Format("AVRO"), Format("PROTOBUF")), "t")
    assert [(each.subject, each.kind) for each in both] == [("t-key", "AVRO"), ("t-value", "PROTOBUF")]
    assert both[0].text == '"string"'
    assert to_register(schema, Formats(Format("KAFKA"), Format("JSON")), "t") == ()
    assert to_register(schema, Formats(Format("KAFKA"), Format("AVRO", (("schema_id", "1"),))), "t") == ()
