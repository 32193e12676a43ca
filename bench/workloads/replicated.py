"""Three brokers with three replicas of everything: how fast they take records, and restarts that no client should notice."""

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bench.clusters import ON_ZOOKEEPER, start_cluster
from bench.context import ROOT, Context
from bench.measure import GIGABYTE, Row, Sample, Scale
from bench.servers import KAFKA_3, KRAFT_3, PENSTOCK_3
from bench.workloads.java import java_produce
from penstock.testing.clusters import BrokerCluster, create_topic, wait_until_in_sync
from penstock.testing.processes import ProcessFailed, start_process
from simulation.apache.java import java_command

PARTITION_COUNT = 6
WARM_UP_BYTES = GIGABYTE // 20
LOAD_RATE = 1000
LOAD_END_TIMEOUT_S = 180
REGULAR_CONFIG = {"min.insync.replicas": "2"}


class ReplicatedThroughput:
    server_names = (KAFKA_3, KRAFT_3, PENSTOCK_3)

    def __init__(self, *, record_bytes: int) -> None:
        self.record_bytes = record_bytes
        self.name = f"replicated-{record_bytes}B"
        what = f"{record_bytes:,} B, {PARTITION_COUNT} partitions, RF 3, acks=all"
        self.about = f"ProducerPerformance on three brokers: {what}, idempotent"
        self.rows = tuple(
            Row(
                *(f"produce_{theirs}", f"Java produce {what}, beside {label}", "MB/s", "higher", 1.2, "GB"),
                sides=(theirs, PENSTOCK_3),
            )
            for theirs, label in ((KRAFT_3, "4.3 (KRaft)"), (KAFKA_3, "3.9 (ZooKeeper)"))
        )

    def rounds(self, scale: Scale) -> int:
        return scale.pick(full=3, quick=0)

    def run(self, context: Context) -> Sample:
        total_bytes = GIGABYTE * 2 // 5 if self.record_bytes >= 1000 else GIGABYTE // 8
        with (
            context.fresh_directory() as directory,
            start_cluster(
                context.kind, directory, options={"log.segment.delete.delay.ms": "1000"}
            ) as cluster,
        ):
            self._produce(cluster, "warm-up", WARM_UP_BYTES)
            context.settle()
            before = cluster.cpu_seconds()
            steady, whole, p99_ms = self._produce(cluster, "measured", total_bytes)
            cpu = (cluster.cpu_seconds() - before) / (total_bytes / GIGABYTE)
        keys = [row.key for row in self.rows]
        return Sample(
            dict.fromkeys(keys, steady),
            dict.fromkeys(keys, cpu),
            {"produce_with_warm_up": whole, "produce_p99_ms": p99_ms},
        )

    def _produce(self, cluster: BrokerCluster, topic: str, total_bytes: int) -> tuple[float, float, float]:
        create_topic(cluster.bootstrap, topic, partitions=PARTITION_COUNT, config=REGULAR_CONFIG)
        wait_until_in_sync(cluster.bootstrap, [topic])
        return java_produce(
            cluster.bootstrap,
            topic,
            record_count=total_bytes // self.record_bytes,
            record_bytes=self.record_bytes,
        )


class RollingRestart:
    name = "rolling-restart"
    server_names = ON_ZOOKEEPER
    about = (
        "each broker stopped (SIGTERM), started and waited for until it is in sync, under a Java producer, a "
        f"librdkafka producer of {LOAD_RATE:,} records/s and a consumer, all with their default retries"
    )
    sides = (KAFKA_3, PENSTOCK_3)
    rows = (
        Row(
            *("errors", "rolling restart under load, errors seen by clients", "errors", "lower", 0),
            bounds="value",
            sides=sides,
        ),
        Row("slowest_ms", "… the slowest acknowledgement (librdkafka)", "ms", "lower", None, sides=sides),
    )

    def rounds(self, scale: Scale) -> int:
        return scale.pick(full=3, quick=0)

    def run(self, context: Context) -> Sample:
        topics = ["by-librdkafka", "by-java"]
        with (
            context.fresh_directory() as directory,
            start_cluster(context.kind, directory / "cluster") as cluster,
        ):
            for topic in topics:
                create_topic(cluster.bootstrap, topic, partitions=PARTITION_COUNT, config=REGULAR_CONFIG)
            wait_until_in_sync(cluster.bootstrap, topics)
            with (
                java_load(cluster.bootstrap, topics[1], directory / "java.log") as java_errors,
                steady_load(cluster.bootstrap, topics[0]) as counts,
            ):
                for broker_id in cluster.broker_ids:
                    cluster.stop(broker_id)
                    cluster.start(broker_id)
                    wait_until_in_sync(cluster.bootstrap, topics)
        errors = counts["errors"] + counts["missing"] + len(java_errors)
        extra = {**counts, "java_errors": len(java_errors)}
        return Sample({"errors": errors, "slowest_ms": counts["slowest_ms"]}, extra=extra)


@contextmanager
def steady_load(bootstrap: str, topic: str) -> Iterator[dict[str, float]]:
    """bench/clients/steady_load.py during the block; what it saw is known when the block has ended."""
    options = {"bootstrap": bootstrap, "topic": topic, "rate": LOAD_RATE}
    client = subprocess.Popen(
        [sys.executable, "-m", "bench.clients.steady_load", json.dumps(options)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=ROOT,
    )
    counts: dict[str, float] = {}
    try:
        yield counts
        said, complaint = client.communicate(timeout=LOAD_END_TIMEOUT_S)  # closes its standard input
        if client.returncode:
            raise ProcessFailed(f"client steady_load ended with {client.returncode}:\n{complaint[-3000:]}")
        counts.update(json.loads(said.splitlines()[-1]))
    finally:
        client.kill()
        client.wait()


@contextmanager
def java_load(bootstrap: str, topic: str, log_path: Path) -> Iterator[list[str]]:
    """Apache's producer during the block; the failures that it printed are known when the block has ended."""
    command = java_command(
        "org.apache.kafka.tools.ProducerPerformance",
        *("--topic", topic, "--num-records", "100000000", "--record-size", "100"),
        *("--throughput", str(LOAD_RATE), "--command-property", f"bootstrap.servers={bootstrap}"),
        jvm_options=("-Xmx256M", "-Dorg.slf4j.simpleLogger.defaultLogLevel=error"),
    )
    failures: list[str] = []
    with start_process(command, name="ProducerPerformance", log_path=log_path) as producer:
        producer.wait_for_line("records sent")  # its first report: it is at work
        yield failures
        if not producer.is_running:
            raise producer.failure(f"ended with {producer.exit_code}")
        failures += [line for line in producer.log_text().splitlines() if "Exception" in line]
