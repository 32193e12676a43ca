"""The pipeline in Spark: two streaming queries over the measurements, and a table of what they wrote.

    bioimpedancia.metrica ─ decode ─ check, with the workers ┬ refused ─────────────→ bioimpedancia.metrica.dlq
                                                             └ formula ─ windows ──→ bioimpedancia.resumo → Parquet

Both write exactly once. Each commits its offsets to a group, so that every Kafka tool shows how far it is.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.streaming.readwriter import DataStreamReader

from examples.demo import topics
from examples.demo.checks import decoded, refusal
from examples.demo.dead_letters import as_dead_letters
from examples.demo.formula import FREQUENCY_KHZ, fat_free_mass_kg, fat_percent
from examples.demo.way import Way

TABLE = "resumo.parquet"
WORKERS_TABLE = "trabalhadores.parquet"
WINDOW = "1 hour"
WATERMARK_DELAY = "2 hours"
SUMMARY_QUERY, REFUSAL_QUERY, TABLE_QUERY = "resumo", "recusa", "tabela"
SUMMARY_GROUP, REFUSAL_GROUP, TABLE_GROUP = (
    f"bioimpedancia-{query}" for query in (SUMMARY_QUERY, REFUSAL_QUERY, TABLE_QUERY)
)
WORKER = "sector string, sex string, age int, height_cm double, weight_kg double"
AVERAGED = ("fat_free_mass_kg", "fat_percent", "phase_angle_degrees")
SUMMARY = "sector string, begin timestamp, end timestamp, measurements long" + "".join(
    f", {name} double" for name in AVERAGED
)


@dataclass(frozen=True)
class Pipeline:
    spark: SparkSession
    way: Way
    directory: Path  # for checkpoints, the table and the workers

    def start_summary(self) -> StreamingQuery:
        """Averages by hour and sector. A window is written once, when the watermark has passed its end."""
        accepted = self._measurements(SUMMARY_GROUP).where("refusal is null")
        return self._write(summarised(accepted), topics.SUMMARY, name=SUMMARY_QUERY, every="0 seconds")

    def start_refusals(self) -> StreamingQuery:
        """Every few seconds is enough: nobody waits for these, and every batch has its price."""
        refused = self._measurements(REFUSAL_GROUP).where("refusal is not null")
        letters = as_dead_letters(refused, group=REFUSAL_GROUP)
        return self._write(letters, topics.DEAD_LETTERS, name=REFUSAL_QUERY, every="3 seconds")

    def write_table(self) -> None:
        """What is new in the summary's topic, as Parquet. Run again, it goes on where it ended."""
        rows = self._stream(topics.SUMMARY, TABLE_GROUP).option("kafka.isolation.level", "read_committed")
        summary = rows.load().select(f.from_json(f.col("value").cast("string"), SUMMARY).alias("row"))
        query = (
            summary.select("row.*")
            .writeStream.format("parquet")
            .queryName(TABLE_QUERY)
            .option("checkpointLocation", str(self._checkpoint(TABLE_QUERY)))
            .trigger(availableNow=True)
            .start(str(self.directory / TABLE))
        )
        query.awaitTermination()

    def _measurements(self, group: str) -> DataFrame:
        """Each record as it is in the topic, decoded, with its worker, and with the reason if it is refused."""
        records = self._stream(topics.MEASUREMENTS, group).option("includeHeaders", "true").load()
        return with_refusals(records.withColumn("measurement", decoded(f.col("value"))), self._workers)

    @cached_property
    def _workers(self) -> DataFrame:
        """The newest record of each, as they are when the queries start; who has a tombstone is not there.

        They are kept in a file. A batch that is done again after a crash must have the rows that it had, or exactly once
        would fail it: so while a batch is open, the queries know the workers that they knew. The topic could not tell
        who these were, for it is compacted.
        """
        kept = str(self.directory / WORKERS_TABLE)
        if not any(has_open_batch(self._checkpoint(query)) for query in (SUMMARY_QUERY, REFUSAL_QUERY)):
            self._newest_workers().write.mode("overwrite").parquet(kept)
        return self.spark.read.parquet(kept).cache()

    def _newest_workers(self) -> DataFrame:
        records = self.spark.read.format("penstock").options(**self._source(topics.WORKERS)).load()
        newest = (
            records.groupBy("key").agg(f.max_by("value", "offset").alias("value")).where("value is not null")
        )
        return newest.select(
            f.col("key").cast("string").alias("known"),
            f.from_json(f.col("value").cast("string"), WORKER).alias("known_as"),
        )

    def _checkpoint(self, query: str) -> Path:
        return self.directory / "checkpoints" / query

    def _source(self, topic: str) -> dict[str, str]:
        return {**self.way.spark, "subscribe": topic, "startingOffsets": "earliest"}

    def _stream(self, topic: str, group: str) -> DataStreamReader:
        reader = self.spark.readStream.format("penstock").options(**self._source(topic))
        return reader.option("commit.group", group)

    def _write(self, rows: DataFrame, topic: str, *, name: str, every: str) -> StreamingQuery:
        return (
            rows.writeStream.format("penstock")
            .queryName(name)
            .trigger(processingTime=every)
            .options(**self.way.spark)
            .option("topic", topic)
            .option("exactlyOnce", "true")
            .option("checkpointLocation", str(self._checkpoint(name)))
            .start()
        )


def has_open_batch(checkpoint: Path) -> bool:
    """Whether Spark planned a batch that it did not note as done; it will be done again with the same records."""

    def last(log: str) -> int:
        return max(
            (int(path.name) for path in (checkpoint / log).glob("[0-9]*") if path.name.isdecimal()),
            default=-1,
        )

    return last("offsets") > last("commits")


def with_refusals(records: DataFrame, workers: DataFrame) -> DataFrame:
    """From a column `measurement`, and workers with the columns `known` and `known_as`."""
    joined = records.join(f.broadcast(workers), f.col("measurement.worker") == f.col("known"), "left")
    return joined.withColumn("refusal", refusal("measurement", is_known=f.col("known").isNotNull()))


def summarised(accepted: DataFrame) -> DataFrame:
    """Rows to write: a JSON object for each hour and sector."""
    body = accepted.select("measurement.*", "known_as.*").where(f.col("frequency_khz") == FREQUENCY_KHZ)
    lean_kg = fat_free_mass_kg(
        height_cm=f.col("height_cm"),
        weight_kg=f.col("weight_kg"),
        resistance_ohm=f.col("resistance_ohm"),
        reactance_ohm=f.col("reactance_ohm"),
        is_male=(f.col("sex") == "M").cast("int"),
    )
    composed = body.withColumn("fat_free_mass_kg", lean_kg).withColumn(
        "fat_percent",
        fat_percent(fat_free_mass_kg=f.col("fat_free_mass_kg"), weight_kg=f.col("weight_kg")),
    )
    angle = f.degrees(f.atan2("reactance_ohm", "resistance_ohm"))
    averages = (
        composed.withColumn("phase_angle_degrees", angle)
        .withWatermark("at", WATERMARK_DELAY)
        .groupBy(f.window("at", WINDOW), "sector")
        .agg(
            f.count("*").alias("measurements"),
            *(f.round(f.avg(name), 3).alias(name) for name in AVERAGED),
        )
    )
    row = f.struct(
        "sector",
        f.col("window.start").alias("begin"),
        f.col("window.end").alias("end"),
        "measurements",
        *AVERAGED,
    )
    return averages.select(f.col("sector").alias("key"), f.to_json(row).alias("value"))
