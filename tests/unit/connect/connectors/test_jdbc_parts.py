"""URLs, failures and batches of the JDBC connectors."""

from __future__ import annotations

import sqlite3
from typing import Any

import psycopg
import pymysql
import pytest
from sqlalchemy.exc import OperationalError

from penstock.connect.connectors.jdbc.batches import Item, staged
from penstock.connect.connectors.jdbc.failures import Sort, sort_of
from penstock.connect.connectors.jdbc.queries import Place
from penstock.connect.connectors.jdbc.rows import Column, Shape
from penstock.connect.connectors.jdbc.urls import url_of
from penstock.connect.errors import ConnectError, InvalidConfig


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("jdbc:postgresql://h:5433/db", "postgresql+psycopg://h:5433/db"),
        ("jdbc:postgresql://h/db?user=u&password=p&ssl=true", "postgresql+psycopg://u:p@h:5432/db?sslmode=require"),
        ("jdbc:postgresql://h/db?currentSchema=s", "postgresql+psycopg://h:5432/db?options=-csearch_path%3Ds"),
        ("jdbc:postgresql://[::1]:5433/db", "postgresql+psycopg://[::1]:5433/db"),
        ("jdbc:postgresql://one:1,two:2/db?loadBalanceHosts=true", "postgresql+psycopg://one:1/db"),
        ("jdbc:mysql://h/db?useSSL=false", "mysql+pymysql://h:3306/db"),
        ("jdbc:mariadb://h:3307/db", "mariadb+pymysql://h:3307/db"),
        ("jdbc:sqlite:/a/b.db", "sqlite:////a/b.db"),
        ("jdbc:sqlite:b.db", "sqlite:///b.db"),
        ("postgresql://u:p@h/db", "postgresql+psycopg://u:p@h/db"),
        ("postgres://h/db", "postgresql+psycopg://h/db"),
    ],
)  # fmt: skip
def test_urls_of_jdbc_and_of_sqlalchemy_are_taken(text: str, expected: str) -> None:
    assert url_of(text).render_as_string(hide_password=False) == expected


def test_the_login_and_the_dialect_stand_over_the_url() -> None:
    found = url_of("jdbc:mysql://a:b@h/db", "user", "word", "MariaDbDatabaseDialect")
    assert (found.username, found.password, found.drivername) == ("user", "word", "mariadb+pymysql")
    for wrong in ("jdbc:oracle:thin:@h", "nothing", "jdbc:postgresql://h:port/db", ""):
        with pytest.raises(InvalidConfig):
            url_of(wrong)
    with pytest.raises(InvalidConfig) as told:
        url_of("no url with a secret:word@h?password=word")
    assert "word" not in str(told.value)


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (psycopg.errors.UniqueViolation("x"), Sort.ROW),
        (psycopg.errors.InvalidTextRepresentation("x"), Sort.ROW),
        (psycopg.errors.DatatypeMismatch("x"), Sort.ROW),
        (psycopg.errors.InvalidPassword("x"), Sort.LOGIN),
        (psycopg.errors.AdminShutdown("x"), Sort.AWAY),
        (psycopg.errors.DeadlockDetected("x"), Sort.AWAY),
        (psycopg.errors.UndefinedTable("x"), Sort.OTHER),
        (psycopg.OperationalError("connection failed"), Sort.AWAY),
        (psycopg.OperationalError('password authentication failed for user "x"'), Sort.LOGIN),
        (psycopg.DataError("NUL"), Sort.ROW),
        (pymysql.err.OperationalError(1045, "x"), Sort.LOGIN),
        (pymysql.err.OperationalError(2003, "x"), Sort.AWAY),
        (pymysql.err.OperationalError(1213, "deadlock"), Sort.AWAY),
        (pymysql.err.DataError(1406, "too long"), Sort.ROW),
        (pymysql.err.IntegrityError(1062, "twice"), Sort.ROW),
        (pymysql.err.ProgrammingError(1146, "no table"), Sort.OTHER),
        (sqlite3.OperationalError("database is locked"), Sort.AWAY),
        (sqlite3.IntegrityError("UNIQUE"), Sort.ROW),
        (sqlite3.OperationalError("no such table"), Sort.OTHER),
        (ConnectionResetError(), Sort.AWAY),
        (OverflowError(), Sort.ROW),
        (RuntimeError(), Sort.OTHER),
    ],
)  # fmt: skip
def test_errors_are_told_apart(error: Exception, expected: Sort) -> None:
    assert sort_of(error) is expected
    if isinstance(error, psycopg.Error | sqlite3.Error):
        assert sort_of(OperationalError("s", None, error)) is expected


def shape(*names: str, is_delete: bool = False, keys: int = 1) -> Shape:
    columns = [Column(name, None, place < keys) for place, name in enumerate(names)]
    return Shape("t", columns, lambda record: (), is_delete=is_delete)


WIDE, NARROW, GONE = shape("id", "a", "b"), shape("id", "a"), shape("id", is_delete=True)


def told(items: list[tuple[Shape, Any]], mode: str = "upsert") -> list[tuple[str, list[Any]]]:
    made = [Item(kind, row, None) for kind, row in items]  # type: ignore[arg-type]
    return [(stage.action, [item.row for item in stage.items]) for stage in staged(made, mode)]


def test_the_last_of_each_key_counts_and_deletes_come_first() -> None:
    items = [
        (NARROW, (1, "a")),
        (NARROW, (2, "b")),
        (GONE, (1,)),
        (NARROW, (1, "c")),
        (NARROW, (2, "d")),
        (GONE, (3,)),
    ]
    assert told(items) == [("delete", [(1,), (3,)]), ("upsert", [(1, "c"), (2, "d")])]
    assert told([(NARROW, (1, "a")), (GONE, (1,))]) == [("delete", [(1,)])]


def test_a_key_with_other_columns_is_written_behind_the_first() -> None:
    items = [(WIDE, (1, "a", "b")), (NARROW, (2, "x")), (NARROW, (1, "c")), (WIDE, (3, "a", "b"))]
    assert told(items, "update") == [
        ("update", [(1, "a", "b")]), ("update", [(2, "x")]), ("update", [(1, "c")]), ("update", [(3, "a", "b")]),
    ]  # fmt: skip
    other = [(WIDE, (1, "a", "b")), (NARROW, (2, "x")), (WIDE, (3, "a", "b"))]
    assert told(other) == [("upsert", [(1, "a", "b"), (3, "a", "b")]), ("upsert", [(2, "x")])]


def test_inserts_keep_their_order_around_deletes() -> None:
    items = [(NARROW, (1, "a")), (WIDE, (2, "a", "b")), (NARROW, (1, "b")), (GONE, (1,)), (NARROW, (1, "c"))]
    assert told(items, "insert") == [
        ("insert", [(1, "a"), (1, "b")]), ("insert", [(2, "a", "b")]), ("delete", [(1,)]), ("insert", [(1, "c")]),
    ]  # fmt: skip


def test_offsets_are_those_of_confluents_connector() -> None:
    offset = {"incrementing": 7, "timestamp": 1767225602123, "timestamp_nanos": 123456000}
    assert Place.of(offset).offset() == offset
    assert Place.of({"incrementing": 7}).offset() == {"incrementing": 7}
    assert Place.of({"timestamp": 1500}).offset() == {"timestamp": 1500, "timestamp_nanos": 500_000_000}
    assert Place.of(None).offset() == {}
    with pytest.raises(ConnectError):
        Place.of({"incrementing": "7"})
