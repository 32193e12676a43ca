"""Schemas and values that could take too long, too much, or something from elsewhere."""

from __future__ import annotations

import json
from functools import reduce
from typing import Any

import pytest

from penstock.schemas.json_schema import compatibility, documents
from penstock.schemas.json_schema.differences import TOO_LARGE
from penstock.schemas.json_schema.parsing import JsonSchema, parse
from penstock.schemas.json_schema.values import codec_of
from penstock.schemas.model import InvalidSchema, InvalidValue, Referred, SchemaReference


def _parse(schema: Any, names: dict[str, Any] | None = None) -> JsonSchema:
    text = schema if isinstance(schema, str) else json.dumps(schema)
    texts = {name: Referred(json.dumps(each)) for name, each in (names or {}).items()}
    return parse(text, [SchemaReference(name, name, 1) for name in texts], texts)


def _kinds(new: JsonSchema, old: JsonSchema) -> list[str]:
    return [each.kind for each in new.incompatibilities(old, policy="STRICT")]


@pytest.mark.parametrize(
    "address",
    ["http://127.0.0.1:9/schema.json", "https://example.com/a", "file:///etc/hostname", "other.json"],
)
def test_a_remote_schema_is_never_fetched(address: str) -> None:
    with pytest.raises(InvalidSchema, match=r"#/properties/a: .* nothing is fetched"):
        _parse({"properties": {"a": {"$ref": address}}})


def test_a_remote_schema_is_not_fetched_for_its_language() -> None:
    assert _parse({"$schema": "http://127.0.0.1:9/language", "type": "object"}).text.startswith("{")


@pytest.mark.parametrize(
    "text",
    [
        '{"items":' * 10_000 + "{}" + "}" * 10_000,
        '{"default":' + "[" * 10_000 + "]" * 10_000 + "}",
        '{"items":' * 300 + "{}" + "}" * 300,
        '{"x-other":' * 300 + "{}" + "}" * 300,
    ],
)
def test_deep_nesting_is_refused(text: str) -> None:
    with pytest.raises(InvalidSchema, match="nested too deeply"):
        _parse(text)


@pytest.mark.parametrize("pattern", ["([", "((a{1000}){1000}){1000}"])
def test_a_pattern_that_is_broken_or_too_large_is_refused(pattern: str) -> None:
    with pytest.raises(InvalidSchema, match="#/pattern: "):
        _parse({"pattern": pattern})


@pytest.mark.parametrize("pattern", ["^(a+)+$", r"^(?=(a+)+$)(a|aa)+\1$", "^(a|a)*$", r"(x+x+)+y(?!z)"])
def test_a_pattern_that_explodes_ends(pattern: str) -> None:
    codec = codec_of(_parse({"type": "string", "pattern": pattern}))
    for letter in "ax":
        with pytest.raises(InvalidValue, match=r"does not match|backtracking"):
            codec.encode(letter * 20_000 + "b")


def test_a_pattern_of_properties_that_explodes_ends_in_a_comparison() -> None:
    old = _parse({"patternProperties": {r"^(?=(a+)+$)(a|aa)+\1$": {"type": "string"}}})
    new = _parse({"properties": {"a" * 5_000 + "b": {"type": "string"}}})
    assert _kinds(new, old) == []


def test_a_megabyte_is_read_and_compared() -> None:
    schema = {
        "properties": {f"p{number}": {"type": "string", "maxLength": number} for number in range(20_000)}
    }
    assert len(json.dumps(schema)) > 900_000
    old = _parse(schema)
    schema["properties"]["p7"]["maxLength"] = 1
    assert _kinds(_parse(schema), old) == ["MAX_LENGTH_DECREASED"]


def test_a_thousand_references_of_one_schema_are_no_trouble_where_few_are_used() -> None:
    names = {f"n{number}.json": {"type": "string"} for number in range(1_000)}
    assert _parse({"properties": {"a": {"$ref": "n999.json"}}}, names).references[999].name == "n999.json"


def test_too_many_referred_schemas_are_refused() -> None:
    names = {f"n{number}.json": {"items": {"$ref": f"n{number + 1}.json"}} for number in range(3_000)}
    with pytest.raises(InvalidSchema, match="more than 2,000 other schemas"):
        _parse({"$ref": "n0.json"}, names)


def test_a_thousand_schemas_that_refer_to_one_another_are_compiled_and_compared() -> None:
    names = {
        f"n{number}.json": {"properties": {"a": {"$ref": f"n{(number + 1) % 1_000}.json"}}, "type": "object"}
        for number in range(1_000)
    }
    schema = {"properties": {f"p{number}": {"$ref": f"n{number}.json"} for number in range(1_000)}}
    found = _parse(schema, names)
    assert _kinds(found, _parse(schema, names)) == []
    codec = codec_of(found)
    assert codec.encode({"p7": {"a": {}}}) == b'{"p7":{"a":{}}}'
    with pytest.raises(InvalidValue, match=r"^\$\.p7\.a\.a: "):
        codec.encode({"p7": {"a": {"a": 3}}})


def test_many_schemas_of_several_drafts_are_refused() -> None:
    names: dict[str, Any] = {f"n{number}.json": {"type": "null"} for number in range(60)}
    names["n0.json"]["$schema"] = "http://json-schema.org/draft-04/schema#"
    schema = {"allOf": [{"$ref": name} for name in names]}
    with pytest.raises(InvalidSchema, match="of several drafts refer to at most 50 others"):
        _parse(schema, names)


def test_too_many_places_are_refused() -> None:
    places = documents.MAX_REFERENCES + 1
    schema = {
        "definitions": {f"d{number}": {} for number in range(places)},
        "allOf": [{"$ref": f"#/definitions/d{number}"} for number in range(places)],
    }
    with pytest.raises(InvalidSchema, match="more than 10,000 places"):
        _parse(schema)


def test_too_much_that_is_referred_to_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(documents, "MAX_REFERRED_CHARACTERS", 100)
    with pytest.raises(InvalidSchema, match="more than 100 characters"):
        _parse({"$ref": "a"}, {"a": {"title": "x" * 100}})


@pytest.mark.parametrize(
    "schema",
    [
        {"$ref": "#"},
        {"allOf": [{"$ref": "#"}]},
        {"anyOf": [{"$ref": "#"}, {"type": "string"}]},
        {"not": {"$ref": "#"}},
        {"properties": {"a": {"$ref": "#"}}},
        {
            "$ref": "#/definitions/a",
            "definitions": {"a": {"$ref": "#/definitions/b"}, "b": {"$ref": "#/definitions/a"}},
        },
        {"$schema": "https://json-schema.org/draft/2020-12/schema", "$ref": "#", "type": "object"},
        {"$schema": "https://json-schema.org/draft/2019-09/schema", "items": {"$recursiveRef": "#"}},
    ],
)
def test_cycles_end(schema: Any) -> None:
    assert _kinds(_parse(schema), _parse(schema)) in ([], ["NOT_TYPE_EXTENDED"])
    codec_of(_parse(schema))


def test_schemas_that_refer_to_one_another_end() -> None:
    names = {
        "a.json": {"properties": {"b": {"$ref": "b.json"}}},
        "b.json": {"properties": {"a": {"$ref": "a.json"}}},
    }
    schema = _parse({"$ref": "a.json"}, names)
    assert _kinds(schema, _parse({"$ref": "b.json"}, names)) != []
    assert _kinds(schema, _parse({"$ref": "a.json"}, names)) == []


def test_paths_that_double_at_every_level_are_told_a_bounded_number_of_times() -> None:
    def ladder(last: str) -> JsonSchema:
        rungs = {
            f"r{n}": {"properties": {side: {"$ref": f"#/definitions/r{n + 1}"} for side in "xy"}}
            for n in range(60)
        }
        return _parse({"definitions": {**rungs, "r60": {"type": last}}, "$ref": "#/definitions/r0"})

    assert len(_kinds(ladder("string"), ladder("integer"))) == 1_000


def test_a_comparison_that_is_too_large_is_no_promise(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compatibility, "MAX_PAIRS", 50)
    schema = {"oneOf": [{"required": [f"p{number}"]} for number in range(10)]}
    found = _parse(schema).incompatibilities(_parse(schema), policy="LENIENT")
    assert [each.kind for each in found] == [TOO_LARGE]
    assert "too many combinations" in found[0].description


def test_alternatives_that_contain_one_another_are_compared_and_used() -> None:
    names = [f"t{number}" for number in range(12)]
    union = {"oneOf": [{"$ref": f"#/definitions/{name}"} for name in names]}

    def trades(kind: str) -> JsonSchema:
        types = {
            name: {"type": "object", "properties": {"id": {"type": "string"}, "on": union, "by": union}}
            for name in names
        }
        types["t0"]["properties"] = {"id": {"type": kind}, "on": union, "by": union}
        return _parse({"definitions": types, "properties": {"trade": union}})

    assert _kinds(trades("string"), trades("string")) == []
    assert "COMBINED_TYPE_SUBSCHEMAS_CHANGED" in _kinds(trades("number"), trades("string"))
    value: Any = 3
    for _ in range(20):
        value = {"on": value}
    with pytest.raises(InvalidValue, match="fits none of the schema's alternatives"):
        codec_of(trades("string")).encode({"trade": value})


def test_what_is_wrong_behind_a_cycle_is_not_hidden_by_it() -> None:
    def record(kind: str, other: str) -> Any:
        return {"properties": {"id": {"type": kind}, "ref": {"oneOf": [{"$ref": f"#/definitions/{other}"}]}}}

    def schema(first: str, second: str) -> JsonSchema:
        types = {"A": record(first, "C"), "B": record(second, "C"), "C": record("integer", "A")}
        return _parse(
            {"definitions": types, "oneOf": [{"$ref": "#/definitions/A"}, {"$ref": "#/definitions/B"}]}
        )

    assert _kinds(schema("boolean", "number"), schema("integer", "boolean")) != []


def test_values_that_are_nested_too_deeply_are_refused() -> None:
    codec = codec_of(_parse({"items": {"$ref": "#"}}))
    deep: Any = reduce(lambda inner, _: [inner], range(900), [])
    with pytest.raises(InvalidValue):
        codec.encode(deep)
    with pytest.raises(InvalidValue):
        codec.decode(b"[" * 100_000 + b"]" * 100_000)
    with pytest.raises(InvalidValue):
        codec.decode(b"[" * 100_000 + b"1234567890123456789012" + b"]" * 100_000)
