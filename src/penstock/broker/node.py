"""The node: what one broker consists of.

It is built from a configuration and a metadata store, and is only wiring: each part does its own work. Nobody receives it
whole but `serving`, `process` and `dispatch`. A room or a handler says by a facet (`broker/facets.py`) what it needs of it.
"""

import logging
import os
from asyncio import AbstractEventLoop
from collections.abc import Callable
from functools import partial
from random import Random
from typing import TYPE_CHECKING, Final, TypeVar

from penstock.broker.access.authorizer import Authorizer
from penstock.broker.access.decoys import Decoys
from penstock.broker.access.doors import Doors
from penstock.broker.access.tokens import DelegationTokens
from penstock.broker.cluster.addresses import Addresses
from penstock.broker.coordinators.groups import GroupHost
from penstock.broker.coordinators.transactions import TransactionHost
from penstock.broker.metadata.changes import Changes
from penstock.broker.metadata.configs import Configs
from penstock.broker.metadata.effects import Effects
from penstock.broker.metadata.producer_ids import ProducerIds
from penstock.broker.metadata.stored_passwords import StoredPasswords
from penstock.broker.metadata.topics import Topics
from penstock.broker.metrics.client_metrics import ClientMetrics
from penstock.broker.metrics.request_counts import RequestCounts
from penstock.broker.partitions.fetch_sessions import MAX_SESSION_ID, FetchSessions
from penstock.broker.partitions.held_partitions import HeldPartitions
from penstock.broker.partitions.openings import Openings
from penstock.broker.partitions.partition import Partition
from penstock.broker.quotas.client_quotas import ClientQuotas
from penstock.broker.replication.cuts import Cuts
from penstock.broker.requests.answers import Answers
from penstock.broker.requests.marks import Marks
from penstock.broker.schemas.checks import SchemaChecks
from penstock.broker.upkeep.cleaner import Cleaner
from penstock.broker.upkeep.flushes import Flushes
from penstock.broker.upkeep.log_directories import is_of_the_disk
from penstock.broker.upkeep.log_moves import LogMoves
from penstock.config.layers import BrokerConfig
from penstock.metadata.image import (
    NO_BROKER_EPOCH,
    NO_CONTROLLER,
    BrokerRegistration,
    ClusterImage,
)
from penstock.metadata.tree import MetadataTree
from penstock.model.api_keys import ApiKey
from penstock.model.endpoints import Endpoint
from penstock.model.errors import ApiError, ErrorCode
from penstock.model.ids import TopicPartition
from penstock.model.internal_topics import CONSUMER_OFFSETS, TRANSACTION_STATE
from penstock.runtime.clock import Clock
from penstock.runtime.pools import Pools
from penstock.wire.schema import Message

if TYPE_CHECKING:
    from penstock.broker.cluster.continuity import Continuity
    from penstock.broker.cluster.controlling import Controlling
    from penstock.broker.cluster.membership import Membership
    from penstock.broker.cluster.spoken import Spoken
    from penstock.broker.replication.roles import Roles
    from penstock.net.peers import Connect, Peers

log = logging.getLogger("penstock.broker")

R = TypeVar("R", bound=Message)


class Node:
    # Of a cluster, and not touched where there is none: see `enter_cluster`.
    roles: "Roles"
    controlling: "Controlling"
    membership: "Membership"
    peers: "Peers"
    spoken: "Spoken"

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
        self.broker_id: Final = config.node_id
        self.is_clustered: Final = bool(config.get("zookeeper.connect"))
        """Whether there may be other brokers: APIs between brokers are offered and taken only then."""
        self.effects: Final = Effects(self, is_clustered=self.is_clustered)
        self.changes = Changes(image, tree, self.effects.prepare, self.effects.act)
        self.topics = Topics(self, self.changes)
        self.pools = Pools(loop)
        self.passwords: Final = StoredPasswords(config)
        self.configs = Configs(self, self.changes)
        self.producer_ids = ProducerIds(tree, self.broker_id)
        self.addresses: Final = Addresses(self, advertised)
        self.fetch_sessions = FetchSessions(
            config.get("max.incremental.fetch.session.cache.slots"),
            lambda: self.random.randint(1, MAX_SESSION_ID),
        )
        self.request_counts: Final = RequestCounts()
        self.groups = GroupHost(self)
        self.transactions = TransactionHost(self)
        self.authorizer: Final = Authorizer(config, loop)
        for pattern in image.acl_versions:
            self.authorizer.learn(image.acl_state(pattern))
        self.client_quotas: Final = ClientQuotas(self)
        self.tokens: Final = DelegationTokens(config, image, clock, self.pools)
        self.decoys: Final = Decoys(self)
        self.doors: Final = Doors(self)
        self.flushes = Flushes(self)
        partitions.flush_soon = self.flushes.ask
        self.cuts = Cuts(self)
        self.log_moves = LogMoves(self)
        self.cleaner = Cleaner(self)
        self.client_metrics = ClientMetrics(self)
        self.answers = Answers()
        self.openings = Openings(
            self.pools.codecs, self.pools.reads, SchemaChecks(config, clock, self.pools.registry)
        )
        self.marks = Marks()
        self.is_stopping = False
        self.broker_epoch = NO_BROKER_EPOCH
        """Of our registration, while we have one."""
        self.end: Callable[[str], None] = lambda reason: None
        """Asks the process to end because the broker cannot continue; gets one line for the operator."""
        partitions.on_offline = self._went_offline
        self._directory_failed: Callable[[], None] = lambda: None

    # --- in a cluster

    def enter_cluster(
        self, registration: BrokerRegistration, connect: "Connect | None", continuity: "Continuity"
    ) -> "Membership":
        from penstock.broker.access.inter_broker import inter_broker_listener
        from penstock.broker.access.peer_access import own_principal, secured_connect
        from penstock.broker.cluster.controlling import Controlling
        from penstock.broker.cluster.membership import Membership
        from penstock.broker.cluster.spoken import Spoken
        from penstock.broker.replication.roles import Roles
        from penstock.broker.requests.forwarding import is_beside_kafka
        from penstock.net.peers import Peers

        self.changes.resign()  # until we are the controller
        client_id = f"broker-{self.broker_id}"
        self.authorizer.own_listener = inter_broker_listener(self.config)
        self.authorizer.own_principal = own_principal(self.config)
        connect = connect or secured_connect(self.config, self.pools, client_id, self.doors.to_brokers)
        self.peers = Peers(self.loop, client_id, connect)
        self.spoken = Spoken(self)
        self.roles = Roles(self)
        self._directory_failed = self.roles.directory_failed
        self.controlling = Controlling(self, self.tree)
        self.membership = Membership(self, self.tree, registration, continuity)  # type: ignore[arg-type]
        self.changes.may_anybody = partial(is_beside_kafka, self)
        self.effects.followers_of_configs += [self.roles.quotas, self.controlling]
        self.addresses.tell(self.peers)
        self.roles.start()
        return self.membership

    async def leave_cluster(self) -> None:
        await self.membership.leave()
        self.controlling.resign()
        self.roles.stop()
        self.peers.close()

    async def hand_over(self) -> None:
        """A stop without a word would leave our partitions without leaders until the session ends."""
        from penstock.broker.cluster.shutdown import hand_over

        await hand_over(self)

    @property
    def is_controller(self) -> bool:
        return not self.is_clustered or self.controlling.is_active

    def is_proven(self) -> bool:
        """Whether we may acknowledge without asking our followers: see `cluster/membership.py`."""
        return not self.is_clustered or self.membership.is_proven()

    async def ask_controller(self, request: Message, response: type[R], *, timeout_s: float) -> R:
        """ApiError or OSError when there is none, or it does not answer."""
        controller_id = self.image.controller_id
        if self.controlling.is_active:
            answer = await self.controlling.requests.answer(request)
            assert isinstance(answer, response)
            return answer
        if controller_id in (NO_CONTROLLER, self.broker_id):
            raise ApiError(ErrorCode.NOT_CONTROLLER, "the cluster has no controller at the moment")
        version = await self.spoken.version(controller_id, ApiKey(request.API_KEY))
        return await self.peers.ask(controller_id, request, response, version=version, timeout_s=timeout_s)

    def coordinator_of(self, topic: str) -> "GroupHost | TransactionHost | None":
        """Whose state the topic holds, if it is an internal one."""
        if topic == CONSUMER_OFFSETS:
            return self.groups
        return self.transactions if topic == TRANSACTION_STATE else None

    # --- faults of the disk

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
