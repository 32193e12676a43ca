"""A consumer that says in which rack it is reads there (KIP-392), and elsewhere when nobody is there any more."""

import json
import time
from collections.abc import Iterator

import pytest
from confluent_kafka import OFFSET_BEGINNING, Consumer, Producer, TopicPartition

from penstock.replication.closest import RACK_AWARE
from penstock.testing.clusters import create_topic, wait_until_in_sync
from penstock.testing.penstock_cluster import PenstockCluster
from tests.cluster.conftest import StartCluster

PATIENCE_S = 60.0
LEADER, FOLLOWER = 1, 2
TOPIC = "orders"


@pytest.fixture
def cluster(start_cluster: StartCluster) -> PenstockCluster:
    """The leader in rack a, its follower in rack b."""
    cluster = start_cluster(
        brokers=2,
        options={"replica.selector.class": RACK_AWARE, "offsets.topic.replication.factor": "2"},
        options_of={LEADER: {"broker.rack": "a"}, FOLLOWER: {"broker.rack": "b"}},
    )
    create_topic(cluster.bootstrap, TOPIC, assignment=[[LEADER, FOLLOWER]])
    wait_until_in_sync(cluster.bootstrap, [TOPIC])
    return cluster


class RackConsumer:
    """A consumer in a rack, and what its statistics say of where it fetches from."""

    def __init__(self, bootstrap: str, rack: str) -> None:
        self.source: int | None = None
        self._consumer = Consumer(
            {
                "bootstrap.servers": bootstrap,
                "group.id": f"in rack {rack}",
                "client.rack": rack,
                "enable.auto.commit": False,
                "statistics.interval.ms": 50,
                "stats_cb": self._note,
                "log_level": 0,
            }
        )
        self._consumer.assign([TopicPartition(TOPIC, 0, OFFSET_BEGINNING)])
        self.values: list[int] = []

    def _note(self, statistics: str) -> None:
        topics = json.loads(statistics)["topics"]
        self.source = topics.get(TOPIC, {}).get("partitions", {}).get("0", {}).get("broker")

    def read_until(self, count: int, *, source: int) -> None:
        """Until there are so many records, and until it reads from this broker."""
        deadline = time.monotonic() + PATIENCE_S
        while len(self.values) < count or self.source != source:
            assert time.monotonic() < deadline, f"{len(self.values)} records, reading from {self.source}"
            message = self._consumer.poll(0.1)
            if message is not None and message.error() is None:
                self.values.append(int(message.value()))

    def close(self) -> None:
        self._consumer.close()


@pytest.fixture
def consumer(cluster: PenstockCluster) -> Iterator[RackConsumer]:
    consumer = RackConsumer(cluster.bootstrap, "b")
    yield consumer
    consumer.close()


def produce(cluster: PenstockCluster, values: range) -> None:
    producer = Producer({"bootstrap.servers": cluster.bootstrap, "acks": "all", "log_level": 0})
    for value in values:
        producer.produce(TOPIC, str(value).encode(), partition=0)
    assert producer.flush(PATIENCE_S) == 0


def test_a_consumer_reads_in_its_rack_and_from_the_leader_when_that_follower_dies(
    cluster: PenstockCluster, consumer: RackConsumer
) -> None:
    produce(cluster, range(100))
    consumer.read_until(100, source=FOLLOWER)
    produce(cluster, range(100, 200))
    consumer.read_until(200, source=FOLLOWER)
    cluster.kill(FOLLOWER)
    produce(cluster, range(200, 300))
    consumer.read_until(300, source=LEADER)
    assert consumer.values == list(range(300))


def test_a_consumer_in_the_rack_of_the_leader_reads_from_it(cluster: PenstockCluster) -> None:
    produce(cluster, range(100))
    consumer = RackConsumer(cluster.bootstrap, "a")
    consumer.read_until(100, source=LEADER)
    consumer.close()
