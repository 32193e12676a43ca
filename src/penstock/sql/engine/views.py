"""The newest row of each key of a table, kept here by following the table's topic: what pull queries are answered from.

One thread reads the topic (committed records only) and writes a `ViewStore`; any thread asks. A view says how far behind the
topic it is; `wait_ready` waits until it has what was in the topic when it started.

Promised: what a reader sees is the table as it was at some offsets of its topic, and those only grow. Memory is bounded: rows are
on disk. Records that cannot be read are told to `on_bad` and left out.
"""

from __future__ import annotations

import hashlib
import logging
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from confluent_kafka import KafkaException, Message

from penstock.client.clients import Connection
from penstock.client.errors import UserError
from penstock.sql.engine.catching_up import CatchingUp
from penstock.sql.engine.committed_ends import CommittedEnds, topic_client
from penstock.sql.engine.following import Batch, Follower, patiently, said
from penstock.sql.engine.key_order import AFTER, key_order
from penstock.sql.engine.view_store import FIRST, LAST, Deleted, Stored, ViewStore
from penstock.streams.formats.codecs import BadRecord, key_codec, value_codec
from penstock.streams.formats.failures import SchemasUnavailable
from penstock.streams.formats.registry import SchemaLookup
from penstock.streams.kernel.records import Row
from penstock.streams.kernel.row_times import timestamp_reader
from penstock.streams.plan.sources import DEFAULT_GRACE_MS, Source, Window, WindowKind

log = logging.getLogger("penstock.sql")

POLL_S: Final = 0.2
START_TIMEOUT_S: Final = 60.0
CATCH_UP_S: Final = 30.0
PAUSE_S: Final = 1.0
"""After a failure, before the topic is followed anew."""
DEFAULT_RETENTION_MS: Final = 24 * 3600 * 1000
FORGET_EVERY_MS: Final = 1000
"""Of stream time, at least, between two looks for windows that are too old."""

OnBad = Callable[[Message, Exception], None]


@dataclass(frozen=True, slots=True)
class Behind:
    """Offsets of one partition: the next one to read, and where the partition ended when that was last told."""

    position: int
    end: int

    @property
    def records(self) -> int:
        return max(self.end - self.position, 0)


class ViewFailed(UserError):
    """The topic cannot be followed, or not yet as far as is asked for."""


class TableView:
    """`directory` keeps its file; one that is there already is used if it is of the same topic and columns."""

    def __init__(
        self,
        source: Source,
        connection: Connection,
        directory: Path,
        *,
        registry: SchemaLookup | None = None,
        on_bad: OnBad | None = None,
    ) -> None:
        self.source = source
        self._connection = connection
        self._directory = directory
        self._on_bad = on_bad or _tell
        self._keys = key_codec(
            source.schema, source.formats, window=source.window, topic=source.topic, registry=registry
        )
        self._values = value_codec(source.schema, source.formats, topic=source.topic, registry=registry)
        self._order = key_order(source.schema.key)
        self._time_of = timestamp_reader(source.timestamp, source.schema) if source.timestamp else None
        self._retention_ms = _retention_ms(source.window)
        self._committed = CommittedEnds(connection, source.topic)
        self.catching_up = CatchingUp(f"penstock-ends-{source.name}", lambda: self.catch_up(CATCH_UP_S))
        """For coroutines."""
        self._changed = threading.Condition()
        self._stop = threading.Event()
        self._positions: dict[int, int] = {}
        self._ends: dict[int, int] = {}
        self._first_ends: dict[int, int] | None = None
        self._stream_time = -1
        self._forgotten_at = 0
        self._failure: str | None = None
        self._store: ViewStore | None = None
        self._thread = threading.Thread(target=self._run, name=f"penstock-view-{source.name}", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def begin_stop(self) -> None:
        """Of many views, all are told before the first is waited for."""
        self._stop.set()

    def stop(self, *, delete: bool = False) -> None:
        """`delete`: the table is dropped, and its file goes, too."""
        self.begin_stop()
        if self._thread.ident is not None:
            self._thread.join()
        with self._changed:
            self._changed.notify_all()
        self.catching_up.close()
        if self._store is not None:
            self._store.close(delete=delete)
        self._committed.close()

    # ------------------------------------------------------------------------------------------------ asked by any thread

    @property
    def failure(self) -> str | None:
        """Why the topic is not followed now. It is tried again."""
        return self._failure

    def behind(self) -> dict[int, Behind]:
        with self._changed:
            return {
                partition: Behind(self._positions.get(partition, 0), end)
                for partition, end in self._ends.items()
            }

    def is_ready(self) -> bool:
        with self._changed:
            return self._first_ends is not None and self._has(self._first_ends)

    def wait_ready(self, timeout_s: float) -> None:
        """ViewFailed when it has not yet read what was in the topic when it started."""
        self._wait(lambda: self._first_ends is not None and self._has(self._first_ends), timeout_s)

    def wait_for(self, positions: Mapping[int, int], timeout_s: float) -> None:
        """Until what is before these offsets has been read. ViewFailed."""
        self._wait(lambda: self._has(positions), timeout_s)

    def catch_up(self, timeout_s: float) -> None:
        """Until what is committed now has been read. ViewFailed, ReadFailed."""
        ends = self._committed.now()
        known = self.behind()
        self._wait(lambda: self._has({each: end for each, end in ends.items() if each in known}), timeout_s)

    def get(self, key: tuple[Any, ...]) -> Row | None:
        """Of a table without windows."""
        return next(iter(self.windows(key)), None)

    def windows(self, key: tuple[Any, ...], first_start: int = FIRST, last_start: int = LAST) -> list[Row]:
        """Of one key, by the start of windows. ViewFailed."""
        rows = map(self._row, self._stored().get(self._order(key), first_start, last_start))
        return [row for row in rows if row is not None]

    def range(self, low: tuple[Any, ...] | None, high: tuple[Any, ...] | None) -> Iterator[Row]:
        """In the order of keys, both ends included; None: without an end."""
        first = b"" if low is None else self._order(low)
        last = AFTER if high is None else self._order(high) + AFTER
        for stored in self._stored().between(first, last):
            row = self._row(stored)
            if row is not None:
                yield row

    def all(self) -> Iterator[Row]:
        return self.range(None, None)

    def __len__(self) -> int:
        return len(self._stored())

    def _stored(self) -> ViewStore:
        if self._store is None:
            raise ViewFailed(
                f"{self.source.name} is not ready: {self._failure or 'its topic is not read yet'}"
            )
        return self._store

    def _row(self, stored: Stored) -> Row | None:
        try:
            key, bounds = self._keys.decode(stored.key)
            value = self._values.decode(stored.value)
        except BadRecord:  # read before with another schema of the registry
            return None
        return Row(key, value, stored.timestamp, None, bounds, (), stored.partition, stored.offset)

    def _has(self, wanted: Mapping[int, int]) -> bool:
        return all(self._positions.get(partition, 0) >= offset for partition, offset in wanted.items())

    def _wait(self, is_there: Callable[[], bool], timeout_s: float) -> None:
        with self._changed:
            if self._changed.wait_for(lambda: is_there() or self._stop.is_set(), timeout_s) and is_there():
                return
        reason = (
            self._failure or f"it is {sum(each.records for each in self.behind().values())} records behind"
        )
        raise ViewFailed(f"{self.source.name} is not ready: {reason}")

    # ------------------------------------------------------------------------------------------------ its own thread

    def _run(self) -> None:
        while not self._stop.is_set():
            try:
                self._follow()
            except (UserError, KafkaException) as error:
                self._fail(said(error) if isinstance(error, KafkaException) else str(error))
            except Exception as error:  # the view of one table must not take the others with it
                log.exception("the view of %s failed", self.source.name)
                self._fail(f"{type(error).__name__}: {error}")
            self._stop.wait(PAUSE_S)

    def _fail(self, reason: str) -> None:
        if self._failure != reason:
            log.warning("the view of %s does not follow %s: %s", self.source.name, self.source.topic, reason)
        with self._changed:
            self._failure = reason
            self._changed.notify_all()

    def _follow(self) -> None:
        follower = Follower(self._connection, [self.source.topic], client_id="penstock-sql-view")
        try:
            places = patiently(follower.partitions, should_stop=self._stop.is_set, timeout_s=START_TIMEOUT_S)
            bounds = {partition: limits for (_, partition), limits in places.items()}
            store = self._opened()
            positions = store.positions()
            if any(position > bounds.get(each, (0, 0))[1] for each, position in positions.items()):
                store.forget()  # the topic is shorter than what was read of it
                positions = {}
            topic = self.source.topic
            follower.start({(topic, each): offset for each, offset in positions.items()})
            with self._changed:
                self._positions = dict(positions)
                self._ends = {each: high for each, (_, high) in bounds.items()}
                if self._first_ends is None:
                    self._first_ends = {each: high for each, (low, high) in bounds.items() if low < high}
                self._store, self._failure = store, None
                self._changed.notify_all()
            while not self._stop.is_set():
                batch = follower.take(POLL_S)
                if batch.messages or batch.ends:
                    self._apply(store, batch)
        finally:
            follower.close()

    def _opened(self) -> ViewStore:
        if self._store is not None:
            return self._store
        self._directory.mkdir(parents=True, exist_ok=True)
        source = self.source
        about = f"{source.topic} {self._topic_id()} {source.schema} {source.formats} {source.window} {source.timestamp}"
        name = hashlib.sha256(source.name.encode()).hexdigest()[:24]
        return ViewStore(self._directory / f"{name}.view", about)

    def _topic_id(self) -> str:
        """A topic that was deleted and made again is another one."""
        client = topic_client(self._connection)
        try:
            return client.topic(self.source.topic).topic_id.hex()
        finally:
            client.close()

    def _apply(self, store: ViewStore, batch: Batch) -> None:
        changes: list[Stored | Deleted] = []
        positions: dict[int, int] = {}
        for message in batch.messages:
            partition, offset = message.partition() or 0, message.offset() or 0
            if offset < self._positions.get(partition, 0):
                store.forget()
                raise ViewFailed(f"{self.source.topic} was deleted and made anew")
            change = self._change(message)
            if change is not None:
                changes.append(change)
            positions[partition] = offset + 1
        for (_, partition), offset in batch.ends.items():
            positions[partition] = max(offset, positions.get(partition, 0))
        store.apply(changes, positions, self._forget_before())
        with self._changed:
            self._positions.update(positions)
            for partition, position in positions.items():
                self._ends[partition] = max(self._ends.get(partition, 0), position)
            for (_, partition), _end in batch.ends.items():
                self._reached_end(partition)
            self._changed.notify_all()

    def _reached_end(self, partition: int) -> None:
        """What was behind the last committed record when the view started is an open transaction, or the end of one."""
        if self._first_ends is not None:
            self._first_ends.pop(partition, None)
        self._ends[partition] = self._positions[partition]

    def _change(self, message: Message) -> Stored | Deleted | None:
        raw, data = message.key(), message.value()
        timestamp = message.timestamp()[1]
        try:
            key, bounds = self._keys.decode(raw)
            if key is None or raw is None:
                return None
            value = self._values.decode(data)
            if value is not None and self._time_of is not None:
                timestamp = self._time_of(key, value)
        except SchemasUnavailable as error:  # the record is read again
            raise ViewFailed(f"the schema registry does not answer: {error}") from None
        except Exception as error:  # whatever a format says to bytes that are not its own
            self._on_bad(message, error)
            return None
        self._stream_time = max(self._stream_time, timestamp)
        start, end = bounds or (0, 0)
        if value is None or data is None:
            return Deleted(self._order(key), start, end)
        place = message.partition() or 0, message.offset() or 0
        return Stored(self._order(key), start, end, raw, data, timestamp, *place)

    def _forget_before(self) -> int | None:
        if self._retention_ms is None:
            return None
        before = self._stream_time - self._retention_ms
        if before < self._forgotten_at + FORGET_EVERY_MS:
            return None
        self._forgotten_at = before
        return before


def _retention_ms(window: Window | None) -> int | None:
    """Windows are kept for a day, or as long as they may still change, or as the statement says."""
    if window is None:
        return None
    if window.retention_ms is not None:
        return window.retention_ms
    grace_ms = window.grace_ms if window.grace_ms is not None else DEFAULT_GRACE_MS
    size_ms = 0 if window.kind == WindowKind.SESSION else window.size_ms
    return max(DEFAULT_RETENTION_MS, size_ms + grace_ms)


def _tell(message: Message, error: Exception) -> None:
    log.warning("%s-%s at %s: %s", message.topic(), message.partition(), message.offset(), error)
