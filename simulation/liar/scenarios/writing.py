"""The Spark sink, called as Spark's tasks call it: batches in order, each again after an error, a crash, or for no reason."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from typing import Final

import pyarrow as pa

from penstock.spark.failures import CheckpointWentBack, NotTheSameBatch
from penstock.spark.options import WriteOptions
from penstock.spark.writing import exactly_once, producing
from penstock.spark.writing.exactly_once import write_once
from penstock.spark.writing.rows import Columns
from penstock.spark.writing.sink import _write_plainly
from penstock.spark.writing.tasks import Task
from simulation.liar.act import Act, Over, difference

PARTITIONS: Final = 2
COLUMNS: Final = Columns(value=0, key=None, topic=None, partition=1, headers=None)
ROWS_IN_PIECE: Final = 10
PROPERTIES: Final = {
    "delivery.timeout.ms": "8000",
    "transaction.timeout.ms": "20000",
    "retry.backoff.ms": "10",
    "retry.backoff.max.ms": "100",
    "reconnect.backoff.ms": "10",
    "reconnect.backoff.max.ms": "100",
}

HEALTHY_FAILURES: Final = 2

Write = Callable[[Iterator[pa.RecordBatch]], int | None]
"""Writes rows, and says how many."""


class Killed(Exception):
    """A task ends in the middle of its rows."""


def write_exactly_once(act: Act) -> None:
    """Each row once, in order within its task and partition."""
    chance = act.chance
    work = _Work(act)
    try:
        for batch_id in range(chance.randint(2, 4)):
            for number in range(work.tasks):
                task = Task(act.name, batch_id, number)
                work.do(task, partial(_once, work, task))
                if chance.random() < 0.3:
                    _replay(work, task)
    finally:
        work.close()
    work.check(at_least=False)


def write_at_least_once(act: Act) -> None:
    chance = act.chance
    work = _Work(act)
    options = WriteOptions(work.topic, False, None, work.properties)
    try:
        for batch_id in range(chance.randint(2, 4)):
            for number in range(work.tasks):
                work.do(Task(act.name, batch_id, number), lambda rows: _write_plainly(rows, options, COLUMNS))
    finally:
        work.close()
    work.check(at_least=True)


def _once(work: _Work, task: Task, rows: Iterator[pa.RecordBatch]) -> int:
    return write_once(task, rows, columns=COLUMNS, topic=work.topic, properties=work.properties).rows


def _replay(work: _Work, task: Task) -> None:
    """A driver that was killed before it noted that the batch was done."""
    if work.act.chance.random() < 0.5:
        exactly_once._forget(task, work.properties)
    written = work.do(task, partial(_once, work, task), is_new=False)
    if written:
        work.act.wrong(f"{task} was written already, and {written} rows were written again")


class _Work:
    def __init__(self, act: Act) -> None:
        self.act = act
        self.topic = act.name
        self.tasks = act.chance.randint(1, 2)
        self.properties = {"bootstrap.servers": act.liar.bootstrap, **PROPERTIES}
        self._expected: list[tuple[int, bytes]] = []  # partition and value, in order
        act.world.truth.create(self.topic, PARTITIONS)
        act.begin()

    def do(self, task: Task, write: Write, *, is_new: bool = True) -> int:
        """Until it succeeds; what was written."""
        act = self.act
        count = 1 + (task.batch_id * 31 + task.partition * 17 + act.plan.seed) % 40
        rows = [(number % PARTITIONS, _value(task, number)) for number in range(count)]
        if is_new:
            self._expected += rows
        deaths = act.chance.choice((0, 0, 0, 1, 2))

        def attempt() -> int:
            nonlocal deaths
            deaths -= 1
            try:
                return write(_pieces(rows, dies=deaths >= 0)) or 0
            except (CheckpointWentBack, NotTheSameBatch) as error:
                act.wrong(f"{task}: {error}")
                raise Over from error

        return act.attempt(attempt, Exception, may_fail=lambda: deaths >= 0, failures=HEALTHY_FAILURES)

    def check(self, *, at_least: bool) -> None:
        found = [
            (partition, value)
            for partition, _, value in self.act.world.truth.rows(self.topic, range(PARTITIONS))
        ]
        if at_least:
            found = list(dict.fromkeys(found))
        differs = difference(Counter(found), Counter(self._expected))
        if differs is not None:
            self.act.wrong(f"{self.topic}: {differs}")
        elif not at_least:
            self._check_order(found)

    def _check_order(self, found: list[tuple[int, bytes]]) -> None:
        for partition in range(PARTITIONS):
            for task in range(self.tasks):
                prefix = b"task %d " % task
                here, wanted = (
                    [value for place, value in rows if place == partition and value.startswith(prefix)]
                    for rows in (found, self._expected)
                )
                if here != wanted:
                    self.act.wrong(f"{self.topic}-{partition}: the rows of task {task} are not in order")

    def close(self) -> None:
        """What the workers of Spark keep between tasks."""
        for identity in [each for each in exactly_once._sessions if each[0].startswith(self.act.name)]:
            exactly_once._sessions.pop(identity).close()
        for settings in [
            each for each in producing._producers if self.act.liar.bootstrap in dict(each).values()
        ]:
            producing.forget_producer(dict(settings))


def _value(task: Task, number: int) -> bytes:
    return b"task %d batch %d row %d" % (task.partition, task.batch_id, number)


def _pieces(rows: list[tuple[int, bytes]], *, dies: bool) -> Iterator[pa.RecordBatch]:
    end = len(rows) // 2 if dies else len(rows)
    for start in range(0, end, ROWS_IN_PIECE):
        piece = rows[start : min(end, start + ROWS_IN_PIECE)]
        yield pa.RecordBatch.from_arrays(
            [
                pa.array([value for _, value in piece], pa.binary()),
                pa.array([partition for partition, _ in piece], pa.int32()),
            ],
            names=["value", "partition"],
        )
    if dies:
        raise Killed("the task is killed")
