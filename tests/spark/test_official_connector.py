"""Spark's own connector, `format("kafka")`, over our broker: the pair of versions that is pinned, and what users do with it."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import pyspark
import pytest
from confluent_kafka.admin import NewPartitions
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming import StreamingQuery

from penstock.spark.connector import JARS
from penstock.testing.penstock_broker import PenstockBroker
from tests.clients.admin import admin_client, delete_records
from tests.clients.driver import WAIT_S
from tests.conftest import MakeTopic
from tests.spark.conftest import QUERY_TIMEOUT_S, ReadTopic, finish, produce, values

Connector = Callable[..., StreamingQuery]


def test_the_versions_are_those_that_were_tested_together() -> None:
    versions = {jar.artifact.removesuffix("_2.13"): jar.version for jar in JARS}
    assert pyspark.__version__ == "4.3.0"
    assert versions["spark-sql-kafka-0-10"] == "4.2.0"
    assert versions["kafka-clients"] == "3.9.2"


@pytest.fixture
def copy(spark: SparkSession, broker: PenstockBroker, tmp_path: Path) -> Connector:
    """`copy("in", "out")` starts a stream from topic to topic; its checkpoint is the test's own."""
    cluster = {"kafka.bootstrap.servers": broker.bootstrap}

    def start(source: str, out: str, *, available_now: bool = True, **options: str) -> StreamingQuery:
        given = {"subscribe": source, "startingOffsets": "earliest", "kafka.metadata.max.age.ms": "500"}
        stream = spark.readStream.format("kafka").options(**cluster, **given, **options).load()
        writer = stream.select("key", "value").writeStream.format("kafka").options(**cluster, topic=out)
        writer = writer.option("checkpointLocation", str(tmp_path / "checkpoint"))
        return (writer.trigger(availableNow=True) if available_now else writer).start()

    return start


def test_a_batch_is_written_and_read(
    spark: SparkSession, broker: PenstockBroker, make_topic: MakeTopic
) -> None:
    topic = make_topic(partitions=3)
    cluster = {"kafka.bootstrap.servers": broker.bootstrap}
    frame = spark.range(300).selectExpr("cast(id as string) key", "concat('v', id) value")
    frame.write.format("kafka").options(**cluster, topic=topic, **{"kafka.compression.type": "zstd"}).save()
    found: DataFrame = spark.read.format("kafka").options(**cluster, subscribe=topic).load()
    assert values(found) == sorted(f"v{n}" for n in range(300))


def test_a_stream_goes_on_where_its_checkpoint_ends_also_in_partitions_that_are_new(
    broker: PenstockBroker, make_topic: MakeTopic, read_topic: ReadTopic, copy: Connector
) -> None:
    source, out = make_topic(), make_topic()
    produce(broker.bootstrap, source, [{"value": "0"}])
    query = copy(source, out, available_now=False)
    try:
        wait_for(query, lambda: values(read_topic(out)) == ["0"])
        admin = admin_client(broker.bootstrap)
        admin.create_partitions([NewPartitions(source, 2)])[source].result(WAIT_S)
        produce(broker.bootstrap, source, [{"value": "1", "partition": 1}])
        wait_for(query, lambda: values(read_topic(out)) == ["0", "1"])
    finally:
        query.stop()
    produce(broker.bootstrap, source, [{"value": "2", "partition": 1}, {"value": "3", "partition": 0}])
    finish(copy(source, out))
    assert values(read_topic(out)) == ["0", "1", "2", "3"]


def wait_for(query: StreamingQuery, condition: Callable[[], bool]) -> None:
    deadline_s = time.monotonic() + QUERY_TIMEOUT_S
    while not condition():
        assert query.isActive, f"the query ended: {query.exception()}"
        assert time.monotonic() < deadline_s, "the query has not read what was written"
        time.sleep(0.2)


def test_records_that_are_gone_fail_a_stream_unless_that_is_allowed(
    broker: PenstockBroker, make_topic: MakeTopic, read_topic: ReadTopic, copy: Connector
) -> None:
    source, out = make_topic(), make_topic()
    produce(broker.bootstrap, source, [{"value": f"{n}"} for n in range(2)])
    finish(copy(source, out))
    produce(broker.bootstrap, source, [{"value": f"{n}"} for n in range(2, 6)])
    delete_records(broker.bootstrap, source, 0, 4)
    with pytest.raises(Exception, match="failOnDataLoss"):
        finish(copy(source, out))
    finish(copy(source, out, failOnDataLoss="false"))
    assert values(read_topic(out)) == ["0", "1", "4", "5"]
