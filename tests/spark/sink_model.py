"""What an exactly-once sink must do with each task that Spark gives to it: no Kafka, no Spark, no threads.

The state of a name (prefix, query and target) is one mark for each of its tasks: the last batch that it wrote. The page
docs/explanation/exactly-once.md has the same as a table.
"""

from __future__ import annotations

from collections import Counter
from enum import Enum
from typing import NamedTuple


class Verdict(Enum):
    WRITES = "writes its rows"
    SKIPS = "finds them written"
    WENT_BACK = "the checkpoint went back"
    OTHER_ROWS = "the batch had another number of rows"
    SECOND_WRITE = "the batch is written twice under one name"


class Name(NamedTuple):
    prefix: str | None
    query_id: str
    topic: str


class Attempt(NamedTuple):
    """A task of a batch, in the run of a query, by one write of that run."""

    name: Name
    batch_id: int
    task: int
    rows: tuple[str, ...]
    run: str
    write: str


class Mark(NamedTuple):
    batch_id: int
    rows: int | None  # None: not known any more
    run: str | None
    write: str | None
    is_offset: bool = True  # so that other tasks see it, too


class Model:
    def __init__(self) -> None:
        self.committed: dict[str, Counter[str]] = {}  # by topic
        self.marks: dict[tuple[Name, int], Mark] = {}

    def verdict(self, attempt: Attempt) -> Verdict:
        mark = self.marks.get((attempt.name, attempt.task))
        if self._is_ahead(attempt) or (mark is not None and mark.batch_id > attempt.batch_id):
            return Verdict.WENT_BACK
        if mark is None or mark.batch_id < attempt.batch_id:
            return Verdict.WRITES
        if mark.run == attempt.run and mark.write != attempt.write:
            return Verdict.SECOND_WRITE
        if mark.rows is not None and mark.rows != len(attempt.rows):
            return Verdict.OTHER_ROWS
        return Verdict.SKIPS

    def commits(self, attempt: Attempt) -> None:
        self.committed.setdefault(attempt.name.topic, Counter()).update(attempt.rows)
        self.marks[attempt.name, attempt.task] = Mark(
            attempt.batch_id, len(attempt.rows), attempt.run or None, attempt.write
        )

    def misses_tasks(self, name: Name, batch_id: int, tasks: int) -> bool:
        """More tasks have written the batch than it has now, as far as that is known."""
        return any(
            mark.is_offset and mark.batch_id >= batch_id and task >= tasks
            for (whose, task), mark in self.marks.items()
            if whose == name
        )

    def topic_is_deleted(self, topic: str) -> None:
        self.committed[topic] = Counter()

    def offsets_expire(self) -> None:
        """Only the compacted topic is left, which knows no more than the number."""
        self.marks = {
            whose: Mark(mark.batch_id, None, None, None, is_offset=False)
            for whose, mark in self.marks.items()
        }

    def marks_are_lost(self) -> None:
        self.marks.clear()

    def _is_ahead(self, attempt: Attempt) -> bool:
        return any(
            mark.is_offset and mark.batch_id > attempt.batch_id
            for (whose, _), mark in self.marks.items()
            if whose == attempt.name
        )
