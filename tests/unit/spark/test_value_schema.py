"""The option valueSchema: what is taken, and what is refused."""

import pytest

from penstock.spark.failures import BadOption
from penstock.spark.options import ReadOptions, read_options
from penstock.spark.value_schema import parse_value_schema


def options(**given: str) -> ReadOptions:
    return read_options(
        {"kafka.bootstrap.servers": "localhost:9092", "subscribe": "a", **given}, streaming=None
    )


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("id long", "struct<id:bigint>"),
        ("ID BIGINT NOT NULL COMMENT 'a, b', `x y` string", "struct<ID:bigint,x y:string>"),
        ("struct<a: int, b: struct<c float>>", "struct<a:int,b:struct<c:float>>"),
        (
            "a array<map<string, array<date>>>, b boolean",
            "struct<a:array<map<string,array<date>>>,b:boolean>",
        ),
        ("a decimal, b decimal(5), c numeric(5, 2)", "struct<a:decimal(10,0),b:decimal(5,0),c:decimal(5,2)>"),
        ("a varchar(10), b timestamp, c binary", "struct<a:string,b:timestamp,c:binary>"),
        ("struct int, map int", "struct<struct:int,map:int>"),
        ("a tinyint, b short, c real, d double", "struct<a:tinyint,b:smallint,c:float,d:double>"),
    ],
)
def test_columns_are_written_as_in_spark(text: str, expected: str) -> None:
    assert parse_value_schema(text).simpleString() == expected


def test_the_json_of_a_schema_is_taken_as_well() -> None:
    schema = parse_value_schema("id long, who struct<name: string>, tags array<string>")
    assert parse_value_schema(schema.json()) == schema


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("id lnog", "has «lnog» where a type that is read from JSON is expected"),
        ("id", "has its end where a type is expected"),
        ("id long,", "has its end where a column's name is expected"),
        ("id long item string", "has «item string» where ',' is expected"),
        ("a array<int", "has its end where '>' is expected"),
        ("a array<int>>", "where ',' is expected"),
        ("a map<int, int>", "where string, which the keys of JSON are, is expected"),
        ("a struct<>", "where a column's name is expected"),
        ("a decimal(39)", "where a decimal of 1 to 38 digits is expected"),
        ("a decimal(2, 3)", "where a decimal of 1 to 38 digits is expected"),
        ("a int, a int", "has the column 'a' twice"),
        ("a interval", "has «interval» where"),
        ("a int; drop", "has «; drop» where"),
        ("struct<a: int> b", "has «b» where nothing more is expected"),
        ('{"type": "struct"}', "is not the JSON of a StructType"),
        ("{", "is not the JSON of a StructType"),
    ],
)
def test_what_is_no_schema_is_refused_by_the_options_name(text: str, complaint: str) -> None:
    with pytest.raises(BadOption) as refused:
        parse_value_schema(text)
    assert str(refused.value).startswith("option 'valueSchema' ")
    assert complaint in str(refused.value)


@pytest.mark.parametrize(
    ("given", "complaint"),
    [
        (
            {"valueSchema": "a int", "valueMode": "DROPMALFORMED"},
            "'valueMode' must be PERMISSIVE or FAILFAST",
        ),
        ({"valueSchema": "a int", "valueTimeZone": "Mars"}, "'valueTimeZone' must be like Europe/Lisbon"),
        ({"valueMode": "FAILFAST"}, "'valueMode' has a meaning with 'valueSchema' only"),
        ({"includeRawValue": "true"}, "'includeRawValue' has a meaning with 'valueSchema' only"),
        ({"valueSchema": " "}, "'valueSchema' must not be empty"),
    ],
)
def test_a_wrong_option_of_values_is_refused_by_its_name(given: dict[str, str], complaint: str) -> None:
    with pytest.raises(BadOption) as refused:
        options(**given)
    assert complaint in str(refused.value)


def test_values_are_bytes_unless_it_is_said_otherwise() -> None:
    assert options().values is None
    values = options(valueSchema="a int").values
    assert values is not None
    assert (values.fails_fast, values.include_raw, values.time_zone) == (False, False, "UTC")
