"""Who leads a partition, when an operator asks for an election."""

from penstock.controller.decision import Decision
from penstock.metadata import znodes
from penstock.metadata.image import NO_STATE, ClusterImage, Partition, PartitionChanged
from penstock.metadata.tree import Set
from penstock.model.errors import ApiError, ErrorCode
from penstock.wire.messages.elect_leaders import ElectLeadersRequest, PartitionResult, ReplicaElectionResult

PREFERRED = 0
UNCLEAN = 1


def elect_leaders(image: ClusterImage, request: ElectLeadersRequest) -> Decision[ReplicaElectionResult]:
    """With no partitions named, all are asked for, and those that need no election are left out of the
    results."""
    if request.election_type not in (PREFERRED, UNCLEAN):
        raise ApiError(ErrorCode.INVALID_REQUEST, f"Unknown election type {request.election_type}")
    decision: Decision[ReplicaElectionResult] = Decision([], [], [])
    elected: set[tuple[str, int]] = set()
    ask_all = request.topic_partitions is None
    asked = (
        [(topic.name, range(len(topic.partitions))) for topic in image.topics.values()]
        if request.topic_partitions is None
        else [(topic.topic, topic.partitions) for topic in request.topic_partitions]
    )
    for name, indexes in asked:
        results = []
        for index in indexes:
            code, message = ErrorCode.NONE, None
            try:
                if (name, index) in elected:
                    raise _not_needed()
                partition = _elect(image, name, index, request.election_type)
            except ApiError as error:
                code, message = error.code, error.detail
            else:
                elected.add((name, index))
                _record(image, decision, name, index, partition)
            if not (ask_all and code == ErrorCode.ELECTION_NOT_NEEDED):
                results.append(PartitionResult(partition_id=index, error_code=code, error_message=message))
        decision.results.append(ReplicaElectionResult(topic=name, partition_result=results))
    return decision


def _elect(image: ClusterImage, name: str, index: int, election_type: int) -> Partition:
    """The partition with its new leader; its epoch counts up, as each epoch has one leader."""
    if image.topic(name) is None:
        raise ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"No such topic as {name}")
    partition = image.partition(name, index)
    if partition is None:
        raise ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"No such partition as {name}-{index}")
    if election_type == PREFERRED:
        leader = partition.replicas[0]
        if partition.leader == leader:
            raise _not_needed()
        if leader not in partition.isr or leader not in image.brokers:
            raise ApiError(
                ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE, "The preferred leader was not available."
            )
        isr = partition.isr
    else:
        if partition.leader in image.brokers:
            raise _not_needed()
        alive = [id for id in partition.replicas if id in image.brokers]
        in_sync = [id for id in alive if id in partition.isr]
        if not alive or partition.partition_epoch == NO_STATE:
            raise ApiError(
                ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE,
                "Eligible topic partition leaders are not available.",
            )
        # Unclean only in need: a replica that was in sync loses nothing.
        leader = in_sync[0] if in_sync else alive[0]
        isr = tuple(in_sync) if in_sync else (leader,)
    return partition._replace(
        leader=leader,
        isr=isr,
        leader_epoch=partition.leader_epoch + 1,
        partition_epoch=partition.partition_epoch + 1,
    )


def _record(
    image: ClusterImage,
    decision: Decision[ReplicaElectionResult],
    name: str,
    index: int,
    partition: Partition,
) -> None:
    state = znodes.encode_partition_state(partition, controller_epoch=image.controller_epoch)
    path = znodes.partition_state_path(name, index)
    decision.ops.append(Set(path, state, partition.partition_epoch - 1))
    decision.changes.append(PartitionChanged(name, index, partition))


def _not_needed() -> ApiError:
    return ApiError(ErrorCode.ELECTION_NOT_NEEDED, "Leader election not needed for topic partition.")
