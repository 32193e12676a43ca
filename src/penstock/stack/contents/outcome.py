"""What came of it, as sentences."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal

Kind = Literal["done", "differs", "failed"]
Told = Callable[[Kind, str], None]


@dataclass
class Outcome:
    """`told` hears each sentence when it is true. `as_wished` counts what was there as it shall be."""

    told: Told
    done: list[str] = field(default_factory=list)
    differs: list[str] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)
    as_wished: int = 0

    def say_done(self, sentence: str) -> None:
        self.done.append(sentence)
        self.told("done", sentence)

    def say_differs(self, sentence: str) -> None:
        self.differs.append(sentence)
        self.told("differs", sentence)

    def say_failed(self, sentence: str) -> None:
        self.failed.append(sentence)
        self.told("failed", sentence)
