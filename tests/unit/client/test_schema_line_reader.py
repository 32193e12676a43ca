"""The properties of Confluent's readers of lines."""

import struct
from pathlib import Path

import pytest

from penstock.client.errors import Unreachable, UserError
from penstock.client.line_reader import Record
from penstock.client.schema_line_reader import BadValue, SchemaLineReader
from penstock.schemas.model import AVRO
from tests.registry_of_tests import RegistryOfTests, registry_of_tests

ORDER = '{"type":"record","name":"Order","namespace":"shop","fields":[{"name":"id","type":"int"}]}'
STRATEGY = "io.confluent.kafka.serializers.subject."


def reader(properties: dict[str, str], url: str = "http://localhost:1") -> SchemaLineReader:
    return SchemaLineReader({"schema.registry.url": url, **properties}, "orders", AVRO)


def read(registry: RegistryOfTests, line: str, **properties: str) -> Record:
    given = {name.replace("_", "."): value for name, value in properties.items()}
    return reader(given, registry.url).read(line)


def test_the_strategy_of_subjects_is_named_by_its_class() -> None:
    for strategy, subject in (
        ("TopicNameStrategy", "orders-value"),
        ("RecordNameStrategy", "shop.Order"),
        ("TopicRecordNameStrategy", "orders-shop.Order"),
    ):
        with registry_of_tests() as registry:
            read(registry, '{"id": 1}', value_schema=ORDER, value_subject_name_strategy=STRATEGY + strategy)
            assert list(registry.subjects) == [subject]


def test_references_are_a_list_in_json() -> None:
    with registry_of_tests() as registry:
        registry.register("order", ORDER)
        refs = '[{"name": "shop.Order", "subject": "order", "version": 1}]'
        schema = '{"type":"array","items":"shop.Order"}'
        record = read(registry, '[{"id": 1}]', value_schema=schema, value_refs=refs)
        assert record.value == struct.pack(">bi", 0, 2) + b"\x02\x02\x00"


def test_nothing_is_registered_where_that_is_not_wanted() -> None:
    for name in ("auto_register", "auto_register_schemas"):
        with registry_of_tests() as registry:
            registry.register("orders-value", '"int"')
            assert read(registry, "1", value_schema='"int"', **{name: "false"}).value == b"\0\0\0\0\x01\x02"
            assert len(registry.schemas) == 1


@pytest.mark.parametrize(
    ("properties", "complaint"),
    [
        ({}, "Must provide the value schema in either value.schema, value.schema.id, or value.schema.file"),
        ({"value.schema": '"int"', "parse.key": "true"}, "Must provide the key schema"),
        ({"value.schema.id": "one"}, "Error parsing value.schema.id as int: 'one'"),
        ({"value.schema": '"int"', "value.refs": "[1]"}, "value.refs: it is not a list of "),
        ({"value.schema": '"int"', "value.subject.name.strategy": "Mine"}, "value.subject.name.strategy: 'Mine' is"),
        ({"value.schema.file": "/nonexistent"}, "cannot read /nonexistent: "),
    ],
)  # fmt: skip
def test_properties_that_cannot_be_are_named(properties: dict[str, str], complaint: str) -> None:
    with pytest.raises(UserError) as caught:
        reader(properties)
    assert str(caught.value).startswith(complaint)


def test_the_registry_is_asked_when_the_first_line_comes(tmp_path: Path) -> None:
    (tmp_path / "int.avsc").write_text('"int"')
    one = reader({"value.schema.file": str(tmp_path / "int.avsc")})
    with pytest.raises(Unreachable):
        one.read("1")


@pytest.mark.parametrize("key", ["x", "99999999999"])
def test_a_key_that_is_no_number_of_its_serializer_is_told(key: str) -> None:
    given = {"value.schema": '"int"', "parse.key": "true", "key.serializer": "a.b.IntegerSerializer"}
    with pytest.raises(BadValue) as caught:
        reader(given).read(f"{key}\t1")
    assert str(caught.value) == f"The key on line number 1 is not a number of key.serializer: '{key}'"
