"""How late the brokers' event loops came while it went on, from their metrics pages.

A broker that is paused serves nobody, so what it missed is not the loop's fault: what was counted between two looks with a pause
between them, or during one, is left out. So is what a killed broker had not told yet.
"""

import re
import threading
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import suppress
from http.client import HTTPException
from types import TracebackType
from typing import Final, Self
from urllib.request import urlopen

from penstock.testing.clusters import BrokerCluster

LISTENER_OPTION: Final = ("penstock.metrics.listener", "127.0.0.1:0")
LOOK_EVERY_S: Final = 2.0
TIMEOUT_S: Final = 5.0

_PAGE = re.compile(r"^penstock: metrics on (\S+)", re.MULTILINE)
_BUCKET = re.compile(r'^penstock_event_loop_(\w+)_seconds_bucket\{le="([^"]+)"\} (\S+)', re.MULTILINE)

LAG: Final = "lag"
OWN_LAG: Final = "own_lag"

Buckets = dict[float, int]
"""Upper bound in seconds → how many moments came at most so late."""


def read_buckets(page: str) -> dict[tuple[str, float], int]:
    """By kind of lag and bound."""
    return {(kind, float(bound)): int(float(count)) for kind, bound, count in _BUCKET.findall(page)}


def quantile(buckets: Mapping[float, int], fraction: float) -> float:
    """In seconds, linear within a bucket as Prometheus has it; above all bounds: the highest of them."""
    total = max(buckets.values(), default=0)
    below = lower = 0.0
    for bound, count in sorted(buckets.items()):
        if count >= fraction * total and count > below:
            if bound == float("inf"):
                return lower
            return lower + (bound - lower) * (fraction * total - below) / (count - below)
        below, lower = count, bound
    return 0.0


class LagWatch:
    """Looks from a thread of its own. `pauses`: how often each broker was paused or resumed so far."""

    def __init__(self, cluster: BrokerCluster, pauses: Mapping[int, int]) -> None:
        self._cluster, self._pauses = cluster, pauses
        self._counts: Counter[tuple[str, float]] = Counter()
        self._last: dict[int, tuple[dict[tuple[str, float], int], int]] = {}
        self._ends = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True, name="loop-lag")

    def buckets(self, kind: str) -> Buckets:
        return {bound: count for (counted, bound), count in self._counts.items() if counted == kind}

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ends.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._ends.wait(LOOK_EVERY_S):
            for broker_id in self._cluster.broker_ids:
                self.look(broker_id, self._fetch)

    def look(self, broker_id: int, fetch: Callable[[int], str]) -> None:
        pauses = self._pauses.get(broker_id, 0)
        now: dict[tuple[str, float], int] = {}
        with suppress(OSError, HTTPException):
            now = read_buckets(fetch(broker_id))
        if not now:  # it is paused, or there is none: the next look compares with the last that it answered
            return
        before, pauses_before = self._last.get(broker_id, ({}, pauses))
        self._last[broker_id] = now, pauses
        if self._pauses.get(broker_id, 0) != pauses_before or pauses % 2:
            return
        is_same_process = max(now.values()) >= max(before.values(), default=0)
        for bound, count in now.items():
            self._counts[bound] += count - (before.get(bound, 0) if is_same_process else 0)

    def _fetch(self, broker_id: int) -> str:
        pages = _PAGE.findall(self._cluster.log_text(broker_id))
        if not pages:
            return ""
        with urlopen(pages[-1], timeout=TIMEOUT_S) as response:
            text: str = response.read().decode()
            return text
