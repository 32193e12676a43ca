"""`exactlyOnce`: a batch that comes again is recognised, whoever wrote it first."""

from __future__ import annotations

import shutil
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.admin import AdminClient
from pyspark.sql import SparkSession
from pyspark.sql.types import StringType, StructField, StructType

from penstock.spark.failures import CheckpointWentBack, NotTheSameBatch, NotWritten
from penstock.spark.options import write_options
from penstock.spark.writing import exactly_once, markers
from penstock.spark.writing.exactly_once import Session, write_once
from penstock.spark.writing.foreach_batch import to_topic
from penstock.spark.writing.markers import MARKER_TOPIC
from penstock.spark.writing.rows import Columns
from penstock.spark.writing.sink import TopicStreamWriter, Written
from penstock.spark.writing.tasks import Marker, Task
from penstock.testing.penstock_broker import PenstockBroker
from tests.clients.admin import create_topic, delete_topic, topic_configs
from tests.conftest import MakeTopic, StartBroker
from tests.spark.conftest import ReadTopic, finish, produce, values

VALUE_ONLY = Columns(value=0, key=None, topic=None, partition=None, headers=None)


@pytest.fixture
def sessions() -> Iterator[None]:
    """Producers that a Spark worker would keep."""
    yield
    close_sessions()


def close_sessions() -> None:
    for session in exactly_once._sessions.values():
        session.close()
    exactly_once._sessions.clear()


def rows(*texts: str) -> Iterator[pa.RecordBatch]:
    yield pa.record_batch([pa.array(list(texts), pa.string())], names=["value"])


def write(broker: PenstockBroker, topic: str, task: Task, *texts: str) -> int:
    properties = {"bootstrap.servers": broker.bootstrap}
    return write_once(task, rows(*texts), columns=VALUE_ONLY, topic=topic, properties=properties).rows


def opened(broker: PenstockBroker, task: Task) -> Session:
    properties = {"bootstrap.servers": broker.bootstrap}
    markers.ensure_marker_topic(properties)
    return Session(task, properties)


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
def test_of_two_attempts_at_once_one_writes(broker: PenstockBroker, make_topic: MakeTopic) -> None:
    topic = make_topic()
    task = Task(topic, 0, 0)
    write_by_the_other = []

    def overtaken() -> Iterator[pa.RecordBatch]:
        """As a speculative attempt in another worker, which has written everything before this one goes on."""
        yield from rows("a")
        own, exactly_once._sessions = exactly_once._sessions, {}
        write_by_the_other.append(write(broker, topic, task, "a", "b"))
        for session in exactly_once._sessions.values():
            session.close()
        exactly_once._sessions = own
        yield from rows("b")

    properties = {"bootstrap.servers": broker.bootstrap}
    outcome = write_once(task, overtaken(), columns=VALUE_ONLY, topic=topic, properties=properties)
    assert (outcome.rows, write_by_the_other) == (0, [2])
    assert committed_values(broker.bootstrap, topic) == ["a", "b"]


@pytest.mark.usefixtures("sessions")
def test_a_batch_is_recognised_when_the_cluster_has_forgotten_the_offsets_of_its_group(
    broker: PenstockBroker, make_topic: MakeTopic
) -> None:
    topic = make_topic()
    task = Task(topic, 7, 2)
    write(broker, topic, task, "a")
    for session in exactly_once._sessions.values():
        session.close()
    exactly_once._sessions.clear()
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    admin.delete_consumer_groups([task.marker_group])[task.marker_group].result(30)
    assert write(broker, topic, task, "a") == 0
    assert write(broker, topic, task._replace(batch_id=8), "b") == 1
    assert committed_values(broker.bootstrap, topic) == ["a", "b"]


@pytest.mark.usefixtures("sessions")
def test_a_transaction_that_somebody_left_open_does_not_hold_up_a_new_query(
    broker: PenstockBroker, make_topic: MakeTopic
) -> None:
    topic = make_topic()
    task = Task(f"{topic}-dead", 0, 0)
    dead = opened(broker, task)

    def unfinished() -> Iterator[pa.RecordBatch]:
        yield from rows("never")
        # Its transaction is open now, in the topic of markers as well.
        assert write(broker, topic, Task(topic, 0, 0), "a") == 1
        raise RuntimeError("killed")

    with pytest.raises(RuntimeError, match="killed"):
        dead.write(task, unfinished(), VALUE_ONLY, topic)
    dead.close()
    assert committed_values(broker.bootstrap, topic) == ["a"]


@pytest.mark.usefixtures("sessions")
def test_a_batch_that_comes_again_with_other_rows_in_a_task_is_refused(
    broker: PenstockBroker, make_topic: MakeTopic
) -> None:
    topic = make_topic()
    write(broker, topic, Task(topic, 3, 0), "a", "b", "c")
    with pytest.raises(
        NotTheSameBatch, match="batch 3 had 3 rows in task 0 when it was written, and now it has 2"
    ):
        write(broker, topic, Task(topic, 3, 0), "a", "b")
    assert write(broker, topic, Task(topic, 3, 0), "x", "y", "z") == 0


@pytest.mark.usefixtures("sessions")
def test_a_batch_that_comes_again_with_fewer_tasks_is_refused(
    broker: PenstockBroker, make_topic: MakeTopic
) -> None:
    topic = make_topic()
    write(broker, topic, Task(topic, 3, 4), "e")
    options = write_options(
        {"kafka.bootstrap.servers": broker.bootstrap, "topic": topic, "exactlyOnce": "true"}
    )
    outcome = write_once(
        Task(topic, 3, 0), rows("a"), columns=VALUE_ONLY, topic=topic, properties=options.properties
    )
    writer = TopicStreamWriter(options, StructType([StructField("value", StringType())]))
    writer.commit([Written(outcome)] * 5, 3)
    with pytest.raises(
        NotTheSameBatch, match="batch 3 had 5 tasks when it was first written, and now it has 2"
    ):
        writer.commit([Written(outcome)] * 2, 3)


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

    def copy(frame: object, batch_id: int) -> None:
        to_topic(out, bootstrap=broker.bootstrap, exactly_once=True)(frame.select("value"), batch_id)  # type: ignore[attr-defined]

    for _ in range(2):
        stream = stream_topic(source, startingOffsets="earliest").writeStream.foreachBatch(copy)
        finish(stream.option("checkpointLocation", str(tmp_path)).trigger(availableNow=True).start())
        forget_commit(tmp_path, 0)  # as a driver that is killed before Spark has noted the batch
    assert values(read_topic(out, kafka_isolation_level="read_committed")) == [f"{n}" for n in range(5)]


def forget_commit(checkpoint: Path, batch_id: int) -> None:
    (checkpoint / "commits" / f"{batch_id}").unlink()
    (checkpoint / "commits" / f".{batch_id}.crc").unlink(missing_ok=True)


def test_two_writes_of_a_batch_under_one_name_are_an_error(
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
        for text in ("value", "upper(cast(value as string)) as value"):
            to_topic(out, bootstrap=broker.bootstrap, exactly_once=True)(frame.selectExpr(text), batch_id)  # type: ignore[attr-defined]

    stream = stream_topic(source, startingOffsets="earliest").writeStream.foreachBatch(twice)
    with pytest.raises(Exception, match="batch 0 is written a second time as"):
        finish(stream.option("checkpointLocation", str(tmp_path)).trigger(availableNow=True).start())


@pytest.mark.usefixtures("sessions")
def test_a_checkpoint_that_went_back_is_an_error_and_no_replay(
    broker: PenstockBroker, make_topic: MakeTopic
) -> None:
    topic = make_topic()
    for batch_id in range(4):
        write(broker, topic, Task(topic, batch_id, 0), f"{batch_id}")
    exactly_once._sessions.clear()
    with pytest.raises(CheckpointWentBack, match="is at batch 1, but batch 3 of"):
        write(broker, topic, Task(topic, 1, 0), "new")
    assert write(broker, topic, Task(topic, 3, 0), "3") == 0
    assert committed_values(broker.bootstrap, topic) == ["0", "1", "2", "3"]


def test_a_copied_checkpoint_that_writes_elsewhere_writes_all(
    spark: SparkSession,
    broker: PenstockBroker,
    make_topic: MakeTopic,
    stream_topic: ReadTopic,
    read_topic: ReadTopic,
    tmp_path: Path,
) -> None:
    source, first, second = make_topic(), make_topic(), make_topic()

    def run(checkpoint: Path, out: str) -> None:
        stream = (
            stream_topic(source, startingOffsets="earliest").select("value").writeStream.format("penstock")
        )
        stream = stream.option("kafka.bootstrap.servers", broker.bootstrap).option("topic", out)
        stream = stream.option("exactlyOnce", "true").option("checkpointLocation", str(checkpoint))
        finish(stream.trigger(availableNow=True).start())

    produce(broker.bootstrap, source, [{"value": "a"}])
    run(tmp_path / "one", first)
    shutil.copytree(tmp_path / "one", tmp_path / "two")
    for value in ("b", "c"):
        produce(broker.bootstrap, source, [{"value": value}])
        run(tmp_path / "one", first)
    run(tmp_path / "two", second)
    assert values(read_topic(first, kafka_isolation_level="read_committed")) == ["a", "b", "c"]
    assert values(read_topic(second, kafka_isolation_level="read_committed")) == ["b", "c"]


@pytest.mark.usefixtures("sessions")
def test_a_client_that_hangs_is_left_behind(
    broker: PenstockBroker, make_topic: MakeTopic, monkeypatch: pytest.MonkeyPatch
) -> None:
    topic = make_topic()
    hung: list[threading.Event] = []
    call = exactly_once.call_within

    def hang_once(step: Callable[[], object], timeout_s: float) -> None:
        if not hung:
            hung.append(threading.Event())
            call(hung[0].wait, 0.01)
        call(step, timeout_s)

    monkeypatch.setattr(exactly_once, "call_within", hang_once)
    try:
        assert write(broker, topic, Task(topic, 0, 0), "a") == 1
    finally:
        hung[0].set()
    assert committed_values(broker.bootstrap, topic) == ["a"]


@pytest.mark.usefixtures("sessions")
def test_the_seventeenth_task_is_not_taken_for_the_first_of_another_topic(
    broker: PenstockBroker, make_topic: MakeTopic
) -> None:
    topic = make_topic()
    assert write(broker, topic, Task(f"q-{topic}", 0, 17), "a") == 1
    assert write(broker, topic, Task(f"q-{topic}-1", 0, 1), "b") == 1
    assert committed_values(broker.bootstrap, topic) == ["a", "b"]


@pytest.mark.usefixtures("sessions")
def test_a_task_that_is_new_to_a_query_knows_by_the_others_that_the_checkpoint_went_back(
    broker: PenstockBroker, make_topic: MakeTopic
) -> None:
    topic = make_topic()
    for batch_id in range(3):
        write(broker, topic, Task(topic, batch_id, 0), f"{batch_id}")
    with pytest.raises(CheckpointWentBack, match="is at batch 1, but batch 2 of"):
        write(broker, topic, Task(topic, 1, 1), "again")
    assert write(broker, topic, Task(topic, 2, 1), "new") == 1
    assert committed_values(broker.bootstrap, topic) == ["0", "1", "2", "new"]


@pytest.mark.usefixtures("sessions")
def test_a_topic_of_markers_that_somebody_else_made_is_refused(start_broker: StartBroker) -> None:
    own = start_broker()
    create_topic(own.bootstrap, MARKER_TOPIC)
    with pytest.raises(NotWritten) as refused:
        write(own, "out", Task("q", 0, 0), "a")
    assert "it has cleanup.policy=delete and 1 partitions" in str(refused.value)
    assert "needs cleanup.policy=compact and 16. Alter it" in str(refused.value)


@pytest.mark.usefixtures("sessions")
def test_a_topic_of_markers_that_is_deleted_under_a_worker_is_made_again(start_broker: StartBroker) -> None:
    own = start_broker()
    create_topic(own.bootstrap, "out")
    assert write(own, "out", Task("q", 0, 0), "a") == 1
    delete_topic(own.bootstrap, MARKER_TOPIC)
    assert write(own, "out", Task("q", 1, 0), "b") == 1
    assert write(own, "out", Task("q", 1, 0), "b") == 0
    assert topic_configs(own.bootstrap, MARKER_TOPIC)["cleanup.policy"] == "compact"
    assert committed_values(own.bootstrap, "out") == ["a", "b"]


@pytest.mark.usefixtures("sessions")
def test_a_task_does_not_wait_for_the_transaction_that_another_task_left_open(
    broker: PenstockBroker, make_topic: MakeTopic, monkeypatch: pytest.MonkeyPatch
) -> None:
    # As of a driver that was killed, whose successor has fewer cores than tasks: the other task comes when this one is done.
    topic = make_topic()
    monkeypatch.setattr(markers, "OPERATION_TIMEOUT_S", 5.0)
    monkeypatch.setattr(markers, "PATIENCE_S", 5.0)
    dead = opened(broker, Task(topic, 0, 1))
    dead._producer.begin_transaction()
    dead._send_marker(Marker(1, 0))
    assert write(broker, topic, Task(topic, 0, 0), "a") == 1
    assert write(broker, topic, Task(topic, 0, 1), "b") == 1
    dead.close()
    assert committed_values(broker.bootstrap, topic) == ["a", "b"]
