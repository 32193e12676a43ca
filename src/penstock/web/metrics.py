"""The numbers of an HTTP service for Prometheus: requests by route, method and status, and how long they took."""

from __future__ import annotations

from typing import Any, Final

BUCKETS_S: Final = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)


class WebMetrics:
    def __init__(self, service: str) -> None:
        from prometheus_client import (
            CollectorRegistry,
            Counter,
            Gauge,
            GCCollector,
            Histogram,
            PlatformCollector,
            ProcessCollector,
        )

        from penstock import __version__

        self.registry = CollectorRegistry()
        """A service adds its own here."""
        ProcessCollector(registry=self.registry)
        PlatformCollector(registry=self.registry)
        GCCollector(registry=self.registry)
        build = Gauge("penstock_build_info", "The version of Penstock.", ("version",), registry=self.registry)
        build.labels(__version__).set(1)
        # The name of a service may have a hyphen (sql-server), that of a metric must not.
        prefix = f"penstock_{service.replace('-', '_')}_http"
        self._requests = Counter(
            f"{prefix}_requests",
            "Requests that were answered.",
            ("method", "path", "status"),
            registry=self.registry,
        )
        self._seconds = Histogram(
            f"{prefix}_request_seconds", "How long they took.", ("method", "path"), buckets=BUCKETS_S,
            registry=self.registry,
        )  # fmt: skip
        self.in_flight = Gauge(
            f"{prefix}_requests_in_flight", "Requests being served.", registry=self.registry
        )
        # The table of routes bounds both: a path that nobody has is counted under one name.
        self._counters: dict[tuple[str, str, int], Any] = {}
        self._timers: dict[tuple[str, str], Any] = {}

    def count(self, method: str, path: str, status: int, seconds: float) -> None:
        counter = self._counters.get((method, path, status))
        if counter is None:
            counter = self._counters[method, path, status] = self._requests.labels(method, path, str(status))
        counter.inc()
        timer = self._timers.get((method, path))
        if timer is None:
            timer = self._timers[method, path] = self._seconds.labels(method, path)
        timer.observe(seconds)

    def page(self) -> tuple[bytes, str]:
        from prometheus_client import CONTENT_TYPE_LATEST, generate_latest

        return generate_latest(self.registry), CONTENT_TYPE_LATEST
