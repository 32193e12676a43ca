"""How far the streaming queries are, as Spark tells it after each batch."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import NamedTuple

from pyspark.sql.streaming.listener import (
    QueryIdleEvent,
    QueryProgressEvent,
    QueryStartedEvent,
    QueryTerminatedEvent,
    StreamingQueryListener,
)
from pyspark.sql.streaming.query import StreamingQuery

POLL_INTERVAL_S = 0.1
TIMEOUT_S = 300.0
EPOCH = datetime.fromtimestamp(0, UTC)  # where a watermark is before the first batch


class QueryFailed(Exception):
    """A streaming query has ended, or does not get on."""


class Seen(NamedTuple):
    records: int = 0  # read since the beginning of the topic
    rows_per_second: float = 0.0  # of the last batch that had any
    watermark: datetime = EPOCH


class Watch(StreamingQueryListener):
    """Knows each query of a session by its name."""

    def __init__(self) -> None:
        self._seen: dict[str, Seen] = {}

    def seen(self, query: str) -> Seen:
        return self._seen.get(query, Seen())

    def onQueryProgress(self, event: QueryProgressEvent) -> None:
        progress = event.progress
        name = progress.name or str(progress.id)
        watermark = progress.eventTime.get("watermark")
        self._seen[name] = Seen(
            sum(records_before(source.endOffset) for source in progress.sources),
            progress.processedRowsPerSecond if progress.numInputRows else self.seen(name).rows_per_second,
            EPOCH if watermark is None else datetime.fromisoformat(watermark),
        )

    def onQueryStarted(self, event: QueryStartedEvent) -> None:
        pass

    def onQueryIdle(self, event: QueryIdleEvent) -> None:
        pass

    def onQueryTerminated(self, event: QueryTerminatedEvent) -> None:
        pass


def records_before(offsets: str) -> int:
    """From Spark's form of a topic's offsets: {"topic": {"0": 120, "1": 80}} → 200."""
    return sum(sum(partitions.values()) for partitions in json.loads(offsets).values())


def wait_until(is_done: Callable[[], bool], *queries: StreamingQuery) -> None:
    deadline = time.monotonic() + TIMEOUT_S
    while not is_done():
        for query in queries:
            if not query.isActive:
                raise QueryFailed(f"the query {query.name} ended: {query.exception() or 'it was stopped'}")
        if time.monotonic() > deadline:
            raise QueryFailed(f"the queries do not get on: nothing new for {TIMEOUT_S:.0f} s")
        time.sleep(POLL_INTERVAL_S)
