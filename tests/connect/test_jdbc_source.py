"""The JDBC source from PostgreSQL, MariaDB and SQLite."""

from __future__ import annotations

import datetime as dt
import json
import tracemalloc
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from penstock.connect.connectors.jdbc.source import JdbcSource, JdbcSourceTask
from penstock.connect.connectors.jdbc.source_tables import TableId
from penstock.connect.data.logical import TIMESTAMP, decimal
from penstock.connect.data.schema import FLOAT64, INT32, INT64, STRING, Schema
from penstock.connect.errors import ConnectError, Hopeless, RetriableError
from tests.connect.databases import PostgreSql
from tests.connect.tasks_alone import polled, source_task
from tests.connect.test_jdbc_sink import MARIADB, POSTGRESQL, SQLITE, Target, pg, target
from tests.connect.workers import until

__all__ = ["pg", "target"]  # fixtures


def schema_of(target: Target) -> str | None:
    return {POSTGRESQL: "public", MARIADB: "penstock", SQLITE: None}[target.kind]


def config(target: Target, mode: str, **more: str) -> dict[str, str]:
    given = {name.replace("_", "."): value for name, value in more.items()}
    tables = json.dumps([[schema_of(target), target.table]])
    return {
        **target.login, "mode": mode, "topic.prefix": "db-", "poll.interval.ms": "10", "tables": tables, **given,
    }  # fmt: skip


def partition(target: Target) -> dict[str, str]:
    schema = schema_of(target)
    return {"protocol": "1", "table": f"{schema}.{target.table}" if schema else target.table}


def ids(found: Any) -> list[int]:
    return [record.value["id"] for record in found]


def test_bulk_gives_all_rows_each_time(target: Target) -> None:
    target.run(f"CREATE TABLE {target.table} (id INTEGER NOT NULL, note VARCHAR(20))")
    target.run(f"INSERT INTO {target.table} VALUES (1, 'a'), (2, NULL)")
    with source_task(JdbcSourceTask, config(target, "bulk")) as task:
        for _ in range(2):
            found = polled(task, 2)
            assert ids(found) == [1, 2]
        assert found[0].topic == f"db-{target.table}"
        assert found[0].source_offset is None
        assert found[1].value["note"] is None
        assert found[0].value_schema.name == target.table
        assert found[0].value_schema.field("note").schema == STRING.optional()


def test_incrementing_gives_new_rows_from_its_offset(target: Target) -> None:
    target.run(f"CREATE TABLE {target.table} (id BIGINT NOT NULL, note VARCHAR(20))")
    target.run(f"INSERT INTO {target.table} VALUES {', '.join(f'({n}, NULL)' for n in range(1, 251))}")
    given = config(target, "incrementing", incrementing_column_name="id")
    with source_task(JdbcSourceTask, given) as task:
        found = polled(task, 250)
        assert ids(found) == list(range(1, 251))
        assert found[99].source_partition == partition(target)
        assert found[99].source_offset == {"incrementing": 100}
        target.run(f"INSERT INTO {target.table} VALUES (251, 'new'), (252, 'new')")
        assert ids(polled(task, 2)) == [251, 252]
    with source_task(JdbcSourceTask, given, [(partition(target), {"incrementing": 248})]) as task:
        assert ids(polled(task, 4)) == [249, 250, 251, 252]
    with source_task(JdbcSourceTask, given, [({"table": target.table}, {"incrementing": 251})]) as task:
        assert ids(polled(task, 1)) == [252], "an offset of before Confluent's 5.0"


def test_the_column_that_counts_itself_is_found(target: Target) -> None:
    kind = {
        POSTGRESQL: "SERIAL PRIMARY KEY",
        MARIADB: "INT AUTO_INCREMENT PRIMARY KEY",
        SQLITE: "INTEGER PRIMARY KEY",
    }
    target.run(f"CREATE TABLE {target.table} (note VARCHAR(20), id {kind[target.kind]})")
    target.run(f"INSERT INTO {target.table} (note) VALUES ('a'), ('b')")
    with source_task(JdbcSourceTask, config(target, "incrementing")) as task:
        assert [record.source_offset for record in polled(task, 2)] == [
            {"incrementing": 1},
            {"incrementing": 2},
        ]


def micro_type(target: Target) -> str:
    return {POSTGRESQL: "TIMESTAMP", MARIADB: "DATETIME(6)", SQLITE: "TIMESTAMP"}[target.kind]


def test_timestamps_give_changed_rows_and_none_is_lost_among_those_of_one_time(target: Target) -> None:
    target.run(f"CREATE TABLE {target.table} (id INTEGER NOT NULL, at {micro_type(target)} NOT NULL)")
    rows = [(1, "01.001"), (2, "02.002"), (3, "02.002"), (4, "02.002"), (5, "03.003")]
    values = ", ".join(f"({n}, '2026-01-01 00:00:{at}')" for n, at in rows)
    target.run(f"INSERT INTO {target.table} VALUES {values}")
    given = config(target, "timestamp", timestamp_column_name="at", batch_max_rows="2")
    with source_task(JdbcSourceTask, given) as task:
        found = polled(task, 5)
        assert ids(found) == [1, 2, 3, 4, 5]
        base = 1767225600000
        first = {"timestamp": base + 1001, "timestamp_nanos": 1_000_000}
        group = {"timestamp": base + 2002, "timestamp_nanos": 2_000_000}
        last = {"timestamp": base + 3003, "timestamp_nanos": 3_000_000}
        assert [record.source_offset for record in found] == [first, first, first, group, last]
        target.run(f"UPDATE {target.table} SET at = '2026-01-01 00:00:04' WHERE id = 2")
        assert ids(polled(task, 1)) == [2]
        target.run(f"INSERT INTO {target.table} VALUES (9, '2999-01-01 00:00:00')")
        for _ in range(5):
            assert not task.poll(), "what is of the future waits"
    with source_task(JdbcSourceTask, given, [(partition(target), first)]) as task:
        assert ids(polled(task, 4)) == [3, 4, 5, 2]
    with source_task(JdbcSourceTask, {**given, "timestamp.initial": str(base + 2002)}) as task:
        assert ids(polled(task, 2)) == [5, 2]


def test_timestamp_and_number_together_tell_rows_of_one_time_apart(target: Target) -> None:
    target.run(
        f"CREATE TABLE {target.table} (id INTEGER NOT NULL, at {micro_type(target)}, made {micro_type(target)} NOT NULL)"
    )
    same = "'2026-01-01 00:00:02'"
    rows = ", ".join(f"({n}, {same if n % 2 else 'NULL'}, {same})" for n in range(1, 6))
    target.run(f"INSERT INTO {target.table} VALUES {rows}")
    given = config(
        target,
        "timestamp+incrementing",
        timestamp_column_name="at,made",
        incrementing_column_name="id",
        batch_max_rows="2",
    )
    with source_task(JdbcSourceTask, given) as task:
        found = polled(task, 5)
        assert ids(found) == [1, 2, 3, 4, 5]
    offset = {"incrementing": 3, "timestamp": 1767225602000, "timestamp_nanos": 0}
    assert found[2].source_offset == offset
    with source_task(JdbcSourceTask, given, [(partition(target), offset)]) as task:
        assert ids(polled(task, 2)) == [4, 5]
        target.run(f"UPDATE {target.table} SET at = '2026-01-01 00:00:03' WHERE id = 1")
        assert ids(polled(task, 1)) == [1]


def test_a_delay_keeps_young_rows_back(pg: Target) -> None:
    pg.run(f"CREATE TABLE {pg.table} (id INTEGER, at TIMESTAMPTZ NOT NULL)")
    pg.run(f"INSERT INTO {pg.table} VALUES (1, now() - interval '1 hour'), (2, now() - interval '1 minute')")
    given = config(pg, "timestamp", timestamp_column_name="at", timestamp_delay_interval_ms="600000")
    with source_task(JdbcSourceTask, given) as task:
        assert ids(polled(task, 1)) == [1]
        for _ in range(5):
            assert not task.poll()


def test_a_query_stands_for_a_table(target: Target) -> None:
    target.run(
        f"CREATE TABLE {target.table} (id INTEGER NOT NULL, at {micro_type(target)} NOT NULL, price NUMERIC(6,2))"
    )
    rows = ", ".join(f"({n}, '2026-01-01 00:00:0{n}', {n}.5)" for n in range(1, 6))
    target.run(f"INSERT INTO {target.table} VALUES {rows}")
    query = f"SELECT id, at, price FROM {target.table} WHERE id % 2 = 1;"
    given = config(target, "incrementing", incrementing_column_name="id", query=query)
    with source_task(JdbcSourceTask, given) as task:
        found = polled(task, 3)
        assert ids(found) == [1, 3, 5]
        assert found[0].topic == "db-"
        assert found[0].source_partition == {"query": "query"}
        assert found[0].value_schema.field("id").schema in (INT32.optional(), INT64.optional())
        if target.kind != SQLITE:
            assert found[0].value["price"] == Decimal("1.50")
            assert found[0].value["at"] == dt.datetime(2026, 1, 1, 0, 0, 1, tzinfo=dt.UTC)
    with source_task(JdbcSourceTask, {**given, "mode": "bulk", "query.suffix": "LIMIT 5"}) as task:
        assert ids(polled(task, 3)) == [1, 3, 5]
    times = {**given, "mode": "timestamp", "timestamp.column.name": "at"}
    with source_task(JdbcSourceTask, times, [({"query": "query"}, {"timestamp": 1767225601000})]) as task:
        assert ids(polled(task, 2)) == [3, 5]


def field(found: Any, name: str) -> Schema:
    schema: Schema = found.value_schema.field(name).schema
    return schema


def test_types_of_postgresql(pg: Target) -> None:
    pg.run(
        f"CREATE TABLE {pg.table} (id SMALLINT NOT NULL, big BIGINT, real_ REAL, double_ FLOAT8, flag BOOLEAN, data BYTEA, "
        "at TIMESTAMPTZ, local_ TIMESTAMP, day DATE, time_ TIME, doc JSONB, key_ UUID, names TEXT[], exact NUMERIC(10,2), "
        "whole NUMERIC(4,0), free NUMERIC, span INTERVAL, mood CHAR(3))"
    )
    pg.run(
        f"INSERT INTO {pg.table} VALUES (1, 5, 1.5, 2.5, true, '\\x00ff', '2026-07-01 12:00:00+00', '2026-07-01 12:00:00', "
        "'2026-07-01', '12:00:01', '{\"a\": 1}', 'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11', '{x,NULL}', 12.30, 42, 1.25, "
        "'1 day', 'abc')"
    )
    with source_task(JdbcSourceTask, config(pg, "bulk", db_timezone="Europe/Berlin")) as task:
        [found] = polled(task, 1)
    value = found.value
    value.check()
    noon = dt.datetime(2026, 7, 1, 12, tzinfo=dt.UTC)
    assert (value["id"], value["big"], value["real_"], value["double_"]) == (1, 5, 1.5, 2.5)
    assert (value["flag"], value["data"], value["at"]) == (True, b"\x00\xff", noon)
    assert value["local_"] == noon - dt.timedelta(hours=2)
    assert (value["day"], value["time_"]) == (dt.date(2026, 7, 1), dt.time(12, 0, 1))
    assert (value["doc"], value["names"], value["mood"]) == ('{"a": 1}', ["x", None], "abc")
    assert value["key_"] == "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"
    assert (value["exact"], value["whole"], value["span"]) == (Decimal("12.30"), Decimal(42), "1 day")
    assert value["free"] == Decimal("1.25")
    assert field(found, "exact") == decimal(2).optional()
    assert field(found, "at") == TIMESTAMP.optional()
    with source_task(JdbcSourceTask, config(pg, "bulk", numeric_mapping="best_fit")) as task:
        [found] = polled(task, 1)
    assert field(found, "exact") == FLOAT64.optional()
    assert (field(found, "whole").type, found.value["whole"]) == ("int16", 42)


@pytest.mark.parametrize("target", [MARIADB], indirect=True)
def test_types_of_mariadb(target: Target) -> None:
    target.run(
        f"CREATE TABLE {target.table} (id TINYINT NOT NULL, u INT UNSIGNED, f FLOAT, d DOUBLE, data BLOB, at TIMESTAMP(3) NULL, "
        "local_ DATETIME(6), day DATE, time_ TIME(3), text_ LONGTEXT, e ENUM('x','y'), exact DECIMAL(10,2), y YEAR)"
    )
    target.run(
        f"INSERT INTO {target.table} VALUES (1, 4000000000, 1.5, 2.5, x'00ff', NULL, '2026-07-01 12:00:00.000123', "
        "'2026-07-01', '12:00:01.5', 'grüße', 'y', 12.3, 2026)"
    )
    target.run(
        f"SET STATEMENT time_zone = '+00:00' FOR UPDATE {target.table} SET at = '2026-07-01 12:00:00.5'"
    )
    with source_task(JdbcSourceTask, config(target, "bulk", db_timezone="Europe/Berlin")) as task:
        [found] = polled(task, 1)
    value = found.value
    value.check()
    noon = dt.datetime(2026, 7, 1, 12, tzinfo=dt.UTC)
    assert (value["id"], value["u"], value["f"], value["d"], value["data"]) == (
        1,
        4_000_000_000,
        1.5,
        2.5,
        b"\x00\xff",
    )
    assert value["at"] == noon + dt.timedelta(milliseconds=500)
    assert value["local_"] == noon - dt.timedelta(hours=2) + dt.timedelta(microseconds=123)
    assert (value["day"], value["time_"]) == (dt.date(2026, 7, 1), dt.time(12, 0, 1, 500_000))
    assert (value["text_"], value["e"], value["exact"], value["y"]) == ("grüße", "y", Decimal("12.30"), 2026)


def test_a_row_that_cannot_be_told_is_reported(pg: Target) -> None:
    pg.run(f"CREATE TABLE {pg.table} (id INTEGER, n NUMERIC(5,2))")
    pg.run(f"INSERT INTO {pg.table} VALUES (1, 1), (2, 'NaN'), (3, 3)")
    given = config(pg, "incrementing", incrementing_column_name="id", validate_non_null="false")
    with source_task(JdbcSourceTask, given) as task:
        assert ids(polled(task, 2)) == [1, 3]
        [(record, error)] = task.context.reported
        assert record.source_offset == {"incrementing": 2}
        assert "NaN" in str(error)


def test_columns_that_may_be_null_are_refused(target: Target) -> None:
    target.run(f"CREATE TABLE {target.table} (id INTEGER, at {micro_type(target)} NULL)")
    for mode in ("incrementing", "timestamp"):
        given = config(target, mode, incrementing_column_name="id", timestamp_column_name="at")
        with (
            source_task(JdbcSourceTask, given) as task,
            pytest.raises(Hopeless, match=r"validate\.non\.null"),
        ):
            task.poll()
    given = config(target, "incrementing", incrementing_column_name="nothing")
    with source_task(JdbcSourceTask, given) as task, pytest.raises(ConnectError, match="no column nothing"):
        task.poll()


def test_a_column_that_is_added_is_in_the_next_rows(target: Target) -> None:
    target.run(f"CREATE TABLE {target.table} (id INTEGER NOT NULL)")
    target.run(f"INSERT INTO {target.table} VALUES (1)")
    with source_task(JdbcSourceTask, config(target, "incrementing", incrementing_column_name="id")) as task:
        assert list(polled(task, 1)[0].value) == ["id"]
        until(lambda: not task.poll())
        target.run(f"ALTER TABLE {target.table} ADD COLUMN note VARCHAR(5)")
        target.run(f"INSERT INTO {target.table} VALUES (2, 'x')")
        assert polled(task, 1)[0].value["note"] == "x"


@pytest.mark.parametrize("target", [POSTGRESQL, MARIADB], indirect=True)
def test_a_large_table_is_streamed(target: Target) -> None:
    target.run(f"CREATE TABLE {target.table} (id INTEGER NOT NULL, note VARCHAR(2000))")
    numbers = {
        POSTGRESQL: "SELECT n, repeat('x', 1000) FROM generate_series(1, 40000) n",
        MARIADB: "SELECT seq, repeat('x', 1000) FROM seq_1_to_40000",
    }
    target.run(f"INSERT INTO {target.table} {numbers[target.kind]}")
    given = config(target, "incrementing", incrementing_column_name="id", batch_max_rows="500")
    tracemalloc.start()
    try:
        with source_task(JdbcSourceTask, given) as task:
            until(lambda: task.poll())
            peak = tracemalloc.get_traced_memory()[1]
            assert peak < 15_000_000, "not all of 40 MB at once"
    finally:
        tracemalloc.stop()


def test_a_database_that_dies_in_the_middle_is_waited_for() -> None:
    with PostgreSql() as server:
        server.run(
            "CREATE TABLE numbered AS SELECT n AS id, repeat('x', 500) AS note FROM generate_series(1, 20000) n"
        )
        server.run("ALTER TABLE numbered ALTER id SET NOT NULL")
        server.run("CHECKPOINT")
        given = {
            **server.login, "mode": "incrementing", "incrementing.column.name": "id", "topic.prefix": "",
            "tables": '[["public", "numbered"]]', "poll.interval.ms": "10", "batch.max.rows": "100",
        }  # fmt: skip
        with source_task(JdbcSourceTask, given) as task:
            found = ids(task.poll())
            server.kill()

            def fails() -> bool:
                """What is on its way may still come."""
                try:
                    found.extend(ids(task.poll() or ()))
                except RetriableError:
                    return True
                return False

            until(fails)
            server.start()
            until(lambda: found.extend(ids(task.poll() or ())) or len(found) >= 20_000)
    assert found == list(range(1, 20_001))


class ConnectorContext:
    def __init__(self) -> None:
        self.asked = 0

    def request_reconfiguration(self) -> None:
        self.asked += 1


def test_tables_are_shared_among_tasks_and_new_ones_are_noticed(tmp_path: Path) -> None:
    from tests.connect.test_jdbc_sink import sqlite_target

    target = sqlite_target(tmp_path / "db")
    for name in ("a", "b", "c", "other"):
        target.run(f"CREATE TABLE {name} (id INTEGER PRIMARY KEY)")
    connector = JdbcSource()
    context = connector.context = ConnectorContext()  # type: ignore[assignment]
    given = {
        **target.login, "mode": "bulk", "topic.prefix": "p", "table.poll.interval.ms": "20", "table.blacklist": "other",
    }  # fmt: skip
    connector.configure(given)
    connector.start()
    try:
        told = [json.loads(each["tables"]) for each in connector.task_configs(2)]
        assert told == [[[None, "a"], [None, "c"]], [[None, "b"]]]
        assert len(connector.task_configs(10)) == 3
        target.run("CREATE TABLE d (id INTEGER PRIMARY KEY)")
        until(lambda: context.asked)  # type: ignore[attr-defined]
        assert len(connector.task_configs(10)) == 4
    finally:
        connector.stop()


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({}, ["a", "shop.b", "shop.c"]),
        ({"table.whitelist": "b,shop.c"}, ["shop.b", "shop.c"]),
        ({"table.blacklist": "db.shop.b"}, ["a", "shop.c"]),
        ({"table.include.list": r"shop\..*", "table.exclude.list": ".*c"}, ["shop.b"]),
    ],
)
def test_lists_say_which_tables_are_read(given: dict[str, str], expected: list[str]) -> None:
    from penstock.connect.connectors.jdbc.source_tables import is_wanted

    values = JdbcSource.settings.parse({"connection.url": "x", "mode": "bulk", "topic.prefix": "", **given})
    tables = [TableId(None, "a"), TableId("shop", "b"), TableId("shop", "c")]
    assert [table.full_name for table in tables if is_wanted(table, values, "db")] == expected


def test_mistakes_in_a_configuration_and_in_offsets_are_told() -> None:
    base = {"connection.url": "jdbc:sqlite:x", "mode": "timestamp", "topic.prefix": "p"}
    assert set(JdbcSource.check(base)) == {"timestamp.column.name"}
    both = {**base, "mode": "bulk", "query": "SELECT 1", "table.whitelist": "a", "table.include.list": "("}
    assert set(JdbcSource.check(both)) == {"query", "table.whitelist", "table.include.list"}
    connector, place = JdbcSource(), {"protocol": "1", "table": "a"}

    class Partition(dict[str, str]):
        __hash__ = object.__hash__  # type: ignore[assignment]

    assert connector.alter_offsets(base, {Partition(place): {"incrementing": 3}, Partition({"x": "1"}): None})
    assert connector.exactly_once_support({**base, "mode": "incrementing"}) is True
    assert connector.exactly_once_support(base) is False
    for partition_, offset in (
        (place, {"incrementing": "3"}),
        (place, {}),
        ({"x": "1"}, {"incrementing": 1}),
    ):
        with pytest.raises(ConnectError):
            connector.alter_offsets(base, {Partition(partition_): offset})
    with pytest.raises(ConnectError, match="bulk"):
        connector.alter_offsets({**base, "mode": "bulk"}, {})
