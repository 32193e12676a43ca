"""The levels, and the lines that Confluent's registry answers."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import pytest

from penstock.schemas.compatibility import MAX_SHOWN_CHARACTERS, Existing, check
from penstock.schemas.model import (
    AVRO,
    JSON,
    PROTOBUF,
    Incompatibility,
    InvalidSchema,
    Schema,
    SchemaReference,
)


@dataclass
class Numbered:
    """Reads what is in `reads` only."""

    number: int
    reads: set[int] = field(default_factory=set)
    kind: str = AVRO
    text: str = "text"
    references: tuple[SchemaReference, ...] = ()
    full_name: str | None = None
    looked_at: list[int] = field(default_factory=list)

    def normalized(self) -> Schema:
        return self

    def formatted(self, form: str) -> str:
        return self.text

    def incompatibilities(self, older: Schema, *, policy: str) -> Sequence[Incompatibility]:
        assert isinstance(older, Numbered)
        self.looked_at.append(older.number)
        if older.number in self.reads:
            return []
        return [
            Incompatibility("KIND", f"%new% {self.number} misses what %old% {older.number} has", "/", "more")
        ]


def _line(text: str) -> str:
    return f"{{errorType:'KIND', description:'{text}', additionalInfo:'more'}}"


def _end(level: str) -> str:
    return f"{{validateFields: 'false', compatibility: '{level}'}}"


VERSION = ["{oldSchemaVersion: 1}", "{oldSchema: 'text'}"]


def _versions(*schemas: Numbered) -> list[Existing]:
    """Newest first."""
    return [Existing(each.number, each) for each in sorted(schemas, key=lambda each: -each.number)]


def test_none_takes_all() -> None:
    assert check(Numbered(2), _versions(Numbered(1, kind=JSON)), "NONE") == []


def test_backward_the_new_one_reads_the_old_one() -> None:
    assert check(Numbered(2, reads={1}), _versions(Numbered(1)), "BACKWARD") == []
    assert check(Numbered(2), _versions(Numbered(1, reads={2})), "BACKWARD") == [
        _line("new 2 misses what old 1 has"), *VERSION, _end("BACKWARD")
    ]  # fmt: skip


def test_forward_the_old_one_reads_the_new_one() -> None:
    assert check(Numbered(2), _versions(Numbered(1, reads={2})), "FORWARD") == []
    assert check(Numbered(2, reads={1}), _versions(Numbered(1)), "FORWARD") == [
        _line("old 1 misses what new 2 has"), *VERSION, _end("FORWARD")
    ]  # fmt: skip


def test_full_tells_forward_first() -> None:
    assert check(Numbered(2), _versions(Numbered(1)), "FULL") == [
        _line("old 1 misses what new 2 has"), _line("new 2 misses what old 1 has"), *VERSION, _end("FULL")
    ]  # fmt: skip


def test_full_names_the_version_for_what_is_wrong_backward_only() -> None:
    assert check(Numbered(2, reads={1}), _versions(Numbered(1)), "FULL") == [
        _line("old 1 misses what new 2 has"), _end("FULL")
    ]  # fmt: skip


@pytest.mark.parametrize(("level", "looked_at"), [("BACKWARD", [2]), ("BACKWARD_TRANSITIVE", [2, 1])])
def test_transitive_looks_at_all_versions_newest_first(level: str, looked_at: list[int]) -> None:
    new = Numbered(3, reads={1, 2})

    assert check(new, _versions(Numbered(1), Numbered(2)), level) == []
    assert new.looked_at == looked_at


def test_the_first_version_that_does_not_fit_ends_the_search() -> None:
    new = Numbered(4, reads={3})

    found = check(new, _versions(Numbered(1), Numbered(2), Numbered(3)), "BACKWARD_TRANSITIVE")

    assert new.looked_at == [3, 2]
    assert "{oldSchemaVersion: 2}" in found


def test_another_kind_is_incompatible_without_a_version() -> None:
    found = check(Numbered(2, kind=JSON), _versions(Numbered(1)), "BACKWARD")

    assert found == ["Incompatible because of different schema type", _end("BACKWARD")]


@pytest.mark.parametrize(("kind", "last_quote"), [(JSON, "'"), (PROTOBUF, '"')])
def test_the_lines_of_the_other_kinds_have_their_own_quotes(kind: str, last_quote: str) -> None:
    found = check(Numbered(2, kind=kind), _versions(Numbered(1, kind=kind)), "BACKWARD")

    assert found[0] == f'{{errorType:"KIND", description:"new 2 misses what old 1 has{last_quote}}}'


def test_a_long_old_schema_is_cut() -> None:
    found = check(Numbered(2), _versions(Numbered(1, text="x" * (MAX_SHOWN_CHARACTERS + 1))), "BACKWARD")

    assert found[2] == f"{{oldSchema: <truncated> '{'x' * MAX_SHOWN_CHARACTERS}...'}}"


def test_what_else_was_found_comes_first_and_counts() -> None:
    new = Numbered(2, reads={1})

    found = check(
        new, _versions(Numbered(1)), "BACKWARD", besides=["a field is reserved"], validate_fields=True
    )

    assert found == ["a field is reserved", "{validateFields: 'true', compatibility: 'BACKWARD'}"]


def test_schemas_that_cannot_be_compared_are_incompatible() -> None:
    class Incomparable(Numbered):
        def incompatibilities(self, older: Schema, *, policy: str) -> Sequence[Incompatibility]:
            raise InvalidSchema("too many pairs")

    found = check(Incomparable(2), _versions(Numbered(1)), "BACKWARD")

    assert found[0] == "Unexpected exception during compatibility check: too many pairs"
