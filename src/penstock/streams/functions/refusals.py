"""What typing and calls of functions say when they refuse."""

from __future__ import annotations

from penstock.streams.plan.expressions import Place


class TypeRefused(Exception):
    """An expression has no type: its operands do not fit, or a name is not known. The message is in ksqlDB's words. `is_late`:
    ksqlDB finds this one when it compiles the expression, not when it asks for its type, and says so."""

    def __init__(self, message: str, place: Place | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.place = place
        self.is_late = False


class FunctionFailed(Exception):
    """A function, cast or operator has no result for these values: the column becomes NULL, and the log says why."""
