"""The keepers of all connectors, at the worker that leads."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from typing import Any, Final

from penstock.connect.running.desk import Desk
from penstock.connect.running.keeper import Keeper
from penstock.connect.state.configs import Change, Kind

END_S: Final = 30.0
_OF_CONNECTORS: Final = (Kind.CONFIG, Kind.REMOVED, Kind.TASKS, Kind.TARGET)


class Crew:
    def __init__(self, desk: Desk) -> None:
        self._desk = desk
        self._keepers: dict[str, Keeper] = {}
        self._lock = threading.RLock()
        self._leads = False

    def stand_by(self) -> None:
        """Another worker leads."""
        self._desk.launchers.stand_by()

    def begin(self) -> None:
        """This worker leads: all that is in the book is kept."""
        self._desk.launchers.prepare()
        with self._lock:
            self._leads = True
            for name in list(self._desk.book.configs.connectors):
                self._keep(name)

    def end(self, *, tells: bool) -> None:
        """All at one time: each may have something to finish."""
        with self._lock:
            self._leads = False
            ending, self._keepers = list(self._keepers.values()), {}
        for keeper in ending:
            keeper.end(tells=tells)
        deadline_s = time.monotonic() + END_S
        for keeper in ending:
            keeper.join(max(0.0, deadline_s - time.monotonic()))

    def changed(self, change: Change) -> None:
        with self._lock:
            if not self._leads or change.kind not in _OF_CONNECTORS:
                return
            keeper = self._keepers.get(change.name)
            if keeper is not None and keeper.wake():
                return
            self._keepers.pop(change.name, None)
            if change.name in self._desk.book.configs.connectors:
                self._keep(change.name)

    def keeper(self, name: str) -> Keeper | None:
        return self._keepers.get(name)

    def counters(self) -> Mapping[tuple[str, int], Mapping[str, Any]]:
        """By connector and task."""
        found = {}
        for name, keeper in list(self._keepers.items()):
            job = keeper.job
            if job is not None:
                for task, counters in job.counters().items():
                    found[name, task] = counters
        return found

    def _keep(self, name: str) -> None:
        keeper = self._keepers[name] = Keeper(name, self._desk, self._left)
        keeper.start()

    def _left(self, keeper: Keeper) -> None:
        with self._lock:
            if self._keepers.get(keeper.name) is keeper:
                del self._keepers[keeper.name]
