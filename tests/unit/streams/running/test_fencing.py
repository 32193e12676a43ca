"""Before the tasks of a run begin, nobody of an earlier run can commit any more."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from penstock.streams.running.options import RunOptions
from penstock.streams.running.topics import fence_others


def test_tasks_of_every_number_are_fenced_and_nobody_else() -> None:
    """Partition 2 of 3 was task 0's when there were two tasks, and is task 2's now."""
    ids = ["app-0", "app-1", "app-5", "app-1-0", "app", "app-x", "other-0"]
    fenced: list[str] = []
    cluster: Any = SimpleNamespace(
        transactions=SimpleNamespace(
            list=lambda: [SimpleNamespace(transactional_id=each) for each in ids], fence=fenced.append
        )
    )
    fence_others(cluster, RunOptions("app", "nowhere:1", parallelism=3))
    assert fenced == ["app-0", "app-1", "app-5"]
