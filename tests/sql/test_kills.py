"""SQL servers that are killed: what they were told stays, what they had begun goes on, nothing is lost, nothing comes twice."""

from __future__ import annotations

import json
import threading
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer

from penstock.testing.penstock_broker import PenstockBroker
from tests.clients.admin import create_topic, delete_topic
from tests.clients.driver import wait_until
from tests.clients.processors import read_all
from tests.conftest import StartBroker
from tests.sql.servers import SqlServerProcess, bugs

KEYS = 5
PAUSE_S = 0.005
TIMEOUT_S = 60.0
EXACTLY_ONCE = {"auto.offset.reset": "earliest", "processing.guarantee": "exactly_once_v2"}
pytestmark = pytest.mark.timeout(240)


class Input:
    """Flows into a topic until it is told to stop: numbers from 0, each once, of a few keys."""

    def __init__(self, bootstrap: str, topic: str) -> None:
        self._producer = Producer(
            {"bootstrap.servers": bootstrap, "enable.idempotence": True, "linger.ms": 2}
        )
        self._topic = topic
        self._stopped = threading.Event()
        self.count = 0
        self._thread = threading.Thread(target=self._run, name="input")
        self._thread.start()

    def _run(self) -> None:
        while not self._stopped.wait(PAUSE_S):
            value = json.dumps({"n": self.count})
            self._producer.produce(self._topic, value, f"k{self.count % KEYS}")
            self.count += 1
            self._producer.poll(0)

    def stop(self) -> int:
        self._stopped.set()
        self._thread.join()
        assert self._producer.flush(TIMEOUT_S) == 0
        return self.count


class Servers:
    """Of one service id, at one broker."""

    def __init__(self, directory: Path, broker: PenstockBroker) -> None:
        self._directory, self.broker = directory, broker
        self.started: list[SqlServerProcess] = []
        self.service_id = f"kills_{time.time_ns()}_"

    def start(self) -> SqlServerProcess:
        name = f"sql-{len(self.started) + 1}"
        properties = {"ksql.service.id": self.service_id}
        found = SqlServerProcess(self._directory, self.broker.bootstrap, properties, name=name)
        self.started.append(found)
        return found

    @property
    def command_topic(self) -> str:
        return f"_confluent-ksql-{self.service_id}_command_topic"

    def close(self) -> None:
        for each in self.started:
            if each.process.is_running:
                each.kill()


@pytest.fixture
def servers(tmp_path: Path, start_broker: StartBroker) -> Iterator[Servers]:
    found = Servers(tmp_path, start_broker(options={"auto.create.topics.enable": "false"}))
    yield found
    found.close()


def garbage(bootstrap: str, topic: str) -> None:
    """What no server of ours would write there; it ends with a transaction that leaves nothing but its mark."""
    producer = Producer({"bootstrap.servers": bootstrap})
    newer = json.dumps({"version": 99, "statement": "CREATE MOON;"})
    bad = json.dumps({"version": 1, "statement": "CREATE STREAM ((;"})
    unknown = json.dumps({"version": 1, "statement": "DROP STREAM NOT_THERE;"})
    key = json.dumps({"command": "stream/X/create", "sequence": 0})
    for number, value in enumerate((b"\xff\x00", b"", b"[]", b"{}", None, newer, bad, unknown)):
        producer.produce(topic, value, b"garbage" if number == 0 else key + " " * number)
    assert producer.flush(TIMEOUT_S) == 0
    writer = Producer({"bootstrap.servers": bootstrap, "transactional.id": f"garbage-{time.time_ns()}"})
    writer.init_transactions(TIMEOUT_S)
    writer.begin_transaction()
    writer.produce(topic, b"given up", b"given up")
    assert writer.flush(TIMEOUT_S) == 0
    writer.abort_transaction(TIMEOUT_S)


def numbers(bootstrap: str, topic: str) -> Counter[int]:
    """How often each number of the input is there, for readers of what is committed."""
    return Counter(json.loads(message.value() or b"{}")["N"] for message in read_all(bootstrap, topic))


def tables(server: SqlServerProcess) -> dict[str, int]:
    return dict(server.rows("SELECT * FROM COUNTS;"))


def lose_and_give_back(server: SqlServerProcess, bootstrap: str, topic: str) -> None:
    """The topic that a query writes to is deleted: its query shows it and goes on when the topic is back; the others run on."""

    def state() -> tuple[str, Any]:
        (shown,) = server.ksql("SHOW QUERIES EXTENDED;")
        found = next(each for each in shown["queryDescriptions"] if each["sinks"] == ["LOST"])
        return found["state"], found["queryErrors"]

    wait_until(lambda: len(numbers(bootstrap, topic)) > 0, "what the query writes")
    delete_topic(bootstrap, topic)
    wait_until(lambda: state()[0] == "ERROR", "the error of the query whose topic is gone")
    assert f"the topic {topic}" in state()[1][-1]["errorMessage"]
    seen = sum(tables(server).values())
    wait_until(lambda: sum(tables(server).values()) > seen, "what another query counts")
    create_topic(bootstrap, topic, partitions=2)
    wait_until(lambda: len(numbers(bootstrap, topic)) > 0, "what the query writes again")
    wait_until(lambda: state()[0] == "RUNNING", "the end of the error")


def test_a_killed_server_loses_nothing_and_another_goes_on(servers: Servers, topic_name: str) -> None:
    broker = servers.broker
    create_topic(broker.bootstrap, topic_name, partitions=2)
    first = servers.start()
    first.ksql(
        f"CREATE STREAM S (ID STRING KEY, N INT) WITH (KAFKA_TOPIC='{topic_name}', VALUE_FORMAT='JSON');"
    )
    first.ksql(f"CREATE STREAM ONCE WITH (KAFKA_TOPIC='once-{topic_name}') AS SELECT * FROM S;", EXACTLY_ONCE)
    first.ksql(
        f"CREATE TABLE COUNTS WITH (KAFKA_TOPIC='counts-{topic_name}') AS SELECT ID, COUNT(*) AS C FROM S GROUP BY ID;",
        EXACTLY_ONCE,
    )
    first.ksql(f"CREATE STREAM ATLEAST WITH (KAFKA_TOPIC='least-{topic_name}') AS SELECT * FROM S;")
    first.ksql(f"CREATE STREAM LOST WITH (KAFKA_TOPIC='lost-{topic_name}') AS SELECT * FROM S;")
    flow = Input(broker.bootstrap, topic_name)
    try:
        second = servers.start()
        wait_until(lambda: sum(tables(first).values()) > 100, "what the first server counted")
        lose_and_give_back(first, broker.bootstrap, f"lost-{topic_name}")
        # The second answers statements and questions, while the first runs the queries.
        assert second.query_ids() == first.query_ids()
        assert sum(tables(second).values()) > 100
        second.ksql("CREATE TYPE OF_SECOND AS STRUCT<A INT>;")
        wait_until(
            lambda: "OF_SECOND" in first.ksql("SHOW TYPES;")[0]["types"], "the second's command at the first"
        )
        first.kill()
        seen = sum(tables(second).values())
        wait_until(lambda: sum(tables(second).values()) > seen + 200, "what the second server counted")
        second.kill()
        garbage(broker.bootstrap, servers.command_topic)
        third = servers.start()
        (shown,) = third.ksql("SHOW QUERIES;")
        assert [query["state"] for query in shown["queries"]] == ["RUNNING"] * 4
        assert "OF_SECOND" in third.ksql("SHOW TYPES;")[0]["types"]
    finally:
        count = flow.stop()
    expected = {f"k{key}": len(range(key, count, KEYS)) for key in range(KEYS)}
    wait_until(lambda: tables(third) == expected, "the table of all numbers")
    wait_until(
        lambda: len(numbers(broker.bootstrap, f"least-{topic_name}")) == count, "every number at least once"
    )
    wait_until(lambda: len(numbers(broker.bootstrap, f"once-{topic_name}")) == count, "every number once")
    assert set(numbers(broker.bootstrap, f"once-{topic_name}").values()) == {1}
    assert third.close() == 0
    assert bugs(third.log) == []
