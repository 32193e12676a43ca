"""Values to begin with fit their schemas."""

from __future__ import annotations

import json
from typing import Any

import pytest

from penstock.console.messages.sample import sample
from penstock.schemas.model import AVRO, JSON, PROTOBUF
from penstock.schemas.parsing import parse
from penstock.schemas.values import codec_of

RECORD = {
    "type": "record", "name": "R", "namespace": "a.b", "fields": [
        {"name": "n", "type": "int"}, {"name": "u", "type": ["null", "string"]},
        {"name": "v", "type": ["string", "null"], "default": "x"},
        {"name": "again", "type": ["R", "null"]}, {"name": "e", "type": {"type": "enum", "name": "E", "symbols": ["A", "B"]}},
        {"name": "f", "type": {"type": "fixed", "name": "F", "size": 2}}, {"name": "d", "type": "long", "default": 5},
        {"name": "l", "type": {"type": "array", "items": "R"}}, {"name": "m", "type": {"type": "map", "values": "double"}},
        {"name": "t", "type": {"type": "long", "logicalType": "timestamp-millis"}}, {"name": "e2", "type": "E"},
    ],
}  # fmt: skip
OBJECT = {
    "type": "object", "required": ["a", "b"], "properties": {
        "a": {"type": "integer", "minimum": 3}, "b": {"$ref": "#/definitions/x"}, "c": {"type": ["null", "string"]},
        "l": {"type": "array", "items": {"type": "string"}}, "o": {"oneOf": [{"type": "number"}, {"type": "string"}]},
    },
    "definitions": {"x": {"enum": ["p", "q"]}},
}  # fmt: skip
MESSAGE = """syntax = "proto3"; import "google/protobuf/timestamp.proto";
message P { int32 n = 1; repeated Q q = 2; google.protobuf.Timestamp t = 3; map<string, int64> m = 4; E e = 5; Q z = 6;
  oneof one { string s = 7; int32 i = 8; } P again = 9; }
message Q { string s = 1; bytes b = 2; bool c = 3; double d = 4; } enum E { A = 0; B = 1; }"""


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        (AVRO, json.dumps(RECORD)),
        (AVRO, '"string"'),
        (AVRO, '["null", "int"]'),
        (JSON, json.dumps(OBJECT)),
        (PROTOBUF, MESSAGE),
    ],
)
def test_a_sample_can_be_written_as_it_is(kind: str, text: str) -> None:
    schema = parse(kind, text, (), {})
    value: Any = json.loads(json.dumps(sample(schema)))
    codec = codec_of(schema)
    codec.decode(codec.encode(value))


def test_a_sample_has_every_field() -> None:
    found = sample(parse(AVRO, json.dumps(RECORD), (), {}))
    assert set(found) == {field["name"] for field in RECORD["fields"]}  # type: ignore[attr-defined, index]
    assert found["d"] == 5
