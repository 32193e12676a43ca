"""Streams: restarts, limits, what comes and goes while reading, and what others see of it."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient, NewPartitions
from prometheus_client import CollectorRegistry
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming import StreamingQuery

from penstock.spark import ProgressListener
from penstock.testing.penstock_broker import PenstockBroker
from tests.clients.admin import create_topic
from tests.clients.processors import committed
from tests.conftest import MakeTopic
from tests.spark.conftest import QUERY_TIMEOUT_S, ReadTopic, finish, produce, values

Copy = Callable[..., StreamingQuery]


@pytest.fixture
def copy(broker: PenstockBroker, tmp_path: Path) -> Copy:
    """`copy(stream, "out")` starts a query that writes a stream to a topic; its checkpoint is the test's own."""

    def start(frame: DataFrame, topic: str, *, available_now: bool = True, **options: str) -> StreamingQuery:
        writer = frame.select("key", "value").writeStream.format("penstock")
        writer = writer.option("kafka.bootstrap.servers", broker.bootstrap).option("topic", topic)
        writer = writer.option("checkpointLocation", str(tmp_path / "checkpoint")).options(**options)
        if available_now:
            writer = writer.trigger(availableNow=True)
        return writer.start()

    return start


def wait_for(query: StreamingQuery, condition: Callable[[], bool], what: str) -> None:
    deadline_s = time.monotonic() + QUERY_TIMEOUT_S
    while not condition():
        assert query.isActive, f"the query ended: {query.exception()}"
        assert time.monotonic() < deadline_s, f"not in time: {what}"
        time.sleep(0.1)


def test_a_query_goes_on_where_its_checkpoint_ends(
    broker: PenstockBroker,
    make_topic: MakeTopic,
    read_topic: ReadTopic,
    stream_topic: ReadTopic,
    copy: Copy,
    tmp_path: Path,
) -> None:
    source, out = make_topic(partitions=2), make_topic()
    produce(broker.bootstrap, source, [{"value": f"{n:03}"} for n in range(100)])
    options = {"startingOffsets": "earliest", "commit.group": f"{source}-group"}
    finish(copy(stream_topic(source, **options), out))
    produce(broker.bootstrap, source, [{"value": f"{n:03}"} for n in range(100, 150)])
    finish(copy(stream_topic(source, **options), out))
    assert values(read_topic(out)) == [f"{n:03}" for n in range(150)]
    assert f'{{"{source}": {{"0": ' in (tmp_path / "checkpoint" / "offsets" / "1").read_text()


def test_the_offsets_of_a_query_are_seen_in_its_group(
    broker: PenstockBroker, make_topic: MakeTopic, stream_topic: ReadTopic, copy: Copy
) -> None:
    source, out = make_topic(), make_topic()
    produce(broker.bootstrap, source, [{"value": "v"}] * 30)
    stream = stream_topic(source, startingOffsets="earliest", commit_group=f"{source}-group")
    finish(copy(stream, out))
    assert committed(broker.bootstrap, f"{source}-group", source) == 30


def test_a_limit_makes_several_batches_of_what_is_available_now(
    broker: PenstockBroker, make_topic: MakeTopic, read_topic: ReadTopic, stream_topic: ReadTopic, copy: Copy
) -> None:
    source, out = make_topic(partitions=2), make_topic()
    produce(broker.bootstrap, source, [{"value": f"{n:03}"} for n in range(100)])
    query = copy(stream_topic(source, startingOffsets="earliest", maxOffsetsPerTrigger="40"), out)
    finish(query)
    assert [progress.numInputRows for progress in query.recentProgress if progress.numInputRows] == [
        40,
        40,
        20,
    ]
    assert values(read_topic(out)) == [f"{n:03}" for n in range(100)]


def test_new_partitions_and_topics_are_read_from_their_beginning(
    spark: SparkSession,
    broker: PenstockBroker,
    make_topic: MakeTopic,
    read_topic: ReadTopic,
    stream_topic: ReadTopic,
    copy: Copy,
) -> None:
    source, out = make_topic(), make_topic()
    registry = CollectorRegistry()
    listener = ProgressListener(registry=registry)
    spark.streams.addListener(listener)
    query = copy(
        stream_topic(subscribePattern=f"{source}.*", startingOffsets="earliest"), out, available_now=False
    )
    try:
        produce(broker.bootstrap, source, [{"value": "first"}])
        wait_for(query, lambda: values(read_topic(out)) == ["first"], "the first record")
        admin = AdminClient({"bootstrap.servers": broker.bootstrap})
        admin.create_partitions([NewPartitions(source, 2)])[source].result(10)
        create_topic(broker.bootstrap, f"{source}-new")
        produce(broker.bootstrap, source, [{"value": "partition", "partition": 1}])
        produce(broker.bootstrap, f"{source}-new", [{"value": "topic"}])
        wait_for(query, lambda: values(read_topic(out)) == ["first", "partition", "topic"], "new places")
        labels = {"query": str(query.id)[:8], "id": str(query.id)}
        wait_for(
            query, lambda: registry.get_sample_value("penstock_spark_rows_total", labels) == 3, "metrics"
        )
        assert registry.get_sample_value("penstock_spark_lag", labels) == 0
    finally:
        query.stop()
        spark.streams.removeListener(listener)


def test_a_query_that_waits_for_enough_records_waits_no_longer_than_it_is_told(
    broker: PenstockBroker, make_topic: MakeTopic, read_topic: ReadTopic, stream_topic: ReadTopic, copy: Copy
) -> None:
    source, out = make_topic(), make_topic()
    options = {"startingOffsets": "earliest", "minOffsetsPerTrigger": "1000", "maxTriggerDelay": "2s"}
    query = copy(stream_topic(source, **options), out, available_now=False)
    try:
        produce(broker.bootstrap, source, [{"value": "few"}])
        wait_for(query, lambda: values(read_topic(out)) == ["few"], "the record that waited")
    finally:
        query.stop()


def test_a_stream_with_an_end_is_refused_by_the_options_name(
    stream_topic: ReadTopic, make_topic: MakeTopic, copy: Copy
) -> None:
    topic = make_topic()
    with pytest.raises(Exception, match="option 'endingOffsets' is for batch reads"):
        finish(copy(stream_topic(topic, endingOffsets="latest"), topic))
