"""A log directory fails and its broker lives: others lead what was in there, and everybody knows which replicas are offline."""

import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Producer
from kazoo.client import KazooClient

from penstock.metadata.znodes import LOG_DIR_EVENTS
from penstock.testing.clusters import create_topic, wait_until, wait_until_in_sync
from penstock.testing.penstock_cluster import PenstockCluster
from tests.cluster.conftest import StartCluster
from tests.crash.plain_client import read_all
from tests.hostile.raw_client import RawClient
from tests.log.brokers import homes, metadata_of

PATIENCE_S = 60.0
FULL_BYTES = 1 << 20
VALUE = bytes(50_000)
PARTITIONS = 4
FAILING, OTHER = 1, 2


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of its own with hardly any room."""
    path = tmp_path / "small"
    path.mkdir()
    options = f"size={FULL_BYTES}"
    subprocess.run(["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(path)], check=True, timeout=10)
    yield path / "logs"
    subprocess.run(["umount", "-l", str(path)], check=True, timeout=10)


def start(start_cluster: StartCluster, *directories: Path) -> PenstockCluster:
    """Two brokers, the first with these directories, and a topic that is led by it."""
    paths = ",".join(str(path) for path in directories)
    cluster = start_cluster(
        brokers=2,
        options={"offsets.topic.replication.factor": "2"},
        options_of={FAILING: {"log.dirs": paths}},
    )
    create_topic(cluster.bootstrap, "orders", assignment=[[FAILING, OTHER]] * PARTITIONS)
    wait_until_in_sync(cluster.bootstrap, ["orders"])
    return cluster


def partitions_in(cluster: PenstockCluster, path: Path) -> set[int]:
    with RawClient(cluster.port(FAILING)) as client:
        return {index for index, home in homes(client, "orders").items() if home == str(path)}


def produce(cluster: PenstockCluster, partition: int, count: int) -> None:
    """Every record is acknowledged in the end, by whoever leads then."""
    producer = Producer({"bootstrap.servers": cluster.bootstrap, "acks": "all", "log_level": 0})
    refused: list[str] = []
    for _ in range(count):
        producer.produce(
            "orders",
            VALUE,
            partition=partition,
            on_delivery=lambda error, _: refused.append(str(error)) if error is not None else None,
        )
        producer.poll(0)
    assert producer.flush(PATIENCE_S) == 0
    assert refused == []


def wait_until_offline(cluster: PenstockCluster, lost: set[int]) -> None:
    """Every broker says so of these partitions, and of no others."""

    def is_known(broker_id: int) -> bool:
        with RawClient(cluster.port(broker_id)) as client:
            found = metadata_of(client, "orders")
        return all(
            (each.leader_id, list(each.isr_nodes), list(each.offline_replicas))
            == ((OTHER, [OTHER], [FAILING]) if each.partition_index in lost else (FAILING, [1, 2], []))
            for each in found
        )

    for broker_id in cluster.broker_ids:
        wait_until(lambda id=broker_id: is_known(id), f"broker {broker_id} to know", timeout_s=PATIENCE_S)  # type: ignore[misc]


def test_a_disk_that_fills_up_costs_its_replicas_and_nothing_else(
    start_cluster: StartCluster, tmp_path: Path, small_disk: Path
) -> None:
    cluster = start(start_cluster, tmp_path / "large", small_disk)
    lost = partitions_in(cluster, small_disk)
    assert 0 < len(lost) < PARTITIONS
    full = min(lost)
    produce(cluster, full, 40)
    wait_until_offline(cluster, lost)
    produce(cluster, full, 1)
    for kept in set(range(PARTITIONS)) - lost:
        produce(cluster, kept, 1)
    values = read_all(cluster.bootstrap, "orders", partition=full)
    assert values == [VALUE] * len(values)
    assert len(values) >= 41
    zookeeper = KazooClient(cluster.zookeeper.address)
    zookeeper.start()
    try:
        assert zookeeper.get_children(LOG_DIR_EVENTS) == [], "the notification was taken and is still there"
    finally:
        zookeeper.stop()
        zookeeper.close()
    # With room again, the replicas are what they were.
    cluster.stop(FAILING)
    options = f"remount,size={16 * FULL_BYTES}"
    subprocess.run(["mount", "-o", options, str(small_disk.parent)], check=True, timeout=10)
    cluster.start(FAILING)
    wait_until_in_sync(cluster.bootstrap, ["orders"])
    with RawClient(cluster.port(OTHER)) as client:
        assert [list(each.offline_replicas) for each in metadata_of(client, "orders")] == [[]] * PARTITIONS


def test_a_broker_that_starts_without_one_of_its_directories_serves_the_others(
    start_cluster: StartCluster, tmp_path: Path
) -> None:
    cluster = start(start_cluster, tmp_path / "a", tmp_path / "b")
    lost = partitions_in(cluster, tmp_path / "b")
    assert 0 < len(lost) < PARTITIONS
    for index in range(PARTITIONS):
        produce(cluster, index, 1)
    cluster.stop(FAILING)
    shutil.move(tmp_path / "b", tmp_path / "away")
    (tmp_path / "b").write_text("no directory")
    cluster.start(FAILING)
    with RawClient(cluster.port(OTHER)) as client:
        wait_until(
            lambda: (
                {i for i, each in enumerate(metadata_of(client, "orders")) if each.offline_replicas} == lost
            ),
            "the offline replicas to be known",
            timeout_s=PATIENCE_S,
        )
    for index in range(PARTITIONS):
        produce(cluster, index, 1)
        assert len(read_all(cluster.bootstrap, "orders", partition=index)) == 2
