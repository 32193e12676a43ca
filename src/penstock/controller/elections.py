"""Who leads a partition: the one rule that all use, and the elections that an operator asks for."""

from collections.abc import Collection, Container

from penstock.controller.decision import Decision, change_state
from penstock.controller.standing import NOTHING_KNOWN, Standing
from penstock.metadata.image import NO_LEADER, NO_STATE, ClusterImage, PartitionRegistration
from penstock.model.errors import ApiError, ErrorCode
from penstock.wire.messages.elect_leaders import ElectLeadersRequest, PartitionResult, ReplicaElectionResult

PREFERRED = 0
UNCLEAN = 1


def elect(
    partition: PartitionRegistration,
    alive: Container[int],
    *,
    leaving: Container[int] = (),
    standing: Standing = NOTHING_KNOWN,
    worthless: Container[int] = (),
) -> PartitionRegistration | None:
    """The partition with a leader in a new epoch, as each epoch has one leader; None when nobody can lead, or not yet.

    The first of its replicas that is alive, in sync, not leaving and answers leads, and those that are not alive or leave stay in
    sync no longer: replicas (1, 2, 3), ISR (2, 3), 2 leaving: 3 leads, ISR (3). Nobody leads yet where one would have to leave
    the ISR for those who do not answer, or for those who have forgotten something (`standing`). The ones who are `worthless`,
    as their logs have lost something, are left without that.
    """
    isr = partition.isr
    able = [id for id in partition.replicas if id in isr and id in alive and id not in leaving]
    others = [id for id in isr if id not in able and id not in worthless]
    sound = [id for id in able if not standing.has_forgotten(partition, id)]
    if sound:
        answering = [id for id in sound if id not in standing.silent]
        if others and not answering:
            return None
        return led_by(partition, (answering or sound)[0], tuple(id for id in isr if id in sound))
    if not able or (others and all(id in standing.recent for id in able)):
        return None
    return led_by(partition, able[0], tuple(id for id in isr if id in able))


def elect_preferred(
    partition: PartitionRegistration, alive: Container[int], leaving: Container[int]
) -> PartitionRegistration | None:
    """Led by the first of its replicas, with the ISR as it is; not where nobody leads: whoever could does, or has to wait."""
    leader = partition.replicas[0]
    is_able = leader in partition.isr and leader in alive and leader not in leaving
    return led_by(partition, leader, partition.isr) if is_able and partition.leader != NO_LEADER else None


def elect_uncleanly(
    partition: PartitionRegistration, alive: Container[int], leaving: Container[int] = ()
) -> PartitionRegistration | None:
    """At once, if need be by one that is not in sync, alone in the ISR: what the others had beyond its log is lost."""
    able = [id for id in partition.replicas if id in alive and id not in leaving]
    in_sync = [id for id in able if id in partition.isr]
    if in_sync:
        return led_by(partition, in_sync[0], tuple(id for id in partition.isr if id in in_sync))
    # A replica that is being added may have copied nothing yet.
    able.sort(key=partition.adding.__contains__)
    if not able or partition.partition_epoch == NO_STATE:
        return None
    return led_by(partition, able[0], (able[0],))


def led_by(
    partition: PartitionRegistration, leader: int, isr: tuple[int, ...], isr_epochs: tuple[int, ...] = ()
) -> PartitionRegistration:
    return PartitionRegistration(
        partition.replicas,
        isr,
        leader,
        partition.leader_epoch + 1,
        partition.partition_epoch + 1,
        partition.adding,
        partition.removing,
        isr_epochs,
    )


def alive_for(image: ClusterImage, name: str, index: int, alive: Collection[int]) -> Collection[int]:
    """Of the brokers that are alive, without those whose log directory of this partition failed."""
    failed = image.failed_replicas.get((name, index))
    if failed is None:
        return alive
    partition = image.topics[name].partitions[index]
    return {id for id in partition.replicas if id in alive and id not in failed}


def elect_leaders(
    image: ClusterImage, request: ElectLeadersRequest, *, leaving: Container[int] = ()
) -> Decision[ReplicaElectionResult]:
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
                partition = _elect_as_asked(image, name, index, request.election_type, leaving)
            except ApiError as error:
                code, message = error.code, error.detail
            else:
                elected.add((name, index))
                change_state(decision, image, name, index, partition)
            if not (ask_all and code == ErrorCode.ELECTION_NOT_NEEDED):
                results.append(PartitionResult(partition_id=index, error_code=code, error_message=message))
        decision.results.append(ReplicaElectionResult(topic=name, partition_result=results))
    return decision


def _elect_as_asked(
    image: ClusterImage, name: str, index: int, election_type: int, leaving: Container[int]
) -> PartitionRegistration:
    if image.topic(name) is None:
        raise ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"No such topic as {name}")
    partition = image.partition(name, index)
    if partition is None:
        raise ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"No such partition as {name}-{index}")
    alive = alive_for(image, name, index, image.brokers)
    if election_type == PREFERRED:
        if partition.leader == partition.replicas[0]:
            raise _not_needed()
        elected = elect_preferred(partition, alive, leaving)
        if elected is None:
            raise ApiError(
                ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE, "The preferred leader was not available."
            )
        return elected
    if partition.leader in alive:
        raise _not_needed()
    elected = elect_uncleanly(partition, alive, leaving)
    if elected is None:
        raise ApiError(
            ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE, "Eligible topic partition leaders are not available."
        )
    return elected


def _not_needed() -> ApiError:
    return ApiError(ErrorCode.ELECTION_NOT_NEEDED, "Leader election not needed for topic partition.")
