"""AVRO, JSON_SR, PROTOBUF and PROTOBUF_NOSR."""

import json
from decimal import Decimal
from uuid import UUID

import pytest

from penstock.schemas.fingerprints import guid_of
from penstock.streams.formats.codecs import BadRecord, FormatRefused
from penstock.streams.formats.failures import SchemasUnavailable
from penstock.streams.kernel.driver import Driver
from penstock.streams.plan.nodes import Deliver, Plan, Read
from penstock.streams.plan.schema import Column, Schema
from penstock.streams.plan.sources import Format, Formats, Source, SourceKind
from penstock.streams.plan.types import (
    BIGINT,
    BOOLEAN,
    BYTES,
    DATE,
    DOUBLE,
    INTEGER,
    STRING,
    TIME,
    TIMESTAMP,
    array,
    decimal,
    map_of,
    struct,
)  # fmt: skip
from tests.unit.streams.formats.fake_registry import FakeLookup
from tests.unit.streams.formats.rows import keys, values

COLUMNS = (
    ("I", INTEGER), ("L", BIGINT), ("D", DOUBLE), ("B", BOOLEAN), ("S", STRING), ("X", BYTES), ("E", decimal(38, 4)),
    ("DA", DATE), ("TI", TIME), ("TS", TIMESTAMP), ("A", array(STRING)), ("M", map_of(STRING, INTEGER)),
    ("R", struct(("P", DOUBLE), ("Q", array(struct(("Z", decimal(4, 2))))))), ("N", map_of(STRING, struct(("Y", DATE)))),
)  # fmt: skip
ROW = (
    -5, 1 << 40, 1.5, True, "é", b"\0\xff", Decimal("-123456789012345678901234567890.1200"), 18000, 5, 1234,
    ["a", "b"], {"k": 1}, {"P": 0.1, "Q": [{"Z": Decimal("1.10")}]}, {"x": {"Y": -1}},
)  # fmt: skip
FORMATS = ("AVRO", "JSON_SR", "PROTOBUF", "PROTOBUF_NOSR")


@pytest.mark.parametrize("form", FORMATS)
def test_a_row_there_and_back(form):
    codec = values(form, *COLUMNS, registry=FakeLookup())
    assert codec.decode(codec.encode(ROW)) == ROW
    assert codec.encode(None) is None
    assert codec.decode(None) is None


@pytest.mark.parametrize("form", ["AVRO", "JSON_SR"])
def test_null_is_null(form):
    codec = values(form, *COLUMNS, registry=FakeLookup())
    nothing = (None,) * len(COLUMNS)
    assert codec.decode(codec.encode(nothing)) == nothing


def test_protobuf_reads_what_was_not_written_as_defaults():
    codec = values("PROTOBUF", *COLUMNS, registry=FakeLookup())
    read = codec.decode(codec.encode((None,) * len(COLUMNS)))
    assert read == (0, 0, 0.0, False, "", b"", None, None, None, None, [], {}, None, {})


@pytest.mark.parametrize("nullable", ["OPTIONAL", "WRAPPER", "optional"])
@pytest.mark.parametrize("form", ["PROTOBUF", "PROTOBUF_NOSR"])
def test_protobuf_tells_null_from_zero_if_it_is_asked_to(form, nullable):
    codec = values(form, *COLUMNS[:6], registry=FakeLookup(), nullable_representation=nullable)
    for row in ((None,) * 6, (0, 0, 0.0, False, "", b""), (1, None, 1.0, None, "a", None)):
        assert codec.decode(codec.encode(row)) == row


@pytest.mark.parametrize("form", ["AVRO", "JSON_SR", "PROTOBUF", "PROTOBUF_NOSR"])
def test_keys(form):
    one = keys(form, ("K", STRING), registry=FakeLookup())
    two = keys(form, ("K", STRING), ("L", INTEGER), registry=FakeLookup())
    assert one.decode(one.encode(("a",)))[0] == ("a",)
    assert two.decode(two.encode(("a", 5)))[0] == ("a", 5)


def test_bare_avro():
    registry = FakeLookup()
    codec = values("AVRO", ("V", map_of(STRING, DOUBLE)), wrap=False, registry=registry)
    assert codec.decode(codec.encode(({"a": 1.0},))) == ({"a": 1.0},)
    assert codec.encode((None,)) is None
    assert keys("AVRO", ("K", STRING), registry=registry).encode(("a",))[5:] == b"\x02a"
    assert registry.latest("t-key").text == '"string"'


def test_the_schema_of_a_sink_is_connect_s():
    registry = FakeLookup()
    values("AVRO", ("FOO", struct(("F0", INTEGER))), ("E", decimal(4, 2)), registry=registry).encode(
        (None, None)
    )
    said = json.loads(registry.latest("t-value").text)
    name = "io.confluent.ksql.avro_schemas.KsqlDataSourceSchema"
    assert said["name"] == "KsqlDataSourceSchema"
    assert said["connect.name"] == name
    foo, e = said["fields"]
    assert foo["default"] is None
    assert foo["type"][1]["connect.name"] == f"{name}_FOO"
    assert e["type"][1]["logicalType"] == "decimal"


def test_avro_of_others_is_read_by_names_whatever_their_case():
    registry = FakeLookup()
    schema = {
        "type": "record", "name": "r", "fields": [
            {"name": "c1", "type": "float"}, {"name": "other", "type": "string"},
            {"name": "e", "type": {"type": "enum", "name": "en", "symbols": ["X", "Y"]}},
            {"name": "m", "type": {"type": "map", "values": "long"}},
            {"name": "u", "type": ["null", "int", "string"]},
            {"name": "n", "type": "int"},
        ],
    }  # fmt: skip
    schema_id = registry.register("t-value", "AVRO", json.dumps(schema))
    codec = values(
        "AVRO",
        ("C1", DOUBLE), ("E", STRING), ("M", map_of(STRING, BIGINT)), ("U", struct(("INT", INTEGER), ("STRING", STRING))),
        ("N", STRING), ("NEW", STRING),
        registry=registry,
    )  # fmt: skip
    data = (
        b"\0\0\0\0"
        + bytes([schema_id])
        + b"\0\0\xc0\x3f"
        + b"\x02a"
        + b"\x02"
        + b"\x02\x02k\x08\0"
        + b"\x04\x02s"
        + b"\x0e"
    )
    assert codec.decode(data) == (1.5, "Y", {"k": 4}, {"INT": None, "STRING": "s"}, "7", None)


@pytest.mark.parametrize("form", ["AVRO", "JSON_SR", "PROTOBUF"])
def test_what_cannot_be_read_is_a_bad_record(form):
    registry = FakeLookup()
    codec = values(form, ("A", INTEGER), registry=registry)
    good = codec.encode((1,))
    wrong = values(form, ("A", array(STRING)), registry=registry, topic="u")
    for data in (
        b"",
        b"{}",
        b"\x01" + good[1:],
        good[:1] + b"\x00\x00\x00\x63" + good[5:] if form != "JSON_SR" else b"x",
    ):
        with pytest.raises(BadRecord):
            codec.decode(data)
    with pytest.raises(BadRecord):
        wrong.decode(good)


@pytest.mark.parametrize("form", ["AVRO", "JSON_SR", "PROTOBUF"])
def test_a_value_may_name_its_schema_by_guid(form):
    registry = FakeLookup()
    codec = values(form, ("A", INTEGER), registry=registry)
    by_id = codec.encode((1,))
    guid = UUID(guid_of(registry.found[1].text))
    assert codec.decode(b"\x01" + guid.bytes + by_id[5:]) == (1,)
    if form != "JSON_SR":  # which needs no schema to be read
        unknown = values(form, ("A", INTEGER), registry=FakeLookup())
        with pytest.raises(BadRecord, match=f"no schema with the GUID {guid}"):
            unknown.decode(b"\x01" + guid.bytes + by_id[5:])


def test_a_schema_by_id_is_written_with_its_own_defaults():
    registry = FakeLookup()
    schema = {
        "type": "record", "name": "r", "namespace": "x", "fields": [
            {"name": "extra", "type": "string", "default": "d"}, {"name": "c1", "type": "long", "default": 3},
        ],
    }  # fmt: skip
    schema_id = registry.register("s", "AVRO", json.dumps(schema))
    codec = values("AVRO", ("c1", BIGINT), registry=registry, schema_id=str(schema_id))
    assert codec.encode((5,)) == b"\0\0\0\0\x01" + b"\x02d" + b"\x0a"
    assert codec.encode((None,)) == b"\0\0\0\0\x01" + b"\x02d" + b"\x06"
    with pytest.raises(BadRecord, match="Schema from Schema Registry misses field with name: c2"):
        values("AVRO", ("c2", BIGINT), registry=registry, schema_id=str(schema_id)).encode((5,))


def test_protobuf_of_others():
    registry = FakeLookup()
    text = """syntax = "proto3"; package p; import "google/protobuf/wrappers.proto";
    message First { int32 a = 1; }
    message Second { uint32 c1 = 1; float c2 = 2; map<int32, string> m = 3; E e = 4; google.protobuf.StringValue w = 5;
      oneof choice { string left = 6; int64 right = 7; } enum E { ZERO = 0; ONE = 1; } }"""
    registry.register("t-value", "PROTOBUF", text)
    codec = values(
        "PROTOBUF",
        ("C1", BIGINT), ("C2", DOUBLE), ("M", map_of(STRING, STRING)), ("E", STRING), ("W", STRING),
        ("CHOICE_0", struct(("LEFT", STRING), ("RIGHT", BIGINT))),
        registry=registry,
    )  # fmt: skip
    body = b"\x08\x07\x15\x00\x00\xc0\x3f\x1a\x05\x08\x01\x12\x01x\x20\x01\x38\x09"
    assert codec.decode(b"\0\0\0\0\x01\x02\x02" + body) == (
        7, 1.5, {"1": "x"}, "ONE", None, {"LEFT": None, "RIGHT": 9},
    )  # fmt: skip


def test_formats_refuse_what_they_have_no_schema_for():
    with pytest.raises(FormatRefused, match="Avro only supports MAPs with STRING keys"):
        values("AVRO", ("M", map_of(INTEGER, STRING)), registry=FakeLookup())
    with pytest.raises(FormatRefused, match="JSON only supports MAP types with STRING keys"):
        values("JSON_SR", ("M", map_of(INTEGER, STRING)), registry=FakeLookup())
    with pytest.raises(FormatRefused, match="PROTOBUF format only supports MAP types with STRING keys"):
        values("PROTOBUF", ("M", map_of(INTEGER, STRING)), registry=FakeLookup())
    with pytest.raises(FormatRefused, match="Illegal initial character: 1foo"):
        values("AVRO", ("1foo", INTEGER), registry=FakeLookup())
    with pytest.raises(FormatRefused, match=r"without configuring 'ksql\.schema\.registry\.url'"):
        values("AVRO", ("A", INTEGER))


class Silent(FakeLookup):
    def by_id(self, schema_id, subject=None):
        raise OSError("nobody answers")


def test_a_registry_that_does_not_answer_is_no_fault_of_a_record():
    with pytest.raises(SchemasUnavailable, match="nobody answers"):
        values("AVRO", ("A", INTEGER), registry=Silent()).decode(b"\0\0\0\0\1\2")
    schema = Schema((), (Column("A", INTEGER),))
    source = Source("S", SourceKind.STREAM, "s", schema, Formats(Format("KAFKA"), Format("AVRO")))
    node = Read(name="read", schema=schema, kind=SourceKind.STREAM, source=source)
    plan = Plan((Deliver(name="to", schema=schema, kind=SourceKind.STREAM, input=node),))
    driver = Driver(plan, registry=Silent())
    with pytest.raises(SchemasUnavailable):
        driver.pipe("s", value=b"\0\0\0\0\1\2")
    assert driver.troubles == []
