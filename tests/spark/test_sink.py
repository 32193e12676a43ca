"""Writes: columns, partitions, and what is refused."""

from __future__ import annotations

import pytest
from aiokafka.partitioner import murmur2
from pyspark.sql import DataFrame, SparkSession

from penstock.testing.penstock_broker import PenstockBroker
from tests.conftest import MakeTopic
from tests.spark.conftest import ReadTopic, values


def write(frame: DataFrame, bootstrap: str, **options: str) -> None:
    writer = frame.write.format("penstock").option("kafka.bootstrap.servers", bootstrap)
    writer.options(**{name.replace("_", "."): value for name, value in options.items()}).mode("append").save()


def test_keys_values_and_headers_arrive_as_they_were(
    spark: SparkSession, broker: PenstockBroker, make_topic: MakeTopic, read_topic: ReadTopic
) -> None:
    topic = make_topic()
    rows = [
        (bytearray(b"k"), "v", [("a", bytearray(b"1")), ("n", None)]),
        (None, None, None),
        (bytearray(b""), "", []),
    ]
    schema = "key binary, value string, headers array<struct<key string, value binary>>"
    write(spark.createDataFrame(rows, schema).coalesce(1), broker.bootstrap, topic=topic)
    found = read_topic(topic, includeHeaders="true").select("key", "value", "headers").collect()
    assert [tuple(map(_plain, row)) for row in found] == [
        (b"k", b"v", [("a", b"1"), ("n", None)]),
        (None, None, None),
        (b"", b"", None),
    ]


def _plain(cell: object) -> object:
    if isinstance(cell, list):
        return [(each.key, _plain(each.value)) for each in cell]
    return bytes(cell) if isinstance(cell, bytes | bytearray) else cell


def test_keys_go_where_the_java_client_puts_them(
    spark: SparkSession, broker: PenstockBroker, make_topic: MakeTopic, read_topic: ReadTopic
) -> None:
    topic = make_topic(partitions=6)
    write(spark.range(500).selectExpr("concat('key-', id) key", "'v' value"), broker.bootstrap, topic=topic)
    found = read_topic(topic).select("key", "partition").collect()
    assert len(found) == 500
    assert all(row.partition == (murmur2(bytes(row.key)) & 0x7FFFFFFF) % 6 for row in found)


def test_rows_may_say_their_topic_and_partition(
    spark: SparkSession, broker: PenstockBroker, make_topic: MakeTopic, read_topic: ReadTopic
) -> None:
    one, two = make_topic(partitions=3), make_topic(partitions=3)
    rows = [(one, 2, "a"), (two, 1, "b"), (one, 0, "c")]
    write(spark.createDataFrame(rows, "topic string, partition int, value string"), broker.bootstrap)
    found = read_topic(f"{one},{two}").selectExpr("topic", "partition", "cast(value as string) v").collect()
    assert {tuple(row) for row in found} == set(rows)


def test_rows_of_one_partition_keep_their_order(
    spark: SparkSession, broker: PenstockBroker, make_topic: MakeTopic, read_topic: ReadTopic
) -> None:
    topic = make_topic()
    frame = spark.range(0, 60_000, 1, 1).selectExpr("cast(id as string) value")
    write(frame, broker.bootstrap, topic=topic)
    found = [int(bytes(row.value)) for row in read_topic(topic).orderBy("offset").select("value").collect()]
    assert found == list(range(60_000))


def test_a_batch_is_written_once_in_transactions(
    spark: SparkSession, broker: PenstockBroker, make_topic: MakeTopic, read_topic: ReadTopic
) -> None:
    topic = make_topic(partitions=2)
    frame = spark.range(0, 100, 1, 3).selectExpr("cast(id as string) value")
    write(frame, broker.bootstrap, topic=topic, exactlyOnce="true")
    committed = read_topic(topic, kafka_isolation_level="read_committed")
    assert values(committed) == sorted(str(number) for number in range(100))


@pytest.mark.parametrize(
    ("query", "options", "message"),
    [
        ("'v' value", {}, "option 'topic' must name the topic"),
        ("'k' key", {"topic": "t"}, "a column 'value' is needed"),
        ("1 value", {"topic": "t"}, "column 'value' must be string or binary, not int"),
        ("'v' value, 1L partition", {"topic": "t"}, "column 'partition' must be int, not bigint"),
        ("'v' value, array('a') headers", {"topic": "t"}, "column 'headers' must be array<struct<"),
        ("'v' value", {"topic": "t", "exactlyonce": "often"}, "option 'exactlyOnce' must be true or false"),
        ("'v' value", {"topic": "t", "compression": "lz4"}, "option 'compression' is unknown"),
    ],
)
def test_what_cannot_be_written_is_told_before_the_first_row(
    spark: SparkSession, broker: PenstockBroker, query: str, options: dict[str, str], message: str
) -> None:
    with pytest.raises(Exception, match="PYTHON_DATA_SOURCE_ERROR") as failure:
        write(spark.sql(f"select {query}"), broker.bootstrap, **options)
    assert message in str(failure.value)


def test_a_topic_is_not_overwritten(spark: SparkSession, broker: PenstockBroker) -> None:
    writer = spark.sql("select 'v' value").write.format("penstock").option("topic", "t")
    with pytest.raises(Exception, match="a topic cannot be overwritten"):
        writer.option("kafka.bootstrap.servers", broker.bootstrap).mode("overwrite").save()


def test_a_row_that_is_too_large_fails_the_write_with_its_topic(
    spark: SparkSession, broker: PenstockBroker, make_topic: MakeTopic
) -> None:
    topic = make_topic(configs={"max.message.bytes": "1000"})
    with pytest.raises(Exception, match=f"the topic '{topic}' does not take a row"):
        write(spark.sql("select repeat('x', 5000) value"), broker.bootstrap, topic=topic)
