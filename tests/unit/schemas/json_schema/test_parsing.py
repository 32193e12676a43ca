from __future__ import annotations

import json
from typing import Any

import pytest

from penstock.schemas import parsing
from penstock.schemas.json_schema.parsing import JsonSchema, parse
from penstock.schemas.json_schema.values import codec_of
from penstock.schemas.model import JSON, InvalidSchema, InvalidValue, Referred, SchemaReference

LATEST = "https://json-schema.org/draft/2020-12/schema"


def _parse(schema: Any, names: dict[str, Any] | None = None) -> JsonSchema:
    text = schema if isinstance(schema, str) else json.dumps(schema)
    texts = {name: Referred(json.dumps(each)) for name, each in (names or {}).items()}
    return parse(text, [SchemaReference(name, name, 1) for name in texts], texts)


def _accepts(schema: JsonSchema, value: Any) -> bool:
    try:
        codec_of(schema).encode(value)
    except InvalidValue:
        return False
    return True


def test_the_kind_is_found_by_its_name() -> None:
    found = parsing.parse(JSON, '{ "title" : "Order" }')
    assert (found.kind, found.text, found.full_name) == (JSON, '{"title":"Order"}', "Order")


def test_a_schema_without_a_title_has_no_name() -> None:
    assert _parse({}).full_name is None
    assert _parse("true").full_name is None


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        ('{"b": 1, "a": [ ]}', '{"b":1,"a":[]}'),
        ('{"a":1,"b":2,"a":3}', '{"a":3,"b":2}'),
        ('{"x":1.10,"y":1e5,"z":-0.0}', '{"x":1.10,"y":1E+5,"z":0.0}'),
        ('{"x":12345678901234567890123,"y":-0,"z":1E400}', '{"x":12345678901234567890123,"y":0,"z":1E+400}'),
        ('{"x":0.000001,"y":0.0000001}', '{"x":0.000001,"y":1E-7}'),
        ('{"x":"\\u00e9\\u001f\\/\\n"}', '{"x":"é\\u001F/\\n"}'),
        ('{"x":"\\\\u001f\\u001f"}', '{"x":"\\\\u001f\\u001F"}'),
        ('{"x":"\\\\u001f\\u001f","y":1.5}', '{"x":"\\\\u001f\\u001F","y":1.5}'),
        ("true", "true"),
    ],
)
def test_the_text_is_printed_as_confluents_registry_prints_it(text: str, canonical: str) -> None:
    assert _parse(text).text == canonical


def test_what_is_normalized_has_its_keys_in_order() -> None:
    references = [SchemaReference("z", "b", 1), SchemaReference("y", "a", 2), SchemaReference("z", "b", 1)]
    found = parse('{"b":1.50,"\U0001f600":1,"\uff01":2,"a":[{"d":1,"c":2}]}', references, {}).normalized()
    # Java orders strings by UTF-16 units: the emoji's begin with D83D.
    assert found.text == '{"a":[{"c":2,"d":1}],"b":1.50,"\U0001f600":1,"\uff01":2}'
    assert found.references == (references[1], references[0])


def test_there_is_no_other_form() -> None:
    assert _parse({"type": "null"}).formatted("resolved") == '{"type":"null"}'


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("{", "it is not JSON: .*line 1, column 2"),
        ("", "it is not JSON"),
        ('"string"', "an object, true or false"),
        ("[]", "an object, true or false"),
        ('{"x":NaN}', "NaN is no number"),
        ('{"x":' + "9" * 5_000 + "}", "it is not JSON"),
        ('{"x":"\\ud800"}', "surrogate"),
        ('{"x":"\\ud800","y":1.5}', "surrogate"),
        ('{"x":1e99999999999999999999}', "it is not JSON"),
        ('{"properties":{"a":{"type":"text"}}}', '#/properties/a/type: "text" is not valid'),
        ('{"minLength":-1}', "#/minLength: -1 is less than"),
        ('{"$schema":"http://json-schema.org/draft-04/schema#","required":[]}', "#/required"),
        ('{"$ref":"#/definitions/a"}', "#: the \\$ref '#/definitions/a' leads to nothing"),
        ('{"items":{"$ref":"#/properties/0"},"properties":{}}', "#/items: the \\$ref"),
        ('{"$ref":"#name"}', "leads to nothing"),
        ('{"$ref":"http://[broken"}', "leads to nothing"),
    ],
)
def test_what_is_no_schema_is_refused_with_its_place(text: str, reason: str) -> None:
    with pytest.raises(InvalidSchema, match=reason) as error:
        _parse(text)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    "schema",
    [
        {"$ref": "#/definitions/a", "definitions": {"a": {"type": "null"}}},
        {"$ref": "#/$defs/a", "definitions": {"a": {"type": "null"}}},
        {"$ref": "#/x-own/a~1b", "x-own": {"a/b": {"type": "null"}}},
        {"allOf": [{"$ref": "#/allOf/1"}, {"type": "null"}]},
        {"$ref": "#a", "definitions": {"x": {"$id": "#a", "type": "null"}}},
        {"$id": "http://a.b/c.json", "properties": {}, "allOf": [{"$ref": "http://a.b/c.json#/definitions/n"}],
         "definitions": {"n": {"type": "null"}}},
        {"$id": "http://a.b/c.json", "allOf": [{"$ref": "d.json"}],
         "definitions": {"n": {"$id": "d.json", "type": "null"}}},
        {"$schema": LATEST, "$ref": "#a", "$defs": {"x": {"$anchor": "a", "type": "null"}}},
        {"$schema": LATEST, "$dynamicRef": "#a", "$defs": {"x": {"$dynamicAnchor": "a", "type": "null"}}},
        {"$schema": "http://json-schema.org/draft-04/schema#", "id": "http://a.b/c", "$ref": "#/definitions/a",
         "definitions": {"a": {"type": "null"}}},
    ],
)  # fmt: skip
def test_a_ref_leads_to_its_place(schema: Any) -> None:
    found = _parse(schema)
    assert _accepts(found, None)
    assert not _accepts(found, 3)
    assert [each.kind for each in _parse({"type": "string"}).incompatibilities(found, policy="STRICT")] != []


@pytest.mark.parametrize(
    ("identity", "name", "reference"),
    [
        (None, "n.json", "n.json"),
        (None, "n.json", "./n.json"),
        (None, "n.json", "n.json#/definitions/it"),
        (None, "n.json", "n.json#/$defs/it"),
        (None, "dir/n.json", "dir/n.json"),
        (None, "http://a.b/n.json", "http://a.b/n.json"),
        (None, "a.b.Name", "a.b.Name"),
        ("http://a.b/c/root.json", "n.json", "n.json"),
        ("http://a.b/c/root.json", "n.json", "http://a.b/c/n.json"),
        ("http://a.b/c/root.json", "http://a.b/n.json", "../n.json"),
        ("urn:example:root", "urn:example:n", "urn:example:n"),
        ("mem://host/root.json", "n.json", "n.json"),
    ],
)
@pytest.mark.parametrize("draft", ["http://json-schema.org/draft-07/schema#", LATEST])
def test_a_ref_leads_to_a_reference_by_its_name(
    identity: str | None, name: str, reference: str, draft: str
) -> None:
    named: dict[str, Any] = {"$schema": draft, "type": "null", "definitions": {"it": {"type": "null"}}}
    schema = {
        "$schema": draft,
        **({"$id": identity} if identity else {}),
        "properties": {"a": {"$ref": reference}},
    }
    found = _parse(schema, {name: named})
    assert _accepts(found, {"a": None})
    assert not _accepts(found, {"a": 3})
    changed = _parse(schema, {name: {**named, "type": "string", "definitions": {"it": {"type": "string"}}}})
    assert [each.path for each in changed.incompatibilities(found, policy="STRICT")] == ["#/properties/a"]


def test_references_refer_to_others() -> None:
    found = _parse(
        {"items": {"$ref": "a.json"}}, {"a.json": {"items": {"$ref": "b.json"}}, "b.json": {"type": "null"}}
    )
    assert _accepts(found, [[None]])
    assert not _accepts(found, [[3]])


def test_a_broken_reference_is_named() -> None:
    with pytest.raises(InvalidSchema, match="#: the reference 'a': it is not JSON"):
        parse('{"$ref":"a"}', [SchemaReference("a", "a", 1)], {"a": Referred("{")})


def test_a_schema_may_refer_to_its_language() -> None:
    found = _parse({"items": {"$ref": "http://json-schema.org/draft-07/schema#"}})
    assert _accepts(found, [{"type": "string"}])
    assert not _accepts(found, [{"type": "text"}])
    assert not found.incompatibilities(found, policy="STRICT")


def test_the_draft_decides_what_keywords_mean() -> None:
    tuple_of_two = {"items": [{"type": "null"}], "additionalItems": False}
    assert not _accepts(_parse(tuple_of_two), [3])
    with pytest.raises(InvalidSchema, match="#/items"):
        _parse({"$schema": LATEST, **tuple_of_two})


def test_an_unknown_language_is_draft_7() -> None:
    assert not _accepts(_parse({"$schema": "http://a.b/language", "const": 1}), 2)
