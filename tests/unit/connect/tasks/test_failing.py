"""What happens to a record that fails: tried again, left out, or the end of the task."""

from __future__ import annotations

import logging
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pytest

from penstock.connect import DataError, InvalidConfig, RetriableError
from penstock.connect.tasks.counters import Counters
from penstock.connect.tasks.dead_letters import DeadLetters, Letter
from penstock.connect.tasks.failing import Failing, Failure, LeftOut, Policy, Stage, ToleranceExceeded
from penstock.connect.tasks.program import Hung


class World:
    """Pauses take no time, and are noted."""

    def __init__(self, **config: str) -> None:
        self.given = {name.replace("_", "."): value for name, value in config.items()}
        self.counters = Counters()
        self.pauses: list[float] = []
        self.kept: list[Failure] = []
        self.goes_on = True
        self.failing = Failing(Policy.of(self.given), self.counters, "task-0", self.pause, self.kept.append)

    def pause(self, seconds: float) -> bool:
        self.pauses.append(seconds)
        return self.goes_on

    def run(self, call: Callable[[], Any]) -> Any:
        return self.failing.run(Stage.TRANSFORMATION, World, call, "the record")


def failing_times(times: int, error: type[Exception] = RetriableError) -> Callable[[], str]:
    left = [error("no")] * times

    def call() -> str:
        if left:
            raise left.pop()
        return "done"

    return call


def test_without_tolerance_a_bad_record_ends_the_task_and_is_no_dead_letter() -> None:
    world = World()
    with pytest.raises(ToleranceExceeded, match="TRANSFORMATION"):
        world.run(failing_times(1, DataError))
    assert world.kept == []
    assert (world.counters["total-record-errors"], world.counters["total-record-failures"]) == (1, 1)


def test_a_task_that_is_ended_because_it_hangs_leaves_no_record_out() -> None:
    world = World(errors_tolerance="all")

    def call() -> None:
        raise Hung

    with pytest.raises(Hung):
        world.run(call)
    assert world.kept == []


def test_with_tolerance_it_is_left_out_and_kept() -> None:
    world = World(errors_tolerance="ALL")
    with pytest.raises(LeftOut):
        world.run(failing_times(1, DataError))
    assert [each.stage for each in world.kept] == [Stage.TRANSFORMATION]
    assert world.counters["total-records-skipped"] == 1
    assert world.counters["last-error-timestamp"] > 0


def test_what_may_heal_is_tried_again_after_pauses_that_grow() -> None:
    world = World(errors_retry_timeout="600000", errors_retry_delay_max_ms="1000")
    assert world.run(failing_times(5)) == "done"
    assert all(later > earlier for earlier, later in pairwise(world.pauses[:2]))
    assert max(world.pauses) <= 1.2
    assert len(world.pauses) == 5
    assert world.counters["total-retries"] == 5


def test_without_a_retry_timeout_nothing_is_tried_again() -> None:
    world = World(errors_tolerance="all")
    with pytest.raises(LeftOut):
        world.run(failing_times(1))
    assert world.pauses == []


def test_retries_end_when_the_task_is_to_stop() -> None:
    world = World(errors_retry_timeout="-1")
    world.goes_on = False
    with pytest.raises(ToleranceExceeded):
        world.run(failing_times(9))
    assert len(world.pauses) == 1


def test_the_log_says_what_is_asked_for(caplog: pytest.LogCaptureFixture) -> None:
    for include, expected in (("false", "with class"), ("true", "where the record.")):
        world = World(errors_tolerance="all", errors_log_enable="true", errors_log_include_messages=include)
        with caplog.at_level(logging.ERROR, logger="penstock.connect"), pytest.raises(LeftOut):
            world.run(failing_times(1, DataError))
        assert expected in caplog.messages[-1]
        assert world.counters["total-errors-logged"] == 1
    assert "where" not in caplog.messages[0]


def test_a_tolerance_that_is_none_is_refused() -> None:
    with pytest.raises(InvalidConfig, match=r"errors\.tolerance"):
        Policy.of({"errors.tolerance": "some"})


def test_a_dead_letter_has_context_only_where_it_is_asked_for() -> None:
    for asked in ("true", "false"):
        written: list[Any] = []
        letters = DeadLetters(
            {
                "errors.deadletterqueue.topic.name": "letters",
                "errors.deadletterqueue.context.headers.enable": asked,
            },
            Counters(),
            connector="c",
            task=2,
            letter=lambda origin: Letter(b"k", b"v", [("own", None)], 5, {"topic": "t", "offset": 7}),
            write=lambda *given, to=written: to.append(given),
        )
        letters.keep(Failure(Stage.KEY_CONVERTER, "Class", DataError("bad"), "origin"))
        [(topic, key, value, headers, time_ms)] = written
        assert (topic, key, value, time_ms) == ("letters", b"k", b"v", 5)
        found = dict(headers)
        assert found.pop("own") is None
        if asked == "false":
            assert found == {}
            continue
        assert found["__connect.errors.topic"] == b"t"
        assert found["__connect.errors.offset"] == b"7"
        assert found["__connect.errors.task.id"] == b"2"
        assert found["__connect.errors.class.name"] == b"Class"
        assert b"DataError: bad" in found["__connect.errors.exception.stacktrace"]


def test_a_dead_letter_that_cannot_be_written_is_counted_and_told() -> None:
    def write(*given: Any) -> None:
        raise OSError("away")

    counters = Counters()
    letters = DeadLetters(
        {}, counters, connector="c", task=0, letter=lambda _: Letter(None, None, [], None, {}), write=write
    )
    with pytest.raises(OSError, match="away"):
        letters.keep(Failure(Stage.TASK_PUT, "Class", DataError("bad"), "origin"))
    assert counters["deadletterqueue-produce-failures"] == 1
