"""The form of a dead letter: key, value and headers of the record that failed, and behind them a block of our headers.

    <the record's own headers …> penstock.dlq.topic penstock.dlq.partition … penstock.dlq.last-failure

All values are text in UTF-8, times are milliseconds since 1970. The block begins with the last `penstock.dlq.topic`, so
a dead letter of a dead letter keeps the inner block among its own headers. A record that is replayed carries
`penstock.dlq.earlier-attempts` and nothing else of ours.
"""

from __future__ import annotations

import traceback
from typing import NamedTuple, Protocol

from penstock.consumer.record import Headers, Output

PREFIX = "penstock.dlq."
TOPIC = PREFIX + "topic"
PARTITION = PREFIX + "partition"
OFFSET = PREFIX + "offset"
TIMESTAMP = PREFIX + "timestamp"
GROUP = PREFIX + "group"
CAUSE = PREFIX + "cause"
MESSAGE = PREFIX + "message"
STACK = PREFIX + "stack"
ATTEMPTS = PREFIX + "attempts"
FIRST_FAILURE = PREFIX + "first-failure"
LAST_FAILURE = PREFIX + "last-failure"
EARLIER_ATTEMPTS = PREFIX + "earlier-attempts"

# A dead letter must fit where the record fitted, so what we add is bounded: some 6 KiB at most.
CAUSE_MAX_BYTES = 250
MESSAGE_MAX_BYTES = 1000
STACK_MAX_BYTES = 4000
HEADERS_MAX_BYTES = 8192


class Failure(NamedTuple):
    """Why a record is given up."""

    cause: str
    message: str
    stack: str
    attempts: int
    first_failure_ms: int
    last_failure_ms: int


class Origin(Protocol):
    """What is asked of a record that is given up: `record.Record`, and the records of streams."""

    topic: str
    partition: int
    offset: int
    timestamp_ms: int | None
    raw_key: bytes | None
    raw_value: bytes | None
    headers: Headers
    earlier_attempts: int


class DeadLetter(NamedTuple):
    """The block of headers, read back. `headers` are the record's own."""

    topic: str
    partition: int
    offset: int
    timestamp_ms: int | None
    group: str
    failure: Failure
    headers: Headers


def failure_of(
    error: BaseException, *, attempts: int, first_failure_ms: int, last_failure_ms: int
) -> Failure:
    kind = type(error)
    name = kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"
    # The first frame is ours and the same for everyone.
    trace = error.__traceback__.tb_next if error.__traceback__ is not None else None
    stack = "".join(traceback.format_exception(kind, error, trace))
    return Failure(name, str(error), stack, attempts, first_failure_ms, last_failure_ms)


def dead_letter(record: Origin, failure: Failure, *, group: str, to_topic: str) -> Output:
    """The record to write to the dead letter topic."""
    ours = {
        TOPIC: record.topic,
        PARTITION: str(record.partition),
        OFFSET: str(record.offset),
        TIMESTAMP: "" if record.timestamp_ms is None else str(record.timestamp_ms),
        GROUP: group,
        CAUSE: _head(failure.cause, CAUSE_MAX_BYTES),
        MESSAGE: _head(failure.message, MESSAGE_MAX_BYTES),
        STACK: _tail(failure.stack, STACK_MAX_BYTES),
        ATTEMPTS: str(record.earlier_attempts + failure.attempts),
        FIRST_FAILURE: str(failure.first_failure_ms),
        LAST_FAILURE: str(failure.last_failure_ms),
    }
    headers: list[tuple[str, bytes | str | None]] = [
        *record.headers,
        *((name, _encoded(text)) for name, text in ours.items()),
    ]
    return Output(to_topic, record.raw_value, record.raw_key, headers)


def parse(headers: Headers) -> DeadLetter | None:
    """None when the headers are not those of a dead letter."""
    start = max((place for place, (name, _) in enumerate(headers) if name == TOPIC), default=None)
    if start is None:
        return None
    ours = {name: (value or b"").decode(errors="replace") for name, value in headers[start:]}
    try:
        failure = Failure(
            ours[CAUSE],
            ours[MESSAGE],
            ours[STACK],
            int(ours[ATTEMPTS]),
            int(ours[FIRST_FAILURE]),
            int(ours[LAST_FAILURE]),
        )
        timestamp_ms = int(ours[TIMESTAMP]) if ours[TIMESTAMP] else None
        place = ours[TOPIC], int(ours[PARTITION]), int(ours[OFFSET])
        return DeadLetter(*place, timestamp_ms, ours[GROUP], failure, headers[:start])
    except (KeyError, ValueError):
        return None


def replay_headers(letter: DeadLetter) -> Headers:
    """The record's own headers, and how often it was tried until now."""
    return [*letter.headers, (EARLIER_ATTEMPTS, str(letter.failure.attempts).encode())]


def take_earlier_attempts(record: Origin) -> None:
    """Moves the count that a replay left in the headers to where it belongs."""
    # Only a trailing one is a replay's: inside the block of a dead letter that is read as a record it is not ours to take.
    if record.headers and record.headers[-1][0] == EARLIER_ATTEMPTS:
        text = record.headers.pop()[1] or b""
        record.earlier_attempts = int(text) if text.isdigit() else 0


def _encoded(text: str) -> bytes:
    # Text that is no text (lone surrogates from file names and the like) must not be one more failure.
    return text.encode("utf-8", "backslashreplace")


def _head(text: str, size_bytes: int) -> str:
    data = _encoded(text)
    return text if len(data) <= size_bytes else data[:size_bytes].decode(errors="ignore") + "…"


def _tail(text: str, size_bytes: int) -> str:
    # The end of a stack says where it broke.
    data = _encoded(text)
    return text if len(data) <= size_bytes else "…" + data[-size_bytes:].decode(errors="ignore")
