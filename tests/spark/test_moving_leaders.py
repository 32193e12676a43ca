"""Topics in Spark while leaders, coordinators and the controller of a cluster move: no query ends, and no row is lost."""

from __future__ import annotations

import itertools
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

import penstock.spark
from penstock.spark.internals.settings import DAEMON, QUICK_SETTINGS
from penstock.spark.writing import markers
from penstock.spark.writing.markers import MARKER_TOPIC, ensure_marker_topic
from penstock.testing.clusters import create_topic, describe, wait_until, wait_until_in_sync
from penstock.testing.penstock_cluster import PenstockCluster
from penstock.testing.processes import start_process
from penstock.testing.spark_cluster import SparkConnectServer
from tests.clients.admin import topic_configs
from tests.cluster.conftest import OPTIONS, SESSION_TIMEOUT_MS, check_logs
from tests.cluster.moves import Mover, bring_back, moves
from tests.spark.conftest import produce
from tests.spark.under_fire import Feeder, Output, by_key, until

pytestmark = pytest.mark.timeout(600)

CONNECT_PROGRAM = Path(__file__).with_name("connect_program.py")
PARTITIONS = 3
DEADLINE_S = 120.0
AT_WORK_ROWS = 20  # in each output after a move, before the next one
Rows = Sequence[tuple[str, str]]


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PenstockCluster]:
    with PenstockCluster(
        tmp_path_factory.mktemp("moving"), options=OPTIONS, session_timeout_ms=SESSION_TIMEOUT_MS
    ) as running:
        yield running
        check_logs(running)


@pytest.fixture
def make(cluster: PenstockCluster, topic_name: str) -> Callable[..., str]:
    """`make("in", partitions=3)` gives a topic's name."""

    def made(role: str, *, partitions: int = 1) -> str:
        name = f"{topic_name}-{role}"
        create_topic(cluster.bootstrap, name, partitions=partitions, config={"min.insync.replicas": "2"})
        wait_until_in_sync(cluster.bootstrap, [name])
        return name

    return made


@pytest.fixture
def output(cluster: PenstockCluster) -> Iterator[Callable[[str], Output]]:
    with ExitStack() as opened:

        def watched(topic: str) -> Output:
            found = Output(cluster.bootstrap, topic)
            opened.callback(found.close)
            return found

        yield watched


def test_marks_are_kept_as_often_as_what_a_cluster_keeps_for_itself(cluster: PenstockCluster) -> None:
    ensure_marker_topic({"bootstrap.servers": cluster.bootstrap})
    wait_until(lambda: MARKER_TOPIC in describe(cluster.bootstrap).topics, "the topic")
    partitions = describe(cluster.bootstrap).topics[MARKER_TOPIC].partitions.values()
    assert {len(partition.replicas) for partition in partitions} == {3}
    assert topic_configs(cluster.bootstrap, MARKER_TOPIC)["min.insync.replicas"] == "2"


def test_the_topic_of_marks_is_made_by_the_next_controller(
    cluster: PenstockCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(markers, "_clusters_with_marker_topic", set())
    monkeypatch.setattr(markers, "MARKER_TOPIC", "__marks-made-by-the-next-controller")
    silent = describe(cluster.bootstrap).controller_id
    cluster.pause(silent)
    try:
        ensure_marker_topic({"bootstrap.servers": cluster.bootstrap})
        assert markers.MARKER_TOPIC in describe(cluster.address(silent % 3 + 1)).topics
    finally:
        cluster.kill(silent)
        bring_back(cluster, silent)


def check_once(written: Rows, fed: Rows) -> None:
    assert sorted(value for _, value in written) == [value for _, value in fed]
    assert by_key(written) == by_key(fed)


def check_at_least_once(written: Rows, fed: Rows) -> None:
    """What is repeated begins again somewhere before: the first of each value are in order."""
    assert {key: list(dict.fromkeys(values)) for key, values in by_key(written).items()} == by_key(fed)


def test_no_stream_ends_and_each_row_is_there(
    cluster: PenstockCluster,
    spark: SparkSession,
    make: Callable[..., str],
    output: Callable[[str], Output],
    tmp_path: Path,
) -> None:
    source = make("in", partitions=PARTITIONS)
    targets = {name: make(name) for name in ("once", "shuffled", "plain", "real-time")}
    outputs = {name: output(topic) for name, topic in targets.items()}
    stream = (
        spark.readStream.format("penstock")
        .option("kafka.bootstrap.servers", cluster.bootstrap)
        .option("subscribe", source)
        .option("startingOffsets", "earliest")
        .load()
        .select("key", "value")
    )

    def sink(name: str, **options: str) -> Any:
        writer = stream.writeStream.format("penstock").option("kafka.bootstrap.servers", cluster.bootstrap)
        writer = writer.option("topic", targets[name]).options(**options)
        return writer.option("checkpointLocation", str(tmp_path / name)).start()

    to_shuffled = penstock.spark.to_topic(targets["shuffled"], bootstrap=cluster.bootstrap, exactly_once=True)
    with ExitStack() as running:
        queries: list[Any] = [sink("once", exactlyOnce="true"), sink("plain")]
        queries.append(
            stream.repartition(2, "key")
            .writeStream.foreachBatch(to_shuffled)
            .option("checkpointLocation", str(tmp_path / "shuffled"))
            .start()
        )
        for query in queries:
            running.callback(query.stop)
        real_time = penstock.spark.stream(
            spark,
            source=source,
            target=targets["real-time"],
            transform=lambda records: records.select("key", "value"),
            checkpoint=str(tmp_path / "real-time"),
            bootstrap=cluster.bootstrap,
            tier="real-time",
            interval="5 seconds",
            source_options={"startingOffsets": "earliest"},
        )
        running.callback(real_time.stop)
        queries.append(real_time.query)

        def check_queries() -> None:
            for query in queries:
                if (failure := query.exception()) is not None:
                    raise failure

        feeder = Feeder(cluster.bootstrap, source, list(outputs.values()))
        feeder.start()
        running.callback(feeder.stop)
        for move in itertools.chain(["nothing has moved"], moves(cluster)):
            before = {name: each.end_offset() for name, each in outputs.items()}
            for name, each in outputs.items():
                wait_until(
                    lambda: check_queries() or each.end_offset() > before[name] + AT_WORK_ROWS,  # noqa: B023
                    f"rows of {name} when {move}",
                    timeout_s=DEADLINE_S,
                )
        fed = feeder.finish()
        for query in queries[:-1]:
            query.processAllAvailable()
        wait_until(
            lambda: check_queries() or outputs["real-time"].end_offset() >= len(fed),
            "the last row in real time",
        )
        wait_until(lambda: set(outputs["real-time"].committed()) >= set(fed), "all rows in real time")
    check_once(outputs["once"].committed(), fed)
    check_once(outputs["shuffled"].committed(), fed)
    check_at_least_once(outputs["plain"].committed(), fed)
    check_at_least_once(outputs["real-time"].committed(), fed)


def test_batches_are_read_and_written_at_any_moment(
    cluster: PenstockCluster, spark: SparkSession, make: Callable[..., str], output: Callable[[str], Output]
) -> None:
    source, once, plain = make("in", partitions=PARTITIONS), make("once"), make("plain")
    fed = [f"{number:06}" for number in range(2_000)]
    produce(
        cluster.bootstrap,
        source,
        [{"value": value, "partition": number % PARTITIONS} for number, value in enumerate(fed)],
    )

    def read(topic: str) -> DataFrame:
        reader = spark.read.format("penstock").option("kafka.bootstrap.servers", cluster.bootstrap)
        # A few records an answer, so that a leader may move between two.
        reader = reader.option("kafka.max.partition.fetch.bytes", "5000").option("subscribe", topic)
        return reader.load()

    def write(number: int, topic: str, *, exactly_once: bool) -> list[tuple[str, str]]:
        rows = [(f"key-{number}", f"{number:04}-{each:02}") for each in range(20)]
        writer = spark.createDataFrame(rows, "key string, value string").coalesce(1).write.format("penstock")
        writer = writer.option("kafka.bootstrap.servers", cluster.bootstrap).option("topic", topic)
        writer.option("exactlyOnce", str(exactly_once).lower()).mode("append").save()
        return rows

    rounds = 0
    written: list[tuple[str, str]] = []
    with Mover(cluster) as mover:
        while mover.is_alive() or rounds < 2:
            found = sorted(bytes(row.value).decode() for row in read(source).select("value").collect())
            assert found == fed
            written += write(rounds, once, exactly_once=True)
            write(rounds, plain, exactly_once=False)
            rounds += 1
    check_once(output(once).committed(), written)
    check_at_least_once(output(plain).committed(), written)


def test_queries_through_a_connect_server_go_on(
    cluster: PenstockCluster, make: Callable[..., str], output: Callable[[str], Output], tmp_path: Path
) -> None:
    source, target = make("in", partitions=PARTITIONS), make("copy")
    copy = output(target)
    with SparkConnectServer(sys.executable, settings={**QUICK_SETTINGS, **DAEMON}) as server:
        command = [sys.executable, CONNECT_PROGRAM, server.url, cluster.bootstrap, source, target, tmp_path]
        driver = start_process(command, name="client", log_path=tmp_path / "client.log")
        feeder = Feeder(cluster.bootstrap, source, [copy])
        feeder.start()
        try:
            for move in itertools.chain(["nothing has moved"], moves(cluster)):
                before = copy.end_offset()
                until(
                    lambda: copy.end_offset() > before + AT_WORK_ROWS,  # noqa: B023
                    f"rows when {move}",
                    driver,
                )
            fed = feeder.finish()
            (tmp_path / "everything-is-fed").touch()
            assert driver.wait(timeout_s=DEADLINE_S) == 0, driver.log_text()
        finally:
            feeder.stop()
            driver.kill()
    check_once(copy.committed(), fed)
