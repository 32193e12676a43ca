"""Topics that lose records, go, come back under their name and grow, under streams that read them."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from confluent_kafka.admin import NewPartitions
from pyspark.sql import SparkSession
from pyspark.sql.streaming import StreamingQuery

from penstock.client.errors import ReadFailed
from penstock.client.fetching import Range, fetch
from penstock.client.options import client_options
from penstock.client.topics import Client
from penstock.spark.failures import DataLoss
from penstock.spark.source import PenstockDataSource
from penstock.testing.penstock_broker import PenstockBroker
from tests.clients.admin import admin_client, create_topic, delete_records, delete_topic
from tests.clients.driver import WAIT_S
from tests.conftest import MakeTopic, StartBroker
from tests.spark.conftest import QUERY_TIMEOUT_S, ReadTopic, finish, produce


class Reader:
    """Starts a query over topics again and again with one checkpoint, and knows the values that it has read."""

    def __init__(self, spark: SparkSession, stream_topic: ReadTopic, directory: Path) -> None:
        self._spark = spark
        self._stream_topic = stream_topic
        self._directory = directory

    def start(self, *topics: str, available_now: bool = False, **options: str) -> StreamingQuery:
        """Every value becomes a line of a file."""
        given = {"startingOffsets": "earliest", **options}
        stream = self._stream_topic(",".join(topics), **given).selectExpr("cast(value as string) value")
        writer = stream.writeStream.format("text").option("path", str(self._directory / "out"))
        writer = writer.option("checkpointLocation", str(self._directory / "checkpoint"))
        return (writer.trigger(availableNow=True) if available_now else writer).start()

    def catch_up(self, *topics: str, **options: str) -> None:
        """Reads what is there and ends; as after a restart, if it has run before."""
        finish(self.start(*topics, available_now=True, **options))

    def fails(self, message: str, *topics: str, **options: str) -> None:
        with pytest.raises(Exception, match="failOnDataLoss") as failure:
            self.catch_up(*topics, **options)
        assert message in str(failure.value)

    def values(self) -> list[str]:
        if not (self._directory / "out" / "_spark_metadata").exists():
            return []
        return sorted(row.value for row in self._spark.read.text(str(self._directory / "out")).collect())

    def waits_for(self, query: StreamingQuery, values: list[str]) -> None:
        deadline_s = time.monotonic() + QUERY_TIMEOUT_S
        while (found := self.values()) != values:
            assert query.isActive, f"the query ended: {query.exception()}"
            assert time.monotonic() < deadline_s, f"the query has read {found}"
            time.sleep(0.2)


@pytest.fixture
def reader(spark: SparkSession, stream_topic: ReadTopic, tmp_path: Path) -> Reader:
    return Reader(spark, stream_topic, tmp_path)


Send = Callable[..., None]


@pytest.fixture
def send(broker: PenstockBroker) -> Send:
    def send(topic: str, *values: str, partition: int = 0) -> None:
        produce(broker.bootstrap, topic, [{"value": value, "partition": partition} for value in values])

    return send


def anew(broker: PenstockBroker, topic: str) -> None:
    delete_topic(broker.bootstrap, topic)
    create_topic(broker.bootstrap, topic)


def test_records_that_were_deleted_before_they_were_read_fail_a_query_unless_that_is_allowed(
    broker: PenstockBroker, make_topic: MakeTopic, reader: Reader, send: Send
) -> None:
    topic = make_topic()
    send(topic, "0", "1")
    reader.catch_up(topic)
    send(topic, "2", "3", "4")
    delete_records(broker.bootstrap, topic, 0, 4)
    reader.fails(f"the records of {topic}-0 from 2 to before 4 are gone", topic)
    reader.catch_up(topic, failOnDataLoss="false")
    send(topic, "5")
    reader.catch_up(topic)
    assert reader.values() == ["0", "1", "4", "5"]


def test_a_topic_made_anew_is_noticed_though_it_is_longer_than_the_one_that_was_read(
    broker: PenstockBroker, make_topic: MakeTopic, reader: Reader, send: Send
) -> None:
    topic = make_topic()
    send(topic, "old 0", "old 1")
    reader.catch_up(topic)
    anew(broker, topic)
    send(topic, "new 0", "new 1", "new 2")
    reader.fails(f"the topic '{topic}' was deleted and created anew", topic)
    reader.catch_up(topic, failOnDataLoss="false")
    send(topic, "new 3")
    reader.catch_up(topic)
    assert reader.values() == ["new 0", "new 1", "new 2", "new 3", "old 0", "old 1"]


def test_a_log_that_lost_its_last_records_is_read_on_behind_them_if_that_is_allowed(
    start_broker: StartBroker, reader: Reader, topic_name: str
) -> None:
    broker = start_broker(name="crashed")
    cluster = {"kafka.bootstrap.servers": broker.bootstrap}
    create_topic(broker.bootstrap, topic_name)
    (log,) = (broker.data_dir / f"{topic_name}-0").glob("*.log")
    produce(broker.bootstrap, topic_name, [{"value": "0"}])
    size_bytes = len(log.read_bytes())
    produce(broker.bootstrap, topic_name, [{"value": "1"}, {"value": "lost 2"}])
    reader.catch_up(topic_name, **cluster)
    broker.kill()
    os.truncate(log, size_bytes)
    start_broker(name="crashed", port=broker.port)
    reader.fails(f"the end of {topic_name}-0 went back from 3 to 1", topic_name, **cluster)
    reader.catch_up(topic_name, failOnDataLoss="false", **cluster)
    produce(broker.bootstrap, topic_name, [{"value": "2"}])
    reader.catch_up(topic_name, **cluster)
    assert reader.values() == ["0", "1", "2", "lost 2"]


def test_a_topic_made_anew_is_read_on_by_a_running_query_that_may_lose_data(
    broker: PenstockBroker, make_topic: MakeTopic, reader: Reader, send: Send
) -> None:
    topic, other = make_topic(), make_topic()
    send(topic, "old")
    query = reader.start(topic, other, failOnDataLoss="false")
    try:
        reader.waits_for(query, ["old"])
        delete_topic(broker.bootstrap, topic)
        send(other, "while it was gone")
        reader.waits_for(query, ["old", "while it was gone"])
        create_topic(broker.bootstrap, topic)
        send(topic, "new")
        reader.waits_for(query, ["new", "old", "while it was gone"])
    finally:
        query.stop()


def test_a_deleted_topic_ends_a_running_query_that_may_not_lose_data(
    broker: PenstockBroker, make_topic: MakeTopic, reader: Reader, send: Send
) -> None:
    topic, other = make_topic(), make_topic()
    send(topic, "old")
    query = reader.start(topic, other)
    try:
        reader.waits_for(query, ["old"])
        delete_topic(broker.bootstrap, topic)
        with pytest.raises(Exception, match=f"the partition {topic}-0 is gone"):
            query.awaitTermination(QUERY_TIMEOUT_S)
    finally:
        query.stop()
    reader.fails(f"the partition {topic}-0 is gone", topic, other)
    send(other, "more")
    reader.catch_up(topic, other, failOnDataLoss="false")
    assert reader.values() == ["more", "old"]


def test_a_batch_that_was_planned_before_its_topic_was_made_anew_is_not_read_from_the_new_one(
    broker: PenstockBroker, make_topic: MakeTopic, reader: Reader, send: Send, tmp_path: Path
) -> None:
    topic = make_topic()
    send(topic, "0", "1")
    reader.catch_up(topic)
    # As if the driver had been killed in the middle of the batch: it is planned and not committed.
    (tmp_path / "checkpoint" / "commits" / "0").unlink()
    (tmp_path / "checkpoint" / "commits" / ".0.crc").unlink(missing_ok=True)
    anew(broker, topic)
    send(topic, "new 0", "new 1", "new 2")
    reader.fails(f"the topic '{topic}' was deleted and created anew", topic)
    reader.catch_up(topic, failOnDataLoss="false")
    # The batch that was there already is not written again by Spark's own sink; the new records come behind it.
    assert reader.values() == ["0", "1", "new 0", "new 1", "new 2"]


def test_a_task_does_not_read_from_a_topic_that_took_the_place_of_its_own(
    broker: PenstockBroker, make_topic: MakeTopic, send: Send
) -> None:
    topic = make_topic()
    send(topic, "0", "1")
    options = {"kafka.bootstrap.servers": broker.bootstrap, "subscribe": topic}
    strict, lenient = (
        PenstockDataSource({**options, "failOnDataLoss": value}) for value in ("true", "false")
    )
    (task,) = strict.reader(strict.schema()).partitions()
    assert len(list(strict.reader(strict.schema()).read(task))) == 1
    anew(broker, topic)
    send(topic, "new 0", "new 1", "new 2")
    with pytest.raises(DataLoss, match=f"{topic}-0 was deleted"):
        list(strict.reader(strict.schema()).read(task))
    assert list(lenient.reader(lenient.schema()).read(task)) == []


def test_new_partitions_are_read_from_their_beginning_and_after_a_restart_from_where_they_were(
    broker: PenstockBroker, make_topic: MakeTopic, reader: Reader, send: Send
) -> None:
    topic = make_topic()
    send(topic, "0")
    reader.catch_up(topic)
    admin = admin_client(broker.bootstrap)
    admin.create_partitions([NewPartitions(topic, 3)])[topic].result(WAIT_S)
    send(topic, "1", partition=1)
    reader.catch_up(topic, maxOffsetsPerTrigger="1")
    send(topic, "2", partition=1)
    send(topic, "3", partition=2)
    reader.catch_up(topic)
    assert reader.values() == ["0", "1", "2", "3"]


@pytest.mark.parametrize("isolation_level", [0, 1])
def test_a_log_that_ends_before_a_range_fails_the_read_after_its_deadline(
    broker: PenstockBroker, make_topic: MakeTopic, send: Send, isolation_level: int
) -> None:
    """A log that lost its last records, in a crash of its only disk: to the reader it is the same."""
    topic = make_topic()
    send(topic, "0", "1")
    client = Client(
        client_options(broker.bootstrap, {"default.api.timeout.ms": 500, "fetch.max.wait.ms": 50})
    )
    try:
        pieces = fetch(client, client.topic(topic), {0: Range(0, 5)}, isolation_level=isolation_level)
        assert next(pieces).partition == 0
        with pytest.raises(ReadFailed, match=f"{topic}-0: it ends at 2, though records up to 5 were there"):
            next(pieces)
    finally:
        client.close()
