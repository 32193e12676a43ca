"""The alarms of all shards of a host, on one timer.

Time is monotonic here (it starts from the wall clock): when somebody changes the wall clock, sessions must not end.
"""

from asyncio import AbstractEventLoop, TimerHandle
from collections.abc import Callable, Iterable

from penstock.coordination.alarms import AlarmHeap
from penstock.coordination.form import Alarm, AlarmKey
from penstock.runtime.clock import Clock


class ShardAlarms:
    def __init__(
        self, loop: AbstractEventLoop, clock: Clock, ring: Callable[[int, AlarmKey, int], None]
    ) -> None:
        """`ring` gets the shard's index, the alarm and the time."""
        self._loop = loop
        self._ring = ring
        self._heap = AlarmHeap()
        self._timer: TimerHandle | None = None
        self._timer_at_ms = 0
        self._monotonic = clock.monotonic
        self._clock_start_ms = clock.now_ms() - int(self._monotonic() * 1000)

    def now_ms(self) -> int:
        return self._clock_start_ms + int(self._monotonic() * 1000)

    def set(self, index: int, alarms: Iterable[Alarm]) -> None:
        is_earlier = False
        for key, at_ms in alarms:
            self._heap.set(index, key, at_ms)
            if at_ms is not None and (self._timer is None or at_ms < self._timer_at_ms):
                is_earlier = True
        if is_earlier:  # which is rare: most push back a session that has just been heard of
            self._set_timer()

    def drop(self, index: int) -> None:
        self._heap.drop(index)

    def close(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _set_timer(self) -> None:
        next_ms = self._heap.next_at_ms()
        if next_ms is None or (self._timer is not None and self._timer_at_ms <= next_ms):
            return
        if self._timer is not None:
            self._timer.cancel()
        self._timer_at_ms = next_ms
        self._timer = self._loop.call_later(max(next_ms - self.now_ms(), 0) / 1000, self._on_timer)

    def _on_timer(self) -> None:
        self._timer = None
        now_ms = self.now_ms()
        try:
            for index, key in self._heap.due(now_ms):
                self._ring(index, key, now_ms)
        finally:  # a mistake with one alarm must not be the end of all
            self._set_timer()
