"""What is asked again, how often and until when: one policy for all who ask a cluster."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from typing import Final, NamedTuple, TypeVar

T = TypeVar("T")


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


KAFKAS_BACKOFF: Final = Backoff(0.1, max_s=1.0)
"""As `retry.backoff.ms` and `retry.backoff.max.ms` have it by default."""


class Retriable(Exception):
    """An error that may be gone at the next attempt."""


class Patience:
    """The pauses between attempts, up to a deadline."""

    def __init__(self, timeout_s: float, backoff: Backoff = KAFKAS_BACKOFF) -> None:
        self.deadline_s = time.monotonic() + timeout_s
        self._backoff = backoff
        self._pauses = 0

    def pause(self) -> bool:
        """Waits before the next attempt. False, at once, where that would be after the deadline."""
        self._pauses += 1
        delay_s = self._backoff.delay_s(self._pauses, random.random)
        if time.monotonic() + delay_s > self.deadline_s:
            return False
        time.sleep(delay_s)
        return True


def patiently(
    attempt: Callable[[], T],
    patience: Patience,
    *,
    before_next: Callable[[Exception], None],
    is_retriable: Callable[[Exception], bool] = lambda error: isinstance(error, Retriable),
) -> T:
    """What the first attempt brings that succeeds; the last one's error when patience ends."""
    while True:
        try:
            return attempt()
        except Exception as error:
            if not is_retriable(error) or not patience.pause():
                raise
            before_next(error)
