"""Canonical texts as Java's Avro writes them, and what is no schema."""

import json
from typing import Any

import pytest

from penstock.schemas.avro.parsing import parse as parse_text
from penstock.schemas.avro.schema import AvroSchema
from penstock.schemas.model import MAX_DEPTH, InvalidSchema, Referred, SchemaReference
from penstock.schemas.parsing import check_new


def parse(said: Any, *references: tuple[str, Any]) -> AvroSchema:
    texts = {name: Referred(json.dumps(referred)) for name, referred in references}
    named = [SchemaReference(name, f"{name}-subject", 1) for name in texts]
    return parse_text(said if isinstance(said, str) else json.dumps(said), named, texts)


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        ('{"type": "string"}', '"string"'),
        ('"int"', '"int"'),
        ('{"type":"string","doc":"lost","name":"lost"}', '"string"'),
        ('{"type":"long","logicalType":"timestamp-millis"}', '{"type":"long","logicalType":"timestamp-millis"}'),
        ('["null", {"type":"int"}]', '["null","int"]'),
        ("[]", "[]"),
        (
            '{"items": "int", "x": 1, "type": "array"}',
            '{"type":"array","items":"int","x":1}',
        ),
        (
            '{"fields":[],"doc":"d","namespace":"a.b","name":"R","type":"record"}',
            '{"type":"record","name":"R","namespace":"a.b","doc":"d","fields":[]}',
        ),
        # A name with a dot has its own namespace.
        (
            '{"type":"error","name":"x.y.R","namespace":"lost","fields":[]}',
            '{"type":"error","name":"R","namespace":"x.y","fields":[]}',
        ),
        # A namespace that is the one around is not written; one that is none within another is.
        (
            '{"type":"record","name":"R","namespace":"a","fields":[{"name":"x","type":{"type":"fixed","size":1,"name":"a.F"}},'
            '{"name":"y","type":{"type":"fixed","size":2,"name":"G","namespace":""}},{"name":"z","type":["a.F","G","R"]}]}',
            '{"type":"record","name":"R","namespace":"a","fields":[{"name":"x","type":{"type":"fixed","name":"F","size":1}},'
            '{"name":"y","type":{"type":"fixed","name":"G","namespace":"","size":2}},{"name":"z","type":["F","G","R"]}]}',
        ),
        (
            '{"type":"record","name":"R","fields":[{"props":[1.50,1e10,-0.0,1E-5,{}],"aliases":["b","a","b"],"order":"Ignore",'
            '"default":null,"doc":"","type":["null","int"],"name":"f"}]}',
            '{"type":"record","name":"R","fields":[{"name":"f","type":["null","int"],"doc":"","default":null,"order":"ignore",'
            '"aliases":["b","a"],"props":[1.5,1.0E10,-0.0,1.0E-5,{}]}]}',
        ),
        (
            '{"type":"enum","aliases":["n.B","C"],"default":"X","p":"q","symbols":["X"],"name":"n.A"}',
            '{"type":"enum","name":"A","namespace":"n","symbols":["X"],"default":"X","p":"q","aliases":["B","C"]}',
        ),
        # Defaults of floats that are strings become numbers.
        (
            '{"type":"record","name":"R","fields":[{"name":"f","type":"double","default":"1.5"},'
            '{"name":"g","type":"float","default":"NaN"}]}',
            '{"type":"record","name":"R","fields":[{"name":"f","type":"double","default":1.5},'
            '{"name":"g","type":"float","default":"NaN"}]}',
        ),
        # A name before its definition, which Avro takes since 1.12.
        (
            '{"type":"record","name":"R","fields":[{"name":"f","type":"F"},{"name":"g","type":{"type":"fixed","name":"F","size":1}}]}',
            '{"type":"record","name":"R","fields":[{"name":"f","type":{"type":"fixed","name":"F","size":1}},{"name":"g","type":"F"}]}',
        ),
        ('/* c */ {"type": // "x"\n "int", "d": "/* no // comment */"}', '{"type":"int","d":"/* no // comment */"}'),
        ('{"type":"int","d":"\\u001f\\u00e9\\n\\/\\ud83d\\ude00"}', '{"type":"int","d":"\\u001Fé\\n/😀"}'),
    ],
)  # fmt: skip
def test_the_canonical_text_is_javas(text: str, canonical: str) -> None:
    schema = parse(text)

    assert schema.text == canonical
    assert parse(schema.text).text == canonical


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "it is not JSON"),
        ("{", "it is not JSON"),
        ('"int" "int"', "it is not JSON: Extra data"),
        ("/* \"int\"", "it is not JSON"),
        ('{"type":"int","x":NaN}', "NaN is no number of JSON"),
        ("3", "Schema not yet supported: 3"),
        ('"unknown"', "Undefined name: unknown"),
        ('{"type":{"type":"int"}}', "No type"),
        ('{"type":"record","fields":[]}', "No name in schema"),
        ('{"type":"record","name":"R"}', "Record has no fields"),
        ('{"type":"record","name":"int","fields":[]}', "Schemas may not be named after primitives: int"),
        ('{"type":"record","name":"1R","fields":[]}', "Illegal initial character"),
        ('{"type":"record","name":"a.R-x","fields":[]}', "Illegal character in"),
        ('{"type":"record","name":"R","fields":[{"type":"int"}]}', "No field name"),
        ('{"type":"record","name":"R","fields":[{"name":"a"}]}', "No field type"),
        ('{"type":"record","name":"R","fields":[{"name":"a","type":"int"},{"name":"a","type":"int"}]}', "Duplicate field a"),
        ('{"type":"record","name":"R","fields":[{"name":"a","type":"int","order":"up"}]}', "the order of field a"),
        ('{"type":"record","name":"R","fields":[{"name":"a","type":"float","default":"x"}]}', "is not a number"),
        ('{"type":"enum","name":"E"}', "Enum has no symbols"),
        ('{"type":"enum","name":"E","symbols":["A","A"]}', "Duplicate enum symbol: A"),
        ('{"type":"enum","name":"E","symbols":["A"],"default":"B"}', "The Enum Default: B is not in the enum symbol set"),
        ('{"type":"enum","name":"E","symbols":[1]}', "Null name"),
        ('{"type":"fixed","name":"F","size":1.0}', "Invalid or no size"),
        ('{"type":"fixed","name":"F","size":-1}', "Invalid or no size"),
        ('{"type":"array"}', "Array has no items type"),
        ('{"type":"map"}', "Map has no values type"),
        ('["int","int"]', "Duplicate in union:int"),
        ('[["int"]]', "Nested union"),
        ('[{"type":"fixed","name":"F","size":1},{"type":"fixed","name":"F","size":2}]', "Can't redefine: F"),
        ('{"type":"record","name":"R","fields":[],"aliases":"x"}', "aliases not an array"),
        ('{"type":"int","x":"\\ud800"}', "half of a character"),
    ],
)  # fmt: skip
def test_what_is_no_schema_is_told_why(text: str, reason: str) -> None:
    with pytest.raises(InvalidSchema) as refused:
        parse(text)

    assert str(refused.value).startswith(reason) or reason in str(refused.value)


@pytest.mark.parametrize("text", ["[" * 100_000, '{"type":"array","items":' * 300 + '"int"' + "}" * 300])
def test_types_that_are_nested_too_deeply_are_refused(text: str) -> None:
    with pytest.raises(InvalidSchema, match="nested"):
        parse(text)


def test_a_long_chain_of_forward_names_is_refused_as_its_text_would_be() -> None:
    chain = [
        {"type": "record", "name": f"R{number}", "fields": [{"name": "f", "type": f"R{number + 1}"}]}
        for number in range(MAX_DEPTH)
    ]

    with pytest.raises(InvalidSchema, match=f"more than {MAX_DEPTH} deep"):
        parse([*chain, {"type": "fixed", "name": f"R{MAX_DEPTH}", "size": 1}])


def test_a_long_message_shows_the_beginning_of_what_is_wrong() -> None:
    with pytest.raises(InvalidSchema) as refused:
        parse({"type": "record", "name": "R", "doc": "x" * 10_000})

    assert len(str(refused.value)) < 300


ADDRESS = {"type": "record", "name": "a.Address", "fields": [{"name": "city", "type": "string"}]}


def test_types_that_are_referred_to_are_written_by_name() -> None:
    person = {"type": "record", "name": "p.Person", "fields": [{"name": "home", "type": "a.Address"}]}
    schema = parse(person, ("a.Address", ADDRESS))

    assert (
        schema.text
        == '{"type":"record","name":"Person","namespace":"p","fields":[{"name":"home","type":"a.Address"}]}'
    )
    assert schema.formatted("resolved") == (
        '{"type":"record","name":"Person","namespace":"p","fields":[{"name":"home","type":'
        '{"type":"record","name":"Address","namespace":"a","fields":[{"name":"city","type":"string"}]}}]}'
    )
    assert schema.formatted("") == schema.formatted("something") == schema.text
    assert schema.full_name == "p.Person"


def test_a_type_within_one_that_is_referred_to_is_written_whole_as_confluents_registry_does() -> None:
    outer = {"type": "record", "name": "Outer", "fields": [{"name": "f", "type": ADDRESS}]}
    schema = parse(["Outer", "a.Address"], ("Outer", outer))

    assert (
        schema.text
        == '["Outer",{"type":"record","name":"Address","namespace":"a","fields":[{"name":"city","type":"string"}]}]'
    )


def test_a_type_may_be_defined_again_if_it_says_the_same() -> None:
    again = {"type": "array", "items": {**ADDRESS, "doc": "another text"}}

    assert parse(again, ("a.Address", ADDRESS)).text == '{"type":"array","items":"a.Address"}'


def test_a_reference_without_its_text_is_refused() -> None:
    with pytest.raises(InvalidSchema, match=r"no text for the reference a\.Address"):
        parse_text('"a.Address"', [SchemaReference("a.Address", "s", 1)], {})


def test_only_a_record_has_a_full_name() -> None:
    assert parse({"type": "enum", "name": "E", "symbols": []}).full_name is None


def test_normalized_everything_is_in_order() -> None:
    schema = parse(
        {
            "type": "record", "name": "R", "zz": 1, "aa": {"y": 1, "x": 2}, "doc": "", "aliases": ["b", "a"],
            "fields": [
                {"name": "d", "type": {"type": "bytes", "scale": 2, "precision": 4, "x": 1, "logicalType": "decimal"}},
                {"name": "f", "type": "double", "default": 1, "q": 1, "p": 2},
                {"name": "u", "type": ["null", "double"], "default": 2},
                {"name": "i", "type": {"type": "string", "logicalType": "date", "a": 1}},
            ],
        }
    )  # fmt: skip

    assert schema.normalized().text == (
        '{"type":"record","name":"R","fields":['
        '{"name":"d","type":{"type":"bytes","logicalType":"decimal","precision":4,"scale":2,"x":1}},'
        '{"name":"f","type":"double","default":1.0,"p":2,"q":1},'
        '{"name":"u","type":["null","double"],"default":2.0},'
        '{"name":"i","type":{"type":"string","a":1,"logicalType":"date"}}'
        '],"aa":{"x":2,"y":1},"zz":1,"aliases":["a","b"]}'
    )
    assert schema.normalized().normalized().text == schema.normalized().text


def test_normalized_references_are_in_order_and_once() -> None:
    references = [SchemaReference("a.Address", "z", 1), SchemaReference("a.Address", "b", 2)]
    texts = {"a.Address": Referred(json.dumps(ADDRESS))}
    schema = parse_text('"a.Address"', [*references, references[0]], texts)

    assert schema.normalized().references == (references[1], references[0])


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        ({"type": "record", "name": "Ré", "fields": []}, 'Name "Ré" is invalid'),
        ({"type": "fixed", "name": "F", "namespace": "a.b-c", "size": 1}, 'Namespace part "b-c" is invalid'),
        ({"type": "enum", "name": "E", "symbols": ["é"]}, 'Name "é" is invalid'),
        (
            {"type": "record", "name": "R", "fields": [{"name": "f", "type": "int", "default": "x"}]},
            'Invalid default for field f: "x" not a "int"',
        ),
        (
            {"type": "record", "name": "R", "fields": [{"name": "f", "type": "int", "default": 2**31}]},
            "Invalid default for field f",
        ),
        (
            # The default of a record that contains itself needs itself.
            {"type": "record", "name": "R", "fields": [{"name": "f", "type": "R", "default": {}}]},
            "Invalid default for field f",
        ),
    ],
)
def test_what_is_refused_of_new_schemas_only(said: Any, reason: str) -> None:
    schema = parse(said)

    with pytest.raises(InvalidSchema) as refused:
        check_new(schema)

    assert str(refused.value).startswith(reason)


def test_defaults_that_fit_are_taken() -> None:
    fields = [
        ("int", 1), ("long", 2**40), ("double", 1), ("float", 1.5), ("bytes", "x"), ("null", None), ("boolean", True),
        (["string", "null"], None), ({"type": "array", "items": "int"}, [1]), ({"type": "map", "values": "int"}, {"a": 1}),
        ({"type": "record", "name": "S", "fields": [{"name": "x", "type": "int", "default": 1}]}, {}),
    ]  # fmt: skip
    check_new(
        parse(
            {
                "type": "record",
                "name": "R",
                "fields": [
                    {"name": f"f{number}", "type": type_, "default": default}
                    for number, (type_, default) in enumerate(fields)
                ],
            }
        )
    )
