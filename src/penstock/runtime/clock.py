"""The clock port: wall time in milliseconds for what is written down, monotonic seconds for waiting.

`monotonic` stands still while the machine is suspended, `since_boot` does not: a promise that others count must be counted by it.
"""

import time
from typing import Final, Protocol

_SINCE_BOOT: Final = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)  # only Linux has the former


class Clock(Protocol):
    def now_ms(self) -> int: ...
    def monotonic(self) -> float: ...
    def since_boot(self) -> float: ...


class SystemClock:
    def now_ms(self) -> int:
        return time.time_ns() // 1_000_000

    def monotonic(self) -> float:
        return time.monotonic()

    def since_boot(self) -> float:
        return time.clock_gettime(_SINCE_BOOT)
