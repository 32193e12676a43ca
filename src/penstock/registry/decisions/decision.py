"""The form of a decision."""

from __future__ import annotations

from typing import Any, NamedTuple

from penstock.registry.records import Record


class Decision(NamedTuple):
    """`records` in the order in which they are written; the request is answered when the last one has been read back."""

    records: tuple[Record, ...]
    answer: Any
