"""Resident memory of a server that idles, and after a gigabyte went in and out."""

import time

from bench.context import Context
from bench.measure import GIGABYTE, MEGABYTE, Row, Sample, Scale
from bench.topics import temporary_topic
from bench.workloads.form import STORING_SERVERS

RECORD_BYTES = 1000
SETTLE_S = 3.0


class ResidentMemory:
    name = "memory"
    about = (
        f"VmRSS {SETTLE_S:g} s after start, and after 1 GB produced and consumed (confluent-kafka, 1,000 B)"
    )
    server_names = STORING_SERVERS
    rows = (
        Row("idle_mb", "resident memory, idle", "MB", "lower", 0.15),
        Row("loaded_mb", "resident memory after 1 GB in and out", "MB", "lower", 0.3),
    )

    def rounds(self, scale: Scale) -> int:
        return scale.pick(full=3, quick=1)

    def run(self, context: Context) -> Sample:
        record_count = GIGABYTE // RECORD_BYTES
        with context.fresh_directory() as directory:
            server = context.kind.start(directory)
            try:
                time.sleep(SETTLE_S)
                idle = server.usage()
                with temporary_topic(server, "memory-6p", partition_count=6) as topic:
                    for client in ("produce", "consume"):
                        context.client(
                            client,
                            server=server,
                            topic=topic,
                            record_count=record_count,
                            record_bytes=RECORD_BYTES,
                        )
                    loaded = server.usage()
            finally:
                server.stop()
        return Sample(
            {"idle_mb": idle.resident_bytes / MEGABYTE, "loaded_mb": loaded.resident_bytes / MEGABYTE},
            extra={"peak_mb": loaded.peak_resident_bytes / MEGABYTE},
        )
