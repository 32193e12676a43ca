"""What the registry tells Prometheus of itself."""

from __future__ import annotations

from collections.abc import Callable

from penstock.registry.registry import Registry
from penstock.web.metrics import WebMetrics


def tell_numbers(registry: Registry, metrics: WebMetrics) -> None:
    from prometheus_client import Gauge

    def gauge(name: str, words: str, value: Callable[[], float]) -> None:
        Gauge(f"penstock_registry_{name}", words, registry=metrics.registry).set_function(value)

    gauge("subjects", "Subjects, soft-deleted ones included.", lambda: len(registry.state.subjects))
    gauge("schemas", "Schemas, each counted once in its context.",
          lambda: sum(map(len, registry.state.schemas.values())))  # fmt: skip
    gauge("leads", "1 where this instance leads.", lambda: int(registry.instance.leads))
    gauge("term", "The number of the present leader's term.", lambda: registry.state.term.number)
    gauge("offset", "Up to where the topic has been read.", lambda: registry.state.next_offset)
    gauge(
        "passed_over",
        "Records that were not understood, and were left alone.",
        lambda: registry.state.passed_over,
    )
