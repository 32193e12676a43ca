"""What the demo's pipeline refuses, and what it computes of the rest."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from examples.demo import topics
from examples.demo.checks import decoded
from examples.demo.dead_letters import as_dead_letters
from examples.demo.pipeline import REFUSAL_QUERY, WORKER, Pipeline, summarised, with_refusals
from examples.demo.way import Way
from penstock.consumer.dead_letters import parse
from penstock.testing.penstock_broker import PenstockBroker
from tests.spark.conftest import ReadTopic, produce

GOOD = {
    "worker": "T1",
    "at": "2026-03-02T07:15:00.000+00:00",
    "frequency_khz": 50.0,
    "resistance_ohm": 500.0,
    "reactance_ohm": 60.0,
}
WITHOUT_AT = {name: value for name, value in GOOD.items() if name != "at"}
NOT_A_NUMBER = GOOD | {"resistance_ohm": "many"}
NOT_JSON = "the value is not JSON of the form "

# Each value, with the cause and the beginning of the message that it is refused with.
CASES: list[tuple[bytes | None, str | None, str]] = [
    (json.dumps(GOOD).encode(), None, ""),
    (json.dumps(GOOD | {"frequency_khz": 200, "note": "ok"}).encode(), None, ""),
    (json.dumps(GOOD).encode()[:40], "NotJson", NOT_JSON),
    (b"\xff\xfe", "NotJson", NOT_JSON),
    (b"42", "NotJson", NOT_JSON),
    (json.dumps(NOT_A_NUMBER).encode(), "NotJson", NOT_JSON),
    (None, "MissingField", "worker is missing"),
    (json.dumps(WITHOUT_AT).encode(), "MissingField", "at is missing"),
    (json.dumps(GOOD | {"resistance_ohm": 0.0}).encode(), "OutOfRange", "resistance_ohm is 0.0"),
    (json.dumps(GOOD | {"reactance_ohm": -60.0}).encode(), "OutOfRange", "reactance_ohm is -60.0"),
    (json.dumps(GOOD | {"worker": "T9"}).encode(), "UnknownWorker", "no worker has the number T9"),
]
# The first that applies is the cause.
BOTH = json.dumps(GOOD | {"worker": "T9", "resistance_ohm": 0.0}).encode()


@pytest.fixture
def workers(spark: SparkSession) -> DataFrame:
    known = [("T1", ("Pintura", "M", 40, 180.0, 80.0)), ("T2", ("Pintura", "F", 30, 165.0, 60.0))]
    return spark.createDataFrame(known, f"known string, known_as struct<{WORKER}>")


def records(spark: SparkSession, values: list[bytes | None]) -> DataFrame:
    """As they would come out of a topic, at offsets that are their places."""
    at = datetime(2026, 3, 2, 8, tzinfo=UTC)
    rows = [
        (b"k", value, "metrica", 3, place, at, [("lote", b"lote-01")]) for place, value in enumerate(values)
    ]
    columns = "key binary, value binary, topic string, partition int, offset long, timestamp timestamp"
    frame = spark.createDataFrame(rows, f"{columns}, headers array<struct<key: string, value: binary>>")
    return frame.withColumn("measurement", decoded(f.col("value")))


def test_bad_records_are_refused_with_the_cause(spark: SparkSession, workers: DataFrame) -> None:
    values = [value for value, _, _ in CASES] + [BOTH]
    found = with_refusals(records(spark, values), workers).select("offset", "refusal").collect()
    refusals = [row.refusal for row in sorted(found, key=lambda row: row.offset)]
    for (value, cause, message), refusal in zip(CASES, refusals, strict=False):
        if cause is None:
            assert refusal is None, value
        else:
            assert refusal is not None, value
            assert (refusal.cause, refusal.message[: len(message)]) == (cause, message), value
    assert refusals[-1].cause == "OutOfRange"


def test_a_refused_record_becomes_a_dead_letter_that_says_where_it_was(
    spark: SparkSession, workers: DataFrame
) -> None:
    refused = with_refusals(records(spark, [b"no", b"{}"]), workers).where("refusal is not null")
    rows = as_dead_letters(refused, group="checkers").collect()
    letters = [parse([(name, bytes(value)) for name, value in row.headers]) for row in rows]
    by_offset = {letter.offset: letter for letter in letters if letter is not None}
    assert by_offset.keys() == {0, 1}
    letter = by_offset[1]
    assert (letter.topic, letter.partition, letter.group) == ("metrica", 3, "checkers")
    assert (letter.failure.cause, letter.failure.message) == ("MissingField", "worker is missing")
    assert letter.headers == [("lote", b"lote-01")]
    assert letter.timestamp_ms == 1772438400000
    assert {bytes(row.value) for row in rows} == {b"no", b"{}"}


def test_an_hour_of_a_sector_is_one_row_of_averages(spark: SparkSession, workers: DataFrame) -> None:
    values = [
        GOOD,
        GOOD | {"worker": "T2", "resistance_ohm": 600.0, "at": "2026-03-02T07:59:59.999+00:00"},
        GOOD | {"frequency_khz": 200.0},  # the formula is for 50 kHz
    ]
    accepted = with_refusals(records(spark, [json.dumps(value).encode() for value in values]), workers)
    [row] = summarised(accepted.where("refusal is null")).collect()
    assert row.key == "Pintura"
    summary = json.loads(row.value)
    assert datetime.fromisoformat(summary["begin"]) == datetime(2026, 3, 2, 7, tzinfo=UTC)
    assert datetime.fromisoformat(summary["end"]) == datetime(2026, 3, 2, 8, tzinfo=UTC)
    assert summary["measurements"] == 2
    man_kg, woman_kg = 59.9714, 41.06025
    assert summary["fat_free_mass_kg"] == pytest.approx((man_kg + woman_kg) / 2, abs=0.001)
    fat_percent = ((80 - man_kg) / 80 + (60 - woman_kg) / 60) / 2 * 100
    assert summary["fat_percent"] == pytest.approx(fat_percent, abs=0.001)


def test_a_batch_that_is_done_again_knows_the_workers_that_it_knew(
    spark: SparkSession, broker: PenstockBroker, read_topic: ReadTopic, tmp_path: Path
) -> None:
    topics.create_topics(Way(broker.bootstrap))
    worker = json.dumps({"sector": "Pintura", "sex": "M", "age": 40, "height_cm": 180.0, "weight_kg": 80.0})

    def refused_after(*numbers: str) -> int:
        """What the dead letter topic holds when these were measured."""
        values = [{"value": json.dumps(GOOD | {"worker": number})} for number in numbers]
        produce(broker.bootstrap, topics.MEASUREMENTS, values)
        query = Pipeline(spark, Way(broker.bootstrap), tmp_path).start_refusals()
        try:
            query.processAllAvailable()
        finally:
            query.stop()
        return read_topic(topics.DEAD_LETTERS).count()

    produce(broker.bootstrap, topics.WORKERS, [{"key": "T1", "value": worker}])
    assert refused_after("T1", "T9") == 1
    # The driver died when the batch was written, and before Spark noted it.
    (commit,) = (tmp_path / "checkpoints" / REFUSAL_QUERY / "commits").glob("[0-9]*")
    commit.unlink()
    commit.with_name(f".{commit.name}.crc").unlink(missing_ok=True)
    produce(broker.bootstrap, topics.WORKERS, [{"key": "T9", "value": worker}])
    assert refused_after() == 1
    assert refused_after("T9") == 1, "a new start knows the new workers"
