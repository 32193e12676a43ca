"""Two brokers of Apache Kafka 3.9.1 and one of ours, each killed under load."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from penstock.testing.clusters import create_topic, describe
from simulation.apache.mixed_cluster import MixedCluster
from tests.cluster.clients import SteadyProducer
from tests.mixed.brokers import (
    KINDS,
    OURS,
    PROPERTIES,
    SESSION_TIMEOUT_MS,
    read,
    wait_for_replicas,
    wait_until_known,
)
from tests.mixed.transactor import Transactor


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[MixedCluster]:
    kinds = {number: KINDS[number] for number in (OURS, 1, 2)}
    with MixedCluster(
        tmp_path, kinds, properties=PROPERTIES, session_timeout_ms=SESSION_TIMEOUT_MS
    ) as running:
        assert wait_until_known(running) == OURS
        yield running
        assert "Traceback" not in running.log_text(OURS), "the broker logged a bug of its own"


def test_nothing_is_lost_twice_or_reordered_when_each_of_them_is_killed(cluster: MixedCluster) -> None:
    """One of Kafka's under our controller, then ours, and the other of Kafka's under one of theirs."""
    # The leader first: each leads one partition of each topic.
    places = [[1, 2, OURS], [2, OURS, 1], [OURS, 1, 2]]
    config = {"min.insync.replicas": "2"}
    for topic in ("plain", "transactional"):
        create_topic(cluster.bootstrap, topic, assignment=places, config=config)
    wait_for_replicas(cluster, ["plain", "transactional"])
    with (
        SteadyProducer(cluster.bootstrap, "plain", partitions=3) as producer,
        Transactor(cluster.bootstrap, "transactional", partitions=3) as transactor,
    ):
        producer.wait_for_more()
        transactor.wait_for_more()
        internal = [topic for topic in describe(cluster.bootstrap).topics if topic.startswith("__")]
        for broker_id in (1, OURS, 2):
            cluster.kill(broker_id)
            producer.wait_for_more()
            transactor.wait_for_more()
            cluster.start(broker_id)
            wait_for_replicas(cluster, ["plain", "transactional", *internal])
        producer.wait_for_more()
        transactor.wait_for_more()
        sent = producer.finish()
        transactor.finish()
    for partition in range(3):
        assert read(cluster.bootstrap, "plain", partition) == sent[partition::3]
    parts = [read(cluster.bootstrap, "transactional", partition) for partition in range(3)]
    assert parts[0] == parts[1] == parts[2]
    assert [int(value) for value in parts[0]] == transactor.committed
    assert not Counter(transactor.committed) & Counter(transactor.aborted)
