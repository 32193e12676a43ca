"""One subtopology at work on one partition: what long tasks and the test driver call."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

from penstock.streams.kernel.records import InputRecord, OutputRecord


class Trouble(NamedTuple):
    """What went wrong with a record or row that is left out, or with a column that became NULL. `kind`: deserialize,
    timestamp, expression, process, serialize; late (its window has closed) and skipped (it has no key or value to join by),
    which the plan itself says."""

    node: str
    kind: str
    error: Any
    record: Any  # InputRecord or Row, as far as it is known
    is_left_out: bool = True  # False: only a column became NULL, and the row went on


OnError = Callable[[Trouble], None]


class Task(Protocol):
    def process(self, record: InputRecord) -> None:
        """Outputs go to the function that the task was made with, in order. BadRecord never comes out: what cannot be
        read is given to the task's `on_error` and left out."""

    def restore(self, record: InputRecord) -> None:
        """A record of a source topic that was processed before: only stores that are not logged take it in."""

    def flush(self) -> None:
        """Before a commit: what is only in memory (stream times) goes to the stores."""

    def stream_time(self) -> int: ...

    def due_ms(self) -> int | None:
        """When a timer by the wall clock is due; None: there is none."""

    def punctuate(self, now_ms: int) -> None:
        """Calls the timers that are due. The task has no clock: whoever runs it has."""


class Outputs(Protocol):
    def __call__(self, record: OutputRecord) -> None: ...
