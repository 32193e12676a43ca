"""The line of progress on a terminal, and how a run ends."""

from __future__ import annotations

import io
import threading
from typing import Any

import pytest

from penstock.client.errors import Unreachable
from penstock.spark.tasks.states import JobState
from penstock.streams.library import running
from penstock.streams.library.running import RunFailed, watch


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


class Query:
    """As much of a RunningQuery as is watched; after `looks` looks it is in its `last` state."""

    application_id = "visits"
    reason = "the topic clicks has been deleted"

    def __init__(self, looks: int, last: JobState) -> None:
        self._looks, self._last, self.stops = looks, last, 0

    @property
    def state(self) -> JobState:
        self._looks -= 1
        return JobState.RUNNING if self._looks > 0 else self._last

    @property
    def counters(self) -> dict[str, Any]:
        return {"read": 12345, "written": 7, "troubles": {"deserialize": 2}}

    def lag(self) -> dict[Any, int]:
        if self._looks < 6:
            raise Unreachable("nobody is there")
        return {"clicks-0": 1000, "clicks-1": 1}

    def stop(self) -> None:
        self.stops += 1


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(running, "LOOK_S", 0.001)


def test_a_terminal_shows_one_line_that_is_written_over() -> None:
    terminal, query = Terminal(), Query(9, JobState.STOPPED)
    watch(query, terminal=terminal)  # type: ignore[arg-type]
    lines = terminal.getvalue().split("\r")
    assert lines[1] == "visits: running, 12,345 read, 7 written, 1,001 behind, 2 left out"
    assert "behind" not in lines[-1]  # nobody could be asked
    assert terminal.getvalue().endswith("\n")
    assert query.stops == 1


def test_what_is_no_terminal_shows_nothing() -> None:
    terminal, stop = io.StringIO(), threading.Event()
    stop.set()
    watch(Query(3, JobState.STOPPED), terminal=terminal, stop=stop)  # type: ignore[arg-type]
    assert terminal.getvalue() == ""


def test_a_run_that_cannot_go_on_says_why() -> None:
    with pytest.raises(RunFailed, match="the topic clicks has been deleted"):
        watch(Query(2, JobState.FAILED), terminal=io.StringIO())  # type: ignore[arg-type]
