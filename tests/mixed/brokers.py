"""Clusters of both kinds of brokers, and what they hold."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition
from kazoo.client import KazooClient

from penstock.testing.clusters import describe, wait_until, wait_until_in_sync
from simulation.apache.mixed_cluster import KAFKA, PENSTOCK, MixedCluster
from tests.cluster.clients import QUIET

OURS = 3
KINDS = {1: KAFKA, 2: KAFKA, OURS: PENSTOCK}
# Internal topics of few partitions: fifty would take most of the start.
PROPERTIES = {
    "group.initial.rebalance.delay.ms": "0",
    "offsets.topic.num.partitions": "3",
    "transaction.state.log.num.partitions": "3",
}
SESSION_TIMEOUT_MS = 6_000


def wait_until_known(cluster: MixedCluster) -> int:
    """Until each broker that runs knows all others and the controller; which that is. One of Kafka's that has only just started
    knows nobody, and librdkafka does not ask again soon."""
    running = [each for each in cluster.broker_ids if cluster.is_running(each)]

    def controllers() -> set[int]:
        found = [describe(cluster.address(each)) for each in running]
        return {each.controller_id if set(each.brokers) == set(running) else -1 for each in found}

    def agree() -> bool:
        try:
            known = controllers()
        except KafkaException:
            return False
        return len(known) == 1 and -1 not in known

    wait_until(agree, "that all brokers know the controller")
    (controller,) = controllers()
    return controller


def wait_for_replicas(cluster: MixedCluster, topics: Sequence[str]) -> None:
    """Also by a broker that has only just started, and may not have heard who is there: one of Kafka's says so at once."""

    def are_in_sync() -> bool:
        try:
            wait_until_in_sync(cluster.bootstrap, topics)
        except KafkaException as error:
            if error.args[0].code() != KafkaError._PARTIAL:
                raise
            return False
        return True

    wait_until(are_in_sync, "all replicas in sync")


@contextmanager
def zookeeper(cluster: MixedCluster) -> Iterator[Any]:
    client = KazooClient(cluster.zookeeper.address)
    client.start()
    try:
        yield client
    finally:
        client.stop()
        client.close()


def nodes(cluster: MixedCluster) -> dict[str, tuple[bytes, int]]:
    """All of the tree, with when each was written."""
    found: dict[str, tuple[bytes, int]] = {}
    with zookeeper(cluster) as client:
        paths = ["/"]
        while paths:
            path = paths.pop()
            data, stat = client.get(path)
            found[path] = (data, stat.mzxid)
            paths += [f"{path.rstrip('/')}/{each}" for each in client.get_children(path)]
    return found


def read(bootstrap: str, topic: str, partition: int) -> list[bytes]:
    """All that is committed, in its order."""
    consumer = Consumer(
        {"bootstrap.servers": bootstrap, "group.id": "reader", "isolation.level": "read_committed",
         "enable.partition.eof": True, **QUIET}
    )  # fmt: skip
    try:
        consumer.assign([TopicPartition(topic, partition, 0)])
        found: list[bytes] = []
        ended = threading.Event()

        def at_end() -> bool:
            for message in consumer.consume(1000, 0.2):
                if message.error():
                    ended.set()
                else:
                    found.append(message.value() or b"")
            return ended.is_set()

        wait_until(at_end, f"the end of {topic}-{partition}")
        return found
    finally:
        consumer.close()
