"""Creates and deletes topics."""

from collections import Counter
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from typing import NamedTuple, Protocol

from penstock.controller import names, placement
from penstock.controller.decision import MAX_PARTITIONS_PER_REQUEST, Charge, Decision, free
from penstock.metadata import znodes
from penstock.metadata.image import (
    NO_STATE,
    TOPICS,
    ClusterImage,
    ConfigsChanged,
    PartitionRegistration,
    Topic,
    TopicCreated,
    TopicDeleted,
)
from penstock.metadata.tree import Create, Delete, TreeOp
from penstock.model.errors import ApiError, ErrorCode
from penstock.model.ids import NO_ID
from penstock.model.internal_topics import CLUSTER_METADATA
from penstock.wire.messages.create_topics import CreatableTopic, CreatableTopicResult, CreateTopicsRequest
from penstock.wire.messages.delete_topics import DeletableTopicResult, DeleteTopicsRequest

# Given all overrides that a topic would have; raises ApiError (INVALID_CONFIG) when they are not allowed.
CheckOverrides = Callable[[Mapping[str, str]], None]


class TopicDefaults(NamedTuple):
    """The broker's num.partitions and default.replication.factor, for requests that say -1."""

    num_partitions: int = 1
    replication_factor: int = 1


def create_topics(
    image: ClusterImage,
    request: CreateTopicsRequest,
    *,
    defaults: TopicDefaults,
    check_overrides: CheckOverrides,
    new_topic_id: Callable[[], bytes],
    start_index: int = 0,
    marked: Container[str] = (),
    leaving: Container[int] = (),
    charge: Charge = free,
) -> Decision[CreatableTopicResult]:
    """Each topic of its own: one that is refused does not keep the others from being made.

    `start_index` is the place in the ring of brokers where the first new topic begins; each further topic
    begins one place later. Results hold what a caller who may describe the configs sees, except the configs
    themselves. `marked` are the names under /admin/delete_topics: whatever that was meant for, it was not the new topic. Brokers
    that are `leaving` lead a new partition only where no other could.
    """
    decision: Decision[CreatableTopicResult] = Decision([], [], [])
    times_named = Counter(topic.name for topic in request.topics)
    partitions_made = 0
    # A name that comes twice is refused once.
    for position, topic in enumerate({topic.name: topic for topic in request.topics}.values()):
        try:
            if times_named[topic.name] > 1:
                raise ApiError(ErrorCode.INVALID_REQUEST, "Duplicate topic name.")
            overrides = _check_new_topic(image, topic, check_overrides)
            replicas = _new_replicas(image, topic, defaults, start_index=start_index + position)
            if topic.penstock_restored:
                partitions = _restored_topic(image, topic, replicas)
            else:
                partitions = tuple(new_partition(each, leaving=leaving) for each in replicas)
            partitions_made += len(partitions)
            if partitions_made > MAX_PARTITIONS_PER_REQUEST:
                raise too_many_partitions()
            if not request.validate_only:
                charge(len(partitions))
            topic_id = topic.penstock_restored[0].topic_id if topic.penstock_restored else new_topic_id()
        except ApiError as error:
            decision.results.append(_refused(topic.name, error))
            continue
        decision.results.append(
            CreatableTopicResult(
                name=topic.name,
                topic_id=NO_ID if request.validate_only else topic_id,
                error_message=None,
                num_partitions=len(partitions),
                replication_factor=len(partitions[0].replicas),
            )
        )
        if not request.validate_only:
            decision.changes.append(TopicCreated(topic.name, topic_id, partitions))
            decision.changes.append(ConfigsChanged(TOPICS, topic.name, overrides))
            if topic.name in marked:
                decision.ops.append(Delete(znodes.delete_topic_path(topic.name)))
            decision.ops.extend(_creation(image, topic.name, topic_id, partitions, overrides))
    return decision


def incomplete_topics(image: ClusterImage, request: DeleteTopicsRequest) -> list[str]:
    """Those of the topics to delete that were half made or half deleted: what the tree has of them has to be looked up."""
    asked = [image.topic(name) for name in request.topic_names]
    for each in request.topics:
        asked.append(image.topic_with_id(each.topic_id) if each.name is None else image.topic(each.name))
    return [topic.name for topic in asked if topic is not None and is_incomplete(topic)]


def is_incomplete(topic: Topic) -> bool:
    return any(partition.partition_epoch == NO_STATE for partition in topic.partitions)


def delete_topics(
    image: ClusterImage,
    request: DeleteTopicsRequest,
    *,
    deletion_enabled: bool = True,
    marked: Container[str] = (),
    existing: Container[str] = (),
    charge: Charge = free,
) -> Decision[DeletableTopicResult]:
    """By name (`topic_names` before version 6, `topics[].name` from then) or by id; each topic of its own.

    Kafka postpones a deletion until every replica's broker has confirmed it. Here the nodes are gone at once, and the name is
    free: a broker that is away finds, when it returns, a topic id that the tree does not know, and keeps the log as a stray.

    `marked` are the names under /admin/delete_topics: a mark goes with its topic, or the next topic of that name would be
    deleted for it. `existing` are the paths that the tree has of `incomplete_topics`.
    """
    decision: Decision[DeletableTopicResult] = Decision([], [], [])
    asked: list[tuple[str | None, bytes]] = [(name, NO_ID) for name in request.topic_names]
    asked += [(topic.name, topic.topic_id) for topic in request.topics]
    times_asked = Counter(asked)
    deleted: set[str] = set()
    for name, topic_id in times_asked:
        try:
            if not deletion_enabled:
                raise ApiError(ErrorCode.TOPIC_DELETION_DISABLED, "Topic deletion is disabled.")
            if times_asked[name, topic_id] > 1:
                kind = "id" if name is None else "name"
                raise ApiError(ErrorCode.INVALID_REQUEST, f"Duplicate topic {kind}.")
            topic = _find(image, name, topic_id)
            if topic.name in deleted:
                raise ApiError(
                    ErrorCode.INVALID_REQUEST,
                    "The provided topic name maps to an ID that was already supplied.",
                )
            charge(len(topic.partitions))
        except ApiError as error:
            decision.results.append(
                DeletableTopicResult(
                    name=name, topic_id=topic_id, error_code=error.code, error_message=error.detail
                )
            )
            continue
        deleted.add(topic.name)
        decision.results.append(DeletableTopicResult(name=topic.name, topic_id=topic.topic_id))
        paths = existing if is_incomplete(topic) else _paths_of(topic)
        decision.ops.extend(_deletion(image, topic, paths))
        if topic.name in marked:
            decision.ops.append(Delete(znodes.delete_topic_path(topic.name)))
        decision.changes.append(TopicDeleted(topic.name))
        decision.changes.append(ConfigsChanged(TOPICS, topic.name, None))
    return decision


def marked_for_deletion(
    image: ClusterImage, names: Iterable[str], *, existing: Container[str], deletion_enabled: bool = True
) -> Decision[None]:
    """Topics with a node under /admin/delete_topics: older tools ask that way, and a deletion too large for one write marks the
    topic first (`decision.chunks`). `existing` are the paths that the tree has of these topics: half may be gone. Where deletion
    is disabled a mark goes without its topic, as Kafka has it, unless half of that is gone already."""
    decision: Decision[None] = Decision([], [], [])
    for name in names:
        topic = image.topic(name)
        if topic is not None and (deletion_enabled or is_incomplete(topic)):
            decision.ops.extend(_deletion(image, topic, existing))
            decision.changes.append(TopicDeleted(name))
            decision.changes.append(ConfigsChanged(TOPICS, name, None))
        decision.ops.append(Delete(znodes.delete_topic_path(name)))
    return decision


def new_partition(replicas: tuple[int, ...], *, leaving: Container[int] = ()) -> PartitionRegistration:
    """A partition as it begins. Only brokers that are there are ever given one, so all its replicas are in
    sync, but for those that are leaving and not all there are."""
    isr = tuple(id for id in replicas if id not in leaving) or replicas
    return PartitionRegistration(replicas, isr, isr[0])


class Restored(Protocol):
    """What a request says of partitions that the brokers have as strays."""

    @property
    def topic_id(self) -> bytes: ...
    @property
    def leader_epoch(self) -> int: ...
    @property
    def leaders(self) -> Sequence[int]: ...


def _restored_topic(
    image: ClusterImage, topic: CreatableTopic, replicas: list[tuple[int, ...]]
) -> tuple[PartitionRegistration, ...]:
    restored = topic.penstock_restored[0]
    known = image.topic_with_id(restored.topic_id)
    if known is not None:
        raise ApiError(ErrorCode.TOPIC_ALREADY_EXISTS, f"The topic id belongs to topic '{known.name}'.")
    return restored_partitions(restored, replicas if topic.assignments else [])


def restored_partitions(
    restored: Restored, replicas: list[tuple[int, ...]]
) -> tuple[PartitionRegistration, ...]:
    """Partitions whose logs the brokers have, as strays: see `broker/upkeep/strays.py`. One replica of each has all of it, and
    leads first; the others are in sync when they have caught up.
    """
    if not replicas or restored.topic_id == NO_ID or restored.leader_epoch < 0:
        raise ApiError(
            ErrorCode.INVALID_REQUEST,
            "To restore a topic, its id, a leader epoch and the replicas are needed.",
        )
    leaders = restored.leaders or [each[0] for each in replicas]
    if len(leaders) != len(replicas) or any(
        leader not in each for leader, each in zip(leaders, replicas, strict=False)
    ):
        raise ApiError(
            ErrorCode.INVALID_REQUEST, "Each partition to restore is led by one of its own replicas."
        )
    return tuple(
        PartitionRegistration(each, (leader,), leader, leader_epoch=restored.leader_epoch)
        for leader, each in zip(leaders, replicas, strict=True)
    )


def partition_creation(
    name: str, index: int, partition: PartitionRegistration, *, controller_epoch: int
) -> list[TreeOp]:
    state = znodes.encode_partition_state(partition, controller_epoch=controller_epoch)
    return [
        Create(znodes.partition_path(name, index)),
        Create(znodes.partition_state_path(name, index), state),
    ]


def too_many_partitions() -> ApiError:
    return ApiError(ErrorCode.POLICY_VIOLATION, "Excessively large number of partitions per request.")


def _check_new_topic(image: ClusterImage, topic: CreatableTopic, check: CheckOverrides) -> dict[str, str]:
    """The overrides the topic would have; ApiError when it may not be made at all."""
    if topic.name == CLUSTER_METADATA:
        raise ApiError(ErrorCode.INVALID_REQUEST, f"Creation of internal topic {topic.name} is prohibited.")
    if image.topic(topic.name) is not None:
        raise ApiError(ErrorCode.TOPIC_ALREADY_EXISTS, f"Topic '{topic.name}' already exists.")
    names.check_name(topic.name)
    names.check_collision(topic.name, image.topics)
    overrides: dict[str, str] = {}
    without_value = []
    for config in topic.configs:
        if config.value is None:
            without_value.append(config.name)
        else:
            overrides[config.name] = config.value
    if without_value:
        raise ApiError(
            ErrorCode.INVALID_CONFIG,
            f"Null value not supported for topic configs: {','.join(without_value)}",
        )
    check(overrides)
    return overrides


def _new_replicas(
    image: ClusterImage, topic: CreatableTopic, defaults: TopicDefaults, *, start_index: int
) -> list[tuple[int, ...]]:
    if topic.assignments:
        return _assigned_replicas(image, topic)
    if topic.replication_factor < -1 or topic.replication_factor == 0:
        raise ApiError(
            ErrorCode.INVALID_REPLICATION_FACTOR,
            "Replication factor must be larger than 0, or -1 to use the default value.",
        )
    if topic.num_partitions < -1 or topic.num_partitions == 0:
        raise ApiError(
            ErrorCode.INVALID_PARTITIONS, "Number of partitions was set to an invalid non-positive value."
        )
    num_partitions = defaults.num_partitions if topic.num_partitions == -1 else topic.num_partitions
    if num_partitions > MAX_PARTITIONS_PER_REQUEST:
        raise too_many_partitions()
    return placement.place_replicas(
        image.brokers,
        num_partitions=num_partitions,
        replication_factor=(
            defaults.replication_factor if topic.replication_factor == -1 else topic.replication_factor
        ),
        start_index=start_index,
    )


def _assigned_replicas(image: ClusterImage, topic: CreatableTopic) -> list[tuple[int, ...]]:
    for given, field in (
        (topic.replication_factor, "replication factor"),
        (topic.num_partitions, "numPartitions"),
    ):
        if given != -1:
            raise ApiError(
                ErrorCode.INVALID_REQUEST,
                f"A manual partition assignment was specified, but {field} was not set to -1.",
            )
    by_index: dict[int, tuple[int, ...]] = {}
    replication_factor: int | None = None
    for assignment in topic.assignments:
        if assignment.partition_index in by_index:
            raise ApiError(
                ErrorCode.INVALID_REPLICA_ASSIGNMENT,
                f"Found multiple manual partition assignments for partition {assignment.partition_index}",
            )
        placement.check_manual_assignment(
            image.brokers, assignment.broker_ids, replication_factor=replication_factor
        )
        if not topic.penstock_restored:  # of which some replicas may be lost
            replication_factor = len(assignment.broker_ids)
        by_index[assignment.partition_index] = tuple(assignment.broker_ids)
    if by_index.keys() != set(range(len(by_index))):
        raise ApiError(
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            "partitions should be a consecutive 0-based integer sequence",
        )
    return [by_index[index] for index in range(len(by_index))]


def _creation(
    image: ClusterImage,
    name: str,
    topic_id: bytes,
    partitions: tuple[PartitionRegistration, ...],
    overrides: Mapping[str, str],
) -> list[TreeOp]:
    ops: list[TreeOp] = []
    if image.has_config_node(TOPICS, name):
        # Left by a deletion that did not finish; its overrides must not come back with the new topic.
        ops.append(Delete(znodes.config_path(TOPICS, name)))
    ops.append(Create(znodes.config_path(TOPICS, name), znodes.encode_config(overrides)))
    ops.append(Create(znodes.topic_path(name), znodes.encode_topic(topic_id, partitions)))
    ops.append(Create(znodes.partitions_path(name)))
    for index, partition in enumerate(partitions):
        ops.extend(partition_creation(name, index, partition, controller_epoch=image.controller_epoch))
    return ops


def _deletion(image: ClusterImage, topic: Topic, existing: Container[str]) -> list[TreeOp]:
    name = topic.name
    paths = []
    for index in range(len(topic.partitions)):
        paths += [znodes.partition_state_path(name, index), znodes.partition_path(name, index)]
    paths += [znodes.partitions_path(name), znodes.topic_path(name)]
    ops: list[TreeOp] = [Delete(path) for path in paths if path in existing]
    if image.has_config_node(TOPICS, name):
        ops.append(Delete(znodes.config_path(TOPICS, name)))
    return ops


def _paths_of(topic: Topic) -> set[str]:
    """What the tree has of a topic whose partitions all have a state."""
    paths = {znodes.topic_path(topic.name), znodes.partitions_path(topic.name)}
    for index in range(len(topic.partitions)):
        paths.add(znodes.partition_path(topic.name, index))
        paths.add(znodes.partition_state_path(topic.name, index))
    return paths


def _find(image: ClusterImage, name: str | None, topic_id: bytes) -> Topic:
    if name is None:
        if topic_id == NO_ID:
            raise ApiError(ErrorCode.INVALID_REQUEST, "Neither topic name nor id were specified.")
        topic = image.topic_with_id(topic_id)
        if topic is None:
            raise ApiError(ErrorCode.UNKNOWN_TOPIC_ID, "This server does not host this topic ID.")
        return topic
    if topic_id != NO_ID:
        raise ApiError(ErrorCode.INVALID_REQUEST, "You may not specify both topic name and topic id.")
    topic = image.topic(name)
    if topic is None:
        raise ApiError(
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "This server does not host this topic-partition."
        )
    return topic


def _refused(name: str, error: ApiError) -> CreatableTopicResult:
    return CreatableTopicResult(name=name, error_code=error.code, error_message=error.detail)
