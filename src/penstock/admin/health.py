"""Whether a cluster is healthy: what its Metadata says, judged.

Healthy is a cluster with a controller in which every replica of every partition is in sync, nothing is without a leader
and no broker that should keep something is missing. Leaders that are unevenly spread cost speed, not safety: they are
told, and are no fault. So are strays of partitions that the cluster has. Those of which there are only strays are a fault: the
metadata may be lost. A partition that cannot be read at some offset is one too: its broker, or a follower that cannot get past
it, says so by DescribeLogDirs. So are a failed log directory, a broker without a session, and brokers that disagree about who is
there: a broker that ZooKeeper does not serve goes on telling what it knew.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from penstock.admin.configs import topics_configs
from penstock.admin.moves.cluster import ongoing
from penstock.admin.moves.model import Reassignment
from penstock.admin.strays import StrayTopic, by_topic, strays_of
from penstock.client.cluster_client import BrokerNode, ClusterClient
from penstock.client.error_names import refused
from penstock.client.errors import Refused, Unreachable
from penstock.client.wire_client import UnsupportedByBroker
from penstock.model.endpoints import Address
from penstock.model.errors import ErrorCode
from penstock.model.ids import TopicPartition
from penstock.model.strays import FoundStray
from penstock.wire.messages.describe_log_dirs import DescribeLogDirsRequest, DescribeLogDirsResponse
from penstock.wire.messages.metadata import MetadataRequest, MetadataResponse

MIN_ISR = "min.insync.replicas"
NO_LEADER = -1


class PartitionState(NamedTuple):
    partition: TopicPartition
    leader: int
    replicas: list[int]
    isr: list[int]


class BrokerHealth(NamedTuple):
    id: int
    address: str
    rack: str | None
    partitions: int
    leaders: int


class DamagedPartition(NamedTuple):
    partition: TopicPartition
    broker: int
    """Whose log it is."""
    offset: int
    cause: str
    seen_by: int


class BrokerView(NamedTuple):
    """Who is there, as one broker knows it."""

    broker: int
    controller: int
    brokers: tuple[int, ...]


class FailedDirectory(NamedTuple):
    broker: int
    path: str
    cause: str


class Told(NamedTuple):
    """What the brokers say about themselves, each on its own."""

    damaged: tuple[DamagedPartition, ...] = ()
    strays: tuple[FoundStray, ...] = ()
    failed_directories: tuple[FailedDirectory, ...] = ()
    without_session: tuple[tuple[int, str], ...] = ()
    """Broker, and what is wrong with its session with ZooKeeper."""
    disagreeing: tuple[BrokerView, ...] = ()
    """Brokers of a cluster that do not know the same controller and brokers as the one that was asked first."""

    @property
    def strays_of_each(self) -> list[tuple[int, int]]:
        """Broker, and how many it has."""
        return list(Counter(stray.broker for stray in self.strays if stray.broker is not None).items())


class Health(NamedTuple):
    cluster_id: str | None
    controller: int | None
    brokers: list[BrokerHealth]
    missing_brokers: list[int]
    """Those that should keep partitions and are not there."""
    num_partitions: int
    under_replicated: list[PartitionState]
    offline: list[PartitionState]
    below_min_isr: list[PartitionState]
    not_preferred: list[PartitionState]
    """Led by another than the first replica, though that one is in sync."""
    told: Told = Told()
    lost: tuple[StrayTopic, ...] = ()
    """Topics that have partitions of which there are only strays."""

    @property
    def is_healthy(self) -> bool:
        return self.controller is not None and not (
            self.missing_brokers
            or self.under_replicated
            or self.offline
            or self.below_min_isr
            or self.lost
            or self.told.damaged
            or self.told.failed_directories
            or self.told.without_session
            or self.told.disagreeing
        )

    @property
    def leader_skew(self) -> float:
        """How many times its even share the broker with most leaders leads; 1.0 is even."""
        leaders = [broker.leaders for broker in self.brokers]
        return max(leaders) * len(leaders) / sum(leaders) if any(leaders) else 1.0


def examine(client: ClusterClient) -> Health:
    described = client.metadata()
    minimums = min_in_sync(client, [topic.name or "" for topic in described.topics])
    told = _ask_each(client, described)
    return judge(described, minimums, _moving(client, described))._replace(
        told=told, lost=tuple(topic for topic in by_topic(told.strays, described.topics) if topic.lost)
    )


def _ask_each(client: ClusterClient, described: MetadataResponse) -> Told:
    """Brokers that do not answer, or are not Penstock's, tell nothing. Refused where we may not ask: then neither do we see all
    topics, and nothing that we saw would mean that the cluster is healthy."""
    damaged: list[DamagedPartition] = []
    strays: list[FoundStray] = []
    failed: list[FailedDirectory] = []
    without_session: list[tuple[int, str]] = []
    views: list[BrokerView] = []
    for one in described.brokers:
        node = BrokerNode(one.node_id, one.host, one.port)
        try:
            answer = client.ask_node(node, DescribeLogDirsRequest(topics=None), DescribeLogDirsResponse)
            if answer.penstock_session:
                known = client.ask_node(node, MetadataRequest(topics=[]), MetadataResponse)
                views.append(_view(one.node_id, known))
        except (Unreachable, UnsupportedByBroker):
            continue
        if answer.error_code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED:
            raise refused(answer.error_code)
        without_session += [
            (one.node_id, session.trouble) for session in answer.penstock_session if session.trouble
        ]
        strays += strays_of(one.node_id, answer)
        damaged += _damaged_in(answer, one.node_id)
        failed += [
            FailedDirectory(one.node_id, directory.log_dir, failure.cause)
            for directory in answer.results
            for failure in directory.penstock_failure
        ]
    return Told(
        tuple(sorted(damaged)),
        tuple(strays),
        tuple(sorted(failed)),
        tuple(sorted(without_session)),
        tuple(sorted(view for view in views if view[1:] != _view(view.broker, described)[1:])),
    )


def _view(broker: int, known: MetadataResponse) -> BrokerView:
    return BrokerView(broker, known.controller_id, tuple(sorted(one.node_id for one in known.brokers)))


def _damaged_in(answer: DescribeLogDirsResponse, seen_by: int) -> list[DamagedPartition]:
    return [
        DamagedPartition(
            TopicPartition(topic.name, held.partition_index),
            damage.broker_id,
            damage.offset,
            damage.cause,
            seen_by,
        )
        for directory in answer.results
        for topic in directory.topics
        for held in topic.partitions
        for damage in held.penstock_damage
    ]


def _moving(client: ClusterClient, described: MetadataResponse) -> dict[TopicPartition, Reassignment]:
    """Of the partitions that have replicas which are not in sync, those that are being reassigned, as far as somebody says so:
    a cluster without a controller is to be shown, not waited for."""
    behind = [
        state.partition for state in partition_states(described) if len(state.isr) < len(state.replicas)
    ]
    if not behind:
        return {}
    try:
        return ongoing(client, behind, patience_s=0)
    except (Unreachable, Refused):
        return {}


def partition_states(described: MetadataResponse) -> list[PartitionState]:
    return sorted(
        PartitionState(
            TopicPartition(topic.name or "", one.partition_index),
            one.leader_id,
            list(one.replica_nodes),
            list(one.isr_nodes),
        )
        for topic in described.topics
        for one in topic.partitions
    )


def judge(
    described: MetadataResponse,
    minimums: Mapping[str, int],
    moving: Mapping[TopicPartition, Reassignment] | None = None,
) -> Health:
    """`minimums` are the topics' min.insync.replicas. A replica that is being added (`moving`) has not to be in sync yet."""
    states = partition_states(described)
    live = {one.node_id for one in described.brokers}
    replicas = Counter(broker for state in states for broker in state.replicas)
    leaders = Counter(state.leader for state in states)
    offline = [state for state in states if state.leader not in live]
    return Health(
        described.cluster_id,
        described.controller_id if described.controller_id in live else None,
        [
            BrokerHealth(
                one.node_id,
                str(Address(one.host, one.port)),
                one.rack,
                replicas[one.node_id],
                leaders[one.node_id],
            )
            for one in sorted(described.brokers, key=lambda one: one.node_id)
        ],
        sorted(replicas.keys() - live),
        len(states),
        [state for state in states if not _due(state, moving or {}).issubset(state.isr)],
        offline,
        [
            state
            for state in states
            if state.leader in live and len(state.isr) < minimums.get(state.partition.topic, 1)
        ],
        [
            state
            for state in states
            if state.replicas[0] != state.leader and state.replicas[0] in state.isr and state.leader in live
        ],
    )


def _due(state: PartitionState, moving: Mapping[TopicPartition, Reassignment]) -> set[int]:
    """The replicas that should be in sync."""
    reassignment = moving.get(state.partition)
    return set(state.replicas).difference(reassignment.adding if reassignment else ())


def min_in_sync(client: ClusterClient, topics: Iterable[str]) -> dict[str, int]:
    """`min.insync.replicas` of each topic."""
    return {
        described.resource_name: int(config.value or 1)
        for described in topics_configs(client, topics, [MIN_ISR])
        for config in described.configs
    }
