"""Tasks of either kind with a real broker: how they fail, begin anew, are replaced and stop."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer

from penstock.connect import (
    DataError,
    SinkRecord,
    SinkTask,
    SourceRecord,
    SourceTask,
)
from penstock.connect.tasks import WorkerSettings
from penstock.connect.tasks.fencing import fence, transactional_id
from penstock.spark.tasks import JobState
from penstock.testing.penstock_broker import PenstockBroker
from tests.clients.admin import create_topic, topic_configs
from tests.conftest import MakeTopic, StartBroker
from tests.connect.task_jobs import (
    DEADLINE_S,
    STRINGS,
    Job,
    Reading,
    collecting,
    committed,
    connector_of,
    is_kept,
    once,
    source_of,
    until,
    write,
)


def test_a_task_that_fails_is_started_again_after_growing_pauses(
    make_topic: MakeTopic, start: Callable[..., Job], read: Callable[..., Reading]
) -> None:
    topic = make_topic()
    lives: list[int] = []

    class Task(SourceTask):
        def start(self) -> None:
            lives.append(len(lives))
            self.records = [SourceRecord({}, {}, topic, f"life {lives[-1]}")]

        def poll(self) -> Any:
            if lives[-1] < 2:
                raise DataError("not yet")
            found, self.records = self.records, []
            return found

    job = start({}, connector_of(Task))
    assert read(topic).values(1) == ["life 2"]
    assert job.states() == ["RUNNING", "FAILED", "RESTARTING", "RUNNING", "FAILED", "RESTARTING", "RUNNING"]
    failed = [data for _, name, data in job.events if name == "status" and data["state"] == "FAILED"]
    assert "DataError: not yet" in failed[0]["trace"]
    assert 0.03 < failed[0]["restart_s"] < 0.07 < failed[1]["restart_s"] < 0.13


def test_a_task_is_started_again_when_somebody_asks(make_topic: MakeTopic, start: Callable[..., Job]) -> None:
    made: list[int] = []

    class Task(SourceTask):
        def start(self) -> None:
            made.append(1)
            if len(made) < 2:
                raise DataError("a wrong password")

        def poll(self) -> None:
            self.context.wait(0.05)

    job = start({"errors.restart.enable": "false"}, connector_of(Task))
    job.wait_for("FAILED")
    status = job.status()
    assert (status["state"], "wrong password" in status["trace"]) == ("FAILED", True)
    assert job.long.ask(0, "restart") is True
    job.wait_for("RUNNING")
    assert job.long.ask(0, "restart") is True
    job.wait_for("RUNNING", times=2)
    assert len(made) == 3


def test_topics_are_made_by_the_rules(
    broker: PenstockBroker, topic_name: str, start: Callable[..., Job], read: Callable[..., Reading]
) -> None:
    config = {
        "topic.creation.groups": "compacted", "topic.creation.default.partitions": "2",
        "topic.creation.default.replication.factor": "-1", "topic.creation.default.retention.ms": "1234567",
        "topic.creation.compacted.include": f"{topic_name}-c.*", "topic.creation.compacted.cleanup.policy": "compact",
    }  # fmt: skip
    plain, compacted = f"{topic_name}-plain", f"{topic_name}-compacted"
    records = [SourceRecord({}, {}, plain, "v"), SourceRecord({}, {}, compacted, "v", key="k")]
    job = start(config, source_of(once(records)))
    until(lambda: {data["name"] for _, name, data in job.events if name == "topic"} == {plain, compacted})
    until(lambda: job.status()["counters"]["offset-commit-success"])
    assert topic_configs(broker.bootstrap, plain)["retention.ms"] == "1234567"
    found = topic_configs(broker.bootstrap, compacted)
    assert (found["cleanup.policy"], found["retention.ms"] != "1234567") == ("compact", True)
    assert len(read(compacted)._ends) == 2


def test_a_task_that_was_replaced_ends_without_a_word(
    make_topic: MakeTopic, start: Callable[..., Job], worker: Any, read: Callable[..., Reading]
) -> None:
    topic, settings = make_topic(), worker(exactly_once_source_support="enabled")
    config = {"topic": topic, "count": "1000000", "batch": "1"}
    job = start(config, "CountingSource", name="fenced", settings=settings)
    read(topic).values(1)
    assert transactional_id(settings, "fenced", 0) == f"{settings.group_id}-fenced-0"
    fence(settings, "fenced", config, [0])
    assert job.long.wait_for(JobState.ENDED, timeout_s=DEADLINE_S) == JobState.ENDED
    assert job.states() == ["RUNNING"]


def test_a_put_that_hangs_is_seen(
    broker: PenstockBroker, make_topic: MakeTopic, start: Callable[..., Job]
) -> None:
    topic = make_topic()
    write(broker, topic, ["a"])
    go = threading.Event()

    def put(self: SinkTask, records: Sequence[SinkRecord]) -> None:
        if records:
            go.wait(DEADLINE_S)

    kind, _, _ = collecting(put=put)
    job = start({"topics": topic}, kind)
    until(lambda: job.long.tasks[0].still_s > 2)
    go.set()
    until(lambda: job.long.tasks[0].still_s < 2)


def test_what_a_put_had_that_hung_comes_again_though_it_catches_all_exceptions(
    broker: PenstockBroker, make_topic: MakeTopic, start: Callable[..., Job], worker: Any
) -> None:
    topic = make_topic()
    write(broker, topic, ["a"])
    begun: list[int] = []
    written: list[str] = []

    def put(self: SinkTask, records: Sequence[SinkRecord]) -> None:
        for record in records:
            begun.append(len(begun))
            try:
                while len(begun) == 1:
                    time.sleep(0.01)
                written.append(record.value)
            except Exception:
                continue

    kind, _, _ = collecting(put=put)
    settings = worker(**{"task.shutdown.graceful.timeout.ms": "100"})
    job = start({"topics": topic}, kind, name="hung", settings=settings)
    until(lambda: begun)
    assert job.long.ask(0, "restart") is True
    until(lambda: written == ["a"])
    assert begun == [0, 1]
    until(lambda: committed(broker, "connect-hung", topic) == [1])


def test_a_sink_that_was_replaced_ends_without_a_word(
    broker: PenstockBroker, make_topic: MakeTopic, start: Callable[..., Job], worker: Any
) -> None:
    topic = make_topic()
    config = {"topics": topic, "consumer.override.heartbeat.interval.ms": "200"}
    kind, puts, _ = collecting()
    settings = worker()
    first = start(config, kind, name="twice", settings=settings)
    write(broker, topic, ["a"])
    until(lambda: committed(broker, "connect-twice", topic) == [1])
    other, more, _ = collecting()
    start(config, other, name="twice", settings=settings)
    assert first.long.wait_for(JobState.ENDED, timeout_s=DEADLINE_S) == JobState.ENDED
    assert first.states() == ["RUNNING"]
    write(broker, topic, ["b"])
    until(lambda: committed(broker, "connect-twice", topic) == [2])
    assert (puts, more) == ([["a"]], [["b"]])


def test_a_broker_that_dies_and_comes_back_is_waited_for(
    start_broker: StartBroker, start: Callable[..., Job], tmp_path: Path
) -> None:
    running = start_broker()
    port = int(running.bootstrap.rpartition(":")[2])
    create_topic(running.bootstrap, "offsets", configs={"cleanup.policy": "compact"})
    create_topic(running.bootstrap, "numbers")
    given = {
        "bootstrap.servers": running.bootstrap, "group.id": "workers", "offset.storage.topic": "offsets",
        "offset.flush.interval.ms": "100", "key.converter": STRINGS, "value.converter": STRINGS,
    }  # fmt: skip
    settings = WorkerSettings.of(given)
    file = tmp_path / "out"

    def found() -> list[str]:
        return file.read_text().split() if file.exists() else []

    source = start(
        {"topic": "numbers", "count": "3000", "batch": "2"}, "CountingSource", name="in", settings=settings
    )
    sink = start({"topics": "numbers", "file": str(file)}, "AppendingSink", name="out", settings=settings)
    until(lambda: len(found()) > 200)
    running.kill()
    start_broker(port=port)
    until(lambda: set(found()) == {f"0:{number}" for number in range(3000)})
    assert source.states() == sink.states() == ["RUNNING"]
    until(partial(is_kept, settings, "in", {'{"task":0}': {"next": 3000}}))


def test_a_task_that_waits_for_its_offsets_can_be_stopped(
    broker: PenstockBroker, make_topic: MakeTopic, start: Callable[..., Job], worker: Any
) -> None:
    """Behind a transaction that somebody has left open."""
    settings = worker()
    stuck = Producer({"bootstrap.servers": broker.bootstrap, "transactional.id": "left-open", "log_level": 0})
    stuck.init_transactions(DEADLINE_S)
    stuck.begin_transaction()
    stuck.produce(settings.offsets_topic, b"{}", key=b'["other",{}]', partition=0)
    assert stuck.flush(DEADLINE_S) == 0
    asked = threading.Event()

    class Task(SourceTask):
        def start(self) -> None:
            asked.set()
            self.context.offset({"a": 1})
            raise AssertionError("the transaction is open")

        def poll(self) -> Any:
            return None

    job = start({}, connector_of(Task), settings=settings)
    assert asked.wait(DEADLINE_S)
    job.stop()
    assert (job.long.state, job.states()) == (JobState.STOPPED, ["UNASSIGNED"])
    stuck.abort_transaction(DEADLINE_S)


def test_a_failure_does_not_tell_what_a_reference_stands_for(
    start: Callable[..., Job], worker: Any, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("PASSWORD_OF_TESTS", "wonderland")
    settings = worker(
        config_providers="env",
        config_providers_env_class="org.apache.kafka.common.config.provider.EnvVarConfigProvider",
    )

    class Task(SourceTask):
        def start(self) -> None:
            raise DataError(f"nobody is let in with {self.given['password']}")

    job = start({"password": "${env:PASSWORD_OF_TESTS}"}, connector_of(Task), settings=settings)
    job.wait_for("FAILED")
    traces = [data["trace"] for _, name, data in list(job.events) if name == "status" and data["trace"]]
    assert "nobody is let in with [hidden]" in traces[0]
    assert "wonderland" not in "".join(traces) + caplog.text + repr(job.long.errors)
