"""Logs that the metadata does not place on a broker, when it comes back: they are kept, and a person decides about them."""

import json
import subprocess
import sys
from pathlib import Path

from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient

from penstock.testing.clusters import create_topic, describe, wait_until, wait_until_in_sync
from penstock.testing.penstock_cluster import PenstockCluster
from penstock.testing.zookeeper import ZooKeeperServer
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
    return {path.name for path in directory.iterdir() if path.is_dir() and "." not in path.name}


def strays(directory: Path) -> set[str]:
    """Their topics and partitions."""
    return {path.name.partition(".")[0] for path in directory.iterdir() if path.name.endswith("-stray")}


def wipe_zookeeper(cluster: PenstockCluster) -> None:
    """Its directory is removed, as by somebody who had it on a disk that is gone."""
    server = cluster.zookeeper
    assert isinstance(server, ZooKeeperServer)
    server.stop()
    server.wipe()
    server.start()


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


def test_a_broker_that_returns_keeps_what_was_deleted_or_moved_away_meanwhile(
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
        lambda: strays(cluster.data_dir(AWAY)) == {"strays-deleted-0", "strays-moved-0"},
        "the strays to be set aside",
        timeout_s=PATIENCE_S,
    )
    assert held - logs(cluster.data_dir(AWAY)) == {"strays-deleted-0", "strays-moved-0"}
    wait_until_in_sync(cluster.bootstrap, list(describe(cluster.bootstrap).topics))


def test_a_wiped_zookeeper_costs_no_records(start_cluster: StartCluster) -> None:
    cluster = start_cluster(brokers=1)
    create_topic(cluster.bootstrap, "orders", partitions=2, replication_factor=1)
    produce(cluster.bootstrap, "orders", 1000)
    size_bytes = total_bytes(cluster.data_dir(1))
    cluster.kill(1)
    wipe_zookeeper(cluster)
    cluster.start(1)
    create_topic(cluster.bootstrap, "other", partitions=1, replication_factor=1)
    cluster.kill(1)
    cluster.start(1)
    wait_until(
        lambda: strays(cluster.data_dir(1)) == {"orders-0", "orders-1"}, "strays", timeout_s=PATIENCE_S
    )
    assert total_bytes(cluster.data_dir(1)) >= size_bytes


def test_what_a_wiped_zookeeper_lost_is_restored_by_a_command(start_cluster: StartCluster) -> None:
    cluster = start_cluster(brokers=3)
    create_topic(cluster.bootstrap, "orders", partitions=2, replication_factor=3)
    produce(cluster.bootstrap, "orders", 1000)
    commit(cluster.bootstrap, "billing", "orders", 42)
    wait_until_in_sync(cluster.bootstrap, ["orders", "__consumer_offsets"])
    for broker_id in cluster.broker_ids:
        cluster.kill(broker_id)
    wipe_zookeeper(cluster)
    for broker_id in cluster.broker_ids:
        cluster.start(broker_id)
    wait_until(
        lambda: all(len(strays(cluster.data_dir(id))) == 2 + 3 for id in cluster.broker_ids),
        "strays",
        timeout_s=PATIENCE_S,
    )
    listed = json.loads(penstock(cluster, "log", "strays", "list", "-o", "json"))
    listed = [one for one in listed if one["topic"] == "orders"]
    assert sorted((one["topic"], one["partition"], one["broker"]) for one in listed) == [
        ("orders", partition, broker) for partition in (0, 1) for broker in (1, 2, 3)
    ]
    status = json.loads(penstock(cluster, "status", "-o", "json", code=1))
    assert [one["topic"] for one in status["lost"]] == ["__consumer_offsets", "orders"]
    assert status["strays"] == [{"broker": id, "count": 5} for id in (1, 2, 3)]
    penstock(cluster, "log", "strays", "restore", "--all", "--yes")
    wait_until_in_sync(cluster.bootstrap, ["orders", "__consumer_offsets"])
    read = penstock(cluster, "consume", "orders", "--from-beginning", "-n", "1000")
    assert sorted(read.split("\n")[:-1]) == sorted(f"record {number}" for number in range(1000))
    assert all(not strays(cluster.data_dir(id)) for id in cluster.broker_ids)
    assert json.loads(penstock(cluster, "log", "strays", "list", "-o", "json")) == []
    assert committed(cluster.bootstrap, "billing", "orders") == 42


def test_the_partition_of_a_broker_that_was_away_is_restored_when_it_is_back(
    start_cluster: StartCluster,
) -> None:
    cluster = start_cluster(brokers=3)
    create_topic(cluster.bootstrap, "orders", assignment=[[2], [3], [AWAY]])
    produce(cluster.bootstrap, "orders", 300)
    for broker_id in cluster.broker_ids:
        cluster.kill(broker_id)
    wipe_zookeeper(cluster)
    for broker_id in (2, 3):
        cluster.start(broker_id)
    wait_until(
        lambda: all(strays(cluster.data_dir(id)) for id in (2, 3)), "their strays", timeout_s=PATIENCE_S
    )
    restored = json.loads(penstock(cluster, "log", "strays", "restore", "orders", "-o", "json"))
    assert (restored["replicas"], restored["counted_on_brokers"]) == ([[2], [3]], [2, 3])
    cluster.start(AWAY)
    wait_until(lambda: strays(cluster.data_dir(AWAY)) == {"orders-2"}, "its stray", timeout_s=PATIENCE_S)
    restored = json.loads(penstock(cluster, "log", "strays", "restore", "orders", "-o", "json"))
    assert (restored["first_partition"], restored["replicas"]) == (2, [[AWAY]])
    read = penstock(cluster, "consume", "orders", "--from-beginning", "-n", "300")
    assert sorted(read.split("\n")[:-1]) == sorted(f"record {number}" for number in range(300))
    assert not any(strays(cluster.data_dir(id)) for id in cluster.broker_ids)


def penstock(cluster: PenstockCluster, *words: str, code: int = 0) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "penstock", *words, "-b", cluster.bootstrap],
        capture_output=True,
        timeout=PATIENCE_S,
        check=False,
    )
    assert done.returncode == code, done.stderr.decode()
    return done.stdout.decode()


def group_consumer(bootstrap: str, group: str) -> Consumer:
    return Consumer(
        {"bootstrap.servers": bootstrap, "group.id": group, "enable.auto.commit": False, "log_level": 0}
    )


def commit(bootstrap: str, group: str, topic: str, offset: int) -> None:
    consumer = group_consumer(bootstrap, group)
    consumer.commit(offsets=[TopicPartition(topic, 0, offset)], asynchronous=False)
    consumer.close()


def committed(bootstrap: str, group: str, topic: str) -> int:
    consumer = group_consumer(bootstrap, group)
    (found,) = consumer.committed([TopicPartition(topic, 0)], PATIENCE_S)
    consumer.close()
    return int(found.offset)


def produce(bootstrap: str, topic: str, count: int) -> None:
    producer = Producer({"bootstrap.servers": bootstrap, "log_level": 0})
    for number in range(count):
        producer.produce(topic, value=f"record {number}".encode())
        producer.poll(0)
    assert producer.flush(PATIENCE_S) == 0


def total_bytes(directory: Path) -> int:
    """Of the segments below, in logs and strays."""
    return sum(path.stat().st_size for path in directory.glob("*/*.log"))
