"""`penstock mirror` between two clusters: topics, records, groups, in both directions."""

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from penstock.admin import Cluster, ConfigResource
from penstock.mirror.formats import read_checkpoint, read_heartbeat
from penstock.model.ids import TopicPartition
from tests.clients.admin import create_topic
from tests.mirror.conftest import Clusters
from tests.mirror.mirrors import (
    MirrorProcess,
    count,
    numbers,
    properties,
    read,
    read_as,
    read_from,
    until,
    write,
)


@pytest.fixture(scope="module")
def compacted(clusters: Clusters) -> str:
    """A topic with gaps, before there is a mirror."""
    configs = {
        "cleanup.policy": "compact", "segment.ms": "100", "min.cleanable.dirty.ratio": "0.0", "max.compaction.lag.ms": "100",
        "min.compaction.lag.ms": "0",
    }  # fmt: skip
    create_topic(clusters.a, "tidy", configs=configs)
    for start in (0, 50, 100):
        write(clusters.a, "tidy", range(start, start + 200), **{"batch.size": 500})

    def is_compacted() -> bool:
        write(clusters.a, "tidy", [1000])  # only what is behind it is compacted
        return count(clusters.a, "tidy") < 500

    until(is_compacted, "a compacted topic")
    with Cluster(clusters.a) as a:  # from here on both sides stay as they are
        a.configs.alter(ConfigResource.topic("tidy"), set={"cleanup.policy": "delete"})
    return "tidy"


@pytest.fixture(scope="module")
def mirror(
    clusters: Clusters, compacted: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[MirrorProcess]:
    """In both directions, exactly once."""
    given = properties(
        clusters.a, clusters.b, both_ways=True,
        exactly_once_source_support="enabled", sync_group_offsets_enabled="true",
    )  # fmt: skip
    with MirrorProcess(tmp_path_factory.mktemp("mirror"), given) as running:
        yield running
        assert running.stop() == 0


def test_records_come_with_all_that_they_have(clusters: Clusters, mirror: MirrorProcess) -> None:
    create_topic(clusters.a, "orders", partitions=3, configs={"retention.ms": "7200000"})
    write(clusters.a, "orders", range(3000), partitions=3, **{"compression.type": "zstd"})
    until(lambda: count(clusters.b, "A.orders") == 3000, "3000 records at B")
    assert read(clusters.b, "A.orders") == read(clusters.a, "orders")


def test_topics_are_made_with_their_configs_and_grow(clusters: Clusters, mirror: MirrorProcess) -> None:
    create_topic(
        clusters.a, "growing", partitions=2, configs={"cleanup.policy": "compact", "min.insync.replicas": "1"}
    )
    with Cluster(clusters.a) as a, Cluster(clusters.b) as b:

        def configs() -> dict[str, str | None]:
            found = b.configs.of_topics("A.growing").get("A.growing", {})
            return {
                name: one.value for name, one in found.items() if one.source_name == "DYNAMIC_TOPIC_CONFIG"
            }

        until(lambda: configs() == {"cleanup.policy": "compact"}, "the config at B")
        a.topics.add_partitions("growing", 4)
        a.configs.alter(
            ConfigResource.topic("growing"), set={"segment.ms": "60000"}, delete=["cleanup.policy"]
        )
        until(lambda: len(b.topics.partitions("A.growing")) == 4, "4 partitions at B")
        until(lambda: configs() == {"segment.ms": "60000"}, "the changed config at B")
    write(clusters.a, "growing", range(400), partitions=4)
    until(lambda: count(clusters.b, "A.growing") == 400, "records of the new partitions")


def test_two_directions_make_no_loop(clusters: Clusters, mirror: MirrorProcess) -> None:
    for cluster in (clusters.a, clusters.b):
        create_topic(cluster, "both")
    write(clusters.a, "both", range(100))
    write(clusters.b, "both", range(100, 300))
    until(lambda: count(clusters.b, "A.both") == 100, "A's records at B")
    until(lambda: count(clusters.a, "B.both") == 200, "B's records at A")
    with Cluster(clusters.a) as a, Cluster(clusters.b) as b:
        names = {one.name for one in (*a.topics.list(), *b.topics.list())}
    assert not [name for name in names if name.startswith(("A.B.", "B.A."))]
    assert numbers(read(clusters.a, "both")) == list(range(100))
    assert numbers(read(clusters.b, "both")) == list(range(100, 300))


def test_a_group_goes_on_at_the_other_cluster_and_reads_each_record_once(
    clusters: Clusters, mirror: MirrorProcess
) -> None:
    """Behind gaps of transactions at the source, and of the mirror's own at the target."""
    create_topic(clusters.a, "moving")
    for start in range(0, 1000, 50):
        write(clusters.a, "moving", range(start, start + 50), transactional="w")
        write(clusters.a, "moving", [10_000 + start], transactional="w", aborts=True)
    first = read_as(clusters.a, "mover", "moving", 333)
    until(lambda: count(clusters.b, "A.moving") == 1000, "1000 records at B")
    with Cluster(clusters.b) as b:
        until(lambda: b.groups.committed("mover"), "the group's offset at B")
    rest = read_as(clusters.b, "mover", "A.moving", 667)
    assert first + rest == list(range(1000))


def test_a_compacted_topic_comes_with_its_gaps_closed(
    clusters: Clusters, compacted: str, mirror: MirrorProcess
) -> None:
    until(lambda: count(clusters.b, f"A.{compacted}") == count(clusters.a, compacted), "what is left at A")
    assert read(clusters.b, f"A.{compacted}") == read(clusters.a, compacted)
    read_as(clusters.a, "tidier", compacted, 1)
    with Cluster(clusters.a) as a, Cluster(clusters.b) as b:
        a.groups.commit("tidier", {TopicPartition(compacted, 0): 390})  # in the gap before the last round
        until(lambda: b.groups.committed("tidier"), "the group's offset at B")
    found = until(lambda: read_as(clusters.b, "tidier", f"A.{compacted}", 1), "a record at B")
    assert found == [read_from(clusters.a, compacted, 390)]


def test_heartbeats_and_checkpoints_have_kafkas_form(clusters: Clusters, mirror: MirrorProcess) -> None:
    until(lambda: count(clusters.b, "A.heartbeats") > 0, "heartbeats of A at B")
    beat = read_heartbeat(*read(clusters.b, "A.heartbeats")[0][-1][:2])
    assert beat is not None
    assert (beat.source, beat.target) == ("B", "A")
    assert abs(beat.timestamp_ms / 1000 - time.time()) < 600
    create_topic(clusters.a, "watched")
    write(clusters.a, "watched", range(100))
    read_as(clusters.a, "watcher", "watched", 60)

    def found() -> bool:
        read_of = [read_checkpoint(*one[:2]) for one in read(clusters.b, "A.checkpoints.internal").get(0, [])]
        return any(
            one is not None
            and (one.group, one.topic, one.upstream, one.downstream) == ("watcher", "A.watched", 60, 60)
            for one in read_of
        )

    until(found, "a checkpoint of the group")


def test_it_tells_how_it_is(clusters: Clusters, mirror: MirrorProcess) -> None:
    line = mirror.process.wait_for_line(
        r"^A->B: \d+ topics, \d+ partitions, [\d,]+ records copied, .* lag \d+", timeout_s=20
    )
    assert "has failed" not in str(line)


def test_a_file_that_cannot_be_is_refused_in_one_line(tmp_path: Path) -> None:
    running = MirrorProcess(tmp_path, {"clusters": "A", "A.bootstrap.servers": "127.0.0.1:1"})
    assert running.process.wait(timeout_s=20) == 1
    assert running.log_path.read_text() == "penstock: clusters: name two or more, such as clusters = A, B\n"
