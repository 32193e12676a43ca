"""The same source and sink over Apache Kafka's own broker."""

from __future__ import annotations

from pathlib import Path

from pyspark.sql import SparkSession

from simulation.apache.apache_kafka import ApacheKafka
from tests.clients.admin import create_topic
from tests.spark.conftest import finish, produce


def test_a_stream_reads_and_writes_apache_kafka_exactly_once(spark: SparkSession, tmp_path: Path) -> None:
    with ApacheKafka(tmp_path / "kafka", quick=True) as kafka:
        create_topic(kafka.bootstrap, "in", partitions=2)
        create_topic(kafka.bootstrap, "out")
        produce(
            kafka.bootstrap, "in", [{"value": f"{n:03}"} for n in range(200)], **{"compression.type": "zstd"}
        )
        options = {"kafka.bootstrap.servers": kafka.bootstrap, "startingOffsets": "earliest"}
        stream = spark.readStream.format("penstock").options(
            subscribe="in", maxOffsetsPerTrigger="80", **options
        )
        writer = (
            stream.load()
            .select("value")
            .writeStream.format("penstock")
            .options(topic="out", exactlyOnce="true")
        )
        writer = writer.option("kafka.bootstrap.servers", kafka.bootstrap).trigger(availableNow=True)
        finish(writer.option("checkpointLocation", str(tmp_path / "checkpoint")).start())
        options["kafka.isolation.level"] = "read_committed"
        found = (
            spark.read.format("penstock").options(subscribe="out", **options).load().select("value").collect()
        )
    assert sorted(bytes(row.value).decode() for row in found) == [f"{n:03}" for n in range(200)]
