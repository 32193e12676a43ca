"""How busy the loop's thread was in the last minute, and what came and went in it.

Kafka says how idle its network and request threads are. Here both are one thread: idle is what it neither worked nor waited for a
core. The sum of both comes from the kernel, every few seconds, and so do the counts of connections, of which Kafka gives rates.
"""

from asyncio import AbstractEventLoop, TimerHandle
from collections import deque
from collections.abc import Callable
from typing import Final, NamedTuple

EVERY_SECONDS: Final = 5.0
WINDOW_SECONDS: Final = 60.0
TURN_SECONDS: Final = 150.0
"""How long a stretch of time is, of which quantiles are: of the current one and the one before."""


class Moment(NamedTuple):
    at: float
    busy_seconds: float
    counts: tuple[int, ...]


class BusyTime:
    """`busy`: for how many seconds the thread has worked, or waited for a core, so far. `counts`: what else is to have a rate.
    `on_turn` is called when a new stretch of time begins.
    """

    def __init__(
        self,
        loop: AbstractEventLoop,
        busy: Callable[[], float],
        counts: Callable[[], tuple[int, ...]],
        on_turn: Callable[[], None],
    ) -> None:
        self._loop = loop
        self._busy = busy
        self._counts = counts
        self._on_turn = on_turn
        self._moments: deque[Moment] = deque(maxlen=int(WINDOW_SECONDS / EVERY_SECONDS) + 1)
        self._turned = 0.0
        self._timer: TimerHandle | None = None

    def start(self) -> None:
        self._turned = self._loop.time()
        self._tick()

    def stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()

    def _now(self) -> Moment:
        return Moment(self._loop.time(), self._busy(), self._counts())

    def _tick(self) -> None:
        now = self._now()
        self._moments.append(now)
        if now.at - self._turned >= TURN_SECONDS:
            self._turned = now.at
            self._on_turn()
        self._timer = self._loop.call_later(EVERY_SECONDS, self._tick)

    def idle_and_rates(self) -> tuple[float, tuple[float, ...]]:
        """Over the last minute: the idle share of the thread's time, and each count's rise a second."""
        now = self._now()
        first = self._moments[0] if self._moments else now
        seconds = now.at - first.at
        if seconds <= 0:
            return 1.0, tuple(0.0 for _ in now.counts)
        idle = 1.0 - (now.busy_seconds - first.busy_seconds) / seconds
        rates = tuple((late - early) / seconds for late, early in zip(now.counts, first.counts, strict=False))
        return min(max(idle, 0.0), 1.0), rates
