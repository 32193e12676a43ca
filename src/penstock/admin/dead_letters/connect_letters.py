"""Dead letters of Connect's connectors, ours and Kafka's: what their headers say, in the form of a dead letter of a consumer.

They say it where `errors.deadletterqueue.context.headers.enable` is true. A letter of a sink is the record as it was read, with
its topic, partition and offset: it can be given to the connector again. One of a source never was in a topic: its place is one in
the source, and no number of Kafka's.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from penstock.consumer.dead_letters import DeadLetter, Failure

PREFIX: Final = "__connect.errors."
NOWHERE: Final = -1
"""The partition and offset of a record that never was in a topic."""
TRIES_NOT_TOLD: Final = 0
MAX_DIGITS: Final = 19


def parse_connect(headers: Sequence[tuple[str, bytes | None]], timestamp_ms: int) -> DeadLetter | None:
    """None when the headers are not those of a connector. The times of the failure are that of the record: no other is told."""
    said = {
        name.removeprefix(PREFIX): (value or b"").decode(errors="replace")
        for name, value in headers
        if name.startswith(PREFIX)
    }
    if not said.get("topic") or "exception.class.name" not in said:
        return None
    failure = Failure(
        said["exception.class.name"],
        said.get("exception.message", ""),
        said.get("exception.stacktrace", ""),
        TRIES_NOT_TOLD,
        timestamp_ms,
        timestamp_ms,
    )
    own = [(name, value) for name, value in headers if not name.startswith(PREFIX)]
    partition, offset = _number(said.get("partition")), _number(said.get("offset"))
    if NOWHERE in (partition, offset):
        partition = offset = NOWHERE
    return DeadLetter(
        said["topic"], partition, offset, timestamp_ms, said.get("connector.name", ""), failure, own
    )


def _number(text: str | None) -> int:
    if text and text.isascii() and text.isdigit() and len(text) < MAX_DIGITS:
        return int(text)
    return NOWHERE
