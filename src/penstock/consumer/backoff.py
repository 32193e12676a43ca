"""How long to wait before trying again: longer each time, and never exactly as long as everybody else."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple


class Backoff(NamedTuple):
    """`Backoff(0.1, factor=2, max_s=30, jitter=0.2)` waits 0.1 s, 0.2 s, 0.4 s and so on, each up to a fifth more or less."""

    first_s: float = 0.1
    factor: float = 2.0
    max_s: float = 30.0
    jitter: float = 0.2

    def check(self) -> None:
        if self.first_s < 0 or self.max_s < 0 or self.factor < 1 or not 0 <= self.jitter <= 1:
            raise ValueError(f"not a usable back-off: {self}")

    def delay_s(self, attempt: int, chance: Callable[[], float]) -> float:
        """The wait after the failed attempt number `attempt`, from 1. `chance` gives numbers from 0 up to 1."""
        # The power is bounded before it is taken: the thousandth attempt must not overflow.
        grown_s = self.first_s * self.factor ** min(attempt - 1, 64)
        return min(grown_s, self.max_s) * (1 + self.jitter * (2 * chance() - 1))
