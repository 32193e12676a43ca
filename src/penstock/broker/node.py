"""The node: what one broker consists of, and what its handlers may ask.

It is built from a configuration and a metadata store, and is otherwise only wiring: each part does its own work.
"""

import logging
import random
from asyncio import AbstractEventLoop
from typing import Final

from penstock.broker.changes import Changes
from penstock.broker.configs import Configs, log_options
from penstock.broker.coordinator_host import CoordinatorHost
from penstock.broker.fetch_sessions import MAX_SESSION_ID, FetchSessions
from penstock.broker.partitions import Partitions
from penstock.broker.producer_ids import ProducerIds
from penstock.broker.topics import Topics
from penstock.config.layers import BrokerConfig
from penstock.metadata.image import (
    BROKERS,
    TOPICS,
    Change,
    ClusterImage,
    ConfigsChanged,
    PartitionsAdded,
    TopicCreated,
    TopicDeleted,
)
from penstock.metadata.tree import MetadataTree
from penstock.net.connection import Connection
from penstock.net.endpoints import Endpoint
from penstock.runtime.clock import Clock

log = logging.getLogger("penstock.broker")

BrokerAddress = tuple[int, str, int, str | None]
"""id, host, port, rack"""


class Node:
    def __init__(
        self,
        config: BrokerConfig,
        tree: MetadataTree,
        image: ClusterImage,
        partitions: Partitions,
        loop: AbstractEventLoop,
        clock: Clock,
        advertised: dict[str, Endpoint],
    ) -> None:
        self.config = config
        self.image = image
        self.partitions = partitions
        self.loop = loop
        self.clock = clock
        self.broker_id = config.node_id
        self.changes = Changes(image, tree, self._act)
        self.topics = Topics(image, self.changes, config)
        self.configs = Configs(image, self.changes, config, self.broker_id)
        self.producer_ids = ProducerIds(tree, self.broker_id)
        self.fetch_sessions = FetchSessions(
            config.get("max.incremental.fetch.session.cache.slots"), lambda: random.randint(1, MAX_SESSION_ID)
        )
        self.groups = CoordinatorHost(self)
        self.fetch_max_bytes: int = config.get("fetch.max.bytes")
        self._advertised: Final = advertised

    def brokers_for(self, connection: Connection) -> list[BrokerAddress]:
        """Every broker as a client of this listener should reach it.

        Where this broker advertises nothing, the client is told the address it came through: it works by definition.
        """
        addresses: list[BrokerAddress] = []
        for broker in self.image.brokers.values():
            if broker.id == self.broker_id:
                endpoint = self._advertised.get(connection.listener_name)
                host = endpoint.host if endpoint is not None else connection.local_host
                port = endpoint.port if endpoint is not None else connection.local_port
                addresses.append((broker.id, host, port, broker.rack))
            elif connection.listener_name in broker.endpoints:
                other = broker.endpoints[connection.listener_name]
                addresses.append((broker.id, other.host, other.port, broker.rack))
        return addresses

    def report_disk_fault(self, what: str, error: OSError) -> None:
        log.error("%s: %s", what, error)

    def _act(self, change: Change) -> None:
        """Make a change of the metadata real on this broker."""
        if isinstance(change, (TopicCreated, PartitionsAdded)):
            self._open(change.name)
        elif isinstance(change, TopicDeleted):
            self.groups.topic_deleted(change.name)
            self.partitions.delete_topic(change.name)
        elif isinstance(change, ConfigsChanged):
            if change.entity_type == BROKERS:
                self.reload_broker_configs()
            elif change.entity_type == TOPICS and self.image.topic(change.entity_name) is not None:
                self._set_options(change.entity_name)

    def open_logs(self) -> None:
        """Open every log that the cluster puts here; at the start."""
        for name in self.image.topics:
            self._open(name)

    def _open(self, name: str) -> None:
        topic = self.image.topic(name)
        assert topic is not None
        self.partitions.open_topic(topic, log_options(self.config, self.image.topic_overrides(name)))

    def _set_options(self, name: str) -> None:
        self.partitions.set_options(name, log_options(self.config, self.image.topic_overrides(name)))

    def reload_broker_configs(self) -> None:
        reports = self.config.set_dynamic(
            cluster_default=self.image.all_broker_overrides(),
            broker=self.image.broker_overrides(self.broker_id),
        )
        for report in reports:
            log.warning("%s", report.text)
        self.fetch_max_bytes = self.config.get("fetch.max.bytes")
        for name in self.image.topics:
            self._set_options(name)
