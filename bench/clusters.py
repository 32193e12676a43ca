"""Three brokers on one machine: ours on ZooKeeper, Apache Kafka 3.9 on ZooKeeper, Apache Kafka 4.3 as a KRaft quorum."""

from collections.abc import Mapping
from pathlib import Path

from bench.servers import KAFKA_3, KRAFT_3, PENSTOCK_3, ServerKind
from penstock.testing.clusters import BrokerCluster
from penstock.testing.penstock_cluster import PenstockCluster
from penstock.testing.zookeeper import ZooKeeperServer
from simulation.apache.kafka_cluster import KafkaCluster, KraftCluster

BROKER_COUNT = 3
SESSION_TIMEOUT_S = 6
ON_ZOOKEEPER = (KAFKA_3, PENSTOCK_3)


def start_cluster(
    kind: ServerKind,
    directory: Path,
    *,
    zookeeper: ZooKeeperServer | None = None,
    options: Mapping[str, str] | None = None,
) -> BrokerCluster:
    """Ready when it returns. Without `zookeeper` those that need one have their own."""
    if kind.name == KRAFT_3:
        return KraftCluster(directory, brokers=BROKER_COUNT, properties=options)
    timeout_ms = SESSION_TIMEOUT_S * 1000
    if kind.name == KAFKA_3:
        return KafkaCluster(
            directory,
            brokers=BROKER_COUNT,
            properties=options,
            zookeeper=zookeeper,
            session_timeout_ms=timeout_ms,
        )
    return PenstockCluster(
        directory, brokers=BROKER_COUNT, options=options, zookeeper=zookeeper, session_timeout_ms=timeout_ms
    )
