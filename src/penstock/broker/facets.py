"""The parts of the node that a room or a handler may need.

Each facet names one attribute of the node. Code that needs several combines them in a protocol of its own:

    class Needs(WithImage, WithPartitions, Protocol): ...

So the signature says what the code can touch, and a test provides just that. They exist for the type checker only:
import them under TYPE_CHECKING.
"""

from asyncio import AbstractEventLoop
from random import Random
from typing import TYPE_CHECKING, Protocol, TypeVar

from penstock.wire.schema import Message

if TYPE_CHECKING:
    from penstock.broker.access.authorizer import Authorizer
    from penstock.broker.access.decoys import Decoys
    from penstock.broker.access.tokens import DelegationTokens
    from penstock.broker.cluster.addresses import Addresses
    from penstock.broker.cluster.controlling import Controlling
    from penstock.broker.cluster.membership import Membership
    from penstock.broker.cluster.spoken import Spoken
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
    from penstock.broker.partitions.fetch_sessions import FetchSessions
    from penstock.broker.partitions.held_partitions import HeldPartitions
    from penstock.broker.partitions.openings import Openings
    from penstock.broker.partitions.partition import Partition
    from penstock.broker.quotas.client_quotas import ClientQuotas
    from penstock.broker.replication.cuts import Cuts
    from penstock.broker.replication.roles import Roles
    from penstock.broker.requests.answers import Answers
    from penstock.broker.requests.marks import Marks
    from penstock.broker.upkeep.cleaner import Cleaner
    from penstock.broker.upkeep.flushes import Flushes
    from penstock.broker.upkeep.log_moves import LogMoves
    from penstock.config.layers import BrokerConfig
    from penstock.metadata.image import ClusterImage
    from penstock.metadata.tree import MetadataTree
    from penstock.net.peers import Peers
    from penstock.runtime.clock import Clock
    from penstock.runtime.pools import Pools

R = TypeVar("R", bound=Message)

# --- the world


class WithLoop(Protocol):
    @property
    def loop(self) -> AbstractEventLoop: ...


class WithPools(Protocol):
    @property
    def pools(self) -> "Pools": ...


class WithClock(Protocol):
    @property
    def clock(self) -> "Clock": ...


class WithRandom(Protocol):
    @property
    def random(self) -> Random: ...


class WithTree(Protocol):
    @property
    def tree(self) -> "MetadataTree": ...


class WithPeers(Protocol):
    @property
    def peers(self) -> "Peers":
        """Only in a cluster."""

    @property
    def spoken(self) -> "Spoken":
        """In which versions they are asked; as above."""


# --- who we are, and what we know


class WithConfig(Protocol):
    @property
    def config(self) -> "BrokerConfig": ...


class WithBrokerId(Protocol):
    @property
    def broker_id(self) -> int: ...


class WithBrokerEpoch(Protocol):
    @property
    def broker_epoch(self) -> int:
        """Of our registration; NO_BROKER_EPOCH while we have none."""


class WithRegistration(Protocol):
    """For who registers us; everybody else only looks at the epoch."""

    broker_epoch: int


class WithClustered(Protocol):
    @property
    def is_clustered(self) -> bool:
        """Whether there may be other brokers."""


class WithStopping(Protocol):
    @property
    def is_stopping(self) -> bool: ...


class WithImage(Protocol):
    @property
    def image(self) -> "ClusterImage": ...


class WithAuthorizer(Protocol):
    @property
    def authorizer(self) -> "Authorizer": ...


class WithClientQuotas(Protocol):
    @property
    def client_quotas(self) -> "ClientQuotas": ...


class WithDecoys(Protocol):
    @property
    def decoys(self) -> "Decoys": ...


class WithTokens(Protocol):
    @property
    def tokens(self) -> "DelegationTokens": ...


class WithAddresses(Protocol):
    @property
    def addresses(self) -> "Addresses": ...


# --- what clients read and write


class WithPartitions(Protocol):
    @property
    def partitions(self) -> "HeldPartitions": ...


class WithFetchSessions(Protocol):
    @property
    def fetch_sessions(self) -> "FetchSessions": ...


class WithOpenings(Protocol):
    @property
    def openings(self) -> "Openings": ...


class WithAnswers(Protocol):
    @property
    def answers(self) -> "Answers": ...


class WithDiskFaults(Protocol):
    def report_disk_fault(
        self, what: str, error: OSError, partition: "Partition | None" = None, *, path: str | None = None
    ) -> None:
        """A fault of the disk under a partition, or in the log directory of that path, takes the directory offline."""


class WithProof(Protocol):
    def is_proven(self) -> bool:
        """Whether we may acknowledge without asking our followers."""


# --- coordinators


class WithGroups(Protocol):
    @property
    def groups(self) -> "GroupHost": ...


class WithTransactions(Protocol):
    @property
    def transactions(self) -> "TransactionHost": ...


class WithCoordinators(WithGroups, WithTransactions, Protocol):
    def coordinator_of(self, topic: str) -> "GroupHost | TransactionHost | None":
        """Whose state the topic holds, if it is an internal one."""


# --- metadata and the cluster


class WithChanges(Protocol):
    @property
    def changes(self) -> "Changes": ...


class WithEffects(Protocol):
    @property
    def effects(self) -> "Effects": ...


class WithTopics(Protocol):
    @property
    def topics(self) -> "Topics": ...


class WithConfigs(Protocol):
    @property
    def configs(self) -> "Configs": ...


class WithMarks(Protocol):
    @property
    def marks(self) -> "Marks":
        """The proofs that a broker has passed a request on."""


class WithPasswords(Protocol):
    @property
    def passwords(self) -> "StoredPasswords": ...


class WithProducerIds(Protocol):
    @property
    def producer_ids(self) -> "ProducerIds": ...


class WithControlling(Protocol):
    @property
    def controlling(self) -> "Controlling":
        """Only in a cluster."""


class WithController(Protocol):
    @property
    def is_controller(self) -> bool: ...

    async def ask_controller(self, request: Message, response: type[R], *, timeout_s: float) -> R:
        """ApiError or OSError when there is none, or it does not answer."""


class WithMembership(Protocol):
    @property
    def membership(self) -> "Membership":
        """Only in a cluster."""


class WithCuts(Protocol):
    @property
    def cuts(self) -> "Cuts": ...


class WithRoles(Protocol):
    @property
    def roles(self) -> "Roles":
        """Only in a cluster."""


class WithClientMetrics(Protocol):
    @property
    def client_metrics(self) -> "ClientMetrics": ...


class WithRequestCounts(Protocol):
    @property
    def request_counts(self) -> "RequestCounts": ...


# --- upkeep


class WithCleaner(Protocol):
    @property
    def cleaner(self) -> "Cleaner": ...


class WithFlushes(Protocol):
    @property
    def flushes(self) -> "Flushes": ...


class WithLogMoves(Protocol):
    @property
    def log_moves(self) -> "LogMoves": ...
