"""Mirroring beside MirrorMaker 2: a filled topic of one broker copied to another broker."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bench.connect_workers import HEAP
from bench.context import Context
from bench.measure import Row, Sample, Scale
from bench.servers import CONNECT, KAFKA_CONNECT
from bench.topics import create_topic
from penstock.testing.penstock_broker import PenstockBroker
from penstock.testing.processes import RunningProcess, start_process
from simulation.apache.java import java_command

SIDES = (KAFKA_CONNECT, CONNECT)
RECORD_BYTES = 1000
PARTITIONS = 6
SKIPPED = 1 / 3  # of the records, to warm up
GIGABYTE = 1e9
TIMEOUT_S = 300.0
PROPERTIES = {
    "A->B.enabled": "true",
    "emit.heartbeats.enabled": "false",
    "offset.storage.partitions": "1",
    **{
        f"{name}replication.factor": "1"
        for name in ("", "offset-syncs.topic.", "checkpoints.topic.", "heartbeats.topic.", "offset.storage.",
                     "status.storage.", "config.storage.")
    },
}  # fmt: skip


class Mirroring:
    name = "mirror"
    server_names = SIDES
    about = (
        f"records of {RECORD_BYTES:,} B in {PARTITIONS} partitions copied to another broker of Penstock's, beside MirrorMaker 2; "
        "the first third is not counted"
    )
    rows = (
        Row("rate", "mirror", "MB/s", "higher", 1.2, sides=SIDES),
        Row("cpu", "… mirror, CPU", "s per GB", "lower", 0.8, sides=SIDES),
    )

    def rounds(self, scale: Scale) -> int:
        return scale.pick(full=3, quick=1)

    def run(self, context: Context) -> Sample:
        count = context.scale.pick(full=900_000, quick=300_000)
        with (
            context.topic(f"mirror-{context.kind.name}", partition_count=PARTITIONS) as topic,
            context.fresh_directory() as directory,
            PenstockBroker(directory) as target,
        ):
            context.client(
                "produce", topic=topic, record_count=count, record_bytes=RECORD_BYTES, compression="none"
            )
            create_topic(target, f"A.{topic}", partition_count=PARTITIONS)
            context.settle()
            with (
                mirror(context, directory, topic, target.bootstrap) as process,
                context.background_client(
                    "stream_drain",
                    server=target,
                    timeout_s=TIMEOUT_S,
                    topic=f"A.{topic}",
                    skipped=int(count * SKIPPED),
                    expected=count,
                    pid=process.pid,
                ) as client,
            ):
                client.said()
                done = client.result()
        size_bytes = done["records"] * RECORD_BYTES
        return Sample(
            {"rate": size_bytes / 1e6 / done["seconds"], "cpu": done["cpu_seconds"] / size_bytes * GIGABYTE},
            {},
        )


@contextmanager
def mirror(context: Context, directory: Path, topic: str, target: str) -> Iterator[RunningProcess]:
    """It runs, and copies this topic."""
    given = {
        "clusters": "A,B", "A.bootstrap.servers": context.server().bootstrap, "B.bootstrap.servers": target, "topics": topic,
        **PROPERTIES,
    }  # fmt: skip
    file = directory / "mm2.properties"
    file.write_text("".join(f"{name}={value}\n" for name, value in given.items()))
    if context.kind.name == KAFKA_CONNECT:
        command = java_command("org.apache.kafka.connect.mirror.MirrorMaker", str(file), jvm_options=HEAP)
    else:
        command = [sys.executable, "-m", "penstock", "mirror", str(file), "--status", "0"]
    process = start_process(command, name="mirror", log_path=directory / "mirror.log")
    try:
        yield process
    finally:
        process.stop(timeout_s=TIMEOUT_S)
