"""Replication quotas: a reassignment takes no more of the brokers than its throttle says, until it is lifted."""

import time

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource, ResourceType

from penstock.testing.clusters import create_topic, describe, wait_until
from penstock.testing.penstock_cluster import PenstockCluster
from penstock.wire.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from tests.hostile.raw_client import RawClient

PATIENCE_S = 60.0
MEGABYTE = 1_000_000
RECORD = bytes(range(250)) * 40
RECORDS = 1200
SOURCE, TARGET = 1, 2


def fill(cluster: PenstockCluster, topic: str) -> None:
    """12 MB in a topic that only the source has."""
    create_topic(cluster.bootstrap, topic, assignment=[[SOURCE]])
    producer = Producer({"bootstrap.servers": cluster.bootstrap, "log_level": 0})
    for _ in range(RECORDS):
        producer.produce(topic, RECORD, partition=0)
    assert producer.flush(PATIENCE_S) == 0


def set_config(
    cluster: PenstockCluster, kind: ResourceType, name: str, option: str, value: str | None
) -> None:
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap, "log_level": 0})
    how = AlterConfigOpType.DELETE if value is None else AlterConfigOpType.SET
    entry = ConfigEntry(option, value, incremental_operation=how)
    resource = ConfigResource(kind, name, incremental_configs=[entry])
    for future in admin.incremental_alter_configs([resource]).values():
        future.result(PATIENCE_S)


def throttle(cluster: PenstockCluster, topic: str, side: str, *, bytes_per_second: int | None) -> None:
    broker_id = SOURCE if side == "leader" else TARGET
    is_set = bytes_per_second is not None
    set_config(
        cluster,
        ResourceType.TOPIC,
        topic,
        f"{side}.replication.throttled.replicas",
        f"0:{broker_id}" if is_set else None,
    )
    set_config(
        cluster,
        ResourceType.BROKER,
        str(broker_id),
        f"{side}.replication.throttled.rate",
        str(bytes_per_second) if is_set else None,
    )


def move(cluster: PenstockCluster, topic: str) -> None:
    wanted = ReassignablePartition(partition_index=0, replicas=[TARGET])
    with RawClient(cluster.port(SOURCE)) as client:
        response = client.ask(
            AlterPartitionReassignmentsRequest(topics=[ReassignableTopic(name=topic, partitions=[wanted])]), 0
        )
    assert response.error_code == response.responses[0].partitions[0].error_code == 0


def is_moved(cluster: PenstockCluster, topic: str) -> bool:
    partition = describe(cluster.bootstrap).topics[topic].partitions[0]
    return list(partition.replicas) == [TARGET] == list(partition.isrs)


@pytest.mark.parametrize("side", ["leader", "follower"])
def test_a_throttled_reassignment_takes_as_long_as_it_must(cluster: PenstockCluster, side: str) -> None:
    topic = f"throttled-by-the-{side}"
    fill(cluster, topic)
    throttle(cluster, topic, side, bytes_per_second=4 * MEGABYTE)
    began = time.monotonic()
    move(cluster, topic)
    wait_until(lambda: is_moved(cluster, topic), "the end of the reassignment", timeout_s=PATIENCE_S)
    took_seconds = time.monotonic() - began
    # 12 MB at 4 MB/s, of which the first second's may go at once, and one fetch (1 MiB) more than is allowed.
    assert took_seconds >= 1.7
    throttle(cluster, topic, side, bytes_per_second=None)


@pytest.mark.parametrize("side", ["leader", "follower"])
def test_a_throttle_that_is_lifted_holds_nothing_back_any_more(cluster: PenstockCluster, side: str) -> None:
    topic = f"released-by-the-{side}"
    fill(cluster, topic)
    throttle(cluster, topic, side, bytes_per_second=MEGABYTE // 20)  # it would take four minutes
    move(cluster, topic)
    wait_until(
        lambda: TARGET in describe(cluster.bootstrap).topics[topic].partitions[0].replicas,
        "the beginning of the reassignment",
        timeout_s=PATIENCE_S,
    )
    assert not is_moved(cluster, topic)
    throttle(cluster, topic, side, bytes_per_second=None)
    wait_until(lambda: is_moved(cluster, topic), "the end of the reassignment", timeout_s=PATIENCE_S)
