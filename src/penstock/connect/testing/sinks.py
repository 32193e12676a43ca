"""A sink task in a test: topics in memory, from which it is put to, with positions and offsets that are committed."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from penstock.connect.data.schema import Schema
from penstock.connect.errors import RetriableError
from penstock.connect.interface import SinkConnector, SinkTask, TopicPlace
from penstock.connect.records import Header, SinkRecord
from penstock.connect.tasks.failing import Stage
from penstock.connect.tasks.sink_records import origin_of
from penstock.connect.testing.checking import TEST_TOPIC
from penstock.connect.testing.tasks import TaskTest

Offsets = dict[TopicPlace, int]


class SinkTest(TaskTest):
    """A sink connector with one of its tasks, and the topics that it reads.

    InvalidConfig at once for a configuration that a worker would refuse. `partitions` are those that the task has at first;
    `topics` of the configuration need not name them.
    """

    task: SinkTask

    def __init__(
        self,
        connector: type[SinkConnector],
        config: Mapping[str, str] | None = None,
        *,
        partitions: Iterable[TopicPlace] = ((TEST_TOPIC, 0),),
        task: int = 0,
        max_tasks: int | None = None,
        real_waits: bool = False,
    ) -> None:
        super().__init__(connector, config or {}, task=task, max_tasks=max_tasks, real_waits=real_waits)
        self.partitions = list(partitions)
        """Those that the task has now."""
        self.committed: Offsets = {}
        """The offsets that are committed: the next ones to read."""
        self.retry_delays_s: list[float] = []
        """What the task has said with `context.retry_after`."""
        self._topics: dict[TopicPlace, list[SinkRecord]] = {}
        self._positions: Offsets = {}
        self._current: Offsets = {}  # behind what was put
        self._sought: Offsets = {}
        self._held: set[TopicPlace] = set()
        self._is_commit_asked = False

    def record(
        self,
        value: Any,
        *,
        key: Any = None,
        topic: str | None = None,
        partition: int | None = None,
        value_schema: Schema | None = None,
        key_schema: Schema | None = None,
        timestamp_ms: int = 0,
        headers: Iterable[Header] = (),
    ) -> SinkRecord:
        """Writes a record to a topic, by default to the first partition. `deliver` puts it to the task."""
        first_topic, first_partition = self.partitions[0] if self.partitions else (TEST_TOPIC, 0)
        place = (topic or first_topic, first_partition if partition is None else partition)
        log = self._topics.setdefault(place, [])
        made = SinkRecord(
            *place, len(log), value, key=key, value_schema=value_schema, key_schema=key_schema,
            timestamp_ms=timestamp_ms, headers=headers,
        )  # fmt: skip
        log.append(made)
        return made

    def put(self, *values: Any, key: Any = None, value_schema: Schema | None = None) -> list[SinkRecord]:
        """Writes a record for each value, and delivers them in one call of `put`. Without values `put` gets what is due, or
        nothing, as it does from time to time."""
        for value in values:
            self.record(value, key=key, value_schema=value_schema)
        return self.deliver()

    def deliver(self) -> list[SinkRecord]:
        """One call of `put`, with all that is due. What it raises comes to the test; after a RetriableError the same records
        are due again, and after any other error the task has failed."""
        self._seek()
        due = [
            record
            for place in self.partitions
            if place not in self._held
            for record in self._topics.get(place, [])[self._positions[place] :]
        ]
        records = [out for record in due if (out := self._transformed(record, origin_of(record))) is not None]
        self._call(self.task.put, records)
        for record in due:
            topic, partition, offset = record.original
            self._current[topic, partition] = self._positions[topic, partition] = offset + 1
        if self._is_commit_asked:
            self.commit()
        return records

    def commit(self) -> Offsets:
        """Asks `pre_commit` (and by it `flush`), and commits what it says: all offsets that are committed now. After a
        RetriableError the task goes back to what is committed, as in a worker."""
        self._is_commit_asked = False
        self._seek()
        if self._current:
            try:
                self._keep(self._pre_commit(dict(self._current)))
            except RetriableError:
                self._positions.update({place: self.committed.get(place, 0) for place in self._current})
                self._current.clear()
        return dict(self.committed)

    def rebalance(self, partitions: Sequence[TopicPlace]) -> None:
        """The task has these from now on: those that it had before and has no more are closed, and new ones opened."""
        self._close([place for place in self.partitions if place not in partitions])
        new = [place for place in partitions if place not in self.partitions]
        self.partitions = [place for place in self.partitions if place in partitions] + new
        self._open(new)

    def _begin(self) -> None:
        task = self._make_task()
        assert isinstance(task, SinkTask)
        task.context = _Context(self)
        self.task = task
        self._call(task.start)
        self._open(self.partitions)

    def _end(self) -> None:
        try:
            with contextlib.suppress(Exception) if self.failure is not None else contextlib.nullcontext():
                self._close(self.partitions)
        finally:
            self._stop_task()
            self._forget()

    def _forget(self) -> None:
        self._positions.clear()
        self._current.clear()
        self._sought.clear()
        self._held.clear()
        self._is_commit_asked = False

    def _open(self, places: Sequence[TopicPlace]) -> None:
        self._positions.update({place: self.committed.get(place, 0) for place in places})
        if places:
            self._call(self.task.open, list(places))

    def _close(self, places: Sequence[TopicPlace]) -> None:
        if not places:
            return
        offsets = {place: self._current[place] for place in places if place in self._current}
        wanted: Mapping[TopicPlace, int] = {}
        try:
            if offsets:
                wanted = self._pre_commit(offsets)
        except RetriableError:
            pass  # what was put comes again, here or to another task
        finally:
            self._call(self.task.close, list(places))
        self._keep(wanted)
        for place in places:
            self._current.pop(place, None)
            self._positions.pop(place, None)
            self._held.discard(place)

    def _pre_commit(self, offsets: Offsets) -> Mapping[TopicPlace, int]:
        if type(self.task).pre_commit is SinkTask.pre_commit:
            self._call(self.task.flush, offsets)
            return offsets
        return self._call(self.task.pre_commit, offsets) or {}

    def _keep(self, wanted: Mapping[TopicPlace, int]) -> None:
        self.committed.update(
            {
                place: offset
                for place, offset in wanted.items()
                if place in self.partitions and offset <= self._current.get(place, -1)
            }
        )

    def _seek(self) -> None:
        for place in [place for place in self._sought if place in self._positions]:
            self._current[place] = self._positions[place] = self._sought.pop(place)


class _Context:
    def __init__(self, test: SinkTest) -> None:
        self._test = test
        self.connector, self.task = test.config["name"], test._number

    def assignment(self) -> frozenset[TopicPlace]:
        return frozenset(self._test.partitions)

    def seek(self, place: TopicPlace, offset: int) -> None:
        self._test._sought[place] = offset

    def pause(self, *places: TopicPlace) -> None:
        self._test._held.update(places)

    def resume(self, *places: TopicPlace) -> None:
        self._test._held.difference_update(places)

    def retry_after(self, seconds: float) -> None:
        self._test.retry_delays_s.append(seconds)

    def request_commit(self) -> None:
        self._test._is_commit_asked = True

    def report(self, record: SinkRecord, error: BaseException) -> None:
        self._test._report(Stage.TASK_PUT, record, error, origin_of(record))
