"""What the state says of queries is what they do."""

from __future__ import annotations

import threading
import time
from typing import Any

import pytest

from penstock.client.errors import Unreachable
from penstock.sql.engine import queries as queries_module
from penstock.sql.engine.applying import Change
from penstock.sql.engine.queries import Queries
from penstock.sql.engine.state import PersistentQuery, QueryError, QueryState, State

DEADLINE_S = 20.0


class Query:
    """Slow to tell that it pauses."""

    def __init__(self, all_stop: threading.Barrier) -> None:
        self.asked: list[str] = []
        self._all_stop = all_stop

    def state(self) -> str:
        return QueryState.RUNNING

    def errors(self) -> list[QueryError]:
        return []

    def pause(self) -> None:
        self.asked.append("pause")

    def resume(self) -> None:
        self.asked.append("resume")

    def stop(self) -> None:
        self.asked.append("stop")
        self._all_stop.wait(DEADLINE_S)


class Runner:
    def __init__(self, unreachable: int = 0, queries: int = 1) -> None:
        self._unreachable = unreachable
        self._all_stop = threading.Barrier(queries)
        self.started: list[Query] = []
        self.ready = threading.Event()
        self.ready.set()

    def prepare(self) -> None: ...

    def is_ready(self) -> bool:
        return self.ready.is_set()

    def wait_ready(self) -> None:
        self.ready.wait(DEADLINE_S)

    def start(self, query: PersistentQuery) -> Query:
        if self._unreachable:
            self._unreachable -= 1
            raise Unreachable("no broker answers")
        self.started.append(Query(self._all_stop))
        return self.started[-1]

    def clean(self, query_id: str) -> None: ...

    def close(self) -> None: ...


def state_of(count: int) -> State:
    planned: Any = object()
    return State(queries={f"Q{n}": PersistentQuery(f"Q{n}", "", planned) for n in range(count)})


def leading(runner: Runner, state: State) -> Queries:
    made = Queries(runner)
    made.begin(state)
    made.lead(state, True)
    return made


def test_a_query_that_is_paused_and_resumed_at_once_runs() -> None:
    runner, state = Runner(), state_of(1)
    queries = leading(runner, state)
    for is_paused in (True, False):
        state.queries["Q0"].is_paused = is_paused
        queries.changed(state, Change())
        queries.changed(state, Change())
    assert runner.started[0].asked == ["pause", "resume"]
    queries.close()


def test_a_query_that_could_not_reach_the_cluster_is_started_later(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(queries_module, "START_AGAIN_S", 0.01)
    runner, state = Runner(unreachable=2), state_of(1)
    queries = leading(runner, state)
    deadline_s = time.monotonic() + DEADLINE_S
    while queries.running("Q0") is None:
        assert time.monotonic() < deadline_s
        time.sleep(0.01)
    assert queries.state_of(state.queries["Q0"]) == QueryState.RUNNING
    assert queries.errors_of(state.queries["Q0"]) == []
    queries.close()


def test_a_server_that_leads_no_more_stops_all_queries_at_one_time() -> None:
    """Each here waits until the others stop, too."""
    runner, state = Runner(queries=3), state_of(3)
    queries = leading(runner, state)
    queries.lead(state, False)
    assert [each.asked for each in runner.started] == [["stop"]] * 3
    queries.close()


def test_nobody_waits_until_queries_can_be_started() -> None:
    runner, state = Runner(), state_of(2)
    runner.ready.clear()
    queries = leading(runner, state)
    change = Change()
    change.stopped.append("Q1")
    del state.queries["Q1"]
    queries.changed(state, change)
    assert runner.started == []
    runner.ready.set()
    deadline_s = time.monotonic() + DEADLINE_S
    while queries.running("Q0") is None:
        assert time.monotonic() < deadline_s
        time.sleep(0.01)
    assert len(runner.started) == 1
    queries.close()


def test_a_server_that_ends_starts_nothing_when_it_becomes_the_leader() -> None:
    runner, state = Runner(), state_of(1)
    queries = Queries(runner)
    queries.begin(state)
    queries.close()
    queries.lead(state, True)
    assert runner.started == []
