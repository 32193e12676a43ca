"""Converters through a schema registry."""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings

from penstock.connect.converters.avro_schemas import AvroForm, to_avro
from penstock.connect.converters.avro_to_connect import from_avro
from penstock.connect.converters.json_schema_schemas import JsonSchemaForm, from_json_schema, to_json_schema
from penstock.connect.converters.registry import (
    AvroConverter,
    JsonSchemaConverter,
    ProtobufConverter,
    RegistryConverter,
)
from penstock.connect.data import (
    BOOLEAN,
    BYTES,
    DATE,
    FLOAT32,
    FLOAT64,
    INT8,
    INT16,
    INT32,
    INT64,
    OPTIONAL_STRING,
    STRING,
    TIME,
    TIMESTAMP,
    Schema,
    Struct,
    Type,
    array,
    decimal,
    map_of,
    struct,
)
from penstock.connect.errors import DataError, InvalidConfig, RetriableError
from penstock.schemas.parsing import parse
from tests.small_registry import SmallRegistry, small_registry
from tests.unit.connect.converters.schemas_and_values import records, schemas, structs

INNER = struct("shop.Place", street=STRING, floor=INT8).optional()
ORDER = struct(
    "shop.Order",
    id=INT64,
    count=INT16,
    note=OPTIONAL_STRING,
    price=decimal(2),
    paid=BOOLEAN,
    day=DATE,
    hour=TIME,
    at=TIMESTAMP.optional(),
    data=BYTES,
    place=INNER,
    tags=array(STRING),
    stock=map_of(STRING, INT32),
    weight=FLOAT32,
    size=FLOAT64,
)
ROW = ORDER.new(
    id=1,
    count=2,
    note="n",
    price=Decimal("1.50"),
    paid=True,
    day=dt.date(2026, 1, 2),
    hour=dt.time(1, 2, 3, 4000),
    at=dt.datetime(2026, 1, 2, 3, 4, 5, 6000, tzinfo=dt.UTC),
    data=b"\x00\xff",
    place=INNER.new(street="Main", floor=3),
    tags=["a", "b"],
    stock={"k": 5},
    weight=1.5,
    size=2.5,
)
KINDS: list[type[RegistryConverter]] = [AvroConverter, JsonSchemaConverter, ProtobufConverter]


@pytest.fixture(scope="module")
def registry() -> Iterator[SmallRegistry]:
    with small_registry() as running:
        yield running


def made(
    kind: type[RegistryConverter], registry: SmallRegistry, *, is_key: bool = False, **config: str
) -> RegistryConverter:
    converter = kind()
    converter.is_key = is_key
    converter.configure(
        {
            "schema.registry.url": registry.url,
            **{name.replace("_", "."): value for name, value in config.items()},
        }
    )
    return converter


@pytest.mark.parametrize("kind", [AvroConverter, JsonSchemaConverter])
def test_a_row_comes_back_with_its_schema(kind: type[RegistryConverter], registry: SmallRegistry) -> None:
    converter = made(kind, registry)
    data = converter.from_value("orders", ORDER, ROW)
    assert converter.to_value("orders", data) == (ORDER, ROW)
    assert made(kind, registry).to_value("orders", data) == (ORDER, ROW)


def test_a_row_comes_back_from_protobuf_with_all_its_values(registry: SmallRegistry) -> None:
    converter = made(ProtobufConverter, registry)
    schema, row = converter.to_value("orders", converter.from_value("orders", ORDER, ROW))
    assert schema is not None
    assert [field.name for field in schema.fields] == [field.name for field in ORDER.fields]
    values = dict(row.items())
    assert dict(values.pop("place").items()) == {"street": "Main", "floor": 3}
    assert values == {name: value for name, value in ROW.items() if name != "place"}


@pytest.mark.parametrize("kind", KINDS)
def test_null_is_a_tombstone(kind: type[RegistryConverter], registry: SmallRegistry) -> None:
    converter = made(kind, registry)
    assert converter.from_value("t", None, None) is None
    assert converter.from_value("t", ORDER.optional(), None) is None
    assert converter.to_value("t", None) == (None, None)


@pytest.mark.parametrize("kind", KINDS)
def test_keys_have_a_subject_of_their_own(kind: type[RegistryConverter], registry: SmallRegistry) -> None:
    key = struct("shop.Key", id=INT64)
    made(kind, registry, is_key=True).from_value(f"of-{kind.__name__}", key, key.new(id=1))
    assert f"of-{kind.__name__}-key" in registry.subjects()


@pytest.mark.parametrize("kind", KINDS)
def test_the_registry_is_asked_once_for_a_schema(
    kind: type[RegistryConverter], registry: SmallRegistry
) -> None:
    converter = made(kind, registry)
    data = converter.from_value(f"once-{kind.__name__}", ORDER, ROW)
    converter.to_value("t", data)
    asked = len(registry.asked)
    for _ in range(3):
        assert converter.from_value(f"once-{kind.__name__}", ORDER.with_(), ROW) == data
        converter.to_value("t", data)
    assert len(registry.asked) == asked


@pytest.mark.parametrize("kind", KINDS)
def test_a_schema_is_not_registered_where_that_is_off(
    kind: type[RegistryConverter], registry: SmallRegistry
) -> None:
    converter = made(kind, registry, auto_register_schemas="false")
    with pytest.raises(DataError, match=r"Subject 'nothing-value' not found\."):
        converter.from_value("nothing", ORDER, ROW)


@pytest.mark.parametrize("kind", KINDS)
def test_a_registry_that_is_away_is_asked_again_later(kind: type[RegistryConverter]) -> None:
    with small_registry() as gone:
        converter = made(kind, gone)
    with pytest.raises(RetriableError, match="cannot reach the schema registry"):
        converter.from_value("t", ORDER, ROW)
    with pytest.raises(RetriableError, match="cannot reach the schema registry"):
        converter.to_value("t", b"\x00\x00\x00\x00\x01x")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("data", [b"", b"\x01", b'{"a":1}', b"\x00\x00\x00\x03\xe7x"])
def test_bytes_of_nobody_are_refused(
    kind: type[RegistryConverter], registry: SmallRegistry, data: bytes
) -> None:
    with pytest.raises(DataError):
        made(kind, registry).to_value("t", data)


@pytest.mark.parametrize("kind", KINDS)
def test_a_value_that_is_not_what_its_schema_says_is_refused(
    kind: type[RegistryConverter], registry: SmallRegistry
) -> None:
    schema = struct("shop.Small", id=INT64, name=STRING)
    converter = made(kind, registry)
    for values in (["x", "a"], [1, None], [1 << 70, "a"], [1, 5]):
        with pytest.raises(DataError):
            converter.from_value("small", schema, Struct.trusted(schema, values))
    with pytest.raises(DataError, match="without a schema"):
        converter.from_value("small", None, {"id": 1})


@pytest.mark.parametrize("kind", KINDS)
def test_a_schema_of_another_kind_is_refused(kind: type[RegistryConverter], registry: SmallRegistry) -> None:
    other = KINDS[(KINDS.index(kind) + 1) % len(KINDS)]
    data = made(other, registry).from_value("other", ORDER, ROW)
    with pytest.raises(DataError, match="was written with a schema of"):
        made(kind, registry).to_value("other", data)


def test_a_wrong_configuration_is_refused() -> None:
    for config in (
        {},
        {"schema.registry.url": "nowhere"},
        {"schema.registry.url": "http://a", "value.subject.name.strategy": "x"},
    ):
        with pytest.raises(InvalidConfig):
            AvroConverter().configure(config)


def test_the_latest_schema_of_a_subject_may_be_the_one_to_write(registry: SmallRegistry) -> None:
    registry.add(
        "latest-value",
        {"type": "record", "name": "R",
         "fields": [{"name": "id", "type": "long"}, {"name": "more", "type": "string", "default": "-"}]},
    )  # fmt: skip
    converter = made(AvroConverter, registry, auto_register_schemas="false", use_latest_version="true")
    schema = struct("R", id=INT64, unknown=STRING)
    found = converter.to_value(
        "latest", converter.from_value("latest", schema, schema.new(id=5, unknown="x"))
    )
    assert dict(found[1].items()) == {"id": 5, "more": "-"}


@given(records(schemas()))
@settings(deadline=None, max_examples=60, suppress_health_check=list(HealthCheck))
def test_any_value_comes_back_from_avro(registry: SmallRegistry, record: tuple[Schema, Any]) -> None:
    schema, value = record
    converter = made(AvroConverter, registry)
    data = converter.from_value("any", schema, value)
    assert converter.to_value("any", data) == ((None, None) if data is None else (schema, value))


@given(records(schemas()))
@settings(deadline=None, max_examples=60, suppress_health_check=list(HealthCheck))
def test_any_value_comes_back_from_json_schema(registry: SmallRegistry, record: tuple[Schema, Any]) -> None:
    schema, value = record
    converter = made(JsonSchemaConverter, registry, json_fail_invalid_schema="true")
    data = converter.from_value("any-json", schema, value)
    assert converter.to_value("any-json", data) == ((None, None) if data is None else (schema, value))


@given(records(structs(1).map(lambda schema: schema.with_(name="Any"))))
@settings(deadline=None, max_examples=60, suppress_health_check=list(HealthCheck))
def test_any_struct_comes_back_from_protobuf(registry: SmallRegistry, record: tuple[Schema, Any]) -> None:
    schema, value = record
    converter = made(ProtobufConverter, registry, optional_for_nullables="true")
    found, row = converter.to_value("any-proto", converter.from_value("any-proto", schema, value))
    assert found is not None
    for field, given_value in zip(schema.fields, value.values, strict=True):
        is_empty = field.schema.type in (Type.MAP, Type.ARRAY) and not given_value
        assert is_empty or row.without_default(field.name) == given_value
        assert (
            field.schema.type in (Type.MAP, Type.ARRAY)
            or found.fields[field.index].schema.type is field.schema.type
        )


AVRO_FORMS = [
    (INT8, {"type": "int", "connect.type": "int8"}),
    (INT64, "long"),
    (OPTIONAL_STRING, ["null", "string"]),
    (Schema(Type.INT16, default=3), {"type": "int", "connect.default": 3, "connect.type": "int16"}),
    (Schema(Type.INT32, is_optional=True, default=3), [{"type": "int", "connect.default": 3}, "null"]),
    (
        decimal(2),
        {
            "type": "bytes", "scale": 2, "precision": 64, "connect.version": 1, "connect.parameters": {"scale": "2"},
            "connect.name": "org.apache.kafka.connect.data.Decimal", "logicalType": "decimal",
        },
    ),
    (
        DATE,
        {"type": "int", "connect.version": 1, "connect.name": "org.apache.kafka.connect.data.Date", "logicalType": "date"},
    ),
    (
        Schema(Type.STRING, name="io.debezium.data.Enum", version=1, parameters={"allowed": "a,b"}, default="a"),
        {
            "type": "string", "connect.version": 1, "connect.parameters": {"allowed": "a,b"}, "connect.default": "a",
            "connect.name": "io.debezium.data.Enum",
        },
    ),
    (map_of(STRING, INT32), {"type": "map", "values": "int"}),
    (
        map_of(INT32, OPTIONAL_STRING),
        {
            "type": "array",
            "items": {
                "type": "record", "name": "MapEntry", "namespace": "io.confluent.connect.avro",
                "fields": [{"name": "key", "type": "int"}, {"name": "value", "type": ["null", "string"], "default": None}],
            },
        },
    ),
    (
        struct("a.b.Row", id=INT64, note=OPTIONAL_STRING.with_(doc="what for")).with_(version=2),
        {
            "type": "record", "name": "Row", "namespace": "a.b",
            "fields": [
                {"name": "id", "type": "long"},
                {"name": "note", "type": ["null", {"type": "string", "connect.doc": "what for"}], "doc": "what for",
                 "default": None},
            ],
            "connect.version": 2, "connect.name": "a.b.Row",
        },
    ),
    (
        struct(None, inner=struct(None, id=INT32)),
        {
            "type": "record", "name": "ConnectDefault", "namespace": "io.confluent.connect.avro",
            "fields": [
                {
                    "name": "inner",
                    "type": {
                        "type": "record", "name": "ConnectDefault2", "namespace": "io.confluent.connect.avro",
                        "fields": [{"name": "id", "type": "int"}],
                    },
                }
            ],
        },
    ),
]  # fmt: skip


@pytest.mark.parametrize(("schema", "form"), AVRO_FORMS, ids=lambda each: str(each)[:40])
def test_avro_s_schemas_have_confluent_s_form(schema: Schema, form: Any) -> None:
    text = to_avro(schema, AvroForm())
    assert json.loads(text) == form
    assert text == json.dumps(form)  # in its order, too
    parsed: Any = parse("AVRO", text)
    assert from_avro(parsed.root, AvroForm()) == schema


def test_a_union_of_avro_is_a_struct_with_one_field_set(registry: SmallRegistry) -> None:
    record = {
        "type": "record",
        "name": "Thing",
        "namespace": "a",
        "fields": [{"name": "x", "type": ["null", "string", "long"]}],
    }
    schema: Any = parse("AVRO", json.dumps(record))
    made_of = from_avro(schema.root, AvroForm())
    union = made_of.fields[0].schema
    assert union.name == "io.confluent.connect.avro.Union"
    assert [field.name for field in union.fields] == ["string", "long"]
    converter = made(AvroConverter, registry)
    for value in (union.new(string="a"), union.new(long=5), None):
        row = Struct.trusted(made_of, [value])
        assert converter.to_value("u", converter.from_value("u", made_of, row)) == (made_of, row)


def test_an_enum_of_avro_stays_one_where_that_is_asked(registry: SmallRegistry) -> None:
    enum = {"type": "enum", "name": "Colour", "namespace": "a", "symbols": ["RED", "BLUE"]}
    schema: Any = parse("AVRO", json.dumps(enum))
    connect = from_avro(schema.root, AvroForm())
    assert connect.type is Type.STRING
    said = json.loads(to_avro(connect, AvroForm(is_enhanced=True)))
    assert (said["type"], said["name"], said["symbols"]) == ("enum", "Colour", ["RED", "BLUE"])
    assert json.loads(to_avro(connect, AvroForm(has_meta_data=False))) == "string"
    enhanced = made(AvroConverter, registry, enhanced_avro_schema_support="true")
    assert enhanced.to_value("e", enhanced.from_value("e", connect, "BLUE"))[1] == "BLUE"
    with pytest.raises(DataError):
        enhanced.from_value("e", connect, "GREEN")


def test_a_type_that_contains_itself_is_refused(registry: SmallRegistry) -> None:
    tree = {"type": "record", "name": "Tree", "fields": [{"name": "next", "type": ["null", "Tree"]}]}
    schema_id = registry.add("tree-value", tree)
    with pytest.raises(DataError, match="contains itself"):
        made(AvroConverter, registry).to_value("tree", b"\x00" + schema_id.to_bytes(4, "big") + b"\x00")
    schema_id = registry.add("tree-p", 'syntax = "proto3"; message Tree { Tree next = 1; }', "PROTOBUF")
    with pytest.raises(DataError, match="contains itself"):
        made(ProtobufConverter, registry).to_value("tree", b"\x00" + schema_id.to_bytes(4, "big") + b"\x00")
    schema_id = registry.add("tree-j", {"type": "object", "properties": {"next": {"$ref": "#"}}}, "JSON")
    with pytest.raises(DataError, match="contains itself"):
        made(JsonSchemaConverter, registry).to_value("tree", b"\x00" + schema_id.to_bytes(4, "big") + b"{}")


@pytest.mark.parametrize(
    ("schema", "form"),
    [
        (INT8, {"type": "integer", "connect.type": "int8"}),
        (OPTIONAL_STRING, {"oneOf": [{"type": "null"}, {"type": "string"}]}),
        (
            map_of(STRING, BOOLEAN),
            {"type": "object", "additionalProperties": {"type": "boolean"}, "connect.type": "map"},
        ),
        (
            struct("row", id=INT64, note=OPTIONAL_STRING),
            {
                "type": "object",
                "properties": {
                    "id": {"type": "integer", "connect.type": "int64", "connect.index": 0},
                    "note": {"oneOf": [{"type": "null"}, {"type": "string"}], "connect.index": 1},
                },
                "title": "row",
            },
        ),
    ],
    ids=lambda each: str(each)[:40],
)  # fmt: skip
def test_json_schemas_have_confluent_s_form(schema: Schema, form: Any) -> None:
    text = to_json_schema(schema, JsonSchemaForm())
    assert json.loads(text) == form
    assert from_json_schema(json.loads(text), {}, JsonSchemaForm()) == schema


def test_a_json_schema_that_somebody_else_wrote_is_read(registry: SmallRegistry) -> None:
    schema = {
        "type": "object", "title": "person",
        "properties": {
            "name": {"type": "string"}, "age": {"type": ["integer", "null"]}, "home": {"$ref": "#/definitions/place"},
            "key": {"oneOf": [{"type": "string"}, {"type": "integer"}]},
        },
        "required": ["name"],
        "definitions": {"place": {"type": "object", "properties": {"street": {"type": "string"}}}},
    }  # fmt: skip
    schema_id = registry.add("person-value", schema, "JSON")
    converter = made(JsonSchemaConverter, registry, use_optional_for_nonrequired="true")
    data = b"\x00" + schema_id.to_bytes(4, "big") + b'{"name":"Ada","home":{"street":"Main"},"key":5}'
    found, value = converter.to_value("person", data)
    assert found is not None
    assert [field.schema.is_optional for field in found.fields] == [False, True, True, True]
    assert (value["name"], value["age"], value["home"]["street"]) == ("Ada", None, "Main")
    assert value["key"].values == [None, 5]


def test_a_oneof_of_protobuf_is_a_struct_with_one_field_set(registry: SmallRegistry) -> None:
    text = """
        syntax = "proto3";
        message Row {
          oneof what { string text = 1; int64 number = 2; }
          Colour colour = 3;
          enum Colour { RED = 0; BLUE = 1; }
        }
    """
    schema_id = registry.add("row-value", text, "PROTOBUF")
    converter = made(ProtobufConverter, registry)
    found, value = converter.to_value(
        "row", b"\x00" + schema_id.to_bytes(4, "big") + b"\x00" + b"\x10\x05\x18\x01"
    )
    assert found is not None
    assert value["what_0"].values == [None, 5]
    assert value["colour"] == "BLUE"
    again = converter.to_value("row", converter.from_value("row", found, value))[1]
    assert again["what_0"].values == [None, 5]


def test_fields_that_may_be_null_have_a_form_of_their_own_in_protobuf(registry: SmallRegistry) -> None:
    schema = struct("Row", a=INT32.optional(), b=OPTIONAL_STRING, c=INT32)
    for option in ("optional_for_nullables", "wrapper_for_nullables"):
        converter = made(ProtobufConverter, registry, **{option: "true"})
        found, value = converter.to_value(option, converter.from_value(option, schema, schema.new(b="", c=0)))
        assert found is not None
        assert value.values == [None, "", 0]
        assert [field.schema.is_optional for field in found.fields] == [True, True, False]


@pytest.mark.parametrize(
    "schema",
    [
        STRING,
        struct("R", a=array(array(INT32))),
        struct("R", a=map_of(FLOAT64, INT32)),
        struct("R", a=map_of(STRING, array(INT32))),
    ],
)
def test_what_protobuf_has_no_form_of_is_refused(registry: SmallRegistry, schema: Schema) -> None:
    with pytest.raises(DataError):
        made(ProtobufConverter, registry).from_value("t", schema, "a" if schema is STRING else Struct(schema))
