"""The clock port: wall time in milliseconds for what is written down, monotonic seconds for waiting."""

import time
from typing import Protocol


class Clock(Protocol):
    def now_ms(self) -> int: ...
    def monotonic(self) -> float: ...


class SystemClock:
    def now_ms(self) -> int:
        return time.time_ns() // 1_000_000

    def monotonic(self) -> float:
        return time.monotonic()
