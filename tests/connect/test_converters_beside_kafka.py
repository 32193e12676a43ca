"""Our converters beside Apache Kafka's own, on the same bytes and values."""

from __future__ import annotations

import json
from collections.abc import Mapping
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from penstock.connect.converters.either import EitherConverter
from penstock.connect.converters.header import SimpleHeaderConverter
from penstock.connect.converters.json import JsonConverter
from penstock.connect.converters.json_schemas import schema_to_json
from penstock.connect.converters.json_writing import Form
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
from penstock.connect.data import BYTES, Schema, decimal
from penstock.connect.data.floats import to_single
from penstock.connect.data.logical import decimal_to_bytes
from penstock.connect.data.parsing import parse_text
from penstock.connect.errors import DataError
from penstock.connect.records import Header
from simulation.apache.connect_oracle import Refused, oracle

JSON = JsonConverter.java_names[0]
Json = dict[str, Any]
DATA = "org.apache.kafka.connect.data."
SIMPLE: list[type[EitherConverter]] = [
    StringConverter, ByteArrayConverter, BooleanConverter, ShortConverter, IntegerConverter, LongConverter, FloatConverter,
    DoubleConverter,
]  # fmt: skip


def converter(kind: type[EitherConverter], config: Mapping[str, str]) -> EitherConverter:
    made = kind()
    made.configure(config)
    return made


def said(schema: Schema | None, value: Any) -> Json:
    """In the form of the oracle, which takes any value."""
    if schema is None:
        return {"schema": None, "payload": value}
    form = {"schema": schema_to_json(schema, Form())}
    if value is None or isinstance(value, (bool, int, float, str)):
        return {**form, "payload": value}
    if isinstance(value, Decimal):
        value = Decimal(format(value, "f"))  # as py4j brings them
        scale = -int(value.as_tuple().exponent)
        value, schema = decimal_to_bytes(decimal(scale), value), BYTES
    judge = converter(JsonConverter, {"replace.null.with.default": "false"})
    data = judge.from_value("", schema, value)
    assert data is not None
    return {**form, "payload": json.loads(data)["payload"]}


def told(value: Json) -> tuple[Schema | None, Any]:
    judge = converter(JsonConverter, {"replace.null.with.default": "false"})
    return judge.to_value("", json.dumps(value).encode())


def type_(kind: str, /, **more: Any) -> Json:
    return {"type": kind, **more}


DECIMAL = type_("bytes", name=DATA + "Decimal", version=1, parameters={"scale": "2"})
DATE, TIME = type_("int32", name=DATA + "Date", version=1), type_("int32", name=DATA + "Time", version=1)
TIMESTAMP = type_("int64", name=DATA + "Timestamp", version=1)
ROW = type_(
    "struct",
    fields=[
        type_("int32", field="a"),
        type_("string", optional=True, field="b", default="none"),
        DATE | {"field": "c"},
    ],
    name="row",
    version=2,
    doc="a row",
)
NUMBERS = type_("map", keys=type_("int32"), values=type_("string", optional=True))
NAMES = type_("map", keys=type_("string"), values=type_("int64"))
PAYLOADS = [
    "1", '"1"', "true", "1.9", "-1.9", "300", "99999999999999999999", "null", "[]", "1e30", "{}", '"MQ=="', '"M"', '"_-8="', '""',
    "1.5", "1.50", "-1", "86399999", "2147483647", "99999999999", '"a"', "[1,2]", "[null]", '{"a":1}', '{"a":null}', "[[1,2]]",
    '[[1,"a"]]', "[[1]]", "[1]", '{"a":1,"c":5}', '{"a":1,"b":null,"c":5}', '{"a":1,"b":5,"c":5}',
    '{"a":"x","b":"y","c":-5,"d":1}',
    '{"a":1,"b":"y","c":"x"}', "01", "-0.0", "12345678901234567890123456.12", "1E+3", "9007199254740993",
]  # fmt: skip
SCHEMAS: list[Any] = [
    *(type_(name) for name in ("int8", "int16", "int32", "int64", "float", "double", "boolean", "string", "bytes")),
    type_("string", optional=True), type_("int32", default=5), type_("int32", optional=True, default=5), DECIMAL, DATE, TIME,
    TIMESTAMP, DATE | {"optional": True, "default": 3}, ROW, NUMBERS, NAMES, type_("array", items=type_("int32")),
    type_("array", items=type_("string")), type_("array", items=DECIMAL), None,
]  # fmt: skip
# A value that this schema has, and Kafka's judge cannot write down: its own result is not told.
UNTOLD = "invalid"


@pytest.mark.parametrize(
    "config", [{}, {"decimal.format": "numeric"}, {"replace.null.with.default": "false"}], ids=str
)
@pytest.mark.parametrize("schema", SCHEMAS, ids=lambda each: json.dumps(each)[:60])
def test_json_with_schemas_is_read_as_kafka_reads_it(schema: Any, config: Mapping[str, str]) -> None:
    ours = converter(JsonConverter, config)
    for payload in PAYLOADS:
        data = f'{{"schema":{json.dumps(schema)},"payload":{payload}}}'.encode()
        compare_reading(ours, JSON, config, data)


@pytest.mark.parametrize(
    "schema",
    [
        type_("foo"), {}, 5, [], "string", type_("array"), type_("map"), type_("map", keys=type_("string")), type_("struct"),
        type_("struct", fields=[1]), type_("struct", fields=[type_("string")]), type_("array", items=None),
        type_("string", name=5, version="3", doc=1, parameters=[1], optional="true"), type_("string", parameters={"a": 1}),
        type_("int32", default="a"), type_("int32", default=None), type_("string", default=5), DATE | {"default": "a"},
        type_("struct", fields=[type_("string", field="b"), type_("string", field="b")]),
    ],
    ids=lambda each: json.dumps(each)[:60],
)  # fmt: skip
def test_a_schema_that_is_none_is_refused_in_kafka_s_words(schema: Any) -> None:
    compare_reading(
        converter(JsonConverter, {}), JSON, {}, json.dumps({"schema": schema, "payload": 1}).encode()
    )


DOCUMENTS = [
    b"", b"  ", b"null", b"1", b"01", b"-01", b"00.5", b'{"a":1} x', b'{"a":1}{', b"9223372036854775807", b"9223372036854775808",
    b"18446744073709551617", b"-9223372036854775809", b"1.0", b"1e400", b"NaN", b'"a"', b'[1,"a"]', b'{"a":1,"a":2}',
    b"\xef\xbb\xbf1", b"{'a':1}", b'{"a":', b'"\xff"', b'{"a":"\\u00e9"}', b"-0", b"1.", b"+1", b".5", b'{"a":1,}', b"1" * 1001,
    b"1E5", b"[1 2]", b"nul", b'"\t"', b'{"a":{"b":[null,true,1.5,"x",9223372036854775808]}}', b'{"a":"01","b":01}',
    "1".encode("utf-16-be"),
]  # fmt: skip


@pytest.mark.parametrize("data", DOCUMENTS, ids=lambda each: repr(each)[:40])
def test_json_without_schemas_is_read_as_kafka_reads_it(data: bytes) -> None:
    config = {"schemas.enable": "false"}
    compare_reading(converter(JsonConverter, config), JSON, config, data)


@pytest.mark.parametrize(
    "data",
    [
        b"", b"5", b"[1,2]", b'{"schema":null}', b'{"schema":null,"payload":1,"x":2}', b'{"payload":5,"schema":{"type":"int32"}}',
        b' { "schema" : {"type":"string"} , "payload" : "a" }  x', b'{"schema":null,"payload":{"a":[1,2.5]}}',
    ],
)  # fmt: skip
def test_an_envelope_is_opened_as_kafka_opens_it(data: bytes) -> None:
    compare_reading(converter(JsonConverter, {}), JSON, {}, data)


@pytest.mark.parametrize("data", [b"5", b'{"schema":{"type":"string"},"payload":"a"}', b"", b"x", None])
def test_a_schema_in_the_configuration_is_that_of_all_records(data: bytes | None) -> None:
    config = {"schema.content": '{"type":"int32"}'}
    compare_reading(converter(JsonConverter, config), JSON, config, data)


def compare_reading(
    ours: EitherConverter, java_class: str, config: Mapping[str, str], data: bytes | None
) -> None:
    refusal: Refused | None = None
    wanted: Json = {}
    try:
        wanted = oracle().to_connect(java_class, config, "t", data)
    except Refused as refused:
        refusal = refused
    if refusal is not None:
        with pytest.raises(DataError) as caught:
            ours.to_value("t", data)
        if refusal.java_class.startswith("org.apache.kafka.connect") and refusal.message:
            assert str(caught.value).startswith(refusal.message.strip()), data
        return
    try:
        schema, value = ours.to_value("t", data)
    except DataError as unfit:
        if "that can be told" not in str(unfit):  # Python's dates end with the year 9999
            raise
        return
    if is_untold(wanted):
        return
    assert same(said(schema, value), wanted), (data, said(schema, value), wanted)


def is_untold(wanted: Json) -> bool:
    return isinstance(wanted["payload"], dict) and UNTOLD in wanted["payload"]


def same(ours: Any, theirs: Any) -> bool:
    """Java 17 writes more digits than needed of some floats."""
    if isinstance(ours, float) and isinstance(theirs, float):
        return ours == theirs or to_single(ours) == to_single(theirs) or (ours != ours and theirs != theirs)
    if isinstance(ours, list) and isinstance(theirs, list):
        return len(ours) == len(theirs) and all(map(same, ours, theirs))
    if isinstance(ours, dict) and isinstance(theirs, dict):
        return ours.keys() == theirs.keys() and all(same(ours[key], theirs[key]) for key in ours)
    return type(ours) is type(theirs) and bool(ours == theirs)


def schemas(depth: int = 2) -> st.SearchStrategy[Json]:
    scalars = st.sampled_from([*SCHEMAS[:9], DECIMAL, DATE, TIME, TIMESTAMP])
    if depth == 0:
        return optional(scalars)
    inner = schemas(depth - 1)
    names = st.text(st.characters(codec="utf-8", exclude_categories=["Cs"]), min_size=1, max_size=5)
    return optional(
        scalars
        | inner.map(lambda items: type_("array", items=items))
        | inner.map(lambda items: type_("map", keys=type_("string", optional=False), values=items))
        | inner.map(lambda items: type_("map", keys=type_("int32", optional=False), values=items))
        | st.dictionaries(names, inner, max_size=4).map(
            lambda fields: type_("struct", fields=[each | {"field": name} for name, each in fields.items()])
        )
    )


def optional(strategy: st.SearchStrategy[Json]) -> st.SearchStrategy[Json]:
    return st.builds(lambda schema, is_optional: schema | {"optional": is_optional}, strategy, st.booleans())


@st.composite
def values(draw: st.DrawFn, schema: Json) -> Any:
    if schema.get("optional") and draw(st.integers(0, 3)) == 0:
        return None
    name, kind = schema.get("name", ""), schema["type"]
    if kind == "struct":
        return {each["field"]: draw(values(each)) for each in schema["fields"]}
    if kind == "array":
        return draw(st.lists(values(schema["items"]), max_size=3))
    if kind == "map":
        if schema["keys"]["type"] == "string":
            return draw(st.dictionaries(st.text(max_size=4), values(schema["values"]), max_size=1))
        keys = draw(st.lists(st.integers(-5, 5), unique=True, max_size=1))
        return [[key, draw(values(schema["values"]))] for key in keys]
    if name.endswith("Time"):
        return draw(st.integers(0, 86_399_999))
    if name.endswith(("Date", "Timestamp")):
        return draw(st.integers(-100_000, 100_000))
    bits = {"int8": 8, "int16": 16, "int32": 32, "int64": 64}.get(kind)
    if bits is not None:
        return draw(st.integers(-(1 << (bits - 1)), (1 << (bits - 1)) - 1))
    if kind in ("float", "double"):
        return draw(st.floats(width=32 if kind == "float" else 64, allow_nan=False, allow_infinity=False))
    if kind == "bytes":
        return draw(st.sampled_from(["MQ==", "AAH/", "gA=="]))
    return draw(
        st.booleans() if kind == "boolean" else st.text(st.characters(exclude_categories=["Cs"]), max_size=6)
    )


@st.composite
def envelopes(draw: st.DrawFn) -> Json:
    schema = draw(schemas())
    return {"schema": schema, "payload": draw(values(schema))}


@given(envelopes(), st.sampled_from(["true", "false"]), st.sampled_from(["BASE64", "NUMERIC"]))
@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
def test_any_value_is_written_as_kafka_writes_it(envelope: Json, has_schemas: str, form: str) -> None:
    config = {"schemas.enable": has_schemas, "decimal.format": form}
    schema, value = told(envelope)
    ours = converter(JsonConverter, config).from_value("t", schema, value)
    wanted = oracle().from_connect(JSON, config, "t", envelope)
    assert ours is not None
    assert wanted is not None
    assert same(json.loads(ours), json.loads(wanted)), (ours, wanted)
    if not any(
        sign in wanted for sign in (b"E", b"\\")
    ):  # Java 17 has more digits than needed in a few floats
        assert ours == wanted


@given(envelopes())
@settings(max_examples=100, deadline=None, suppress_health_check=list(HealthCheck))
def test_any_value_is_read_as_kafka_reads_it(envelope: Json) -> None:
    compare_reading(converter(JsonConverter, {}), JSON, {}, json.dumps(envelope).encode())


SIMPLE_BYTES = [
    None, b"", b"\x00", b"\x01", b"\x02", b"\xff", b"\x01\x02", b"\x00\x00\x00\x05", b"\xff\xff\xff\xfe", b"\x3f\xc0\x00\x00",
    b"\x00" * 7 + b"\x05", b"?\xf8" + b"\x00" * 6, b"text", "größe €".encode(), b"\xff\xfe bad", b"a" * 9,
]  # fmt: skip


@pytest.mark.parametrize("kind", SIMPLE, ids=lambda each: each.__name__)
def test_simple_bytes_are_read_as_kafka_reads_them(kind: type[EitherConverter]) -> None:
    for data in SIMPLE_BYTES:
        compare_reading(converter(kind, {}), kind.java_names[0], {}, data)


VALUES: list[Json] = [
    {"schema": None, "payload": None}, {"schema": type_("string"), "payload": "a"}, {"schema": None, "payload": "größe €"},
    {"schema": type_("boolean"), "payload": True}, {"schema": None, "payload": False}, {"schema": type_("int16"), "payload": -2},
    {"schema": type_("int32"), "payload": 7}, {"schema": type_("int64"), "payload": 1 << 40},
    {"schema": type_("int8"), "payload": 7},
    {"schema": type_("float"), "payload": 1.1}, {"schema": type_("double"), "payload": 2.5},
    {"schema": type_("double"), "payload": 1e9},
    {"schema": type_("bytes"), "payload": "AAH/"}, {"schema": DECIMAL, "payload": "MQ=="}, {"schema": DATE, "payload": 20_000},
    {"schema": TIME, "payload": 1005}, {"schema": TIMESTAMP, "payload": 1_700_000_000_123},
    {"schema": TIMESTAMP, "payload": 86_400_000},
    {"schema": DATE, "payload": 0}, {"schema": ROW, "payload": {"a": 1, "b": 'say "x\\"', "c": 20_000}},
    {"schema": ROW, "payload": {"a": 1, "b": None, "c": 20_000}}, {"schema": NAMES, "payload": {"k": 1}},
    {"schema": NUMBERS, "payload": [[1, "x"]]}, {"schema": type_("array", items=type_("float")), "payload": [0.1, 1e10]},
    {"schema": type_("array", items=type_("string", optional=True)), "payload": ["a", None]},
    {"schema": None, "payload": {"a": [1, "x"]}},
    {"schema": type_("string", optional=True), "payload": None},
    {"schema": type_("array", items=type_("bytes")), "payload": ["AAH/"]},
]  # fmt: skip


@pytest.mark.parametrize("kind", [*SIMPLE, JsonConverter], ids=lambda each: each.__name__)
@pytest.mark.parametrize("value", VALUES, ids=lambda each: json.dumps(each)[:70])
def test_a_value_is_written_as_kafka_writes_it(kind: type[EitherConverter], value: Json) -> None:
    schema, given_value = told(value)
    bytes_as_text = kind is StringConverter and "AAH/" in json.dumps(value)
    if bytes_as_text or (
        kind is not StringConverter
        and kind is not JsonConverter
        and schema is None
        and given_value is not None
    ):
        return  # Java has the address of bytes; a number without a schema is of another class there
    try:
        wanted = oracle().from_connect(kind.java_names[0], {}, "t", value)
    except Refused as refused:
        with pytest.raises(DataError) as caught:
            converter(kind, {}).from_value("t", schema, given_value)
        java_words = (refused.message or "").split(" class ")[0].split("(was")[0]
        assert str(caught.value).startswith(java_words)
        return
    assert converter(kind, {}).from_value("t", schema, given_value) == wanted


@pytest.mark.parametrize("value", VALUES, ids=lambda each: json.dumps(each)[:70])
def test_a_header_is_written_as_kafka_writes_it(value: Json) -> None:
    schema, given_value = told(value)
    wanted = oracle().from_header(SimpleHeaderConverter.java_names[0], {}, "t", "h", value)
    assert SimpleHeaderConverter().from_header("t", Header("h", given_value, schema)) == wanted


# One text between two bars.
HEADERS = (
    r"""
  | a| a |null| null |nullx|true| true|True|true,|1|+1|-1|1 | 1|01|127|128|-128|-129|32768|2147483648
9223372036854775807|9223372036854775808|-9223372036854775809|1.0|1.5|1e3|1e18|1e19|1e39|1e-400|0.1|-0|0.000
1e9999999999|0e99999999|1_0|0x10|1f|--1|+|-|.5|-.5|1.|-5.|1e|1E+5|+1e+5|1,2|1:2|a:b|a,b|"a"|"a|[|[]|[1|[1]|[1,2]|[1,]
[,1]|[1,,2]|[1 2]| [1] |[1] x|[1,1000]|[1,2.5]|[1,1e300]|[1,"a"]|["a","b"]|[a]|[null]|[null,1]|[1,null]|[true,false]
[true,1]|[[1],[2]]|[{}]|{}|{1:2}|{"a":1}|{a:1}|{"a":null}|{"a":1,"b":null}|{null:1}|{"a"}|{"a":}|{"a":1,}|{,}
{"a":1 "b":2}|{"a":1,"b":"x"}|{"a":1,"a":2}|{ "a" : 1 , "b" : 1000 }|{"a":{"b":1}}|{1:1,2.5:2}|2019-08-23
2019-08-23T14:34:54.346Z|14:34:54.346Z|2019-13-45|2019-8-23|2019-08-2x|14:34:54.346|14\:34\:54.346Z|["2019-08-23"]
[2019-08-23,2019-08-24]|[14:34:54.346Z]|{"a":14:34:54.346Z}|{2019-08-23T14:34:54.346Z:1}|[5,2019-08-23]
[2019-08-23,100000]|[2019-08-23,2019-08-23T14:34:54.346Z]|[99999999999,2019-08-23]|"a\"b"|["a\"b"]|["a\\b"]
["a,b:c{}[]"]|a\,b|\|[\]|["\"]|["a" ]|["a"x]|["  a "]|[""]|{"":1}|{"a":"b"}x|[1,2,3]]|2019-02-30|2019-8-231|2019--1-01
1500-01-01|1582-10-15|1582-10-04|{"a":{},"b":{"c":1}}|12:30|1 :2|14:-4:54.346Z|3.4028235e38|3.5e38
1.00000000000000000001|Infinity|NaN|[ ]|[ 1 , 2 ]|[1.0,2.5]|{ }|{"a" :1}|[[[]]]|[{"a":[1]}]
""".strip("\n")
    .replace("\n", "|")
    .split("|")
)


@pytest.mark.parametrize("text", dict.fromkeys(HEADERS))
def test_a_header_s_text_is_taken_for_what_kafka_takes_it(text: str) -> None:
    found = parse_text(text)
    wanted = oracle().parsed(text)
    if wanted["schema"] is None or is_untold(wanted):
        assert wanted["schema"] is not None or (found.schema, found.value) == (None, wanted["payload"])
    else:
        assert same(said(found.schema, found.value), wanted), (said(found.schema, found.value), wanted)


@given(st.text('0123456789-:TZ.eE+"\\[]{},atrun l', max_size=24))
@settings(max_examples=300, deadline=None, suppress_health_check=list(HealthCheck))
def test_any_text_in_a_header_has_the_type_that_kafka_gives_it(text: str) -> None:
    found = parse_text(text)
    wanted = oracle().parsed(text)
    if wanted["schema"] is None:
        assert found.schema is None
    else:
        assert found.schema is not None
        assert str(found.schema.type) == wanted["schema"]["type"]


@pytest.mark.parametrize(
    "kind", [*SIMPLE, JsonConverter, SimpleHeaderConverter], ids=lambda each: each.__name__
)
def test_a_converter_has_the_settings_of_kafka_s(kind: Any) -> None:
    wanted = {each["name"]: each for each in oracle().settings(kind.java_names[0])}
    ours = {each.name: each for each in kind.settings}
    assert ours.keys() == wanted.keys()
    for name, setting in ours.items():
        assert setting.importance == wanted[name]["importance"]
        assert setting.is_required == wanted[name]["is_required"]
        assert setting.kind.name == wanted[name]["type"]
        if not setting.is_required:
            assert setting.default == wanted[name]["default"]
