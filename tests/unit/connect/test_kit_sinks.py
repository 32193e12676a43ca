"""The kit for tests of connectors: sinks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from penstock.connect import (
    ConnectError,
    DataError,
    Kind,
    RetriableError,
    Setting,
    Settings,
    SinkConnector,
    SinkRecord,
    SinkTask,
)
from penstock.connect.interface import TopicPlace
from penstock.connect.testing import SinkTest, mistakes_in

PLACE = ("topic", 0)


class ListTask(SinkTask):
    """`buffer` is what a crash takes with it; `written` stays."""

    written: list[Any]

    def start(self) -> None:
        self.buffer: list[Any] = []
        self.calls: list[str] = []
        self.fails: list[Exception] = []
        self.flush_fails: list[Exception] = []

    def open(self, partitions: Sequence[TopicPlace]) -> None:
        self.calls.append(f"open {len(partitions)}")

    def close(self, partitions: Sequence[TopicPlace]) -> None:
        self.calls.append(f"close {len(partitions)}")

    def put(self, records: Sequence[SinkRecord]) -> None:
        if self.fails:
            raise self.fails.pop()
        for record in records:
            if record.value == "odd":
                self.context.report(record, DataError("odd"))
            elif record.value == "now":
                self.context.request_commit()
            else:
                self.buffer.append(record.value)

    def flush(self, offsets: Mapping[TopicPlace, int]) -> None:
        if self.flush_fails:
            raise self.flush_fails.pop()
        self.written += self.buffer
        self.buffer.clear()

    def stop(self) -> None:
        self.calls.append("stop")


@pytest.fixture
def kind() -> type[SinkConnector]:
    class OwnTask(ListTask):
        written: list[Any] = []  # noqa: RUF012 -- of this test

    class ToList(SinkConnector):
        task_class = OwnTask
        settings = Settings(Setting("limit", Kind.INT, "How many.", default=5))

    return ToList


def test_a_sinks_topics_may_be_left_out_of_what_is_checked(kind: type[SinkConnector]) -> None:
    assert mistakes_in(kind, {}) == {}
    assert mistakes_in(kind, {"topics": "a", "topics.regex": "b"}).keys() == {"topics", "topics.regex"}


def test_what_is_put_is_written_at_a_commit(kind: type[SinkConnector]) -> None:
    with SinkTest(kind) as test:
        test.put("a", "b")
        assert test.task.written == []  # type: ignore[attr-defined]
        assert test.commit() == {PLACE: 2}
        assert test.task.written == ["a", "b"]  # type: ignore[attr-defined]
        test.put("c", "now")
        assert test.committed == {PLACE: 4}
        assert test.put() == []


def test_a_restart_loses_nothing_and_a_crash_brings_records_again(kind: type[SinkConnector]) -> None:
    with SinkTest(kind) as test:
        test.put("a")
        first = test.task
        test.restart()
        assert first.calls == ["open 1", "close 1", "stop"]  # type: ignore[attr-defined]
        assert test.committed == {PLACE: 1}
        test.put("b")
        test.crash()
        assert [record.value for record in test.deliver()] == ["b"]
        test.commit()
        assert test.task.written == ["a", "b"]  # type: ignore[attr-defined]


def test_records_are_due_again_after_a_retriable_error(kind: type[SinkConnector]) -> None:
    with SinkTest(kind) as test:
        test.task.fails = [RetriableError("in a moment")]  # type: ignore[attr-defined]
        test.task.context.retry_after(3)
        with pytest.raises(RetriableError):
            test.put("a")
        assert test.retry_delays_s == [3]
        assert [record.value for record in test.deliver()] == ["a"]
        test.task.flush_fails = [RetriableError("in a moment")]  # type: ignore[attr-defined]
        assert test.commit() == {}
        assert [record.value for record in test.deliver()] == ["a"], "it goes back to what is committed"


def test_a_failure_comes_to_the_test_and_a_restart_begins_anew(kind: type[SinkConnector]) -> None:
    with SinkTest(kind) as test:
        test.put("a")
        test.task.fails = [ConnectError("away")]  # type: ignore[attr-defined]
        with pytest.raises(ConnectError, match="away"):
            test.put("b")
        assert str(test.failure) == "away"
        test.restart()
        assert [record.value for record in test.deliver()] == ["b"], "what was put before is committed"


def test_reports_are_kept_where_they_are_tolerated(kind: type[SinkConnector]) -> None:
    with SinkTest(kind, {"errors.tolerance": "all"}) as test:
        test.put("a", "odd", "b")
        assert [(report.record.value, str(report.error)) for report in test.reports] == [("odd", "odd")]
        assert test.commit() == {PLACE: 3}
    with SinkTest(kind) as test, pytest.raises(ConnectError, match="Tolerance exceeded"):
        test.put("odd")


def test_a_rebalance_closes_and_opens(kind: type[SinkConnector]) -> None:
    other = ("topic", 1)
    with SinkTest(kind, partitions=[PLACE, other]) as test:
        test.record("a")
        test.record("b", partition=1)
        test.deliver()
        test.rebalance([PLACE])
        assert test.committed == {PLACE: 1, other: 1} or test.committed == {other: 1}
        test.record("c", partition=1)
        assert test.deliver() == []
        assert test.task.context.assignment() == {PLACE}
        test.rebalance([PLACE, other])
        assert [record.value for record in test.deliver()] == ["c"]
        assert test.task.calls == ["open 2", "close 1", "open 1"]  # type: ignore[attr-defined]


def test_a_task_may_seek_and_hold_partitions(kind: type[SinkConnector]) -> None:
    with SinkTest(kind) as test:
        test.put("a", "b", "c")
        test.task.context.seek(PLACE, 1)
        assert [record.value for record in test.deliver()] == ["b", "c"]
        test.task.context.pause(PLACE)
        assert test.put("d") == []
        test.task.context.resume(PLACE)
        assert [record.value for record in test.deliver()] == ["d"]


def test_a_sink_may_say_which_offsets_are_committed(kind: type[SinkConnector]) -> None:
    class Own(ListTask):
        def pre_commit(self, offsets: Mapping[TopicPlace, int]) -> Mapping[TopicPlace, int]:
            return {place: offset - 1 for place, offset in offsets.items()} | {("another", 0): 1}

    class OwnOffsets(kind):  # type: ignore[misc, valid-type]
        task_class = Own

    with SinkTest(OwnOffsets) as test:
        test.put("a", "b")
        assert test.commit() == {PLACE: 1}


def test_records_go_through_the_transforms(kind: type[SinkConnector]) -> None:
    transforms = {
        "transforms": "take,none",
        "transforms.take.type": "ExtractField$Value",
        "transforms.take.field": "id",
        "transforms.none.type": "Filter",
        "transforms.none.predicate": "empty",
        "predicates": "empty",
        "predicates.empty.type": "RecordIsTombstone",
    }
    with SinkTest(kind, {**transforms, "errors.tolerance": "all"}) as test:
        records = test.put({"id": 1}, {"id": None}, "no map", key="k")
        assert [(record.key, record.value) for record in records] == [("k", 1)]
        assert [report.record.value for report in test.reports] == ["no map"]
        assert test.commit() == {PLACE: 3}
