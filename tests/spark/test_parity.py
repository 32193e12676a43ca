"""`format("penstock")` gives what `format("kafka")`, Spark's own connector, gives in the same session for the same options."""

from __future__ import annotations

import functools
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from confluent_kafka import Producer
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f
from pyspark.sql.streaming import StreamingQuery

from penstock.client.connection import BrokerConnection
from penstock.model.endpoints import Address
from penstock.records.build import NewRecord, build_batch
from penstock.spark.reading.offsets import from_json
from penstock.testing.penstock_broker import PenstockBroker
from penstock.wire.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from tests.clients.admin import create_topic, delete_records
from tests.clients.driver import WAIT_S, wait_until
from tests.spark.conftest import finish, produce

FORMATS = ("kafka", "penstock")
CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
ORDER = ("topic", "partition", "offset")
NOON_MS = 1_700_000_000_000
RECORDS: list[dict[str, Any]] = [
    {"key": b"k", "value": b"v", "timestamp": NOON_MS + 123, "headers": [("a", b"1")]},
    {"key": None, "value": b"no key"},
    {"key": b"no value", "value": None},
    {"key": b"", "value": b"", "headers": []},
    {"value": b"headers", "headers": [("a", b"1"), ("a", b"2"), ("null", None), ("ü", b"")]},
    {"value": b"x" * 100_000},
]
# Whole milliseconds of the longest dates that Spark has, and "no timestamp".
TIMESTAMPS_MS = (-1, 0, 1, NOON_MS, 4_000_000_000_000, 253_402_300_799_999)
NO_LIMIT = str((1 << 63) - 1)
COMPARED_IN_PROGRESS = {"numInputRows", "startOffset", "endOffset", "latestOffset"}

Load = Callable[..., DataFrame]


class Logs(NamedTuple):
    broker: PenstockBroker
    ranges: str  # two partitions, records 0 … 9 a millisecond apart
    names: list[str]


@pytest.fixture(scope="module")
def logs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Logs]:
    options = {"log.cleaner.backoff.ms": "50", "log.retention.ms": "-1"}
    with PenstockBroker(tmp_path_factory.mktemp("parity"), options=options) as broker:
        bootstrap = broker.bootstrap
        start_compaction(broker, "compacted")
        for codec in CODECS:
            create_topic(bootstrap, codec)
            produce(bootstrap, codec, RECORDS * 3, **{"compression.type": codec})
        create_topic(bootstrap, "append", configs={"message.timestamp.type": "LogAppendTime"})
        produce(bootstrap, "append", RECORDS[:2])
        create_topic(bootstrap, "times", configs={"message.timestamp.after.max.ms": NO_LIMIT})
        append_batch(bootstrap, "times", [(b"k", b"v", (), timestamp) for timestamp in TIMESTAMPS_MS])
        append_batch(bootstrap, "times", [(None, None, (("h", None),), -1)])
        create_topic(bootstrap, "truncated")
        produce(bootstrap, "truncated", [{"value": f"{n}"} for n in range(9)])
        delete_records(bootstrap, "truncated", 0, 4)
        create_topic(bootstrap, "empty")
        create_topic(bootstrap, "ranges", partitions=2)
        for partition in range(2):
            records = [{"value": f"{n}", "timestamp": NOON_MS + n, "partition": partition} for n in range(10)]
            produce(bootstrap, "ranges", records)
        create_topic(bootstrap, "transactions")
        open_transaction = write_transactions(bootstrap, "transactions")
        wait_until(lambda: "compacted compacted-0" in broker.log_path.read_text(), "compaction", timeout_s=90)
        names = [*CODECS, "append", "times", "truncated", "empty", "ranges", "transactions", "compacted"]
        yield Logs(broker, "ranges", names)
        open_transaction.abort_transaction(WAIT_S)


def start_compaction(broker: PenstockBroker, topic: str) -> None:
    """A log whose first segment will have holes."""
    configs = {"cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0.001", "segment.bytes": "1048576"}
    create_topic(broker.bootstrap, topic, configs=configs)
    records = [{"key": b"key %d" % (n % 100), "value": bytes(1500)} for n in range(1500)]
    produce(broker.bootstrap, topic, records, **{"batch.size": 50_000})


def append_batch(bootstrap: str, topic: str, records: list[NewRecord]) -> None:
    """As it is: producers do not let one write just any timestamp."""
    host, _, port = bootstrap.partition(":")
    connection = BrokerConnection(Address(host, int(port)), client_id="parity", timeout_s=WAIT_S)
    data = PartitionProduceData(index=0, records=bytes(build_batch(records)))
    request = ProduceRequest(
        acks=-1, timeout_ms=10_000, topic_data=[TopicProduceData(name=topic, partition_data=[data])]
    )
    answer = connection.ask(request, ProduceResponse, version=9)
    connection.close()
    assert answer.responses[0].partition_responses[0].error_code == 0


def write_transactions(bootstrap: str, topic: str) -> Producer:
    """Committed and aborted ones, records of no transaction between them, and one that stays open."""
    producer = Producer({"bootstrap.servers": bootstrap, "transactional.id": topic, "log_level": 0,
                         "transaction.timeout.ms": 600_000})  # fmt: skip
    producer.init_transactions(WAIT_S)
    for number, end in enumerate((producer.commit_transaction, producer.abort_transaction) * 2):
        producer.begin_transaction()
        for part in range(3):
            producer.produce(topic, f"{part} of {number}")
        assert producer.flush(WAIT_S) == 0
        end(WAIT_S)
        produce(bootstrap, topic, [{"value": f"after {number}"}])
    producer.begin_transaction()
    producer.produce(topic, "open")
    assert producer.flush(WAIT_S) == 0
    produce(bootstrap, topic, [{"value": "behind the open one"}])
    return producer


@pytest.fixture
def load(spark: SparkSession, logs: Logs) -> Load:
    def load(kind: str, *, streaming: bool = False, **options: str) -> DataFrame:
        reader = spark.readStream if streaming else spark.read
        named = {name.replace("_", "."): value for name, value in options.items()}
        return (
            reader.format(kind)
            .option("kafka.bootstrap.servers", logs.broker.bootstrap)
            .option("kafka.fetch.max.wait.ms", "10")
            .options(**named)
            .load()
        )

    return load


@pytest.mark.parametrize("headers", ["true", "false"])
def test_the_schema_is_the_same(load: Load, headers: str) -> None:
    kafka, penstock = (load(kind, subscribe="none", includeHeaders=headers).schema for kind in FORMATS)
    assert penstock.jsonValue() == kafka.jsonValue()


@pytest.mark.parametrize("isolation", ["read_uncommitted", "read_committed"])
def test_every_row_of_every_kind_of_log_is_the_same(logs: Logs, load: Load, isolation: str) -> None:
    options = {
        "subscribe": ",".join(logs.names),
        "includeHeaders": "true",
        "kafka_isolation_level": isolation,
    }
    # A timestamp as a number: Python's own have no year 10,000 in other time zones.
    kafka, penstock = (
        load(kind, **options).withColumn("timestamp", f.unix_micros("timestamp")).orderBy(*ORDER).collect()
        for kind in FORMATS
    )
    assert {row.topic for row in penstock} == set(logs.names) - {"empty"}
    assert penstock == kafka


def ranges(topic: str) -> list[dict[str, str]]:
    both = {"subscribe": topic}
    return [
        {**both, "startingOffsets": json.dumps({topic: {"0": 3, "1": -2}}),
         "endingOffsets": json.dumps({topic: {"0": 7, "1": -1}})},
        {**both, "startingTimestamp": f"{NOON_MS + 99}", "startingOffsetsByTimestampStrategy": "latest"},
        {**both, "startingOffsetsByTimestamp": json.dumps({topic: {"0": NOON_MS + 2, "1": NOON_MS + 8}}),
         "endingTimestamp": f"{NOON_MS + 99}"},
        {**both, "endingOffsetsByTimestamp": json.dumps({topic: {"0": NOON_MS + 2, "1": NOON_MS + 8}})},
        {**both, "startingTimestamp": f"{NOON_MS + 2}", "startingOffsets": "latest", "minPartitions": "5"},
        {"assign": json.dumps({topic: [1]}), "startingOffsets": json.dumps({topic: {"1": 9}})},
        {"subscribePattern": "ran", "maxRecordsPerPartition": "8"},  # also in the middle of a name
        {"subscribe": "truncated", "startingOffsets": '{"truncated": {"0": 1}}', "failOnDataLoss": "false"},
    ]  # fmt: skip


def test_every_way_to_say_a_range_gives_the_same_rows(logs: Logs, load: Load) -> None:
    found = []
    for kind in FORMATS:
        frames = [
            load(kind, **options).select(f.lit(number).alias("number"), *ORDER, "value")
            for number, options in enumerate(ranges(logs.ranges))
        ]
        found.append(functools.reduce(DataFrame.union, frames).orderBy("number", *ORDER).collect())
    kafka, penstock = found
    assert penstock == kafka


def start(frame: DataFrame, directory: Path) -> StreamingQuery:
    writer = frame.writeStream.format("noop").option("checkpointLocation", str(directory))
    return writer.trigger(availableNow=True).start()


def progress_of(query: StreamingQuery) -> list[dict[str, Any]]:
    """Of the batches that read something, what both sources say of themselves; offsets without the topics' ids."""
    found = []
    for progress in query.recentProgress:
        (source,) = json.loads(progress.json)["sources"]
        if not source["numInputRows"]:
            continue
        offsets = {
            name: from_json(value) if isinstance(value, dict) else value
            for name, value in source.items()
            if name in COMPARED_IN_PROGRESS
        }
        found.append(offsets)
    return found


def test_a_stream_has_the_same_batches_and_tells_the_same_offsets(
    logs: Logs, load: Load, tmp_path: Path
) -> None:
    told = []
    for kind in FORMATS:
        stream = load(
            kind,
            streaming=True,
            subscribe="ranges",
            startingOffsets="earliest",
            maxOffsetsPerTrigger="8",
        )
        query = start(stream, tmp_path / kind)
        finish(query)
        told.append(progress_of(query))
    kafka, penstock = told
    assert penstock == kafka
    assert [batch["numInputRows"] for batch in penstock] == [8, 8, 4]


@pytest.mark.parametrize(("first", "second"), [FORMATS, FORMATS[::-1]])
def test_a_checkpoint_of_one_source_is_taken_over_by_the_other(
    spark: SparkSession, logs: Logs, load: Load, tmp_path: Path, first: str, second: str
) -> None:
    topic = f"from-{first}-to-{second}"
    create_topic(logs.broker.bootstrap, topic, partitions=2)
    for kind, values in ((first, range(10)), (second, range(10, 25))):
        produce(logs.broker.bootstrap, topic, [{"value": f"{n:02}"} for n in values])
        stream = load(kind, streaming=True, subscribe=topic, startingOffsets="earliest")
        writer = stream.selectExpr("cast(value as string) value").writeStream.format("text")
        writer = writer.option("checkpointLocation", str(tmp_path / "checkpoint"))
        finish(writer.option("path", str(tmp_path / "out")).trigger(availableNow=True).start())
    found = sorted(row.value for row in spark.read.text(str(tmp_path / "out")).collect())
    assert found == [f"{n:02}" for n in range(25)]
