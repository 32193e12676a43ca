"""From produce to consume at 1,000 records a second."""

from bench.context import Context
from bench.measure import Row, Sample, Scale
from bench.workloads.form import STORING_SERVERS, cpu_time

RATE = 1000
WARM_UP_S = 1


class ProduceToConsume:
    name = "latency"
    about = f"produce to consume at {RATE:,} records/s of 100 B, confluent-kafka on both sides, linger 0"
    server_names = STORING_SERVERS
    rows = (
        Row("p50_ms", f"produce to consume at {RATE:,}/s, p50", "ms", "lower", None),
        Row("p99_ms", f"produce to consume at {RATE:,}/s, p99", "ms", "lower", 0.5, "1,000 records"),
        Row("p999_ms", f"produce to consume at {RATE:,}/s, p99.9", "ms", "lower", None),
    )

    def rounds(self, scale: Scale) -> int:
        return 3

    def run(self, context: Context) -> Sample:
        seconds = context.scale.pick(full=10, quick=2)
        server = context.server()
        with context.topic(self.name, partition_count=1) as topic:
            context.settle()
            with cpu_time(server) as spent:
                result = context.client(
                    "latency", topic=topic, rate=RATE, warm_up_s=WARM_UP_S, seconds=seconds
                )
        thousands = RATE * (seconds + WARM_UP_S) / 1000
        return Sample(
            {key: result[key] for key in ("p50_ms", "p99_ms", "p999_ms")},
            {"p99_ms": spent.seconds / thousands},
        )
