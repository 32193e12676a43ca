"""The cleaner: the same segment files, compacted by each server."""

import re
import time

from bench.context import Context
from bench.log_files import DISTINCT_KEYS, RECORD_BYTES, SegmentFiles, write_segments
from bench.log_servers import (
    LogServer,
    begin_compaction,
    cpu_seconds_with_children,
    create_filled_topics,
    start_server,
    wait_until_cleaned,
)
from bench.measure import GIGABYTE, MEGABYTE, Row, Sample, Scale
from bench.workloads.form import STORING_SERVERS

TOPIC, WARM_UP_TOPIC = "compacted", "warm-up"
SEGMENT_BYTES = 256 * 1024 * 1024
TIMEOUT_S = 300.0
# A log is looked for ten times a second, so that the wait for the cleaner is no part of what it takes.
OPTIONS = {"log.cleaner.backoff.ms": "100", "log.retention.check.interval.ms": "3600000"}
# Nothing may be deleted or compacted before the clock runs.
TOPIC_CONFIG = {"cleanup.policy": "delete", "retention.ms": "-1", "segment.bytes": str(SEGMENT_BYTES)}
KAFKA_LINE = r"([\d.,]+) MB of log processed in ([\d.,]+) seconds"


class Compaction:
    name = "compaction"
    server_names = STORING_SERVERS

    def __init__(
        self,
        *,
        total_bytes: int = 2 * GIGABYTE,
        distinct_keys: int = DISTINCT_KEYS,
        warm_up_bytes: int = GIGABYTE // 10,
    ) -> None:
        self.total_bytes = total_bytes
        self.distinct_keys = distinct_keys
        self.warm_up_bytes = warm_up_bytes
        what = f"{total_bytes / GIGABYTE:g} GB of {RECORD_BYTES} B records, {distinct_keys:,} keys"
        self.about = (
            f"one partition, {what}, same files: from the change to cleanup.policy=compact until the cleaner's "
            f"checkpoint says done, after a warm-up of {warm_up_bytes / MEGABYTE:g} MB"
        )
        self.rows = (Row("mb_per_s", f"compaction of {what}", "MB/s", "higher", 1.0, "GB"),)

    def rounds(self, scale: Scale) -> int:
        return scale.pick(full=2, quick=0)

    def run(self, context: Context) -> Sample:
        with context.fresh_directory() as directory:
            files = write_segments(
                directory / "files",
                total_bytes=self.total_bytes,
                distinct_keys=self.distinct_keys,
                segment_bytes=SEGMENT_BYTES,
            )
            warm_up_files = write_segments(
                directory / "warm-up-files",
                total_bytes=self.warm_up_bytes,
                distinct_keys=self.distinct_keys,
                segment_bytes=SEGMENT_BYTES,
            )
            home = directory / "server"
            contents = {TOPIC: (1, files), WARM_UP_TOPIC: (1, warm_up_files)}
            create_filled_topics(context.kind, home, contents, TOPIC_CONFIG)
            with start_server(context.kind, home, options=OPTIONS, talkative=True) as server:
                # The JVM compiles, and Penstock's worker process starts and loads what is compiled already.
                self._compact(server, WARM_UP_TOPIC, warm_up_files)
                context.settle()
                cpu_before = cpu_seconds_with_children(server.pid)
                seconds = self._compact(server, TOPIC, files)
                cpu_seconds = cpu_seconds_with_children(server.pid) - cpu_before
                said = server.process.log_text()
                bytes_after = sum(
                    path.stat().st_size for path in (server.data_dir / f"{TOPIC}-0").glob("*.log")
                )
        extra = {"seconds": seconds, "size_after_mb": bytes_after / MEGABYTE}
        if own := re.findall(KAFKA_LINE, said):
            extra["own_seconds"] = float(own[-1][1].replace(",", ""))
        return Sample(
            {"mb_per_s": files.size_bytes / MEGABYTE / seconds},
            {"mb_per_s": cpu_seconds / (files.size_bytes / GIGABYTE)},
            extra,
        )

    def _compact(self, server: LogServer, topic: str, files: SegmentFiles) -> float:
        began = time.monotonic()
        begin_compaction(server, topic)
        return wait_until_cleaned(server, f"{topic}-0", files.active_base_offset, timeout_s=TIMEOUT_S) - began
