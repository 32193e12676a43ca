"""librdkafka through confluent-kafka: produce a topic, then consume it, each in a process of its own."""

from bench.context import Context
from bench.measure import GIGABYTE, MEGABYTE, Row, Sample, Scale
from bench.workloads.form import ALL_SERVERS, cpu_time


class LibrdkafkaThroughput:
    server_names = ALL_SERVERS
    partition_count = 6

    def __init__(self, *, record_bytes: int) -> None:
        self.record_bytes = record_bytes
        self.name = f"librdkafka-{record_bytes}B"
        what = f"{record_bytes:,} B, {self.partition_count} partitions"
        self.about = f"confluent-kafka produces, then consumes: {what}, acks=all"
        self.rows = (
            Row("produce", f"librdkafka produce {what}", "MB/s", "higher", 1.2, "GB"),
            Row("consume", f"librdkafka consume {what}", "MB/s", "higher", 1.2, "GB"),
        )

    def rounds(self, scale: Scale) -> int:
        return scale.pick(full=3, quick=3 if self.record_bytes >= 1000 else 0)

    def run(self, context: Context) -> Sample:
        total_bytes = context.scale.pick(
            full=GIGABYTE if self.record_bytes >= 1000 else GIGABYTE // 4, quick=GIGABYTE // 5
        )
        record_count = total_bytes // self.record_bytes
        values: dict[str, float] = {}
        cpu: dict[str, float] = {}
        server = context.server()
        with context.topic(self.name, partition_count=self.partition_count) as topic:
            for part in ("produce", "consume") if context.kind.keeps_records else ("produce",):
                context.settle()
                with cpu_time(server) as spent:
                    result = context.client(
                        part, topic=topic, record_count=record_count, record_bytes=self.record_bytes
                    )
                values[part] = total_bytes / MEGABYTE / result["seconds"]
                cpu[part] = spent.seconds / (total_bytes / GIGABYTE)
        return Sample(values, cpu)
