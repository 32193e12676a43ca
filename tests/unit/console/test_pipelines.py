"""Rows of the page of pipelines, from what servers, groups and topics tell."""

from __future__ import annotations

from typing import Any

import pytest

from penstock.admin.health import Health
from penstock.client.errors import Unreachable
from penstock.console.clusters.model import ClusterView, GroupKind, GroupRow, TopicRow, Totals
from penstock.console.pipelines import SPARK, SQL, STREAMS, pipelines
from penstock.console.upstream.spark import SparkQuery, read_queries
from penstock.console.upstream.sql import Query

HEALTHY = Health("c", 1, [], [], 0, [], [], [], [])
PAGE = """
# TYPE penstock_spark_rows_per_second gauge
penstock_spark_rows_per_second{id="5f0b",query="counts"} 12.5
penstock_spark_lag{id="5f0b",query="counts"} 4.0
penstock_spark_state_bytes{id="5f0b",query="counts"} 2048.0
penstock_spark_failed_timestamp_seconds{error="it \\"broke\\"",id="77",query="old"} 1.7e+09
python_info{version="3"} 1.0
"""


def group(name: str, kind: GroupKind, **more: Any) -> GroupRow:
    known = {"lag": 3, "lag_s": 1.5, "per_second": 10.0, "state": "Stable", "topics": (), **more}
    return GroupRow(
        name, kind, known["state"], "Classic", "consumer", 1, 2, (), known["topics"], known["lag"], known["lag_s"],
        known["per_second"],
    )  # fmt: skip


def topic(name: str, size_bytes: int) -> TopicRow:
    return TopicRow(name, "id", False, (), 1, 0, size_bytes, None, 0, 0)


def view(groups: list[GroupRow], topics: list[TopicRow]) -> ClusterView:
    return ClusterView(
        at_s=0, took_s=0, requests=0, cluster_id="c", controller=1, brokers=(), readers={},
        topics={each.name: each for each in topics}, groups={each.name: each for each in groups},
        health=HEALTHY, totals=Totals(),
    )  # fmt: skip


def test_a_query_of_sql_has_lag_and_rate_of_its_group_and_the_size_of_its_changelogs() -> None:
    looked = view(
        [group("sql_a", GroupKind.CLASSIC)],
        [topic("sql_a-Aggregate-changelog", 700), topic("sql_a-Join-changelog", 40), topic("other", 9)],
    )
    query = Query(
        "CTAS_A_1", "PERSISTENT", "RUNNING", "…", ("S",), ("A",), ("A",), "LONG_TASKS", "why", "sql_a"
    )
    (found,) = pipelines(looked, [query], [])
    assert (found.kind, found.lag, found.rows_per_s, found.state_bytes) == (SQL, 3, 10.0, 740)


def test_programs_of_streams_are_known_by_their_topics_and_other_groups_are_left_out() -> None:
    looked = view(
        [group("shop-totals", GroupKind.CLASSIC), group("shop", GroupKind.CLASSIC)],
        [topic("shop-totals-KSTREAM-AGGREGATE-STATE-STORE-0000000003-changelog", 10)],
    )
    (found,) = pipelines(looked, [], [])
    assert (found.name, found.kind, found.state_bytes) == ("shop-totals", STREAMS, 10)


def test_groups_of_spark_are_pipelines() -> None:
    (found,) = pipelines(view([group("penstock-spark-x", GroupKind.SPARK)], []), [], [])
    assert (found.kind, found.lag) == (SPARK, 3)


def test_push_queries_are_no_pipelines_and_nothing_needs_a_cluster_that_answers() -> None:
    push = Query("transient_1", "PUSH", "RUNNING", "…", (), (), ())
    assert pipelines(None, [push], []) == []


def test_what_failed_comes_first() -> None:
    found = pipelines(None, [], [SparkQuery("b", "1"), SparkQuery("z", "2", failed_s=1.0, error="broke")])
    assert [(each.name, each.error) for each in found] == [("z", "broke"), ("b", "")]


def test_a_page_of_spark_is_read() -> None:
    running, failed = read_queries(PAGE)
    assert (running.name, running.rows_per_second, running.lag, running.state_bytes) == (
        "counts",
        12.5,
        4,
        2048,
    )
    assert (failed.name, failed.failed_s, failed.error) == ("old", 1.7e9, 'it "broke"')


def test_what_is_no_page_of_metrics_is_told() -> None:
    with pytest.raises(Unreachable, match="not a page of metrics"):
        read_queries("penstock_spark_lag{ 1")
