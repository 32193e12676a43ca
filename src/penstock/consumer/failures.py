"""What ends a processor, and what a handler may raise to say more than "it failed"."""

from __future__ import annotations

from penstock.consumer.record import Record


class Poison(Exception):
    """Raised by a handler: trying again cannot help, so the record becomes a dead letter at once.

    A handler of batches says which one by `record`; without it every record of the batch is tried alone.
    """

    def __init__(self, reason: str, *, record: Record | None = None) -> None:
        super().__init__(reason)
        self.record = record


class Stopped(Exception):
    """The processor cannot go on. Nothing that was not handled was passed over; start it again when the cause is gone."""


class HandlerFailed(Stopped):
    """A handler failed for good and there is no dead letter topic. The handler's exception is the cause."""


class DeadLetterNotWritten(Stopped):
    """The dead letter topic does not take the record, which stays where the group will meet it again."""


class OutputNotWritten(Stopped):
    """What a handler returned could not be written."""


class Fenced(Stopped):
    """Another processor began with the same group and instance name, so this one may not write any more."""
