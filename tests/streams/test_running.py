"""Plans at work on topics, without Spark: the worker in threads and processes of this machine."""

from __future__ import annotations

import json
import os
import signal
import time
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from penstock.admin import Cluster, TopicPartition
from penstock.spark.tasks import JobState, ProcessLauncher, ThreadLauncher
from penstock.streams.kernel.records import OutputRecord
from penstock.streams.plan.nodes import Plan
from penstock.streams.running.first_moment import FirstMomentWriter
from penstock.streams.running.layout import CannotRun
from penstock.streams.running.query import RunningQuery
from penstock.testing.penstock_broker import PenstockBroker
from tests.conftest import MakeTopic
from tests.streams import plans
from tests.streams.topics import DEADLINE_S, Reader, put, until

BOTH = pytest.mark.parametrize("guarantee", ["at_least_once", "exactly_once_v2"])
Start = Callable[..., RunningQuery]


@pytest.fixture
def start(broker: PenstockBroker) -> Iterator[Start]:
    started: list[RunningQuery] = []

    def begin(plan: Plan, application: str, **options: Any) -> RunningQuery:
        options.setdefault("launcher", ThreadLauncher())
        query = RunningQuery.start(plan, application, bootstrap=broker.bootstrap, **options)
        started.append(query)
        assert query.wait_until_running(DEADLINE_S) == JobState.RUNNING, query.errors
        return query

    yield begin
    for query in started:
        query.stop()


def click(key: str, n: int, time_ms: int, page: str = "p") -> tuple[str, dict[str, Any], int]:
    return key, {"PAGE": page, "N": n}, time_ms


@BOTH
def test_a_stateless_plan_writes_what_it_reads_and_commits(
    broker: PenstockBroker, make_topic: MakeTopic, start: Start, guarantee: str
) -> None:
    source, sink = make_topic(partitions=3), make_topic(partitions=3)
    query = start(plans.filtered(source, sink), f"app-{sink}", guarantee=guarantee, parallelism=2)
    put(broker.bootstrap, source, [click(f"k{n}", n, 1000 + n) for n in range(200)])
    with Reader(broker.bootstrap, sink, 3) as reader:
        found = reader.wait_for(198)
    assert Counter(time_ms for _, _, time_ms in found) == Counter(range(1002, 1200))
    until(lambda: sum(query.lag().values()) == 0)
    query.stop()
    assert query.state == JobState.STOPPED
    with Cluster(broker.bootstrap) as cluster:
        committed = cluster.groups.committed(f"app-{sink}")
        ends = cluster.offsets.ends(source)
    assert {place: each.offset for place, each in committed.items()} == ends


@BOTH
def test_a_count_goes_on_after_a_restart_from_its_changelog(
    broker: PenstockBroker, make_topic: MakeTopic, start: Start, guarantee: str
) -> None:
    source, sink = make_topic(partitions=2), make_topic(partitions=2)
    application = f"app-{sink}"
    put(broker.bootstrap, source, [click(f"k{n % 7}", 1, 5000 + n) for n in range(70)])
    with Reader(broker.bootstrap, sink, 2) as reader:
        first = start(plans.counted(source, sink), application, guarantee=guarantee)
        reader.wait_for(70)
        first.stop()
        put(broker.bootstrap, source, [click(f"k{n}", 1, 6000 + n) for n in range(7)])
        second = start(plans.counted(source, sink), application, guarantee=guarantee, parallelism=1)
        found = reader.wait_for(77)
        assert {key: value["N"] for key, value, _ in found} == {f"k{n}": 11 for n in range(7)}
        assert len(found) == 77
        assert 7 <= second.counters["restored"] < 70  # a record for a key and commit
        assert second.counters["entries"] == 7
        second.stop()
    assert set(second.clean_up()) == {f"{application}-aggregate-changelog"}
    with Cluster(broker.bootstrap) as cluster:
        assert application not in [group.group_id for group in cluster.groups.list()]


def test_rows_meet_by_their_new_key_through_a_repartition_topic(
    broker: PenstockBroker, make_topic: MakeTopic, start: Start
) -> None:
    source, sink = make_topic(partitions=3), make_topic(partitions=1)
    query = start(plans.counted_by_page(source, sink), f"app-{sink}", parallelism=2)
    put(broker.bootstrap, source, [click(f"k{n}", 1, 1000 + n, page=f"p{n % 2}") for n in range(60)])
    with Reader(broker.bootstrap, sink) as reader:
        reader.wait_for(60)
        assert {key: value["N"] for key, value, _ in reader.records} == {"p0": 30, "p1": 30}
    with Cluster(broker.bootstrap) as cluster:
        assert len(cluster.topics.partitions(f"app-{sink}-through-repartition")) == 3
    until(lambda: query.counters["read"] == 120)


def test_a_stream_waits_for_the_table_that_it_is_joined_with(
    broker: PenstockBroker, make_topic: MakeTopic, start: Start
) -> None:
    """By timestamps, however the two topics were filled."""
    stream, table, sink = make_topic(partitions=1), make_topic(partitions=1), make_topic(partitions=1)
    put(broker.bootstrap, stream, [click("a", n, 1000 + 10 * n) for n in range(100)])
    put(broker.bootstrap, table, [("a", {"NAME": f"v{n}"}, 1005 + 10 * n) for n in range(100)])
    query = start(plans.joined(stream, table, sink), f"app-{sink}")
    with Reader(broker.bootstrap, sink) as reader:
        found = reader.wait_for(100)
        assert [value["NAME"] for _, value, _ in found] == [None, *(f"v{n}" for n in range(99))]
        query.stop()
        # The table is read again from its topic, up to where it was committed.
        put(broker.bootstrap, stream, [click("a", 100, 9000)])
        start(plans.joined(stream, table, sink), f"app-{sink}")
        assert reader.wait_for(101)[-1][1]["NAME"] == "v99"


def test_a_global_table_is_whole_in_every_task_and_stays_up_to_date(
    broker: PenstockBroker, make_topic: MakeTopic, start: Start
) -> None:
    stream, table, sink = make_topic(partitions=2), make_topic(partitions=3), make_topic(partitions=2)
    put(broker.bootstrap, table, [(f"p{n}", {"NAME": f"old {n}"}, 1) for n in range(20)])
    start(plans.looked_up(stream, table, sink), f"app-{sink}", parallelism=2)
    with Reader(broker.bootstrap, sink, 2) as reader:
        put(broker.bootstrap, stream, [click(f"k{n}", 1, 1000, page=f"p{n}") for n in range(21)])
        found = reader.wait_for(21)
        assert {value["PAGE"]: value["NAME"] for _, value, _ in found} == {
            **{f"p{n}": f"old {n}" for n in range(20)},
            "p20": None,
        }
        put(broker.bootstrap, table, [("p20", {"NAME": "new"}, 2)])

        def is_looked_up() -> bool:
            put(broker.bootstrap, stream, [click("k", 1, 2000, page="p20")])
            return any(value["NAME"] == "new" for _, value, _ in reader.look())

        until(is_looked_up)


def test_records_that_cannot_be_read_are_counted_and_written_to_the_processing_log(
    broker: PenstockBroker, make_topic: MakeTopic, start: Start
) -> None:
    source, sink, processing_log = make_topic(), make_topic(), make_topic()
    query = start(plans.filtered(source, sink), f"app-{sink}", processing_log=processing_log, query_id="Q_1")
    put(broker.bootstrap, source, [("a", b"no json", 1), click("b", 7, 2)])
    with Reader(broker.bootstrap, sink) as reader, Reader(broker.bootstrap, processing_log) as log:
        assert [key for key, _, _ in reader.wait_for(1)] == ["b"]
        (_, told, _), *others = log.wait_for(1)
    assert others == []
    assert told["level"] == "ERROR"
    assert told["logger"].startswith("processing.Q_1.")
    assert told["message"]["type"] == 0
    assert told["message"]["deserializationError"]["topic"] == source
    until(lambda: query.counters["troubles"] == {"deserialize": 1})
    assert query.troubles[0]["where"] == f"{source}-0@0"
    assert query.state == JobState.RUNNING


def test_a_bad_record_can_be_made_to_hold_the_plan(
    broker: PenstockBroker, make_topic: MakeTopic, start: Start
) -> None:
    source, sink = make_topic(), make_topic()
    query = start(plans.filtered(source, sink), f"app-{sink}", fails_on_bad_records=True)
    put(broker.bootstrap, source, [("a", b"no json", 1), click("b", 7, 2)])
    until(lambda: any(error.kind == "BadRecord" for error in query.errors))
    assert query.state == JobState.RESTARTING or until(lambda: query.state == JobState.RESTARTING)


def test_latest_is_where_the_topic_ended_when_it_was_started(
    broker: PenstockBroker, make_topic: MakeTopic, start: Start
) -> None:
    source, sink = make_topic(), make_topic()
    put(broker.bootstrap, source, [click("old", 5, 1)])
    properties = {"auto.offset.reset": "latest"}
    query = RunningQuery.start(
        plans.filtered(source, sink),
        f"app-{sink}",
        bootstrap=broker.bootstrap,
        properties=properties,
        launcher=ThreadLauncher(),
    )
    put(broker.bootstrap, source, [click("new", 5, 2)])  # before any task can have begun
    with Reader(broker.bootstrap, sink) as reader:
        assert [key for key, _, _ in reader.wait_for(1)] == ["new"]
    query.stop()


def test_the_first_moment_of_1970_stays_what_it_is(
    broker: PenstockBroker, make_topic: MakeTopic, start: Start
) -> None:
    """librdkafka takes it for "no time": it would become the present."""
    source, sink = make_topic(partitions=2), make_topic(partitions=2)
    first_moment = FirstMomentWriter(broker.bootstrap, {})
    start(plans.counted_by_page(source, sink), f"app-{sink}")
    with Reader(broker.bootstrap, sink, 2) as reader:
        for n in range(3):
            value = b'{"PAGE": "p", "N": 1}'
            first_moment.send(OutputRecord(source, b'"k"', value, 0, (("h", b"1"),), n % 2))
        reader.wait_for(3)
        put(broker.bootstrap, source, [click("k", 1, 7)])
        found = reader.wait_for(4)
    assert [(value["N"], time_ms) for _, value, time_ms in found] == [(1, 0), (2, 0), (3, 0), (4, 7)]
    first_moment.close()


def test_a_paused_plan_reads_nothing_until_it_goes_on(
    broker: PenstockBroker, make_topic: MakeTopic, start: Start
) -> None:
    source, sink = make_topic(), make_topic()
    query = start(plans.filtered(source, sink), f"app-{sink}")
    with Reader(broker.bootstrap, sink) as reader:
        put(broker.bootstrap, source, [click("a", 5, 1)])
        reader.wait_for(1)
        query.pause()
        until(lambda: query.state == JobState.PAUSED)
        assert sum(query.lag().values()) == 0
        put(broker.bootstrap, source, [click("b", 5, 2)])
        time.sleep(0.3)
        assert len(reader.look()) == 1
        query.resume()
        assert [key for key, _, _ in reader.wait_for(2)] == ["a", "b"]


def test_stores_can_be_asked_while_the_plan_runs(
    broker: PenstockBroker, make_topic: MakeTopic, start: Start
) -> None:
    source, sink = make_topic(), make_topic()
    query = start(plans.counted(source, sink), f"app-{sink}")
    put(broker.bootstrap, source, [click("a", 5, 1), click("a", 6, 2), click("b", 1, 3)])
    with Reader(broker.bootstrap, sink) as reader:
        reader.wait_for(3)
    assert query.partitions_of_store("aggregate") == 1
    entries = dict(query.scan("aggregate", 0))
    assert len(entries) == 2
    key = next(key for key in entries if b"a" in key)
    assert query.get("aggregate", key, 0) == entries[key]
    assert query.get("aggregate", b"?", 0) is None


def test_what_does_not_fit_is_refused_before_anything_runs(
    broker: PenstockBroker, make_topic: MakeTopic
) -> None:
    one, three, sink = make_topic(partitions=1), make_topic(partitions=3), make_topic()

    def begin(plan: Plan, **options: Any) -> None:
        RunningQuery.start(
            plan, f"app-{sink}", bootstrap=broker.bootstrap, launcher=ThreadLauncher(), **options
        )

    with pytest.raises(CannotRun, match="the topic nowhere does not exist"):
        begin(plans.filtered("nowhere", sink))
    with pytest.raises(CannotRun, match="equally many partitions: they have 3 and 1"):
        begin(plans.joined(three, one, sink))
    with pytest.raises(ValueError, match=r"processing\.guarantee: must be"):
        begin(plans.filtered(one, sink), properties={"processing.guarantee": "twice"})
    with pytest.raises(ValueError, match=r"isolation\.level: cannot be set"):
        begin(plans.filtered(one, sink), properties={"consumer.isolation.level": "read_uncommitted"})
    with Cluster(broker.bootstrap) as cluster:
        cluster.topics.create(f"app-{sink}-aggregate-changelog", partitions=5)
    with pytest.raises(CannotRun, match="has 5 partitions and must have 1"):
        begin(plans.counted(one, sink))


def test_a_topic_that_grows_is_told(broker: PenstockBroker, make_topic: MakeTopic, start: Start) -> None:
    source, sink = make_topic(partitions=1), make_topic()
    query = start(plans.filtered(source, sink), f"app-{sink}")
    with Cluster(broker.bootstrap) as cluster:
        cluster.topics.add_partitions(source, 2)
        query._look(cluster)
    assert query.notices == [
        f"the topic {source} has 2 partitions now; 1 are read until the plan is started again"
    ]
    assert query.state == JobState.RUNNING


@BOTH
def test_nothing_is_lost_when_workers_are_killed(
    broker: PenstockBroker, make_topic: MakeTopic, start: Start, guarantee: str
) -> None:
    """Exactly once: nothing comes twice, either, and the counts are right."""
    source, sink = make_topic(partitions=2), make_topic(partitions=2)
    keys, rounds = 20, 4
    query = start(
        plans.counted(source, sink),
        f"app-{sink}",
        guarantee=guarantee,
        parallelism=2,
        launcher=ProcessLauncher(),
    )
    with Reader(broker.bootstrap, sink, 2) as reader:
        for each in range(rounds):
            seen = len(reader.look())
            put(broker.bootstrap, source, [click(f"k{n % keys}", 1, 1000 + n) for n in range(1000)])
            until(lambda seen=seen: len(reader.look()) > seen)
            victim = query.tasks[each % 2].process_id
            os.kill(victim, signal.SIGKILL)
            until(lambda each=each, victim=victim: query.tasks[each % 2].process_id not in (0, victim))
        total = rounds * 1000
        until(lambda: query.state == JobState.RUNNING and sum(query.lag().values()) == 0)
        found = reader.wait_for(total)
        query.stop()
        found = reader.look()
    last = {key: value["N"] for key, value, _ in found}
    if guarantee == "at_least_once":
        assert len(last) == keys
        assert all(count >= total // keys for count in last.values())
    else:
        assert last == {f"k{n}": total // keys for n in range(keys)}
        assert len(found) == total
        assert Counter((key, value["N"]) for key, value, _ in found).most_common(1)[0][1] == 1
    assert json.dumps(query.counters)
    assert TopicPartition(source, 0) in query.lag()
