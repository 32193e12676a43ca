"""Producers that wait for every acknowledgement, linger 0: through librdkafka, and as bare sockets."""

from bench.context import Context
from bench.measure import Row, Sample, Scale
from bench.workloads.form import ALL_SERVERS, cpu_time

CLIENT_MODULES = {"librdkafka": "synchronous", "raw": "synchronous_raw"}
CLIENT_LABELS = {"librdkafka": "librdkafka", "raw": "raw sockets"}


class SynchronousProducers:
    server_names = ALL_SERVERS

    def __init__(self, *, producer_count: int, client: str) -> None:
        self.producer_count = producer_count
        self.client = client
        self.name = f"sync-{producer_count}-{client}"
        who = f"{producer_count} synchronous producer{'s' if producer_count > 1 else ''}"
        label = f"{who} ({CLIENT_LABELS[client]})"
        self.about = f"{label}: 100 B, acks=all, linger 0, each waits for its acknowledgement"
        self.rows = (
            Row("p50_ms", f"{label}, p50", "ms", "lower", None),
            # Bare sockets are no client that anybody uses: their rows show the servers alone and have no target.
            Row(
                "p99_ms",
                f"{label}, p99",
                "ms",
                "lower",
                0.5 if client == "librdkafka" else None,
                "1,000 requests",
            ),
        )

    def rounds(self, scale: Scale) -> int:
        return scale.pick(full=3, quick=3 if self.client == "librdkafka" else 0)

    def run(self, context: Context) -> Sample:
        seconds = context.scale.pick(full=3, quick=1)
        server = context.server()
        with context.topic(self.name, partition_count=1) as topic:
            context.settle()
            with cpu_time(server) as spent:
                result = context.client(
                    CLIENT_MODULES[self.client],
                    topic=topic,
                    producer_count=self.producer_count,
                    warm_up_s=0.5,
                    seconds=seconds,
                )
        # The CPU time includes the warm-up, which ran at about the same rate.
        request_count = result["requests_per_s"] * (seconds + 0.5)
        return Sample(
            {"p50_ms": result["p50_ms"], "p99_ms": result["p99_ms"]},
            {"p99_ms": spent.seconds / request_count * 1000},
            {"requests_per_s": result["requests_per_s"]},
        )
