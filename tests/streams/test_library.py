"""Programs of the Python library at work on topics: on Spark, and in threads of this process."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from typing import Any, cast

import pytest
from confluent_kafka import Producer

from penstock.admin import Cluster
from penstock.spark.tasks import JobState, ThreadLauncher
from penstock.streams import App, col, fn, tumbling
from penstock.streams.running.following import NoView
from penstock.streams.running.layout import CannotRun
from penstock.testing.penstock_broker import PenstockBroker
from tests.cli.conftest import run_command
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


def test_a_store_is_followed_by_a_process_that_does_not_run_the_program(
    broker: PenstockBroker, make_topic: MakeTopic, apps: Any
) -> None:
    source, people = make_topic(partitions=3), make_topic(partitions=3)

    def declared() -> App:
        app = apps(f"app-{source}")
        counting(app, source, f"{source}-out")
        table = app.table(people, key=str, value={"name": str}, store="people")
        app.stream(source, key={"user": str}, value={"page": str, "ms": int}).join(table).to(
            f"{source}-named"
        )
        return cast(App, app)

    runs, asks = declared(), declared()
    with pytest.raises(NoView, match="has not run yet"):
        asks.store("pages").get("home")
    put(broker.bootstrap, people, [("ann", {"name": "Ann"}, START_MS), ("eve", {"name": "Eve"}, START_MS)])
    put(broker.bootstrap, source, [click(f"u{n % 5}", "home", 200, n * 60_000) for n in range(20)])
    runs.start(launcher=ThreadLauncher())
    pages, times, names = asks.store("pages"), asks.store("times"), asks.store("people")
    until(lambda: pages.get("home") == {"count": 20})
    assert pages.behind() == (0, 0)
    until(lambda: len(times.all()) == 20)
    assert [each.window[0] - START_MS for each in times.fetch("u1") if each.window] == [
        minute * 60_000 for minute in (1, 6, 11, 16)
    ]
    later = times.fetch("u1", START_MS + 6 * 60_000, START_MS + 11 * 60_000)
    assert [each.window[0] - START_MS for each in later if each.window] == [360_000, 660_000]
    assert [(each.key, each.value) for each in names.range("b", "f")] == [("eve", {"name": "Eve"})]
    put(broker.bootstrap, people, [("eve", None, START_MS), ("bob", {"name": "Bob"}, START_MS)])
    until(lambda: [each.key for each in names.all()] == ["ann", "bob"])
    runs.stop()
    assert asks.store("pages").get("home") == {"count": 20}


class Beats:
    def init(self, context: Any) -> None:
        self._context = context
        context.schedule("200 milliseconds", self._beat, clock="wall")

    def _beat(self, now: int) -> None:
        self._context.forward("beat", now)

    def process(self, row: dict[str, Any], context: Any) -> None:
        pass


@pytest.mark.parametrize("guarantee", ["at_least_once", "exactly_once"])
def test_a_timer_by_the_wall_clock_goes_off_where_no_rows_are(
    broker: PenstockBroker, make_topic: MakeTopic, apps: Any, guarantee: str
) -> None:
    source, sink = make_topic(), make_topic()
    app = apps(f"app-{sink}", guarantee=guarantee)
    app.stream(source, key=str, value=int).process(Beats, value=int).to(sink)
    app.start(launcher=ThreadLauncher())
    with Reader(broker.bootstrap, sink) as reader:
        beats = reader.wait_for(3)
    assert {key for key, _, _ in beats} == {"beat"}
    assert (
        [value for _, value, _ in beats]
        == [time_ms for _, _, time_ms in beats]
        == sorted({time_ms for _, _, time_ms in beats})
    )


def test_state_on_disk_comes_back_and_state_beyond_its_bound_fails(
    broker: PenstockBroker, make_topic: MakeTopic, apps: Any
) -> None:
    source, sink = make_topic(), make_topic()

    def begun(**properties: str) -> Any:
        app = apps(f"app-{sink}", properties=properties)
        app.stream(source, key=str, value=int).group_by_key().count(store="n").to(sink)
        return app, app.start(launcher=ThreadLauncher())

    put(broker.bootstrap, source, [(f"k{n % 10}", n, START_MS) for n in range(100)])
    with Reader(broker.bootstrap, sink) as reader:
        first, _ = begun(**{"state.store": "disk"})
        reader.wait_for(100)
        first.stop()
        second, query = begun(**{"state.store": "disk"})
        until(lambda: query.counters.get("restored") == 10)
        put(broker.bootstrap, source, [("k3", 1, START_MS)])
        assert reader.wait_for(101)[-1][:2] == ("k3", {"count": 11})
        second.stop()
    _, query = begun(**{"state.memory.max.bytes": "1000000"})
    until(lambda: query.state == JobState.FAILED)
    assert "more than state.memory.max.bytes, 1,000,000, with" in query.reason


def test_bad_records_become_letters_that_penstock_dlq_shows_and_replays(
    broker: PenstockBroker, make_topic: MakeTopic, apps: Any
) -> None:
    source, sink, dead = make_topic(), make_topic(), make_topic()
    divisors = [0]
    app = apps(f"app-{sink}", dead_letters=dead)

    def shared(row: dict[str, Any]) -> int:
        return 10 // (row["n"] or divisors[0])

    app.stream(source, key=str, value={"n": int}).map_values(shared, value=int).to(sink)
    put(broker.bootstrap, source, [("a", value, START_MS) for value in (b"no json", {"n": 5})])
    producer = Producer({"bootstrap.servers": broker.bootstrap})
    producer.produce(source, b'{"n": 0}', b'"b"', headers=[("trace", b"7"), ("no", None)], timestamp=START_MS)
    assert producer.flush(30) == 0
    app.start(launcher=ThreadLauncher())
    with Reader(broker.bootstrap, sink) as reader, Cluster(broker.bootstrap) as cluster:
        assert [value for _, value, _ in reader.wait_for(1)] == [2]
        until(lambda: len(cluster.dead_letters.list(dead)) == 2)
        first, second = cluster.dead_letters.list(dead)
        assert (first.key, first.value, second.key, second.value) == (b'"a"', b"no json", b'"b"', b'{"n": 0}')
        assert first.letter is not None
        assert second.letter is not None
        assert (first.letter.topic, first.letter.partition, first.letter.offset) == (source, 0, 0)
        assert (second.letter.group, second.letter.failure.cause) == (app.name, "ZeroDivisionError")
        assert second.letter.headers == [("trace", b"7"), ("no", None)]
        assert second.letter.timestamp_ms == START_MS
        assert "in shared" in second.letter.failure.stack
        shown = run_command("penstock", "dlq", "show", dead, "-b", broker.bootstrap)
        assert f"{source} 0/2" in shown.out
        cause = ["--cause", "ZeroDivisionError"]
        run_command("penstock", "dlq", "replay", dead, *cause, "-b", broker.bootstrap)
        until(lambda: len(cluster.dead_letters.list(dead)) == 3)
        again = cluster.dead_letters.list(dead)[-1].letter
        assert again is not None
        assert (again.offset, again.failure.attempts, again.headers) == (3, 2, second.letter.headers)
        divisors[0] = 2
        run_command("penstock", "dlq", "replay", dead, *cause, "-b", broker.bootstrap)
        assert [value for _, value, _ in reader.wait_for(2)] == [2, 5]


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
