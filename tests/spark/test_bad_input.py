"""What a user gets wrong is told at once, by the option's name, in the text of the exception."""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from pyspark.sql.types import StringType, StructField, StructType

from penstock.spark.failures import BadOption
from penstock.spark.options import READ_NAMES, WRITE_NAMES
from penstock.spark.source import PenstockDataSource
from penstock.testing.penstock_broker import PenstockBroker
from penstock.testing.processes import free_port
from tests.conftest import MakeTopic
from tests.spark.conftest import ReadTopic, finish, produce
from tests.web_server import a_web_server

NOWHERE = {"kafka.bootstrap.servers": "127.0.0.1:1"}
READ_MISTAKES = {
    "subscribe": [" ", ","],
    "subscribePattern": ["(", ""],
    "assign": ["orders", '{"orders": 0}', '{"orders": ["0"]}', "[]"],
    "startingOffsets": ["first", "{}", '{"orders": {"0": -3}}', '{"orders": {"0": "1"}}', '{"orders": [0]}'],
    "startingTimestamp": ["now", "-1", "1.5"],
    "startingOffsetsByTimestamp": ["now", '{"orders": {"0": -1}}'],
    "startingOffsetsByTimestampStrategy": ["earliest"],
    "endingOffsets": ["last", "earliest", '{"orders": {"0": -2}}'],
    "endingTimestamp": ["now"],
    "endingOffsetsByTimestamp": ["{}"],
    "maxOffsetsPerTrigger": ["0", "-1", "many", "1e6"],
    "minOffsetsPerTrigger": ["0", "few"],
    "maxTriggerDelay": ["soon", "5 fortnights"],
    "minPartitions": ["0", "two"],
    "maxRecordsPerPartition": ["0", "two"],
    "failOnDataLoss": ["yes", "1", ""],
    "includeHeaders": ["maybe"],
    "commit.group": [" "],
    "valueSchema": ["id lng", " "],
    "valueMode": ["LENIENT"],
    "valueTimeZone": ["Mars/Olympus"],
    "includeRawValue": ["maybe"],
    "valueFormat": ["xml", " "],
    "keyFormat": ["xml"],
    "columns": ["nothing", " ", ",", "headers"],
    # Without a format:
    "keySchema": ["long"],
    "valueSchemaVersion": ["1"],
    "keySchemaVersion": ["latest"],
    "valueSubject": ["orders-value"],
    "keySubject": ["orders-key"],
    "valueMessage": ["Order"],
    "keyMessage": ["Order"],
    "includeRawKey": ["true"],
    "includeErrors": ["true"],
    "schema.registry.url": ["http://localhost:8081"],
    "kafka.bootstrap.servers": ["", "nowhere", "host:port", "host:99999"],
    "kafka.isolation.level": ["serializable"],
    "kafka.fetch.max.bytes": ["much", "0"],
    "kafka.request.timeout.ms": ["long"],
    "kafka.security.protocol": ["PLAIN"],
    "kafka.auto.offset.reset": ["latest"],
    "kafka.enable.auto.commit": ["true"],
    "kafka.fetch.max.byte": ["1"],
    "startingOffset": ["earliest"],
}
WRITE_MISTAKES = {
    "topic": [" "],
    "exactlyOnce": ["often"],
    "transactionalIdPrefix": [" ", "without exactlyOnce"],
    "includeHeaders": ["maybe"],
    "valueFormat": ["xml", " "],
    "keyFormat": ["xml"],
    # Without a format:
    "valueSchema": ["long"],
    "keySchema": ["long"],
    "valueSubject": ["orders-value"],
    "keySubject": ["orders-key"],
    "valueMessage": ["Order"],
    "keyMessage": ["Order"],
    "auto.register.schemas": ["false"],
    "use.latest.version": ["true"],
    "normalize.schemas": ["true"],
    "value.subject.name.strategy": ["RecordNameStrategy"],
    "key.subject.name.strategy": ["RecordNameStrategy"],
    "schema.registry.url": ["http://localhost:8081"],
    "kafka.bootstrap.servers": ["", "nowhere"],
    "kafka.transactional.id": ["mine"],
    "kafka.key.serializer": ["x"],
    "kafka.compression.typ": ["lz4"],
    "kafka.compression.type": ["zip"],
    "kafka.acks": ["most"],
    "kafka.linger.ms": ["soon"],
    "kafka.request.timeout.ms": ["long"],
    "kafka.max.in.flight.requests.per.connection": ["few"],
    "topics": ["orders"],
}
# Spark's own, or without effect here.
NOT_CHECKED = {
    "groupIdPrefix", "kafkaConsumer.pollTimeoutMs", "fetchOffset.numRetries", "fetchOffset.retryIntervalMs",
    "checkpointLocation", "queryName", "asyncProgressTrackingEnabled", "asyncProgressTrackingCheckpointIntervalMs",
}  # fmt: skip
ROWS = StructType([StructField("value", StringType())])


def mistakes(table: dict[str, list[str]]) -> list[tuple[str, str]]:
    return [(option, value) for option, wrong in table.items() for value in wrong]


def test_there_is_a_mistake_for_every_option() -> None:
    assert set(READ_NAMES) - NOT_CHECKED <= READ_MISTAKES.keys()
    assert set(WRITE_NAMES) - NOT_CHECKED <= WRITE_MISTAKES.keys()


@pytest.mark.parametrize(("option", "value"), mistakes(READ_MISTAKES))
def test_a_wrong_value_of_a_reader_is_refused_by_the_options_name(option: str, value: str) -> None:
    """What Spark calls within `load()`."""
    topics = {} if option in ("subscribePattern", "assign") else {"subscribe": "orders"}
    with pytest.raises(BadOption, match=f"^option '{option}' "):
        PenstockDataSource({**NOWHERE, **topics, option: value}).schema()


@pytest.mark.parametrize(("option", "value"), mistakes(WRITE_MISTAKES))
def test_a_wrong_value_of_a_writer_is_refused_by_the_options_name(option: str, value: str) -> None:
    """What Spark calls within `save()` and for each batch of a stream."""
    source = PenstockDataSource({**NOWHERE, "topic": "orders", option: value})
    with pytest.raises(BadOption, match=f"^option '{option}' "):
        source.writer(ROWS, overwrite=False)
    with pytest.raises(BadOption, match=f"^option '{option}' "):
        source.streamWriter(ROWS, overwrite=False)


def test_an_option_that_only_a_batch_has_is_refused_when_a_stream_asks_for_its_offsets() -> None:
    """Not when the reader is made: Spark would then stop a reader that it does not have, and tell of that."""
    source = PenstockDataSource({**NOWHERE, "subscribe": "orders", "endingOffsets": "latest"})
    reader = source.streamReader(source.schema())
    with pytest.raises(BadOption, match="option 'endingOffsets' is for batch reads"):
        reader.initialOffset()
    reader.stop()


@contextlib.contextmanager
def nobody_there() -> Iterator[str]:
    yield f"127.0.0.1:{free_port()}"


@contextlib.contextmanager
def a_port_that_never_answers() -> Iterator[str]:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield f"127.0.0.1:{listener.getsockname()[1]}"


Place = Callable[[], contextlib.AbstractContextManager[str]]
PLACES = [nobody_there, a_port_that_never_answers, a_web_server]


def is_told(action: Callable[[], object], address: str) -> None:
    with pytest.raises(Exception, match=f"cannot reach a broker at {address}") as failure:
        action()
    assert "(option 'kafka.bootstrap.servers')" in str(failure.value)


@pytest.mark.parametrize("place", PLACES)
def test_a_cluster_that_cannot_be_reached_is_told_when_a_query_is_planned(
    spark: SparkSession, tmp_path: Path, place: Place
) -> None:
    with place() as address:
        options = {"kafka.bootstrap.servers": address, "subscribe": "orders"}
        stream = spark.readStream.format("penstock").options(**options).load().writeStream.format("noop")
        stream = stream.option("checkpointLocation", str(tmp_path / "checkpoint"))
        is_told(lambda: spark.read.format("penstock").options(**options).load().collect(), address)
        is_told(lambda: finish(stream.start()), address)
        writer = spark.sql("select 'v' value").write.format("penstock").mode("append")
        to = {"kafka.bootstrap.servers": address, "topic": "orders"}
        is_told(lambda: writer.options(**to).save(), address)


def test_a_cluster_that_cannot_be_reached_is_told_when_a_stream_writes(
    broker: PenstockBroker, make_topic: MakeTopic, stream_topic: ReadTopic, tmp_path: Path
) -> None:
    topic = make_topic()
    produce(broker.bootstrap, topic, [{"value": "v"}])
    with nobody_there() as address:
        stream = (
            stream_topic(topic, startingOffsets="earliest").select("value").writeStream.format("penstock")
        )
        stream = stream.options(**{"kafka.bootstrap.servers": address, "topic": "orders"})
        is_told(lambda: finish(stream.option("checkpointLocation", str(tmp_path / "c")).start()), address)


@pytest.mark.parametrize("exactly_once", ["true", "false"])
def test_a_topic_that_is_not_there_is_told_to_a_writer(
    spark: SparkSession, broker: PenstockBroker, exactly_once: str
) -> None:
    writer = spark.sql("select 'v' value").write.format("penstock").mode("append")
    options = {"kafka.bootstrap.servers": broker.bootstrap, "topic": "no/topic", "exactlyOnce": exactly_once}
    with pytest.raises(Exception, match="'no/topic'"):
        writer.options(**options).save()
