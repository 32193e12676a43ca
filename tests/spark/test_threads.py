"""A session that is used from other threads than the one that made it."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

import penstock.spark
from penstock.testing.penstock_broker import PenstockBroker
from tests.conftest import MakeTopic
from tests.spark.conftest import ReadTopic, finish, produce, values


def in_a_thread(work: Callable[[], None]) -> None:
    with ThreadPoolExecutor(1) as thread:
        thread.submit(work).result()


def test_a_batch_is_written_from_any_thread(
    spark: SparkSession, broker: PenstockBroker, make_topic: MakeTopic, read_topic: ReadTopic
) -> None:
    topic = make_topic()
    rows = spark.range(2).selectExpr("cast(id as string) as value")
    target = {"kafka.bootstrap.servers": broker.bootstrap, "topic": topic}
    in_a_thread(lambda: rows.write.format("penstock").options(**target).mode("append").save())
    assert values(read_topic(topic)) == ["0", "1"]


def test_a_stream_is_started_from_any_thread(
    broker: PenstockBroker,
    make_topic: MakeTopic,
    stream_topic: ReadTopic,
    read_topic: ReadTopic,
    tmp_path: Path,
) -> None:
    source, copy = make_topic(), make_topic()
    produce(broker.bootstrap, source, [{"value": "a"}])

    def work() -> None:
        frame = stream_topic(source, startingOffsets="earliest").select("value")
        writer = frame.writeStream.format("penstock").option("kafka.bootstrap.servers", broker.bootstrap)
        writer = writer.option("topic", copy).option("checkpointLocation", str(tmp_path))
        finish(writer.trigger(availableNow=True).start())

    in_a_thread(work)
    assert values(read_topic(copy)) == ["a"]


def test_a_second_call_says_which_of_its_settings_come_too_late(
    spark: SparkSession, caplog: pytest.LogCaptureFixture
) -> None:
    assert penstock.spark.session() is spark
    assert not caplog.messages
    given: dict[str, Any] = {"spark.driver.memory": "9g", "spark.sql.session.timeZone": "UTC"}
    assert penstock.spark.session(master="local[3]", **given) is spark
    assert caplog.messages == [
        "Spark runs already, as local[6,4], without spark.driver.memory=9g, master=local[3]: spark.stop() first"
    ]
