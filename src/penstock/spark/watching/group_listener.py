"""Offsets of a real-time stream for a consumer group: its source is Spark's, and only its progress says how far it is."""

from __future__ import annotations

import json
import threading
from collections.abc import Mapping
from typing import TYPE_CHECKING

from pyspark.sql.streaming.listener import StreamingQueryListener

from penstock.spark.reading.offsets import Offsets, from_json
from penstock.spark.watching.lag import GroupOffsets

if TYPE_CHECKING:
    from pyspark.sql.streaming.listener import (
        QueryIdleEvent,
        QueryProgressEvent,
        QueryStartedEvent,
        QueryTerminatedEvent,
    )


class GroupListener(StreamingQueryListener):
    """Commits the end of each batch, which in real-time mode is an interval, of the one query that it watches."""

    def __init__(self, group: str, properties: Mapping[str, str], *, query_id: str) -> None:
        self._group = GroupOffsets(group, properties)
        self._query_id = query_id
        self._is_closed = False
        self._lock = threading.Lock()

    def onQueryStarted(self, event: QueryStartedEvent) -> None:
        pass

    def onQueryProgress(self, event: QueryProgressEvent) -> None:
        form = json.loads(event.progress.json)
        if form["id"] != self._query_id:
            return
        done: Offsets = {}
        for source in form["sources"]:
            done |= from_json(source.get("endOffset") or {})
        with self._lock:
            if not self._is_closed:
                self._group.commit(done)

    def onQueryIdle(self, event: QueryIdleEvent) -> None:
        pass

    def onQueryTerminated(self, event: QueryTerminatedEvent) -> None:
        if str(event.id) == self._query_id:
            self.close()

    def close(self) -> None:
        with self._lock:
            if not self._is_closed:
                self._is_closed = True
                self._group.close()
