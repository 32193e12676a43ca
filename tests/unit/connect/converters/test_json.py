"""JsonConverter."""

from __future__ import annotations

import datetime as dt
import json
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.connect.converters.json import JsonConverter
from penstock.connect.data import (
    BYTES,
    DATE,
    FLOAT32,
    FLOAT64,
    INT8,
    INT32,
    INT64,
    OPTIONAL_STRING,
    STRING,
    TIME,
    TIMESTAMP,
    Schema,
    Type,
    array,
    decimal,
    map_of,
    struct,
)
from penstock.connect.errors import DataError, InvalidConfig
from penstock.connect.records import Header
from tests.unit.connect.converters.schemas_and_values import records, schemas

ORDER = struct("order", id=INT64, note=OPTIONAL_STRING)


def converter(**config: str) -> JsonConverter:
    made = JsonConverter()
    made.configure({name.replace("_", "."): value for name, value in config.items()})
    return made


WITH, WITHOUT = converter(), converter(schemas_enable="false")


@given(records(schemas()))
@settings(deadline=None)
def test_any_value_comes_back_with_its_schema(record: tuple[Schema, Any]) -> None:
    schema, value = record
    data = WITH.from_value("t", schema, value)
    assert WITH.to_value("t", data) == (schema, value)
    assert WITH.to_value("t", data) == (schema, value)  # now by its beginning


@given(records(schemas()))
@settings(deadline=None)
def test_any_value_comes_back_with_decimals_as_numbers(record: tuple[Schema, Any]) -> None:
    numeric = converter(decimal_format="numeric")
    schema, value = record
    assert numeric.to_value("t", numeric.from_value("t", schema, value)) == (schema, value)


TEXTS = st.text(st.characters(exclude_categories=["Cs"]))
JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(1 << 63), (1 << 63) - 1)
    | st.floats(allow_nan=False, allow_infinity=False) | TEXTS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=4),
    max_leaves=10,
)  # fmt: skip


@given(JSON_VALUES.filter(lambda value: value is not None))
@settings(deadline=None)
def test_any_json_comes_back_without_schemas(value: Any) -> None:
    assert WITHOUT.to_value("t", WITHOUT.from_value("t", None, value)) == (None, value)
    assert WITH.to_value("t", WITH.from_value("t", None, value)) == (None, value)


@pytest.mark.parametrize(
    ("schema", "value", "payload"),
    [
        (INT8, -5, "-5"),
        (INT64, (1 << 63) - 1, "9223372036854775807"),
        (FLOAT64, 1.0, "1.0"),
        (FLOAT64, 1e7, "1.0E7"),
        (FLOAT64, 0.0001, "1.0E-4"),
        (FLOAT64, float("nan"), '"NaN"'),
        (FLOAT64, float("-inf"), '"-Infinity"'),
        (FLOAT32, 0.10000000149011612, "0.1"),
        (STRING, "größe", '"größe"'),
        (BYTES, b"\x00\xff", '"AP8="'),
        (BYTES, memoryview(b"\x00\xff"), '"AP8="'),
        (decimal(2), Decimal("-1.28"), '"gA=="'),
        (DATE, dt.date(1970, 1, 2), "1"),
        (TIME, dt.time(0, 0, 1, 5000), "1005"),
        (TIMESTAMP, dt.datetime(1970, 1, 1, 0, 0, 2, tzinfo=dt.UTC), "2000"),
        (array(INT32), [1, 2], "[1,2]"),
        (map_of(STRING, INT32), {"a": 1}, '{"a":1}'),
        (map_of(INT32, STRING), {1: "a"}, '[[1,"a"]]'),
        (map_of(STRING.optional(), INT32), {None: 1}, '{"null":1}'),
        (ORDER, ORDER.new(id=1), '{"id":1,"note":null}'),
        (OPTIONAL_STRING, None, "null"),
        (Schema(Type.INT32, default=5), None, "5"),
        (Schema(Type.INT32, default=5, is_optional=True), None, "5"),
        (None, {"a": [1, b"\x00"], "b": (1.5, None)}, '{"a":[1,"AA=="],"b":[1.5,null]}'),
        (None, {1: "a"}, '[[1,"a"]]'),
        (None, {"a": float("nan")}, '{"a":"NaN"}'),
        (None, (1 << 63) - 1, "9223372036854775807"),
    ],
)
def test_values_have_kafka_s_form(schema: Schema | None, value: Any, payload: str) -> None:
    data = WITHOUT.from_value("t", schema, value)
    assert data is not None
    assert data.decode() == payload


def test_the_envelope_has_the_schema_first() -> None:
    schema = struct(
        "order",
        id=INT64,
        price=decimal(2).with_(is_optional=True, default=Decimal("0.50"), doc="what it costs"),
        tags=array(STRING),
        stock=map_of(STRING, INT32),
    ).with_(version=3)
    data = WITH.from_value("t", schema, schema.new(id=1, tags=["a"], stock={"k": 2}))
    assert data is not None
    assert data.decode() == (
        '{"schema":{"type":"struct","fields":[{"type":"int64","optional":false,"field":"id"},'
        '{"type":"bytes","optional":true,"name":"org.apache.kafka.connect.data.Decimal","version":1,"doc":"what it costs",'
        '"parameters":{"scale":"2"},"default":"Mg==","field":"price"},'
        '{"type":"array","items":{"type":"string","optional":false},"optional":false,"field":"tags"},'
        '{"type":"map","keys":{"type":"string","optional":false},"values":{"type":"int32","optional":false},"optional":false,'
        '"field":"stock"}],"optional":false,"name":"order","version":3},'
        '"payload":{"id":1,"price":"Mg==","tags":["a"],"stock":{"k":2}}}'
    )


@pytest.mark.parametrize(
    ("schema", "value", "message"),
    [
        (INT32, None, "Conversion error: null value for field that is required"),
        (INT32, "1", "Invalid type for INT32"),
        (INT32, True, "Invalid type for INT32"),
        (INT8, 128, "does not fit INT8"),
        (STRING, 1, "Invalid type for STRING"),
        (BYTES, "a", "Invalid type for bytes type"),
        (decimal(2), 1.5, "Invalid type for Decimal, expected BigDecimal"),
        (decimal(2), Decimal("1.5"), "mismatching scale"),
        (DATE, dt.datetime(2026, 1, 1), "Invalid type for Date, expected Date"),
        (ORDER, {"id": 1}, "Invalid type for STRUCT"),
        (ORDER, struct(None, a=INT32).new(a=1), "Mismatching schema."),
        (array(INT32), "12", "Invalid type for ARRAY"),
        (map_of(STRING, INT32), [1], "Invalid type for MAP"),
        (None, ORDER.new(id=1), "Mismatching schema."),
        (None, {"a": dt.date(2026, 1, 1)}, "does not have corresponding schema type"),
        (None, 1 << 63, "is no number of 64 bits"),
        (None, {"a": {"b": object()}}, "does not have corresponding schema type"),
    ],
)
def test_a_value_that_is_not_what_its_schema_says_is_refused(
    schema: Schema | None, value: Any, message: str
) -> None:
    with pytest.raises(DataError, match=message):
        WITH.from_value("t", schema, value)


def test_null_without_a_schema_is_a_tombstone() -> None:
    assert WITH.from_value("t", None, None) is None
    assert WITH.to_value("t", None) == (None, None)
    assert WITHOUT.from_value("t", OPTIONAL_STRING, None) == b"null"
    assert WITHOUT.to_value("t", b"") == (None, None)


def test_whole_numbers_beyond_64_bits_lose_their_high_ones_as_in_java() -> None:
    assert WITHOUT.to_value("t", b'{"a":9223372036854775808}') == (None, {"a": -(1 << 63)})
    assert WITHOUT.to_value("t", b'{"a":"99999999999999999999"}') == (None, {"a": "99999999999999999999"})
    assert WITH.to_value("t", b'{"schema":{"type":"int8"},"payload":300}')[1] == 44
    assert WITH.to_value("t", b'{"schema":null,"payload":18446744073709551617}') == (None, 1)


def test_zeros_in_front_and_what_follows_are_let_pass() -> None:
    assert WITHOUT.to_value("t", b'{"a":007,"b":"007"} tail') == (None, {"a": 7, "b": "007"})


@pytest.mark.parametrize(
    "data", [b"{", b"NaN", b'"\xff"', b"[1,]", b"1" * 1001, b"[" * 100_000, b'{"a":' * 5_000]
)
def test_what_is_no_json_is_refused(data: bytes) -> None:
    with pytest.raises(DataError, match="due to serialization error"):
        WITHOUT.to_value("t", data)


def test_a_number_for_a_decimal_keeps_its_digits() -> None:
    schema = json.dumps(
        {"type": "bytes", "name": decimal(2).name, "version": 1, "parameters": {"scale": "2"}}
    )
    found = WITH.to_value("t", f'{{"schema":{schema},"payload":12345678901234567890.10}}'.encode())
    assert str(found[1]) == "12345678901234567890.10"


def test_null_becomes_the_default_only_where_it_should() -> None:
    data = b'{"schema":{"type":"int32","optional":true,"default":5},"payload":null}'
    assert WITH.to_value("t", data)[1] == 5
    kept = converter(replace_null_with_default="false")
    schema, value = kept.to_value("t", data)
    assert value is None
    assert json.loads(kept.from_value("t", schema, None) or b"")["payload"] is None


def test_a_payload_may_look_like_the_end_of_the_schema() -> None:
    """Records are known by their beginning; the beginning is where the schema really ends."""
    schema = struct("order", text=STRING)
    for text in (',"payload":', '"}', '},"payload":{"text":"x"'):
        data = WITH.from_value("t", schema, schema.new(text=text))
        assert WITH.to_value("t", data) == (schema, schema.new(text=text))
    named = Schema(Type.STRING, doc=',"payload":')
    for text in ("a", "b"):
        assert WITH.to_value("t", WITH.from_value("t", named, text)) == (named, text)
    with pytest.raises(DataError, match="requires"):
        WITH.to_value("t", (WITH.from_value("t", schema, schema.new(text="a")) or b"")[:-1] + b',"more":1}')


def test_a_schema_that_changes_is_seen() -> None:
    for schema in (struct("a", x=INT32), struct("a", x=INT64), struct("a", x=INT32, y=STRING.optional())) * 3:
        value = schema.new(x=1)
        assert WITH.to_value("t", WITH.from_value("t", schema, value)) == (schema, value)


def test_schemas_beyond_the_cache_are_made_again() -> None:
    small = converter(schemas_cache_size="1")
    for number in range(5):
        schema = struct(f"s{number % 3}", x=INT32)
        assert small.to_value("t", small.from_value("t", schema, schema.new(x=number)))[1]["x"] == number


def test_the_schema_may_stand_in_the_configuration() -> None:
    fixed = converter(schema_content='{"type":"struct","fields":[{"type":"int32","field":"a"}]}')
    schema, value = fixed.to_value("t", b'{"a":5}')
    assert schema is not None
    assert value["a"] == 5
    with pytest.raises(DataError, match="Failed to parse schema in converter config"):
        converter(schema_content="{")


def test_headers_are_converted_alike() -> None:
    data = WITH.from_header("t", Header("h", 1, INT32))
    assert WITH.to_header("t", "h", data) == Header("h", 1, INT32)


def test_half_a_character_is_written_by_its_number() -> None:
    assert WITHOUT.from_value("t", None, {"a": "\ud800"}) == b'{"a":"\\ud800"}'
    assert WITHOUT.to_value("t", b'{"a":"\\ud800"}') == (None, {"a": "\ud800"})


@pytest.mark.parametrize(
    "config", [{"decimal_format": "TEXT"}, {"schemas_enable": "perhaps"}, {"schemas_cache_size": "x"}]
)
def test_a_wrong_configuration_is_refused(config: dict[str, str]) -> None:
    with pytest.raises(InvalidConfig):
        converter(**config)
