"""Records that a plan leaves out, as dead letters: key, value and headers as they came, and why, for `penstock dlq`.

A letter is a record of a topic that a task read. What failed behind a repartition is a record of the repartition's topic, and
is replayed there. A record gives one letter, however many steps it fails in.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from penstock.consumer.dead_letters import Failure, dead_letter, failure_of, take_earlier_attempts
from penstock.consumer.record import Headers
from penstock.streams.kernel.records import InputRecord, OutputRecord
from penstock.streams.kernel.task import Trouble
from penstock.streams.running.options import RunOptions


@dataclass(slots=True)
class _Origin:
    """What `dead_letter` asks of a record."""

    topic: str
    partition: int
    offset: int
    timestamp_ms: int | None
    raw_key: bytes | None
    raw_value: bytes | None
    headers: Headers
    earlier_attempts: int = 0


class Letters:
    """`at` is the record that is being processed; None: what fails has no record, such as a timer."""

    __slots__ = ("_group", "_last", "_send", "_topic", "at")

    def __init__(self, options: RunOptions, send: Callable[[OutputRecord], None]) -> None:
        self.at: InputRecord | None = None
        self._topic, self._group, self._send = options.dead_letters, options.application_id, send
        self._last: InputRecord | None = None

    def write(self, trouble: Trouble) -> None:
        record = self.at
        if record is None or record is self._last or self._topic is None:
            return
        self._last = record
        now_ms = int(time.time() * 1000)
        origin = _Origin(
            record.topic, record.partition, record.offset, record.timestamp, record.key, record.value,
            list(record.headers),
        )  # fmt: skip
        take_earlier_attempts(origin)
        made = dead_letter(origin, _failure(trouble, now_ms), group=self._group, to_topic=self._topic)
        headers = tuple(
            (name, data.encode() if isinstance(data, str) else data) for name, data in made.headers or ()
        )
        self._send(OutputRecord(self._topic, record.key, record.value, now_ms, headers))


def _failure(trouble: Trouble, now_ms: int) -> Failure:
    error = trouble.error
    if isinstance(error, BaseException):
        return failure_of(error, attempts=1, first_failure_ms=now_ms, last_failure_ms=now_ms)
    return Failure(trouble.kind, str(error), "", 1, now_ms, now_ms)
