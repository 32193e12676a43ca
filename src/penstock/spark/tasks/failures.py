"""What ends a long task."""

from __future__ import annotations


class Hopeless(Exception):
    """Raised by a body where another attempt cannot help: the whole job fails."""


class NoRoom(RuntimeError):
    """Spark has too few slots for the tasks."""


class NotAnswered(RuntimeError):
    """A task did not answer a question: it is not there, or it refused."""
