"""What streaming queries do, for Prometheus and for whoever looks at the terminal.

    spark.streams.addListener(ProgressListener(port=9404))

Rows per second, lag, the duration of batches, the watermark and how large the state is, by query. A query that has ended leaves
nothing behind, unless it failed: then why is told for a while.
"""

from __future__ import annotations

import json
import sys
import time
from collections import deque
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, NamedTuple, TextIO

from prometheus_client import CollectorRegistry, Counter, Gauge, start_http_server
from pyspark.sql.streaming.listener import StreamingQueryListener

from penstock.spark.reading.offsets import from_json
from penstock.spark.watching.lag import lag

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.listener import (
        QueryIdleEvent,
        QueryProgressEvent,
        QueryStartedEvent,
        QueryTerminatedEvent,
    )

LABELS = ("query", "id")
MAX_FAILURES = 20
"""Queries that failed are told until there are more: the only trace that a query leaves."""
MAX_ERROR_CHARACTERS = 500
CLEAR_LINE = "\r\x1b[2K"


class Progress(NamedTuple):
    """One batch of a query."""

    query: str
    batch_id: int
    rows: int
    rows_per_second: float
    duration_ms: int
    lag: int | None  # None: no source says how far its topics go
    watermark_s: float | None
    state_rows: int = 0
    """Of all its operators with state."""
    state_bytes: int = 0
    """In memory."""

    def line(self) -> str:
        parts = [
            f"{self.query}: batch {self.batch_id}",
            f"{self.rows_per_second:,.0f} rows/s",
            f"{self.duration_ms:,} ms",
        ]
        if self.lag is not None:
            parts.append(f"lag {self.lag:,}")
        if self.watermark_s is not None:
            parts.append(f"watermark {datetime.fromtimestamp(self.watermark_s, UTC):%H:%M:%S}")
        return " · ".join(parts)


def read_progress(event: Mapping[str, Any]) -> Progress:
    """From the JSON form of a query's progress."""
    watermark = event.get("eventTime", {}).get("watermark")
    return Progress(
        query=event.get("name") or str(event["id"])[:8],
        batch_id=event["batchId"],
        rows=event.get("numInputRows", 0),
        rows_per_second=event.get("processedRowsPerSecond", 0.0),
        duration_ms=event.get("batchDuration", 0),
        lag=_lag(event.get("sources", [])),
        watermark_s=None if watermark is None else datetime.fromisoformat(watermark).timestamp(),
        state_rows=sum(one.get("numRowsTotal", 0) for one in event.get("stateOperators", [])),
        state_bytes=sum(one.get("memoryUsedBytes", 0) for one in event.get("stateOperators", [])),
    )


def _lag(sources: list[dict[str, Any]]) -> int | None:
    behind = [
        sum(lag(from_json(source["endOffset"]), from_json(source["latestOffset"])).values())
        for source in sources
        if _are_offsets(source.get("endOffset")) and _are_offsets(source.get("latestOffset"))
    ]
    return sum(behind) if behind else None


def _are_offsets(form: object) -> bool:
    """Other sources have offsets of other forms: a number, say."""
    return isinstance(form, dict) and all(
        isinstance(partitions, dict)
        and all(partition.isdigit() and isinstance(offset, int) for partition, offset in partitions.items())
        for partitions in form.values()
    )


class ProgressListener(StreamingQueryListener):
    """Metrics on `port` (none: only in `registry`), and one line on a terminal that is written over by the next."""

    def __init__(
        self,
        port: int | None = None,
        *,
        registry: CollectorRegistry | None = None,
        terminal: TextIO | None = None,
        show_line: bool | None = None,
    ) -> None:
        self.registry = CollectorRegistry() if registry is None else registry
        self._terminal = sys.stderr if terminal is None else terminal
        self._shows_line = self._terminal.isatty() if show_line is None else show_line
        self._has_line = False
        self._names: dict[str, str] = {}
        self._rows = Counter("penstock_spark_rows", "Rows read by the query", LABELS, registry=self.registry)
        self._rate = self._gauge("rows_per_second", "Rows that the last batch processed each second")
        self._lag = self._gauge("lag", "Records that are in the topics and not processed")
        self._duration = self._gauge("batch_duration_seconds", "Time that the last batch took")
        self._batch = self._gauge("batch_id", "Number of the last batch")
        self._watermark = self._gauge(
            "watermark_timestamp_seconds", "The query's watermark, in seconds since 1970"
        )
        self._state_rows = self._gauge("state_rows", "Rows of the query's state")
        self._state_bytes = self._gauge("state_bytes", "Memory that the query's state takes")
        self._failed = Gauge(
            "penstock_spark_failed_timestamp_seconds",
            "When the query failed, in seconds since 1970, and why",
            (*LABELS, "error"),
            registry=self.registry,
        )
        self._failures: deque[tuple[str, str, str]] = deque()
        if port is not None:
            self._server, _ = start_http_server(port, registry=self.registry)
            self.port: int | None = self._server.server_port
        else:
            self.port = None

    def _gauge(self, name: str, documentation: str) -> Gauge:
        return Gauge(f"penstock_spark_{name}", documentation, LABELS, registry=self.registry)

    def close(self) -> None:
        """Stops the server of metrics."""
        if self.port is not None:
            self._server.shutdown()
            self._server.server_close()
            self.port = None

    def onQueryStarted(self, event: QueryStartedEvent) -> None:
        self._names[str(event.runId)] = event.name or str(event.id)[:8]

    def onQueryProgress(self, event: QueryProgressEvent) -> None:
        form = json.loads(event.progress.json)
        progress = read_progress(form)
        labels = (progress.query, form["id"])
        self._rows.labels(*labels).inc(progress.rows)
        self._rate.labels(*labels).set(progress.rows_per_second)
        self._duration.labels(*labels).set(progress.duration_ms / 1000)
        self._batch.labels(*labels).set(progress.batch_id)
        self._state_rows.labels(*labels).set(progress.state_rows)
        self._state_bytes.labels(*labels).set(progress.state_bytes)
        if progress.lag is not None:
            self._lag.labels(*labels).set(progress.lag)
        if progress.watermark_s is not None:
            self._watermark.labels(*labels).set(progress.watermark_s)
        if self._shows_line:
            self._terminal.write(CLEAR_LINE + progress.line())
            self._terminal.flush()
            self._has_line = True

    def onQueryIdle(self, event: QueryIdleEvent) -> None:
        pass

    def onQueryTerminated(self, event: QueryTerminatedEvent) -> None:
        labels = (self._names.pop(str(event.runId), str(event.id)[:8]), str(event.id))
        for metric in (
            self._rows, self._rate, self._lag, self._duration, self._batch, self._watermark, self._state_rows,
            self._state_bytes,
        ):  # fmt: skip
            metric.remove_by_labels(dict(zip(LABELS, labels, strict=True)))
        if event.exception:
            self._keep_failure(*labels, event.exception)
        if self._has_line:
            self._terminal.write("\n")
            self._has_line = False

    def _keep_failure(self, query: str, query_id: str, exception: str) -> None:
        line = next((each.strip() for each in exception.splitlines() if each.strip()), "")
        failure = (query, query_id, line[:MAX_ERROR_CHARACTERS])
        if failure in self._failures:
            self._failures.remove(failure)
        self._failures.append(failure)
        self._failed.labels(*failure).set(time.time())
        while len(self._failures) > MAX_FAILURES:
            self._failed.remove(*self._failures.popleft())


def show_progress(spark: SparkSession, port: int | None = None) -> ProgressListener:
    """Watches all streaming queries of a session, from now on."""
    listener = ProgressListener(port)
    spark.streams.addListener(listener)
    return listener
