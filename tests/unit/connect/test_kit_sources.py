"""The kit for tests of connectors: sources."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from penstock.connect import (
    ConnectError,
    DataError,
    InvalidConfig,
    Kind,
    RetriableError,
    Setting,
    Settings,
    SourceConnector,
    SourceRecord,
    SourceTask,
)
from penstock.connect.data import STRING
from penstock.connect.settings import at_least
from penstock.connect.testing import SourceTest, mistakes_in

CONFIG = {"topic": "numbers"}


class NumbersTask(SourceTask):
    """The numbers from where the last run ended, three at a time; what it is told to do goes by `does`."""

    stopped = 0

    def start(self) -> None:
        self.first = int(self.given.get("first", "0"))
        found = self.context.offset({"first": self.first})
        self.next = self.first if found is None else found["next"]
        self.told: list[Any] = []
        self.commits = 0
        self.does = self.given.get("does", "")

    def poll(self) -> Sequence[SourceRecord] | None:
        if self.does == "fail":
            raise ConnectError("the source is away")
        if self.does == "retry":
            self.does = ""
            raise RetriableError("in a moment")
        if self.does == "wait":
            while not self.context.is_stopping():
                self.context.wait(1)
        if self.does == "rest":
            self.context.wait(1)
            return None
        numbers = range(self.next, self.next + 3)
        self.next += 3
        if self.does == "transact":
            self.context.commit_transaction()
        if self.does == "refuse":
            self.context.report(self.record(numbers[0]), DataError("too odd"))
            numbers = numbers[1:]
        return [self.record(number) for number in numbers]

    def record(self, number: int) -> SourceRecord:
        value: Any = object() if self.does == "no json" else number + 1
        schema = STRING if self.does == "no text" else None
        return SourceRecord(
            {"first": self.first}, {"next": value}, self.given["topic"], number, value_schema=schema
        )

    def committed(self, record: SourceRecord) -> None:
        self.told.append(record.value)

    def commit(self) -> None:
        self.commits += 1

    def stop(self) -> None:
        NumbersTask.stopped += 1


class Numbers(SourceConnector):
    task_class = NumbersTask
    settings = Settings(
        Setting("topic", Kind.STRING, "Where they go."),
        Setting("every", Kind.INT, "How many come.", default=1, check=at_least(1)),
        Setting("makes", Kind.STRING, "What its tasks get.", default="enough"),
    )

    @classmethod
    def check(cls, given: Mapping[str, str]) -> Mapping[str, Sequence[str]]:
        return {"topic": ["not to this one"]} if given.get("topic") == "forbidden" else {}

    def start(self) -> None:
        if self.given.get("asks"):
            self.context.request_reconfiguration()

    def task_configs(self, max_tasks: int) -> list[dict[str, str]]:
        if self.values["makes"] == "numbers":
            return [{"first": 1}]  # type: ignore[dict-item]
        count = max_tasks + 1 if self.values["makes"] == "too many" else max_tasks
        return [{**self.given, "first": str(100 * number)} for number in range(count)]


def values(records: Sequence[SourceRecord]) -> list[Any]:
    return [record.value for record in records]


def test_a_configuration_is_checked_as_a_worker_checks_it() -> None:
    assert mistakes_in(Numbers, CONFIG) == {}
    assert mistakes_in(Numbers, {}) == {
        "topic": ['Missing required configuration "topic" which has no default value.']
    }
    found = mistakes_in(Numbers, {"topic": "forbidden", "every": "1", "tasks.max": "many", "transforms": "x"})
    assert found["topic"] == ["not to this one"]
    assert found["tasks.max"]
    assert found["transforms.x.type"]
    with pytest.raises(InvalidConfig, match=r"every: Invalid value 0"):
        SourceTest(Numbers, {**CONFIG, "every": "0"})


def test_what_is_polled_is_told_to_be_in_its_topic() -> None:
    with SourceTest(Numbers, CONFIG) as test:
        assert values(test.poll()) == [0, 1, 2]
        assert values(test.poll_until(4)) == [3, 4, 5, 6, 7, 8]
        assert values(test.records) == list(range(9))
        assert isinstance(test.task, NumbersTask)
        assert test.task.told == list(range(9))
        assert test.task.commits == 0


def test_offsets_are_kept_at_a_commit_and_given_back() -> None:
    with SourceTest(Numbers, CONFIG, offsets=[({"first": 0}, {"next": 7})]) as test:
        assert values(test.poll()) == [7, 8, 9]
        assert test.offset({"first": 0}) == {"next": 7}
        test.commit()
        assert test.offsets == [({"first": 0}, {"next": 10})]
        test.poll()
        test.crash()
        assert values(test.poll()) == [10, 11, 12]
        before = NumbersTask.stopped
        test.restart()
        assert NumbersTask.stopped == before + 1
        assert values(test.poll()) == [13, 14, 15]
    assert NumbersTask.stopped == before + 2


def test_a_transaction_of_the_connector_ends_with_the_poll() -> None:
    with SourceTest(Numbers, {**CONFIG, "does": "transact"}) as test:
        test.poll()
        assert test.offset({"first": 0}) == {"next": 3}


def test_a_failure_comes_to_the_test_and_a_restart_begins_anew() -> None:
    with SourceTest(Numbers, CONFIG) as test:
        test.poll()
        test.task.does = "fail"  # type: ignore[attr-defined]
        with pytest.raises(ConnectError, match="away"):
            test.poll()
        assert isinstance(test.failure, ConnectError)
        test.restart()
        assert test.failure is None
        assert values(test.poll()) == [3, 4, 5]
        test.task.does = "retry"
        with pytest.raises(RetriableError):
            test.poll()
        assert test.failure is None
        assert values(test.poll()) == [6, 7, 8]


def test_reports_are_kept_where_they_are_tolerated() -> None:
    with SourceTest(Numbers, {**CONFIG, "does": "refuse", "errors.tolerance": "all"}) as test:
        assert values(test.poll()) == [1, 2]
        assert [(report.record.value, str(report.error)) for report in test.reports] == [(0, "too odd")]
    with SourceTest(Numbers, {**CONFIG, "does": "refuse"}) as test:
        with pytest.raises(ConnectError, match="Tolerance exceeded"):
            test.poll()
        assert len(test.reports) == 1


def test_records_go_through_the_transforms() -> None:
    transforms = {
        "transforms": "wrap,small",
        "transforms.wrap.type": "HoistField$Value",
        "transforms.wrap.field": "number",
        "transforms.small.type": "RegexRouter",
        "transforms.small.regex": "(.*)bers",
        "transforms.small.replacement": "$1",
    }
    with SourceTest(Numbers, {**CONFIG, **transforms}) as test:
        first = test.poll()[0]
        assert (first.topic, first.value) == ("num", {"number": 0})
        assert test.task.told[0] == 0  # type: ignore[attr-defined]


def test_a_record_that_no_worker_could_take_is_refused() -> None:
    for does, said in (("no json", "must be JSON objects"), ("no text", "Invalid Python object")):
        with SourceTest(Numbers, {**CONFIG, "does": does}) as test, pytest.raises(ConnectError, match=said):
            test.poll()


def test_a_poll_that_waits_does_not_hold_up_the_test() -> None:
    with SourceTest(Numbers, {**CONFIG, "does": "rest"}) as test:
        assert test.poll() == []
        assert test.waited_s == 1
        with pytest.raises(AssertionError, match="0 records have come"):
            test.poll_until(1, within_s=0.01)
    with SourceTest(Numbers, {**CONFIG, "does": "wait"}) as test, pytest.raises(AssertionError, match="60 s"):
        test.poll()


def test_a_task_that_waits_for_a_thread_really_waits_when_asked_to() -> None:
    class Threaded(NumbersTask):
        def poll(self) -> Sequence[SourceRecord] | None:
            there = threading.Event()
            threading.Timer(0.05, there.set).start()
            while not there.is_set():
                self.context.wait(0.01)
            return [self.record(1)]

    class ThreadedNumbers(Numbers):
        task_class = Threaded

    with SourceTest(ThreadedNumbers, CONFIG, real_waits=True) as test:
        assert values(test.poll()) == [1]


def test_a_coroutine_is_awaited() -> None:
    class Later(NumbersTask):
        async def poll(self) -> Sequence[SourceRecord] | None:  # type: ignore[override]
            return [self.record(1)]

    class LaterNumbers(Numbers):
        task_class = Later

    with SourceTest(LaterNumbers, CONFIG) as test:
        assert values(test.poll()) == [1]


def test_the_tasks_of_a_connector_have_configurations_of_their_own() -> None:
    with SourceTest(Numbers, {**CONFIG, "tasks.max": "3"}, task=2) as test:
        assert [config["first"] for config in test.task_configs] == ["0", "100", "200"]
        assert values(test.poll()) == [200, 201, 202]
    with SourceTest(Numbers, {**CONFIG, "asks": "yes"}, max_tasks=2) as test:
        assert len(test.task_configs) == 2
        assert not test.wants_reconfiguration, "it was asked after that"
        test.connector.context.request_reconfiguration()
        assert test.wants_reconfiguration
        test.connector.context.fail(ConnectError("no more"))
        assert str(test.connector_failure) == "no more"
    for makes, said in (("too many", "at most 1"), ("numbers", "texts only")):
        with pytest.raises(ConnectError, match=said), SourceTest(Numbers, {**CONFIG, "makes": makes}):
            pass
    with pytest.raises(ConnectError, match="no task 1"), SourceTest(Numbers, CONFIG, task=1):
        pass
