"""Many partitions: the memory that each takes, and the start of a server that holds 4,000 of them."""

import socket
import time

from bench.context import Context
from bench.log_files import template_batch, write_segments
from bench.log_servers import LogServer, create_filled_topics, create_topics, start_server
from bench.measure import MEGABYTE, Row, Sample, Scale
from bench.raw import (
    NO_ERROR,
    Refused,
    produce_error,
    produce_request,
    receive_frame,
    record_batch,
    wait_for_first_ack,
)
from bench.servers import PENSTOCK
from bench.workloads.form import STORING_SERVERS

KIBIBYTE = 1024
SETTLE_S = 3.0
ANSWER_TIMEOUT_S = 60.0
START_TIMEOUT_S = 300.0
STOP_TIMEOUT_S = 120.0
PARTITIONS_PER_TOPIC = 500
BATCH_BYTES = len(template_batch()[0])


class MemoryPerPartition:
    name = "partition-memory"
    server_names = (PENSTOCK,)

    def __init__(self, *, first_count: int = 100, more_count: int = 2_000) -> None:
        self.first_count = first_count
        self.more_count = more_count
        self.about = (
            f"VmRSS with {first_count:,} and with {more_count:,} more partitions, a record in each; not of "
            "Apache Kafka, whose heap has its size from the start"
        )
        self.rows = (
            Row("kib", "memory per open partition", "KiB", "lower", 20, bounds="value"),
            Row("restarted_kib", "memory per partition after a restart", "KiB", "lower", None),
        )

    def rounds(self, scale: Scale) -> int:
        return scale.pick(full=2, quick=0)

    def run(self, context: Context) -> Sample:
        with context.fresh_directory() as directory:
            with start_server(context.kind, directory) as server:
                self._add(server, "first", self.first_count)
            with start_server(context.kind, directory) as server:
                before = self._resident_bytes(server)
                self._add(server, "more", self.more_count)
                opened = self._resident_bytes(server)
            with start_server(context.kind, directory) as server:
                restarted = self._resident_bytes(server)
        return Sample(
            {
                "kib": (opened - before) / self.more_count / KIBIBYTE,
                "restarted_kib": (restarted - before) / self.more_count / KIBIBYTE,
            },
            extra={"before_kib": before / KIBIBYTE, "opened_kib": opened / KIBIBYTE},
        )

    def _resident_bytes(self, server: LogServer) -> int:
        time.sleep(SETTLE_S)
        return server.usage().resident_bytes

    def _add(self, server: LogServer, topic: str, partition_count: int) -> None:
        """Creates the partitions and has a record acknowledged by each."""
        create_topics(server, {topic: partition_count})
        batch = record_batch(b"one", timestamp_ms=time.time_ns() // 1_000_000)
        with socket.create_connection(("127.0.0.1", server.port), timeout=ANSWER_TIMEOUT_S) as sock:
            for partition in range(partition_count):
                sock.sendall(produce_request(topic, batch, partition=partition))
                if (code := produce_error(receive_frame(sock), topic)) != NO_ERROR:
                    raise Refused(f"{topic}-{partition} answered with error {code}")


class StartWithPartitions:
    name = "start-partitions"
    server_names = STORING_SERVERS

    def __init__(self, *, partition_count: int = 4_000, segment_count: int = 3) -> None:
        self.partition_count = partition_count
        self.segment_count = segment_count
        what = f"{partition_count:,} partitions of {segment_count} segments"
        self.about = (
            f"{what}, stopped cleanly: process created → a record acknowledged by one of them (raw socket)"
        )
        self.rows = (
            Row("seconds", f"start with {what} after a clean stop", "s", "lower", 0.3, "start"),
            Row("resident_mb", f"resident memory with {what}", "MB", "lower", None),
        )

    def rounds(self, scale: Scale) -> int:
        return scale.pick(full=2, quick=0)

    def run(self, context: Context) -> Sample:
        topic_count = -(-self.partition_count // PARTITIONS_PER_TOPIC)
        per_topic = self.partition_count // topic_count
        with context.fresh_directory() as directory:
            # The last of the segments is the one that write_segments adds for the appends.
            files = write_segments(
                directory / "files",
                total_bytes=(self.segment_count - 1) * BATCH_BYTES,
                distinct_keys=1000,
                segment_bytes=BATCH_BYTES,
            )
            home = directory / "server"
            contents = {f"many-{number}": (per_topic, files) for number in range(topic_count)}
            create_filled_topics(context.kind, home, contents, {"retention.ms": "-1"})
            # A first start makes the index files; it and the clean stop after it are not counted.
            start_server(context.kind, home).stop(timeout_s=STOP_TIMEOUT_S)
            context.settle()
            server = start_server(context.kind, home, wait_until_ready=False)
            try:
                acknowledged_at = wait_for_first_ack(
                    "127.0.0.1", server.port, f"many-{topic_count - 1}", timeout_s=START_TIMEOUT_S
                )
                seconds = acknowledged_at - server.process.started_at
                usage = server.usage()
                self._check(server, topic_count)
            finally:
                server.stop(timeout_s=STOP_TIMEOUT_S)
        return Sample(
            {"seconds": seconds, "resident_mb": usage.resident_bytes / MEGABYTE},
            {"seconds": usage.cpu_seconds},
        )

    def _check(self, server: LogServer, topic_count: int) -> None:
        partition_count = len(list(server.data_dir.glob("many-*/00000000000000000000.index")))
        if partition_count < self.partition_count // topic_count * topic_count:
            raise ValueError(f"{partition_count} partitions have their first segment and its index")
