"""What runs connectors: where their tasks run, and that nothing stays of a connector that is gone."""

from __future__ import annotations

import time
from types import SimpleNamespace
from typing import Any

import pytest

from penstock.connect.running.crew import Crew
from penstock.connect.running.launchers import OnSpark
from penstock.connect.state import configs
from penstock.connect.state.configs import ConfigState, Target
from penstock.connect.state.statuses import StatusState

DEADLINE_S = 30


@pytest.mark.parametrize(
    ("master", "is_ready"), [("local", True), ("", True), ("local[8]", True), ("spark://host:7077", False)]
)
def test_who_may_have_to_lead_has_spark_ready_where_that_holds_no_executors(
    monkeypatch: pytest.MonkeyPatch, master: str, is_ready: bool
) -> None:
    opened: list[str] = []
    monkeypatch.setattr(OnSpark, "_open", lambda self: opened.append(self._master))
    launchers = OnSpark(master)
    launchers.stand_by()
    launchers.stand_by()
    if launchers._thread is not None:
        launchers._thread.join(DEADLINE_S)
    assert opened == ([master] if is_ready else [])


def nothing(*given: Any, **named: Any) -> None:
    pass


def test_nothing_stays_of_connectors_that_come_and_go() -> None:
    book = SimpleNamespace(configs=ConfigState(), statuses=StatusState())
    desk: Any = SimpleNamespace(
        book=book, launchers=SimpleNamespace(prepare=nothing), forget=nothing, forget_tasks=nothing, version=nothing,
        tell_connector=nothing, write=nothing,
    )  # fmt: skip
    crew = Crew(desk)
    crew.begin()
    for number in range(3):
        name = f"connector-{number}"
        for written in (configs.target_record(name, Target.STOPPED), configs.connector_record(name, {})):
            crew.changed(book.configs.replay(*written))
        assert crew.keeper(name) is not None
        for written in configs.removal_records(name):
            crew.changed(book.configs.replay(*written))
        deadline_s = time.monotonic() + DEADLINE_S
        while crew.keeper(name) is not None:
            assert time.monotonic() < deadline_s
            time.sleep(0.01)
    crew.end(tells=False)
