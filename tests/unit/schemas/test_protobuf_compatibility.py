"""Which changes of a Protobuf schema are what: Confluent's rules as facts, each of the smallest schemas that show it.

The facts agree with the table that Confluent's own tests are made of.
"""

import pytest

from penstock.schemas.compatibility import Existing, check
from penstock.schemas.model import PROTOBUF, Referred
from penstock.schemas.parsing import parse
from penstock.schemas.protobuf.compatibility import differences
from penstock.schemas.protobuf.schema import ProtobufSchema


def schema(body: str, imported: str = "", *, syntax: str = "proto3", package: str = "p") -> ProtobufSchema:
    text = f'syntax = "{syntax}"; package {package};'
    texts = {}
    if imported:
        text += 'import "other.proto";'
        texts = {"other.proto": Referred(f'syntax = "proto3"; {imported}')}
    made = parse(PROTOBUF, text + body, (), texts)
    assert isinstance(made, ProtobufSchema)
    return made


def found(old: ProtobufSchema, new: ProtobufSchema) -> set[str]:
    """With a star: it breaks readers."""
    return {
        f"{each.kind} {each.path}{'' if each.is_compatible else ' *'}"
        for each in differences(old.types, new.types)
    }


ONE = "message M { string a = 1; }"
PAIR = "string a = 1; int32 b = 2;"

PROTO3 = [
    (ONE, ONE, set()),
    (ONE, ONE + "message N {}", {"MESSAGE_ADDED #/N"}),
    (ONE + "message N {}", ONE, {"MESSAGE_REMOVED #/N *"}),
    (ONE + "message N {}", "message N {}" + ONE, {"MESSAGE_MOVED #/M", "MESSAGE_MOVED #/N"}),
    ("message M { message N {} }", "message M {}", {"MESSAGE_REMOVED #/M/N *"}),
    (ONE, ONE + "enum E { A = 0; }", {"ENUM_ADDED #/E"}),
    (ONE + "enum E { A = 0; }", ONE, {"ENUM_REMOVED #/E"}),
    ("enum E { A = 0; }", "enum E { B = 0; C = 1; }", {"ENUM_CONST_CHANGED #/E/0", "ENUM_CONST_ADDED #/E/1"}),
    (
        "message M { enum E { A = 0; B = 1; } }",
        "message M { enum E { A = 0; } }",
        {"ENUM_CONST_REMOVED #/M/E/1"},
    ),
    (ONE, f"message M {{ {PAIR} }}", {"FIELD_ADDED #/M/2"}),
    (f"message M {{ {PAIR} }}", ONE, {"FIELD_REMOVED #/M/2"}),
    (ONE, "message M { string b = 1; }", {"FIELD_NAME_CHANGED #/M/1"}),
    (ONE, "message M { bytes a = 1; }", set()),
    (ONE, "message M { int32 a = 1; }", {"FIELD_SCALAR_KIND_CHANGED #/M/1 *"}),
    (ONE, "message M { M a = 1; }", {"FIELD_KIND_CHANGED #/M/1 *"}),
    (ONE, "message M { map<string, string> a = 1; }", {"FIELD_KIND_CHANGED #/M/1 *"}),
    (
        "message M { M a = 1; } message N {}",
        "message M { N a = 1; } message N {}",
        {"FIELD_NAMED_TYPE_CHANGED #/M/1 *"},
    ),
    ("message M { M a = 1; }", "message M { repeated .p.M a = 1; }", set()),
    ("message M { map<int32, M> a = 1; }", "message M { map<int64, p.M> a = 1; }", set()),
    (
        "message M { map<string, int32> a = 1; }",
        "message M { map<string, string> a = 1; }",
        {"FIELD_SCALAR_KIND_CHANGED #/M/1 *"},
    ),
    (
        "message M { optional int32 a = 1; }",
        "message M { repeated int32 a = 1; }",
        {"FIELD_NUMERIC_LABEL_CHANGED #/M/1 *"},
    ),
    (
        "message M { optional string a = 1; }",
        "message M { repeated string a = 1; }",
        {"FIELD_STRING_OR_BYTES_LABEL_CHANGED #/M/1"},
    ),
    ("message M { int32 a = 1; }", "message M { repeated int32 a = 1; }", set()),
    (
        "message M { repeated int32 a = 1; }",
        "message M { int32 a = 1; }",
        {"FIELD_NUMERIC_LABEL_CHANGED #/M/1 *"},
    ),
    ("message M { int32 a = 1; }", "message M { optional int32 a = 1; }", set()),
    (ONE, "message M { oneof o { string a = 1; } }", {"ONEOF_ADDED #/M/o"}),
    (ONE, f"message M {{ oneof o {{ {PAIR} }} }}", {"ONEOF_ADDED #/M/o", "ONEOF_FIELD_ADDED #/M/o/2"}),
    (
        f"message M {{ {PAIR} }}",
        f"message M {{ oneof o {{ {PAIR} }} }}",
        {"ONEOF_ADDED #/M/o", "MULTIPLE_FIELDS_MOVED_TO_ONEOF #/M/o *"},
    ),
    (
        "message M { string a = 1; oneof o { int32 b = 2; } }",
        f"message M {{ oneof o {{ {PAIR} }} }}",
        {"FIELD_MOVED_TO_EXISTING_ONEOF #/M/o *"},
    ),
    (
        f"message M {{ oneof o {{ {PAIR} }} }}",
        "message M { oneof o { string a = 1; } }",
        {"ONEOF_FIELD_REMOVED #/M/o/2 *"},
    ),
    (f"message M {{ oneof o {{ {PAIR} }} }}", "message M {}", {"ONEOF_REMOVED #/M/o"}),
    (
        f"message M {{ oneof o {{ {PAIR} }} }}",
        "message M { int32 b = 2; oneof o { string a = 1; } }",
        {"ONEOF_FIELD_MOVED_TO_TOP_LEVEL #/M/2"},
    ),
    (
        f"message M {{ oneof o {{ {PAIR} }} }}",
        "message M { oneof x { string a = 1; float b = 2; } }",
        {"ONEOF_REMOVED #/M/o", "ONEOF_ADDED #/M/x", "FIELD_SCALAR_KIND_CHANGED #/M/x/2 *"},
    ),
    (
        f"message M {{ oneof o {{ {PAIR} }} }}",
        "message M { oneof x { string a = 1; } }",
        {"ONEOF_REMOVED #/M/o", "ONEOF_ADDED #/M/x", "ONEOF_FIELD_REMOVED #/M/o/2 *"},
    ),
    (
        "message M { oneof x { string a = 1; } oneof y { int32 b = 2; } }",
        f"message M {{ oneof y {{ {PAIR} }} }}",
        {"ONEOF_REMOVED #/M/x", "FIELD_MOVED_TO_EXISTING_ONEOF #/M/y *"},
    ),
]


@pytest.mark.parametrize(("old", "new", "wanted"), PROTO3)
def test_a_change_has_its_name_and_its_place(old: str, new: str, wanted: set[str]) -> None:
    assert found(schema(old), schema(new)) == wanted


PROTO2 = [
    ("", "required int32 a = 1;", {"REQUIRED_FIELD_ADDED #/M/1 *"}),
    ("required int32 a = 1;", "", {"REQUIRED_FIELD_REMOVED #/M/1 *"}),
    ("required int32 a = 1;", "optional int32 a = 1;", {"FIELD_NUMERIC_LABEL_CHANGED #/M/1 *"}),
    ("required string a = 1;", "optional string a = 1;", {"FIELD_STRING_OR_BYTES_LABEL_CHANGED #/M/1"}),
    (
        "optional string a = 1;",
        "required string a = 1;",
        {"FIELD_STRING_OR_BYTES_LABEL_CHANGED #/M/1", "REQUIRED_FIELD_ADDED #/M/1 *"},
    ),
    ("optional M a = 1;", "required M a = 1;", {"REQUIRED_FIELD_ADDED #/M/1 *"}),
    (
        "optional group G = 1 { optional int32 a = 1; }",
        "optional M g = 1;",
        {"FIELD_KIND_CHANGED #/M/1 *"},
    ),
    (
        "optional group G = 1 { optional int32 a = 1; }",
        "optional group G = 1 { optional string a = 1; }",
        {"FIELD_SCALAR_KIND_CHANGED #/M/G/1 *"},
    ),
    ("optional group G = 1 { }", "", {"FIELD_REMOVED #/M/1"}),
]


@pytest.mark.parametrize(("old", "new", "wanted"), PROTO2)
def test_required_fields_and_groups_have_rules(old: str, new: str, wanted: set[str]) -> None:
    before, after = (schema(f"message M {{ {each} }}", syntax="proto2") for each in (old, new))
    assert found(before, after) == wanted


GROUPS = [
    {"int32", "int64", "uint32", "uint64", "bool", "E"},
    {"sint32", "sint64"},
    {"string", "bytes"},
    {"fixed32", "sfixed32"},
    {"fixed64", "sfixed64"},
    {"float"},
    {"double"},
]


@pytest.mark.parametrize("old", sorted(set().union(*GROUPS)))
def test_a_type_becomes_another_of_its_group_only(old: str) -> None:
    allowed = next(group for group in GROUPS if old in group)
    for new in set().union(*GROUPS):
        body = "message M { %s a = 1; } enum E { A = 0; }"
        wanted = set() if new in allowed else {"FIELD_SCALAR_KIND_CHANGED #/M/1 *"}
        assert found(schema(body % old), schema(body % new)) == wanted, new


def test_a_package_stays() -> None:
    assert found(schema(ONE), schema(ONE, package="q")) == {"PACKAGE_CHANGED #/ *"}


USER = "message M { o.Out.In x = 1; }"
OTHER = "package o; message Out { message In { %s a = 1; } }"


def test_messages_of_imports_are_compared() -> None:
    old, new = schema(USER, OTHER % "int32"), schema(USER, OTHER % "string")
    assert found(old, new) == {
        "FIELD_SCALAR_KIND_CHANGED #/Out/In/1 *",
        "FIELD_NAMED_TYPE_CHANGED #/M/1 *",
    }
    assert found(old, schema(USER, OTHER % "int64")) == set()


def test_an_import_may_have_another_package() -> None:
    new = schema("message M { new.o.Out.In x = 1; }", (OTHER % "int32").replace("package o", "package new.o"))
    assert found(schema(USER, OTHER % "int32"), new) == set()


def test_a_message_may_come_from_an_import_and_not_go_there() -> None:
    inside = schema("message M { N n = 1; } message N { int32 a = 1; }")
    outside = schema("message M { o.N n = 1; }", "package o; message N { int32 a = 1; }")
    assert found(outside, inside) == {"MESSAGE_ADDED #/N"}
    assert found(inside, outside) == {"MESSAGE_REMOVED #/N *"}


def test_imports_that_refer_to_themselves_are_compared_once() -> None:
    other = "package o; message N { N next = 1; P p = 2; %s a = 3; } message P { N n = 1; }"
    old, new = (schema("message M { o.N n = 1; }", other % kind) for kind in ("int32", "float"))
    assert found(old, new) == {
        "FIELD_NAMED_TYPE_CHANGED #/M/1 *",
        "FIELD_NAMED_TYPE_CHANGED #/N/1 *",
        "FIELD_NAMED_TYPE_CHANGED #/N/2 *",
        "FIELD_NAMED_TYPE_CHANGED #/P/1 *",
        "FIELD_SCALAR_KIND_CHANGED #/N/3 *",
    }


def test_a_map_that_is_written_out_is_the_same_map() -> None:
    short = schema("message M { map<string, int32> a = 1; }")
    written_out = parse(PROTOBUF, short.formatted("serialized"))
    assert isinstance(written_out, ProtobufSchema)
    assert found(short, written_out) == found(written_out, short) == set()


def test_a_refusal_is_told_in_confluents_words() -> None:
    old, new = schema(ONE + "message N {}"), schema("message M { int32 a = 1; }")
    told = check(new, [Existing(3, old)], "BACKWARD")
    assert told[:3] == [
        """{errorType:"FIELD_SCALAR_KIND_CHANGED", description:"The kind of a SCALAR field at path '#/M/1' """
        """in the new schema does not match its kind in the old schema"}""",
        """{errorType:"MESSAGE_REMOVED", description:"The new schema is missing a MESSAGE type at path '#/N' """
        """in the old schema"}""",
        "{oldSchemaVersion: 3}",
    ]
    assert check(new, [Existing(3, old)], "NONE") == []
    assert (
        "in the old schema does not match its kind in the new schema"
        in check(new, [Existing(3, old)], "FORWARD")[0]
    )
