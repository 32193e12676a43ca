"""Programs of the Python library at work on topics: on Spark, and in threads of this process."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest

from penstock.admin import Cluster
from penstock.spark.tasks import JobState, ThreadLauncher
from penstock.streams import App, col, fn, tumbling
from penstock.streams.running.layout import CannotRun
from penstock.testing.penstock_broker import PenstockBroker
from tests.conftest import MakeTopic
from tests.registry_of_tests import registry_of_tests
from tests.spark.conftest import SMALL_JVM
from tests.streams.topics import DEADLINE_S, Reader, put, until


@pytest.fixture
def apps(broker: PenstockBroker) -> Iterator[Any]:
    made: list[App] = []

    def app(name: str, **options: Any) -> App:
        made.append(App(name, bootstrap=broker.bootstrap, **options))
        return made[-1]

    yield app
    for each in made:
        each.stop()


# Within the retention of topics: a broker deletes what is older.
START_MS = int(time.time()) // 60 * 60_000 - 600_000


def click(user: str, page: str, ms: int, time_ms: int) -> tuple[str, dict[str, Any], int]:
    return user, {"page": page, "ms": ms}, START_MS + time_ms


def counting(app: App, source: str, sink: str) -> None:
    clicks = app.stream(source, key={"user": str}, value={"page": str, "ms": int})
    slow = clicks.filter(col("ms") > 100).filter(lambda row: row["user"] != "eve")
    slow.group_by("page").count(store="pages").to(sink)
    slow.group_by_key().window(tumbling(minutes=1)).aggregate(total=fn("SUM", col("ms")), store="times")


@pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning")  # py4j's
def test_a_program_runs_on_spark_with_functions_and_a_count(
    broker: PenstockBroker, make_topic: MakeTopic, apps: Any
) -> None:
    import penstock.spark

    source = make_topic(partitions=2)
    app = apps(f"app-{source}", guarantee="exactly_once")
    counting(app, source, f"{source}-counts")
    spark = penstock.spark.session("penstock-tests", master="local[8]", **SMALL_JVM)
    try:
        query = app.start(spark=spark, parallelism=2)
        put(broker.bootstrap, source, [click(f"u{n}", f"p{n % 2}", 101 + n, 1000 + n) for n in range(20)])
        put(broker.bootstrap, source, [click("eve", "p0", 500, 2000), click("ann", "p0", 100, 2000)])
        with Reader(broker.bootstrap, f"{source}-counts", 2) as reader:
            found = reader.wait_for(20)
        until(lambda: sum(query.lag().values()) == 0)
        assert app.store("pages").get("p1") == {"count": 10}
        app.stop()
        assert {key: value["count"] for key, value, _ in found} == {"p0": 10, "p1": 10}
        assert query.state == JobState.STOPPED
    finally:
        spark.stop()


def test_stores_are_asked_while_it_runs_and_reset_begins_anew(
    broker: PenstockBroker, make_topic: MakeTopic, apps: Any
) -> None:
    source, sink = make_topic(partitions=3), make_topic(partitions=1)
    app = apps(f"app-{sink}")
    counting(app, source, sink)
    put(broker.bootstrap, source, [click("ann", "home", 200, 1000), click("ann", "blog", 300, 61_000)])
    put(broker.bootstrap, source, [click("bob", "home", 200, 1000)])
    query = app.start(launcher=ThreadLauncher(), parallelism=2)
    with Reader(broker.bootstrap, sink) as reader:
        reader.wait_for(3)
    until(lambda: sum(query.lag().values()) == 0)
    with pytest.raises(RuntimeError, match="runs already"):
        app.start(launcher=ThreadLauncher())
    with pytest.raises(RuntimeError, match="runs: stop it first"):
        app.reset()
    pages = app.store("pages")
    assert [(entry.key, entry.value) for entry in pages.all()] == [
        ("blog", {"count": 1}),
        ("home", {"count": 2}),
    ]
    assert pages.get("nowhere", "nothing") == "nothing"
    times = app.store("times").fetch("ann")
    assert [(entry.window, entry.value["total"]) for entry in times] == [
        ((START_MS, START_MS + 60_000), 200),
        ((START_MS + 60_000, START_MS + 120_000), 300),
    ]
    app.stop()
    assert {name.rsplit("-", 1)[1] for name in app.reset()} == {"changelog", "repartition"}
    app.start(launcher=ThreadLauncher())
    with Reader(broker.bootstrap, sink) as reader:
        assert len(reader.wait_for(6)) == 6


def test_bad_records_go_to_the_dead_letters(broker: PenstockBroker, make_topic: MakeTopic, apps: Any) -> None:
    source, sink, dead = make_topic(), make_topic(), make_topic()
    app = apps(f"app-{sink}", dead_letters=dead)
    app.stream(source, key=str, value={"n": int}).map_values(lambda row: 10 // row["n"], value=int).to(sink)
    put(broker.bootstrap, source, [("a", value, START_MS) for value in (b"no json", {"n": 0}, {"n": 5})])
    app.start(launcher=ThreadLauncher())
    with Reader(broker.bootstrap, sink) as reader, Reader(broker.bootstrap, dead) as log:
        assert [value for _, value, _ in reader.wait_for(1)] == [2]
        told = [value["message"] for _, value, _ in log.wait_for(2)]
    assert told[0]["deserializationError"]["topic"] == source
    assert "by zero" in told[1]["recordProcessingError"]["errorMessage"]


def test_values_have_schemas_of_a_registry(broker: PenstockBroker, make_topic: MakeTopic, apps: Any) -> None:
    source, between, sink = make_topic(), make_topic(), make_topic()
    with registry_of_tests() as registry:
        app = apps(f"app-{sink}", registry=registry.url)
        first = app.stream(source, key=str, value={"n": int}).through(between, value_format="AVRO")
        first.select(twice=col("n") * 2).to(sink)
        put(broker.bootstrap, source, [("a", {"n": 21}, START_MS)])
        app.start(launcher=ThreadLauncher())
        with Reader(broker.bootstrap, sink) as reader:
            assert [value for _, value, _ in reader.wait_for(1)] == [{"twice": 42}]
        assert list(registry.subjects) == [f"{between}-value"]
        app.stop()


def test_run_ends_when_it_is_stopped_or_cannot_begin(
    broker: PenstockBroker, make_topic: MakeTopic, apps: Any
) -> None:
    source = make_topic(partitions=3)
    app = apps(f"app-{source}")
    app.stream(source, value={"n": int}).to(f"{source}-copy")
    running = threading.Thread(target=app.run, kwargs={"launcher": ThreadLauncher()})
    running.start()
    until(lambda: app._query is not None and app._query.state == JobState.RUNNING)
    with Cluster(broker.bootstrap) as cluster:
        assert len(cluster.topics.partitions(f"{source}-copy")) == 3
    app.stop()
    running.join(DEADLINE_S)
    assert not running.is_alive()
    lost = apps("lost")
    lost.stream(f"{source}-nowhere", value=str).foreach(print)
    with pytest.raises(CannotRun, match=f"the topic {source}-nowhere does not exist"):
        lost.run(launcher=ThreadLauncher())
