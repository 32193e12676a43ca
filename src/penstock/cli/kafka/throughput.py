"""How fast a tool may send: so many records per second on the whole, however unevenly they leave."""

import math
import time
from collections.abc import Callable

# A shorter pause costs more than it is worth: records may be early by as much.
MIN_PAUSE_S = 0.002
# A pause in librdkafka does not see signals: it is ended this often to look.
MAX_PAUSE_S = 0.1


def _never() -> bool:
    return False


class Throughput:
    """`per_s` below 0 is no limit; with 0 nothing follows the first record."""

    def __init__(self, per_s: float, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._per_s = per_s
        self._clock = clock
        self._started_s = clock()

    def delay_s(self, sent: int) -> float:
        """How long after so many records the next one is due."""
        if self._per_s < 0:
            return 0.0
        if self._per_s == 0:
            return math.inf if sent else 0.0
        return self._started_s + sent / self._per_s - self._clock()

    def wait(self, sent: int, pause: Callable[[float], object], is_over: Callable[[], bool] = _never) -> None:
        """`pause` may return early, as a client's poll does when it has something to tell."""
        while not is_over():
            delay_s = self.delay_s(sent)
            if delay_s < MIN_PAUSE_S:
                return
            pause(min(delay_s, MAX_PAUSE_S))
