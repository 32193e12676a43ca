"""How late the event loop is: what blocks it delays every client, whatever that one asked for.

A timer is due every PERIOD_SECONDS; by how much it comes late is the lag. A loop that is held up for a second has missed
twenty such moments, and each of them counts, so that a quantile is one of time: a p99.9 of 5 ms says that at 999 of 1,000 moments
a request would have waited less than that for its turn.

On a machine with too few cores the thread may be ready and wait for one. Its *own* lag is what is left without that: what the
broker did, or waited for, in place of what was due.
"""

import os
import threading
from asyncio import AbstractEventLoop, TimerHandle
from bisect import bisect_left
from collections.abc import Callable
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


class Lags(NamedTuple):
    whole: LagCounts
    own: LagCounts


class LoopLag:
    """`waited`: for how many seconds the loop's thread has waited for a core so far; made by the thread itself. `on_lag` is told
    of each lag."""

    def __init__(
        self,
        loop: AbstractEventLoop,
        waited: Callable[[], float] = lambda: 0.0,
        on_lag: Callable[[float], None] = lambda lag: None,
    ) -> None:
        self._loop = loop
        self._waited = waited
        self._on_lag = on_lag
        self._waited_before = 0.0
        self._whole = _Moments()
        self._own = _Moments()
        self._due = 0.0
        self._timer: TimerHandle | None = None

    def start(self) -> None:
        self._waited_before = self._waited()
        self._due = self._loop.time() + PERIOD_SECONDS
        self._timer = self._loop.call_at(self._due, self._tick)

    def stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()

    def so_far(self) -> Lags:
        return Lags(self._whole.so_far(), self._own.so_far())

    def _tick(self) -> None:
        now, waited = self._loop.time(), self._waited()
        lag = max(now - self._due, 0.0)
        own = max(lag - (waited - self._waited_before), 0.0)
        self._waited_before = waited
        moments = min(int(lag / PERIOD_SECONDS), MOST_MISSED) + 1
        self._on_lag(lag)
        self._whole.count(lag, moments)
        self._own.count(own, moments)
        self._due = now + PERIOD_SECONDS - lag % PERIOD_SECONDS
        self._timer = self._loop.call_at(self._due, self._tick)


class _Moments:
    def __init__(self) -> None:
        self._counts = [0] * (len(BOUNDS_SECONDS) + 1)
        self._sum_seconds = 0.0
        self._longest_seconds = 0.0

    def count(self, lag: float, moments: int) -> None:
        """So many moments, the first of which had to wait for so long, and each later one less."""
        self._longest_seconds = max(self._longest_seconds, lag)
        for missed in range(moments):
            left = max(lag - missed * PERIOD_SECONDS, 0.0)
            self._counts[bisect_left(BOUNDS_SECONDS, left)] += 1
            self._sum_seconds += left

    def so_far(self) -> LagCounts:
        return LagCounts(tuple(self._counts), self._sum_seconds, self._longest_seconds)


def waits_for_cores() -> Callable[[], float]:
    """Of the calling thread, in seconds; always 0 where the kernel does not tell."""
    both = time_on_cores()
    return lambda: both()[1]


def time_on_cores() -> Callable[[], tuple[float, float]]:
    """Of the calling thread, in seconds: on a core, and in wait for one; zeros where the kernel does not tell."""
    path = f"/proc/self/task/{threading.get_native_id()}/schedstat"
    try:
        file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return lambda: (0.0, 0.0)
    # For as long as the process lives. The fields: ns on a core, ns in the queue for one, turns.

    def read() -> tuple[float, float]:
        worked, waited, _ = os.pread(file, 128, 0).split()
        return int(worked) / 1e9, int(waited) / 1e9

    return read
