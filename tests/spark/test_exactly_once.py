"""`exactlyOnce`: a batch that comes again is recognised, whoever wrote it first."""

from __future__ import annotations

import os
import random
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from confluent_kafka import Consumer, KafkaException, TopicPartition
from pyspark.sql import SparkSession

from penstock.spark import exactly_once
from penstock.spark.exactly_once import Task, write_once
from penstock.spark.failures import NotWritten
from penstock.spark.rows import Columns
from penstock.testing.penstock_broker import PenstockBroker
from penstock.testing.processes import RunningProcess, start_process
from tests.conftest import StartBroker
from tests.spark.conftest import MakeTopic, ReadTopic, finish, produce, values

VALUE_ONLY = Columns(value=0, key=None, topic=None, partition=None, headers=None)
KILLS = 3
ROWS = 4_000
RUN_TIMEOUT_S = 90


@pytest.fixture
def sessions() -> Iterator[None]:
    """Producers that a Spark worker would keep."""
    yield
    for session in exactly_once._sessions.values():
        session.close()
    exactly_once._sessions.clear()


def rows(*texts: str) -> Iterator[pa.RecordBatch]:
    yield pa.record_batch([pa.array(list(texts), pa.string())], names=["value"])


def write(broker: PenstockBroker, topic: str, task: Task, *texts: str) -> int:
    properties = {"bootstrap.servers": broker.bootstrap}
    return write_once(task, rows(*texts), columns=VALUE_ONLY, topic=topic, properties=properties)


def committed_values(bootstrap: str, topic: str) -> list[str]:
    consumer = Consumer(
        {"bootstrap.servers": bootstrap, "group.id": "x", "isolation.level": "read_committed",
         "enable.partition.eof": True}
    )  # fmt: skip
    partitions = consumer.list_topics(topic, timeout=10).topics[topic].partitions
    consumer.assign([TopicPartition(topic, partition, 0) for partition in partitions])
    found: list[str] = []
    at_end: set[int] = set()
    while len(at_end) < len(partitions):
        message = consumer.poll(30)
        assert message is not None, "an open transaction hides the end"
        if message.error():
            at_end.add(message.partition())
        else:
            found.append(message.value().decode())
    consumer.close()
    return sorted(found)


@pytest.mark.usefixtures("sessions")
def test_a_batch_that_comes_again_writes_nothing(broker: PenstockBroker, make_topic: MakeTopic) -> None:
    topic = make_topic()
    assert write(broker, topic, Task(topic, 0, 0), "a", "b") == 2
    assert write(broker, topic, Task(topic, 1, 0), "c") == 1
    exactly_once._sessions.clear()  # as a new worker, which remembers nothing
    assert write(broker, topic, Task(topic, 1, 0), "c") == 0
    assert write(broker, topic, Task(topic, 2, 0), "d") == 1
    assert committed_values(broker.bootstrap, topic) == ["a", "b", "c", "d"]


@pytest.mark.usefixtures("sessions")
def test_tasks_of_a_batch_have_markers_of_their_own(broker: PenstockBroker, make_topic: MakeTopic) -> None:
    topic = make_topic()
    for partition in (0, 1, 17):
        assert write(broker, topic, Task(topic, 0, partition), f"{partition}") == 1
    for partition in (0, 1, 17):
        assert write(broker, topic, Task(topic, 0, partition), f"{partition}") == 0
    assert committed_values(broker.bootstrap, topic) == ["0", "1", "17"]


@pytest.mark.usefixtures("sessions")
def test_a_worker_that_was_shut_out_finds_that_its_batch_is_written(
    broker: PenstockBroker, make_topic: MakeTopic
) -> None:
    topic = make_topic()
    write(broker, topic, Task(topic, 0, 0), "a")
    (zombie,) = exactly_once._sessions.items()
    exactly_once._sessions.clear()
    write(broker, topic, Task(topic, 1, 0), "b")
    for session in exactly_once._sessions.values():
        session.close()
    exactly_once._sessions.update([zombie])
    assert write(broker, topic, Task(topic, 1, 0), "b") == 0
    assert committed_values(broker.bootstrap, topic) == ["a", "b"]


@pytest.mark.usefixtures("sessions")
def test_a_task_that_fails_in_the_middle_leaves_nothing(
    broker: PenstockBroker, make_topic: MakeTopic
) -> None:
    topic = make_topic()

    def failing() -> Iterator[pa.RecordBatch]:
        yield from rows("lost")
        raise RuntimeError("upstream")

    properties = {"bootstrap.servers": broker.bootstrap}
    with pytest.raises(RuntimeError, match="upstream"):
        write_once(Task(topic, 0, 0), failing(), columns=VALUE_ONLY, topic=topic, properties=properties)
    assert write(broker, topic, Task(topic, 0, 0), "kept") == 1
    assert committed_values(broker.bootstrap, topic) == ["kept"]


@pytest.mark.usefixtures("sessions")
def test_a_row_that_the_topic_refuses_fails_the_task_at_once(
    broker: PenstockBroker, make_topic: MakeTopic
) -> None:
    topic = make_topic(configs={"max.message.bytes": "1000"})
    with pytest.raises(NotWritten, match=f"the topic '{topic}' does not take a row"):
        write(broker, topic, Task(topic, 0, 0), "x" * 5000)


@pytest.mark.usefixtures("sessions")
def test_a_broker_that_restarts_between_two_batches_costs_no_row(start_broker: StartBroker) -> None:
    first = start_broker("b")
    write(first, "out", Task("q", 0, 0), "a")
    first.kill()
    second = start_broker("b", port=first.port)
    assert write(second, "out", Task("q", 0, 0), "a") == 0
    assert write(second, "out", Task("q", 1, 0), "b") == 1
    assert committed_values(second.bootstrap, "out") == ["a", "b"]


def test_a_stream_within_foreach_batch_writes_each_batch_once(
    spark: SparkSession,
    broker: PenstockBroker,
    make_topic: MakeTopic,
    stream_topic: ReadTopic,
    read_topic: ReadTopic,
    tmp_path: Path,
) -> None:
    source, out = make_topic(), make_topic()
    produce(broker.bootstrap, source, [{"value": f"{n}"} for n in range(5)])

    def twice(frame: object, batch_id: int) -> None:
        for _ in range(2):
            writer = frame.select("value").write.format("penstock").mode("append")  # type: ignore[attr-defined]
            writer = writer.option("kafka.bootstrap.servers", broker.bootstrap).option("topic", out)
            writer.option("exactlyOnce", "true").option("transactionalIdPrefix", f"{out}-copy").save()

    stream = stream_topic(source, startingOffsets="earliest").writeStream.foreachBatch(twice)
    finish(stream.option("checkpointLocation", str(tmp_path)).trigger(availableNow=True).start())
    assert values(read_topic(out, kafka_isolation_level="read_committed")) == [f"{n}" for n in range(5)]


def start_driver(broker: PenstockBroker, directory: Path, *topics: str) -> RunningProcess:
    program = Path(__file__).parent / "copy_program.py"
    command = [sys.executable, program, broker.bootstrap, *topics, directory / "checkpoint"]
    return start_process(command, name="driver", log_path=directory / "driver.log")


def wait_for_progress(driver: RunningProcess, bootstrap: str, topic: str, *, beyond: int) -> None:
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "x"})
    deadline_s = time.monotonic() + RUN_TIMEOUT_S
    while True:
        try:
            if consumer.get_watermark_offsets(TopicPartition(topic, 0), timeout=5)[1] > beyond:
                break
        except KafkaException:
            pass
        if not driver.is_running or time.monotonic() > deadline_s:
            raise driver.failure("writes nothing")
        time.sleep(0.01)
    consumer.close()


def kill_driver(driver: RunningProcess, *, with_its_jvm: bool) -> None:
    """Without it the JVM and its workers live on for a moment, and write on: the next driver has to shut them out."""
    if with_its_jvm:
        os.killpg(driver.pid, signal.SIGKILL)
    driver.kill()


def kill_workers(driver: RunningProcess, count: int) -> None:
    """Python workers of a driver, one after the other, while it has some; Spark gives their tasks to others."""
    for _ in range(count):
        workers = python_workers(driver.pid)
        if not workers or not driver.is_running:
            return
        os.kill(workers[0], signal.SIGKILL)
        deadline_s = time.monotonic() + RUN_TIMEOUT_S
        while workers[0] in python_workers(driver.pid) and time.monotonic() < deadline_s:
            time.sleep(0.05)


def python_workers(session_id: int) -> list[int]:
    """The forks of the daemon, in the session that `start_process` gave to the driver."""
    daemons: dict[int, int] = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            stat = path.read_text()
            command = path.with_name("cmdline").read_bytes()
        except OSError:
            continue  # it has ended
        fields = stat[stat.rindex(")") + 2 :].split()
        if int(fields[3]) == session_id and b"penstock.spark.daemon" in command:
            daemons[int(path.parent.name)] = int(fields[1])
    return [pid for pid, parent in daemons.items() if parent in daemons]


@pytest.mark.timeout(240)
def test_each_row_is_there_once_though_drivers_and_workers_are_killed(
    broker: PenstockBroker, make_topic: MakeTopic, tmp_path: Path
) -> None:
    source, out = make_topic(partitions=2), make_topic()
    produce(broker.bootstrap, source, [{"value": f"{n:05}"} for n in range(ROWS)])
    written = 0
    for kill in range(KILLS):
        driver = start_driver(broker, tmp_path, source, out)
        wait_for_progress(driver, broker.bootstrap, out, beyond=written)
        # Somewhere in one of the next batches: this is the point that chance decides.
        time.sleep(random.Random(kill).uniform(0, 0.6))
        kill_driver(driver, with_its_jvm=kill % 2 == 0)
        consumer = Consumer({"bootstrap.servers": broker.bootstrap, "group.id": "x"})
        written = consumer.get_watermark_offsets(TopicPartition(out, 0), timeout=10)[1]
        consumer.close()
    last = start_driver(broker, tmp_path, source, out)
    wait_for_progress(last, broker.bootstrap, out, beyond=written)
    kill_workers(last, KILLS)
    assert last.wait(timeout_s=RUN_TIMEOUT_S) == 0, last.log_text()[-3000:]
    assert committed_values(broker.bootstrap, out) == [f"{n:05}" for n in range(ROWS)]
