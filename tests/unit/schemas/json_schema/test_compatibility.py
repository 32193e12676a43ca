"""Confluent's rules, row by row (evolution.txt), and its words."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from penstock.schemas.compatibility import Existing, check
from penstock.schemas.json_schema import compatibility, differences
from penstock.schemas.json_schema.combined import largest_matching
from penstock.schemas.json_schema.differences import Findings, accepted
from penstock.schemas.json_schema.loading import Loader
from penstock.schemas.json_schema.parsing import JsonSchema, parse

LANGUAGES = {
    "2020-12": "https://json-schema.org/draft/2020-12/schema",
    "2019-09": "https://json-schema.org/draft/2019-09/schema",
    "draft-04": "http://json-schema.org/draft-04/schema#",
}


class Change(NamedTuple):
    group: str
    old: Any
    new: Any
    differences: list[str]
    verdict: str


def changes() -> list[Change]:
    found, group = [], ""
    lines = Path(__file__).with_name("evolution.txt").read_text().splitlines()
    waiting = iter([line for line in lines if line and not line.startswith("#")])
    for line in waiting:
        if line.startswith("=="):
            group = line.removeprefix("==").strip()
            continue
        old, new = json.loads(line), json.loads(next(waiting))
        told, _, verdict = next(waiting).rpartition(": ")
        found.append(Change(group, old, new, told.split(", ") if told else [], verdict))
    return found


def schema(value: Any, language: str | None = None) -> JsonSchema:
    if language and isinstance(value, dict):
        value = {"$schema": LANGUAGES[language], **value}
    return parse(json.dumps(value), (), {})


def found(old: JsonSchema, new: JsonSchema, policy: str) -> Findings:
    return compatibility.compare(Loader(old.documents).root, Loader(new.documents).root, policy)


@pytest.mark.parametrize("change", changes(), ids=lambda change: f"{change.group}: {change.old} {change.new}")
def test_a_change_is_told_as_confluent_tells_it(change: Change) -> None:
    language = next((name for name in LANGUAGES if change.group.endswith(name)), None)
    old, new = schema(change.old, language), schema(change.new, language)
    strict, lenient = found(old, new, "STRICT"), found(old, new, "LENIENT")
    told = [f"{kind} #/{path}" for kind, path in strict.differences]
    assert sorted(told) == sorted(each for each in change.differences)
    assert (strict.is_compatible, lenient.is_compatible) == {
        "compatible": (True, True),
        "lenient": (False, True),
        "incompatible": (False, False),
    }[change.verdict]


def test_the_table_has_every_kind_of_difference() -> None:
    in_table = {each.split()[0] for change in changes() for each in change.differences}
    known = differences.COMPATIBLE_WHEN_LENIENT | differences._DESCRIPTIONS.keys() | {"SCHEMA_ADDED"}
    assert known - in_table == {differences.TOO_LARGE}


def test_every_difference_that_breaks_has_words() -> None:
    in_table = {each.split()[0] for change in changes() for each in change.differences}
    breaking = (
        in_table - differences.COMPATIBLE - {"SCHEMA_ADDED"}
    )  # Confluent's registry has none for this one
    assert breaking <= differences._DESCRIPTIONS.keys()


def test_the_lines_are_confluents() -> None:
    old = schema(
        {
            "type": "object",
            "additionalProperties": False,
            "properties": {"foo": {}, "bar": {"type": "string"}},
        }
    )
    new = schema({"type": "object", "additionalProperties": False, "properties": {"bar": {"type": "number"}}})
    assert check(new, [Existing(1, old)], "BACKWARD") == [
        '{errorType:"TYPE_CHANGED", description:"A type at path \'#/properties/bar\' is different between the new schema and '
        "the old schema'}",
        '{errorType:"PROPERTY_REMOVED_FROM_CLOSED_CONTENT_MODEL", description:"The new has a closed content model and is missing '
        "a property or item present at path '#/properties/foo' in the old schema'}",
        "{oldSchemaVersion: 1}",
        f"{{oldSchema: '{old.text}'}}",
        "{validateFields: 'false', compatibility: 'BACKWARD'}",
    ]
    assert "The old has a closed content model" in check(old, [Existing(1, new)], "FORWARD")[1]


def test_an_optional_property_that_strict_refuses_comes_with_a_hint() -> None:
    old, new = (
        schema({"type": "object"}),
        schema({"type": "object", "properties": {"foo": {"type": "string"}}}),
    )
    lines = check(new, [Existing(1, old)], "BACKWARD")
    assert lines[0] == (
        '{errorType:"OPTIONAL_PROPERTY_ADDED_TO_OPEN_CONTENT_MODEL", description:"The new schema has an open content model and '
        "has a property or item at path '#/properties/foo' which is missing in the old schema'}"
    )
    assert (
        lines[-1] == "{hint: 'compatibilityPolicy LENIENT of this subject or of all would allow this change'}"
    )
    assert check(new, [Existing(1, old)], "BACKWARD", policy="LENIENT") == []


def test_there_is_no_hint_where_lenient_would_not_help() -> None:
    lines = check(schema({"type": "string"}), [Existing(1, schema({"type": "null"}))], "FULL")
    assert not any("hint" in line for line in lines)


def test_a_matching_is_as_large_as_it_can_be() -> None:
    none = Findings(accepted("STRICT"))
    edges = [{0: none, 1: none}, {0: none}, {1: none, 2: none}, {2: none, 3: none}]
    assert sorted(largest_matching(edges).values()) == [0, 1, 2, 3]
    assert len(largest_matching([{0: none}, {0: none}])) == 1
