"""Where the transactions of an exactly-once source end (`transaction.boundary`)."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Final

from penstock.connect.errors import InvalidConfig
from penstock.connect.settings import Kind
from penstock.connect.tasks.settings import WorkerSettings, value_of

BOUNDARY: Final = "transaction.boundary"
INTERVAL: Final = "transaction.boundary.interval.ms"
POLL, BY_INTERVAL, BY_CONNECTOR = "poll", "interval", "connector"


class Boundary:
    """With each poll, at intervals, or when the connector asks for it."""

    def __init__(self, name: str, interval_s: float, now_s: Callable[[], float] = time.monotonic) -> None:
        self.name, self.interval_s = name, interval_s
        self._now_s = now_s
        self._since_s = now_s()
        self._is_asked = False

    @property
    def ends_complete(self) -> bool:
        """When the task ends, what is there is whole."""
        return self.name != BY_CONNECTOR or self._is_asked

    def ask(self) -> None:
        if self.name == BY_CONNECTOR:
            self._is_asked = True

    def is_due(self, *, has_polled: bool) -> bool:
        if self.name == POLL:
            return has_polled
        if self.name == BY_CONNECTOR:
            return self._is_asked
        return self._now_s() - self._since_s >= self.interval_s

    def committed(self) -> None:
        self._since_s = self._now_s()
        self._is_asked = False


def boundary_of(config: Mapping[str, str], worker: WorkerSettings) -> Boundary:
    """InvalidConfig."""
    name = str(value_of(config, BOUNDARY, Kind.STRING, POLL)).lower()
    if name not in (POLL, BY_INTERVAL, BY_CONNECTOR):
        raise InvalidConfig(
            f"Invalid value {name} for configuration {BOUNDARY}: String must be one of (case insensitive): "
            "INTERVAL, POLL, CONNECTOR"
        )
    interval_ms = value_of(config, INTERVAL, Kind.LONG, None)
    return Boundary(name, worker.flush_interval_s if interval_ms is None else interval_ms / 1000)
