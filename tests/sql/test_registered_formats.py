"""Formats by way of a registry of ours: schemas are registered, found by their id, and give columns."""

import pickle
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path

import pytest

from penstock.streams.formats.codecs import BadRecord
from penstock.streams.formats.failures import SchemasUnavailable
from penstock.streams.formats.inference import infer
from penstock.streams.plan.sources import Format
from penstock.streams.plan.types import INTEGER, STRING, decimal, struct
from penstock.streams.schema_lookup import ClientLookup
from tests.registry.registries import RegistryProcess
from tests.sql.servers import SqlServerProcess
from tests.unit.streams.formats.rows import values

COLUMNS = (("A", INTEGER), ("B", struct(("C", STRING), ("D", decimal(4, 2)))))
ROW = (5, {"C": "x", "D": Decimal("1.50")})


@pytest.fixture(scope="module")
def registry(broker, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RegistryProcess]:
    service = RegistryProcess(broker.bootstrap, tmp_path_factory.mktemp("registry"))
    yield service
    assert service.close() == 0


@pytest.mark.parametrize("form", ["AVRO", "JSON_SR", "PROTOBUF"])
def test_what_one_writes_another_reads(registry: RegistryProcess, form: str):
    topic = f"written-{form}"
    writer = values(form, *COLUMNS, registry=ClientLookup(registry.url), topic=topic)
    data = writer.encode(ROW)
    lookup = pickle.loads(pickle.dumps(ClientLookup(registry.url)))
    assert values(form, *COLUMNS, registry=lookup, topic=topic).decode(data) == ROW
    found = infer(lookup, topic=topic, form=Format(form), is_key=False, is_wrapped=True)
    assert found.columns == COLUMNS
    by_id = values(form, *found.columns, registry=lookup, topic="other", schema_id=str(found.schema_id))
    assert by_id.encode(ROW) == data


def test_what_is_not_there(registry: RegistryProcess):
    lookup = ClientLookup(registry.url)
    assert lookup.latest("no-such-subject") is None
    assert lookup.by_id(999_999) is None
    with pytest.raises(BadRecord, match="has no schema with the id 999999"):
        values("AVRO", ("A", INTEGER), registry=lookup).decode(b"\0" + (999_999).to_bytes(4, "big") + b"\2")
    # That nobody answers says nothing about a record: it is not a bad one.
    with pytest.raises(SchemasUnavailable, match="cannot reach the schema registry"):
        values("AVRO", ("A", INTEGER), registry=ClientLookup("http://127.0.0.1:1")).encode((1,))


@pytest.fixture
def server(broker, registry: RegistryProcess, tmp_path: Path) -> Iterator[SqlServerProcess]:
    running = SqlServerProcess(tmp_path, broker.bootstrap, {"ksql.schema.registry.url": registry.url})
    yield running
    assert running.close() == 0


def test_statements_register_and_infer(server: SqlServerProcess, registry: RegistryProcess, topic_name: str):
    lookup = ClientLookup(registry.url)
    with_topic = f"WITH (KAFKA_TOPIC='{topic_name}', FORMAT='AVRO', PARTITIONS=1)"
    server.ksql(
        f"CREATE TABLE MADE (ID STRING PRIMARY KEY, B STRUCT<C STRING, D DECIMAL(4, 2)>) {with_topic};"
    )
    assert lookup.latest(f"{topic_name}-key").text == '"string"'
    made = lookup.latest(f"{topic_name}-value")
    assert "KsqlDataSourceSchema_B" in made.text
    server.ksql("INSERT INTO MADE VALUES ('a', STRUCT(C := 'x', D := 1.5));")
    server.ksql(f"CREATE TABLE FOUND (ID STRING PRIMARY KEY) {with_topic};")
    rows = [["a", {"C": "x", "D": 1.50}]]
    server.wait_for_rows("SELECT * FROM MADE WHERE ID = 'a';", rows)
    server.wait_for_rows("SELECT * FROM FOUND;", rows)
    assert lookup.latest(f"{topic_name}-value") == made
    refused = server.refused(
        "CREATE STREAM NONE WITH (KAFKA_TOPIC='nothing', VALUE_FORMAT='AVRO', PARTITIONS=1);"
    )
    assert refused.status == 400
    assert (
        "Schema for message values on topic 'nothing' does not exist in the Schema Registry"
        in refused.json()["message"]
    )
