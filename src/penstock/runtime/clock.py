"""The clock port: wall time in milliseconds for what is stored, monotonic seconds for waiting.

`monotonic` stops while the machine is suspended, and `since_boot` does not. Use it for timeouts that other machines count too.
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
