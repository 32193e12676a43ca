"""Tasks of a connector as a job of their own, without a server: what tests of tasks start, ask and read."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from confluent_kafka import Consumer, KafkaError, Producer, TopicPartition

from penstock.connect import (
    SinkConnector,
    SinkRecord,
    SinkTask,
    SourceConnector,
    SourceRecord,
    SourceTask,
)
from penstock.connect.tasks import TaskProgram, WorkerSettings
from penstock.connect.tasks.clients import CONSUMER, properties_of, settings_of
from penstock.connect.tasks.offsets import TopicOffsets
from penstock.spark.tasks import LongJob, ProcessLauncher
from penstock.testing.penstock_broker import PenstockBroker

DEADLINE_S = 40
STRINGS = "org.apache.kafka.connect.storage.StringConverter"
NAMES = (f"connector-{number}-{os.getpid()}" for number in range(1000))


def until(condition: Callable[[], Any]) -> Any:
    deadline_s = time.monotonic() + DEADLINE_S
    while not (found := condition()):
        assert time.monotonic() < deadline_s, "it did not come to that"
        time.sleep(0.02)
    return found


class Reading:
    """All that comes to a topic, as values or whole messages."""

    def __init__(self, bootstrap: str, topic: str, isolation: str = "read_committed") -> None:
        self._consumer = Consumer(
            {
                "bootstrap.servers": bootstrap, "group.id": "tests", "isolation.level": isolation,
                "enable.partition.eof": True, "log_level": 0,
            }
        )  # fmt: skip
        partitions = self._consumer.list_topics(topic, timeout=DEADLINE_S).topics[topic].partitions
        self._ends = dict.fromkeys(partitions, False)
        self._consumer.assign([TopicPartition(topic, number, 0) for number in partitions])
        self.messages: list[Any] = []

    def values(self, count: int = 0) -> list[str]:
        """Once there are that many."""
        until(lambda: self._read() >= count)
        return [message.value().decode() for message in self.messages if message.value() is not None]

    def all(self) -> list[Any]:
        until(lambda: self._read() >= 0 and all(self._ends.values()))
        return self.messages

    def _read(self) -> int:
        for message in self._consumer.consume(10_000, 0.1):
            error = message.error()
            if error is None:
                self.messages.append(message)
                self._ends[message.partition()] = False
            elif error.code() == KafkaError._PARTITION_EOF:
                self._ends[message.partition()] = True
        return len(self.messages)

    def close(self) -> None:
        self._consumer.close()


class Job:
    """A connector's tasks, and what they tell."""

    def __init__(self, program: TaskProgram, tasks: int, launcher: Any) -> None:
        self.events: list[tuple[int, str, Any]] = []
        self.long = LongJob(
            program, tasks=tasks, name=program.connector, launcher=launcher,
            on_event=lambda task, name, data: self.events.append((task, name, data)),
        )  # fmt: skip
        self.long.start()

    def states(self, task: int = 0) -> list[str]:
        return [data["state"] for each, name, data in list(self.events) if each == task and name == "status"]

    def wait_for(self, state: str, task: int = 0, times: int = 1) -> None:
        until(lambda: self.states(task).count(state) >= times)

    def status(self, task: int = 0) -> dict[str, Any]:
        found: dict[str, Any] = self.long.ask(task, "status")
        return found

    def stop(self) -> None:
        self.long.stop(within_s=20)


def kept_offsets(settings: WorkerSettings, connector: str, topic: str | None = None) -> dict[str, Any]:
    store = TopicOffsets(
        topic or settings.offsets_topic or "",
        properties_of(settings, {}, CONSUMER),
        settings_of(settings, {}, CONSUMER),
    )
    return store.load(connector)


def is_kept(settings: WorkerSettings, connector: str, expected: Mapping[str, Any]) -> bool:
    return kept_offsets(settings, connector) == expected


def committed(broker: PenstockBroker, group: str, topic: str, partitions: int = 1) -> list[int]:
    consumer = Consumer({"bootstrap.servers": broker.bootstrap, "group.id": group, "log_level": 0})
    try:
        asked = [TopicPartition(topic, number) for number in range(partitions)]
        return [each.offset for each in consumer.committed(asked, timeout=DEADLINE_S)]
    finally:
        consumer.close()


def write(broker: PenstockBroker, topic: str, values: Sequence[str], **more: Any) -> None:
    producer = Producer({"bootstrap.servers": broker.bootstrap, "log_level": 0})
    for number, value in enumerate(values):
        producer.produce(topic, value, key=f"key-{number}", **more)
    assert producer.flush(DEADLINE_S) == 0


def kill_one(job: Job, launcher: ProcessLauncher, task: int) -> None:
    """Returns when it runs again."""
    before = job.states(task).count("RUNNING")
    [processes] = launcher.process_ids().values()
    os.kill(processes[task], signal.SIGKILL)
    job.wait_for("RUNNING", task, before + 1)


def source_of(poll: Callable[[SourceTask], Any]) -> type[SourceConnector]:
    class Task(SourceTask):
        def poll(self) -> Any:
            return poll(self)

    return connector_of(Task)


def connector_of(task: type[Any]) -> type[Any]:
    base = SourceConnector if issubclass(task, SourceTask) else SinkConnector
    return type("Tested", (base,), {"task_class": task})


def once(records: Sequence[SourceRecord]) -> Callable[[SourceTask], Any]:
    left = [list(records)]

    def poll(task: SourceTask) -> Any:
        if left:
            return left.pop()
        task.context.wait(0.05)
        return None

    return poll


class Collecting(SinkTask):
    """Into a list of the test's."""

    puts: list[list[str]]
    told: list[Any]

    def put(self, records: Sequence[SinkRecord]) -> None:
        if records:
            self.puts.append([record.value for record in records])

    def open(self, partitions: Any) -> None:
        self.told.append(("open", sorted(partitions)))

    def close(self, partitions: Any) -> None:
        self.told.append(("close", sorted(partitions)))

    def stop(self) -> None:
        self.told.append("stop")


def collecting(**methods: Any) -> tuple[type[SinkConnector], list[list[str]], list[Any]]:
    puts: list[list[str]] = []
    told: list[Any] = []
    task = type("Task", (Collecting,), {"puts": puts, "told": told, **methods})
    return connector_of(task), puts, told
