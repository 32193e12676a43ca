"""`penstock.spark.stream`: streams that run in Spark's real-time mode, and what is said of those that cannot."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, TopicPartition
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

import penstock.spark
from penstock.spark import NotRealTime, Stream
from penstock.spark.tiers import real_time
from penstock.testing.penstock_broker import PenstockBroker
from tests.clients.admin import create_topic
from tests.clients.processors import committed, wait_until
from tests.conftest import MakeTopic
from tests.docs.pages import HOW_TO, blocks
from tests.spark.conftest import QUERY_TIMEOUT_S, produce

Start = Callable[..., Stream]
Transform = Callable[[DataFrame], DataFrame]


def loud(records: DataFrame) -> DataFrame:
    return records.selectExpr("key", "upper(cast(value as string)) as value")


def counted(records: DataFrame) -> DataFrame:
    return records.groupBy("key").count().selectExpr("key", "cast(count as string) as value")


def counted_by_minute(records: DataFrame) -> DataFrame:
    late = records.withWatermark("timestamp", "10 seconds")
    return (
        late.groupBy(f.window("timestamp", "1 minute")).count().selectExpr("cast(count as string) as value")
    )


def in_python(records: DataFrame) -> DataFrame:
    return records.select("key", f.udf(lambda value: bytes(value).upper(), "binary")("value").alias("value"))


def in_sessions(records: DataFrame) -> DataFrame:
    late = records.withWatermark("timestamp", "10 seconds")
    windows = late.groupBy(f.session_window("timestamp", "5 seconds")).count()
    return windows.selectExpr("cast(count as string) as value")


def with_itself(records: DataFrame) -> DataFrame:
    return records.alias("a").join(records.alias("b"), f.expr("a.key = b.key")).selectExpr("a.value as value")


@pytest.fixture
def start(spark: SparkSession, broker: PenstockBroker, tmp_path: Path) -> Iterator[Start]:
    """`start("in", "out", loud)` starts a stream from the beginning of a topic; the test's end stops it."""
    started: list[Stream] = []

    def begin(source: str, target: str, transform: Transform, **more: Any) -> Stream:
        options = {"startingOffsets": "earliest", **more.pop("source_options", {})}
        more.setdefault("checkpoint", str(tmp_path / "checkpoint"))
        begun = penstock.spark.stream(
            spark,
            source=source,
            target=target,
            transform=transform,
            bootstrap=broker.bootstrap,
            source_options=options,
            **more,
        )
        started.append(begun)
        return begun

    yield begin
    for each in started:
        each.stop()


@pytest.fixture
def output(broker: PenstockBroker) -> Iterator[Callable[[str, int], list[str]]]:
    """`output("t", 3)` waits for that many records and gives their values in order, while the stream runs."""
    consumers: list[Consumer] = []

    def read(topic: str, count: int) -> list[str]:
        consumer = Consumer(
            {"bootstrap.servers": broker.bootstrap, "group.id": "output", "auto.offset.reset": "earliest"}
        )
        consumers.append(consumer)
        consumer.assign([TopicPartition(topic, 0, 0)])
        found: list[str] = []
        deadline_s = time.monotonic() + QUERY_TIMEOUT_S
        while len(found) < count and time.monotonic() < deadline_s:
            for message in consumer.consume(count, timeout=0.5):
                assert message.error() is None
                found.append((message.value() or b"").decode())
        return found

    yield read
    for consumer in consumers:
        consumer.close()


Output = Callable[[str, int], list[str]]
# An hour: nothing that is seen can have come at its end.
LONG = "3600 seconds"


@pytest.mark.parametrize(
    ("transform", "expected"),
    [
        (loud, ["VALVE", "PIPE", "PUMP"]),
        (counted, ["1", "2", "3"]),
        (counted_by_minute, ["1", "2", "3"]),
    ],
)
def test_rows_come_out_while_the_interval_is_far_from_over(
    transform: Transform,
    expected: list[str],
    broker: PenstockBroker,
    make_topic: MakeTopic,
    start: Start,
    output: Output,
) -> None:
    orders, out = make_topic(), make_topic()
    stream = start(orders, out, transform, interval=LONG)
    assert (stream.tier, stream.reason) == ("real-time", None)
    moment_ms = 1_767_225_600_000
    for value in ("valve", "pipe", "pump"):
        produce(broker.bootstrap, orders, [{"value": value, "key": "k", "timestamp": moment_ms}])
    assert output(out, 3) == expected
    assert stream.query.lastProgress is None  # not even its first interval is over


def test_the_same_records_have_the_same_columns_in_both_tiers(
    spark: SparkSession, broker: PenstockBroker, make_topic: MakeTopic
) -> None:
    topic = make_topic()
    for headers in ("true", "false"):
        options = {
            "kafka.bootstrap.servers": broker.bootstrap,
            "subscribe": topic,
            "includeHeaders": headers,
        }
        ours, theirs = (
            spark.readStream.format(name).options(**options).load().dtypes for name in ("penstock", "kafka")
        )
        assert ours == theirs


def test_a_real_time_stream_goes_on_where_its_checkpoint_ends(
    broker: PenstockBroker, make_topic: MakeTopic, start: Start, output: Output, tmp_path: Path
) -> None:
    orders, out = make_topic(), make_topic()
    produce(broker.bootstrap, orders, [{"value": "valve", "key": "k"}, {"value": "pipe", "key": "k"}])
    first = start(orders, out, counted, interval="5 seconds", commit_group=f"{out}-group")
    assert output(out, 2) == ["1", "2"]
    wait_until(
        lambda: committed(broker.bootstrap, f"{out}-group", orders) == 2,
        "the interval's offsets in the group",
    )
    first.stop()
    produce(broker.bootstrap, orders, [{"value": "pump", "key": "k"}])
    second = start(orders, out, counted, interval=LONG)
    assert second.tier == "real-time"
    assert output(out, 3) == ["1", "2", "3"]
    second.stop()
    with pytest.raises(ValueError, match="begun in the real-time tier and goes on there only"):
        start(orders, out, counted, tier="micro-batch")
    with pytest.raises(NotRealTime, match=r"begun in the real-time tier.*but now: exactly_once=True"):
        start(orders, out, counted, exactly_once=True)


def test_a_stream_of_micro_batches_stays_one_and_shows_its_offsets(
    broker: PenstockBroker, make_topic: MakeTopic, start: Start, output: Output
) -> None:
    orders, out = make_topic(), make_topic()
    produce(broker.bootstrap, orders, [{"value": "valve", "key": "k"}])
    first = start(orders, out, counted, tier="micro-batch", commit_group=f"{out}-group")
    assert (first.tier, first.reason) == ("micro-batch", None)
    assert output(out, 1) == ["1"]
    wait_until(
        lambda: committed(broker.bootstrap, f"{out}-group", orders) == 1, "the batch's offsets in the group"
    )
    first.stop()
    produce(broker.bootstrap, orders, [{"value": "pipe", "key": "k"}])
    second = start(orders, out, counted)
    assert second.tier == "micro-batch"
    assert "the checkpoint was begun in the micro-batch tier" in str(second.reason)
    assert output(out, 2) == ["1", "2"]
    second.stop()
    with pytest.raises(NotRealTime, match="another tier needs another checkpoint"):
        start(orders, out, counted, tier="real-time")


@pytest.mark.parametrize(
    ("transform", "asked", "reason"),
    [
        (in_python, {}, "it runs Python code"),
        (lambda records: records.select("value").mapInArrow(lambda batches: batches, "value binary"), {}, "Python code"),
        (in_sessions, {}, "a session window"),
        (with_itself, {}, "a join of two streams"),
        (lambda records: records.withWatermark("timestamp", "1 second").dropDuplicatesWithinWatermark(["key"]), {},
         "dropDuplicatesWithinWatermark"),
        (lambda records: records.limit(1), {}, "a limit"),
        (lambda records: records.repartition(6, "key"), {}, "need 7 slots; Spark has 6"),
        (loud, {"exactly_once": True}, "exactly_once=True"),
        (loud, {"output_mode": "append"}, "output mode append was asked for"),
        (counted, {"output_mode": "complete"}, "output mode complete was asked for"),
        (loud, {"source_options": {"kafka.sasl.username": "ana"}}, "option 'kafka.sasl.username' means nothing to the Java"),
        (loud, {"source_options": {"minpartitions": "2"}}, "source option 'minPartitions' is about batches"),
    ],
)  # fmt: skip
def test_what_cannot_be_real_time_is_told_in_a_sentence(
    transform: Transform, asked: dict[str, Any], reason: str, make_topic: MakeTopic, start: Start
) -> None:
    topic = make_topic()
    with pytest.raises(NotRealTime, match=reason):
        start(topic, topic, transform, tier="real-time", **asked)


def test_a_stream_that_cannot_be_real_time_runs_all_the_same(
    broker: PenstockBroker,
    make_topic: MakeTopic,
    start: Start,
    output: Output,
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level("INFO", "penstock.spark")
    orders, out = make_topic(), make_topic()
    produce(broker.bootstrap, orders, [{"value": "valve"}])
    stream = start(orders, out, in_python, name="in-python")
    assert stream.tier == "micro-batch"
    assert f"stream in-python runs in the micro-batch tier: {stream.reason}" in caplog.messages
    assert output(out, 1) == ["VALVE"]


def test_what_only_spark_knows_it_refuses_and_the_stream_falls_back(
    broker: PenstockBroker,
    make_topic: MakeTopic,
    start: Start,
    output: Output,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(real_time, "obstacle", lambda plan: None)
    orders, out = make_topic(), make_topic()
    produce(broker.bootstrap, orders, [{"value": "valve"}])
    stream = start(orders, out, in_python)
    assert stream.tier == "micro-batch"
    assert str(stream.reason).startswith("Spark refuses it: The operator(s): ")
    assert output(out, 1) == ["VALVE"]


def test_without_the_jars_it_runs_from_pip_alone_and_says_what_they_give(
    spark: SparkSession,
    broker: PenstockBroker,
    make_topic: MakeTopic,
    start: Start,
    output: Output,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(real_time, "CONNECTOR_CLASS", "org.example.NotThere")
    orders, out = make_topic(), make_topic()
    produce(broker.bootstrap, orders, [{"value": "valve"}])
    stream = start(orders, out, loud)
    assert stream.tier == "micro-batch"
    assert "python -m penstock.spark.connector) a record of this stream takes milliseconds" in str(
        stream.reason
    )
    assert output(out, 1) == ["VALVE"]
    with pytest.raises(FileNotFoundError, match=r"python -m penstock\.spark\.connector"):
        penstock.spark.session(real_time=True)


def test_slots_of_streams_that_run_are_not_given_away_again(
    make_topic: MakeTopic, start: Start, tmp_path: Path
) -> None:
    topic, wide, out = make_topic(), make_topic(partitions=3), make_topic()
    first = start(wide, out, loud)
    assert first.tier == "real-time"
    with pytest.raises(
        NotRealTime, match="need 3 slots; Spark has 6, 3 are taken by other real-time streams"
    ):
        start(topic, out, counted, tier="real-time", checkpoint=str(tmp_path / "second"))
    first.stop()
    second = start(topic, out, counted, tier="real-time", checkpoint=str(tmp_path / "second"))
    assert second.tier == "real-time"


def test_what_is_wrong_in_any_tier_is_no_reason_for_another(make_topic: MakeTopic, start: Start) -> None:
    topic = make_topic()
    with pytest.raises(TypeError, match="a column 'value' is needed"):
        start(topic, topic, lambda records: records.select("offset"))
    with pytest.raises(
        ValueError, match="option 'startingOffset' is unknown; did you mean 'startingOffsets'"
    ):
        start(topic, topic, loud, source_options={"startingOffset": "latest"})
    with pytest.raises(ValueError, match="tier must be auto, real-time or micro-batch"):
        start(topic, topic, loud, tier="fast")


PAGE = HOW_TO / "spark-real-time.md"


@pytest.mark.usefixtures("spark")
def test_the_programs_of_the_page_run_one_after_the_other(
    broker: PenstockBroker, output: Output, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    # The broker is everybody's, and `orders` is a name that others use, too.
    orders, counts = f"real-time-orders-{os.getpid()}", f"real-time-counts-{os.getpid()}"
    for topic in (orders, f"loud-{orders}", counts):
        create_topic(broker.bootstrap, topic)
    produce(broker.bootstrap, orders, [{"value": "valve", "key": "k"}, {"value": "pipe", "key": "k"}])
    known: dict[str, Any] = {}
    try:
        for program in blocks(PAGE.read_text(), "py"):
            here = program.replace("localhost:9092", broker.bootstrap).replace(
                '"order-counts"', f'"{counts}"'
            )
            here = here.replace('"orders"', f'"{orders}"').replace("loud-orders", f"loud-{orders}")
            exec(here.replace("./checkpoint", f"{tmp_path}/checkpoint"), known)
        assert output(f"loud-{orders}", 2) == ["VALVE", "PIPE"]
        assert output(counts, 2) == ["1", "2"]
    finally:
        for name in ("stream", "counts"):
            if name in known:
                known[name].stop()
    first, second, third = capsys.readouterr().out.splitlines()
    assert (first, second) == ("real-time None", "real-time")
    assert third.startswith("micro-batch it runs Python code, which Spark's real-time mode does not; ")
