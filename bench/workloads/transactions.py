"""Transactions: one producer, one transaction after the other."""

from bench.context import Context
from bench.measure import Row, Sample, Scale
from bench.workloads.form import STORING_SERVERS, cpu_time


class TransactionalProducer:
    server_names = STORING_SERVERS
    warm_up_s = 3.0  # a JVM that has seen a hundred transactions is still compiling

    def __init__(self, *, records_per_transaction: int = 100, partition_count: int = 6) -> None:
        self.records_per_transaction = records_per_transaction
        self.partition_count = partition_count
        self.name = f"transactions-{records_per_transaction}"
        label = f"librdkafka transactions of {records_per_transaction} records"
        self.about = (
            f"{label} of 100 B, {partition_count} partitions, one producer (confluent-kafka, its defaults), one "
            "transaction after the other"
        )
        self.rows = (
            Row("commits_per_s", label, "commits/s", "higher", 1.0, "1,000 transactions"),
            Row("p99_ms", f"{label}, begin to committed, p99", "ms", "lower", None),
        )

    def rounds(self, scale: Scale) -> int:
        return scale.pick(full=3, quick=0)

    def run(self, context: Context) -> Sample:
        server = context.server()
        with context.topic(self.name, partition_count=self.partition_count) as topic:
            context.settle()
            with cpu_time(server) as spent:
                result = context.client(
                    "transactions",
                    topic=topic,
                    transactional_id=topic,
                    records_per_transaction=self.records_per_transaction,
                    warm_up_s=self.warm_up_s,
                    seconds=3,
                )
            # What was committed can be read; a consumer of librdkafka sees no other transactions.
            context.client(
                "consume", topic=topic, record_count=result["commit_count"] * self.records_per_transaction
            )
        return Sample(
            {key: result[key] for key in ("commits_per_s", "p99_ms")},
            {"commits_per_s": spent.seconds / result["commit_count"] * 1000},
            {"p50_ms": result["p50_ms"]},
        )
