"""A function of the program that never ends: it is told where, the query fails at the limit, and can be stopped."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from penstock.spark.tasks import JobState, ProcessLauncher, ThreadLauncher
from penstock.streams import App
from penstock.testing.penstock_broker import PenstockBroker
from tests.conftest import MakeTopic
from tests.streams.topics import put, until

Stuck = Callable[..., App]


def never_ends(row: dict[str, Any]) -> int:
    while row["n"] > 1:
        time.sleep(0.001)
    return int(row["n"])


@pytest.fixture
def stuck(broker: PenstockBroker, make_topic: MakeTopic) -> Iterator[Stuck]:
    apps: list[App] = []

    def make(launcher: Any, **properties: str) -> App:
        source = make_topic()
        app = App(f"app-{source}", bootstrap=broker.bootstrap, properties=properties)
        apps.append(app)
        rows = app.stream(source, key=str, value={"n": int})
        rows.map_values(never_ends, value=int).to(f"{source}-out")
        app.start(launcher=launcher).wait_until_running(60)
        put(broker.bootstrap, source, [("a", {"n": n}, 1000) for n in (1, 2)])
        return app

    yield make
    for app in apps:
        app.stop()


@pytest.mark.parametrize("launcher", [ThreadLauncher, ProcessLauncher])
def test_a_function_that_never_ends_fails_its_query_at_the_limit(stuck: Stuck, launcher: Any) -> None:
    query = stuck(launcher(), **{"max.poll.interval.ms": "1500"})._running()
    until(lambda: query.state == JobState.FAILED)
    assert "s in step KSTREAM-MAPVALUES-0000000001, in never_ends (test_stuck.py, line" in query.reason
    assert "more than max.poll.interval.ms, 1500" in query.reason


def test_it_is_told_before_the_limit_and_can_be_stopped(
    stuck: Stuck, caplog: pytest.LogCaptureFixture
) -> None:
    app = stuck(ThreadLauncher(), **{"consumer.max.poll.interval.ms": "4000"})
    query = app._running()
    until(lambda: query.stuck)
    assert query.stuck[0].startswith("task 0: ")
    assert "in step KSTREAM-MAPVALUES-0000000001, in never_ends" in query.stuck[0]
    query.stop(within_s=1)
    assert query.state in (JobState.STOPPED, JobState.FAILED)
    assert "is cancelled: task 0 has made no progress for" in caplog.text
    assert not [each for each in threading.enumerate() if each.name.startswith(f"penstock-{app.name}-")]
