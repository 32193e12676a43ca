"""One GET of records: when it ends, and what it gives."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, Final, NamedTuple

import orjson
from confluent_kafka import TIMESTAMP_NOT_AVAILABLE, Message

from penstock.rest import errors
from penstock.rest.consumers.member import Member
from penstock.rest.values import Read, read_binary

STEP: Final = 500
"""Records that are taken from librdkafka at a time."""
MAX_RECORDS: Final = 100_000
"""Of one read, however small they are."""
POLL_S: Final = 0.1
LULL_S: Final = 0.02
"""A read that has records ends when nothing more comes for so long."""
FIRST_LULL_S: Final = 0.15
"""The same while partitions are only being begun: longer than a fetch of one of them may hold up the others."""


class Bounds(NamedTuple):
    timeout_s: float
    max_bytes: int
    min_bytes: int
    """Ends a read early; -1: a lull does."""
    assignment_s: float
    """How long the group may take to give partitions; not counted in `timeout_s`."""


def read(member: Member, bounds: Bounds, reader: Read, is_over: Callable[[], bool]) -> bytes:
    """A JSON list. It ends with its time, before the record that would exceed `max_bytes` (the first one is returned in any
    case), with `min_bytes`, or when there is nothing more. In the instance's thread."""
    member.begin_reading()
    member.wait_for_assignment(time.monotonic() + bounds.assignment_s, is_over)
    until_s = time.monotonic() + bounds.timeout_s
    lull_s = FIRST_LULL_S if member.is_beginning() else LULL_S
    answer = _Answer(member, bounds, reader)
    while not is_over():
        left_s = max(0.0, until_s - time.monotonic())
        messages = member.fetched(
            STEP, min(left_s, lull_s if answer.count and bounds.min_bytes < 0 else POLL_S)
        )
        answer.take(messages)
        is_lull = bool(answer.count) and not messages and bounds.min_bytes < 0
        if answer.is_full or is_lull or time.monotonic() >= until_s:
            break
    member.store()
    return answer.text()


class _Answer:
    """The records of one read, as JSON at once: that takes the least room."""

    def __init__(self, member: Member, bounds: Bounds, reader: Read) -> None:
        self._member = member
        self._bounds = bounds
        self._reader = reader
        self._parts: list[bytes] = []
        self._size = 0
        self.count = 0
        self.is_full = False

    def take(self, messages: list[Message]) -> None:
        """What is not taken is kept for the next read. HttpError where the first record cannot be read."""
        rows: list[Any] = []
        for index, message in enumerate(messages):
            size = len(message) + len(message.key() or b"")
            if self.count and self._size + size > self._bounds.max_bytes:
                self._stop(messages[index:])
                break
            try:
                rows.append(_row(message, self._reader))
            except Exception as error:
                self._stop(messages[index:])
                if self.count:  # those before it are returned first
                    break
                raise _unreadable(message, error) from None
            self._size += size
            self.count += 1
            self._member.returned(message)
        if rows:
            self._parts.append(orjson.dumps(rows)[1:-1])
        if self.count >= MAX_RECORDS or 0 <= self._bounds.min_bytes < self._size:
            self.is_full = True

    def _stop(self, left: list[Message]) -> None:
        self._member.keep(left)
        self.is_full = True

    def text(self) -> bytes:
        return b"[" + b",".join(self._parts) + b"]"


def _unreadable(message: Message, error: Exception) -> Exception:
    """It comes again at the next read: who wants to go on seeks past it."""
    if not isinstance(error, ValueError):
        return error
    where = f"{message.topic()}-{message.partition()} at offset {message.offset()}"
    return errors.kafka_error(f"{where} cannot be read: {error}")


def _row(message: Message, reader: Read) -> dict[str, Any]:
    kind, timestamp_ms = message.timestamp()
    return {
        "topic": message.topic(),
        "key": reader(_bytes(message.key())),
        "value": reader(_bytes(message.value())),
        "partition": message.partition(),
        "offset": message.offset(),
        "timestamp": None if kind == TIMESTAMP_NOT_AVAILABLE else timestamp_ms,
        "headers": [{"name": name, "value": read_binary(_bytes(value))} for name, value in _headers(message)],
    }


def _headers(message: Message) -> list[tuple[str, Any]]:
    found: Any = message.headers()
    return list(found or ())


def _bytes(found: Any) -> bytes | None:
    return found.encode() if isinstance(found, str) else found
