"""The cluster as this broker knows it now: what Metadata, Produce and Fetch are answered from.

Lookups are plain dictionaries and lists. The image changes only through its methods, mostly `apply(change)`,
and each counts `revision` up, so an answer made from the image can be kept until the revision moves.
Partitions are never changed in place: a change puts a new `PartitionRegistration` into the topic's list.
"""

from collections.abc import Iterable, Mapping
from typing import NamedTuple, TypeVar

from penstock.model.acl import Pattern, Rule
from penstock.model.endpoints import Endpoint
from penstock.model.ids import NO_ID
from penstock.model.tokens import DelegationToken

NO_LEADER = -1
NO_CONTROLLER = -1
NO_STATE = -1
NO_BROKER_EPOCH = -1

# The kinds of things that carry dynamic configs, by Kafka's names in the tree.
TOPICS = "topics"
BROKERS = "brokers"
GROUPS = "groups"
CLIENT_METRICS = "client-metrics"
USERS = "users"
CLIENTS = "clients"
IPS = "ips"
USER_CLIENTS = "users/clients"
"""Client ids of users. The name is the path below /config/users: `ana/clients/app`."""
ALL_BROKERS = "<default>"

Value = TypeVar("Value")

_NO_OVERRIDES: Mapping[str, str] = {}


class BrokerRegistration(NamedTuple):
    """`epoch` numbers the registration (its node's `created`): a broker that was started again has a greater
    one. NO_BROKER_EPOCH where it is not known: the controller does not tell other brokers."""

    id: int
    endpoints: Mapping[str, Endpoint]
    rack: str | None = None
    epoch: int = NO_BROKER_EPOCH
    intact_since: int = NO_BROKER_EPOCH
    """The epoch of an earlier registration: its logs have lost nothing since."""
    features: Mapping[str, int] = {}
    """What it can do beyond the versions of its APIs, with the highest level of each. None known: {}."""


class PartitionRegistration(NamedTuple):
    """`partition_epoch` is the version of the partition's state node, which a conditional change must name;
    NO_STATE while there is no such node, in between Kafka's assigning a partition and electing its leader. `isr_epochs`, where
    all members of the ISR were gone: in which registrations they were in sync, in the order of `isr`; else empty."""

    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    leader: int
    leader_epoch: int = 0
    partition_epoch: int = 0
    adding: tuple[int, ...] = ()
    removing: tuple[int, ...] = ()
    isr_epochs: tuple[int, ...] = ()


class Topic:
    """Partition n is `partitions[n]`: Kafka numbers them from 0 without gaps."""

    __slots__ = ("name", "partitions", "topic_id")

    def __init__(self, name: str, *, topic_id: bytes, partitions: list[PartitionRegistration]) -> None:
        self.name = name
        self.topic_id = topic_id
        self.partitions = partitions

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Topic):
            return NotImplemented
        return (self.name, self.topic_id, self.partitions) == (other.name, other.topic_id, other.partitions)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"Topic({self.name!r}, topic_id={self.topic_id.hex()}, partitions={self.partitions!r})"


class TopicCreated(NamedTuple):
    name: str
    topic_id: bytes
    partitions: tuple[PartitionRegistration, ...]


class TopicDeleted(NamedTuple):
    name: str


class PartitionsAdded(NamedTuple):
    name: str
    partitions: tuple[PartitionRegistration, ...]


class PartitionChanged(NamedTuple):
    name: str
    partition_index: int
    partition: PartitionRegistration


class ConfigsChanged(NamedTuple):
    """All overrides of one entity, replacing those it had; None when its node in the tree is gone."""

    entity_type: str
    entity_name: str
    overrides: Mapping[str, str] | None


class AclsChanged(NamedTuple):
    """All access rules of one pattern, replacing those it had; none when it has none any more.

    `version` is that of their node, which a conditional change must name; NO_STATE where there is none. `fault` says why the
    node cannot be read: then nobody knows the rules, and all is denied."""

    pattern: Pattern
    rules: tuple[Rule, ...]
    version: int = NO_STATE
    fault: str = ""


class TokenChanged(NamedTuple):
    """A delegation token as it is from now on; None when it is gone."""

    token_id: str
    token: DelegationToken | None


Change = (
    TopicCreated
    | TopicDeleted
    | PartitionsAdded
    | PartitionChanged
    | ConfigsChanged
    | AclsChanged
    | TokenChanged
)


class ClusterImage:
    __slots__ = (
        "acl_faults",
        "acl_versions",
        "acls",
        "brokers",
        "cluster_id",
        "configs",
        "controller_epoch",
        "controller_id",
        "failed_replicas",
        "revision",
        "tokens",
        "topics",
        "topics_by_id",
    )

    def __init__(self) -> None:
        self.cluster_id = ""
        self.controller_id = NO_CONTROLLER
        self.controller_epoch = 0
        self.brokers: dict[int, BrokerRegistration] = {}
        self.topics: dict[str, Topic] = {}
        self.topics_by_id: dict[bytes, Topic] = {}
        self.configs: dict[str, dict[str, dict[str, str]]] = {}
        self.acls: dict[Pattern, tuple[Rule, ...]] = {}
        self.acl_versions: dict[Pattern, int] = {}
        self.acl_faults: dict[Pattern, str] = {}
        self.tokens: dict[str, DelegationToken] = {}
        self.failed_replicas: dict[tuple[str, int], tuple[int, ...]] = {}
        self.revision = 0

    def topic(self, name: str) -> Topic | None:
        return self.topics.get(name)

    def topic_with_id(self, topic_id: bytes) -> Topic | None:
        return self.topics_by_id.get(topic_id)

    def topic_id(self, name: str) -> bytes:
        topic = self.topics.get(name)
        return NO_ID if topic is None else topic.topic_id

    def topic_name(self, topic_id: bytes) -> str | None:
        topic = self.topics_by_id.get(topic_id)
        return None if topic is None else topic.name

    def partition(self, name: str, index: int) -> PartitionRegistration | None:
        topic = self.topics.get(name)
        if topic is None or not 0 <= index < len(topic.partitions):
            return None
        return topic.partitions[index]

    def offline_replicas(self, name: str, index: int) -> list[int]:
        """Replicas on brokers that are not there, or on a log directory that failed."""
        partition = self.partition(name, index)
        if partition is None:
            return []
        failed = self.failed_replicas.get((name, index), ())
        return [id for id in partition.replicas if id not in self.brokers or id in failed]

    def has_config_node(self, entity_type: str, entity_name: str) -> bool:
        """Whether the tree holds a node for the entity's overrides, be it an empty one."""
        return entity_name in self.configs.get(entity_type, {})

    def leader_and_offline(self, name: str, index: int) -> tuple[int, list[int]]:
        """Who serves a partition, and its offline replicas. A leader on a failed log directory leads no more, although nobody
        else can: NO_LEADER."""
        offline = self.offline_replicas(name, index)
        partition = self.partition(name, index)
        if partition is None or partition.leader in offline:
            return NO_LEADER, offline
        return partition.leader, offline

    def acl_state(self, pattern: Pattern) -> AclsChanged:
        """All that is known of a pattern's rules, as the change that makes it so."""
        return AclsChanged(
            pattern,
            self.acls.get(pattern, ()),
            self.acl_versions.get(pattern, NO_STATE),
            self.acl_faults.get(pattern, ""),
        )

    def overrides(self, entity_type: str, entity_name: str) -> Mapping[str, str]:
        return self.configs.get(entity_type, {}).get(entity_name, _NO_OVERRIDES)

    def topic_overrides(self, name: str) -> Mapping[str, str]:
        return self.overrides(TOPICS, name)

    def broker_overrides(self, broker_id: int) -> Mapping[str, str]:
        return self.overrides(BROKERS, str(broker_id))

    def all_broker_overrides(self) -> Mapping[str, str]:
        """The cluster-wide dynamic broker configs, Kafka's `<default>`."""
        return self.overrides(BROKERS, ALL_BROKERS)

    def set_cluster_id(self, cluster_id: str) -> None:
        self.cluster_id = cluster_id
        self.revision += 1

    def set_controller(self, broker_id: int, *, epoch: int) -> None:
        self.controller_id = broker_id
        self.controller_epoch = epoch
        self.revision += 1

    def add_broker(self, broker: BrokerRegistration) -> None:
        self.brokers[broker.id] = broker
        self.revision += 1

    def remove_broker(self, broker_id: int) -> None:
        self.brokers.pop(broker_id, None)
        self.revision += 1

    def set_brokers(self, brokers: Iterable[BrokerRegistration]) -> None:
        """These and no others; the revision stays when nothing differs, as a controller repeats itself."""
        found = {broker.id: broker for broker in brokers}
        if found != self.brokers:
            self.brokers = found
            self.revision += 1

    def set_failed_replicas(self, name: str, index: int, broker_ids: Iterable[int]) -> None:
        """Known from the brokers, not from the tree: it is gone after a restart, as the failure may be."""
        failed = tuple(broker_ids)
        if failed:
            self.failed_replicas[name, index] = failed
        else:
            self.failed_replicas.pop((name, index), None)
        self.revision += 1

    def apply(self, change: Change) -> None:
        if isinstance(change, TopicCreated):
            topic = Topic(change.name, topic_id=change.topic_id, partitions=list(change.partitions))
            self.topics[topic.name] = topic
            self.topics_by_id[topic.topic_id] = topic
        elif isinstance(change, TopicDeleted):
            self._delete_topic(change.name)
        elif isinstance(change, PartitionsAdded):
            self.topics[change.name].partitions.extend(change.partitions)
        elif isinstance(change, PartitionChanged):
            self.topics[change.name].partitions[change.partition_index] = change.partition
        elif isinstance(change, AclsChanged):
            _put(self.acls, change.pattern, change.rules or None)
            _put(self.acl_versions, change.pattern, change.version if change.version != NO_STATE else None)
            _put(self.acl_faults, change.pattern, change.fault or None)
        elif isinstance(change, TokenChanged):
            if change.token is not None:
                self.tokens[change.token_id] = change.token
            else:
                self.tokens.pop(change.token_id, None)
        else:
            entities = self.configs.setdefault(change.entity_type, {})
            if change.overrides is not None:
                entities[change.entity_name] = dict(change.overrides)
            else:
                entities.pop(change.entity_name, None)
        self.revision += 1

    def apply_all(self, changes: Iterable[Change]) -> None:
        for change in changes:
            self.apply(change)

    def changes_to(self, other: "ClusterImage") -> list[Change]:
        """What has to change here so that topics and configs are those of `other`. A topic of another id, or with fewer
        partitions, is another topic: deleted and made again."""
        changes: list[Change] = []
        for name, topic in self.topics.items():
            if _is_replaced(topic, by=other.topics.get(name)):
                changes.append(TopicDeleted(name))
        for name, topic in other.topics.items():
            known = self.topics.get(name)
            if known is None or _is_replaced(known, by=topic):
                changes.append(TopicCreated(name, topic.topic_id, tuple(topic.partitions)))
                continue
            for index, partition in enumerate(known.partitions):
                if partition != topic.partitions[index]:
                    changes.append(PartitionChanged(name, index, topic.partitions[index]))
            added = tuple(topic.partitions[len(known.partitions) :])
            if added:
                changes.append(PartitionsAdded(name, added))
        for entity_type in sorted(self.configs.keys() | other.configs.keys()):
            mine, theirs = self.configs.get(entity_type, {}), other.configs.get(entity_type, {})
            changes.extend(ConfigsChanged(entity_type, name, None) for name in mine if name not in theirs)
            for name, overrides in theirs.items():
                if mine.get(name) != overrides:
                    changes.append(ConfigsChanged(entity_type, name, overrides))
        for pattern in sorted(self.acl_versions.keys() | other.acl_versions.keys()):
            state = other.acl_state(pattern)
            if self.acl_state(pattern) != state:
                changes.append(state)
        for token_id in sorted(self.tokens.keys() | other.tokens.keys()):
            token = other.tokens.get(token_id)
            if self.tokens.get(token_id) != token:
                changes.append(TokenChanged(token_id, token))
        return changes

    def replace_with(self, other: "ClusterImage") -> list[Change]:
        """Become what was read from the tree; what differed, so that only that is acted upon."""
        changes = self.changes_to(other)
        self.apply_all(changes)
        self.set_brokers(other.brokers.values())
        if self.cluster_id != other.cluster_id:
            self.set_cluster_id(other.cluster_id)
        if (self.controller_id, self.controller_epoch) != (other.controller_id, other.controller_epoch):
            self.set_controller(other.controller_id, epoch=other.controller_epoch)
        return changes

    def _delete_topic(self, name: str) -> None:
        topic = self.topics.pop(name)
        del self.topics_by_id[topic.topic_id]
        for index in range(len(topic.partitions)):
            self.failed_replicas.pop((name, index), None)

    def differences(self, other: "ClusterImage") -> list[str]:
        """What two images do not share, leaving out what the tree does not hold; for tests and for fsck-like
        checks."""
        found = []
        for name in (
            "cluster_id",
            "controller_id",
            "controller_epoch",
            "brokers",
            "topics",
            "acls",
            "acl_versions",
            "tokens",
        ):
            mine, theirs = getattr(self, name), getattr(other, name)
            if mine != theirs:
                found.append(f"{name}: {mine!r} is not {theirs!r}")
        for entity_type in self.configs.keys() | other.configs.keys():
            mine, theirs = self.configs.get(entity_type, {}), other.configs.get(entity_type, {})
            if mine != theirs:
                found.append(f"configs of {entity_type}: {mine!r} are not {theirs!r}")
        return found


def _put(table: dict[Pattern, Value], pattern: Pattern, value: Value | None) -> None:
    if value is None:
        table.pop(pattern, None)
    else:
        table[pattern] = value


def _is_replaced(topic: Topic, *, by: Topic | None) -> bool:
    return by is None or by.topic_id != topic.topic_id or len(by.partitions) < len(topic.partitions)
