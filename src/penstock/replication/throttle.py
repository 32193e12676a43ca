"""How many bytes per second replication may take, where an operator has set a limit (KIP-73).

The rate is measured over a number of windows, as Kafka does: with 11 windows of a second and a limit of 5 MB/s, 5 MB may go in
the first moment; after 8 MB in the first second the rate is 8 MB/s, and nothing more goes until it has fallen to 5 MB/s, 600 ms
later. What was not used ten seconds ago may be used now, but not what was not used before the oldest window.
"""

from collections import deque
from collections.abc import Iterable
from typing import Final

UNLIMITED: Final = 2**63 - 1
EVERY_REPLICA: Final = "*"
SHORTEST_PAUSE_MS: Final = 100
"""Coming back more often would cost more than it would smooth."""


class Throttle:
    __slots__ = ("_total_bytes", "_window_count", "_window_ms", "_windows", "limit_bytes_per_second")

    def __init__(self, *, window_count: int, window_ms: int) -> None:
        self.limit_bytes_per_second = UNLIMITED
        self._window_count = window_count
        self._window_ms = window_ms
        self._windows: deque[tuple[int, int]] = deque()  # (when it began, its bytes)
        self._total_bytes = 0

    def record(self, size_bytes: int, *, now_ms: int) -> None:
        windows = self._windows
        self._forget_old(now_ms)
        self._total_bytes += size_bytes
        if windows and now_ms - windows[-1][0] < self._window_ms:
            began, so_far = windows[-1]
            windows[-1] = (began, so_far + size_bytes)
        else:
            windows.append((now_ms, size_bytes))

    def is_exceeded(self, *, now_ms: int) -> bool:
        if self.limit_bytes_per_second == UNLIMITED:
            return False
        self._forget_old(now_ms)
        return self._total_bytes * 1000 > self.limit_bytes_per_second * self._elapsed_ms(now_ms)

    def pause_ms(self, *, now_ms: int) -> int:
        """When to ask again, once the limit is exceeded."""
        self._forget_old(now_ms)
        longest_ms = self._window_count * self._window_ms
        if self.limit_bytes_per_second == 0 or not self._windows:
            return longest_ms
        due_ms = self._windows[0][0] + self._total_bytes * 1000 // self.limit_bytes_per_second
        return max(SHORTEST_PAUSE_MS, min(due_ms + 1 - now_ms, longest_ms))

    def _elapsed_ms(self, now_ms: int) -> int:
        """At least one window: a rate over less would be one of a single message."""
        return max(now_ms - self._windows[0][0], self._window_ms) if self._windows else self._window_ms

    def _forget_old(self, now_ms: int) -> None:
        windows = self._windows
        oldest_ms = now_ms - self._window_count * self._window_ms
        while windows and windows[0][0] <= oldest_ms:
            self._total_bytes -= windows.popleft()[1]


class ThrottledPartitions:
    """Of one topic on one broker, by the value of `leader.replication.throttled.replicas` or `follower.…`: `*`, or
    partition:broker pairs.
    """

    __slots__ = ("_indexes",)

    def __init__(self, pairs: Iterable[str], broker_id: int) -> None:
        self._indexes: frozenset[int] | None = None
        named = list(pairs)
        if EVERY_REPLICA not in named:
            parts = (pair.partition(":") for pair in named)
            self._indexes = frozenset(int(index) for index, _, broker in parts if int(broker) == broker_id)

    def __contains__(self, index: int) -> bool:
        return self._indexes is None or index in self._indexes

    def __bool__(self) -> bool:
        return self._indexes is None or bool(self._indexes)
