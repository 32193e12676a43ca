"""What analysis says no with."""

from __future__ import annotations

from penstock.streams.plan.expressions import Place


class StatementRefused(Exception):
    """`message` is in ksqlDB's words; `place` is where it stands in the text, if that is known."""

    def __init__(self, message: str, place: Place | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.place = place
