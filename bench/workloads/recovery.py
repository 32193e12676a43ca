"""The start after kill -9: every byte of the log is read and checked."""

import re
from pathlib import Path

from bench.context import Context
from bench.log_files import put_into, write_segments
from bench.log_servers import create_topics, start_server
from bench.measure import GIGABYTE, MEGABYTE, Row, Sample, Scale
from bench.raw import wait_for_first_ack
from bench.servers import KAFKA
from bench.workloads.form import STORING_SERVERS

TOPIC = "recovered"
SEGMENT_BYTES = 1024 * 1024 * 1024  # the default of segment.bytes
TIMEOUT_S = 300.0
EMPTY_STARTS = 2
KAFKA_LINE = rf"Completed load of Log\(.*topic={TOPIC}.* in (\d+)\s*ms"


class RecoveryScan:
    name = "recovery"
    server_names = STORING_SERVERS

    def __init__(self, *, total_bytes: int = 2 * GIGABYTE) -> None:
        self.total_bytes = total_bytes
        what = f"{total_bytes / GIGABYTE:g} GB, one partition, in the page cache"
        self.about = (
            f"{what}, no recovery point. Penstock: kill -9 to first acknowledged record, less that of an empty "
            "log; Apache Kafka: what its log says loading took"
        )
        self.rows = (Row("mb_per_s", f"recovery scan after kill -9, {what}", "MB/s", "higher", 1.0),)

    def rounds(self, scale: Scale) -> int:
        return scale.pick(full=2, quick=0)

    def run(self, context: Context) -> Sample:
        with context.fresh_directory() as directory:
            files = write_segments(
                directory / "files", total_bytes=self.total_bytes, segment_bytes=SEGMENT_BYTES
            )
            home = directory / "server"
            server = start_server(context.kind, home)
            try:
                create_topics(server, {TOPIC: 1}, {"retention.ms": "-1"})
            finally:
                server.kill()
            context.settle()
            empty_s = min(self._start(context, home)[0] for _ in range(EMPTY_STARTS))
            put_into(server.data_dir / f"{TOPIC}-0", files)
            context.settle()
            full_s, said = self._start(context, home)
        seconds = difference_s = full_s - empty_s
        extra = {"empty_start_s": empty_s, "start_s": full_s, "difference_s": difference_s}
        if context.kind.name == KAFKA:
            # Its start takes seconds that vary by more than the scan takes, so its own, favourable figure counts.
            match = re.search(KAFKA_LINE, said)
            if match is None:
                raise ValueError("Apache Kafka's log does not say how long it took to load the log")
            seconds = int(match[1]) / 1000
        return Sample({"mb_per_s": files.size_bytes / MEGABYTE / seconds}, extra=extra)

    def _start(self, context: Context, home: Path) -> tuple[float, str]:
        """Seconds from the process's creation to a record's acknowledgement; then it is killed."""
        server = start_server(context.kind, home, wait_until_ready=False, talkative=True)
        try:
            acknowledged_at = wait_for_first_ack("127.0.0.1", server.port, TOPIC, timeout_s=TIMEOUT_S)
            return acknowledged_at - server.process.started_at, server.process.log_text()
        finally:
            server.kill()
