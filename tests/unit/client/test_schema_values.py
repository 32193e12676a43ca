"""Values through a registry, at a registry that keeps its schemas in a dict."""

import struct
from collections.abc import Sequence
from typing import Any, cast
from uuid import UUID

import pytest

from penstock.client.errors import BadOption
from penstock.client.schema_registry import RegisteredSchema, RegistryRefused, SchemaRegistry
from penstock.client.schema_values import SchemaChoice, ValueReader, ValueWriter
from penstock.schemas.model import InvalidSchema, InvalidValue, Referred, SchemaReference

GUID = UUID("89791762-2336-4186-9674-299b90a802e2")
OPTIONAL = '["null","string"]'
RECORD = '{"type":"record","name":"n.R","fields":[{"name":"a","type":"int"}]}'

CANONICAL = '{"type":"record","name":"R","namespace":"n","fields":[{"name":"a","type":"int"}]}'


class FakeRegistry:
    """What is asked of it is in `asked`."""

    def __init__(self, *schemas: RegisteredSchema) -> None:
        self.schemas = list(schemas)
        self.asked: list[tuple[Any, ...]] = []

    def by_id(self, schema_id: int, subject: str | None = None) -> RegisteredSchema:
        return self._find("id", schema_id, [each for each in self.schemas if each.id == schema_id])

    def by_guid(self, guid: UUID) -> RegisteredSchema:
        return self._find("guid", guid, self.schemas[:1])._replace(id=0)

    def version(self, subject: str, version: int) -> RegisteredSchema:
        return self._find(subject, version, [each for each in self._of(subject) if each.version == version])

    def latest(self, subject: str) -> RegisteredSchema:
        return self._find(subject, "latest", self._of(subject)[-1:])

    def register(
        self,
        subject: str,
        text: str,
        kind: str = "AVRO",
        references: Sequence[SchemaReference] = (),
        *,
        normalize: bool = False,
    ) -> int:
        self.asked.append(("register", subject, text, normalize))
        return 7

    def lookup(
        self,
        subject: str,
        text: str,
        kind: str = "AVRO",
        references: Sequence[SchemaReference] = (),
        *,
        normalize: bool = False,
    ) -> int:
        return self._find("lookup", text, [each for each in self._of(subject) if each.text == text]).id

    def texts_of(self, references: Sequence[SchemaReference]) -> dict[str, Referred]:
        return {each.name: Referred(self.version(each.subject, each.version).text) for each in references}

    def _of(self, subject: str) -> list[RegisteredSchema]:
        return [each for each in self.schemas if each.subject == subject]

    def _find(self, what: str, which: Any, found: list[RegisteredSchema]) -> RegisteredSchema:
        self.asked.append((what, which))
        if not found:
            raise RegistryRefused("Schema not found", status=404, code=40403)
        return found[0]


def schema(
    number: int, text: str, subject: str = "t-value", version: int = 1, **more: Any
) -> RegisteredSchema:
    return RegisteredSchema(number, "AVRO", text, subject=subject, version=version, **more)


def reader(registry: FakeRegistry, **options: Any) -> ValueReader:
    return ValueReader(cast("SchemaRegistry", registry), **options)


def writer(registry: FakeRegistry, *, is_key: bool = False, **choice: Any) -> ValueWriter:
    return ValueWriter(cast("SchemaRegistry", registry), "t", SchemaChoice(**choice), is_key=is_key)


def framed(schema_id: int, data: bytes) -> bytes:
    return struct.pack(">bi", 0, schema_id) + data


def test_a_value_is_read_with_the_schema_that_it_names() -> None:
    registry = FakeRegistry(schema(1, OPTIONAL), schema(2, '"int"'))
    read = reader(registry).read(framed(1, b"\x02\x02x"))

    assert read.value == {"string": "x"}
    assert (read.schema.id, read.schema.schema.text) == (1, OPTIONAL)


def test_plain_values_of_unions_are_without_their_branch() -> None:
    assert reader(FakeRegistry(schema(1, OPTIONAL)), plain=True).read(framed(1, b"\x02\x02x")).value == "x"


def test_a_value_may_name_its_schema_by_guid() -> None:
    read = reader(FakeRegistry(schema(1, OPTIONAL))).read(b"\x01" + GUID.bytes + b"\0")

    assert (read.value, read.schema.id) == (None, 0)


def test_a_schema_is_asked_for_once() -> None:
    registry = FakeRegistry(schema(1, OPTIONAL))
    values = reader(registry)
    for _ in range(3):
        values.read(framed(1, b"\0"))

    assert registry.asked == [("id", 1)]


def test_a_refusal_is_kept_for_a_while() -> None:
    registry = FakeRegistry()
    values = reader(registry)
    for _ in range(3):
        with pytest.raises(RegistryRefused, match="Schema not found"):
            values.read(framed(1, b"\0"))

    assert registry.asked == [("id", 1)]


def test_a_schema_of_the_registry_that_is_none_is_told() -> None:
    with pytest.raises(InvalidSchema, match="Undefined name"):
        reader(FakeRegistry(schema(1, '"unknown"'))).read(framed(1, b"\0"))


def test_codecs_are_kept_up_to_a_bound() -> None:
    registry = FakeRegistry(schema(1, OPTIONAL), schema(2, OPTIONAL), schema(3, OPTIONAL))
    values = reader(registry, at_most=2)
    for number in (1, 2, 3, 1):
        values.read(framed(number, b"\0"))

    assert [which for _, which in registry.asked] == [1, 2, 3, 1]


def test_what_is_not_framed_is_told() -> None:
    with pytest.raises(InvalidValue, match="id of a schema"):
        reader(FakeRegistry()).read(b"{}")


def test_references_are_fetched() -> None:
    reference = SchemaReference("n.R", "r", 3)
    registry = FakeRegistry(
        schema(1, '{"type":"array","items":"n.R"}', references=(reference,)), schema(2, RECORD, "r", 3)
    )

    assert reader(registry).read(framed(1, b"\x02\x02\0")).value == [{"a": 1}]


def test_a_text_is_registered_once_and_its_id_written() -> None:
    registry = FakeRegistry()
    values = writer(registry, text='{"type":"string"}', normalize=True)

    assert [values.write("x"), values.write("y")] == [framed(7, b"\x02x"), framed(7, b"\x02y")]
    assert registry.asked == [("register", "t-value", '"string"', True)]


def test_a_text_that_is_not_to_be_registered_must_be_there() -> None:
    registry = FakeRegistry(schema(3, CANONICAL))

    assert writer(registry, text=RECORD, auto_register=False).write({"a": 1}) == framed(3, b"\x02")
    with pytest.raises(RegistryRefused):
        writer(FakeRegistry(), text=RECORD, auto_register=False).write({"a": 1})


def test_a_schema_is_chosen_by_its_id() -> None:
    assert writer(FakeRegistry(schema(3, RECORD)), id=3).write({"a": 1}) == framed(3, b"\x02")


def test_a_schema_is_chosen_by_its_version() -> None:
    registry = FakeRegistry(schema(3, RECORD, version=1), schema(4, '"string"', version=2))

    assert writer(registry, version=1).write({"a": 1}) == framed(3, b"\x02")


def test_without_a_choice_it_is_the_latest_version() -> None:
    registry = FakeRegistry(schema(3, RECORD))
    values = writer(registry)
    assert values.write({"a": 1}) == framed(3, b"\x02")

    registry.schemas.append(schema(4, '"string"', version=2))

    assert values.write("x") == framed(4, b"\x02x")


@pytest.mark.parametrize(
    ("is_key", "choice", "subject"),
    [
        (True, {}, "t-key"),
        (False, {"strategy": "RecordNameStrategy"}, "n.R"),
        (False, {"strategy": "TOPIC_RECORD_NAME"}, "t-n.R"),
        (False, {"subject": "own"}, "own"),
    ],
)
def test_the_subject_is_the_strategys_or_ones_own(is_key: bool, choice: dict[str, str], subject: str) -> None:
    registry = FakeRegistry()
    writer(registry, is_key=is_key, text=RECORD, **choice).write({"a": 1})

    assert registry.asked == [("register", subject, CANONICAL, False)]


def test_a_subject_by_the_records_name_needs_a_text() -> None:
    with pytest.raises(InvalidSchema, match="needs a schema with a name"):
        writer(FakeRegistry(), strategy="RecordNameStrategy").write(1)


def test_two_choices_are_refused() -> None:
    with pytest.raises(BadOption, match="by one of them only"):
        writer(FakeRegistry(), id=1, text=RECORD)


def test_an_unknown_strategy_is_refused() -> None:
    with pytest.raises(ValueError, match="is not one of"):
        writer(FakeRegistry(), strategy="Mine")


def test_a_value_that_does_not_fit_is_told() -> None:
    with pytest.raises(InvalidValue, match='a: "x" is not an int'):
        writer(FakeRegistry(schema(3, RECORD))).write({"a": "x"})
