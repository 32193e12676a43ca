"""The state of a job, from the phases of its tasks."""

from __future__ import annotations

import pytest

from penstock.spark.tasks.states import JobState, state_of


@pytest.mark.parametrize(
    ("phases", "has_failed", "is_paused", "state"),
    [
        (["waiting", "running"], False, False, JobState.STARTING),
        (["waiting", "running"], True, False, JobState.RESTARTING),
        (["restoring", "running"], False, False, JobState.STARTING),
        (["running", "running"], True, False, JobState.RUNNING),
        (["running", "lost"], False, False, JobState.RESTARTING),
        (["retrying", "running"], False, True, JobState.RESTARTING),
        (["paused", "running"], False, True, JobState.PAUSED),
        (["paused", "paused"], False, False, JobState.RUNNING),
        (["ended", "running"], False, False, JobState.RUNNING),
    ],
)
def test_state_follows_from_phases(
    phases: list[str], has_failed: bool, is_paused: bool, state: JobState
) -> None:
    assert state_of(phases, has_failed=has_failed, is_paused=is_paused) == state
