"""Views of tables on a real broker, and the pull queries that they answer."""

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer

from penstock.client.clients import Connection
from penstock.sql.analysis.pulling import analyze_pull
from penstock.sql.engine.pull import PullQueries, QueryTooLarge
from penstock.sql.engine.topic_reading import Stopped
from penstock.sql.engine.views import TableView, ViewFailed
from penstock.sql.parsing.parser import parse
from penstock.sql.parsing.statements import Select
from penstock.streams.plan.schema import Column, Schema
from penstock.streams.plan.sources import Format, Formats, Source, SourceKind, Window, WindowKind
from penstock.streams.plan.types import INTEGER, STRING
from tests.clients.admin import create_topic
from tests.crash.plain_client import wait_until
from tests.unit.sql.analysis.catalogs import World

TIMEOUT_S = 30.0
ID, NAME, COUNT = Column("ID", STRING), Column("NAME", STRING), Column("N", INTEGER)
FORMATS = Formats(Format("KAFKA"), Format("JSON"))
MakeTopic = Callable[..., str]


def table(topic: str, window: Window | None = None) -> Source:
    return Source("T", SourceKind.TABLE, topic, Schema((ID,), (NAME, COUNT)), FORMATS, window=window)


class Records:
    """Of one topic, written as a sink writes them."""

    def __init__(self, bootstrap: str, topic: str, transactional_id: str | None = None) -> None:
        settings: dict[str, Any] = {"bootstrap.servers": bootstrap}
        if transactional_id:
            settings["transactional.id"] = transactional_id
        self.producer = Producer(settings)
        self.topic = topic
        if transactional_id:
            self.producer.init_transactions(TIMEOUT_S)

    def put(self, key: str | bytes | None, *values: Any, time: int = 1000, partition: int = 0) -> None:
        value = None if not values else json.dumps(dict(zip(("NAME", "N"), values, strict=True)))
        self.producer.produce(self.topic, value, key, partition=partition, timestamp=time)

    def flush(self) -> None:
        assert self.producer.flush(TIMEOUT_S) == 0


@pytest.fixture
def records(broker, make_topic: MakeTopic) -> Records:
    return Records(broker.bootstrap, make_topic(partitions=2))


@pytest.fixture
def start_view(broker, tmp_path: Path) -> Iterator[Callable[..., TableView]]:
    started: list[TableView] = []

    def start(source: Source, **options: Any) -> TableView:
        view = TableView(source, Connection(broker.bootstrap), tmp_path, **options)
        view.start()
        started.append(view)
        view.wait_ready(TIMEOUT_S)
        return view

    yield start
    for each in started:
        each.stop()


def caught_up(view: TableView, *ends: int) -> None:
    view.wait_for(dict(enumerate(ends)), TIMEOUT_S)


def test_a_view_has_the_newest_row_of_each_key(records: Records, start_view):
    records.put("a", "x", 1)
    records.put("b", "y", 2, partition=1)
    records.put("a", "z", 3, time=2000)
    records.put(None, "nobody", 0)
    records.flush()
    view = start_view(table(records.topic))
    row = view.get(("a",))
    assert row is not None
    assert (row.key, row.value, row.timestamp, row.partition, row.offset) == (("a",), ("z", 3), 2000, 0, 1)
    assert [each.key for each in view.all()] == [("a",), ("b",)]
    assert [each.key for each in view.range(("b",), None)] == [("b",)]
    records.put("b", partition=1)
    records.put("c", "new", 5)
    records.flush()
    caught_up(view, 4, 2)
    assert [each.key for each in view.all()] == [("a",), ("c",)]
    assert view.get(("b",)) is None
    assert {partition: each.records for partition, each in view.behind().items()} == {0: 0, 1: 0}


def test_records_that_cannot_be_read_are_told_and_left_out(records: Records, start_view):
    records.put("a", "x", 1)
    records.put("a", "x", [])
    records.flush()
    bad: list[str] = []
    view = start_view(table(records.topic), on_bad=lambda message, error: bad.append(str(error)))
    assert view.get(("a",)).value == ("x", 1)
    assert len(bad) == 1
    assert "requiredType: INTEGER" in bad[0]


def test_only_what_is_committed_is_seen(broker, make_topic: MakeTopic, start_view):
    topic = make_topic(partitions=1)
    records = Records(broker.bootstrap, topic, "views")
    records.producer.begin_transaction()
    records.put("a", "x", 1)
    records.producer.commit_transaction(TIMEOUT_S)
    records.producer.begin_transaction()
    records.put("b", "open", 1)
    records.flush()
    view = start_view(table(topic))
    assert [each.key for each in view.all()] == [("a",)]
    records.producer.abort_transaction(TIMEOUT_S)
    records.producer.begin_transaction()
    records.put("c", "z", 1)
    records.producer.commit_transaction(TIMEOUT_S)
    caught_up(view, 5)
    assert [each.key for each in view.all()] == [("a",), ("c",)]


def test_a_view_goes_on_where_it_was(broker, records: Records, tmp_path: Path):
    records.put("a", "x", 1)
    records.flush()
    source = table(records.topic)
    first = TableView(source, Connection(broker.bootstrap), tmp_path)
    first.start()
    first.wait_ready(TIMEOUT_S)
    first.stop()
    seen: list[Any] = []
    wrong = replace(source, name="T")
    again = TableView(wrong, Connection(broker.bootstrap), tmp_path, on_bad=lambda *each: seen.append(each))
    records.put("b", "y", 1)
    records.flush()
    again.start()
    again.wait_ready(TIMEOUT_S)
    assert [each.key for each in again.all()] == [("a",), ("b",)]
    again.stop(delete=True)
    assert list(tmp_path.iterdir()) == []


def test_a_topic_that_is_not_there_is_said(broker, tmp_path: Path):
    view = TableView(table("no-such-topic"), Connection(broker.bootstrap), tmp_path)
    view.start()
    try:
        with pytest.raises(ViewFailed, match="T is not ready"):
            view.wait_ready(0.5)
        with pytest.raises(ViewFailed):
            view.get(("a",))
    finally:
        view.stop()


def test_a_topic_that_is_made_anew_is_another_one(broker, records: Records, start_view):
    for number in range(5):
        records.put(f"k{number}", "old", number)
    records.flush()
    view = start_view(table(records.topic))
    assert len(view) == 5
    admin = Connection(broker.bootstrap).admin()
    admin.delete_topics([records.topic])[records.topic].result(TIMEOUT_S)
    create_topic(broker.bootstrap, records.topic, partitions=2)
    again = Records(broker.bootstrap, records.topic)
    again.put("new", "x", 1)
    again.flush()
    wait_until(
        lambda: [each.key for each in view.all()] == [("new",)],
        what="rows of the new topic",
        timeout_s=TIMEOUT_S,
    )


def test_a_view_goes_on_when_its_broker_was_killed(start_broker, tmp_path: Path):
    first = start_broker("own")
    create_topic(first.bootstrap, "table", partitions=2)
    records = Records(first.bootstrap, "table")
    records.put("a", "x", 1)
    records.flush()
    view = TableView(table("table"), Connection(first.bootstrap), tmp_path / "views")
    view.start()
    try:
        view.wait_ready(TIMEOUT_S)
        view.catch_up(TIMEOUT_S)
        first.kill()
        assert [each.key for each in view.all()] == [("a",)]
        again = start_broker("own", port=int(first.bootstrap.rpartition(":")[2]))
        records = Records(again.bootstrap, "table")
        records.put("b", "y", 2)
        records.flush()
        view.catch_up(TIMEOUT_S)
        assert [each.key for each in view.all()] == [("a",), ("b",)]
    finally:
        view.stop()


def test_windows_of_a_key_and_their_retention(records: Records, start_view):
    minute = 60_000
    window = Window(WindowKind.TUMBLING, minute, retention_ms=3 * minute)

    def put(key: bytes, start: int) -> None:
        records.put(key + start.to_bytes(8, "big"), "x", 0, time=start + 1)

    first, second, third, _, fifth = (number * minute for number in range(1, 6))
    for start in (first, second, third):
        put(b"a", start)
    records.flush()
    view = start_view(table(records.topic, window))
    assert [each.window for each in view.windows(("a",))] == [
        (start, start + minute) for start in (first, second, third)
    ]
    assert [each.window for each in view.windows(("a",), second, second)] == [(second, third)]
    put(b"b", fifth)
    records.flush()
    caught_up(view, 4)
    assert [each.window for each in view.windows(("a",))] == [
        (start, start + minute) for start in (second, third)
    ]


# ---------------------------------------------------------------------------------------------------------------- pull queries


class Asking:
    """Statements about topics: tables have views here if they are given."""

    def __init__(self, bootstrap: str, **options: Any) -> None:
        self.world = World()
        self.views: dict[str, TableView] = {}
        self.queries = PullQueries(
            Connection(bootstrap), lambda source: self.views.get(source.name), **options
        )

    def create(self, text: str) -> Source:
        source = self.world.run(text)
        assert isinstance(source, Source)
        return source

    def rows(self, text: str) -> list[tuple[Any, ...]]:
        [statement] = parse(text)
        assert isinstance(statement, Select)
        return list(self.queries.rows(analyze_pull(statement, self.world)))


@pytest.fixture
def asking(broker) -> Asking:
    return Asking(broker.bootstrap)


def columns(topic: str, key: str = "KEY") -> str:
    return f"(ID STRING {key}, NAME STRING, N INT) WITH (KAFKA_TOPIC='{topic}', VALUE_FORMAT='JSON')"


@pytest.mark.parametrize("with_view", [True, False])
def test_a_table_is_asked_by_key_by_range_and_whole(
    asking: Asking, records: Records, start_view, with_view: bool
):
    for number in range(10):
        records.put(f"k{number}", f"name{number}", number, time=1000 + number, partition=number % 2)
    records.flush()
    source = asking.create(f"CREATE TABLE T {columns(records.topic, 'PRIMARY KEY')};")
    if with_view:
        asking.views["T"] = start_view(source)
    assert asking.rows("SELECT N * 2, ID, ROWTIME FROM T WHERE ID = 'k3';") == [(6, "k3", 1003)]
    assert asking.rows("SELECT * FROM T WHERE ID = 'none';") == []
    assert sorted(asking.rows("SELECT ID FROM T WHERE ID IN ('k8', 'k2', 'x');")) == [("k2",), ("k8",)]
    assert sorted(asking.rows("SELECT ID FROM T WHERE ID > 'k7';")) == [("k8",), ("k9",)]
    assert sorted(asking.rows("SELECT * FROM T WHERE N >= 8 OR ID = 'k1';")) == [
        ("k1", "name1", 1), ("k8", "name8", 8), ("k9", "name9", 9),
    ]  # fmt: skip
    assert len(asking.rows("SELECT ID FROM T LIMIT 3;")) == 3
    assert asking.rows("SELECT ID FROM T LIMIT 0;") == []
    assert len(asking.rows("SELECT ID FROM T;")) == 10


def test_windows_are_asked_by_key_and_start(asking: Asking, records: Records, start_view):
    minute = 60_000
    for start in (minute, 2 * minute, 3 * minute):
        records.put(b"a" + start.to_bytes(8, "big"), "x", start // minute, time=start + 1)
    records.flush()
    source = asking.create(
        f"CREATE TABLE T {columns(records.topic, 'PRIMARY KEY')[:-1]}, WINDOW_TYPE='TUMBLING', WINDOW_SIZE='1 MINUTE');"
    )
    asking.views["T"] = start_view(source)
    asked = "SELECT ID, WINDOWSTART, WINDOWEND, N FROM T WHERE ID = 'a'"
    assert asking.rows(f"{asked};") == [
        ("a", start, start + minute, start // minute) for start in (minute, 2 * minute, 3 * minute)
    ]
    assert asking.rows(f"{asked} AND WINDOWSTART > {minute} AND WINDOWEND < {4 * minute};") == [
        ("a", 2 * minute, 3 * minute, 2)
    ]


def test_a_stream_is_read_to_its_end_as_it_is_now(asking: Asking, records: Records):
    for number in range(20):
        records.put(f"k{number}", "x", number, partition=number % 2)
    records.put("bad", "x", [])
    records.flush()
    asking.create(f"CREATE STREAM S {columns(records.topic)};")
    assert sorted(asking.rows("SELECT ID, N * 2 FROM S WHERE N > 16;")) == [
        ("k17", 34),
        ("k18", 36),
        ("k19", 38),
    ]
    assert len(asking.rows("SELECT * FROM S LIMIT 2;")) == 2
    assert sorted(asking.rows("SELECT ROWPARTITION, ROWOFFSET FROM S WHERE N < 4;")) == [
        (0, 0),
        (0, 1),
        (1, 0),
        (1, 1),
    ]
    assert sorted(asking.rows("SELECT ID, EXPLODE(ARRAY[N, -N]) AS E FROM S WHERE N = 7;")) == [
        ("k7", -7),
        ("k7", 7),
    ]


def test_an_empty_topic_has_no_rows(asking: Asking, records: Records):
    asking.create(f"CREATE STREAM S {columns(records.topic)};")
    assert asking.rows("SELECT * FROM S;") == []
    assert asking.rows("SELECT NAME, COUNT(*) FROM S GROUP BY NAME;") == []


def test_aggregates_give_the_newest_row_of_each_group(asking: Asking, records: Records):
    for number in range(10):
        records.put(
            f"k{number}",
            "odd" if number % 2 else "even",
            number,
            time=1000 * number + 1,
            partition=number % 2,
        )
    records.flush()
    asking.create(f"CREATE STREAM S {columns(records.topic)};")
    assert sorted(asking.rows("SELECT NAME, SUM(N) FROM S GROUP BY NAME;")) == [("even", 20), ("odd", 25)]
    assert asking.rows("SELECT NAME, SUM(N) FROM S GROUP BY NAME HAVING SUM(N) > 20;") == [("odd", 25)]
    in_arrays = asking.rows("SELECT ARRAY[NAME, 'x'], COUNT(*) FROM S GROUP BY ARRAY[NAME, 'x'];")
    assert sorted(in_arrays) == [(["even", "x"], 5), (["odd", "x"], 5)]
    windowed = "SELECT NAME, WINDOWSTART, COUNT(*) FROM S WINDOW TUMBLING (SIZE 5 SECONDS) GROUP BY NAME;"
    assert sorted(asking.rows(windowed)) == [
        ("even", 0, 3),
        ("even", 5000, 2),
        ("odd", 0, 2),
        ("odd", 5000, 3),
    ]


def test_joins_are_as_of_the_time_of_their_rows(
    broker, make_topic: MakeTopic, asking: Asking, records: Records
):
    names = Records(broker.bootstrap, make_topic(partitions=2))
    names.put("a", "before", 0, time=1)
    names.put("a", "after", 0, time=100)
    names.flush()
    records.put("a", "left", 1, time=50)
    records.put("a", "left", 2, time=150)
    records.put("b", "left", 3, time=150, partition=1)
    records.flush()
    asking.create(f"CREATE STREAM S {columns(records.topic)};")
    asking.create(f"CREATE TABLE T {columns(names.topic, 'PRIMARY KEY')};")
    joined = "SELECT S.ID, S.N, T.NAME FROM S {} JOIN T ON S.ID = T.ID;"
    assert asking.rows(joined.format("")) == [("a", 1, "before"), ("a", 2, "after")]
    assert sorted(asking.rows(joined.format("LEFT"))) == [
        ("a", 1, "before"),
        ("a", 2, "after"),
        ("b", 3, None),
    ]


def test_a_query_that_keeps_too_much_is_refused(broker, make_topic: MakeTopic):
    records = Records(broker.bootstrap, make_topic(partitions=1))
    for number in range(3000):
        records.put(f"k{number}", f"name{number}", number)
    records.flush()
    asking = Asking(broker.bootstrap, max_entries=1500)
    asking.create(f"CREATE STREAM S {columns(records.topic)};")
    with pytest.raises(QueryTooLarge, match=r"keeps more than 1,500 rows in memory"):
        asking.rows("SELECT NAME, COUNT(*) FROM S GROUP BY NAME;")


def test_a_query_ends_when_nobody_wants_the_rest(asking: Asking, records: Records):
    for number in range(100):
        records.put(f"k{number}", "x", number)
    records.flush()
    asking.create(f"CREATE STREAM S {columns(records.topic)};")
    [statement] = parse("SELECT * FROM S;")
    assert isinstance(statement, Select)
    planned = analyze_pull(statement, asking.world)
    with pytest.raises(Stopped):
        list(asking.queries.rows(planned, should_stop=lambda: True))
    rows = asking.queries.rows(planned)
    assert next(rows)[0] == "k0"
    rows.close()
