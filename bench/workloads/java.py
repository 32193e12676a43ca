"""Apache's own Java perf tools: produce a topic, then consume it."""

import re
from collections.abc import Mapping

from bench.context import Context
from bench.measure import GIGABYTE, MEGABYTE, Row, Sample, Scale
from bench.workloads.form import ALL_SERVERS, cpu_time
from penstock.testing.processes import ProcessFailed
from simulation.apache.java import java_tool

TOOL_TIMEOUT_S = 180.0
WARM_UP_SHARE = 5  # a fifth of the records warms the client's JVM up and is not counted
BATCH_BYTES = {100: 16_384, 1000: 65_536}  # the first is the client's default
QUICK = {(100, 6, "none"), (1000, 6, "none")}
MEBIBYTE = 1024 * 1024


class JavaThroughput:
    server_names = ALL_SERVERS

    def __init__(self, *, record_bytes: int, partition_count: int, compression: str) -> None:
        self.record_bytes = record_bytes
        self.partition_count = partition_count
        self.compression = compression
        self.name = f"java-{record_bytes}B-{partition_count}p-{compression}"
        plural = "s" if partition_count > 1 else ""
        what = f"{record_bytes:,} B, {partition_count} partition{plural}, {compression}"
        self.about = f"ProducerPerformance, then ConsumerPerformance: {what}, acks=all, idempotent"
        self.rows = (
            Row("produce", f"Java produce {what}", "MB/s", "higher", 1.2, "GB"),
            Row("consume", f"Java consume {what}", "MB/s", "higher", 1.2, "GB"),
        )

    def rounds(self, scale: Scale) -> int:
        in_quick = (self.record_bytes, self.partition_count, self.compression) in QUICK
        return scale.pick(full=3, quick=2 if in_quick else 0)

    def run(self, context: Context) -> Sample:
        total_bytes = context.scale.pick(
            full=GIGABYTE * 3 // 5 if self.record_bytes >= 1000 else GIGABYTE // 5,
            quick=GIGABYTE // 5 if self.record_bytes >= 1000 else GIGABYTE // 20,
        )
        record_count = total_bytes // self.record_bytes
        gigabytes = total_bytes / GIGABYTE
        server = context.server()
        with context.topic(self.name, partition_count=self.partition_count) as topic:
            context.settle()
            with cpu_time(server) as produce_cpu:
                steady, whole, p99_ms = java_produce(
                    server.bootstrap,
                    topic,
                    record_count=record_count,
                    record_bytes=self.record_bytes,
                    compression=self.compression,
                )
            values, cpu = {"produce": steady}, {"produce": produce_cpu.seconds / gigabytes}
            extra = {"produce_with_warm_up": whole, "produce_p99_ms": p99_ms}
            if context.kind.keeps_records:
                with cpu_time(server) as consume_cpu:
                    values["consume"] = java_consume(server.bootstrap, topic, record_count=record_count)
                cpu["consume"] = consume_cpu.seconds / gigabytes
        return Sample(values, cpu, extra)


def java_consume(
    bootstrap: str, topic: str, *, record_count: int, options: Mapping[str, str] | None = None
) -> float:
    """Megabytes per second while fetching, without the time that joining the group took."""
    said = java_tool(
        "org.apache.kafka.tools.ConsumerPerformance",
        *("--bootstrap-server", bootstrap, "--topic", topic, "--num-records", str(record_count)),
        *("--timeout", "30000", "--hide-header"),
        *(
            word
            for name, value in (options or {}).items()
            for word in ("--command-property", f"{name}={value}")
        ),
        timeout_s=TOOL_TIMEOUT_S,
    )
    fields = said.stdout.strip().splitlines()[-1].split(", ") if said.stdout.strip() else []
    if len(fields) != 10 or int(fields[4]) < record_count:
        raise ProcessFailed(f"ConsumerPerformance said:\n{said.stdout}\n{said.stderr}")
    return float(fields[8]) * MEBIBYTE / MEGABYTE


def java_produce(
    bootstrap: str,
    topic: str,
    *,
    record_count: int,
    record_bytes: int,
    compression: str = "none",
    options: Mapping[str, str] | None = None,
) -> tuple[float, float, float]:
    """Megabytes per second after the warm-up, with the warm-up, and the 99th percentile after it, in ms."""
    said = java_tool(
        "org.apache.kafka.tools.ProducerPerformance",
        *("--topic", topic, "--num-records", str(record_count), "--record-size", str(record_bytes)),
        *("--throughput", "-1", "--warmup-records", str(record_count // WARM_UP_SHARE)),
        *("--command-property", f"bootstrap.servers={bootstrap}", "acks=all"),
        *(f"batch.size={BATCH_BYTES[record_bytes]}", f"compression.type={compression}"),
        *(f"{name}={value}" for name, value in (options or {}).items()),
        timeout_s=TOOL_TIMEOUT_S,
    )
    # Failed records are only printed; the tool ends with 0 all the same.
    if "Exception" in said.stdout + said.stderr:
        raise ProcessFailed(f"ProducerPerformance met errors:\n{said.stdout[-2000:]}\n{said.stderr[-2000:]}")
    whole = re.search(r"^\d+ records sent, ([\d.]+) records/sec", said.stdout, re.MULTILINE)
    steady = re.search(
        r"^\d+ steady state records sent, ([\d.]+) records/sec.* (\d+) ms 99th", said.stdout, re.MULTILINE
    )
    if whole is None or steady is None:
        raise ProcessFailed(f"ProducerPerformance said:\n{said.stdout}\n{said.stderr}")
    megabytes = record_bytes / MEGABYTE
    return float(steady[1]) * megabytes, float(whole[1]) * megabytes, float(steady[2])
