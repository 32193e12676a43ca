"""Throughput over TLS 1.3 with Java's and librdkafka's clients, and what it costs the broker."""

from collections.abc import Callable

from bench.context import Context
from bench.measure import GIGABYTE, MEGABYTE, Row, Sample, Scale
from bench.secured import Secured, secured
from bench.topics import temporary_topic
from bench.workloads.form import STORING_SERVERS, cpu_time
from bench.workloads.java import java_consume, java_produce

PARTITION_COUNT = 6
RECORD_BYTES = 1000
PARTS = {"produce": 1.2, "consume": 1.0}
CPU_TARGET = 0.8


class TlsThroughput:
    server_names = STORING_SERVERS

    def __init__(self, *, client: str) -> None:
        self.client = client
        self.name = f"tls-{client}"
        what = f"{RECORD_BYTES:,} B, {PARTITION_COUNT} partitions"
        self.about = f"{client} produces, then consumes over TLS 1.3: {what}, acks=all"
        label = "Java" if client == "java" else client
        self.rows = tuple(
            row
            for part, target in PARTS.items()
            for row in (
                Row(part, f"TLS 1.3, {label} {part} {what}", "MB/s", "higher", target, "GB"),
                Row(f"{part}_cpu", "… CPU of the broker per GB", "s", "lower", CPU_TARGET),
            )
        )

    def rounds(self, scale: Scale) -> int:
        return scale.pick(full=3, quick=1)

    def run(self, context: Context) -> Sample:
        total_bytes = context.scale.pick(full=GIGABYTE, quick=GIGABYTE // 5)
        values: dict[str, float] = {}
        cpu: dict[str, float] = {}
        with secured(context) as tls:
            tls.warm_up("SSL")
            with temporary_topic(tls.server, "tls-6p", partition_count=PARTITION_COUNT) as topic:
                for part in PARTS:
                    context.settle()
                    with cpu_time(tls.server) as spent:
                        values[part] = self._part(part)(tls, topic, total_bytes)
                    cpu[part] = values[f"{part}_cpu"] = spent.seconds / (total_bytes / GIGABYTE)
        return Sample(values, cpu)

    def _part(self, part: str) -> Callable[[Secured, str, int], float]:
        if self.client == "java":
            return by_java_produce if part == "produce" else by_java_consume
        return lambda tls, topic, total_bytes: by_librdkafka(tls, topic, total_bytes, part=part)


def by_java_produce(tls: Secured, topic: str, total_bytes: int) -> float:
    return java_produce(
        tls.server.address("SSL"),
        topic,
        record_count=total_bytes // RECORD_BYTES,
        record_bytes=RECORD_BYTES,
        options=tls.java("SSL"),
    )[0]


def by_java_consume(tls: Secured, topic: str, total_bytes: int) -> float:
    count = total_bytes // RECORD_BYTES
    return java_consume(tls.server.address("SSL"), topic, record_count=count, options=tls.java("SSL"))


def by_librdkafka(tls: Secured, topic: str, total_bytes: int, *, part: str) -> float:
    result = tls.context.client(
        part,
        server=tls.server,
        topic=topic,
        record_count=total_bytes // RECORD_BYTES,
        record_bytes=RECORD_BYTES,
        client=tls.librdkafka("SSL"),
    )
    return total_bytes / MEGABYTE / float(result["seconds"])
