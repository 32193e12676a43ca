"""Records to Iceberg tables, with a catalog in SQLite and files in a folder."""

from __future__ import annotations

import datetime as dt
import logging
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyiceberg.catalog import Catalog
from pyiceberg.catalog.sql import SqlCatalog

from penstock.cli.verbs.app import run
from penstock.connect import ConnectError, InvalidConfig, RetriableError, SinkRecord
from penstock.connect.connectors.lake.catalogs import catalog_properties
from penstock.connect.connectors.lake.compaction import compact
from penstock.connect.connectors.lake.offsets import offsets_of
from penstock.connect.connectors.lake.partitions import partition_fields
from penstock.connect.connectors.lake.tables import Overtaken
from penstock.connect.connectors.lake.task import LakeSink, LakeTask
from penstock.connect.data import INT32, INT64, STRING, TIMESTAMP, Schema, array, decimal, struct
from penstock.connect.tasks.columnar_sink import Columns, NotColumns

PLACE = ("t", 0)
ORDER = struct("order", id=INT32, note=STRING.optional())


class Context:
    connector, task = "lake", 0

    def __init__(self) -> None:
        self.reported: list[Any] = []
        self.sought: dict[Any, int] = {}

    def report(self, record: SinkRecord, error: BaseException) -> None:
        self.reported.append((record.value, str(error)))

    def seek(self, place: Any, offset: int) -> None:
        self.sought[place] = offset

    def request_commit(self) -> None: ...


class Lake:
    def __init__(self, folder: Path) -> None:
        self.properties = {
            "uri": f"sqlite:///{folder}/catalog.db",
            "warehouse": (folder / "warehouse").as_uri(),
            "pool_class": "null",
        }
        self.given = {f"iceberg.catalog.{name}": value for name, value in self.properties.items()}
        self._catalogs: list[SqlCatalog] = []
        self.tasks: list[LakeTask] = []

    def catalog(self) -> Catalog:
        self._catalogs.append(SqlCatalog("iceberg", **self.properties))
        return self._catalogs[-1]

    def task(self, *, tables: str = "shop.orders", connector: str = "lake", **more: str) -> LakeTask:
        task = LakeTask()
        task.configure({
            "iceberg.tables": tables, "iceberg.tables.auto-create-enabled": "true",
            "iceberg.tables.evolve-schema-enabled": "true", "iceberg.control.commit.interval-ms": "0", **self.given, **more,
        })  # fmt: skip
        task.log = logging.getLogger("tests")
        task.context = Context()  # type: ignore[assignment]
        task.context.connector = connector
        task.start()
        task.open([PLACE])
        self.tasks.append(task)
        return task

    def rows(self, table: str = "shop.orders") -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self.catalog().load_table(table).scan().to_arrow().to_pylist()
        return sorted(found, key=str)

    def close(self) -> None:
        for each in [*self._catalogs, *self.tasks]:
            each.close() if isinstance(each, SqlCatalog) else each.stop()


@pytest.fixture
def lake(tmp_path: Path) -> Iterator[Lake]:
    made = Lake(tmp_path)
    yield made
    made.close()


def record(offset: int, value: Any, schema: Schema | None = None) -> SinkRecord:
    return SinkRecord("t", 0, offset, value, value_schema=schema)


def orders(*ids: int) -> list[SinkRecord]:
    return [record(number, ORDER.new(id=number, note=f"n{number}"), ORDER) for number in ids]


def test_a_table_is_made_of_the_first_schema_and_offsets_are_in_its_snapshot(lake: Lake) -> None:
    task = lake.task()
    task.put(orders(0, 1))
    assert lake.rows() == [{"id": 0, "note": "n0"}, {"id": 1, "note": "n1"}]
    table = lake.catalog().load_table("shop.orders")
    assert [(each.name, str(each.field_type), each.required) for each in table.schema().fields] == [
        ("id", "int", True), ("note", "string", False),
    ]  # fmt: skip
    assert offsets_of(table, "lake") == {PLACE: 2}
    assert task.pre_commit({}) == {PLACE: 2}


def test_a_task_that_starts_again_goes_on_where_the_table_ends(lake: Lake) -> None:
    lake.task().put(orders(0, 1))
    again = lake.task()
    assert again.context.sought == {PLACE: 2}  # type: ignore[attr-defined]
    again.put(orders(0, 1, 2))
    assert [row["id"] for row in lake.rows()] == [0, 1, 2]
    assert lake.task(connector="another").context.sought == {}  # type: ignore[attr-defined]


def test_nothing_is_committed_before_it_is_time_and_all_of_it_at_the_end(lake: Lake) -> None:
    task = lake.task(**{"iceberg.control.commit.interval-ms": "100000"})
    task.put(orders(0, 1))
    assert lake.rows() == []
    assert task.pre_commit({}) == {}
    task.close([PLACE])
    assert [row["id"] for row in lake.rows()] == [0, 1]


def test_a_task_that_was_replaced_cannot_add_its_records_again(lake: Lake) -> None:
    old, new = lake.task(**{"iceberg.control.commit.interval-ms": "100000"}), lake.task()
    old.put(orders(0, 1))
    new.put(orders(0, 1))
    with pytest.raises(Overtaken):
        old.close([PLACE])
    assert [row["id"] for row in lake.rows()] == [0, 1]


@pytest.mark.parametrize("is_done", [True, False])
def test_a_commit_whose_answer_is_lost_is_made_once(
    lake: Lake, monkeypatch: pytest.MonkeyPatch, is_done: bool
) -> None:
    task = lake.task()
    task.put(orders(0))
    real = SqlCatalog.commit_table

    def commit(*given: Any) -> Any:
        if is_done:
            real(*given)
        raise OSError("connection reset")

    monkeypatch.setattr(SqlCatalog, "commit_table", commit)
    with pytest.raises(RetriableError):
        task.put(orders(1))
    monkeypatch.undo()
    task.put(orders(1, 2))
    assert [row["id"] for row in lake.rows()] == [0, 1, 2]
    assert task.pre_commit({}) == {PLACE: 3}


def test_tasks_with_other_partitions_commit_to_one_table(lake: Lake) -> None:
    one = lake.task(**{"iceberg.control.commit.interval-ms": "100000"})
    other = lake.task(**{"iceberg.control.commit.interval-ms": "100000"})
    other.close([PLACE])
    other.open([("t", 1)])
    for task, partition in ((one, 0), (other, 1)):
        task.put([SinkRecord("t", partition, 5, ORDER.new(id=partition), value_schema=ORDER)])
    one.close([PLACE])
    other.close([("t", 1)])
    assert [row["id"] for row in lake.rows()] == [0, 1]
    table = lake.catalog().load_table("shop.orders")
    assert offsets_of(table, "lake") == {("t", 0): 6, ("t", 1): 6}


def test_who_rolls_a_table_back_has_its_records_written_again(lake: Lake) -> None:
    task = lake.task()
    task.put(orders(0))
    table = lake.catalog().load_table("shop.orders")
    first = table.current_snapshot()
    assert first is not None
    task.put(orders(1))
    table.refresh()
    table.manage_snapshots().set_current_snapshot(first.snapshot_id).commit()
    again = lake.task()
    assert again.context.sought == {PLACE: 1}  # type: ignore[attr-defined]
    again.put(orders(1, 2))
    assert [row["id"] for row in lake.rows()] == [0, 1, 2]


def test_a_table_gets_columns_wider_types_and_nulls(lake: Lake) -> None:
    task = lake.task()
    task.put(orders(0))
    later = struct(
        "order", id=INT64.optional(), tags=array(STRING).optional(), at=struct("at", city=STRING).optional()
    )
    at = later.field("at")
    assert at is not None
    task.put(
        [
            record(1, later.new(id=1 << 40, tags=["a"], at=at.schema.new(city="X")), later),
            record(2, later.new(), later),
        ]
    )
    assert lake.rows() == sorted(
        [
            {"id": 0, "note": "n0", "tags": None, "at": None},
            {"id": 1 << 40, "note": None, "tags": ["a"], "at": {"city": "X"}},
            {"id": None, "note": None, "tags": None, "at": None},
        ],
        key=str,
    )
    assert not task.context.reported  # type: ignore[attr-defined]


def test_without_evolution_other_columns_are_left_out_and_missing_ones_refused(lake: Lake) -> None:
    lake.task().put(orders(0))
    task = lake.task(**{"iceberg.tables.evolve-schema-enabled": "false"})
    task.put(
        [record(1, {"id": 1, "more": 1}), record(2, {"more": 2}), record(3, {"id": "x"}), record(4, "no map")]
    )
    assert [row["id"] for row in lake.rows()] == [0, 1]
    assert [value for value, _ in task.context.reported] == [{"more": 2}, {"id": "x"}, "no map"]  # type: ignore[attr-defined]
    assert task.pre_commit({}) == {PLACE: 5}


def test_maps_without_a_schema_make_a_table_and_tombstones_none(lake: Lake) -> None:
    task = lake.task()
    task.put(
        [record(0, {"id": 1, "price": 1.5, "note": None}), record(1, None), record(2, {"id": 2, "note": "x"})]
    )
    assert lake.rows() == [{"id": 1, "price": 1.5, "note": None}, {"id": 2, "price": None, "note": "x"}]


def test_logical_types_are_those_of_the_table(lake: Lake) -> None:
    kind = struct("row", price=decimal(2), at=TIMESTAMP)
    row = {"price": Decimal("1.25"), "at": dt.datetime(2024, 1, 2, 3, tzinfo=dt.UTC)}
    lake.task().put([record(0, kind.of(row), kind)])
    assert lake.rows() == [row]
    fields = lake.catalog().load_table("shop.orders").schema().fields
    assert [str(each.field_type) for each in fields] == ["decimal(38, 2)", "timestamptz"]


def test_tables_are_partitioned_as_the_configuration_says(lake: Lake) -> None:
    kind = struct("row", id=INT64, at=TIMESTAMP, country=STRING)
    task = lake.task(**{"iceberg.table.shop.orders.partition-by": "country, days(at), bucket[4](id)"})
    when = dt.datetime(2024, 1, 2, 23, tzinfo=dt.UTC)
    task.put([
        record(n, kind.new(id=n, at=when + dt.timedelta(hours=n), country="AB"[n % 2]), kind) for n in range(4)
    ])  # fmt: skip
    table = lake.catalog().load_table("shop.orders")
    assert [each.name for each in table.spec().fields] == ["country", "at_day", "id_bucket"]
    assert len(lake.rows()) == 4
    assert {each.file.partition[0] for each in table.scan(row_filter="country = 'A'").plan_files()} == {"A"}


@pytest.mark.parametrize("text", ["days at", "bucket(id)", "moon(id)", "identity(id, 3)"])
def test_partition_specs_that_cannot_be_are_told(text: str) -> None:
    with pytest.raises(InvalidConfig):
        partition_fields(text)


def test_records_go_to_the_table_that_their_field_names(lake: Lake) -> None:
    task = lake.task(
        tables="", **{"iceberg.tables.dynamic-enabled": "true", "iceberg.tables.route-field": "to"}
    )
    task.put([record(0, {"to": "a.x", "n": 1}), record(1, {"to": "A.Y", "n": 2}), record(2, {"n": 3})])
    assert (lake.rows("a.x"), lake.rows("a.y")) == ([{"to": "a.x", "n": 1}], [{"to": "A.Y", "n": 2}])
    again = lake.task(
        tables="b.x,b.y", connector="other",
        **{"iceberg.tables.route-field": "to", "iceberg.table.b.x.route-regex": "x.*", "iceberg.table.b.y.route-regex": ".*y"},
    )  # fmt: skip
    again.put([record(0, {"to": "xy"}), record(1, {"to": "x"})])
    assert (len(lake.rows("b.x")), len(lake.rows("b.y"))) == (2, 1)


def test_a_table_that_is_not_there_is_told(lake: Lake) -> None:
    task = lake.task(**{"iceberg.tables.auto-create-enabled": "false"})
    with pytest.raises(ConnectError, match=r"there is no table shop\.orders"):
        task.put(orders(0))


class Message:
    def __init__(self, offset: int) -> None:
        self._offset = offset

    def offset(self) -> int:
        return self._offset


def columns(table: pa.Table, start: int = 0) -> Columns:
    return Columns("t", 0, None, table, [Message(start + row) for row in range(table.num_rows)])


def test_columns_are_taken_as_they_are_and_once(lake: Lake) -> None:
    task = lake.task()
    task.put_columns([columns(pa.table({"id": [1, 2], "at": ["2024-01-01T00:00:00Z", None]}))])
    task.put_columns([columns(pa.table({"id": [2, 3]}), start=1)])
    assert [row["id"] for row in lake.rows()] == [1, 2, 3]
    assert task.pre_commit({}) == {PLACE: 3}
    with pytest.raises(NotColumns):
        task.put_columns([columns(pa.table({"id": ["x"]}), start=3)])
    assert [row["id"] for row in lake.rows()] == [1, 2, 3]


def test_small_files_become_one_and_nothing_else_changes(lake: Lake) -> None:
    task = lake.task()
    for number in range(6):
        task.put(orders(number))
    table = lake.catalog().load_table("shop.orders")
    assert compact(table) == (6, 1, 6)
    assert [row["id"] for row in lake.rows()] == list(range(6))
    assert len(list(lake.catalog().load_table("shop.orders").scan().plan_files())) == 1
    task.put(orders(6))
    assert lake.task().context.sought == {PLACE: 7}  # type: ignore[attr-defined]
    assert compact(table, least_files=3).files_before == 0


def test_partitions_stay_apart_when_files_are_put_together(lake: Lake) -> None:
    task = lake.task(**{"iceberg.tables.default-partition-by": "kind"})
    for number in range(6):
        task.put([record(number, {"kind": "ab"[number % 2], "n": number})])
    assert compact(lake.catalog().load_table("shop.orders")) == (6, 2, 6)
    assert [row["n"] for row in sorted(lake.rows(), key=lambda each: each["n"])] == list(range(6))


def test_catalogs_may_be_named_as_in_java() -> None:
    given = {
        "iceberg.catalog.catalog-impl": "org.apache.iceberg.jdbc.JdbcCatalog",
        "iceberg.catalog.uri": "jdbc:postgresql://db:5432/lake",
        "iceberg.catalog.jdbc.user": "me", "iceberg.catalog.jdbc.password": "a:b",
        "iceberg.catalog.warehouse": "s3://bucket",
        "iceberg.catalog.io-impl": "org.apache.iceberg.aws.s3.S3FileIO",
    }  # fmt: skip
    assert catalog_properties(given) == {
        "type": "sql",
        "uri": "postgresql+psycopg://me:a%3Ab@db:5432/lake",
        "warehouse": "s3://bucket",
    }


@pytest.mark.parametrize(
    ("given", "name"),
    [
        ({"iceberg.catalog.uri": "sqlite://"}, "iceberg.tables"),
        ({"iceberg.tables": "a.b"}, "iceberg.catalog.uri"),
        (
            {"iceberg.tables": "a.b", "iceberg.tables.route-field": "x", "iceberg.catalog.uri": "sqlite://"},
            "iceberg.tables",
        ),
    ],
)
def test_mistakes_are_told_by_their_setting(given: dict[str, str], name: str) -> None:
    assert list(LakeSink.check(given)) == [name]


def test_a_command_puts_files_together(
    lake: Lake, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    task = lake.task()
    for number in range(3):
        task.put(orders(number))
    file = tmp_path / "lake.properties"
    given = {"name": "lake", "iceberg.tables": "shop.orders", **lake.given}
    file.write_text("".join(f"{name}={value}\n" for name, value in given.items()))
    assert run(["lake", "compact", "--connector", str(file)]) == 0
    assert capsys.readouterr().out == "shop.orders: 3 files became 1, 3 rows\n"
    assert run(["lake", "compact", "--connector", str(file), "no.table"]) == 1
    assert capsys.readouterr().err == "penstock: there is no table no.table\n"
