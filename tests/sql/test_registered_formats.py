"""Formats by way of a registry of ours: schemas are registered, found by their id, and give columns."""

import json
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
from tests.sql.servers import SqlServerProcess, bugs
from tests.unit.streams.formats.rows import values

COLUMNS = (("A", INTEGER), ("B", struct(("C", STRING), ("D", decimal(4, 2)))))
DELIMITED = "application/vnd.ksqlapi.delimited.v1"
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


def test_a_schema_that_does_not_go_with_the_registered_one_is_refused_and_is_no_bug(
    server: SqlServerProcess, registry: RegistryProcess, topic_name: str
):
    other = '{"type": "record", "name": "Other", "fields": [{"name": "NAME", "type": "string"}]}'
    registry.register(f"{topic_name}-value", other)
    server.ksql(
        f"CREATE STREAM INC (V INT) WITH (KAFKA_TOPIC='{topic_name}', VALUE_FORMAT='AVRO', PARTITIONS=1);"
    )
    refused = server.refused("INSERT INTO INC VALUES (1);")
    said = refused.json()
    assert (refused.status, said["@type"], said["error_code"]) == (400, "statement_error", 40001)
    assert "incompatible" in said["message"]
    reply = server.ask(
        "POST", "/inserts-stream", b'{"target": "INC"}\n{"V": 1}\n', {"Content-Type": DELIMITED}
    )
    (line,) = reply.body.splitlines()
    told = json.loads(line)
    assert (told["status"], told["seq"], told["error_code"]) == ("error", 0, 40000)
    assert "incompatible" in told["message"]
    assert bugs(server.log) == []


def test_schemas_go_with_the_topic_that_is_deleted(
    server: SqlServerProcess, registry: RegistryProcess, topic_name: str
):
    made = f"CREATE STREAM GOES (K INT KEY, V INT) WITH (KAFKA_TOPIC='{topic_name}', FORMAT='AVRO', PARTITIONS=1);"
    subjects = {f"{topic_name}-key", f"{topic_name}-value"}
    server.ksql(made)
    assert subjects <= set(registry.get("/subjects").json())
    server.ksql(f"CREATE STREAM ALSO WITH (KAFKA_TOPIC='{topic_name}', FORMAT='AVRO');")
    refused = server.refused("DROP STREAM GOES DELETE TOPIC;").json()["message"]
    assert refused == f"Refusing to delete topic. Found other data sources (ALSO) using topic {topic_name}"
    server.ksql("DROP STREAM ALSO; DROP STREAM GOES DELETE TOPIC;")
    assert not subjects & set(registry.get("/subjects").json())
    server.ksql(made)  # the same again, which the server remembers to have registered
    assert subjects <= set(registry.get("/subjects").json())


def test_a_registry_that_is_down_is_told(broker, tmp_path: Path, topic_name: str):
    registry = RegistryProcess(broker.bootstrap, tmp_path / "registry")
    server = SqlServerProcess(tmp_path, broker.bootstrap, {"ksql.schema.registry.url": registry.url})
    registry.register(f"{topic_name}-value", '{"type": "record", "name": "R", "fields": []}')
    try:
        server.ksql(
            f"CREATE STREAM LEFT_ALONE (V INT) WITH (KAFKA_TOPIC='{topic_name}', VALUE_FORMAT='AVRO', PARTITIONS=1);"
        )
        assert registry.close() == 0
        refused = server.refused("INSERT INTO LEFT_ALONE VALUES (1);")
        said = refused.json()
        assert (refused.status, said["@type"], said["error_code"]) == (500, "statement_error", 50000)
        assert "cannot reach the schema registry" in said["message"]
        reply = server.ask(
            "POST", "/inserts-stream", b'{"target": "LEFT_ALONE"}\n{"V": 1}\n', {"Content-Type": DELIMITED}
        )
        assert json.loads(reply.body)["error_code"] == 50000
    finally:
        registry.process.kill()
        assert server.close() == 0
    assert bugs(server.log) == []
