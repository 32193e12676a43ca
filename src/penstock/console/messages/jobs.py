"""Work that takes long, in a thread each, so that no event loop waits: at most so many at a time, each with progress and an end.

job = JOBS.start("search", scan.progress, stopped, scan.run)
job.cancel()        # from now on it counts as stopped; its thread ends within a slice of a few megabytes
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

from penstock.client.errors import Refused, Unreachable, UserError, one_line
from penstock.console.messages.model import Progress

log = logging.getLogger("penstock.console")

MAX_JOBS: Final = 8
"""Searches, tails, copies of all visitors together. Each has a few threads, and buffers of about a hundred megabytes at most."""
MAX_OF_SESSION: Final = 4


class Job:
    def __init__(self, name: str, session: str, progress: Progress, stopped: threading.Event) -> None:
        self.name = name
        self.session = session
        self.progress = progress
        self._stopped = stopped

    @property
    def is_running(self) -> bool:
        return self.progress.state == "running"

    def cancel(self) -> None:
        self._stopped.set()
        self.progress.end("stopped")


class Jobs:
    """Safe to share between threads."""

    def __init__(self, at_most: int = MAX_JOBS, of_session: int = MAX_OF_SESSION) -> None:
        self._at_most = at_most
        self._of_session = of_session
        self._lock = threading.Lock()
        self._running: list[Job] = []

    def start(
        self,
        name: str,
        progress: Progress,
        stopped: threading.Event,
        run: Callable[[], None],
        *,
        session: str = "",
    ) -> Job:
        """UserError where too much is running already."""
        job = self._admitted(Job(name, session, progress, stopped))
        threading.Thread(target=self._run, args=(job, run), name=f"console-{name}", daemon=True).start()
        return job

    @contextmanager
    def held(self, name: str, stopped: threading.Event, *, session: str = "") -> Iterator[None]:
        """For work that a thread of somebody else does, such as a download. UserError where too much is running already."""
        job = self._admitted(Job(name, session, Progress(), stopped))
        try:
            yield
        finally:
            job.cancel()
            self._remove(job)

    def _admitted(self, job: Job) -> Job:
        session = job.session
        with self._lock:
            own = sum(1 for each in self._running if each.session == session)
            if len(self._running) >= self._at_most:
                raise UserError(
                    f"the console does {len(self._running)} long pieces of work already; try again when one has ended"
                )
            if session and own >= self._of_session:
                raise UserError(
                    f"you have {own} searches, tails, copies or downloads running already; stop one of them first"
                )
            self._running.append(job)
        return job

    def _remove(self, job: Job) -> None:
        with self._lock:
            self._running.remove(job)

    def running(self) -> int:
        with self._lock:
            return len(self._running)

    def cancel_all(self) -> None:
        """For the end of the console."""
        with self._lock:
            running = list(self._running)
        for job in running:
            job.cancel()

    def _run(self, job: Job, run: Callable[[], None]) -> None:
        try:
            run()
            job.progress.end("stopped" if job._stopped.is_set() else "done")
        except (UserError, Refused, Unreachable) as error:
            job.progress.end("failed", one_line(error))
        except Exception as error:
            log.exception("A bug in a piece of work of the console: %s", job.name)
            job.progress.end(
                "failed", f"a bug of the console ({type(error).__name__}); its log has the details"
            )
        finally:
            self._remove(job)


JOBS: Final = Jobs()
"""Of this process."""
