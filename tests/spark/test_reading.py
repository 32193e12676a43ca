"""Batch reads: the rows are those that another client reads."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from pyspark.sql import DataFrame, SparkSession

from penstock.testing.penstock_broker import PenstockBroker
from tests.conftest import MakeTopic
from tests.spark.conftest import ReadTopic, produce, values

SCHEMA = "key binary, value binary, topic string, partition int, offset bigint, timestamp timestamp, timestampType int"
RECORDS: list[dict[str, Any]] = [
    {"key": b"k", "value": b"v", "timestamp": 1_700_000_000_123},
    {"key": None, "value": b"no key", "timestamp": 0},
    {"key": b"no value", "value": None},
    {"key": b"", "value": b""},
    {"value": b"headers", "headers": [("a", b"1"), ("a", b"2"), ("null", None), ("ü", b"")]},
    {"value": b"x" * 100_000},
]


def rows(frame: DataFrame) -> list[tuple[Any, ...]]:
    """As plain tuples, in the order of the log."""
    plain = frame.selectExpr(
        "key", "value", "topic", "partition", "offset", "unix_millis(timestamp) as ms", "timestampType",
        *(["headers"] if "headers" in frame.columns else []),
    )  # fmt: skip
    found = [
        (
            *(None if cell is None else bytes(cell) for cell in row[:2]),
            *row[2:7],
            *([_headers(row.headers)] if "headers" in frame.columns else []),
        )
        for row in plain.collect()
    ]
    return sorted(found, key=lambda row: row[2:5])


def _headers(headers: Any) -> list[tuple[str, bytes | None]] | None:
    if headers is None:
        return None
    return [(each.key, None if each.value is None else bytes(each.value)) for each in headers]


def read_with_confluent(bootstrap: str, topic: str, count: int) -> list[tuple[Any, ...]]:
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "unused", "enable.auto.commit": False})
    partitions = consumer.list_topics(topic, timeout=10).topics[topic].partitions
    consumer.assign([TopicPartition(topic, partition, 0) for partition in partitions])
    found = []
    while len(found) < count:
        message = consumer.poll(10)
        assert message is not None, f"{count - len(found)} records are missing"
        kind, timestamp_ms = message.timestamp()
        found.append(
            (message.key(), message.value(), topic, message.partition(), message.offset(), timestamp_ms,
             kind - 1, message.headers())
        )  # fmt: skip
    consumer.close()
    return sorted(found, key=lambda row: row[2:5])


def test_the_columns_are_those_of_sparks_kafka_source(make_topic: MakeTopic, read_topic: ReadTopic) -> None:
    topic = make_topic()
    assert read_topic(topic).schema.simpleString() == f"struct<{SCHEMA.replace(' ', ':').replace(',:', ',')}>"
    with_headers = read_topic(topic, includeHeaders="true").schema
    assert with_headers["headers"].dataType.simpleString() == "array<struct<key:string,value:binary>>"
    assert all(field.nullable for field in with_headers)


def test_rows_of_every_codec_are_what_confluent_reads(
    broker: PenstockBroker, make_topic: MakeTopic, read_topic: ReadTopic
) -> None:
    topics = {codec: make_topic(partitions=2) for codec in ("none", "gzip", "snappy", "lz4", "zstd")}
    expected = []
    for codec, topic in topics.items():
        produce(broker.bootstrap, topic, RECORDS * 3, **{"compression.type": codec})
        expected += read_with_confluent(broker.bootstrap, topic, len(RECORDS) * 3)
    found = rows(read_topic(",".join(topics.values()), includeHeaders="true"))
    assert found == sorted(expected, key=lambda row: row[2:5])


def test_the_brokers_time_is_told_as_such(
    broker: PenstockBroker, make_topic: MakeTopic, read_topic: ReadTopic
) -> None:
    topic = make_topic(configs={"message.timestamp.type": "LogAppendTime"})
    produce(broker.bootstrap, topic, RECORDS[:2])
    ((*_, ms, kind), _) = rows(read_topic(topic))
    assert kind == 1
    assert abs(ms - time.time() * 1000) < 120_000


def test_aborted_transactions_are_hidden_from_readers_of_committed_records(
    broker: PenstockBroker, make_topic: MakeTopic, read_topic: ReadTopic
) -> None:
    topic = make_topic()
    producer = Producer({"bootstrap.servers": broker.bootstrap, "transactional.id": f"{topic}-writer"})
    producer.init_transactions(10)
    for number, is_kept in enumerate((True, False, True)):
        producer.begin_transaction()
        producer.produce(topic, f"{number}")
        producer.flush()
        if is_kept:
            producer.commit_transaction(10)
        else:
            producer.abort_transaction(10)
    assert values(read_topic(topic, kafka_isolation_level="read_committed")) == ["0", "2"]
    assert values(read_topic(topic)) == ["0", "1", "2"]


def test_a_range_is_given_by_offsets_or_by_times(
    broker: PenstockBroker, make_topic: MakeTopic, read_topic: ReadTopic
) -> None:
    topic = make_topic()
    produce(
        broker.bootstrap, topic, [{"value": f"{n}", "timestamp": 1_700_000_000_000 + n} for n in range(10)]
    )
    by_offset = read_topic(
        topic, startingOffsets=json.dumps({topic: {"0": 3}}), endingOffsets=json.dumps({topic: {"0": 5}})
    )
    by_time = read_topic(topic, startingTimestamp="1700000000003", endingTimestamp="1700000000005")
    assert values(by_offset) == values(by_time) == ["3", "4"]


def test_more_tasks_than_partitions_read_the_same_rows(
    broker: PenstockBroker, make_topic: MakeTopic, read_topic: ReadTopic
) -> None:
    topic = make_topic(partitions=2)
    produce(broker.bootstrap, topic, [{"value": f"{n:04}"} for n in range(1000)])
    frame = read_topic(topic, minPartitions="7")
    assert frame.rdd.getNumPartitions() >= 7
    assert values(frame) == [f"{n:04}" for n in range(1000)]


def test_topics_are_found_by_pattern_and_partitions_by_number(
    broker: PenstockBroker, make_topic: MakeTopic, read_topic: ReadTopic
) -> None:
    topic, other = make_topic(partitions=2), make_topic()
    for partition in range(2):
        produce(broker.bootstrap, topic, [{"value": f"{partition}", "partition": partition}])
    produce(broker.bootstrap, other, [{"value": "other"}])
    pattern = topic.rpartition("-")[0] + "-."
    assert values(read_topic(subscribePattern=pattern)) == ["0", "1", "other"]
    assert values(read_topic(assign=json.dumps({topic: [1]}))) == ["1"]


def test_an_empty_topic_has_no_rows(make_topic: MakeTopic, read_topic: ReadTopic) -> None:
    assert read_topic(make_topic(partitions=2)).collect() == []


def test_records_that_are_gone_fail_a_read_unless_that_is_allowed(
    broker: PenstockBroker, make_topic: MakeTopic, read_topic: ReadTopic
) -> None:
    topic = make_topic()
    produce(broker.bootstrap, topic, [{"value": f"{n}"} for n in range(6)])
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    for deleted in admin.delete_records([TopicPartition(topic, 0, 4)]).values():
        deleted.result(10)
    assert values(read_topic(topic)) == ["4", "5"]
    start = json.dumps({topic: {"0": 1}})
    with pytest.raises(Exception, match="failOnDataLoss") as failure:
        read_topic(topic, startingOffsets=start).collect()
    assert "from 1 to before 4 are gone" in str(failure.value)
    assert values(read_topic(topic, startingOffsets=start, failOnDataLoss="false")) == ["4", "5"]


def test_sql_reads_a_topic_through_a_view(
    spark: SparkSession, broker: PenstockBroker, make_topic: MakeTopic
) -> None:
    topic = make_topic()
    produce(broker.bootstrap, topic, [{"value": "one"}, {"value": "two"}])
    spark.sql(
        "create or replace temporary view orders using penstock "
        f"options (`kafka.bootstrap.servers` '{broker.bootstrap}', subscribe '{topic}')"
    )
    found = spark.sql("select cast(value as string) v from orders order by offset").collect()
    assert [row.v for row in found] == ["one", "two"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"startingOffset": "earliest"}, "did you mean 'startingOffsets'"),
        ({"startingOffsets": "first"}, "option 'startingOffsets' must be earliest, latest or like"),
        ({"kafka.security.protocol": "SASL_SSL"}, "option 'kafka.sasl.mechanism' cannot be used"),
        ({"kafka.bootstrap.servers": "nowhere"}, "option 'kafka.bootstrap.servers' cannot be used"),
    ],
)
def test_a_wrong_option_fails_at_once_by_its_name(
    spark: SparkSession, broker: PenstockBroker, options: dict[str, str], message: str
) -> None:
    reader = spark.read.format("penstock").option("kafka.bootstrap.servers", broker.bootstrap)
    with pytest.raises(Exception, match="PYTHON_DATA_SOURCE_ERROR") as failure:
        reader.option("subscribe", "any").options(**options).load()
    assert message in str(failure.value)


def test_a_topic_that_is_not_there_is_named_with_the_option(read_topic: ReadTopic) -> None:
    with pytest.raises(Exception, match="option 'subscribe' names the topic 'nothing-here'"):
        read_topic("nothing-here").collect()
