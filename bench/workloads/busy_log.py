"""A paced producer while the same server compacts and a reader replays cold files; and while it does neither."""

import json
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

from bench.context import ROOT, WARM_UP_RECORDS, Context
from bench.log_files import SegmentFiles, write_segments
from bench.log_servers import (
    LogServer,
    begin_compaction,
    cleaned_offsets,
    create_filled_topics,
    create_topics,
    start_server,
)
from bench.measure import GIGABYTE, MEGABYTE, Row, Sample, Scale
from bench.workloads.compaction import OPTIONS, SEGMENT_BYTES, TOPIC_CONFIG
from bench.workloads.form import STORING_SERVERS
from penstock.testing.processes import ProcessFailed

RATE = 1000
RECORD_BYTES = 100
WARM_UP_S = 2
PACED, COMPACTED, REPLAYED = "paced", "compacted", "replayed"
REPLAY_END_TIMEOUT_S = 60


class BusyLog:
    name = "busy-log"
    server_names = STORING_SERVERS

    def __init__(
        self,
        *,
        log_bytes: int = 2 * GIGABYTE,
        replayed_bytes: int = 5 * GIGABYTE,
        compacted_partitions: int = 8,
        seconds: int = 20,
    ) -> None:
        self.log_bytes = log_bytes
        self.replayed_bytes = replayed_bytes
        self.compacted_partitions = compacted_partitions
        self.seconds = seconds
        what = f"compaction and a cold replay of {replayed_bytes / GIGABYTE:g} GB"
        self.about = (
            f"a producer of {RATE:,} records/s (100 B, acks=all, linger 0), alone and during {what} (raw socket, "
            "unpaced) over and over"
        )
        producer = f"produce at {RATE:,}/s"
        self.rows = (
            Row("quiet_p99_ms", f"{producer}, quiet, p99", "ms", "lower", None),
            Row("busy_p99_ms", f"{producer} during {what}, p99", "ms", "lower", None),
            Row("busy_to_quiet", f"{producer}, p99 during {what} ÷ quiet", "×", "lower", 4, bounds="value"),
            Row(
                "busy_timer_ms", f"a process that only sleeps, during {what}: late, p99", "ms", "lower", None
            ),
        )

    def rounds(self, scale: Scale) -> int:
        return scale.pick(full=3, quick=0)

    def run(self, context: Context) -> Sample:
        with context.fresh_directory() as directory:
            files = write_segments(
                directory / "files", total_bytes=self.log_bytes, segment_bytes=SEGMENT_BYTES
            )
            home = directory / "server"
            replayed = write_segments(
                directory / "replayed-files", total_bytes=self.replayed_bytes, segment_bytes=SEGMENT_BYTES
            )
            # More partitions than are compacted in the time: all are the same bytes, which the disk has once.
            contents = {COMPACTED: (self.compacted_partitions, files), REPLAYED: (1, replayed)}
            create_filled_topics(context.kind, home, contents, TOPIC_CONFIG)
            with start_server(context.kind, home, options=OPTIONS) as server:
                create_topics(server, {PACED: 1})
                context.client(
                    "produce",
                    server=server,
                    topic=PACED,
                    record_count=WARM_UP_RECORDS,
                    record_bytes=RECORD_BYTES,
                )
                context.settle()
                quiet = self._produce(context, server)
                context.settle()
                with replaying(server, replayed) as replay:
                    begin_compaction(server, COMPACTED)
                    with ThreadPoolExecutor(1) as beside:
                        # On a machine whose host holds it back, a stall may be nobody's: this one sees those too.
                        timer = beside.submit(context.client, "timer", server=server, seconds=self.seconds)
                        busy = self._produce(context, server)
                    compacted = sum(name.startswith(f"{COMPACTED}-") for name in cleaned_offsets(server))
        return Sample(
            {
                "quiet_p99_ms": quiet["p99_ms"],
                "busy_p99_ms": busy["p99_ms"],
                "busy_to_quiet": busy["p99_ms"] / quiet["p99_ms"],
                "busy_timer_ms": timer.result()["p99_ms"],
            },
            extra={
                "quiet_p999_ms": quiet["p999_ms"],
                "busy_p999_ms": busy["p999_ms"],
                "busy_timer_p999_ms": timer.result()["p999_ms"],
                "replayed_mb": replay["bytes"] / MEGABYTE,
                # Where it is all of them, compaction ended before the producer did.
                "compacted_partitions": compacted,
            },
        )

    def _produce(self, context: Context, server: LogServer) -> Any:
        return context.client(
            "paced", server=server, topic=PACED, rate=RATE, warm_up_s=WARM_UP_S, seconds=self.seconds
        )


@contextmanager
def replaying(server: LogServer, files: SegmentFiles) -> Iterator[dict[str, float]]:
    """A reader in a process of its own; what it read is known when the block has ended."""
    held = server.data_dir / f"{REPLAYED}-0"
    options = {
        "bootstrap": server.bootstrap,
        "topic": REPLAYED,
        "end_offset": files.end_offset,
        "files": [str(held / path.name) for path in files.paths],
    }
    reader = subprocess.Popen(
        [sys.executable, "-m", "bench.clients.replay", json.dumps(options)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=ROOT,
    )
    result: dict[str, float] = {}
    try:
        yield result
        said, complaint = reader.communicate(timeout=REPLAY_END_TIMEOUT_S)  # closes its standard input
        if reader.returncode:
            raise ProcessFailed(f"client replay ended with {reader.returncode}:\n{complaint[-3000:]}")
        result.update(json.loads(said.splitlines()[-1]))
    finally:
        reader.kill()
        reader.wait()
