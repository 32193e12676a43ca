"""Values of Protobuf schemas: the indexes of the message, its bytes, and JSON."""

import pytest

from penstock.schemas.model import PROTOBUF, InvalidValue
from penstock.schemas.parsing import parse
from penstock.schemas.protobuf.schema import ProtobufSchema
from penstock.schemas.protobuf.values import codec_of, message_descriptor
from penstock.schemas.values import codec_of as any_codec_of

SCHEMA = parse(
    PROTOBUF,
    """
    syntax = "proto3";
    package p;
    import "google/protobuf/timestamp.proto";
    import "google/protobuf/struct.proto";
    message First {
      string user_name = 1;
      int64 big = 2;
      bytes raw = 3;
      map<string, Inner> inners = 4;
      message Inner { int32 a = 1; message Deep { bool yes = 1; } }
      message Second { Level level = 1; }
      google.protobuf.Timestamp at = 5;
      google.protobuf.Struct any = 6;
      First next = 7;
      repeated float floats = 8;
      optional int32 maybe = 9;
    }
    enum Level { LOW = 0; HIGH = 1; }
    message Other { double d = 1; }
    """,
)


def test_the_first_message_is_written_with_one_zero_byte() -> None:
    data = codec_of(SCHEMA).encode({"user_name": "x"})
    assert data == b"\x00\x0a\x01x"
    assert any_codec_of(SCHEMA).encode({"user_name": "x"}) == data


@pytest.mark.parametrize(
    ("name", "value", "data"),
    [
        ("p.Other", {"d": 0.0}, b"\x02\x02"),
        ("p.First.Inner", {"a": 1}, b"\x04\x00\x00\x08\x01"),
        ("p.First.Second", {"level": "HIGH"}, b"\x04\x00\x02\x08\x01"),
        ("p.First.Inner.Deep", {"yes": True}, b"\x06\x00\x00\x00\x08\x01"),
    ],
)
def test_another_message_is_written_with_its_indexes(name: str, value: object, data: bytes) -> None:
    codec = codec_of(SCHEMA, name)
    assert codec.encode(value) == data
    assert codec_of(SCHEMA).decode(data) == value
    assert codec.decode(memoryview(data)) == value


def test_a_message_that_is_not_there_is_told() -> None:
    for name in ("p.None", "First", "p.First.InnersEntry", "google.protobuf.Timestamp"):
        with pytest.raises(InvalidValue, match=f"the schema has no message {name}"):
            codec_of(SCHEMA, name)


def test_both_names_of_a_field_are_read_and_one_is_written() -> None:
    codec = codec_of(SCHEMA)
    assert codec.encode({"userName": "x"}) == codec.encode({"user_name": "x"})
    assert codec.decode(codec.encode({"userName": "x"}))["user_name"] == "x"
    camel = codec_of(SCHEMA, original_names=False)
    assert camel.decode(codec.encode({"user_name": "x"}))["userName"] == "x"


def test_json_is_protobufs_own_mapping() -> None:
    value = {
        "user_name": "é",
        "big": "9007199254740993",
        "raw": "AP8=",
        "inners": {"k": {"a": -1}},
        "at": "2020-01-01T00:00:00.500Z",
        "any": {"list": [1.5, None, {"x": True}]},
        "next": {"user_name": "", "big": "0", "raw": "", "inners": {}, "floats": []},
        "floats": [1.5, "NaN"],
        "maybe": 0,
    }
    codec = codec_of(SCHEMA)
    assert codec.decode(codec.encode(value)) == value


def test_what_was_not_set_is_shown_where_presence_is_not_told() -> None:
    assert codec_of(SCHEMA).decode(b"\x00") == {
        "user_name": "", "big": "0", "raw": "", "inners": {}, "floats": [],
    }  # fmt: skip


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        ({"nobody": 1}, 'has no field named "nobody"'),
        ({"big": "x"}, "big"),
        ({"inners": {"k": {"a": 1 << 40}}}, "a"),
        ({"raw": "%"}, r"p\.First\.raw must be base64"),
        ({"next": {"raw": "a b"}}, "must be base64"),
        ([], "an object"),
        (None, "."),
        ("x", "."),
        (5, "."),
    ],
)
def test_a_value_that_does_not_fit_is_told_in_one_line(value: object, reason: str) -> None:
    with pytest.raises(InvalidValue, match=reason) as caught:
        codec_of(SCHEMA).encode(value)
    assert str(caught.value).isprintable()


def test_a_value_that_is_nested_without_end_is_told() -> None:
    value: dict[str, object] = {}
    for _ in range(5000):
        value = {"next": value}
    with pytest.raises(InvalidValue):
        codec_of(SCHEMA).encode(value)
    listed: list[object] = []
    for _ in range(5000):
        listed = [listed]
    with pytest.raises(InvalidValue):
        codec_of(SCHEMA).encode({"any": {"x": listed}})
    data = b""
    for _ in range(200):
        data = b"\x3a" + _varint(len(data)) + data
    with pytest.raises(InvalidValue):
        codec_of(SCHEMA).decode(b"\x00" + data)


def _varint(number: int) -> bytes:
    made = b""
    while number > 0x7F:
        made += bytes([number & 0x7F | 0x80])
        number >>= 7
    return made + bytes([number])


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\x02",
        b"\x01",
        b"\xff\xff\xff\xff\xff\xff",
        b"\x02\x0a",
        b"\x02\x01",
        b"\x7e" + b"\x00" * 99,
        b"\x00\x0a\x05x",
    ],
)
def test_bytes_that_are_no_value_are_told(data: bytes) -> None:
    with pytest.raises(InvalidValue):
        codec_of(SCHEMA).decode(data)


def test_indexes_written_at_length_are_read_too() -> None:
    assert codec_of(SCHEMA).decode(b"\x02\x00\x0a\x01x")["user_name"] == "x"


def test_required_fields_that_are_missing_are_told() -> None:
    schema = parse(PROTOBUF, "message M { required int32 must = 1; }")
    with pytest.raises(InvalidValue, match="must"):
        codec_of(schema).encode({})
    with pytest.raises(InvalidValue, match="required fields are missing: must"):
        codec_of(schema).decode(b"\x00")


def test_a_schema_without_messages_has_no_values() -> None:
    with pytest.raises(InvalidValue, match="no message"):
        codec_of(parse(PROTOBUF, "enum E { A = 0; }"))


def test_the_columns_of_a_message_are_known_by_its_indexes() -> None:
    assert isinstance(SCHEMA, ProtobufSchema)
    descriptor = message_descriptor(SCHEMA)
    assert descriptor.full_name == "p.First"
    assert [field.number for field in descriptor.fields] == list(range(1, 10))
    assert descriptor.fields_by_name["inners"].message_type.GetOptions().map_entry
    assert (
        message_descriptor(SCHEMA, (0, 1)).fields_by_name["level"].enum_type.values_by_number[1].name
        == "HIGH"
    )
    with pytest.raises(InvalidValue):
        message_descriptor(SCHEMA, (5,))


def test_entries_of_maps_count_only_where_they_are_written_out() -> None:
    """Clients in Python register descriptors, and count what these have."""
    text = 'syntax = "proto3"; message M { map<string, int32> a = 1; message N {} }'
    short = parse(PROTOBUF, text)
    written_out = parse(PROTOBUF, short.formatted("serialized"))
    assert codec_of(short, "M.N").encode({}) == b"\x04\x00\x00"
    assert codec_of(written_out, "M.N").encode({}) == b"\x04\x00\x02"


def test_two_schemas_may_define_the_same_message_differently() -> None:
    texts = (
        'syntax = "proto3"; message Same { int32 a = 1; }',
        'syntax = "proto3"; message Same { string a = 1; }',
    )
    one, other = (codec_of(parse(PROTOBUF, text)) for text in texts)
    assert one.decode(one.encode({"a": 1})) == {"a": 1}
    assert other.decode(other.encode({"a": "x"})) == {"a": "x"}
