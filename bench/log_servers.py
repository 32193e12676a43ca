"""Servers with options of their own, whose files a workload may change while they are stopped."""

import os
import time
from collections.abc import Mapping
from pathlib import Path

from confluent_kafka.admin import AdminClient
from confluent_kafka.admin._config import AlterConfigOpType, ConfigEntry, ConfigResource
from confluent_kafka.admin._resource import ResourceType
from confluent_kafka.cimpl import NewTopic

from bench.log_files import SegmentFiles, put_into
from bench.servers import KAFKA, KAFKA_PROPERTIES, ServerKind
from penstock.storage import checkpoints
from penstock.testing.penstock_broker import PenstockBroker
from simulation.apache.apache_kafka import SERVER_HEAP, ApacheKafka

LogServer = ApacheKafka | PenstockBroker

READY_TIMEOUT_S = 300.0
STOP_TIMEOUT_S = 120.0
ADMIN_TIMEOUT_S = 120.0
POLL_INTERVAL_S = 0.005
# Apache Kafka says in these how fast it cleaned a log and how long it took to load one.
TALKATIVE = (
    "-Dorg.slf4j.simpleLogger.log.kafka.log=info",
    "-Dorg.slf4j.simpleLogger.log.org.apache.kafka.storage.internals.log=info",
)


def start_server(
    kind: ServerKind,
    directory: Path,
    *,
    options: Mapping[str, str] | None = None,
    wait_until_ready: bool = True,
    talkative: bool = False,
) -> LogServer:
    if kind.name == KAFKA:
        return ApacheKafka(
            directory,
            properties={**KAFKA_PROPERTIES, **(options or {})},
            heap=(*SERVER_HEAP, *(TALKATIVE if talkative else ())),
            wait_until_ready=wait_until_ready,
            ready_timeout_s=READY_TIMEOUT_S,
        )
    return PenstockBroker(
        directory, options=options, wait_until_ready=wait_until_ready, ready_timeout_s=READY_TIMEOUT_S
    )


def admin_of(server: LogServer) -> AdminClient:
    return AdminClient({"bootstrap.servers": server.bootstrap, "log_level": 4})


def create_topics(
    server: LogServer, partition_counts: Mapping[str, int], config: Mapping[str, str] | None = None
) -> None:
    admin = admin_of(server)
    for topic, partition_count in partition_counts.items():
        new = NewTopic(topic, partition_count, 1, config=dict(config or {}))
        admin.create_topics([new], operation_timeout=ADMIN_TIMEOUT_S, request_timeout=ADMIN_TIMEOUT_S)[
            topic
        ].result(ADMIN_TIMEOUT_S)


def create_filled_topics(
    kind: ServerKind,
    directory: Path,
    contents: Mapping[str, tuple[int, SegmentFiles]],
    config: Mapping[str, str],
) -> None:
    """Topics whose every partition holds the given segments; the server is stopped afterwards."""
    server = start_server(kind, directory)
    try:
        create_topics(server, {topic: count for topic, (count, _) in contents.items()}, config)
    finally:
        server.stop(timeout_s=STOP_TIMEOUT_S)
    for topic, (count, files) in contents.items():
        for index in range(count):
            put_into(server.data_dir / f"{topic}-{index}", files)


def begin_compaction(server: LogServer, topic: str) -> None:
    """Turns a topic that keeps everything into a compacted one; every closed segment of it is due then."""
    wanted = {"cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0"}
    resource = ConfigResource(
        ResourceType.TOPIC,
        topic,
        incremental_configs=[
            ConfigEntry(name, value, incremental_operation=AlterConfigOpType.SET)
            for name, value in wanted.items()
        ],
    )
    admin = admin_of(server)  # must outlive the answer
    admin.incremental_alter_configs([resource])[resource].result(ADMIN_TIMEOUT_S)


def cleaned_offsets(server: LogServer) -> dict[str, int]:
    """By "topic-partition": up to where each log is clean, from the server's own checkpoint."""
    try:
        lines = (server.data_dir / checkpoints.CLEANER_CHECKPOINT).read_text().splitlines()
    except FileNotFoundError:
        return {}
    entries = (line.split(" ") for line in lines[2:])
    return {f"{entry[0]}-{entry[1]}": int(entry[2]) for entry in entries if len(entry) == 3}


def wait_until_cleaned(server: LogServer, partition: str, offset: int, *, timeout_s: float) -> float:
    """Returns time.monotonic() of when the checkpoint said so."""
    deadline = time.monotonic() + timeout_s
    while cleaned_offsets(server).get(partition, -1) < offset:
        if not server.process.is_running or time.monotonic() > deadline:
            raise server.process.failure(f"{partition} was not compacted within {timeout_s:g} s")
        time.sleep(POLL_INTERVAL_S)
    return time.monotonic()


def cpu_seconds_with_children(pid: int) -> float:
    """Of the process and of those it started that still run: Penstock compacts in one of them."""
    total = 0.0
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            text = stat.read_text()
        except OSError:
            continue
        fields = text[text.rindex(")") + 2 :].split()
        if int(fields[1]) == pid or stat.parent.name == str(pid):
            total += int(fields[11]) + int(fields[12])
    return total / os.sysconf("SC_CLK_TCK")
