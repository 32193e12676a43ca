"""Converters of one type, and of headers."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.connect.converters.either import EitherConverter
from penstock.connect.converters.header import SimpleHeaderConverter
from penstock.connect.converters.simple import (
    BooleanConverter,
    ByteArrayConverter,
    DoubleConverter,
    FloatConverter,
    IntegerConverter,
    LongConverter,
    ShortConverter,
    StringConverter,
)
from penstock.connect.data import (
    BYTES,
    DATE,
    FLOAT32,
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
from penstock.connect.data.parsing import parse_text
from penstock.connect.errors import DataError, InvalidConfig
from penstock.connect.records import Header

HEADERS = SimpleHeaderConverter()
ROW = struct("row", id=INT64, note=OPTIONAL_STRING, price=FLOAT32)


def made(kind: type[EitherConverter], **config: str) -> EitherConverter:
    converter = kind()
    converter.configure({name.replace("_", "."): value for name, value in config.items()})
    return converter


@pytest.mark.parametrize(
    ("kind", "value", "data"),
    [
        (StringConverter, "größe", "größe".encode()),
        (ByteArrayConverter, b"\x00\xff", b"\x00\xff"),
        (BooleanConverter, True, b"\x01"),
        (BooleanConverter, False, b"\x00"),
        (ShortConverter, -2, b"\xff\xfe"),
        (IntegerConverter, 5, b"\x00\x00\x00\x05"),
        (LongConverter, 5, b"\x00" * 7 + b"\x05"),
        (FloatConverter, 1.5, b"\x3f\xc0\x00\x00"),
        (DoubleConverter, 1.5, b"\x3f\xf8" + b"\x00" * 6),
    ],
)
def test_values_have_the_bytes_of_kafka_s_serializers(
    kind: type[EitherConverter], value: Any, data: bytes
) -> None:
    converter = made(kind)
    assert converter.from_value("t", None, value) == data
    schema, found = converter.to_value("t", data)
    assert found == value
    assert schema is not None
    assert schema.is_optional
    assert converter.from_value("t", schema, None) is None
    assert converter.to_value("t", None) == (schema, None)
    assert converter.to_header("t", "h", converter.from_header("t", Header("h", value, schema))) == Header(
        "h", value, schema
    )


@pytest.mark.parametrize(
    ("kind", "schema", "value", "message"),
    [
        (ByteArrayConverter, STRING, "a", "Invalid schema type for ByteArrayConverter: STRING"),
        (ByteArrayConverter, None, "a", "ByteArrayConverter is not compatible with objects of type"),
        (BooleanConverter, STRING, "a", "Invalid schema type for BooleanConverter: STRING"),
        (BooleanConverter, None, 1, "BooleanConverter is not compatible with objects of type"),
        (IntegerConverter, INT64, 1, r"Failed to serialize to integer \(was"),
        (IntegerConverter, None, "1", r"Failed to serialize to integer \(was"),
        (IntegerConverter, None, True, r"Failed to serialize to integer \(was"),
        (IntegerConverter, None, 1 << 31, "has more than 32 bits"),
        (DoubleConverter, None, 1, r"Failed to serialize to double \(was"),
    ],
)
def test_other_values_are_refused(
    kind: type[EitherConverter], schema: Schema | None, value: Any, message: str
) -> None:
    with pytest.raises(DataError, match=message):
        made(kind).from_value("t", schema, value)


@pytest.mark.parametrize(
    ("kind", "data", "message"),
    [
        (BooleanConverter, b"\x02", "Unexpected byte received by BooleanDeserializer: 2"),
        (BooleanConverter, b"", "Size of data received by BooleanDeserializer is not 1"),
        (
            IntegerConverter,
            b"\x00",
            "Failed to deserialize integer: Size of data received by IntegerDeserializer is not 4",
        ),
        (FloatConverter, b"", "Failed to deserialize float: Size of data received by Deserializer is not 4"),
    ],
)
def test_bytes_of_another_length_are_refused(kind: type[EitherConverter], data: bytes, message: str) -> None:
    with pytest.raises(DataError, match=message):
        made(kind).to_value("t", data)


@pytest.mark.parametrize(
    ("schema", "value", "text"),
    [
        (None, 5, "5"),
        (None, True, "true"),
        (FLOAT32, 0.10000000149011612, "0.1"),
        (None, 1e10, "1.0E10"),
        (decimal(2), Decimal("1.50"), "1.50"),
        (ROW, ROW.new(id=1, price=0.5), "Struct{id=1,price=0.5}"),
        (array(OPTIONAL_STRING), ["a", None], "[a, null]"),
        (map_of(STRING, INT64), {"a": 1}, "{a=1}"),
        (TIMESTAMP, dt.datetime(2026, 1, 2, 3, 4, 5, tzinfo=dt.UTC), "Fri Jan 02 03:04:05 UTC 2026"),
    ],
)
def test_a_string_is_what_java_prints(schema: Schema | None, value: Any, text: str) -> None:
    assert made(StringConverter).from_value("t", schema, value) == text.encode()


def test_a_string_may_have_another_charset() -> None:
    latin = made(StringConverter, converter_encoding="ISO-8859-1")
    assert latin.from_value("t", None, "größe") == b"gr\xf6\xdfe"
    assert latin.to_value("t", b"gr\xf6\xdfe") == (OPTIONAL_STRING, "größe")
    wide = made(StringConverter, converter_encoding="UTF-16")
    assert wide.from_value("t", None, "a") == b"\xfe\xff\x00a"
    assert wide.to_value("t", b"\x00a")[1] == wide.to_value("t", b"\xff\xfea\x00")[1] == "a"
    with pytest.raises(InvalidConfig):
        made(StringConverter, converter_encoding="klingon")


@pytest.mark.parametrize(
    ("schema", "value", "text"),
    [
        (STRING, 'a "b"', 'a "b"'),
        (array(STRING), ['a "b" \\', "c"], '["a \\"b\\" \\\\","c"]'),
        (map_of(STRING, INT64), {"a": 1}, '{"a":1}'),
        (ROW, ROW.new(id=1, price=0.5), '{"id":1,"note":null,"price":0.5}'),
        (BYTES, b"\x00\xff", "AP8="),
        (array(BYTES), [b"\x00\xff"], '["AP8="]'),
        (DATE, dt.date(2026, 1, 2), "2026-01-02"),
        (DATE, dt.date(1970, 1, 1), "00:00:00.000Z"),
        (TIME, dt.time(1, 2, 3, 4000), "01:02:03.004Z"),
        (TIMESTAMP, dt.datetime(2026, 1, 2, 3, 4, 5, 6000, tzinfo=dt.UTC), "2026-01-02T03:04:05.006Z"),
        (decimal(2), Decimal("1.50"), "1.50"),
    ],
)
def test_a_header_is_text(schema: Schema, value: Any, text: str) -> None:
    assert HEADERS.from_header("t", Header("h", value, schema)) == text.encode()


@pytest.mark.parametrize(
    ("text", "schema", "value"),
    [
        ("5", INT8, 5),
        ("300", Schema(Type.INT16), 300),
        ("0.1", FLOAT32, 0.10000000149011612),
        ("1e39", Schema(Type.FLOAT64), 1e39),
        ("1e400", decimal(-400), Decimal("1e400")),
        ("1e999999999", decimal(-999_999_999), Decimal("1e999999999")),
        ("0e99999999", INT8, 0),
        ("99999999999999999999", decimal(0), Decimal("99999999999999999999")),
        ("true", Schema(Type.BOOLEAN), True),
        ("2026-01-02", DATE, dt.date(2026, 1, 2)),
        ("01:02:03.004Z", TIME, dt.time(1, 2, 3, 4000)),
        ("24:00:00.000Z", STRING, "24:00:00.000Z"),
        ("[1,1000]", array(Schema(Type.INT16)), [1, 1000]),
        ('{"a":[1],"b":[]}', map_of(STRING, Schema(Type.ARRAY, holds_nulls=True)), {"a": [1], "b": []}),
        ('[1,"a"]', Schema(Type.ARRAY, holds_nulls=True), [1, "a"]),
        ("{[1]:1}", STRING, "{[1]:1}"),
        ("plain, text: here", STRING, "plain, text: here"),
        ("", STRING, ""),
    ],
)
def test_a_header_s_type_is_guessed(text: str, schema: Schema, value: Any) -> None:
    assert HEADERS.to_header("t", "h", text.encode()) == Header("h", value, schema)


def test_null_and_what_is_too_deep_in_a_header() -> None:
    assert (
        HEADERS.to_header("t", "h", None) == HEADERS.to_header("t", "h", b"null") == Header("h", None, None)
    )
    assert HEADERS.from_header("t", Header("h", None, STRING)) is None
    deep = b"[" * 100_000
    assert HEADERS.to_header("t", "h", deep) == Header("h", deep, BYTES)


@given(st.text('0123456789-:TZ.eE+"\\[]{},atrun l\x00é', max_size=40))
@settings(deadline=None)
def test_any_text_is_taken_for_something(text: str) -> None:
    found = parse_text(text)
    if found.schema is not None and found.schema.type is Type.STRING:
        assert found.value in (text, text.replace("\\:", ":").strip())


@pytest.mark.parametrize(
    "text",
    [
        "[" * 190 + "1",
        "[1," * 50_000,
        '{"a":' * 150 + "1",
        "1:" * 50_000,
        "9" * 200_000,
        '["' + "\\" * 99_999,
        "\\" * 99_999,
    ],
)
def test_long_texts_take_bounded_time(text: str) -> None:
    assert HEADERS.to_header("t", "h", text.encode()).value is not None


def test_an_int32_is_no_header_of_its_own() -> None:
    """What comes back has the smallest type, not the one that it had."""
    data = HEADERS.from_header("t", Header("h", 5, INT32))
    assert HEADERS.to_header("t", "h", data) == Header("h", 5, INT8)
