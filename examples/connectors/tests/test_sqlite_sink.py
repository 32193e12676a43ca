import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from example_connectors.sqlite_sink import SqliteSink

from penstock.connect import RetriableError
from penstock.connect.testing import SinkTest


@pytest.fixture
def path(tmp_path: Path) -> str:
    return str(tmp_path / "records.db")


@pytest.fixture
def test(path: str) -> Iterator[SinkTest]:
    with SinkTest(SqliteSink, {"database": path, "errors.tolerance": "all"}) as running:
        yield running


def rows(path: str) -> list[tuple[str, str]]:
    with closing(sqlite3.connect(path)) as database:
        return database.execute("SELECT key, value FROM records").fetchall()


def test_a_record_is_a_row(test: SinkTest, path: str) -> None:
    test.record({"amount": 7}, key="ana")
    test.record(None, key="ben")
    test.deliver()
    assert rows(path) == [("ana", '{"amount": 7}'), ("ben", "null")]


def test_nothing_is_written_twice_after_a_crash(test: SinkTest, path: str) -> None:
    test.put(1, 2)
    before = test.task
    test.crash()
    before.stop()
    assert test.committed == {}
    assert test.deliver() == [], "the database knows more than the group"
    test.put(3)
    assert [value for _, value in rows(path)] == ["1", "2", "3"]


def test_partitions_that_come_back_go_on_where_they_were(test: SinkTest, path: str) -> None:
    test.put(1)
    test.rebalance([("topic", 1)])
    test.rebalance([("topic", 0)])
    test.put(2)
    assert [value for _, value in rows(path)] == ["1", "2"]


def test_a_busy_database_is_tried_again(test: SinkTest, path: str) -> None:
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(RetriableError, match="busy"):
            test.put(1)
        other.execute("ROLLBACK")
    assert len(test.deliver()) == 1
    assert rows(path) == [(None, "1")]


def test_what_is_not_json_is_reported_and_the_rest_is_written(test: SinkTest, path: str) -> None:
    test.put(1, object(), 2)
    assert [value for _, value in rows(path)] == ["1", "2"]
    assert ["not JSON" in str(report.error) for report in test.reports] == [True]
