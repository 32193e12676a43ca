"""Avro's rules of compatibility, by the table in compatibility.txt; and their bounds."""

import json
from pathlib import Path

import pytest

from penstock.schemas.avro.compatibility import MAX_FOUND, MAX_PAIRS
from penstock.schemas.avro.parsing import parse
from penstock.schemas.model import Incompatibility, InvalidSchema


def _cases() -> list[tuple[str, str, list[str]]]:
    text = (Path(__file__).parent / "compatibility.txt").read_text()
    cases = []
    for block in text.split("\n\n"):
        lines = [line for line in block.splitlines() if not line.startswith("#")]
        if lines:
            cases.append((lines[0].removeprefix("reader "), lines[1].removeprefix("writer "), lines[2:]))
    return cases


def _differences(reader: object, writer: object) -> list[Incompatibility]:
    one, other = (
        parse(each if isinstance(each, str) else json.dumps(each), [], {}) for each in (reader, writer)
    )
    return list(one.incompatibilities(other, policy="STRICT"))


@pytest.mark.parametrize(("reader", "writer", "expected"), _cases())
def test_a_reader_and_a_writer(reader: str, writer: str, expected: list[str]) -> None:
    found = _differences(reader, writer)

    said = [f"{each.kind} {each.path} {each.additional}" for each in found]
    assert (said or ["compatible"]) == expected


def test_the_words_name_the_place_and_both_schemas() -> None:
    [found] = _differences(
        {"type": "record", "name": "R", "fields": [{"name": "f", "type": "int"}]},
        {"type": "record", "name": "R", "fields": []},
    )

    assert found.description == (
        "The field 'f' at path '/fields/0' in the %new% schema has no default value and is missing in the %old% schema"
    )


def test_a_field_with_two_fields_of_the_writer_is_refused() -> None:
    reader = {"type": "record", "name": "R", "fields": [{"name": "a", "type": "int", "aliases": ["b"]}]}
    writer = {
        "type": "record",
        "name": "R",
        "fields": [{"name": "a", "type": "int"}, {"name": "b", "type": "int"}],
    }

    with pytest.raises(InvalidSchema, match="matches multiple fields in writer record"):
        _differences(reader, writer)


def test_a_difference_that_many_ways_lead_to_is_not_listed_without_end() -> None:
    # Each record has the next one twice: without a bound, the last one's difference would be told 2**60 times.
    def records(leaf: str) -> object:
        type_: object = leaf
        for number in range(60):
            again = type_ if isinstance(type_, str) else f"R{number - 1}"
            fields = [{"name": "a", "type": type_}, {"name": "b", "type": again}]
            type_ = {"type": "record", "name": f"R{number}", "fields": fields}
        return type_

    assert len(_differences(records("int"), records("string"))) == MAX_FOUND


def test_schemas_with_too_many_pairs_of_types_are_refused() -> None:
    # Each branch of one union is compared with each of the other.
    count = 1_000
    branches = [{"type": "fixed", "name": f"F{number}", "size": 1} for number in range(count)]
    others = [{"type": "fixed", "name": f"G{number}", "size": 1} for number in range(count)]
    assert count * count > MAX_PAIRS

    with pytest.raises(InvalidSchema, match="more than 200,000 pairs"):
        _differences(branches, others)


def test_circles_of_different_lengths_are_compared_without_a_deep_call() -> None:
    # The pairs go around both circles: 97 * 101 of them before the first comes again.
    def circle(length: int) -> object:
        type_: object = "R"
        for number in reversed(range(length)):
            name = "R" if number == 0 else f"n{number}.R"
            type_ = {
                "type": "record",
                "name": name,
                "namespace": "" if number == 0 else None,
                "fields": [{"name": "next", "type": type_}],
            }
        return type_

    assert _differences(circle(97), circle(101)) == []
