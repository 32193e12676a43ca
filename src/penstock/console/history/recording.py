"""Looks become rows, in a thread of the history's own."""

from __future__ import annotations

import logging
import queue
import sqlite3
import threading
import time
from collections.abc import Mapping, Sequence
from typing import Final

from penstock.client.errors import UserError
from penstock.console.clusters.model import ClusterView
from penstock.console.history.series import Point, is_worth_a_row, series_of, thinned
from penstock.console.history.store import Store
from penstock.console.settings.model import HistorySettings

log = logging.getLogger("penstock.console")

MAX_WAITING: Final = 4
"""Looks. One more, and it is left out."""
TIDY_EVERY_S: Final = 120.0
CLOSING_TIMEOUT_S: Final = 5.0
MOST_POINTS: Final = 400
"""Of one series in one answer: more than a chart has pixels for would only make pages slow."""


class History:
    def __init__(self, settings: HistorySettings | None = None) -> None:
        """Without a file all of it is in memory. UserError when the file cannot be used."""
        settings = settings or HistorySettings()
        try:
            self._store = Store(settings.file)
        except (sqlite3.Error, OSError) as error:
            raise UserError(
                f"the history cannot be kept in {settings.file}: {error}. "
                "Name another file, or none to keep it in memory"
            ) from None
        self._keep_s = settings.keep_hours * 3600.0
        self._max_rows = settings.max_rows
        self._last: dict[tuple[str, str], Point] = {}
        self._lock = threading.Lock()  # one connection for the writer and for readers
        self._waiting: queue.Queue[tuple[str, ClusterView] | None] = queue.Queue(MAX_WAITING)
        self._tidied_s = 0.0
        self._has_complained = False
        self._is_closed = False
        self._thread = threading.Thread(target=self._run, name="console-history", daemon=True)
        self._thread.start()

    def take(self, cluster: str, view: ClusterView) -> None:
        """Returns at once."""
        try:
            self._waiting.put_nowait((cluster, view))
        except queue.Full:
            self._complain("the history is written too slowly: a look was left out")

    def read(
        self, cluster: str, names: Sequence[str], *, since_s: float, until_s: float | None = None
    ) -> Mapping[str, list[Point]]:
        """Blocks: call it in a thread. A series that nobody has written is empty."""
        until_s = time.time() if until_s is None else until_s
        with self._lock:
            if self._is_closed:
                return {name: [] for name in names}
            found = self._store.read(cluster, names, since_s=since_s, until_s=until_s)
        return {
            name: thinned(points, since_s=since_s, until_s=until_s, most=MOST_POINTS)
            for name, points in found.items()
        }

    def close(self) -> None:
        """What waits is written first."""
        try:
            self._waiting.put(None, timeout=CLOSING_TIMEOUT_S)
        except queue.Full:
            pass
        self._thread.join(CLOSING_TIMEOUT_S)
        with self._lock:
            self._is_closed = True
            self._store.close()

    def _run(self) -> None:
        while (taken := self._waiting.get()) is not None:
            cluster, view = taken
            try:
                self._write(cluster, view)
                self._tidy(view.at_s)
                self._has_complained = False
            except sqlite3.Error as error:
                self._complain(f"the history cannot be written: {error}")

    def _write(self, cluster: str, view: ClusterView) -> None:
        worth = []
        for name, value in series_of(view):
            key = cluster, name
            if is_worth_a_row(value, view.at_s, self._last.get(key)):
                self._last[key] = Point(view.at_s, value)
                worth.append((name, value))
        if worth:
            with self._lock:
                self._store.write(cluster, view.at_s, worth)

    def _tidy(self, now_s: float) -> None:
        if now_s - self._tidied_s >= TIDY_EVERY_S:
            self._tidied_s = now_s
            # Series of topics and groups that are gone.
            old_s = now_s - self._keep_s
            self._last = {key: point for key, point in self._last.items() if point.at_s > old_s}
            steps = self._store.tidying(now_s, keep_s=self._keep_s, max_rows=self._max_rows)
            while True:  # who reads waits for one step at most
                with self._lock:
                    if self._is_closed or next(steps, self) is self:
                        return

    def _complain(self, said: str) -> None:
        if not self._has_complained:
            self._has_complained = True
            log.warning("%s", said)
