"""The replication factor of topics that the libraries create for themselves.

By default a topic has one replica (`default.replication.factor`). Programs that depend on such a topic would stop with one
broker, and lose the topic with its disk.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import Any

import confluent_kafka.admin
from confluent_kafka import KafkaError, KafkaException

from penstock.client.librdkafka_calls import RETRIABLE_CODES, retriable_calls

# Of confluent_kafka.admin, whose names are not declared as exported for type checkers.
admin_types: Any = confluent_kafka.admin

INTERNAL_REPLICAS = 3  # as many as Kafka's own internal topics have
MIN_INSYNC_REPLICAS = "min.insync.replicas"
# Another attempt is for another client: librdkafka's stays with the controller that it knows, though it never answers.
# INVALID_REPLICATION_FACTOR: a broker may have gone since they were counted.
MAY_BE_MADE_LATER = RETRIABLE_CODES | {KafkaError.INVALID_REPLICATION_FACTOR}


def made_patiently(make: Callable[[], None], name: str, *, timeout_s: float, log: logging.Logger) -> None:
    """Waits for a controller that makes it; KafkaException where there is none in time. `make` opens a client of its own."""
    retriable_calls(make, f"the topic {name}", timeout_s=timeout_s, log=log, codes=MAY_BE_MADE_LATER)


def replicas_of(admin: Any, topic: str, *, timeout_s: float) -> int | None:
    """How many copies of a topic there are; None where it does not exist."""
    # Described, not looked up in the metadata: that would make a topic where the cluster makes them by itself.
    described = admin.describe_topics(confluent_kafka.TopicCollection([topic]), request_timeout=timeout_s)
    try:
        found = described[topic].result(2 * timeout_s)
    except KafkaException as error:
        if error.args[0].code() == KafkaError.UNKNOWN_TOPIC_OR_PART:
            return None
        raise
    return min(len(partition.replicas) for partition in found.partitions)


def at_most_brokers(admin: Any, replicas: int, *, timeout_s: float) -> int:
    """So many replicas, or as many as there are brokers now: more a cluster refuses."""
    nodes = admin.describe_cluster(request_timeout=timeout_s).result(2 * timeout_s).nodes
    return max(1, min(replicas, len(nodes)))


def make_internal_topic(
    admin: Any, name: str, *, partitions: int, settings: Mapping[str, str], timeout_s: float
) -> bool:
    """False if it is there, which any broker knows; to make it takes the controller.

    With three copies two have to be there for a write, as for a cluster's own transactions.
    """
    if replicas_of(admin, name, timeout_s=timeout_s) is not None:
        return False
    replicas = at_most_brokers(admin, INTERNAL_REPLICAS, timeout_s=timeout_s)
    configs = {**settings, **({MIN_INSYNC_REPLICAS: "2"} if replicas == INTERNAL_REPLICAS else {})}
    return create(
        admin, admin_types.NewTopic(name, partitions, replicas, config=configs), timeout_s=timeout_s
    )


def create(admin: Any, topic: Any, *, timeout_s: float) -> bool:
    """False if somebody else was quicker."""
    try:
        admin.create_topics([topic], request_timeout=timeout_s)[topic.topic].result(2 * timeout_s)
    except KafkaException as error:
        if error.args[0].code() != KafkaError.TOPIC_ALREADY_EXISTS:
            raise
        return False
    return True
