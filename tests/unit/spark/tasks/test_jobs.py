"""Jobs of long tasks in threads and processes of this machine: the same supervision as on Spark."""

from __future__ import annotations

import os
import signal
import socket
import threading
import time
from collections.abc import Callable
from typing import Any

import pytest

from penstock.client.patience import Backoff
from penstock.spark.tasks import Control, Hopeless, JobState, LongJob, ProcessLauncher, ThreadLauncher
from penstock.spark.tasks.board import board_at
from penstock.spark.tasks.failures import NotAnswered
from penstock.spark.tasks.frames import Line, packed
from penstock.spark.tasks.states import Phase

SOON = Backoff(0.01, factor=1, max_s=0.01, jitter=0)
DEADLINE_S = 20


def until(condition: Callable[[], Any]) -> Any:
    deadline_s = time.monotonic() + DEADLINE_S
    while not (found := condition()):
        assert time.monotonic() < deadline_s, "it did not come to that"
        time.sleep(0.01)
    return found


def is_closed(line: Line) -> bool:
    """By the other side, after what it had to say."""
    try:
        while True:
            line.receive()
    except (EOFError, ConnectionError):
        return True


def work(control: Control) -> None:
    """Until it is told to stop."""
    control.count(lambda: {"index": control.index})
    control.answer("double", lambda data: 2 * data)
    while not control.is_stopping:
        control.enter(Phase.PAUSED if control.is_paused else Phase.RUNNING)
        control.wait(1.0)


def job_of(body: Callable[[Control], None], tasks: int = 2, **options: Any) -> LongJob:
    settings: dict[str, Any] = {"launcher": ThreadLauncher(), "restarts": SOON, "retries": SOON, **options}
    return LongJob(body, tasks=tasks, name="test", **settings)


def test_a_job_runs_answers_pauses_resumes_and_stops() -> None:
    job = job_of(work)
    assert job.state == JobState.NEW
    job.start()
    assert job.wait_for(JobState.RUNNING, timeout_s=DEADLINE_S) == JobState.RUNNING
    assert [job.ask(task, "double", 21 + task) for task in (0, 1)] == [42, 44]
    until(lambda: [task.counters for task in job.tasks] == [{"index": 0}, {"index": 1}])
    job.pause()
    assert job.wait_for(JobState.PAUSED, timeout_s=DEADLINE_S) == JobState.PAUSED
    job.resume()
    assert job.wait_for(JobState.RUNNING, timeout_s=DEADLINE_S) == JobState.RUNNING
    job.stop()
    assert job.state == JobState.STOPPED
    assert [task.phase for task in job.tasks] == [Phase.ENDED, Phase.ENDED]
    with pytest.raises(NotAnswered, match="STOPPED"):
        job.ask(0, "double", 1)


def test_a_question_that_cannot_be_answered_says_why() -> None:
    job = job_of(work, tasks=1)
    job.start()
    job.wait_for(JobState.RUNNING, timeout_s=DEADLINE_S)
    with pytest.raises(NotAnswered, match="does not answer 'treble'"):
        job.ask(0, "treble")
    with pytest.raises(NotAnswered, match="TypeError"):
        job.ask(0, "double")
    job.stop()


def test_a_body_that_raises_is_called_again_and_its_error_is_told() -> None:
    calls: list[int] = []

    def fails_twice(control: Control) -> None:
        calls.append(control.index)
        if len(calls) <= 2:
            raise ValueError(f"number {len(calls)}")
        work(control)

    job = job_of(fails_twice, tasks=1)
    job.start()
    assert job.wait_for(JobState.RUNNING, timeout_s=DEADLINE_S) == JobState.RUNNING
    assert [(error.task, error.kind, error.message) for error in job.errors] == [
        (0, "ValueError", "number 1"),
        (0, "ValueError", "number 2"),
    ]
    assert "fails_twice" in job.errors[0].detail
    job.stop()
    assert (job.state, job.reason) == (JobState.STOPPED, None)


def test_a_hopeless_task_ends_the_whole_job() -> None:
    def fails(control: Control) -> None:
        if control.index == 1:
            raise Hopeless("the topic has other partitions")
        work(control)

    job = job_of(fails)
    job.start()
    assert job.wait_for(timeout_s=DEADLINE_S) == JobState.FAILED
    assert job.reason == "Hopeless: the topic has other partitions"


def test_a_job_whose_tasks_all_return_has_ended() -> None:
    job = job_of(lambda control: None)
    job.start()
    assert job.wait_for(timeout_s=DEADLINE_S) == JobState.ENDED


def test_events_of_tasks_come_to_the_driver() -> None:
    told: list[tuple[int, str, Any]] = []
    job = job_of(lambda control: control.tell("made", [control.index]), tasks=1)
    job._on_event = lambda *event: told.append(event)
    job.start()
    job.wait_for(timeout_s=DEADLINE_S)
    until(lambda: told)
    assert told == [(0, "made", [0])]


def test_nobody_without_the_secret_is_heard() -> None:
    job = job_of(work, tasks=1)
    job.start()
    job.wait_for(JobState.RUNNING, timeout_s=DEADLINE_S)
    with socket.create_connection(board_at("127.0.0.1").address) as connected:
        line = Line(connected)
        until(line.receive)
        line.send({"job": job.id, "task": 0, "attempt": 9, "proof": "00", "process_id": 1})
        assert is_closed(line)
    with socket.create_connection(board_at("127.0.0.1").address) as connected:
        connected.sendall(packed({"job": "x" * 10_000}))
        assert is_closed(Line(connected))
    assert job.ask(0, "double", 4) == 8
    job.stop()


def test_a_task_whose_connection_breaks_connects_again() -> None:
    job = job_of(work, tasks=1)
    job.start()
    job.wait_for(JobState.RUNNING, timeout_s=DEADLINE_S)
    line = job._entry.tasks[0].line
    assert line is not None
    line.socket.shutdown(socket.SHUT_RDWR)
    until(lambda: job._entry.tasks[0].line not in (None, line))
    until(lambda: job.state == JobState.RUNNING)
    assert job.ask(0, "double", 4) == 8
    job.stop()


def test_a_task_that_does_not_stop_is_left_after_the_deadline() -> None:
    release = threading.Event()

    def stubborn(control: Control) -> None:
        control.enter(Phase.RUNNING)
        release.wait(DEADLINE_S)

    job = job_of(stubborn, tasks=1)
    job.start()
    job.wait_for(JobState.RUNNING, timeout_s=DEADLINE_S)
    threading.Timer(0.3, release.set).start()
    job.stop(within_s=0.05)
    assert job.state == JobState.STOPPED


def test_a_process_that_is_killed_is_started_again_and_one_that_hangs_is_killed() -> None:
    def stubborn(control: Control) -> None:
        control.enter(Phase.RUNNING)
        while True:
            time.sleep(1)

    job = job_of(stubborn, tasks=1, launcher=ProcessLauncher())
    job.start()
    job.wait_for(JobState.RUNNING, timeout_s=DEADLINE_S)
    first = job.tasks[0].process_id
    os.kill(first, signal.SIGKILL)
    until(lambda: job.tasks[0].process_id != first and job.state == JobState.RUNNING)
    second = job.tasks[0]
    assert second.attempt == 1
    job.stop(within_s=0.05)
    assert job.state == JobState.STOPPED
    with pytest.raises(ProcessLookupError):
        os.kill(second.process_id, 0)


def test_a_process_that_dies_too_often_restarts_the_job() -> None:
    def dies(control: Control) -> None:
        if control.attempt < 5:
            os._exit(3)
        work(control)

    job = job_of(dies, tasks=1, launcher=ProcessLauncher())
    job.start()
    assert job.wait_for(JobState.RUNNING, timeout_s=DEADLINE_S) == JobState.RUNNING
    assert job.tasks[0].attempt == 5
    assert "ended with 3" in job.errors[0].message
    job.stop()


def test_a_process_that_ran_well_before_it_died_does_not_count_as_dying_too_often() -> None:
    """It is started again for ever, with attempts that count on."""

    def dies(control: Control) -> None:
        control.enter(Phase.RUNNING)
        if control.attempt < 6:
            os._exit(3)
        work(control)

    job = job_of(dies, tasks=1, launcher=ProcessLauncher(well_after_s=0))
    job.start()
    until(lambda: job.tasks[0].attempt == 6 and job.state == JobState.RUNNING)
    assert not job.errors
    job.stop()
