"""Long work in threads: bounded, stopped, and what went wrong is told."""

from __future__ import annotations

import threading

import pytest

from penstock.client.errors import UserError
from penstock.console.messages.jobs import Job, Jobs
from penstock.console.messages.model import Progress
from tests.clients.driver import wait_until


def started(jobs: Jobs, session: str = "", *, fails: Exception | None = None) -> Job:
    stopped = threading.Event()

    def run() -> None:
        if fails is not None:
            raise fails
        assert stopped.wait(30)

    return jobs.start("work", Progress(), stopped, run, session=session)


def test_a_job_that_is_cancelled_counts_as_stopped_at_once() -> None:
    jobs = Jobs()
    job = started(jobs)
    job.cancel()
    assert (job.is_running, job.progress.state) == (False, "stopped")
    wait_until(lambda: jobs.running() == 0, "its thread has ended")


def test_no_session_and_no_console_does_more_than_its_share() -> None:
    jobs = Jobs(at_most=3, of_session=2)
    running = [started(jobs, "a"), started(jobs, "a")]
    with pytest.raises(UserError, match="you have 2 searches"):
        started(jobs, "a")
    running.append(started(jobs, "b"))
    with pytest.raises(UserError, match="3 long pieces of work already"):
        started(jobs, "c")
    jobs.cancel_all()
    wait_until(lambda: jobs.running() == 0, "all have ended")
    started(jobs, "a").cancel()


def test_a_download_counts_as_long_as_somebody_takes_it() -> None:
    jobs, stopped = Jobs(at_most=1), threading.Event()
    with jobs.held("export", stopped):
        assert jobs.running() == 1
        with pytest.raises(UserError, match="1 long pieces of work"):
            started(jobs)
    assert jobs.running() == 0
    assert stopped.is_set()


def test_why_a_job_failed_is_one_line() -> None:
    jobs = Jobs()
    refused = started(jobs, fails=UserError("no such\ntopic"))
    broken = started(jobs, fails=ZeroDivisionError("secret"))
    wait_until(lambda: not refused.is_running and not broken.is_running, "both have failed")
    assert (refused.progress.state, refused.progress.error) == ("failed", "no such topic")
    assert "a bug of the console (ZeroDivisionError)" in broken.progress.error
    assert "secret" not in broken.progress.error
