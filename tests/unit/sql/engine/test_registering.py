import pytest

from penstock.client.errors import Refused
from penstock.sql.analysis.refusals import StatementRefused
from penstock.sql.engine.registering import register
from penstock.streams.plan.schema import Column, Schema
from penstock.streams.plan.sources import Format, Formats, Source, SourceKind
from penstock.streams.plan.types import INTEGER, STRING
from tests.unit.streams.formats.fake_registry import FakeLookup

SCHEMA = Schema((Column("K", STRING),), (Column("V", INTEGER),))


def source(key: str, value: str, **properties: str) -> Source:
    formats = Formats(Format(key), Format(value, tuple(properties.items())))
    return Source("S", SourceKind.STREAM, "t", SCHEMA, formats)


def test_a_sink_registers_what_it_will_write() -> None:
    registry = FakeLookup()
    register(registry, source("AVRO", "PROTOBUF"), if_there_is_none=False)
    assert sorted(registry.subjects) == ["t-key", "t-value"]
    register(registry, source("KAFKA", "JSON"), if_there_is_none=False)
    register(None, source("KAFKA", "DELIMITED"), if_there_is_none=False)
    assert len(registry.found) == 2


def test_a_source_leaves_a_subject_that_is_there_alone() -> None:
    registry = FakeLookup()
    registry.register("t-value", "AVRO", '"string"')
    register(registry, source("KAFKA", "AVRO"), if_there_is_none=True)
    assert len(registry.found) == 1
    register(registry, source("KAFKA", "AVRO"), if_there_is_none=False)
    assert len(registry.found) == 2


def test_a_schema_by_its_id_becomes_the_topic_s() -> None:
    registry = FakeLookup()
    schema_id = registry.register("other", "AVRO", '{"type": "record", "name": "r", "fields": []}')
    register(registry, source("KAFKA", "AVRO", schema_id=str(schema_id)), if_there_is_none=False)
    assert registry.subjects["t-value"] == [schema_id]


class Refusing(FakeLookup):
    def register(self, subject, kind, text, references=()):
        raise Refused("Schema being registered is incompatible", code=409)


def test_what_the_registry_refuses_is_refused() -> None:
    with pytest.raises(
        StatementRefused, match="Could not register schema for topic: Schema being registered is incompatible"
    ):
        register(Refusing(), source("KAFKA", "AVRO"), if_there_is_none=False)
    with pytest.raises(
        StatementRefused, match=r"with format AVRO without configuring 'ksql\.schema\.registry\.url'"
    ):
        register(None, source("KAFKA", "AVRO"), if_there_is_none=True)
