"""The client of the bench that a quota holds back, with a clock and a producer that need no time."""

from collections.abc import Callable

import pytest

from bench.clients import limited

RECORD_BYTES = 1000
BURST, RATE = 50, 5


class Clock:
    now_s = 0.0

    def perf_counter(self) -> float:
        return self.now_s


def test_the_burst_of_a_quota_is_not_in_the_rate_that_is_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock()

    class Producer:
        """In its first second ten times as much is acknowledged as in each later one."""

        def __init__(self, options: dict[str, Callable[..., None]]) -> None:
            self._acknowledge = options["on_delivery"]

        def list_topics(self, topic: str, *, timeout: float) -> None:
            pass

        def produce(self, topic: str, value: bytes) -> None:
            clock.now_s += 1 / (BURST if clock.now_s < 1 - 1e-9 else RATE)
            self._acknowledge(None, None)

        def poll(self, timeout: float) -> None:
            pass

        def flush(self, timeout: float) -> None:
            pass

    monkeypatch.setattr(limited, "time", clock)
    monkeypatch.setattr(limited, "Producer", Producer)
    done = limited.produce({}, "orders", warm_up_s=2.05, seconds=4, record_bytes=RECORD_BYTES)
    assert done.steady == pytest.approx(4 * RATE * RECORD_BYTES, abs=RECORD_BYTES)
    assert done.with_burst == pytest.approx((BURST + 3 * RATE) * RECORD_BYTES, abs=RECORD_BYTES)
