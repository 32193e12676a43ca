"""Plans of streams at work on Spark, as long tasks."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from pyspark.sql import SparkSession

from penstock.spark.tasks import JobState
from penstock.streams.plan.nodes import Plan
from penstock.streams.running.query import RunningQuery
from penstock.testing.penstock_broker import PenstockBroker
from tests.conftest import MakeTopic
from tests.streams import plans
from tests.streams.topics import DEADLINE_S, Reader, put, until

Start = Callable[..., RunningQuery]


@pytest.fixture
def start(broker: PenstockBroker, spark: SparkSession) -> Iterator[Start]:
    started: list[RunningQuery] = []

    def begin(plan: Plan, application: str, **options: Any) -> RunningQuery:
        query = RunningQuery.start(plan, application, bootstrap=broker.bootstrap, spark=spark, **options)
        started.append(query)
        assert query.wait_until_running(DEADLINE_S) == JobState.RUNNING, query.errors
        return query

    yield begin
    for query in started:
        query.stop()
        assert query.state == JobState.STOPPED


def click(key: str, n: int, time_ms: int) -> tuple[str, dict[str, Any], int]:
    return key, {"PAGE": "p", "N": n}, time_ms


def test_python_functions_run_in_tasks_that_do_not_end(
    broker: PenstockBroker, make_topic: MakeTopic, start: Start
) -> None:
    source, sink = make_topic(partitions=2), make_topic(partitions=2)
    query = start(plans.python_function(source, sink), f"app-{sink}", parallelism=2)
    put(broker.bootstrap, source, [click(f"k{n}", n, 1000 + n) for n in range(50)])
    with Reader(broker.bootstrap, sink, 2) as reader:
        found = reader.wait_for(50)
    assert sorted((value["PAGE"], value["N"]) for _, value, _ in found) == [("P", n + 1) for n in range(50)]
    until(lambda: query.counters["read"] == 50)
    assert len({task.process_id for task in query.tasks} - {os.getpid()}) == 2


def test_a_killed_worker_of_spark_loses_and_repeats_nothing(
    broker: PenstockBroker, make_topic: MakeTopic, start: Start
) -> None:
    source, sink = make_topic(partitions=2), make_topic(partitions=2)
    query = start(plans.counted(source, sink), f"app-{sink}", parallelism=2, guarantee="exactly_once_v2")
    total = 0
    with Reader(broker.bootstrap, sink, 2) as reader:
        for each in range(2):
            seen = len(reader.look())
            put(broker.bootstrap, source, [click(f"k{n % 20}", 1, 1000 + n) for n in range(1000)])
            total += 1000
            until(lambda seen=seen: len(reader.look()) > seen)
            victim = query.tasks[each].process_id
            os.kill(victim, signal.SIGKILL)
            until(lambda each=each, victim=victim: query.tasks[each].process_id not in (0, victim))
        found = reader.wait_until(lambda records: len(records) >= total)
        until(lambda: query.state == JobState.RUNNING)
    assert {key: value["N"] for key, value, _ in found} == {f"k{n}": total // 20 for n in range(20)}
    assert len(found) == total
