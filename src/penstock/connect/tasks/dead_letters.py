"""Records that a connector leaves out, kept in a topic (`errors.deadletterqueue.…`), of sinks and of sources.

Of a sink it is the record as it was read. Of a source it is what could be converted of it, else its text. With
`errors.deadletterqueue.context.headers.enable` headers say where it comes from and why it is there, by Kafka Connect's names;
of a source they say the source's own partition and offset.
"""

from __future__ import annotations

import json
import traceback
from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

from penstock.connect.errors import java_name_of
from penstock.connect.settings import Kind
from penstock.connect.tasks.counters import Counters
from penstock.connect.tasks.failing import Failure
from penstock.connect.tasks.settings import value_of

TOPIC: Final = "errors.deadletterqueue.topic.name"
REPLICATION: Final = "errors.deadletterqueue.topic.replication.factor"
CONTEXT: Final = "errors.deadletterqueue.context.headers.enable"
PREFIX: Final = "__connect.errors."
STACK_MAX: Final = 16_000

Headers = list[tuple[str, bytes | None]]


class Letter(NamedTuple):
    key: bytes | None
    value: bytes | None
    headers: Headers
    timestamp_ms: int | None
    where: Mapping[str, Any]
    """What the context headers say besides: topic, partition, offset."""


Write = Callable[[str, bytes | None, bytes | None, Headers, int | None], None]
"""Topic, key, value, headers, timestamp. What is written is delivered, or the task has failed, before an offset is committed."""


class DeadLetters:
    """`letter` makes one of a failure's origin."""

    def __init__(
        self,
        config: Mapping[str, str],
        counters: Counters,
        *,
        connector: str,
        task: int,
        letter: Callable[[Any], Letter],
        write: Write,
    ) -> None:
        self.topic = str(value_of(config, TOPIC, Kind.STRING, ""))
        self.replication = int(value_of(config, REPLICATION, Kind.SHORT, 3))
        self._has_context = bool(value_of(config, CONTEXT, Kind.BOOLEAN, False))
        self._counters, self._connector, self._task = counters, connector, task
        self._letter, self._write = letter, write

    def keep(self, failure: Failure) -> None:
        letter = self._letter(failure.origin)
        headers = letter.headers
        if self._has_context:
            headers = [*headers, *self._context(failure, letter.where)]
        self._counters.add("deadletterqueue-produce-requests")
        try:
            self._write(self.topic, letter.key, letter.value, headers, letter.timestamp_ms)
        except Exception:
            self._counters.add("deadletterqueue-produce-failures")
            raise

    def _context(self, failure: Failure, where: Mapping[str, Any]) -> Headers:
        error = failure.error
        stack = "".join(traceback.format_exception(error))[-STACK_MAX:]
        said: dict[str, str | None] = {
            **{name: _text(value) for name, value in where.items()},
            "connector.name": self._connector,
            "task.id": str(self._task),
            "stage": str(failure.stage),
            "class.name": failure.by,
            "exception.class.name": java_name_of(error),
            "exception.message": str(error) or None,
            "exception.stacktrace": stack,
        }
        return [(PREFIX + name, None if text is None else text.encode()) for name, text in said.items()]


def has_letters(config: Mapping[str, str]) -> bool:
    return bool(config.get(TOPIC, "").strip())


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, separators=(",", ":"), default=str)
