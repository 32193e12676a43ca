"""Protobuf schemas that are none: one line says why, in bounded time."""

import base64
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.schemas.model import PROTOBUF, InvalidSchema, Referred
from penstock.schemas.parsing import parse
from tests.unit.schemas.protobuf_golden import HERE, NAMES

GOLDEN = [(HERE / f"{name}.proto").read_text() for name in NAMES]
PIECES = [
    "",
    " ",
    "{",
    "}",
    ";",
    "=",
    "1",
    "-1",
    "string",
    "repeated",
    "message",
    "E",
    ".",
    '"x"',
    "[",
    "]",
    "map",
    "group",
]
P3 = 'syntax = "proto3";'

REFUSED = [
    ("{", "line 1: expected a message, an enum"),
    ("\n\nmessage", "line 3: expected a name"),
    ("message M {", "expected 'optional', 'required' or 'repeated'"),
    (P3 + "message M {", "expected a name"),
    (P3 + "message M { string a = 1; string b = 1; }", "the fields a and b both have the number 1"),
    (P3 + "message M { string a = 1; int32 a = 2; }", "M has two fields a"),
    (P3 + "message M { string a = 19001; }", "the number 19001, which no field can have"),
    (P3 + "message M { string a = 0; }", "the number 0"),
    (P3 + "message M { string a = 99999999999999999999999; }", "out of range"),
    (P3 + "message M { reserved 1; string a = 1; }", r"M\.a has the number 1, which is reserved"),
    (P3 + "message M { reserved 2 to max; string a = 5; }", "which is reserved"),
    (P3 + 'message M { reserved "a"; string a = 1; }', r"M\.a has a name that is reserved"),
    (P3 + "message M { reserved 1 to 5, 3; }", "the number 3 is in two ranges"),
    (P3 + "message M { reserved 5 to 1; }", "5 to 1 is no range"),
    (P3 + "message M {} message M {}", "duplicate symbol 'M'"),
    (P3 + "message M { oneof o {} }", r"the oneof M\.o has no fields"),
    (P3 + "message M { oneof o { repeated int32 a = 1; } }", "a field of a oneof has no label"),
    (P3 + "message M { oneof o { map<string, string> a = 1; } }", "a map cannot be in a oneof"),
    (P3 + "message M { repeated map<string, string> a = 1; }", "a map cannot be repeated"),
    (P3 + "message M { map<float, string> a = 1; }", "a key of a map cannot be 'float'"),
    (P3 + "message M { required int32 a = 1; }", "required, which proto3 does not have"),
    (P3 + "message M { int32 a = 1 [default = 1]; }", "a default, which proto3 does not have"),
    (P3 + "message M { group G = 1 {} }", "no groups in proto3"),
    (P3 + "message M { Foo a = 1; }", r"'Foo', which M\.a uses, is neither defined nor imported"),
    (P3 + "enum E { A = 1; }", "must be zero in proto3"),
    (P3 + "enum E {}", "the enum E has no values"),
    (P3 + "enum E { A = 0; B = 0; }", "A and B both are 0, and allow_alias is not set"),
    (P3 + "enum E { A = 0; } service S { rpc R (E) returns (E); }", "E is an enum where a message is needed"),
    ("message M { int32 a = 1; }", "expected 'optional', 'required' or 'repeated'"),
    ("message M { optional int32 a = 1 [default = x]; }", "Invalid default 'x'"),
    ("message M { optional string a = 1 [default = 5]; }", "does not fit its type"),
    ("message M { optional int32 a = 1 [deprecated = 5]; }", "option 'deprecated: 5'"),
    ("extend M { optional int32 a = 1; } message M {}", "no extension range"),
    ('syntax = "proto4";', "'proto4' is neither proto2 nor proto3"),
    ('edition = "2023";', "editions are not supported"),
    ("package 3x;", "expected a name, found '3'"),
    ('import "a', "a string without an end"),
    ('import "a\\377";', "no UTF-8"),
    ("message \ud800 {}", "half of a surrogate pair"),
    ("/* no end", "expected a message"),
    ("message M { optional int32 \x00 = 1; }", r"expected a name, found '\?'"),
    (P3 + 'import "nope.proto";', "'nope.proto', which is not among the references"),
    (base64.b64encode(b"\x0a\x01a\x1a\x02\xff\xff").decode(), "no UTF-8"),
    (base64.b64encode(b"\x0a\x01a\x50\x07").decode(), "a public import that is not there"),
    (base64.b64encode(b"\x0a\x01a\x42\x05\xba\x3e\x02\x12\x00").decode(), "lacks a part of an option's name"),
    ("message M { group G = 1 {} }", "expected 'optional', 'required' or 'repeated'"),
    ("Zm9v", "neither the text of a .proto file nor a serialized descriptor"),
]


@pytest.mark.parametrize(("text", "reason"), REFUSED)
def test_what_is_wrong_is_said_in_one_line(text: str, reason: str) -> None:
    with pytest.raises(InvalidSchema, match=reason) as caught:
        parse(PROTOBUF, text)
    said = str(caught.value)
    assert said.isprintable()
    assert len(said) < 400


@pytest.mark.parametrize(
    "text",
    [
        "message M{" * 100_000,
        "option a = " + "{a:" * 100_000,
        "option a = " + "[" * 100_000,
        "option " + "a." * 100_000 + "b = 1;",
        "(" * 1_000_000,
        '"' + '\\"' * 1_000_000,
        "/*" * 1_000_001,
        "'\\" * 1_000_000,
        "message M { reserved " + "1," * 100_000 + "2; }",
        "message M { reserved " + "9" * 100_000 + "; }",
        "message M { optional " + "a." * 500_000,
        base64.b64encode(b"\x22\x00" * 1_000_000).decode(),  # a million messages without a name
    ],
    ids=lambda text: text[:16].strip(),
)
def test_large_nonsense_is_refused_at_once(text: str) -> None:
    with pytest.raises(InvalidSchema):
        parse(PROTOBUF, text)


def test_an_import_in_a_circle_is_refused() -> None:
    texts = {
        "a.proto": Referred(P3 + 'import "b.proto";'),
        "b.proto": Referred(P3 + 'import "c.proto";'),
        "c.proto": Referred(P3 + 'import "a.proto";'),
    }
    with pytest.raises(InvalidSchema, match=r"in a circle: 'c\.proto' imports 'a\.proto'"):
        parse(PROTOBUF, P3 + 'import "a.proto";', (), texts)
    texts["a.proto"] = Referred(P3 + 'import "a.proto";')
    with pytest.raises(InvalidSchema, match="in a circle"):
        parse(PROTOBUF, P3 + 'import "a.proto";', (), texts)


def test_what_is_wrong_with_an_import_says_which() -> None:
    texts = {"a.proto": Referred(P3 + "message")}
    with pytest.raises(InvalidSchema, match=r"'a\.proto': line 1: expected a name"):
        parse(PROTOBUF, P3 + 'import "a.proto";', (), texts)
    texts = {"a.proto": Referred(P3 + 'import "b.proto";')}
    with pytest.raises(InvalidSchema, match=r"'a\.proto' imports 'b\.proto', which is not among"):
        parse(PROTOBUF, P3 + 'import "a.proto";', (), texts)


def test_a_chain_of_a_thousand_references_is_read_and_compared() -> None:
    def chain(kind: str) -> dict[str, Referred]:
        texts = {"0.proto": Referred(P3 + f"message M0 {{ {kind} x = 1; }}")}
        for number in range(1, 1000):
            text = f'import "{number - 1}.proto"; message M{number} {{ M{number - 1} m = 1; }}'
            texts[f"{number}.proto"] = Referred(P3 + text)
        return texts

    text = P3 + 'import "999.proto"; message M { M999 m = 1; }'
    old, new = (parse(PROTOBUF, text, (), chain(kind)) for kind in ("int32", "string"))
    found = new.incompatibilities(old, policy="STRICT")
    assert len(found) == 1000  # all of them lead to what has changed, but no more are told
    assert {each.kind for each in found} == {"FIELD_SCALAR_KIND_CHANGED", "FIELD_NAMED_TYPE_CHANGED"}


def test_a_thousand_references_of_one_file_are_read() -> None:
    texts = {f"{number}.proto": Referred(P3 + f"message M{number} {{}}") for number in range(1000)}
    text = P3 + "".join(f'import public "{path}";' for path in texts) + "message M { M999 m = 1; }"
    assert parse(PROTOBUF, text, (), texts).full_name == "M"


def test_all_texts_together_have_a_bound() -> None:
    texts = {f"{number}.proto": Referred(P3 + "//" + "x" * 2_000_000) for number in range(9)}
    with pytest.raises(InvalidSchema, match="at most 16,777,216 characters"):
        parse(PROTOBUF, P3 + "".join(f'import "{path}";' for path in texts), (), texts)


@settings(max_examples=150, deadline=None)
@given(
    st.sampled_from(GOLDEN),
    st.lists(st.tuples(st.integers(0, 1 << 20), st.sampled_from(PIECES)), min_size=1, max_size=4),
)
def test_a_text_with_mistakes_is_read_or_refused(text: str, mistakes: list[tuple[int, str]]) -> None:
    pieces = re.findall(r"\w+|[^\w\s]|\s+", text)
    for at, piece in mistakes:
        pieces[at % len(pieces)] = piece
    read_or_refused("".join(pieces))


@settings(max_examples=150, deadline=None)
@given(
    st.sampled_from(GOLDEN),
    st.lists(st.tuples(st.integers(0, 1 << 20), st.integers(0, 255)), min_size=1, max_size=4),
)
def test_a_descriptor_with_mistakes_is_read_or_refused(text: str, mistakes: list[tuple[int, int]]) -> None:
    serialized = bytearray(base64.b64decode(parse(PROTOBUF, text).formatted("serialized")))
    for at, byte in mistakes:
        serialized[at % len(serialized)] = byte
    read_or_refused(base64.b64encode(bytes(serialized)).decode())


def read_or_refused(text: str) -> None:
    try:
        schema = parse(PROTOBUF, text)
    except InvalidSchema:
        return
    again = parse(PROTOBUF, schema.text)
    assert (again.text, again.formatted("serialized")) == (schema.text, schema.formatted("serialized"))
    assert again.normalized().text == again.normalized().normalized().text
    assert not again.incompatibilities(schema, policy="STRICT")
