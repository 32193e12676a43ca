"""What plans at work must survive: bad records of tables, topics that are made anew, times of long ago."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from penstock.admin import Cluster
from penstock.spark.tasks import JobState, ThreadLauncher
from penstock.streams.plan.nodes import Plan
from penstock.streams.running.query import RunningQuery
from penstock.testing.penstock_broker import PenstockBroker
from tests.conftest import MakeTopic
from tests.streams import plans
from tests.streams.topics import DEADLINE_S, Reader, put, until

BOTH = pytest.mark.parametrize("guarantee", ["at_least_once", "exactly_once_v2"])
Start = Callable[..., RunningQuery]
StartAt = Callable[..., RunningQuery]


@pytest.fixture
def start_at() -> Iterator[StartAt]:
    started: list[RunningQuery] = []

    def begin(broker: PenstockBroker, plan: Plan, application: str, **options: Any) -> RunningQuery:
        query = RunningQuery.start(
            plan, application, bootstrap=broker.bootstrap, launcher=ThreadLauncher(), **options
        )
        started.append(query)
        assert query.wait_until_running(DEADLINE_S) == JobState.RUNNING, query.errors
        return query

    yield begin
    for query in started:
        query.stop()


@pytest.fixture
def start(broker: PenstockBroker, start_at: StartAt) -> Start:
    return partial(start_at, broker)


@BOTH
def test_a_bad_record_of_a_table_is_told_once_and_stops_no_later_start(
    broker: PenstockBroker, make_topic: MakeTopic, start: Start, guarantee: str
) -> None:
    stream, table, sink, log = make_topic(), make_topic(), make_topic(), make_topic()
    plan, application = plans.joined(stream, table, sink), f"app-{sink}"
    put(broker.bootstrap, table, [("a", b"no json", 1), ("a", {"NAME": "v"}, 2)])
    put(broker.bootstrap, stream, [("a", {"PAGE": "p", "N": 1}, 3)])
    with Reader(broker.bootstrap, sink) as reader, Reader(broker.bootstrap, log) as told:
        first = start(plan, application, guarantee=guarantee, processing_log=log)
        reader.wait_for(1)
        first.stop()
        told.wait_for(1)
        second = start(plan, application, guarantee=guarantee, processing_log=log)
        until(lambda: second.counters.get("restored"))
        put(broker.bootstrap, stream, [("a", {"PAGE": "p", "N": 2}, 4)])
        assert reader.wait_for(2)[-1][1]["NAME"] == "v"
        until(lambda: sum(second.lag().values()) == 0)
        assert second.errors == ()
        assert len(told.look()) == 1


def test_all_records_of_a_topic_that_was_made_anew_are_joined(
    broker: PenstockBroker, make_topic: MakeTopic, start: Start
) -> None:
    stream, table, sink = make_topic(), make_topic(), make_topic()
    put(broker.bootstrap, table, [("a", {"NAME": "v"}, 1)])
    put(broker.bootstrap, stream, [("a", {"PAGE": "p", "N": n}, 10 + n) for n in range(50)])
    start(plans.joined(stream, table, sink), f"app-{sink}")
    with Reader(broker.bootstrap, sink) as reader, Cluster(broker.bootstrap) as cluster:
        reader.wait_for(50)
        cluster.topics.delete(stream)
        cluster.topics.create(stream, partitions=1)
        put(broker.bootstrap, stream, [("a", {"PAGE": "q", "N": n}, 100 + n) for n in range(20)])
        found = reader.wait_for(70)
    assert [value["N"] for _, value, _ in found[50:]] == list(range(20))


def test_windows_of_long_ago_are_kept_by_a_broker_that_deletes_what_is_old(
    tmp_path: Path, start_at: StartAt
) -> None:
    """Their changelog has the times of the records. Kafka would delete it at the first look."""
    options = {"log.retention.check.interval.ms": "200", "log.initial.task.delay.ms": "200"}
    with PenstockBroker(tmp_path, options=options) as broker, Cluster(broker.bootstrap) as cluster:
        for topic in ("clicks", "counts"):
            cluster.topics.create(topic, partitions=1, configs={"retention.ms": "-1"})
        put(broker.bootstrap, "clicks", [("a", {"PAGE": "p", "N": n}, 1000 + n) for n in range(3)])
        with Reader(broker.bootstrap, "counts") as reader:
            first = start_at(broker, plans.counted_in_windows("clicks", "counts"), "app")
            assert reader.wait_for(3)[-1][1] == {"N": 3}
            first.stop()
            changelog = "app-aggregate-changelog"
            looks_until_s = time.monotonic() + 1.0
            until(lambda: time.monotonic() > looks_until_s)  # five of them
            (span,) = cluster.offsets.spans(changelog).values()
            assert span.start_offset == 0
            put(broker.bootstrap, "clicks", [("a", {"PAGE": "p", "N": 3}, 1003)])
            start_at(broker, plans.counted_in_windows("clicks", "counts"), "app")
            assert reader.wait_for(4)[-1][1] == {"N": 4}


def test_a_time_in_the_future_does_not_stop_what_the_plan_writes_for_itself(
    broker: PenstockBroker, make_topic: MakeTopic, start: Start
) -> None:
    """A broker refuses it, unless a topic says otherwise; the topics of the plan do not."""
    source, sink = make_topic(), make_topic()
    with Cluster(broker.bootstrap) as cluster:
        for topic in (source, sink):
            cluster.topics.delete(topic)
            configs = {"message.timestamp.after.max.ms": str(2**63 - 1)}
            cluster.topics.create(topic, partitions=1, configs=configs)
    later_ms = int(time.time() * 1000) + 10**9
    put(broker.bootstrap, source, [("a", {"PAGE": "p", "N": n}, later_ms + n) for n in range(3)])
    query = start(plans.counted_by_page(source, sink), f"app-{sink}")
    with Reader(broker.bootstrap, sink) as reader:
        assert reader.wait_for(3)[-1] == ("p", {"N": 3}, later_ms + 2)
    until(lambda: sum(query.lag().values()) == 0)
    assert query.errors == ()
