"""What the writers of source hand to one another."""

from __future__ import annotations

from dataclasses import dataclass

from penstock.streams.plan.types import SqlType


@dataclass(frozen=True, slots=True)
class Source:
    """`is_name`: it can stand twice at no cost."""

    text: str
    type: SqlType | None
    can_be_null: bool = True
    can_fail: bool = False
    is_name: bool = False
    depth: int = 0
