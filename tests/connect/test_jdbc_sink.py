"""The JDBC sink into PostgreSQL, MariaDB and SQLite."""

from __future__ import annotations

import datetime as dt
import itertools
import json
import sqlite3
from collections.abc import Callable, Mapping
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from penstock.connect.connectors.jdbc.sink import JdbcSink, JdbcSinkTask
from penstock.connect.data import BOOLEAN, BYTES, FLOAT64, INT32, INT64, STRING, array, map_of, struct
from penstock.connect.data.logical import DATE, TIME, TIMESTAMP, decimal
from penstock.connect.errors import ConnectError, DataError, Hopeless, InvalidConfig, RetriableError
from tests.connect.databases import MariaDb, PostgreSql
from tests.connect.tasks_alone import records, sink_task

POSTGRESQL, MARIADB, SQLITE = "postgresql", "mariadb", "sqlite"
_numbers = itertools.count(1)


class Target:
    """A database, and a table of the test's own in it."""

    def __init__(
        self, kind: str, login: Mapping[str, str], run: Callable[[str], list[tuple[Any, ...]]]
    ) -> None:
        self.kind, self.login, self.run = kind, login, run
        self.table = f"t{next(_numbers)}"

    def config(self, **more: str) -> dict[str, str]:
        given = {name.replace("_", "."): value for name, value in more.items()}
        return {**self.login, "table.name.format": self.table, "retry.backoff.ms": "10", **given}

    def rows(self, columns: str = "*", order: str = "1") -> list[tuple[Any, ...]]:
        return [tuple(row) for row in self.run(f"SELECT {columns} FROM {self.table} ORDER BY {order}")]


def sqlite_target(path: Path) -> Target:
    def run(statement: str) -> list[tuple[Any, ...]]:
        connection = sqlite3.connect(path, timeout=10)
        try:
            with connection:
                return connection.execute(statement).fetchall()
        finally:
            connection.close()

    return Target(SQLITE, {"connection.url": f"jdbc:sqlite:{path}"}, run)


@pytest.fixture(params=[POSTGRESQL, MARIADB, SQLITE])
def target(request: pytest.FixtureRequest, tmp_path: Path) -> Target:
    if request.param == SQLITE:
        return sqlite_target(tmp_path / "db")
    server = request.getfixturevalue(request.param)
    return Target(request.param, server.login, server.run)


@pytest.fixture
def pg(postgresql: PostgreSql) -> Target:
    return Target(POSTGRESQL, postgresql.login, postgresql.run)


ORDER = struct("order", id=INT64, note=STRING.optional(), price=FLOAT64.optional())
KEY = struct("key", id=INT64)


def orders(*rows: tuple[int, str | None, float | None]) -> list[Any]:
    return [ORDER.new(id=number, note=note, price=price) for number, note, price in rows]


def test_it_makes_a_table_with_all_types_and_fills_it(target: Target) -> None:
    schema = struct(
        "all", id=INT64, small=INT32, flag=BOOLEAN, text=STRING.optional(), data=BYTES, amount=decimal(2), day=DATE,
        time=TIME, at=TIMESTAMP, names=array(STRING), map=map_of(STRING, INT32), inner=struct("i", a=INT32),
        status=STRING.with_(default="new", is_optional=True),
    )  # fmt: skip
    inner = schema.field("inner").schema.new(a=1)  # type: ignore[union-attr]
    at = dt.datetime(2026, 1, 2, 3, 4, 5, 678000, dt.UTC)
    row = schema.new(
        id=1, small=2, flag=True, text='tab\t"quote"\\ grüße\n', data=b"\x00\xff", amount=Decimal("12.30"),
        day=dt.date(2026, 1, 2), time=dt.time(3, 4, 5, 678000), at=at, names=["a", "b,c"], map={"x": 1}, inner=inner,
    )  # fmt: skip
    config = target.config(auto_create="true", insert_mode="upsert", pk_mode="record_value", pk_fields="id")
    with sink_task(JdbcSinkTask, config) as task:
        many = [schema.of({**dict(row.items()), "id": number}) for number in range(1, 31)]
        task.put(records("all", *many))
        assert not task.context.reported
    found = target.rows()
    assert len(found) == 30
    one = found[0]
    assert one[:5] == (1, 2, 1, 'tab\t"quote"\\ grüße\n', b"\x00\xff")
    assert Decimal(one[5]).quantize(Decimal("0.01")) == Decimal("12.30")
    assert str(one[6]) == "2026-01-02"
    assert one[12] == "new"
    assert str(one[8]) in ("2026-01-02 03:04:05.678000", "2026-01-02 03:04:05.678")
    assert one[9] == ["a", "b,c"] if target.kind == POSTGRESQL else json.loads(one[9]) == ["a", "b,c"]
    as_json = (lambda value: value) if target.kind == POSTGRESQL else json.loads
    assert as_json(one[10]) == {"x": 1}
    assert as_json(one[11]) == {"a": 1}


def test_upsert_writes_the_last_of_each_key(target: Target) -> None:
    config = target.config(auto_create="true", insert_mode="upsert", pk_mode="record_key")
    config["pk.fields"] = "id"
    with sink_task(JdbcSinkTask, config) as task:
        for count in (3, 40):
            values = orders(*((n % (count // 2), f"{count}-{n}", n) for n in range(count)))
            keys = [KEY.new(id=value["id"]) for value in values]
            task.put(records("t", *values, keys=keys))
    assert len(target.rows()) == 20
    assert target.rows("id, note")[:2] == [(0, "40-20"), (1, "40-21")]


def test_deletes_keep_their_order_among_upserts(target: Target) -> None:
    config = target.config(
        auto_create="true", insert_mode="upsert", pk_mode="record_key", delete_enabled="true"
    )
    config["pk.fields"] = "id"
    rows = orders((1, "a", 1), (2, "b", 1), (3, "c", 1))
    again = ORDER.new(id=2, note="again")
    with sink_task(JdbcSinkTask, config) as task:
        task.put(records("t", *rows, None, None, again, None,
                         keys=[KEY.new(id=n) for n in (1, 2, 3, 1, 2, 2, 7)]))  # fmt: skip
        assert not task.context.reported
        assert target.rows("id, note") == [(2, "again"), (3, "c")]
        task.put(
            records(
                "t",
                *orders(*((n, "x", 1) for n in range(10, 60))),
                keys=[KEY.new(id=n) for n in range(10, 60)],
            )
        )
        task.put(records("t", *[None] * 49, keys=[KEY.new(id=n) for n in range(11, 60)]))
    assert target.rows("id, note") == [(2, "again"), (3, "c"), (10, "x")]


def test_insert_and_update_modes(target: Target) -> None:
    target.run(f"CREATE TABLE {target.table} (id INTEGER, note VARCHAR(50), price FLOAT)")
    with sink_task(JdbcSinkTask, target.config()) as task:
        task.put(records("t", *orders(*((n % 3, "x", n) for n in range(30)))))
    assert len(target.rows()) == 30
    config = target.config(
        insert_mode="update", pk_mode="record_value", pk_fields="id", fields_whitelist="note"
    )
    with sink_task(JdbcSinkTask, config) as task:
        task.put(records("t", *orders(*((n, f"n{n}", None) for n in range(1, 40)))))
    assert {(row[0], row[1]) for row in target.rows()} == {(0, "x"), (1, "n1"), (2, "n2")}
    assert all(row[2] is not None for row in target.rows())


def test_the_place_in_the_topic_can_be_the_key(target: Target) -> None:
    config = target.config(auto_create="true", insert_mode="upsert", pk_mode="kafka")
    with sink_task(JdbcSinkTask, config) as task:
        for _ in range(2):
            task.put(records("topic-1", *orders((5, "a", 1), (5, "b", 1)), first=7))
    columns = "__connect_topic, __connect_partition, __connect_offset, note"
    assert target.rows(columns, "3") == [("topic-1", 0, 7, "a"), ("topic-1", 0, 8, "b")]


def test_objects_without_a_schema_make_their_table(target: Target) -> None:
    config = target.config(
        auto_create="true", auto_evolve="true", insert_mode="upsert", pk_mode="record_key", pk_fields="id"
    )
    values: list[Any] = [
        {"name": "a", "n": 1, "f": 1, "ok": True, "tags": ["x"], "none": None},
        {"name": "b", "n": 2, "f": 2.5, "ok": False, "tags": {"y": 1}, "none": None},
    ]
    with sink_task(JdbcSinkTask, config) as task:
        task.put(records("t", *values, keys=[{"id": 1}, {"id": 2}]))
        task.put(records("t", {"name": "c", "none": {"deep": [1]}, "more": 3}, keys=[{"id": 1}]))
        assert not task.context.reported
    found = target.rows("id, name, n, f, ok, none, more")
    assert found == [(1, "c", 1, 1.0, 1, '{"deep":[1]}', 3), (2, "b", 2, 2.5, 0, None, None)]
    with sink_task(JdbcSinkTask, {**config, "penstock.infer.schema": "false"}) as task:
        task.put(records("t", *values, keys=[{"id": 1}, {"id": 2}]))
        assert "penstock.infer.schema" in str(task.context.reported[0][1])


def test_columns_are_added_where_that_is_allowed(target: Target) -> None:
    config = target.config(auto_create="true", insert_mode="upsert", pk_mode="record_value", pk_fields="id")
    wider = struct("w", id=INT64, note=STRING.optional(), extra=INT32.optional())
    strict = struct("s", id=INT64, must=INT32)
    with sink_task(JdbcSinkTask, config) as task:
        task.put(records("t", *orders((1, "a", 1))))
        task.put(records("t", wider.new(id=2, extra=5)))
        [(_, error)] = task.context.reported
        assert "has no columns extra, and auto.evolve is not set" in str(error)
    with sink_task(JdbcSinkTask, {**config, "auto.evolve": "true"}) as task:
        task.put(records("t", wider.new(id=2, extra=5), *orders((3, "c", 3))))
        assert not task.context.reported
        task.put(records("t", strict.new(id=4, must=1)))
        assert "required and has no default" in str(task.context.reported[0][1])
    assert target.rows("id, note, price, extra") == [
        (1, "a", 1.0, None),
        (2, None, None, 5),
        (3, "c", 3.0, None),
    ]


def test_a_row_that_does_not_fit_is_told_and_the_others_are_written(target: Target) -> None:
    target.run(
        f"CREATE TABLE {target.table} (id INTEGER PRIMARY KEY, note VARCHAR(5) NOT NULL CHECK (note <> 'bad'))"
    )
    schema = struct("x", id=INT64, note=STRING.optional())
    config = target.config(insert_mode="upsert", pk_mode="record_value", pk_fields="id")
    notes: list[Any] = ["ok"] * 100
    notes[13], notes[77] = None, "bad"
    with sink_task(JdbcSinkTask, config) as task:
        task.put(records("t", *[schema.new(id=n, note=note) for n, note in enumerate(notes)]))
        assert sorted(record.offset for record, _ in task.context.reported) == [13, 77]
        assert all(isinstance(error, DataError) for _, error in task.context.reported)
        task.put(records("t", schema.new(id=200, note="fine")))
    assert len(target.rows()) == 99
    with sink_task(JdbcSinkTask, config, tolerates=False) as task:
        with pytest.raises(DataError):
            task.put(records("t", schema.new(id=300, note="fine"), schema.new(id=301, note="bad")))
        task.put(records("t", schema.new(id=302, note="fine")))
    assert [row[0] for row in target.rows()][-2:] == [200, 302]


def test_records_of_no_use_are_told(pg: Target) -> None:
    config = pg.config(auto_create="true", insert_mode="upsert", pk_mode="record_key")
    with sink_task(JdbcSinkTask, {**config, "pk.fields": "id"}) as task:
        task.put(records("t", *orders((1, "a", 1)), None, "text", keys=[None, {"id": 1}, {"id": 1}]))
        told = [str(error) for _, error in task.context.reported]
        assert [("no key" in told[0]), ("delete.enabled" in told[1]), ("struct or an object" in told[2])] == [
            True
        ] * 3
        task.put(records("t", *orders((1, "a\x00", 1)), keys=[{"id": 5}]))
        assert "NUL" in str(task.context.reported[-1][1])
        task.put(records("t", *orders((1, "a", 1)), keys=[{"id": None}]))
        assert "must have no null" in str(task.context.reported[-1][1])
    with sink_task(JdbcSinkTask, pg.config(table_name_format="not_there")) as task:
        task.put(records("t", *orders((1, "a", 1))))
        assert "There is no table not_there, and auto.create is not set" in str(task.context.reported[0][1])


def test_names_are_quoted_and_a_dot_divides_schema_and_table(pg: Target) -> None:
    pg.run("CREATE SCHEMA IF NOT EXISTS shop")
    config = pg.config(
        auto_create="true", insert_mode="upsert", pk_mode="record_value", table_name_format="shop.${topic}"
    )
    config["pk.fields"] = 'the "id" %'
    with sink_task(JdbcSinkTask, config) as task:
        for count in (1, 30):
            values = [{'the "id" %': n, "Select": n} for n in range(count)]
            task.put(records("To-pic", *values))
        assert not task.context.reported
    assert pg.run('SELECT count(*) FROM shop."To-pic"') == [(30,)]


def test_times_follow_the_zone_of_the_database(pg: Target) -> None:
    pg.run(f"CREATE TABLE {pg.table} (id INTEGER, plain TIMESTAMP, zoned TIMESTAMPTZ)")
    schema = struct("x", id=INT32, plain=TIMESTAMP, zoned=TIMESTAMP)
    at = dt.datetime(2026, 7, 1, 12, tzinfo=dt.UTC)
    with sink_task(JdbcSinkTask, pg.config(db_timezone="Europe/Berlin")) as task:
        task.put(records("t", schema.new(id=1, plain=at, zoned=at)))
    [(plain, zoned)] = pg.rows("plain, zoned")
    assert plain == dt.datetime(2026, 7, 1, 14)
    assert zoned == at


def test_exactly_once_leaves_out_what_is_written(target: Target) -> None:
    config = target.config(auto_create="true", penstock_offsets_table=f"{target.table}_offsets")
    with sink_task(JdbcSinkTask, config) as task:
        task.open([("t", 0)])
        assert task.context.sought == {}
        task.put(records("t", {"n": 1}, {"n": 2}))
        task.put(records("t", {"n": 1}, {"n": 2}, {"n": 3}))
        with sink_task(JdbcSinkTask, config) as other:
            other.open([("t", 0), ("t", 1)])
            assert other.context.sought == {("t", 0): 3}
            other.put(records("t", {"n": 4}, first=3))
        task.put(records("t", {"n": 3}, {"n": 4}, {"n": 5}, first=2))
    assert target.rows() == [(1,), (2,), (3,), (4,), (5,)]
    assert JdbcSink().alter_offsets({**config, "name": "tested"}, {("t", 0): 1, ("t", 2): 7, ("t", 1): None})
    with sink_task(JdbcSinkTask, config) as task:
        task.open([("t", 0), ("t", 1), ("t", 2)])
        assert task.context.sought == {("t", 0): 1, ("t", 2): 7}


def test_a_wrong_login_is_hopeless_and_a_server_that_is_away_is_not(
    postgresql: PostgreSql, mariadb: MariaDb
) -> None:
    for login in (postgresql.login, mariadb.login):
        with pytest.raises(Hopeless), sink_task(JdbcSinkTask, {**login, "connection.password": "wrong"}):
            pass
    nobody = {
        "connection.url": "jdbc:postgresql://127.0.0.1:1/x",
        "max.retries": "1",
        "retry.backoff.ms": "7",
    }
    with sink_task(JdbcSinkTask, nobody) as task:
        with pytest.raises(RetriableError):
            task.put(records("t", {"a": 1}))
        assert task.context.retry_s == 0.007
        with pytest.raises(ConnectError, match=r"max\.retries"):
            task.put(records("t", {"a": 1}))


def test_mistakes_in_a_configuration_are_told_before_it_is_taken() -> None:
    def told(**more: str) -> set[str]:
        given = {
            "connection.url": "jdbc:sqlite:x",
            **{name.replace("_", "."): value for name, value in more.items()},
        }
        return set(JdbcSink.check(given))

    assert told() == set()
    assert told(connection_url="jdbc:oracle:thin:@x") == {"connection.url"}
    assert told(connection_url="nonsense") == {"connection.url"}
    assert told(db_timezone="Mars/Olympus") == {"db.timezone"}
    assert told(insert_mode="upsert") == {"insert.mode"}
    assert told(insert_mode="UPSERT", pk_mode="kafka", pk_fields="a,b") == {"pk.fields"}
    assert told(delete_enabled="true", pk_mode="record_value") == {"delete.enabled"}
    with pytest.raises(InvalidConfig):
        JdbcSink.settings.parse({"connection.url": "x", "insert.mode": "other"})
    assert JdbcSink.check({}) == {}
