"""Persistent queries at work: started, stopped, paused and watched, as the state says.

Of several servers of one service id one runs the queries: the member of the group `<command topic>-leader` that has the
topic's only
partition. When it dies the group gives the partition to another, which starts the queries where they had committed.
"""

from __future__ import annotations

import logging
import threading
import time
from typing import Final, Protocol

from penstock.client.errors import Refused, Unreachable
from penstock.sql.engine.applying import Change
from penstock.sql.engine.state import PersistentQuery, QueryError, QueryState, State

log = logging.getLogger("penstock.sql")

START_AGAIN_S: Final = 5.0


class Running(Protocol):
    """One query at work."""

    def state(self) -> str: ...

    def errors(self) -> list[QueryError]:
        """The last ones. What has failed is tried again."""

    def pause(self) -> None: ...

    def resume(self) -> None: ...

    def stop(self) -> None: ...


class Runner(Protocol):
    """How queries are run: on Spark, or in the tests in this process."""

    def prepare(self) -> None:
        """What takes long is begun."""

    def is_ready(self) -> bool: ...

    def wait_ready(self) -> None:
        """Until queries can be started at once, or never."""

    def start(self, query: PersistentQuery) -> Running: ...

    def clean(self, query_id: str) -> None:
        """Its internal topics and its group go: it was ended for good."""

    def close(self) -> None: ...


class Queries:
    def __init__(self, runner: Runner) -> None:
        self._runner = runner
        self._running: dict[str, Running] = {}
        self._failed: dict[str, QueryError] = {}
        self._failed_starts: dict[str, PersistentQuery] = {}
        """Those that are tried again, or wait until queries can be started."""
        self._is_waiting = False
        self._paused: set[str] = set()
        """Those that have been told to pause."""
        self._lock = threading.RLock()
        self._is_leading = False
        self._has_begun = False

    def prepare(self) -> None:
        self._runner.prepare()

    def begin(self, state: State) -> None:
        """The log has been read: what is there is started, where this server leads."""
        with self._lock:
            self._has_begun = True
            self._start_all(state)

    def lead(self, state: State, leads: bool) -> None:
        with self._lock:
            self._is_leading = leads
            if leads:
                self._start_all(state)
            else:
                self._stop_all()

    def changed(self, state: State, change: Change) -> None:
        with self._lock:
            if not (self._has_begun and self._is_leading):
                return
            for query_id in (*change.stopped, *change.replaced):
                self._stop(query_id)
                if query_id in change.stopped:
                    threading.Thread(
                        target=self._clean, args=(query_id,), name=f"clean {query_id}", daemon=True
                    ).start()
            for query_id in change.started:
                self._start(state.queries[query_id])
            for query in list(state.queries.values()):
                running = self._running.get(query.id)
                # What was asked of it counts, and not what it has told so far: it may be about to pause.
                if running is None or query.is_paused == (query.id in self._paused):
                    continue
                if query.is_paused:
                    self._paused.add(query.id)
                    running.pause()
                else:
                    self._paused.discard(query.id)
                    running.resume()

    def state_of(self, query: PersistentQuery) -> QueryState:
        if query.error is not None or query.id in self._failed:
            return QueryState.ERROR
        running = self._running.get(query.id)
        if query.is_paused:
            return QueryState.PAUSED
        if running is None:
            return QueryState.RUNNING  # at the server that leads
        return QueryState(running.state())

    def errors_of(self, query: PersistentQuery) -> list[QueryError]:
        if query.error is not None:
            return [QueryError(query.error)]
        failure, running = self._failed.get(query.id), self._running.get(query.id)
        if failure is not None:
            return [failure]
        return [] if running is None else running.errors()

    def running(self, query_id: str) -> Running | None:
        return self._running.get(query_id)

    def close(self) -> None:
        with self._lock:
            self._has_begun = False  # it may become the leader while it ends
            self._is_leading = False
            self._stop_all()
        self._runner.close()

    def _start_all(self, state: State) -> None:
        if self._has_begun and self._is_leading:
            for query in list(state.queries.values()):
                self._start(query)

    def _start_again(self, query: PersistentQuery) -> None:
        with self._lock:
            if self._is_leading and self._failed_starts.get(query.id) is query:
                self._start(query)

    def _start_when_ready(self, query: PersistentQuery) -> None:
        """Who reads the log of commands must not wait for it, nor who asks."""
        self._failed_starts[query.id] = query
        if not self._is_waiting:
            self._is_waiting = True
            threading.Thread(target=self._wait_ready, name="penstock-first-queries", daemon=True).start()

    def _wait_ready(self) -> None:
        self._runner.wait_ready()
        with self._lock:
            self._is_waiting = False
            waiting = list(self._failed_starts.values())
        for query in waiting:
            self._start_again(query)

    def _start(self, query: PersistentQuery) -> None:
        if query.id in self._running or query.planned is None:
            return
        if not self._runner.is_ready():
            self._start_when_ready(query)
            return
        try:
            self._running[query.id] = self._runner.start(query)
            self._failed.pop(query.id, None)
            self._failed_starts.pop(query.id, None)
        except (Unreachable, Refused) as error:  # the cluster's, which may go away
            log.warning("The query %s could not be started, and is tried again: %s", query.id, error)
            self._failed[query.id] = QueryError(str(error), int(time.time() * 1000))
            self._failed_starts[query.id] = query
            later = threading.Timer(START_AGAIN_S, self._start_again, (query,))
            later.daemon = True
            later.start()
            return
        except Exception as error:
            log.exception("The query %s could not be started", query.id)
            self._failed[query.id] = QueryError(str(error), int(time.time() * 1000))
            return
        if query.is_paused:
            self._paused.add(query.id)
            self._running[query.id].pause()

    def _stop_all(self) -> None:
        """All at one time: each may have something to finish."""
        stopping = [
            threading.Thread(target=self._end, args=(query_id, self._running.pop(query_id)), daemon=True)
            for query_id in list(self._running)
        ]
        for thread in stopping:
            thread.start()
        for thread in stopping:
            thread.join()
        self._failed.clear()
        self._failed_starts.clear()
        self._paused.clear()

    def _stop(self, query_id: str) -> None:
        running = self._running.pop(query_id, None)
        self._failed.pop(query_id, None)
        self._failed_starts.pop(query_id, None)
        self._paused.discard(query_id)
        if running is not None:
            self._end(query_id, running)

    def _end(self, query_id: str, running: Running) -> None:
        try:
            running.stop()
        except Exception:
            log.exception("The query %s did not stop as it should", query_id)

    def _clean(self, query_id: str) -> None:
        try:
            self._runner.clean(query_id)
        except Exception as error:
            log.warning("The internal topics of %s stay: %s", query_id, error)
