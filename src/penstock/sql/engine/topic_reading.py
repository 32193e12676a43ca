"""Topics from their beginning to where they end now, as one sequence of records.

`merged` gives those of all partitions by their time, as far as the order within each partition allows it: what Kafka Streams
would have read. At most `MAX_BUFFERED` records of a partition wait for those of others.
"""

from __future__ import annotations

import heapq
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

from confluent_kafka import KafkaException

from penstock.client.clients import Connection
from penstock.client.errors import Refused
from penstock.sql.engine.following import Follower, Place, patiently, said
from penstock.streams.kernel.records import InputRecord

MAX_BUFFERED: Final = 5000
POLL_S: Final = 0.2
START_TIMEOUT_S: Final = 30.0
SILENCE_S: Final = 60.0
"""So long a partition may give nothing before its end."""


class Stopped(Exception):
    """Whoever asked does not want the rest."""


class TopicReader:
    """Close it in the end; it is an iterator's worth of reading, from one thread."""

    def __init__(
        self,
        connection: Connection,
        topics: Sequence[str],
        *,
        should_stop: Callable[[], bool] = lambda: False,
    ) -> None:
        self._should_stop = should_stop
        self._follower = Follower(connection, topics, client_id="penstock-sql-scan")
        try:
            bounds = patiently(self._follower.partitions, should_stop=should_stop, timeout_s=START_TIMEOUT_S)
            self._ends: dict[Place, int] = {
                place: high for place, (low, high) in bounds.items() if low < high
            }
            self.partitions = {topic: sum(place[0] == topic for place in bounds) for topic in topics}
            self._follower.start({place: high for place, (low, high) in bounds.items() if low >= high})
        except BaseException:
            self._follower.close()
            raise

    def close(self) -> None:
        self._follower.close()

    def unordered(self) -> Iterator[InputRecord]:
        """As they come; each partition in its order. Refused, Stopped."""
        while self._ends:
            yield from self._more()

    def merged(self) -> Iterator[InputRecord]:
        """By time. Refused, Stopped."""
        waiting: dict[Place, deque[InputRecord]] = {place: deque() for place in self._ends}
        paused: set[Place] = set()
        heads: list[tuple[int, Place]] = []
        while True:
            while any(not waiting[place] for place in self._ends):
                self._fill(waiting, heads, paused)
            if not heads:
                return
            _, place = heapq.heappop(heads)
            queue = waiting[place]
            yield queue.popleft()
            if queue:
                heapq.heappush(heads, (queue[0].timestamp, place))
            if place in paused and len(queue) < MAX_BUFFERED // 4:
                paused.discard(place)
                self._follower.resume([place])

    def _fill(
        self, waiting: dict[Place, deque[InputRecord]], heads: list[tuple[int, Place]], paused: set[Place]
    ) -> None:
        for record in self._more():
            place = record.topic, record.partition
            queue = waiting[place]
            if not queue:
                heapq.heappush(heads, (record.timestamp, place))
            queue.append(record)
        full = [
            place for place, queue in waiting.items() if len(queue) > MAX_BUFFERED and place not in paused
        ]
        if full:
            paused.update(full)
            self._follower.pause(full)

    def _more(self) -> list[InputRecord]:
        """What comes next, before the ends."""
        deadline_s = time.monotonic() + SILENCE_S
        while True:
            if self._should_stop():
                raise Stopped
            try:
                batch = self._follower.take(POLL_S)
            except KafkaException as error:
                raise Refused(said(error)) from None
            records = []
            for message in batch.messages:
                record = _record(message)
                place = record.topic, record.partition
                end = self._ends.get(place)
                if end is None or record.offset >= end:
                    self._ends.pop(place, None)
                    continue
                records.append(record)
                if record.offset + 1 >= end:
                    del self._ends[place]
            for place in batch.ends:
                self._ends.pop(place, None)
            if records or not self._ends or batch.ends:
                return records
            if time.monotonic() > deadline_s:
                raise Refused(
                    f"{', '.join(sorted({topic for topic, _ in self._ends}))} cannot be read to the end"
                )


def _record(message: Any) -> InputRecord:
    headers = tuple(
        (name, data.encode() if isinstance(data, str) else data) for name, data in message.headers() or ()
    )
    return InputRecord(
        message.topic(),
        message.partition(),
        message.offset(),
        message.timestamp()[1],
        message.key(),
        message.value(),
        headers,
    )
