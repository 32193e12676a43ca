"""How late the event loop is: what blocks it delays every client, whatever that one asked for.

A timer is due every PERIOD_SECONDS; by how much it comes late is the lag. A loop that is held up for a second has missed
twenty such moments, and each of them counts, so that a quantile is one of time: a p99.9 of 5 ms says that at 999 of 1,000 moments
a request would have waited less than that for its turn.
"""

from asyncio import AbstractEventLoop, TimerHandle
from bisect import bisect_left
from typing import Final, NamedTuple

PERIOD_SECONDS: Final = 0.05
BOUNDS_SECONDS: Final = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0)
MOST_MISSED: Final = 1200
"""Moments counted for one stall: of a minute, behind which nobody is interested in how much longer it was."""


class LagCounts(NamedTuple):
    counts: tuple[int, ...]
    """Moments up to each of BOUNDS_SECONDS and above the one before; the last: above all of them."""
    sum_seconds: float
    longest_seconds: float


class LoopLag:
    def __init__(self, loop: AbstractEventLoop) -> None:
        self._loop = loop
        self._counts = [0] * (len(BOUNDS_SECONDS) + 1)
        self._sum_seconds = 0.0
        self._longest_seconds = 0.0
        self._due = 0.0
        self._timer: TimerHandle | None = None

    def start(self) -> None:
        self._due = self._loop.time() + PERIOD_SECONDS
        self._timer = self._loop.call_at(self._due, self._tick)

    def stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()

    def so_far(self) -> LagCounts:
        return LagCounts(tuple(self._counts), self._sum_seconds, self._longest_seconds)

    def _tick(self) -> None:
        now = self._loop.time()
        lag = max(now - self._due, 0.0)
        self._longest_seconds = max(self._longest_seconds, lag)
        for missed in range(min(int(lag / PERIOD_SECONDS), MOST_MISSED) + 1):
            self._count(lag - missed * PERIOD_SECONDS)
        self._due = now + PERIOD_SECONDS - lag % PERIOD_SECONDS
        self._timer = self._loop.call_at(self._due, self._tick)

    def _count(self, lag: float) -> None:
        self._counts[bisect_left(BOUNDS_SECONDS, lag)] += 1
        self._sum_seconds += lag
