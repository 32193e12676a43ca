"""The option valueSchema: what is taken, and what is refused."""

import base64
import json
import pickle
from pathlib import Path

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


def test_names_in_the_json_of_a_schema_may_hold_anything() -> None:
    schema = parse_value_schema("`a b` long, `x:int,y` decimal(5,2), `q``` map<string,array<timestamp>>")
    assert parse_value_schema(schema.json()) == schema


def test_the_json_of_a_schema_makes_no_python_object_of_what_it_names(tmp_path: Path) -> None:
    trace = tmp_path / "trace"
    code = base64.b64encode(pickle.dumps(_Touch(trace))).decode()
    kind = {"type": "udt", "class": "x", "pyClass": "os.Nothing", "serializedClass": code, "sqlType": "long"}
    text = json.dumps(
        {"type": "struct", "fields": [{"name": "a", "type": kind, "nullable": True, "metadata": {}}]}
    )
    with pytest.raises(BadOption, match="has «udt» where a type that is read from JSON is expected"):
        parse_value_schema(text)
    assert not trace.exists()


class _Touch:
    def __init__(self, path: Path) -> None:
        self._path = path

    def __reduce__(self) -> tuple[object, tuple[Path]]:
        return Path.touch, (self._path,)


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("a " + "array<" * 100_000, "more than 64 levels"),
        ("a " + "struct<a " * 5_000, "more than 64 levels"),
        ('{"type":' * 100_000, "is not the JSON of a StructType"),
        (
            '{"type":"struct","fields":[{"name":"a","type":'
            + '{"type":"array","elementType":' * 200 + '"long"' + "}" * 200 + "}]}",
            "more than 64 levels",
        ),
        ("a decimal(" + "9" * 5_000 + ")", "where a number is expected"),
        ('{"type":"struct","fields":[{"name":1,"type":"long"}]}', "is not the JSON of a StructType"),
        ('{"type":"struct","fields":[{"name":"a","type":"long, b int"}]}', "where nothing more is expected"),
        ('{"type":"struct","fields":[{"name":"a","type":"struct<b: int>"}]}', "where a type that is read"),
        ('{"type":"map","keyType":"string","valueType":"long"}', "is not the JSON of a StructType"),
        ('{"type":"struct","fields":[]}', "must name one column at least"),
        ('{"type":"struct","fields":{"name":"a"}}', "is not the JSON of a StructType"),
        ('{"type":"struct","fields":[{"name":"a","type":"long"},{"name":"a","type":"long"}]}', "'a' twice"),
    ],
    ids=range(12),
)  # fmt: skip
def test_a_hostile_schema_is_refused_as_any_other(text: str, complaint: str) -> None:
    with pytest.raises(BadOption) as refused:
        parse_value_schema(text)
    assert complaint in str(refused.value)
    assert len(str(refused.value)) < 200


def test_a_schema_of_very_many_columns_is_read() -> None:
    text = ", ".join(f"a{number} array<long>" for number in range(20_000))
    assert len(parse_value_schema(text).fields) == 20_000
