"""When a task that failed is started again, where its transactions end, and what it counts."""

from __future__ import annotations

import asyncio

import pytest

from penstock.connect import DataError, Hopeless, InvalidConfig
from penstock.connect.tasks.boundaries import boundary_of
from penstock.connect.tasks.calls import Calls
from penstock.connect.tasks.counters import SINK_NAMES, Counters
from penstock.connect.tasks.restarting import Restarting
from penstock.connect.tasks.settings import WorkerSettings

MIDDLE = 0.5  # no jitter
ERROR = DataError("bad")


def test_pauses_grow_up_to_a_limit() -> None:
    restarting = Restarting.of({}, {})
    assert [restarting.delay_s(number, ERROR, MIDDLE) for number in (1, 2, 3, 20)] == [1, 2, 4, 300]
    assert restarting.delay_s(3, ERROR, 0.0) == pytest.approx(3.2)


def test_the_connector_says_otherwise_than_the_worker() -> None:
    worker = {"errors.restart.delay.initial.ms": "10", "errors.restart.delay.max.ms": "40"}
    restarting = Restarting.of({"errors.restart.delay.initial.ms": "20"}, worker)
    assert [restarting.delay_s(number, ERROR, MIDDLE) for number in (1, 2, 3)] == [0.02, 0.04, 0.04]


def test_what_no_restart_heals_waits_for_somebody() -> None:
    assert Restarting().delay_s(1, Hopeless("a wrong password"), MIDDLE) is None
    assert Restarting().delay_s(1, InvalidConfig("no such class"), MIDDLE) is None
    assert Restarting.of({"errors.restart.enable": "false"}, {}).delay_s(1, ERROR, MIDDLE) is None
    limited = Restarting.of({"errors.restart.max.attempts": "2"}, {})
    assert [limited.delay_s(number, ERROR, MIDDLE) for number in (1, 2, 3)] == [1, 2, None]


def test_a_task_that_ran_for_a_while_counts_as_healthy() -> None:
    restarting = Restarting()
    assert not restarting.is_well_after(59, 1)
    assert restarting.is_well_after(61, 1)
    assert not restarting.is_well_after(61, 20)
    assert restarting.is_well_after(301, 20)


def test_transactions_end_where_the_configuration_says() -> None:
    worker = WorkerSettings.of({"offset.flush.interval.ms": "7000"})
    poll = boundary_of({}, worker)
    assert (poll.is_due(has_polled=True), poll.is_due(has_polled=False)) == (True, False)
    interval = boundary_of({"transaction.boundary": "INTERVAL"}, worker)
    assert interval.interval_s == 7
    assert not interval.is_due(has_polled=True)
    asked = boundary_of({"transaction.boundary": "connector"}, worker)
    assert (asked.is_due(has_polled=True), asked.ends_complete) == (False, False)
    asked.ask()
    assert (asked.is_due(has_polled=False), asked.ends_complete) == (True, True)
    asked.committed()
    assert not asked.is_due(has_polled=True)
    with pytest.raises(InvalidConfig, match=r"transaction\.boundary"):
        boundary_of({"transaction.boundary": "never"}, worker)


def test_counters_have_kafkas_names() -> None:
    counters = Counters()
    counters.begin(SINK_NAMES)
    counters.add("sink-record-read-total", 3)
    counters.took("put-batch", 0.002)
    counters.took("put-batch", 0.004)
    found = counters.read()
    assert (found["sink-record-read-total"], found["sink-record-send-total"]) == (3, 0)
    assert (found["put-batch-max-time-ms"], found["put-batch-avg-time-ms"]) == (4.0, 3.0)


def test_coroutines_are_called_as_others_are_and_leave_nothing_behind() -> None:
    ended: list[str] = []

    class Task:
        async def start(self) -> None:
            self.other = asyncio.create_task(self.forever())

        async def forever(self) -> None:
            try:
                await asyncio.sleep(3600)
            finally:
                ended.append("other")

        async def poll(self, number: int) -> int:
            await asyncio.sleep(0)
            return number + 1

        def stop(self) -> str:
            return "stopped"

    calls, task = Calls(), Task()
    calls.of(task.start)()
    assert calls.of(task.poll)(1) == 2
    assert calls.of(task.stop)() == "stopped"
    calls.close()
    calls.close()
    assert ended == ["other"]
