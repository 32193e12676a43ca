"""Between Apache Kafka and Penstock, in both directions; and Apache's MirrorMaker where ours was, and the reverse."""

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from penstock.admin import Cluster
from penstock.testing.penstock_broker import PenstockBroker
from penstock.testing.processes import start_process
from simulation.apache.apache_kafka import ApacheKafka
from simulation.apache.java import QUICK_OPTIONS, java_command, java_executable, libs_directory
from tests.clients.admin import create_topic
from tests.mirror.conftest import OPTIONS, Clusters
from tests.mirror.mirrors import (
    MirrorProcess,
    count,
    numbers,
    properties,
    read,
    read_as,
    until,
    write,
)

TRANSLATE = """
import java.time.Duration; import java.util.Map;
import org.apache.kafka.connect.mirror.RemoteClusterUtils;
public class Translate {
  public static void main(String[] given) throws Exception {
    Map<String, Object> config = Map.of("bootstrap.servers", given[0]);
    RemoteClusterUtils.translateOffsets(config, "A", given[1], Duration.ofSeconds(5))
      .forEach((place, offset) -> System.out.println(place + " " + offset.offset()));
  }
}
"""
FOREVER = {"log.retention.hours": "-1"}  # tests write records of long ago
MIRROR_MAKER = {
    "replication.factor": "1",
    "offset-syncs.topic.replication.factor": "1",
    "checkpoints.topic.replication.factor": "1",
    "heartbeats.topic.replication.factor": "1",
    "offset.storage.replication.factor": "1",
    "status.storage.replication.factor": "1",
    "config.storage.replication.factor": "1",
}


@pytest.fixture(scope="module")
def mixed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Clusters]:
    """A is Apache Kafka, B is Penstock."""
    with (
        ApacheKafka(tmp_path_factory.mktemp("A"), quick=True, properties=FOREVER) as a,
        PenstockBroker(tmp_path_factory.mktemp("B"), options=OPTIONS) as b,
    ):
        yield Clusters(a.bootstrap, b.bootstrap)
        assert "Traceback" not in b.log_path.read_text(), "the broker logged a bug of its own"


def test_records_and_groups_come_from_kafka_and_go_there(mixed: Clusters, tmp_path: Path) -> None:
    for cluster in (mixed.a, mixed.b):
        create_topic(cluster, "orders", partitions=2, configs={"retention.ms": "86400000"})
    for start in range(0, 1000, 200):
        write(
            mixed.a,
            "orders",
            range(start, start + 200),
            partitions=2,
            transactional="w",
            **{"compression.type": "lz4"},
        )
    write(mixed.a, "orders", [9999], transactional="w", aborts=True)
    write(mixed.b, "orders", range(1000, 1500), partitions=2)
    read_as(mixed.a, "mover", "orders", 700)
    given = properties(
        mixed.a, mixed.b, both_ways=True,
        exactly_once_source_support="enabled", sync_group_offsets_enabled="true",
    )  # fmt: skip
    with MirrorProcess(tmp_path, given) as mirror:
        until(lambda: count(mixed.b, "A.orders") == 1000, "Kafka's records at Penstock")
        until(lambda: count(mixed.a, "B.orders") == 500, "Penstock's records at Kafka")
        with Cluster(mixed.b) as b:
            until(lambda: len(b.groups.committed("mover")) == 2, "the group's offsets at Penstock")
        assert read(mixed.b, "A.orders") == read(mixed.a, "orders")
        assert read(mixed.a, "B.orders") == read(mixed.b, "orders")
        assert len(read_as(mixed.b, "mover", "A.orders", 300)) == 300
        said = translated_by_kafka(tmp_path, mixed.b, "mover")
        assert mirror.stop() == 0
    with Cluster(mixed.a) as a, Cluster(mixed.b) as b:
        assert a.configs.of_topics("B.orders")["B.orders"]["retention.ms"].value == "86400000"
        assert {place.topic for place in b.groups.committed("mover")} == {"A.orders"}
    assert {line.partition(" ")[0] for line in said} == {"A.orders-0", "A.orders-1"}


def test_mirror_maker_goes_on_where_ours_has_ended_and_the_reverse(mixed: Clusters, tmp_path: Path) -> None:
    create_topic(mixed.a, "taken", partitions=2)
    given = properties(mixed.a, mixed.b, topics="taken", emit_heartbeats_enabled="false") | MIRROR_MAKER
    write(mixed.a, "taken", range(100), partitions=2)
    with MirrorProcess(tmp_path, given) as mirror:
        until(lambda: count(mixed.b, "A.taken") == 100, "records by ours")
        assert mirror.stop() == 0
        write(mixed.a, "taken", range(100, 200), partitions=2)
        command = java_command("org.apache.kafka.connect.mirror.MirrorMaker", str(mirror.file), quick=True)
        theirs = start_process(command, name="MirrorMaker", log_path=tmp_path / "theirs.log")
        try:
            until(lambda: count(mixed.b, "A.taken") >= 200, "records by MirrorMaker", deadline_s=90)
        finally:
            theirs.stop(timeout_s=20)
        write(mixed.a, "taken", range(200, 300), partitions=2)
        mirror.again()
        until(lambda: count(mixed.b, "A.taken") >= 300, "records by ours again")
        assert mirror.stop() == 0
    assert numbers(read(mixed.b, "A.taken")) == list(range(300))


def translated_by_kafka(directory: Path, bootstrap: str, group: str) -> list[str]:
    """What a Java program of somebody who moves would get."""
    source = directory / "Translate.java"
    source.write_text(TRANSLATE)
    command = [
        java_executable(),
        *QUICK_OPTIONS,
        "-cp",
        f"{libs_directory()}/*",
        str(source),
        bootstrap,
        group,
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    return done.stdout.splitlines()
