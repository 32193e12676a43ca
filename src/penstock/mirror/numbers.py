"""What `penstock mirror` tells Prometheus: how much each flow has copied, at which rate, and how far it is behind.

The rates have the names that MirrorMaker 2's have behind the usual JMX exporters; they are those since the last look.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from typing import Any

from penstock.mirror.flows import Flow
from penstock.mirror.progress import Progress, Reached

LABELS = ["source", "target"]


class MirrorNumbers:
    """A collector, asked at every scrape."""

    def __init__(self, flows: Sequence[Flow]) -> None:
        self._flows = [(flow.source, flow.target) for flow in flows if flow.is_enabled]
        self._before: dict[tuple[str, str], tuple[float, Reached]] = {}

    def collect(self) -> Iterator[Any]:
        from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily

        prefix = "kafka_connect_mirror_mirrorsourceconnector"
        records = CounterMetricFamily("penstock_mirror_records", "Records copied.", labels=LABELS)
        size_bytes = CounterMetricFamily("penstock_mirror_bytes", "Bytes copied.", labels=LABELS)
        lag = GaugeMetricFamily("penstock_mirror_lag", "Records that are not copied yet.", labels=LABELS)
        topics = GaugeMetricFamily("penstock_mirror_topics", "Topics that are copied.", labels=LABELS)
        partitions = GaugeMetricFamily("penstock_mirror_partitions", "Partitions of them.", labels=LABELS)
        record_rate = GaugeMetricFamily(f"{prefix}_record_rate", "Records a second.", labels=LABELS)
        byte_rate = GaugeMetricFamily(f"{prefix}_byte_rate", "Bytes a second.", labels=LABELS)
        for flow in self._flows:
            now_s, now = time.monotonic(), Progress.of(*flow).now()
            before_s, before = self._before.get(flow, (now_s, now))
            self._before[flow] = now_s, now
            seconds = max(now_s - before_s, 0.001)
            for family, number in (
                (records, now.records),
                (size_bytes, now.size_bytes),
                (lag, now.lag),
                (topics, now.topics),
                (partitions, now.partitions),
                (record_rate, (now.records - before.records) / seconds),
                (byte_rate, (now.size_bytes - before.size_bytes) / seconds),
            ):
                family.add_metric(list(flow), number)
        yield from (records, size_bytes, lag, topics, partitions, record_rate, byte_rate)


def serve(flows: Sequence[Flow], port: int) -> int:
    """On all addresses, until the process ends; the port, which is a free one for 0."""
    from prometheus_client import CollectorRegistry, GCCollector, ProcessCollector, start_http_server

    registry = CollectorRegistry()
    ProcessCollector(registry=registry)
    GCCollector(registry=registry)
    registry.register(MirrorNumbers(flows))
    server, _ = start_http_server(port, registry=registry)
    return int(server.server_port)
