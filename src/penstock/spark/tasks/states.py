"""The states of a job of long tasks and of each task, and what leads from one to the other. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum
from typing import Any, Final, NamedTuple


class JobState(StrEnum):
    NEW = "NEW"
    STARTING = "STARTING"  # not all tasks have begun
    RUNNING = "RUNNING"
    PAUSED = "PAUSED"
    RESTARTING = "RESTARTING"  # a task has failed or died, and is being started again
    STOPPING = "STOPPING"
    STOPPED = "STOPPED"
    ENDED = "ENDED"  # every task has come to its own end
    FAILED = "FAILED"  # no other attempt will help


FINAL: Final = frozenset({JobState.STOPPED, JobState.ENDED, JobState.FAILED})


class Phase(StrEnum):
    """Of a task, as it tells it itself. A body may tell others of its own, such as "restoring"."""

    WAITING = "waiting"  # nothing has been heard of it
    STARTING = "starting"
    RUNNING = "running"
    PAUSED = "paused"
    RETRYING = "retrying"  # its body has failed and will be called again
    LOST = "lost"  # its connection has gone, and nothing has come in its place
    ENDED = "ended"


class TaskError(NamedTuple):
    task: int  # -1: of the job
    time_ms: int
    kind: str  # the name of the exception
    message: str
    detail: str  # the stack trace
    is_fatal: bool


class TaskView(NamedTuple):
    """What the driver knows of a task. `counters` are the task's own; `silent_s` since its last beat; `still_s` since its
    body told that it makes progress."""

    task: int
    phase: str
    attempt: int
    process_id: int
    host: str
    counters: dict[str, Any]
    silent_s: float
    still_s: float


WORKING: Final = frozenset({Phase.RUNNING.value, Phase.PAUSED.value, Phase.ENDED.value})


def state_of(phases: Iterable[str], *, has_failed: bool, is_paused: bool) -> JobState:
    """Of a job that is neither new nor at its end. `has_failed`: a task has failed since all of them ran."""
    seen = list(phases)
    if any(phase in (Phase.RETRYING, Phase.LOST) for phase in seen):
        return JobState.RESTARTING
    if not all(phase in WORKING for phase in seen):
        return JobState.RESTARTING if has_failed else JobState.STARTING
    if is_paused and any(phase == Phase.PAUSED for phase in seen):
        return JobState.PAUSED
    return JobState.RUNNING
