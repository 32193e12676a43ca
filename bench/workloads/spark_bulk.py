"""Spark reading whole topics and writing many rows: ours beside Spark's own connector."""

from bench.clients.produce_json import json_checksum
from bench.context import Context
from bench.measure import Row, Sample, Scale
from bench.servers import CONNECTOR, SPARK, TUNED_CONNECTOR
from penstock.testing.processes import ProcessFailed

PARTITIONS = 6
WARM_UP_RUNS = 2  # the JVM compiles, our worker loads what was compiled
RUNS = 3
MILLION = 1_000_000
PROGRAM_TIMEOUT_S = 240


class SparkRead:
    """`targets` by side: how many times as fast as that one ours has to be."""

    def __init__(
        self, *, record_bytes: int, record_count: int, targets: dict[str, float], what: str = "values"
    ) -> None:
        self.record_bytes = record_bytes
        self.record_count = record_count
        self.what = what
        self.name = "spark-read-json" if what == "json" else f"spark-read-{record_bytes}B"
        done = "parsed into typed columns" if what == "json" else "sum of lengths"
        values = "JSON values of" if what == "json" else "records of"
        label = f"batch read of {values} {record_bytes:,} B, {done}"
        self.server_names = (*targets, SPARK)
        self.about = (
            f"{label}: {record_count / MILLION:g} million in {PARTITIONS} partitions, local[2]; mean of {RUNS} after "
            f"{WARM_UP_RUNS} to warm up"
        )
        self.rows = tuple(
            Row(
                f"rows_beside_{side}",
                label + {CONNECTOR: "", TUNED_CONNECTOR: ", beside the connector tuned"}[side],
                "million rows/s",
                "higher",
                target,
                "million rows",
                sides=(side, SPARK),
            )
            for side, target in targets.items()
        )

    def rounds(self, scale: Scale) -> int:
        return scale.pick(full=3, quick=0)

    def checksum(self) -> int:
        if self.what == "json":
            return json_checksum(self.record_count)
        return self.record_bytes * self.record_count

    def run(self, context: Context) -> Sample:
        topic = context.kept_topic(
            self.name,
            partition_count=PARTITIONS,
            filler="produce_json" if self.what == "json" else "produce",
            record_count=self.record_count,
            record_bytes=self.record_bytes,
        )
        context.settle()
        result = context.client(
            "spark_read",
            timeout_s=PROGRAM_TIMEOUT_S,
            side=context.kind.name,
            topic=topic,
            what=self.what,
            record_count=self.record_count,
            warm_up_reads=WARM_UP_RUNS,
            reads=RUNS,
        )
        if result["checked"] != self.checksum():
            raise ProcessFailed(f"a sum of {result['checked']} was read, not {self.checksum()}")
        millions = self.record_count / MILLION
        own = [row.key for row in self.rows if context.kind.name in row.sides]
        return Sample(
            dict.fromkeys(own, millions / result["seconds"]),
            dict.fromkeys(own, result["cpu_seconds"] / millions),
            {"first_s": result["first_s"]},
        )


class SparkWrite:
    name = "spark-write"
    server_names = (CONNECTOR, SPARK)

    def __init__(self, *, row_count: int = 600_000, record_bytes: int = 100) -> None:
        self.row_count = row_count
        self.record_bytes = record_bytes
        what = "sink, exactly once beside the connector's at least once"
        self.about = (
            f"{what}: {row_count:,} rows of {record_bytes} B that Spark has in memory, to {PARTITIONS} partitions, "
            f"local[2]; mean of {RUNS} after {WARM_UP_RUNS} to warm up"
        )
        self.rows = (
            Row("rows", what, "million rows/s", "higher", 0.5, "million rows", sides=(CONNECTOR, SPARK)),
        )

    def rounds(self, scale: Scale) -> int:
        return scale.pick(full=3, quick=0)

    def run(self, context: Context) -> Sample:
        with context.topic(f"{self.name}-{context.kind.name}", partition_count=PARTITIONS) as topic:
            context.settle()
            result = context.client(
                "spark_write",
                timeout_s=PROGRAM_TIMEOUT_S,
                side=context.kind.name,
                topic=topic,
                row_count=self.row_count,
                record_bytes=self.record_bytes,
                warm_up_writes=WARM_UP_RUNS,
                writes=RUNS,
            )
            context.client("consume", topic=topic, record_count=result["row_count"])
        millions = self.row_count / MILLION
        return Sample(
            {"rows": millions / result["seconds"]},
            {"rows": result["cpu_seconds"] / millions},
            {"first_s": result["first_s"]},
        )
