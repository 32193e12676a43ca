"""A task without its worker: what it is told, and what it tells."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from penstock.connect.interface import SinkTask, SourceTask
from penstock.connect.records import SinkRecord, SourceRecord
from tests.connect.workers import until


class SinkContext:
    def __init__(self, *, tolerates: bool = True) -> None:
        self.connector, self.task = "tested", 0
        self.reported: list[tuple[SinkRecord, BaseException]] = []
        self.sought: dict[Any, int] = {}
        self.retry_s: float | None = None
        self._tolerates = tolerates

    def report(self, record: SinkRecord, error: BaseException) -> None:
        if not self._tolerates:
            raise error
        self.reported.append((record, error))

    def seek(self, place: Any, offset: int) -> None:
        self.sought[place] = offset

    def retry_after(self, seconds: float) -> None:
        self.retry_s = seconds

    def request_commit(self) -> None:
        pass


class SourceContext:
    def __init__(self, offsets: Sequence[tuple[Mapping[str, Any], Mapping[str, Any]]] = ()) -> None:
        self.connector, self.task = "tested", 0
        self._offsets = [(dict(place), dict(offset)) for place, offset in offsets]
        self.reported: list[tuple[SourceRecord, BaseException]] = []
        self.stopping = threading.Event()

    def offset(self, partition: Mapping[str, Any]) -> dict[str, Any] | None:
        found = [offset for place, offset in self._offsets if place == partition]
        return found[-1] if found else None

    def offsets(self, partitions: Iterable[Mapping[str, Any]]) -> list[dict[str, Any] | None]:
        return [self.offset(each) for each in partitions]

    def is_stopping(self) -> bool:
        return self.stopping.is_set()

    def wait(self, seconds: float) -> None:
        self.stopping.wait(min(seconds, 0.05))

    def report(self, record: SourceRecord, error: BaseException) -> None:
        self.reported.append((record, error))


@contextmanager
def sink_task(kind: type[SinkTask], config: Mapping[str, str], **more: Any) -> Iterator[Any]:
    task = _made(kind, config, SinkContext(**more))
    try:
        yield task
    finally:
        task.stop()


@contextmanager
def source_task(kind: type[SourceTask], config: Mapping[str, str], offsets: Any = ()) -> Iterator[Any]:
    task = _made(kind, config, SourceContext(offsets))
    try:
        yield task
    finally:
        task.stop()


def _made(kind: Any, config: Mapping[str, str], context: Any) -> Any:
    task = kind()
    task.log = logging.getLogger("tests")
    task.configure(dict(config))
    task.context = context
    task.start()
    return task


def polled(task: SourceTask, count: int) -> list[SourceRecord]:
    """That many records, from as many polls as it takes."""
    found: list[SourceRecord] = []

    def more() -> bool:
        found.extend(task.poll() or ())
        return len(found) >= count

    until(more, f"{count} records")
    assert len(found) == count, found
    return found


def records(
    topic: str, *values: Any, keys: Sequence[Any] = (), first: int = 0, **more: Any
) -> list[SinkRecord]:
    """Structs bring their schemas along."""
    return [
        SinkRecord(
            topic, 0, first + number, value, key=keys[number] if keys else None,
            value_schema=getattr(value, "schema", None),
            key_schema=getattr(keys[number], "schema", None) if keys else None, **more,
        )
        for number, value in enumerate(values)
    ]  # fmt: skip
