"""The requests that the controller sends to brokers, and how a broker applies them.

Requests are built from the image when they are sent, so a repeated or late request is still right. `effects` says which brokers
must be told. `apply_update` updates the image of the receiver.
"""

from collections.abc import Collection, Container, Iterable, Mapping
from enum import IntEnum
from typing import Final

from penstock.controller.effects import EPOCH_DURING_DELETE, DeletedTopic
from penstock.metadata.image import (
    NO_BROKER_EPOCH,
    NO_LEADER,
    NO_STATE,
    BrokerRegistration,
    Change,
    ClusterImage,
    PartitionChanged,
    PartitionRegistration,
    PartitionsAdded,
    Topic,
    TopicCreated,
    TopicDeleted,
)
from penstock.model.endpoints import Endpoint
from penstock.model.ids import TopicPartition
from penstock.wire.messages.leader_and_isr import (
    LeaderAndIsrLiveLeader,
    LeaderAndIsrPartitionState,
    LeaderAndIsrRequest,
    LeaderAndIsrTopicState,
)
from penstock.wire.messages.stop_replica import (
    StopReplicaPartitionState,
    StopReplicaRequest,
    StopReplicaTopicState,
)
from penstock.wire.messages.update_metadata import (
    UpdateMetadataBroker,
    UpdateMetadataEndpoint,
    UpdateMetadataPartitionState,
    UpdateMetadataRequest,
    UpdateMetadataTopicState,
)

# Kafka's mark for the leader of a partition whose topic is being deleted.
LEADER_DURING_DELETE: Final = -2


class RequestType(IntEnum):
    """FULL: what the request does not name does not exist."""

    UNKNOWN = 0
    INCREMENTAL = 1
    FULL = 2


class SecurityProtocol(IntEnum):
    PLAINTEXT = 0
    SSL = 1
    SASL_PLAINTEXT = 2
    SASL_SSL = 3


class _All:
    """All partitions of the image."""


ALL: Final = _All()


def leader_and_isr(
    image: ClusterImage,
    broker_id: int,
    partitions: Iterable[tuple[str, int]],
    *,
    broker_epoch: int,
    is_full: bool,
    listener: str | None = None,
    new: Container[tuple[str, int]] = (),
) -> LeaderAndIsrRequest:
    """Of the partitions named, those of which the broker holds a replica now and which have a state. `listener` is the one
    between brokers, for the leaders' addresses (None: each one's first). With `is_full`, `partitions` are those of
    `partitions_of`, and the broker may give up what it holds besides."""
    states: dict[str, list[LeaderAndIsrPartitionState]] = {}
    leaders: set[int] = set()
    epoch = image.controller_epoch
    for name, index in partitions:
        partition = image.partition(name, index)
        if partition is None or broker_id not in partition.replicas or partition.partition_epoch == NO_STATE:
            continue
        leaders.add(partition.leader)
        states.setdefault(name, []).append(
            LeaderAndIsrPartitionState(
                partition_index=index,
                controller_epoch=epoch,
                leader=partition.leader,
                leader_epoch=partition.leader_epoch,
                isr=partition.isr,
                partition_epoch=partition.partition_epoch,
                replicas=partition.replicas,
                adding_replicas=partition.adding,
                removing_replicas=partition.removing,
                is_new=(name, index) in new,
            )
        )
    return LeaderAndIsrRequest(
        controller_id=image.controller_id,
        controller_epoch=epoch,
        broker_epoch=broker_epoch,
        type=RequestType.FULL if is_full else RequestType.INCREMENTAL,
        topic_states=[
            LeaderAndIsrTopicState(
                topic_name=name, topic_id=image.topics[name].topic_id, partition_states=found
            )
            for name, found in states.items()
        ],
        live_leaders=_live_leaders(image, leaders, listener),
    )


def update_metadata(
    image: ClusterImage,
    partitions: Collection[tuple[str, int]] | _All,
    *,
    broker_epoch: int,
    deleted: Iterable[DeletedTopic] = (),
) -> UpdateMetadataRequest:
    """The brokers that are there, always; the partitions named, or ALL (FULL: what is not in it is gone). A topic that was
    deleted goes first, as its name may be in use again under another id."""
    return UpdateMetadataRequest(
        controller_id=image.controller_id,
        controller_epoch=image.controller_epoch,
        broker_epoch=broker_epoch,
        type=RequestType.FULL if partitions is ALL else RequestType.INCREMENTAL,
        topic_states=[*map(_deleted_state, deleted), *_topic_states(image, partitions)],
        live_brokers=[_broker_state(broker) for broker in image.brokers.values()],
    )


def stop_replica(
    image: ClusterImage, stopped: Mapping[TopicPartition, int], *, broker_epoch: int, delete: bool = True
) -> StopReplicaRequest:
    """`stopped` as in `Effects`: a receiver that knows a greater leader epoch of the partition refuses it, so that an order
    overtaken by a new assignment does no harm. EPOCH_DURING_DELETE overrules: send it before LeaderAndIsr."""
    states: dict[str, list[StopReplicaPartitionState]] = {}
    for (name, index), leader_epoch in stopped.items():
        states.setdefault(name, []).append(
            StopReplicaPartitionState(
                partition_index=index, leader_epoch=leader_epoch, delete_partition=delete
            )
        )
    return StopReplicaRequest(
        controller_id=image.controller_id,
        controller_epoch=image.controller_epoch,
        broker_epoch=broker_epoch,
        topic_states=[
            StopReplicaTopicState(topic_name=name, partition_states=found) for name, found in states.items()
        ],
    )


def apply_update(image: ClusterImage, request: UpdateMetadataRequest) -> list[Change]:
    """Make the image say what the request says; what changed by it. The caller has seen to the controller's epoch."""
    changes = image_changes(image, request)
    image.apply_all(changes)
    image.set_brokers(live_brokers(image, request))
    for (name, index), failed in failed_replicas(request).items():
        if image.failed_replicas.get((name, index), ()) != failed:
            image.set_failed_replicas(name, index, failed)
    return changes


def deleted_topics(request: UpdateMetadataRequest) -> list[bytes]:
    """Their ids."""
    return [
        state.topic_id
        for state in request.topic_states
        if any(partition.leader == LEADER_DURING_DELETE for partition in state.partition_states)
    ]


def live_brokers(image: ClusterImage, request: UpdateMetadataRequest) -> list[BrokerRegistration]:
    """For `ClusterImage.set_brokers`. The request does not have their epochs: those that are known stay."""
    found = []
    for state in request.live_brokers:
        endpoints = {
            endpoint.listener: Endpoint(
                endpoint.listener, endpoint.host, endpoint.port, _protocol_name(endpoint.security_protocol)
            )
            for endpoint in state.endpoints
        }
        known = image.brokers.get(state.id)
        epoch = NO_BROKER_EPOCH if known is None else known.epoch
        found.append(BrokerRegistration(state.id, endpoints, state.rack, epoch))
    return found


def failed_replicas(request: UpdateMetadataRequest) -> dict[tuple[str, int], tuple[int, ...]]:
    """Replicas on failed log directories, of each partition in the request (mostly none): offline, although their broker is
    there."""
    live = {broker.id for broker in request.live_brokers}
    return {
        (topic.topic_name, state.partition_index): tuple(id for id in state.offline_replicas if id in live)
        for topic in request.topic_states
        for state in topic.partition_states
        if state.leader != LEADER_DURING_DELETE
    }


def image_changes(image: ClusterImage, request: UpdateMetadataRequest) -> list[Change]:
    """What the request says and the image does not. Deletions come first; a topic with a known name and another id was deleted
    and made again. Which replicas are being added or removed is not in the request: known while the replicas are the same."""
    deleted: dict[str, Change] = {}
    changes: list[Change] = []
    named: set[str] = set()
    for state in request.topic_states:
        name = state.topic_name
        known = image.topics.get(name)
        if any(partition.leader == LEADER_DURING_DELETE for partition in state.partition_states):
            if known is not None and known.topic_id == state.topic_id:
                deleted[name] = TopicDeleted(name)
            continue
        named.add(name)
        if known is not None and known.topic_id != state.topic_id:
            deleted[name] = TopicDeleted(name)
            known = None
        changes += _changes_of_topic(known, state)
    if request.type == RequestType.FULL:
        deleted.update((name, TopicDeleted(name)) for name in image.topics if name not in named)
    return [*deleted.values(), *changes]


def _changes_of_topic(known: Topic | None, state: UpdateMetadataTopicState) -> list[Change]:
    told = {partition.partition_index: partition for partition in state.partition_states}
    existing = [] if known is None else known.partitions
    changes: list[Change] = []
    for index, before in enumerate(existing):
        if index in told:
            after = _partition_told(told[index], before)
            if after != before:
                changes.append(PartitionChanged(state.topic_name, index, after))
    added = tuple(
        _partition_told(told[index], None) if index in told else _UNKNOWN_PARTITION
        for index in range(len(existing), max(told, default=-1) + 1)
    )
    if known is None:
        changes.append(TopicCreated(state.topic_name, state.topic_id, added))
    elif added:
        changes.append(PartitionsAdded(state.topic_name, added))
    return changes


# Told of a later one, but not yet of this.
_UNKNOWN_PARTITION = PartitionRegistration((), (), NO_LEADER, 0, NO_STATE)


def _partition_told(
    state: UpdateMetadataPartitionState, before: PartitionRegistration | None
) -> PartitionRegistration:
    replicas = tuple(state.replicas)
    adding, removing = (
        (before.adding, before.removing) if before is not None and before.replicas == replicas else ((), ())
    )
    return PartitionRegistration(
        replicas, tuple(state.isr), state.leader, state.leader_epoch, state.zk_version, adding, removing
    )


def _live_leaders(
    image: ClusterImage, leaders: set[int], listener: str | None
) -> list[LeaderAndIsrLiveLeader]:
    found = []
    for id in sorted(leaders):
        broker = image.brokers.get(id)
        if broker is None:
            continue
        endpoint = broker.endpoints.get(listener or next(iter(broker.endpoints), ""))
        if endpoint is not None:
            found.append(LeaderAndIsrLiveLeader(broker_id=id, host_name=endpoint.host, port=endpoint.port))
    return found


def _topic_states(
    image: ClusterImage, partitions: Collection[tuple[str, int]] | _All
) -> list[UpdateMetadataTopicState]:
    wanted: dict[str, Iterable[int]] = {}
    if isinstance(partitions, _All):
        wanted = {name: range(len(topic.partitions)) for name, topic in image.topics.items()}
    else:
        indexes: dict[str, list[int]] = {}
        for name, index in partitions:
            if image.partition(name, index) is not None:
                indexes.setdefault(name, []).append(index)
        wanted.update(indexes)
    return [
        UpdateMetadataTopicState(
            topic_name=name,
            topic_id=image.topics[name].topic_id,
            partition_states=[_partition_state(image, name, index) for index in found],
        )
        for name, found in wanted.items()
    ]


def _partition_state(image: ClusterImage, name: str, index: int) -> UpdateMetadataPartitionState:
    partition = image.topics[name].partitions[index]
    return UpdateMetadataPartitionState(
        partition_index=index,
        controller_epoch=image.controller_epoch,
        leader=partition.leader,
        leader_epoch=partition.leader_epoch,
        isr=partition.isr,
        zk_version=partition.partition_epoch,
        replicas=partition.replicas,
        offline_replicas=image.offline_replicas(name, index),
    )


def _deleted_state(topic: DeletedTopic) -> UpdateMetadataTopicState:
    return UpdateMetadataTopicState(
        topic_name=topic.name,
        topic_id=topic.topic_id,
        partition_states=[
            UpdateMetadataPartitionState(
                partition_index=index, leader=LEADER_DURING_DELETE, leader_epoch=EPOCH_DURING_DELETE
            )
            for index in range(topic.num_partitions)
        ],
    )


def _broker_state(broker: BrokerRegistration) -> UpdateMetadataBroker:
    return UpdateMetadataBroker(
        id=broker.id,
        endpoints=[
            UpdateMetadataEndpoint(
                port=endpoint.port,
                host=endpoint.host,
                listener=endpoint.listener,
                security_protocol=SecurityProtocol[endpoint.security_protocol],
            )
            for endpoint in broker.endpoints.values()
        ],
        rack=broker.rack,
    )


def _protocol_name(number: int) -> str:
    try:
        return SecurityProtocol(number).name
    except ValueError:
        return str(number)
