"""A source task in a test: polled call by call, with offsets that are kept and given back."""

from __future__ import annotations

import contextlib
import json
import time
from collections.abc import Iterable, Mapping
from typing import Any, Final

from penstock.connect.data.checking import check as check_value
from penstock.connect.errors import ConnectError
from penstock.connect.interface import SourceConnector, SourcePlace, SourceTask
from penstock.connect.records import SourceRecord
from penstock.connect.tasks.failing import Stage
from penstock.connect.tasks.offsets import Send, partition_text, place_text
from penstock.connect.tasks.source_letters import SourceOrigin
from penstock.connect.tasks.source_offsets import SourceOffsets
from penstock.connect.testing.tasks import TaskTest

WITHIN_S: Final = 10.0


class SourceTest(TaskTest):
    """A source connector with one of its tasks.

    InvalidConfig at once for a configuration that a worker would refuse. `offsets` are those that an earlier run has kept:
    pairs of a source partition and a source offset. `task` says which of the tasks runs, `max_tasks` how many the connector
    may make (`tasks.max` of the configuration). With `real_waits`, a task that waits for a thread of its own really waits.
    """

    task: SourceTask

    def __init__(
        self,
        connector: type[SourceConnector],
        config: Mapping[str, str] | None = None,
        *,
        offsets: Iterable[tuple[SourcePlace, SourcePlace]] = (),
        task: int = 0,
        max_tasks: int | None = None,
        real_waits: bool = False,
    ) -> None:
        super().__init__(connector, config or {}, task=task, max_tasks=max_tasks, real_waits=real_waits)
        self._kept = _KeptOffsets()
        for partition, offset in offsets:
            self._kept.write("", {partition_text(partition): place_text(dict(offset))}, _send_nothing)
        self._book = SourceOffsets(self._kept, self.config["name"])
        self._is_transaction_over = False
        self.records: list[SourceRecord] = []
        """All that has come from this task and those before it, as it goes to topics: behind the transforms."""

    @property
    def offsets(self) -> list[tuple[dict[str, Any], dict[str, Any]]]:
        """Those that are kept: source partitions with their offsets."""
        return [(json.loads(text), offset) for text, offset in self._kept.by_partition.items()]

    def offset(self, partition: SourcePlace) -> dict[str, Any] | None:
        """The one that is kept of a source partition."""
        return self._kept.by_partition.get(partition_text(partition))

    def poll(self) -> list[SourceRecord]:
        """One call of `poll`: what goes to topics then. The task is told that each record is there (`committed`). Whatever
        `poll` raises comes to the test; but for a RetriableError the task has failed then."""
        records = []
        for record in self._call(self.task.poll) or ():
            self._check(record)
            out = self._transformed(record, SourceOrigin(record))
            self._book.see(record.source_partition, record.source_offset)
            if out is not None:
                records.append(out)
            self._call(self.task.committed, record)
        self._book.settle()
        self.records += records
        if self._is_transaction_over:
            self.commit()
        return records

    def poll_until(self, count: int, *, within_s: float = WITHIN_S) -> list[SourceRecord]:
        """Polls until so many have come, or more; AssertionError where they have not within the time."""
        records: list[SourceRecord] = []
        deadline_s = time.monotonic() + within_s
        while len(records) < count:
            records += self.poll()
            assert len(records) >= count or time.monotonic() < deadline_s, (
                f"{len(records)} records have come within {within_s:g} s, and {count} were waited for: {records}"
            )
        return records

    def commit(self) -> None:
        """The offsets of all that was polled are kept, and the task is told (`commit`)."""
        self._is_transaction_over = False
        self._book.forget(self._book.write(_send_nothing))
        self._call(self.task.commit)

    def _begin(self) -> None:
        task = self._make_task()
        assert isinstance(task, SourceTask)
        task.context = _Context(self)
        self.task = task
        self._call(task.start)

    def _end(self) -> None:
        """A worker keeps the offsets of what is delivered, also of a task that has failed."""
        try:
            with contextlib.suppress(Exception) if self.failure is not None else contextlib.nullcontext():
                self.commit()
        finally:
            self._stop_task()

    def _forget(self) -> None:
        self._book = SourceOffsets(self._kept, self.config["name"])
        self._is_transaction_over = False

    def _check(self, record: object) -> None:
        """What would fail later in a worker, said at once."""
        if not isinstance(record, SourceRecord):
            raise ConnectError(f"poll gives records of the kind SourceRecord, and not {record!r}")
        if not isinstance(record.topic, str) or not record.topic:
            raise ConnectError(f"a record needs a topic: {record!r}")
        for place in (record.source_partition, record.source_offset):
            if place is not None:
                place_text(dict(place))
        for schema, value, what in (
            (record.key_schema, record.key, "key"),
            (record.value_schema, record.value, "value"),
        ):
            if schema is not None:
                check_value(schema, value, name=what)


class _KeptOffsets:
    """In the place of a topic or a file."""

    def __init__(self) -> None:
        self.by_partition: dict[str, dict[str, Any]] = {}

    def load(self, connector: str) -> Mapping[str, dict[str, Any]]:
        return self.by_partition

    def write(self, connector: str, offsets: Mapping[str, str | None], send: Send) -> None:
        for partition, place in offsets.items():
            if place is None:
                self.by_partition.pop(partition, None)
            else:
                self.by_partition[partition] = json.loads(place)

    def spell(self, connector: str, partition: Mapping[str, Any]) -> str:
        return partition_text(partition)


def _send_nothing(topic: str, key: bytes, value: bytes | None) -> None:
    pass


class _Context:
    def __init__(self, test: SourceTest) -> None:
        self._test = test
        self.connector, self.task = test.config["name"], test._number

    def offset(self, partition: SourcePlace) -> dict[str, Any] | None:
        found = self._test.offset(partition)
        return None if found is None else dict(found)

    def offsets(self, partitions: Iterable[SourcePlace]) -> list[dict[str, Any] | None]:
        return [self.offset(partition) for partition in partitions]

    def is_stopping(self) -> bool:
        return self._test._stopping.is_set()

    def wait(self, seconds: float) -> None:
        self._test._wait(seconds)

    def commit_transaction(self) -> None:
        self._test._is_transaction_over = True

    def report(self, record: SourceRecord, error: BaseException) -> None:
        self._test._report(Stage.TASK_POLL, record, error, SourceOrigin(record))
        self._test._book.see(record.source_partition, record.source_offset)
