"""Logs that are not a broker's any more when it comes back: their topic was deleted, or their replica is elsewhere by now."""

from pathlib import Path

from confluent_kafka.admin import AdminClient
from kazoo.client import KazooClient

from penstock.metadata.znodes import TOPICS
from penstock.testing.clusters import create_topic, describe, wait_until, wait_until_in_sync
from penstock.testing.penstock_cluster import PenstockCluster
from penstock.wire.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from tests.cluster.conftest import StartCluster
from tests.hostile.raw_client import RawClient

PATIENCE_S = 60.0
AWAY = 1


def logs(directory: Path) -> set[str]:
    return {path.name for path in directory.iterdir() if path.is_dir() and not path.name.endswith("-delete")}


def move(cluster: PenstockCluster, topic: str, replicas: list[int]) -> None:
    wanted = ReassignablePartition(partition_index=0, replicas=replicas)
    request = AlterPartitionReassignmentsRequest(
        topics=[ReassignableTopic(name=topic, partitions=[wanted])], timeout_ms=10_000
    )
    with RawClient(cluster.port(2)) as client:
        response = client.ask(request, 0)
    assert response.error_code == response.responses[0].partitions[0].error_code == 0
    wait_until(
        lambda: sorted(describe(cluster.bootstrap).topics[topic].partitions[0].isrs) == replicas,
        f"{topic} on {replicas}",
        timeout_s=PATIENCE_S,
    )


def test_a_broker_that_returns_removes_what_was_deleted_or_moved_away_meanwhile(
    cluster: PenstockCluster,
) -> None:
    for topic in ("strays-deleted", "strays-moved", "strays-kept"):
        create_topic(cluster.bootstrap, topic, assignment=[[AWAY, 2]])
    wait_until_in_sync(cluster.bootstrap, ["strays-deleted", "strays-moved", "strays-kept"])
    cluster.stop(AWAY)
    held = logs(cluster.data_dir(AWAY))
    assert held >= {"strays-deleted-0", "strays-moved-0", "strays-kept-0"}
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap, "log_level": 0})
    admin.delete_topics(["strays-deleted"])["strays-deleted"].result(PATIENCE_S)
    move(cluster, "strays-moved", [2, 3])
    cluster.start(AWAY)
    wait_until(
        lambda: held - logs(cluster.data_dir(AWAY)) == {"strays-deleted-0", "strays-moved-0"},
        "the strays to go",
        timeout_s=PATIENCE_S,
    )
    wait_until_in_sync(cluster.bootstrap, list(describe(cluster.bootstrap).topics))


def test_a_broker_whose_cluster_has_forgotten_everything_keeps_its_logs(start_cluster: StartCluster) -> None:
    cluster = start_cluster(brokers=1)
    create_topic(cluster.bootstrap, "orders", partitions=3, replication_factor=1)
    cluster.stop(1)
    zookeeper = KazooClient(cluster.zookeeper.address)
    zookeeper.start()
    try:
        zookeeper.delete(f"{TOPICS}/orders", recursive=True)
    finally:
        zookeeper.stop()
        zookeeper.close()
    cluster.start(1)
    assert logs(cluster.data_dir(1)) >= {"orders-0", "orders-1", "orders-2"}
    assert "none of the 3 logs here is known to the cluster" in cluster.log_text(1)
