"""Values by an Avro schema: their form in JSON, and what is refused with its place."""

import json
from typing import Any

import pytest

from penstock.schemas.avro.nodes import MAX_VALUE_DEPTH
from penstock.schemas.avro.parsing import parse
from penstock.schemas.avro.values import AvroCodec
from penstock.schemas.model import InvalidSchema, InvalidValue
from penstock.schemas.values import codec_of


def codec(said: Any, *, plain: bool = False) -> AvroCodec:
    found = codec_of(parse(json.dumps(said), [], {}), plain=plain)
    assert isinstance(found, AvroCodec)
    return found


def record(**fields: Any) -> Any:
    return {
        "type": "record",
        "name": "n.R",
        "fields": [{"name": name, "type": type_} for name, type_ in fields.items()],
    }


LIST = record(next=["null", "R"])


@pytest.mark.parametrize(
    ("said", "value", "written"),
    [
        ("null", None, b""),
        ("boolean", True, b"\x01"),
        ("int", -1, b"\x01"),
        ("long", 64, b"\x80\x01"),
        ("long", -(2**63), b"\xff" * 9 + b"\x01"),
        ("float", 0.1, b"\xcd\xcc\xcc\x3d"),
        ("double", "-Infinity", b"\0\0\0\0\0\0\xf0\xff"),
        ("double", "NaN", b"\0\0\0\0\0\0\xf8\x7f"),
        ("string", "é", b"\x04\xc3\xa9"),
        ("bytes", "\xff\x00", b"\x04\xff\x00"),
        ({"type": "fixed", "name": "F", "size": 2}, "\xe9a", b"\xe9a"),
        ({"type": "enum", "name": "E", "symbols": ["A", "B"]}, "B", b"\x02"),
        ({"type": "array", "items": "int"}, [1, 2], b"\x04\x02\x04\0"),
        ({"type": "array", "items": "int"}, [], b"\0"),
        ({"type": "map", "values": "int"}, {"a": 1}, b"\x02\x02a\x02\0"),
        (["null", "int"], None, b"\0"),
        (["null", "int"], {"int": 3}, b"\x02\x06"),
        (["null", record(a="int")], {"n.R": {"a": 3}}, b"\x02\x06"),
        # Logical types are their plain ones.
        (
            {"type": "bytes", "logicalType": "decimal", "precision": 4, "scale": 2},
            "\x01\x00",
            b"\x04\x01\x00",
        ),
        ({"type": "long", "logicalType": "timestamp-millis"}, 1, b"\x02"),
        ({"type": "string", "logicalType": "uuid"}, "not one", b"\x0enot one"),
    ],
)
def test_a_value_and_its_bytes(said: Any, value: Any, written: bytes) -> None:
    assert codec(said).encode(value) == written
    assert codec(said).decode(written) == value
    assert codec(said).decode(memoryview(written)) == value


@pytest.mark.parametrize(
    ("said", "plain", "full"),
    [
        (["null", "string"], "x", {"string": "x"}),
        (["null", "int", "string"], 5, {"int": 5}),
        (["null", "double"], 5, {"double": 5.0}),
        (["long", "double"], 5, {"long": 5}),
        (["int", "long"], 2**40, {"long": 2**40}),
        (["null", record(a="int", b="int")], {"a": 1, "b": 2}, {"n.R": {"a": 1, "b": 2}}),
        ([{"type": "map", "values": "int"}, record(a="int")], {"x": 1}, {"map": {"x": 1}}),
        ([{"type": "enum", "name": "E", "symbols": ["A"]}, "string"], "B", {"string": "B"}),
    ],
)
def test_a_branch_may_be_left_out_when_one_only_fits(said: Any, plain: Any, full: Any) -> None:
    written = codec(said).encode(plain)

    assert codec(said).decode(written) == full
    assert codec(said, plain=True).decode(written) == plain
    assert codec(said).encode(full) == written


@pytest.mark.parametrize(
    ("said", "value", "reason"),
    [
        ("int", True, "the value: true is not an int"),
        ("int", 2**31, "2147483648 is not an int"),
        ("long", 1.0, "1.0 is not a long"),
        ("float", 1e300, "1.0E300 is not a float"),
        ("double", 10**400, "is not a double"),
        ("double", "x", '"x" is not a double'),
        ("string", 1, "1 is not a string"),
        ("string", "\ud800", "half of a character"),
        ("bytes", "€", "is not bytes, which are a string of the characters"),
        ("null", 0, "0 is not null"),
        ("boolean", 0, "0 is not a boolean"),
        ({"type": "fixed", "name": "F", "size": 2}, "a", "is not 2 bytes"),
        ({"type": "enum", "name": "E", "symbols": ["A"]}, "B", '"B" is not a symbol of E'),
        ({"type": "array", "items": "int"}, [1, "x"], '[1]: "x" is not an int'),
        ({"type": "array", "items": "int"}, {}, "{} is not an array"),
        ({"type": "map", "values": "int"}, {"k": "x"}, 'k: "x" is not an int'),
        (["null", "int"], "x", '"x" is not one of null, int'),
        (["int", "long"], 5, '5 fits int and long: say which, as {"int": …}'),
        (["null", "int"], {"int": "x"}, 'int: "x" is not an int'),
        (record(a=record(b="int") | {"name": "In"}), {"a": {"b": "x"}}, 'a.b: "x" is not an int'),
        (record(a="int"), {}, "n.R needs the field a"),
        (record(a="int"), {"a": 1, "z": 1}, "n.R has no field z"),
        (record(a="int"), 1, "1 is not an object, for n.R"),
    ],
)
def test_what_does_not_fit_is_told_with_its_place(said: Any, value: Any, reason: str) -> None:
    with pytest.raises(InvalidValue) as refused:
        codec(said).encode(value)

    assert reason in str(refused.value)


def test_a_field_that_is_left_out_has_its_default() -> None:
    inner = {
        "name": "In",
        "type": "record",
        "fields": [{"name": "x", "type": ["null", "string"], "default": None}],
    }
    fields = [
        {"name": "a", "type": ["string", "bytes"], "default": "é"},
        {"name": "b", "type": "bytes", "default": "\xff"},
        {"name": "c", "type": inner, "default": {}},
        {"name": "d", "type": "double", "default": 1},
    ]
    one = codec({"type": "record", "name": "R", "fields": fields})

    assert one.decode(one.encode({})) == {"a": {"string": "é"}, "b": "\xff", "c": {"x": None}, "d": 1.0}


@pytest.mark.parametrize("leaf", ["int", {"type": "record", "name": "Empty", "fields": []}])
def test_defaults_that_double_again_and_again_end(leaf: Any) -> None:
    said: Any = [
        {
            "type": "record",
            "name": "R0",
            "fields": [{"name": "f", "type": leaf, "default": 1 if leaf == "int" else {}}],
        }
    ]
    for number in range(1, 60):
        fields = [{"name": name, "type": f"R{number - 1}", "default": {}} for name in "ab"]
        said.append({"type": "record", "name": f"R{number}", "fields": fields})

    if leaf == "int":
        with pytest.raises(InvalidValue, match="the default has more than"):
            codec(said).encode({"R59": {}})
    else:
        assert codec(said).encode({"R59": {}}) == b"v"


@pytest.mark.parametrize("data", [b"", b"\x02", b"\x80", b"\x02ab", b"\x04\xff\xff", b"\x03", b"\xff" * 20])
def test_bytes_that_are_no_value_are_refused(data: bytes) -> None:
    with pytest.raises(InvalidValue):
        codec("string").decode(data)


def test_bytes_of_a_value_that_contains_itself_too_often_are_refused() -> None:
    deep = b"\x02" * 1_000_000 + b"\0"

    with pytest.raises(InvalidValue, match=f"nested more than {MAX_VALUE_DEPTH} deep"):
        codec(LIST).decode(deep)


def test_what_is_written_is_not_too_deep_to_be_read() -> None:
    def nested(depth: int) -> Any:
        value = None
        for _ in range(depth):
            value = {"next": value}
        return value

    one = codec(LIST, plain=True)
    assert one.decode(one.encode(nested(MAX_VALUE_DEPTH))) == nested(MAX_VALUE_DEPTH)
    with pytest.raises(InvalidValue, match="nested more than"):
        one.encode(nested(MAX_VALUE_DEPTH + 1))


def test_an_array_of_items_without_bytes_has_a_bound() -> None:
    with pytest.raises(InvalidValue, match="take no bytes"):
        codec({"type": "array", "items": "null"}).decode(b"\xfe\xff\xff\xff\x0f\0")


def test_names_that_fastavro_does_not_take_are_read_too() -> None:
    said = {"type": "record", "name": "Ré", "fields": [
        {"name": "é", "type": ["null", {"type": "enum", "name": "É", "symbols": ["ä", "ö"]}]}]}  # fmt: skip

    assert codec(said).decode(codec(said).encode({"é": "ö"})) == {"é": {"É": "ö"}}


def test_a_reader_has_its_own_fields() -> None:
    writer = record(a="int", old="bytes", gone="int")
    reader = {"type": "record", "name": "R", "fields": [
        {"name": "a", "type": ["null", "double"]},
        {"name": "renamed", "aliases": ["old"], "type": "bytes"},
        {"name": "added", "type": "string", "default": "d"},
    ]}  # fmt: skip
    written = codec(writer).encode({"a": 1, "old": "\xff", "gone": 2})

    resolving = codec(writer).decode_as(parse(json.dumps(reader), [], {}))

    assert resolving.decode(written) == {"a": 1.0, "renamed": "\xff", "added": "d"}


def test_a_reader_that_does_not_go_with_the_writer_says_so() -> None:
    resolving = codec("string").decode_as(parse('"int"', [], {}))

    with pytest.raises(InvalidValue, match="do not go together"):
        resolving.decode(b"\x02x")


def test_a_reader_is_safe_from_bytes_that_are_too_deep() -> None:
    resolving = codec(LIST).decode_as(parse(json.dumps(LIST), [], {}))

    with pytest.raises(InvalidValue, match="nested"):
        resolving.decode(b"\x02" * 1_000_000 + b"\0")


def test_a_reader_with_names_that_fastavro_does_not_take_is_refused() -> None:
    said = {"type": "enum", "name": "E", "symbols": ["é"]}

    with pytest.raises(InvalidSchema, match="fastavro does not take it"):
        codec(said).decode_as(parse(json.dumps(said), [], {}))
