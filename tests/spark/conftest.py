"""One Spark for all tests here, and topics with records in them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import pytest
from confluent_kafka import Producer
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming import StreamingQuery

import penstock.spark
from penstock.testing.penstock_broker import PenstockBroker

# A quick start matters more here than what the JVM could do after minutes.
SMALL_JVM: dict[str, Any] = {
    "spark.driver.memory": "700m",
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -Xss512k",
}
QUERY_TIMEOUT_S = 60

ReadTopic = Callable[..., DataFrame]


def pytest_itemcollected(item: pytest.Item) -> None:
    # py4j leaves its connections to the collector, with a warning that is not ours to fix.
    item.add_marker(pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"))


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    # More slots than cores: the tasks of a real-time query run all at once.
    session = penstock.spark.session("penstock-tests", master="local[6]", **SMALL_JVM)
    yield session
    session.stop()


@pytest.fixture
def read_topic(spark: SparkSession, broker: PenstockBroker) -> ReadTopic:
    """`read_topic("t", startingOffsets="earliest")` is a DataFrame; options may hold their dots as underscores."""

    def read(topic: str | None = None, **options: str) -> DataFrame:
        reader = spark.read.format("penstock").option("kafka.bootstrap.servers", broker.bootstrap)
        return reader.options(**_named(topic, options)).load()

    return read


@pytest.fixture
def stream_topic(spark: SparkSession, broker: PenstockBroker) -> ReadTopic:
    def read(topic: str | None = None, **options: str) -> DataFrame:
        reader = spark.readStream.format("penstock").option("kafka.bootstrap.servers", broker.bootstrap)
        return reader.options(**_named(topic, options)).load()

    return read


def _named(topic: str | None, options: Mapping[str, str]) -> dict[str, str]:
    named = {name.replace("_", "."): value for name, value in options.items()}
    return named if topic is None else {"subscribe": topic, **named}


def produce(bootstrap: str, topic: str, records: Sequence[Mapping[str, Any]], **settings: object) -> None:
    producer = Producer({"bootstrap.servers": bootstrap, **settings})
    for record in records:
        producer.produce(topic, **record)
    assert producer.flush(30) == 0


def finish(query: StreamingQuery) -> None:
    """Waits for a query that ends by itself; its failure is the test's."""
    try:
        assert query.awaitTermination(QUERY_TIMEOUT_S), "the query did not end"
    finally:
        query.stop()


def values(frame: DataFrame) -> list[str]:
    """In order; every value is text."""
    return sorted(bytes(row.value).decode() for row in frame.select("value").collect())
