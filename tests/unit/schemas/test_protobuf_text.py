"""The canonical text of Protobuf schemas: golden files show its form, which is Confluent's."""

import base64
import importlib
import time

import pytest
from google.protobuf.descriptor import FileDescriptor
from google.protobuf.descriptor_pb2 import DescriptorProto, FileDescriptorProto

from penstock.schemas.model import PROTOBUF, InvalidSchema, Referred, SchemaReference
from penstock.schemas.parsing import parse
from tests.unit.schemas.protobuf_golden import FORMS, HERE, NAMES, described, text_of


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("form", FORMS)
def test_a_text_has_the_form_of_its_golden_file(name: str, form: str) -> None:
    assert text_of(name, form) == (HERE / f"{name}.{form}.txt").read_text()


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("form", FORMS)
def test_a_written_text_is_read_and_written_the_same(name: str, form: str) -> None:
    text = (HERE / f"{name}.{form}.txt").read_text()
    again = parse(PROTOBUF, text)
    assert (again.text, again.normalized().text) == (text, again.normalized().normalized().text)


@pytest.mark.parametrize("name", NAMES)
def test_all_forms_of_a_text_mean_the_same_messages(name: str) -> None:
    wanted = described(parse(PROTOBUF, (HERE / f"{name}.proto").read_text()).formatted("serialized"))
    canonical = parse(PROTOBUF, (HERE / f"{name}.canonical.txt").read_text())
    from_descriptor = parse(PROTOBUF, (HERE / f"{name}.from_descriptor.txt").read_text())
    assert described(canonical.formatted("serialized")) == wanted
    assert described(from_descriptor.formatted("serialized")).message_type == wanted.message_type


@pytest.mark.parametrize("name", NAMES)
def test_a_text_and_its_descriptor_are_one_when_they_are_normalized(name: str) -> None:
    assert parse(PROTOBUF, text_of(name, "from_descriptor")).normalized().text == text_of(name, "normalized")


def test_the_usual_message_looks_as_in_confluents_registry() -> None:
    text = 'syntax = "proto3"; package x; import "google/protobuf/any.proto"; message M { string f1 = 1; } // end'
    wanted = (
        'syntax = "proto3";\npackage x;\n\nimport "google/protobuf/any.proto";\n\n'
        "message M {\n  string f1 = 1;\n}\n"
    )
    schema = parse(PROTOBUF, text)
    assert (schema.text, schema.full_name, schema.kind) == (wanted, "x.M", PROTOBUF)


def test_what_is_not_asked_for_is_the_text() -> None:
    schema = parse(PROTOBUF, "message M {}")
    assert {schema.formatted(form) for form in ("", "default", "resolved")} == {"\nmessage M {}\n"}


def test_an_entry_of_a_map_stays_one_when_it_comes_as_a_descriptor() -> None:
    text = parse(PROTOBUF, 'syntax = "proto3"; message M { map<string, int32> by_name = 1; }')
    schema = parse(PROTOBUF, text.formatted("serialized"))
    assert "    option map_entry = true;\n" in schema.text
    assert described(schema.formatted("serialized")).message_type[0].nested_type[0].options.map_entry
    assert "  map<string, int32> by_name = 1;\n" in schema.normalized().text
    assert "ByNameEntry" not in schema.normalized().text


def test_a_relative_name_becomes_a_full_one_when_it_is_normalized() -> None:
    text = 'syntax = "proto3"; package a.b; message M { N.In x = 1; b.N y = 2; message N { } } message N { message In { } }'
    with pytest.raises(InvalidSchema, match=r"'M\.In'"):
        parse(PROTOBUF, text.replace("N.In", "M.In"))
    schema = parse(PROTOBUF, text)
    assert "  N.In x = 1;\n  b.N y = 2;\n" in schema.text
    assert "  .a.b.N.In x = 1;\n  .a.b.N y = 2;\n" in schema.normalized().text


def test_references_are_sorted_when_a_schema_is_normalized() -> None:
    texts = {name: Referred('syntax = "proto3";') for name in ("b.proto", "a.proto")}
    references = (SchemaReference("b.proto", "b", 1), SchemaReference("a.proto", "a", 2))
    schema = parse(PROTOBUF, 'import "b.proto"; import "a.proto";', references, texts)
    assert schema.references == references
    normal = schema.normalized()
    assert normal.references == references[::-1]
    assert normal.text == '\nimport "a.proto";\nimport "b.proto";\n'


def test_the_first_value_of_an_enum_stays_the_first() -> None:
    text = 'syntax = "proto3"; enum E { ZERO = 0; B = 2; A = 1; MINUS = -1; }'
    normal = parse(PROTOBUF, text).normalized()
    assert normal.text.split("\n")[3:7] == ["  ZERO = 0;", "  MINUS = -1;", "  A = 1;", "  B = 2;"]


def test_a_descriptor_of_a_file_with_references_is_answered() -> None:
    texts = {"other.proto": Referred('syntax = "proto3"; package o; message Other { int32 a = 1; }')}
    references = (SchemaReference("other.proto", "other", 1),)
    schema = parse(
        PROTOBUF, 'syntax = "proto3"; import "other.proto"; message M { o.Other x = 1; }', references, texts
    )
    proto = described(schema.formatted("serialized"))
    assert (list(proto.dependency), proto.message_type[0].field[0].type_name) == (["other.proto"], ".o.Other")
    again = parse(PROTOBUF, schema.formatted("serialized"), references, texts)
    assert again.text.endswith("message M {\n  .o.Other x = 1;\n}\n")


def test_an_option_of_a_referred_file_is_in_the_descriptor() -> None:
    rules = (
        'syntax = "proto2"; package rules; import "google/protobuf/descriptor.proto";'
        "extend google.protobuf.FieldOptions { optional Rule field = 50001; }"
        "message Rule { optional double max = 1; repeated Rule any = 2; }"
    )
    texts = {"rules.proto": Referred(rules)}
    text = (
        'syntax = "proto3"; package a; import "rules.proto"; message M {'
        " double x = 1 [(rules.field).max = 1e3, (rules.field).any = {max: -1}]; }"
    )
    schema = parse(PROTOBUF, text, (SchemaReference("rules.proto", "rules", 1),), texts)
    options = described(schema.formatted("serialized")).message_type[0].field[0].options
    assert not options.uninterpreted_option
    again = parse(PROTOBUF, schema.formatted("serialized"), schema.references, texts)
    wanted = "[(rules.field) = {\n    max: 1000.0,\n    any: [\n      {\n        max: -1.0\n      }\n    ]\n  }];\n"
    assert wanted in again.text


def test_options_that_nobody_knows_are_kept() -> None:
    text = 'syntax = "proto3";\n\nmessage M {\n  option (validate.x) = "a";\n\n  int32 a = 1 [(v.rules).int32.gt = 0];\n}\n'
    schema = parse(PROTOBUF, text)
    assert schema.text == text
    assert parse(PROTOBUF, schema.formatted("serialized")).text == text


def test_an_option_that_does_not_fit_its_extension_is_kept() -> None:
    text = (
        'import "google/protobuf/descriptor.proto";'
        "extend google.protobuf.MessageOptions { optional Rule rule = 50001; } message Rule { required int32 must = 1; }"
        "message M { option (rule) = {%s}; }"
    )
    for value, fits in (("must: 1", True), ("", False), ("other: 1", False), ('must: "x"', False)):
        schema = parse(PROTOBUF, text % value)
        options = described(schema.formatted("serialized")).message_type[1].options
        assert bool(options.uninterpreted_option) is not fits
        assert parse(PROTOBUF, schema.text).text == schema.text


def test_what_is_no_character_in_a_string_is_written_in_octal() -> None:
    schema = parse(PROTOBUF, r'message M { optional bytes b = 1 [default = "\x00\377\u00e9é\?"]; }')
    assert r'default = "\000\377éé?"' in schema.text
    assert parse(PROTOBUF, schema.text).text == schema.text
    assert described(schema.formatted("serialized")).message_type[0].field[0].default_value == (
        r"\000\377\303\251\303\251?"
    )


@pytest.mark.parametrize(
    "path", ["google/protobuf/timestamp.proto", "google/type/decimal.proto", "confluent/type/decimal.proto"]
)
def test_well_known_files_need_no_reference(path: str) -> None:
    name = {
        "timestamp": "google.protobuf.Timestamp",
        "decimal": f"{path.rpartition('/')[0].replace('/', '.')}.Decimal",
    }
    kind = name[path.rpartition("/")[2].removesuffix(".proto")]
    schema = parse(PROTOBUF, f'syntax = "proto3"; import "{path}"; message M {{ {kind} x = 1; }}')
    assert f"  {kind} x = 1;\n" in schema.text


def test_a_reference_goes_before_a_well_known_file() -> None:
    texts = {"google/type/decimal.proto": Referred('syntax = "proto3"; package mine; message D {}')}
    text = 'syntax = "proto3"; import "google/type/decimal.proto"; message M { mine.D x = 1; }'
    assert parse(PROTOBUF, text, (), texts).full_name == "M"


def test_names_are_seen_through_public_imports_only() -> None:
    texts = {
        "a.proto": Referred('syntax = "proto3"; message A {}'),
        "shown.proto": Referred('syntax = "proto3"; import public "a.proto";'),
        "hidden.proto": Referred('syntax = "proto3"; import "a.proto";'),
    }
    text = 'syntax = "proto3"; import "shown.proto"; message M { A a = 1; }'
    assert parse(PROTOBUF, text, (), texts).full_name == "M"
    with pytest.raises(InvalidSchema, match=r"'A', which M\.a uses, is neither defined nor imported"):
        parse(PROTOBUF, text.replace("shown", "hidden"), (), texts)


def test_a_descriptor_may_be_broken_into_lines() -> None:
    schema = parse(PROTOBUF, "message M {}")
    folded = base64.encodebytes(base64.b64decode(schema.formatted("serialized"))).decode()
    assert parse(PROTOBUF, folded).text == schema.text


def test_a_megabyte_is_read_in_no_time() -> None:
    """A parser that goes back and forth needs half a minute; the bound leaves room for a busy machine."""
    one = "message M%d { string a = 1; repeated int32 b = 2 [packed = true]; oneof o { string c = 3; int32 d = 4; } }\n"
    text = 'syntax = "proto3";\n' + "".join(one % number for number in range(10_000))
    assert len(text) > 1_000_000
    start = time.process_time()
    schema = parse(PROTOBUF, text)
    assert time.process_time() - start < 15
    assert schema.full_name == "M0"


MODULES = [
    f"{package}.{name}_pb2"
    for package, names in {
        "google.protobuf": ("descriptor", "struct", "timestamp", "type", "wrappers", "api"),
        "google.type": ("datetime", "money", "postal_address", "expr"),
        "google.api": ("annotations", "http", "service", "quota", "distribution", "field_info"),
        "google.rpc": ("status", "error_details", "http"),
    }.items()
    for name in names
]


@pytest.mark.parametrize("module", MODULES)
def test_descriptors_of_others_go_through_the_text_and_come_back(module: str) -> None:
    """They are what protoc has made; fields are in the order of their numbers here."""
    file = importlib.import_module(module).DESCRIPTOR
    schema = parse(PROTOBUF, base64.b64encode(file.serialized_pb).decode(), (), imported(file))
    came, went = FileDescriptorProto.FromString(file.serialized_pb), described(schema.formatted("serialized"))
    for proto in (came, went):
        proto.ClearField("name")
        if proto.syntax == "proto2":
            proto.ClearField("syntax")
        for message in proto.message_type:
            sort_fields(message)
    assert went == came
    assert parse(PROTOBUF, schema.text, (), imported(file)).text == schema.text


def imported(file: FileDescriptor) -> dict[str, Referred]:
    texts: dict[str, Referred] = {}
    for each in file.dependencies:
        texts |= imported(each)
        texts[each.name] = Referred(base64.b64encode(each.serialized_pb).decode())
    return texts


def sort_fields(message: DescriptorProto) -> None:
    fields = sorted(message.field, key=lambda field: field.number)
    del message.field[:]
    message.field.extend(fields)
    for nested in message.nested_type:
        sort_fields(nested)
