"""Change capture through Debezium, from PostgreSQL and MariaDB."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from decimal import Decimal
from pathlib import Path
from signal import SIGKILL
from typing import Any

import pytest
from confluent_kafka import Consumer

from penstock.connect.connectors.change_capture.source import MariaDbConnector, PostgresConnector
from penstock.connect.errors import ConnectError
from penstock.connect.testing import SourceTest
from penstock.testing.penstock_broker import PenstockBroker
from tests.connect.databases import MariaDb, PostgreSql
from tests.connect.jars import folder_of
from tests.connect.workers import Worker, closing, group_properties, until

WITHIN_S = 60.0
JSON = "org.apache.kafka.connect.json.JsonConverter"


class Replicated(MariaDb):
    """With a binary log."""

    def command(self) -> Sequence[str | Path]:
        return [*super().command(), "--log-bin=binlog", "--binlog-format=ROW", "--server-id=1"]


@pytest.fixture(scope="module")
def replicated(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Replicated]:
    with Replicated(tmp_path_factory.mktemp("replicated")) as server:
        rights = "RELOAD, REPLICATION SLAVE, REPLICATION CLIENT, BINLOG MONITOR, SHOW DATABASES, LOCK TABLES"
        server.run(f"GRANT {rights} ON *.* TO penstock@'127.0.0.1'", user="root", password="", database="")
        yield server


def of_postgresql(server: PostgreSql, **more: str) -> dict[str, str]:
    return {
        "topic.prefix": "shop", "database.hostname": "127.0.0.1", "database.port": str(server.port),
        "database.user": "penstock", "database.password": server.password, "database.dbname": "postgres",
        "plugin.name": "pgoutput", "poll.interval.ms": "50",
        **{name.replace("_", "."): value for name, value in more.items()},
    }  # fmt: skip


def afters(records: Sequence[Any], topic: str) -> list[Any]:
    return [
        record.value and record.value["after"] and record.value["after"]["id"]
        for record in records
        if record.topic == topic
    ]


def test_rows_and_changes_of_postgresql_go_on_after_a_crash_where_they_were_kept(
    postgresql: PostgreSql,
) -> None:
    postgresql.run("CREATE TABLE customers (id INT PRIMARY KEY, name TEXT, price NUMERIC(10,2))")
    postgresql.run("INSERT INTO customers VALUES (1, 'one', 1.5), (2, NULL, NULL)")
    config = of_postgresql(
        postgresql, slot_name="one", publication_name="one", table_include_list="public.customers", snapshot_mode="initial",
        publication_autocreate_mode="filtered",
    )  # fmt: skip
    with SourceTest(PostgresConnector, config, real_waits=True) as test:
        first, second = test.poll_until(2, within_s=WITHIN_S)
        assert (first.topic, first.key["id"], first.value["op"], second.value["after"]["name"]) == (
            "shop.public.customers", 1, "r", None,
        )  # fmt: skip
        assert first.value["after"]["price"] == Decimal("1.50")
        assert first.value.schema.name == "shop.public.customers.Envelope"
        postgresql.run("UPDATE customers SET name = 'uno' WHERE id = 1")
        test.poll_until(1, within_s=WITHIN_S)
        test.commit()
        assert [place for place, _ in test.offsets] == [{"server": "shop"}]
        postgresql.run("DELETE FROM customers WHERE id = 2")
        deleted = test.poll_until(2, within_s=WITHIN_S)
        assert [record.value and record.value["op"] for record in deleted] == ["d", None], (
            "a tombstone comes behind"
        )
        # These were not kept, and come again; what comes meanwhile is not lost.
        os.kill(test.task._process.pid, SIGKILL)
        test.task.stop()
        test.crash()
        postgresql.run("INSERT INTO customers VALUES (3, 'three', 3)")
        again = test.poll_until(3, within_s=WITHIN_S)
        assert [record.value and record.value["op"] for record in again] == ["d", None, "c"]


def test_what_debezium_refuses_is_said_in_its_words(postgresql: PostgreSql) -> None:
    config = {**of_postgresql(postgresql, slot_name="two"), "plugin.name": "nonsense"}
    with (
        pytest.raises(ConnectError, match=r"plugin\.name"),
        SourceTest(PostgresConnector, config, real_waits=True),
    ):
        pass


def offsets_of(broker: PenstockBroker, topic: str) -> list[tuple[Any, Any]]:
    consumer = Consumer(
        {"bootstrap.servers": broker.bootstrap, "group.id": f"of-{topic}", "auto.offset.reset": "earliest"}
    )
    found: list[tuple[Any, Any]] = []
    try:
        consumer.subscribe([topic])

        def look() -> bool:
            for message in consumer.consume(100, 0.2):
                found.append((json.loads(message.key() or b""), json.loads(message.value() or b"null")))
            return bool(found)

        until(look, "offsets")
    finally:
        consumer.close()
    return found


def test_a_worker_keeps_offsets_as_kafka_connect_does_and_the_history_of_tables_in_a_topic(
    broker: PenstockBroker, replicated: Replicated, tmp_path: Path, topic_name: str
) -> None:
    replicated.run("CREATE TABLE orders (id INT PRIMARY KEY, note TEXT)")
    replicated.run("INSERT INTO orders VALUES (1, 'one')")
    properties = {**group_properties(broker.bootstrap), "key.converter": JSON, "value.converter": JSON,
                  "value.converter.schemas.enable": "false"}  # fmt: skip
    config = {
        "connector.class": "io.debezium.connector.mariadb.MariaDbConnector", "topic.prefix": topic_name,
        "database.hostname": "127.0.0.1", "database.port": str(replicated.port), "database.user": "penstock",
        "database.password": "word", "database.server.id": "77", "database.include.list": "penstock",
        "schema.history.internal.kafka.topic": f"{topic_name}-history",
        "schema.history.internal.kafka.bootstrap.servers": broker.bootstrap, "poll.interval.ms": "50",
        "database.ssl.mode": "disable", "penstock.debezium.path": str(folder_of("debezium-mariadb")),
        "transforms": "new", "transforms.new.type": "io.debezium.transforms.ExtractNewRecordState",
        "predicates": "rows", "predicates.rows.type": "org.apache.kafka.connect.transforms.predicates.TopicNameMatches",
        "predicates.rows.pattern": ".*orders", "transforms.new.predicate": "rows",
    }  # fmt: skip
    rows = RowsOf(broker, f"{topic_name}.penstock.orders")
    worker = Worker(tmp_path, properties)
    try:
        worker.create("changes", config)
        rows.wait({"id": 1, "note": "one"})
        key, place = offsets_of(broker, properties["offset.storage.topic"])[-1]
        assert key == ["changes", {"server": topic_name}]
        assert place["file"].startswith("binlog.")
        replicated.run("ALTER TABLE orders ADD COLUMN price INT")
        worker.process.kill()
        replicated.run("INSERT INTO orders VALUES (2, 'two', 5)")
        worker = Worker(tmp_path, properties, name="again")
        rows.wait({"id": 2, "note": "two", "price": 5})
    finally:
        with closing(worker, rows):
            pass
    assert rows.values[0] == {"id": 1, "note": "one"}


class RowsOf:
    def __init__(self, broker: PenstockBroker, topic: str) -> None:
        self._consumer = Consumer({
            "bootstrap.servers": broker.bootstrap, "group.id": f"rows-{topic}", "auto.offset.reset": "earliest",
            "topic.metadata.refresh.interval.ms": 300,
        })  # fmt: skip
        self._consumer.subscribe([topic])
        self.values: list[Any] = []

    def wait(self, wanted: dict[str, Any]) -> None:
        def look() -> bool:
            for message in self._consumer.consume(100, 0.2):
                if message.error() is None:
                    self.values.append(json.loads(message.value() or b"null"))
            return wanted in self.values

        until(look, f"{wanted}, there are {self.values}", deadline_s=WITHIN_S)

    def close(self) -> None:
        self._consumer.close()


def test_a_connector_without_its_jars_says_what_to_install(tmp_path: Path) -> None:
    config = {"topic.prefix": "x", "database.hostname": "h", "database.server.id": "1",
              "penstock.debezium.path": str(tmp_path)}  # fmt: skip
    with pytest.raises(ConnectError, match="no jars"), SourceTest(MariaDbConnector, config):
        pass
