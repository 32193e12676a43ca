"""Long tasks on Spark: they run side by side, are started again when they die, and leave nothing behind."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from pyspark.sql import SparkSession

from penstock.client.patience import Backoff
from penstock.spark.tasks import Control, JobState, LongJob, SparkLauncher
from penstock.spark.tasks.failures import NoRoom
from penstock.spark.tasks.states import FINAL, Phase

SOON = Backoff(0.01, factor=1, max_s=0.01, jitter=0)
DEADLINE_S = 60


def until(condition: Callable[[], Any]) -> Any:
    deadline_s = time.monotonic() + DEADLINE_S
    while not (found := condition()):
        assert time.monotonic() < deadline_s, "it did not come to that"
        time.sleep(0.02)
    return found


def is_there(process_id: int) -> bool:
    try:
        os.kill(process_id, 0)
    except ProcessLookupError:
        return False
    return True


def work(control: Control) -> None:
    control.answer("where", lambda _: [control.index, os.getpid()])
    while not control.is_stopping:
        control.enter(Phase.RUNNING)
        control.wait(1.0)


def stubborn(control: Control) -> None:
    control.enter(Phase.RUNNING)
    while True:
        time.sleep(1)


@pytest.fixture
def start(spark: SparkSession) -> Iterator[Callable[..., LongJob]]:
    started: list[LongJob] = []

    def begin(body: Callable[[Control], None], tasks: int, name: str = "test") -> LongJob:
        job = LongJob(
            body, tasks=tasks, name=name, launcher=SparkLauncher(spark), restarts=SOON, retries=SOON
        )
        started.append(job)
        job.start()
        return job

    yield begin
    for job in started:
        job.stop(within_s=1)
        assert job.state in FINAL


def test_jobs_run_side_by_side_and_beside_other_work(
    spark: SparkSession, start: Callable[..., LongJob]
) -> None:
    first, second = start(work, 2, "first"), start(work, 2, "second")
    for job in (first, second):
        assert job.wait_for(JobState.RUNNING, timeout_s=DEADLINE_S) == JobState.RUNNING
    where = [job.ask(task, "where") for job in (first, second) for task in (0, 1)]
    assert [task for task, _ in where] == [0, 1, 0, 1]
    assert len({process for _, process in where}) == 4
    assert spark.range(10).count() == 10
    first.stop()
    assert (first.state, second.state) == (JobState.STOPPED, JobState.RUNNING)
    assert second.ask(1, "where")[0] == 1


def test_a_killed_worker_is_started_again_and_the_others_work_on(start: Callable[..., LongJob]) -> None:
    job = start(work, 2)
    job.wait_for(JobState.RUNNING, timeout_s=DEADLINE_S)
    (_, other), (_, killed) = job.ask(0, "where"), job.ask(1, "where")
    os.kill(killed, signal.SIGKILL)
    until(lambda: job.tasks[1].attempt == 1 and job.state == JobState.RUNNING)
    assert job.ask(0, "where") == [0, other]
    assert job.ask(1, "where")[1] != killed


def test_a_task_that_dies_more_often_than_spark_takes_restarts_the_job(
    start: Callable[..., LongJob],
) -> None:
    def dies(control: Control) -> None:
        if control.attempt < 5:
            os.kill(os.getpid(), signal.SIGKILL)
        work(control)

    job = start(dies, 1)
    assert job.wait_for(JobState.RUNNING, timeout_s=DEADLINE_S) == JobState.RUNNING
    assert job.tasks[0].attempt == 5
    assert [error.task for error in job.errors] == [-1]


def test_a_task_that_does_not_stop_is_cancelled(start: Callable[..., LongJob]) -> None:
    job = start(stubborn, 1)
    job.wait_for(JobState.RUNNING, timeout_s=DEADLINE_S)
    process = job.tasks[0].process_id
    job.stop(within_s=0.1)
    assert job.state == JobState.STOPPED
    until(lambda: not is_there(process))


def test_more_tasks_than_slots_are_refused_in_one_line(start: Callable[..., LongJob]) -> None:
    with pytest.raises(NoRoom, match=r"7 long tasks need as many slots, and local\[6,4\] has 6"):
        start(work, 7)
