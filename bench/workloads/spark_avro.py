"""Spark with values in Avro and a registry, beside an Arrow UDF over fastavro on the same source and sink."""

from bench.clients.avro_orders import checksum
from bench.context import Context
from bench.measure import Row, Sample, Scale
from bench.servers import ARROW_UDF, SPARK
from penstock.testing.processes import ProcessFailed

PARTITIONS = 6
WARM_UP_RUNS = 2
RUNS = 3
MILLION = 1_000_000
PROGRAM_TIMEOUT_S = 300


class SparkAvro:
    """`what`: read or write."""

    server_names = (ARROW_UDF, SPARK)

    def __init__(self, what: str, *, record_count: int, target: float) -> None:
        self.what = what
        self.record_count = record_count
        self.name = f"spark-{what}-avro"
        label = (
            "batch read of Avro values of 10 fields, 120 B, into typed columns, beside an Arrow UDF over fastavro"
            if what == "read"
            else "exactly-once write of rows of 10 fields as Avro, 120 B, beside an Arrow UDF over fastavro"
        )
        self.about = (
            f"{label}: {record_count:,} in {PARTITIONS} partitions, local[2]; mean of {RUNS} "
            f"after {WARM_UP_RUNS} to warm up"
        )
        self.rows = (
            Row("rows", label, "million rows/s", "higher", target, "million rows", sides=(ARROW_UDF, SPARK)),
        )

    def rounds(self, scale: Scale) -> int:
        return scale.pick(full=3, quick=0)

    def run(self, context: Context) -> Sample:
        if self.what == "read":
            topic = context.kept_topic(
                self.name, partition_count=PARTITIONS, filler="produce_avro", record_count=self.record_count
            )
            result = self._run(context, topic)
            if result["checked"] != checksum(self.record_count):
                raise ProcessFailed(
                    f"a sum of {result['checked']} was read, not {checksum(self.record_count)}"
                )
        else:
            with context.topic(f"{self.name}-{context.kind.name}", partition_count=PARTITIONS) as topic:
                result = self._run(context, topic)
                context.client("consume", topic=topic, record_count=result["record_count"])
        millions = self.record_count / MILLION
        return Sample(
            {"rows": millions / result["seconds"]},
            {"rows": result["cpu_seconds"] / millions},
            {"first_s": result["first_s"]},
        )

    def _run(self, context: Context, topic: str) -> dict[str, float]:
        context.settle()
        result: dict[str, float] = context.client(
            "spark_avro",
            timeout_s=PROGRAM_TIMEOUT_S,
            side=context.kind.name,
            topic=topic,
            what=self.what,
            record_count=self.record_count,
            warm_up_runs=WARM_UP_RUNS,
            runs=RUNS,
        )
        return result
