"""The node: what one broker consists of, and what its handlers may ask.

It is built from a configuration and a metadata store, and is otherwise only wiring: each part does its own work.
"""

import logging
import os
import random
from asyncio import AbstractEventLoop, sleep
from collections.abc import Callable, Iterator
from typing import Final

from penstock.broker.changes import Changes
from penstock.broker.cleaner import Cleaner
from penstock.broker.configs import Configs, log_options
from penstock.broker.fetch_sessions import MAX_SESSION_ID, FetchSessions
from penstock.broker.flushes import Flushes
from penstock.broker.group_host import GroupHost
from penstock.broker.log_directories import is_of_the_disk
from penstock.broker.log_moves import LogMoves
from penstock.broker.partition import Partition
from penstock.broker.partitions import Partitions
from penstock.broker.producer_ids import ProducerIds
from penstock.broker.topics import Topics
from penstock.broker.transaction_host import TransactionHost
from penstock.config.layers import BrokerConfig
from penstock.metadata.image import (
    BROKERS,
    TOPICS,
    Change,
    ClusterImage,
    ConfigsChanged,
    PartitionsAdded,
    Topic,
    TopicCreated,
    TopicDeleted,
)
from penstock.metadata.tree import MetadataTree
from penstock.model.ids import TopicPartition
from penstock.model.internal_topics import CONSUMER_OFFSETS, TRANSACTION_STATE
from penstock.net.connection import Connection
from penstock.net.endpoints import Endpoint
from penstock.runtime.clock import Clock

log = logging.getLogger("penstock.broker")

OPENED_AT_ONCE: Final = 4
"""New logs that are made before others get their turn; each takes about a millisecond."""
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
        self.changes = Changes(image, tree, self._prepare, self._act)
        self.topics = Topics(image, self.changes, config)
        self.configs = Configs(image, self.changes, config, self.broker_id)
        self.producer_ids = ProducerIds(tree, self.broker_id)
        self.fetch_sessions = FetchSessions(
            config.get("max.incremental.fetch.session.cache.slots"), lambda: random.randint(1, MAX_SESSION_ID)
        )
        self.groups = GroupHost(self)
        self.transactions = TransactionHost(self)
        self.flushes = Flushes(self)
        self.log_moves = LogMoves(self)
        self.cleaner = Cleaner(self)
        self.is_stopping = False
        self.end: Callable[[str], None] = lambda reason: None
        """Asks the process to end because the broker cannot go on; gets one line for the operator."""
        partitions.on_offline = self._went_offline
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

    def report_disk_fault(
        self, what: str, error: OSError, partition: Partition | None = None, *, path: str | None = None
    ) -> None:
        """A fault of the disk under a partition, or in the log directory of that path, takes the directory offline."""
        if partition is not None and partition.is_gone:
            return  # its topic was deleted under whoever worked on it: that its files are not there is no fault
        log.error("%s: %s", what, error)
        if partition is not None:
            path = os.path.dirname(partition.log.directory)
        if path is not None and is_of_the_disk(error):
            self.partitions.fail(path, error, what)

    def _went_offline(self, lost: list[TopicPartition]) -> None:
        """Clients are told by Metadata; what was decided here about these partitions is over."""
        for name, index in lost:
            self.image.set_failed_replicas(name, index, (self.broker_id,))
            if name == CONSUMER_OFFSETS:
                self.groups.partition_offline(index)
            elif name == TRANSACTION_STATE:
                self.transactions.partition_offline(index)
        directories = self.partitions.log_directories
        for path in directories.failed:
            self.log_moves.cancel_all_of(path)
        if not directories.online and not self.is_stopping:
            faults = "; ".join(f"{path}: {error}" for path, error in directories.failed.items())
            self.end(f"every log directory has failed ({faults})")

    async def _prepare(self, change: Change) -> None:
        """What must be there before clients are told of a change: its logs. Others are served while they are made."""
        if isinstance(change, TopicCreated):
            topic = Topic(change.name, topic_id=change.topic_id, partitions=list(change.partitions))
        elif isinstance(change, PartitionsAdded):
            held = self.image.topic(change.name)
            assert held is not None
            topic = Topic(
                held.name, topic_id=held.topic_id, partitions=[*held.partitions, *change.partitions]
            )
        else:
            return
        for opened, _ in enumerate(self._opening(topic, is_new=True), 1):
            if opened % OPENED_AT_ONCE == 0:
                await sleep(0)

    def _act(self, change: Change) -> None:
        """Make a change of the metadata real on this broker."""
        if isinstance(change, TopicDeleted):
            self.groups.topic_deleted(change.name)
            self.transactions.topic_deleted(change.name)
            self.partitions.delete_topic(change.name)
        if isinstance(change, TopicDeleted | TopicCreated | PartitionsAdded):
            self.groups.topics_changed()
        elif isinstance(change, ConfigsChanged):
            if change.entity_type == BROKERS:
                self.reload_broker_configs()
            elif change.entity_type == TOPICS and self.image.topic(change.entity_name) is not None:
                self._set_options(change.entity_name)

    def open_logs(self) -> None:
        """Open every log that the cluster puts here; at the start."""
        for topic in self.image.topics.values():
            try:
                for _ in self._opening(topic, is_new=False):
                    pass
            except OSError as error:
                self.report_disk_fault(f"cannot open all of {topic.name}", error)

    def _opening(self, topic: Topic, *, is_new: bool) -> Iterator[int]:
        options = log_options(self.config, self.image.topic_overrides(topic.name))
        return self.partitions.open_topic(topic, options, is_new=is_new)

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
