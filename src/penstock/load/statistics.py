"""What is told of records that were sent: a line for each interval, and one for all of them, in Kafka's words."""

import time
from collections.abc import Callable

from penstock.load.measuring import Latencies

MEGABYTE = 1024 * 1024
MIN_ELAPSED_S = 0.001


class _Tally:
    """What was acknowledged since a moment; with percentiles of `expected` records."""

    def __init__(self, started_s: float, expected: int = 0) -> None:
        self.started_s = started_s
        self.size_bytes = 0
        self.latencies = Latencies(expected)

    def add(self, size_bytes: int, latency_ms: float) -> None:
        self.size_bytes += size_bytes
        self.latencies.add(latency_ms)

    def rates(self, now_s: float) -> tuple[float, float]:
        """Records and megabytes per second."""
        elapsed_s = max(now_s - self.started_s, MIN_ELAPSED_S)
        return self.latencies.count / elapsed_s, self.size_bytes / MEGABYTE / elapsed_s


class SendStatistics:
    """The first `warmup` records count in the whole, and not in the steady state, which is told beside it."""

    def __init__(
        self,
        records: int,
        *,
        warmup: int,
        interval_s: float,
        say: Callable[[str], object],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._records = records
        self._warmup = warmup
        self._interval_s = interval_s
        self._say = say
        self._clock = clock
        self._all = _Tally(clock(), records)
        self._window = _Tally(clock())
        self._steady: _Tally | None = None
        self._has_told_steady = False

    def add(self, size_bytes: int, latency_ms: float) -> None:
        if self._warmup and self._steady is None and self._all.latencies.count == self._warmup:
            self._steady = _Tally(self._clock(), self._records - self._warmup)
        self._window.add(size_bytes, latency_ms)
        self._all.add(size_bytes, latency_ms)
        if self._steady is not None:
            self._steady.add(size_bytes, latency_ms)

    def report(self) -> None:
        """A line when an interval is over in which something was acknowledged."""
        now_s = self._clock()
        window = self._window
        if now_s - window.started_s < self._interval_s or not window.latencies.count:
            return
        if self._steady is not None and not self._has_told_steady:
            self._has_told_steady = True
            self._say("In steady state.")
        records, megabytes = window.rates(now_s)
        self._say(
            f"{window.latencies.count} records sent, {records:.1f} records/sec ({megabytes:.2f} MB/sec), "
            f"{window.latencies.average_ms:.1f} ms avg latency, {window.latencies.max_ms:.1f} ms max latency."
        )
        self._window = _Tally(now_s)

    def summarise(self) -> None:
        now_s = self._clock()
        self._summarise(self._all, "", now_s)
        if self._steady is not None:
            self._summarise(self._steady, " steady state", now_s)

    def _summarise(self, tally: _Tally, which: str, now_s: float) -> None:
        records, megabytes = tally.rates(now_s)
        latencies = tally.latencies
        half, most, nearly_all, all_but_few = latencies.percentiles_ms(0.5, 0.95, 0.99, 0.999)
        self._say(
            f"{latencies.count}{which} records sent, {records:.6f} records/sec ({megabytes:.2f} MB/sec), "
            f"{latencies.average_ms:.2f} ms avg latency, {latencies.max_ms:.2f} ms max latency, "
            f"{half} ms 50th, {most} ms 95th, {nearly_all} ms 99th, {all_but_few} ms 99.9th."
        )
