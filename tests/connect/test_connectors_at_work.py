"""Connectors on the runtime, with a real broker: nothing is lost and nothing is there twice when tasks and servers are killed."""

from __future__ import annotations

import json
import os
import random
import signal
from collections.abc import Iterator, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer

from penstock.connect.tasks import TaskProgram, WorkerSettings
from penstock.spark.tasks import LongJob, ProcessLauncher
from penstock.testing.penstock_broker import PenstockBroker
from tests.clients.admin import create_topic
from tests.conftest import MakeTopic
from tests.connect.databases import PostgreSql
from tests.connect.workers import Reading, Worker, until

JSON = {
    "value.converter": "org.apache.kafka.connect.json.JsonConverter",
    "value.converter.schemas.enable": "false",
}
STRINGS = "org.apache.kafka.connect.storage.StringConverter"


@pytest.fixture
def properties(broker: PenstockBroker, topic_name: str) -> dict[str, str]:
    """Of a worker."""
    offsets = f"{topic_name}-offsets"
    create_topic(broker.bootstrap, offsets, partitions=1, configs={"cleanup.policy": "compact"})
    return {
        "bootstrap.servers": broker.bootstrap, "group.id": f"connect-{topic_name}", "offset.storage.topic": offsets,
        "offset.storage.replication.factor": "1", "offset.flush.interval.ms": "300", "key.converter": STRINGS,
        "value.converter": STRINGS, "errors.restart.delay.initial.ms": "50", "errors.restart.delay.max.ms": "200",
    }  # fmt: skip


class Job:
    """A connector's tasks, each a process that can be killed."""

    def __init__(self, name: str, config: Mapping[str, str], worker: WorkerSettings, tasks: int) -> None:
        self.states: list[tuple[int, str]] = []
        self.launcher = ProcessLauncher()
        self.long = LongJob(
            TaskProgram(name, {**config, "name": name}, [{}] * tasks, worker), tasks=tasks, name=name,
            launcher=self.launcher, on_event=self._told,
        )  # fmt: skip
        self.long.start()

    def _told(self, task: int, name: str, data: Any) -> None:
        if name == "status":
            self.states.append((task, data["state"]))

    def runs(self, task: int) -> int:
        return self.states.count((task, "RUNNING"))

    def kill(self, task: int) -> None:
        before = until(lambda: self.runs(task), "its first run")
        [processes] = self.launcher.process_ids().values()
        os.kill(processes[task], signal.SIGKILL)
        until(lambda: self.runs(task) > before, "it runs again")


@pytest.fixture
def jobs() -> Iterator[list[Job]]:
    begun: list[Job] = []
    yield begun
    for job in begun:
        job.long.stop(within_s=20)


@pytest.mark.parametrize("way", ["upsert", "exactly once"])
def test_killed_tasks_and_a_killed_database_lose_nothing_and_write_nothing_twice(
    broker: PenstockBroker, make_topic: MakeTopic, properties: dict[str, str], jobs: list[Job], way: str
) -> None:
    topic, count = make_topic(partitions=2), 10_000
    config = {
        "connector.class": "io.confluent.connect.jdbc.JdbcSinkConnector", "topics": topic, "auto.create": "true",
        "table.name.format": "counted", "retry.backoff.ms": "100", "max.retries": "100", **JSON,
        "consumer.override.auto.offset.reset": "earliest", "consumer.override.max.poll.records": "500",
        "consumer.override.session.timeout.ms": "6000", "consumer.override.heartbeat.interval.ms": "500",
    }  # fmt: skip
    if way == "upsert":
        config |= {"insert.mode": "upsert", "pk.mode": "record_value", "pk.fields": "n"}
    else:
        config |= {"penstock.offsets.table": "offsets"}
    producer = Producer({"bootstrap.servers": broker.bootstrap, "log_level": 0})
    chance = random.Random(7)
    with PostgreSql() as database:
        jobs.append(
            job := Job(f"sink-{topic}", {**config, **database.login}, WorkerSettings.of(properties), 2)
        )

        def rows() -> int:
            try:
                return int(database.run("SELECT count(*) FROM counted")[0][0])
            except Exception:
                return 0

        for part in range(5):
            for n in range(part * count // 5, (part + 1) * count // 5):
                producer.produce(topic, json.dumps({"n": n}), partition=n % 2)
                producer.poll(0)
            assert producer.flush(30) == 0
            wanted = part * count // 5 + chance.randrange(1, count // 5)
            if part % 2:
                until(lambda: rows() >= wanted, f"{wanted} rows")  # noqa: B023 -- called at once
            if part == 2:
                database.kill()
                database.start()
            else:
                job.kill(part % 2)
        until(lambda: rows() >= count, "all rows")
        found = database.run("SELECT n FROM counted ORDER BY n")
        assert [row[0] for row in found] == list(range(count))
        job.long.stop(within_s=20)
        assert database.run("SELECT count(*) FROM counted") == [(count,)]


def test_a_killed_source_gives_each_row_once_where_that_is_promised(
    broker: PenstockBroker,
    make_topic: MakeTopic,
    properties: dict[str, str],
    jobs: list[Job],
    postgresql: PostgreSql,
) -> None:
    topic, count = make_topic(), 3000
    postgresql.run(
        "CREATE TABLE IF NOT EXISTS rows_ (id SERIAL PRIMARY KEY, at TIMESTAMPTZ NOT NULL DEFAULT now())"
    )
    config = {
        **postgresql.login, **JSON, "connector.class": "JdbcSource", "mode": "timestamp+incrementing",
        "timestamp.column.name": "at", "topic.prefix": topic.removesuffix("rows_"), "poll.interval.ms": "20",
        "batch.max.rows": "50", "tables": '[["public", "rows_"]]', "transforms": "to",
        "transforms.to.type": "RegexRouter", "transforms.to.regex": ".*", "transforms.to.replacement": topic,
    }  # fmt: skip
    exactly = WorkerSettings.of({**properties, "exactly.once.source.support": "enabled"})
    jobs.append(job := Job(f"source-{topic}", config, exactly, 1))
    with closing(Reading(broker.bootstrap, topic)) as reading:
        for part in range(3):
            postgresql.run(f"INSERT INTO rows_ (at) SELECT now() FROM generate_series(1, {count // 3})")
            until(lambda: len(reading.look()) > part * count // 3 + 200, "some rows")  # noqa: B023 -- called at once
            job.kill(0)
        reading.wait(count)
        assert [json.loads(value)["id"] for value in reading.values] == list(range(1, count + 1))


def test_a_table_that_is_made_later_is_read(
    broker: PenstockBroker,
    properties: dict[str, str],
    tmp_path: Path,
    topic_name: str,
    postgresql: PostgreSql,
) -> None:
    own = {
        **properties,
        **JSON,
        "listeners": "http://127.0.0.1:0",
        "offset.storage.file.filename": str(tmp_path / "offsets"),
    }
    config = {
        **postgresql.login, "connector.class": "io.confluent.connect.jdbc.JdbcSourceConnector", "mode": "incrementing",
        "topic.prefix": f"{topic_name}-", "table.include.list": r"public\.later_.*", "poll.interval.ms": "50",
        "table.poll.interval.ms": "100", "tasks.max": "2",
    }  # fmt: skip
    worker = Worker(tmp_path, own, kind="standalone")
    with closing(worker):
        worker.create("later", config)
        until(lambda: worker.states("later")[0] == "RUNNING", "the connector runs")
        for name in ("later_a", "later_b"):
            postgresql.run(f"CREATE TABLE {name} (id SERIAL PRIMARY KEY, note TEXT)")
            postgresql.run(f"INSERT INTO {name} (note) VALUES ('x')")
            create_topic(broker.bootstrap, f"{topic_name}-{name}", partitions=1)
            with closing(Reading(broker.bootstrap, f"{topic_name}-{name}")) as reading:
                assert json.loads(reading.wait(1)[0]) == {"id": 1, "note": "x"}
        until(lambda: worker.states("later") == ("RUNNING", ["RUNNING", "RUNNING"]), "a task for each")
