"""The errors that end a processor, and what a handler may raise."""

from __future__ import annotations

from penstock.consumer.record import Record


class Poison(Exception):
    """Raised by a handler when another attempt cannot help. The record becomes a dead letter at once.

    A handler of batches names the bad record with `record`. Without it every record of the batch is tried alone.
    """

    def __init__(self, reason: str, *, record: Record | None = None) -> None:
        super().__init__(reason)
        self.record = record


class Stopped(Exception):
    """The processor cannot continue. No unhandled record was skipped. Start it again when the cause is mended."""


class HandlerFailed(Stopped):
    """A handler failed after all attempts, and there is no dead letter topic. The handler's exception is the cause."""


class DeadLetterNotWritten(Stopped):
    """A dead letter could not be written. Its record is not committed, so the group reads it again."""


class OutputNotWritten(Stopped):
    """What a handler returned could not be written."""


class Fenced(Stopped):
    """Another processor started with the same group and instance name, so this one may no longer write."""
