"""Reads so many records as fast as they come, and tells how fast that was."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import datetime
from typing import Any, NamedTuple

from penstock.client.clients import Connection
from penstock.load.clients import (
    POLL_S,
    STATISTICS_SETTINGS,
    TOPIC_PATIENCE,
    ClientErrors,
    ClientStatistics,
    poll_batch,
)
from penstock.model.java_dates import date_text

MEGABYTE = 1024 * 1024
THREAD_ID = 0


class ReadPlan(NamedTuple):
    subscription: str
    records: int
    timeout_ms: int
    interval_ms: int
    date_format: str
    is_detailed: bool


class _Count:
    """What was read since a moment, and how much of the time went into joining the group."""

    def __init__(self, started_ms: float) -> None:
        self.started_ms = started_ms
        self.records = 0
        self.size_bytes = 0
        self.joining_ms = 0.0

    @property
    def megabytes(self) -> float:
        return self.size_bytes / MEGABYTE


def _per_second(amount: float, elapsed_ms: float) -> float:
    return amount * 1000 / elapsed_ms if elapsed_ms > 0 else 0.0


class Reader:
    def __init__(
        self,
        connection: Connection,
        plan: ReadPlan,
        *,
        say: Callable[[str], object],
        complain: Callable[[str], object],
        is_over: Callable[[], bool],
        has_metrics: bool = False,
        clock_ms: Callable[[], float] = lambda: time.time() * 1000,
    ) -> None:
        self._plan = plan
        self._clock_ms = clock_ms
        self._say = say
        self._is_over = is_over
        self._errors = ClientErrors(complain)
        self._metrics = ClientStatistics() if has_metrics else None
        callbacks: dict[str, Any] = {"error_cb": self._errors}
        defaults = {**TOPIC_PATIENCE, "fetch.error.backoff.ms": "100", "allow.auto.create.topics": "true"}
        if self._metrics is not None:
            callbacks["stats_cb"] = self._metrics
            defaults.update(STATISTICS_SETTINGS)
        self._consumer = connection.consumer(defaults, **callbacks)

    def run(self) -> None:
        now_ms = self._clock_ms()
        self._total, self._window = _Count(now_ms), _Count(now_ms)
        self._joining_since_ms: float | None = now_ms
        self._consumer.subscribe(
            [self._plan.subscription], on_assign=self._on_assign, on_revoke=self._on_revoke
        )
        self._read_all()
        ended_ms = self._clock_ms()
        if self._metrics is not None:
            for line in self._metrics.lines(self._consumer.poll):
                self._say(line)
        self._consumer.close()
        if not self._plan.is_detailed:
            times = f"{self._date(self._total.started_ms)}, {self._date(ended_ms)}"
            self._say(f"{times}, {_columns(self._total, self._total, ended_ms)}")

    def _read_all(self) -> None:
        plan, total = self._plan, self._total
        last_record_ms = self._clock_ms()
        while total.records < plan.records and not self._is_over():
            now_ms = self._clock_ms()
            if now_ms - last_record_ms > plan.timeout_ms:
                self._say(
                    f"WARNING: Exiting before consuming the expected number of records: timeout ({plan.timeout_ms} ms) "
                    "exceeded. You can use the --timeout option to increase the timeout."
                )
                return
            if self._count(poll_batch(self._consumer, POLL_S, plan.records - total.records)):
                last_record_ms = self._clock_ms()
            self._errors.check()
            if plan.is_detailed:
                self._report()

    def _count(self, batch: list[Any]) -> int:
        """How many of them are records."""
        records = size_bytes = 0
        for message in batch:
            if message.error() is not None:
                self._errors(message.error())
                continue
            records += 1
            size_bytes += len(message.value() or b"") + len(message.key() or b"")
        for count in (self._total, self._window):
            count.records += records
            count.size_bytes += size_bytes
        return records

    def _report(self) -> None:
        now_ms = self._clock_ms()
        if now_ms - self._window.started_ms >= self._plan.interval_ms:
            self._say(f"{self._date(now_ms)}, {THREAD_ID}, {_columns(self._total, self._window, now_ms)}")
            self._window = _Count(now_ms)

    def _date(self, at_ms: float) -> str:
        return date_text(self._plan.date_format, datetime.fromtimestamp(at_ms / 1000))

    def _on_assign(self, consumer: Any, partitions: list[Any]) -> None:
        if self._joining_since_ms is not None:
            joined_ms = self._clock_ms() - self._joining_since_ms
            self._total.joining_ms += joined_ms
            self._window.joining_ms += joined_ms
            self._joining_since_ms = None

    def _on_revoke(self, consumer: Any, partitions: list[Any]) -> None:
        self._joining_since_ms = self._clock_ms()


def _columns(total: _Count, timed: _Count, now_ms: float) -> str:
    """Amounts of the whole, rates of what is timed: the whole again, or an interval."""
    elapsed_ms = now_ms - timed.started_ms
    fetch_ms = elapsed_ms - timed.joining_ms
    return (
        f"{total.megabytes:.4f}, {_per_second(timed.megabytes, elapsed_ms):.4f}, "
        f"{total.records}, {_per_second(timed.records, elapsed_ms):.4f}, "
        f"{timed.joining_ms:.0f}, {fetch_ms:.0f}, "
        f"{_per_second(timed.megabytes, fetch_ms):.4f}, {_per_second(timed.records, fetch_ms):.4f}"
    )
