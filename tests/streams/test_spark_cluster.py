"""A program of streams on a standalone cluster of Spark: its tasks are on the executors, and are asked and stopped from here."""

from __future__ import annotations

import os

import pytest

from penstock.spark.tasks import JobState
from penstock.streams import App, col
from penstock.testing.penstock_broker import PenstockBroker
from penstock.testing.spark_cluster import SparkCluster
from tests.conftest import MakeTopic
from tests.spark.conftest import SMALL_JVM
from tests.streams.topics import Reader, put, until


@pytest.mark.timeout(300)
@pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning")  # py4j's
def test_a_program_counts_on_the_executors_of_a_cluster(
    broker: PenstockBroker, make_topic: MakeTopic
) -> None:
    import penstock.spark

    source, sink = make_topic(partitions=2), make_topic(partitions=2)
    app = App(f"app-{sink}", bootstrap=broker.bootstrap, guarantee="exactly_once")
    words = app.stream(source, key=str, value={"word": str})
    long = words.map_values(lambda row: {"word": row["word"].lower()}, value={"word": str})
    long.filter(col("word") != "a").group_by("word").count(store="words").to(sink)
    with SparkCluster() as cluster:
        spark = penstock.spark.session("penstock-tests", master=cluster.master, long_tasks=True, **SMALL_JVM)
        try:
            query = app.start(spark=spark, parallelism=2)
            put(broker.bootstrap, source, [(f"k{n}", {"word": f"W{n % 5}"}, 1000 + n) for n in range(100)])
            with Reader(broker.bootstrap, sink, 2) as reader:
                found = reader.wait_for(100)
            assert {key: value["count"] for key, value, _ in found} == {f"w{n}": 20 for n in range(5)}
            assert len(found) == 100
            until(lambda: query.get("words", b"\x91\xa2w3", 0) or query.get("words", b"\x91\xa2w3", 1))
            assert app.store("words").get("w3") == {"count": 20}
            assert os.getpid() not in {task.process_id for task in query.tasks}
            app.stop()
            assert query.state == JobState.STOPPED
        finally:
            spark.stop()
