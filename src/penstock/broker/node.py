"""The node: what one broker consists of, and what its handlers may ask.

It is built from a configuration and a metadata store, and is otherwise only wiring: each part does its own work.
"""

import logging
import os
from asyncio import AbstractEventLoop, sleep
from collections.abc import Callable, Iterator, Mapping
from random import Random
from typing import TYPE_CHECKING, Final, TypeVar

from penstock.broker.coordinators.groups import GroupHost
from penstock.broker.coordinators.transactions import TransactionHost
from penstock.broker.metadata.changes import Changes
from penstock.broker.metadata.configs import Configs, log_options
from penstock.broker.metadata.producer_ids import ProducerIds
from penstock.broker.metadata.topics import Topics
from penstock.broker.partitions.fetch_sessions import MAX_SESSION_ID, FetchSessions
from penstock.broker.partitions.held_partitions import HeldPartitions
from penstock.broker.partitions.partition import Partition
from penstock.broker.requests.answers import Answers
from penstock.broker.upkeep.cleaner import Cleaner
from penstock.broker.upkeep.flushes import Flushes
from penstock.broker.upkeep.log_directories import is_of_the_disk
from penstock.broker.upkeep.log_moves import LogMoves
from penstock.config.layers import BrokerConfig
from penstock.metadata.image import (
    BROKERS,
    NO_BROKER_EPOCH,
    NO_CONTROLLER,
    TOPICS,
    BrokerRegistration,
    Change,
    ClusterImage,
    ConfigsChanged,
    PartitionsAdded,
    Topic,
    TopicCreated,
    TopicDeleted,
)
from penstock.metadata.tree import MetadataTree
from penstock.model.errors import ApiError, ErrorCode
from penstock.model.ids import TopicPartition
from penstock.model.internal_topics import CONSUMER_OFFSETS, TRANSACTION_STATE
from penstock.net.connection import Connection
from penstock.net.endpoints import Endpoint
from penstock.replication.closest import LEADER, RACK_AWARE, closest_replica
from penstock.runtime.clock import Clock
from penstock.wire.schema import Message

if TYPE_CHECKING:
    from penstock.broker.cluster.controlling import Controlling
    from penstock.broker.cluster.membership import Membership
    from penstock.broker.replication.roles import Roles
    from penstock.net.peers import Connect, Peers

log = logging.getLogger("penstock.broker")

OPENED_AT_ONCE: Final = 4
"""New logs that are made before others get their turn; each takes about a millisecond."""
R = TypeVar("R", bound=Message)
BrokerAddress = tuple[int, str, int, str | None]
"""id, host, port, rack"""


class Node:
    # Of a cluster, and not touched where there is none: see `enter_cluster`.
    roles: "Roles"
    controlling: "Controlling"
    membership: "Membership"
    peers: "Peers"

    def __init__(
        self,
        config: BrokerConfig,
        tree: MetadataTree,
        image: ClusterImage,
        partitions: HeldPartitions,
        loop: AbstractEventLoop,
        clock: Clock,
        advertised: dict[str, Endpoint],
        random: Random | None = None,
    ) -> None:
        self.config = config
        self.tree = tree
        self.random = random or Random()
        self.image = image
        self.partitions = partitions
        self.loop = loop
        self.clock = clock
        self.broker_id = config.node_id
        self.changes = Changes(image, tree, self._prepare, self._act)
        self.topics = Topics(self, self.changes)
        self.configs = Configs(image, self.changes, config, self.broker_id)
        self.producer_ids = ProducerIds(tree, self.broker_id)
        self.fetch_sessions = FetchSessions(
            config.get("max.incremental.fetch.session.cache.slots"),
            lambda: self.random.randint(1, MAX_SESSION_ID),
        )
        self.groups = GroupHost(self)
        self.transactions = TransactionHost(self)
        self.flushes = Flushes(self)
        self.log_moves = LogMoves(self)
        self.cleaner = Cleaner(self)
        self.answers = Answers()
        self.is_stopping = False
        self.broker_epoch = NO_BROKER_EPOCH
        """Of our registration, while we have one."""
        self.is_clustered = bool(config.get("zookeeper.connect"))
        """Whether there may be other brokers: APIs between brokers are offered and taken only then."""
        self.end: Callable[[str], None] = lambda reason: None
        """Asks the process to end because the broker cannot go on; gets one line for the operator."""
        partitions.on_offline = self._went_offline
        self._directory_failed: Callable[[], None] = lambda: None
        self.fetch_max_bytes: int = config.get("fetch.max.bytes")
        self._advertised: Final = advertised
        self._racks_matter = config.get("replica.selector.class") == RACK_AWARE

    def brokers_for(self, connection: Connection) -> list[BrokerAddress]:
        """Every broker as a client of this listener should reach it.

        Where a single broker advertises nothing, the client is told the address it came through: it works by definition.
        In a cluster all brokers say the same of each one: a client that hears two addresses gives up the connection.
        """
        addresses: list[BrokerAddress] = []
        for broker in self.image.brokers.values():
            if broker.id == self.broker_id and not self.is_clustered:
                endpoint = self._advertised.get(connection.listener_name)
                host = endpoint.host if endpoint is not None else connection.local_host
                port = endpoint.port if endpoint is not None else connection.local_port
                addresses.append((broker.id, host, port, broker.rack))
            elif connection.listener_name in broker.endpoints:
                other = broker.endpoints[connection.listener_name]
                addresses.append((broker.id, other.host, other.port, broker.rack))
        return addresses

    # --- in a cluster

    def enter_cluster(self, registration: "BrokerRegistration", connect: "Connect | None") -> "Membership":
        from penstock.broker.cluster.controlling import Controlling
        from penstock.broker.cluster.membership import Membership
        from penstock.broker.replication.roles import Roles
        from penstock.net.peers import Peers

        self.changes.resign()  # until we are the controller
        self.peers = Peers(self.loop, f"broker-{self.broker_id}", connect)
        self.roles = Roles(self)
        self._directory_failed = self.roles.directory_failed
        self.controlling = Controlling(self, self.tree)
        self.membership = Membership(self, self.tree, registration)  # type: ignore[arg-type]
        self.brokers_changed()
        self.roles.start()
        return self.membership

    async def leave_cluster(self) -> None:
        await self.membership.leave()
        self.controlling.resign()
        self.roles.stop()
        self.peers.close()

    @property
    def is_controller(self) -> bool:
        return not self.is_clustered or self.controlling.is_active

    def is_proven(self) -> bool:
        """Whether we may acknowledge without asking our followers: see `cluster/membership.py`."""
        return not self.is_clustered or self.membership.is_proven()

    async def ask_controller(
        self, request: Message, response: type[R], *, version: int, timeout_s: float
    ) -> R:
        """ApiError or OSError when there is none, or it does not answer."""
        controller_id = self.image.controller_id
        if self.controlling.is_active:
            answer = await self.controlling.answer(request)
            assert isinstance(answer, response)
            return answer
        if controller_id in (NO_CONTROLLER, self.broker_id):
            raise ApiError(ErrorCode.NOT_CONTROLLER, "the cluster has no controller at the moment")
        return await self.peers.ask(controller_id, request, response, version=version, timeout_s=timeout_s)

    def brokers_changed(self) -> None:
        """Other brokers have come, gone or moved."""
        listener = self.config.get("inter.broker.listener.name") or "PLAINTEXT"
        for broker in self.image.brokers.values():
            endpoint = broker.endpoints.get(listener) or next(iter(broker.endpoints.values()), None)
            if endpoint is not None and broker.id != self.broker_id:
                self.peers.set_address(broker.id, endpoint.host, endpoint.port)

    def partition_of(self, name: str, topic_id: bytes, index: int, *, is_new: bool) -> Partition:
        """A partition that the controller puts here, opened if it is not open yet."""
        overrides = self.image.topic_overrides(name)
        held = self.partitions.topic(topic_id)
        if held is not None and held.has(
            index
        ):  # nearly always: thousands change their roles when a broker dies
            partition = held.partition(index)
        else:
            options = log_options(self.config, overrides)
            partition = self.partitions.ensure(topic_id, TopicPartition(name, index), options, is_new=is_new)
        partition.min_insync_replicas = self._min_insync_replicas(overrides)
        return partition

    def _min_insync_replicas(self, overrides: Mapping[str, str]) -> int:
        return int(self.config.topic_value(overrides, "min.insync.replicas"))

    def closest_replica(self, partition: Partition, rack: str, fetch_offset: int) -> int:
        """Where a consumer in that rack should read; LEADER: here."""
        if not self._racks_matter or partition.leadership is None:
            return LEADER
        leadership = partition.leadership
        return closest_replica(
            rack,
            leader_id=self.broker_id,
            racks={broker.id: broker.rack for broker in self.image.brokers.values()},
            followers=[
                (id, follower.end_offset)
                for id, follower in leadership.followers.items()
                if id in leadership.isr
            ],
            fetch_offset=fetch_offset,
        )

    def apply_config(self, change: ConfigsChanged) -> None:
        """Another broker changed a configuration."""
        self.image.apply(change)
        self._act(change)

    def metadata_changed(self, change: Change) -> None:
        """The image has changed by what the controller told, or by what the tree says."""
        self._act(change)

    async def hand_over(self) -> None:
        """A stop without a word would leave our partitions without leaders until the session ends."""
        from penstock.broker.cluster.shutdown import hand_over

        await hand_over(self)

    def coordinator_of(self, topic: str) -> "GroupHost | TransactionHost | None":
        """Whose state the topic holds, if it is an internal one."""
        if topic == CONSUMER_OFFSETS:
            return self.groups
        return self.transactions if topic == TRANSACTION_STATE else None

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
            if not self.is_clustered:
                self.image.set_failed_replicas(name, index, (self.broker_id,))
            host = self.coordinator_of(name)
            if host is not None:
                host.partition_lost(index)
        directories = self.partitions.log_directories
        for path in directories.failed:
            self.log_moves.cancel_all_of(path)
        self._directory_failed()
        if not directories.online and not self.is_stopping:
            faults = "; ".join(f"{path}: {error}" for path, error in directories.failed.items())
            self.end(f"every log directory has failed ({faults})")

    async def _prepare(self, change: Change) -> None:
        """What must be there before clients are told of a change: its logs. Others are served while they are made."""
        if self.is_clustered:
            return  # LeaderAndIsr opens them, before UpdateMetadata tells of them
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
        if isinstance(change, TopicDeleted) and not self._is_made_again(change.name):
            self.groups.topic_deleted(change.name)
            self.transactions.topic_deleted(change.name)
            self.partitions.delete_topic(change.name)
        if isinstance(change, TopicDeleted | TopicCreated | PartitionsAdded):
            topic = self.image.topic(change.name)
            if topic is not None and self.is_clustered:
                self.partitions.know(topic)
            self.groups.topics_changed()
        elif isinstance(change, ConfigsChanged):
            if change.entity_type == BROKERS:
                self.reload_broker_configs()
            elif change.entity_type == TOPICS:  # which we may hold before the image knows it
                self._set_options(change.entity_name)
            if self.is_clustered and change.entity_type in (BROKERS, TOPICS):
                self.roles.quotas.config_changed(change)
                self.controlling.config_changed(change)

    def _is_made_again(self, name: str) -> bool:
        """Whether the topic of a name that was deleted is here by now with another id: LeaderAndIsr comes first."""
        held, topic = self.partitions.topic(name), self.image.topic(name)
        return held is not None and topic is not None and held.topic_id == topic.topic_id

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
        overrides = self.image.topic_overrides(name)
        self.partitions.set_options(
            name,
            log_options(self.config, overrides),
            min_insync_replicas=self._min_insync_replicas(overrides),
        )

    def reload_broker_configs(self) -> None:
        reports = self.config.set_dynamic(
            cluster_default=self.image.all_broker_overrides(),
            broker=self.image.broker_overrides(self.broker_id),
        )
        for report in reports:
            log.warning("%s", report.text)
        self.fetch_max_bytes = self.config.get("fetch.max.bytes")
        for name in dict.fromkeys(partition.topic for partition in self.partitions):
            self._set_options(name)
