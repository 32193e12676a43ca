from collections.abc import Sequence

import pytest

from penstock.controller import reassignments
from penstock.controller.decision import MAX_PARTITIONS_PER_REQUEST, Decision
from penstock.controller.partitions import create_partitions
from penstock.metadata import znodes
from penstock.metadata.image import NO_LEADER, NO_STATE, ClusterImage, PartitionRegistration
from penstock.metadata.tree import Set
from penstock.model.errors import ApiError, ErrorCode
from penstock.wire.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
    ReassignableTopicResponse,
)
from penstock.wire.messages.create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from penstock.wire.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsTopics,
)
from tests.unit.controller.clusters import ORDERS_ID, after, cluster

AT_REST = PartitionRegistration((1, 2), (1, 2), 1, 5, 7)
MOVING = PartitionRegistration((2, 3, 1), (1, 2), 1, 6, 8, adding=(3,), removing=(1,))


def alter(
    image: ClusterImage,
    *targets: Sequence[int] | None,
    topic: str = "orders",
    allow_replication_factor_change: bool = True,
    leaving: tuple[int, ...] = (),
) -> Decision[ReassignableTopicResponse]:
    """Partition n gets the n-th target."""
    asked = [ReassignablePartition(partition_index=n, replicas=target) for n, target in enumerate(targets)]
    request = AlterPartitionReassignmentsRequest(
        topics=[ReassignableTopic(name=topic, partitions=asked)],
        allow_replication_factor_change=allow_replication_factor_change,
    )
    return reassignments.alter(image, request, leaving=leaving)


def outcomes(decision: Decision[ReassignableTopicResponse]) -> list[tuple[int, str | None]]:
    (topic,) = decision.results
    return [(each.error_code, each.error_message) for each in topic.partitions]


def test_a_move_begins_with_all_replicas_in_a_new_epoch() -> None:
    image = cluster(AT_REST)
    decision = alter(image, (2, 3))
    assert outcomes(decision) == [(0, None)]
    state = b'{"controller_epoch":4,"leader":1,"version":1,"leader_epoch":6,"isr":[1,2]}'
    assert decision.ops == [
        Set("/brokers/topics/orders/partitions/0/state", state, 7),
        Set("/brokers/topics/orders", znodes.encode_topic(ORDERS_ID, [MOVING])),
    ]
    assert after(image, decision) == [MOVING]


def test_a_move_ends_when_all_that_are_added_are_in_sync() -> None:
    image = cluster(MOVING)
    assert reassignments.progress(image, [("orders", 0)]).ops == []
    image = cluster(MOVING._replace(isr=(1, 2, 3)))
    decision = reassignments.progress(image, [("orders", 0), ("orders", 9), ("none", 0)])
    done = PartitionRegistration((2, 3), (2, 3), 2, 7, 9)
    assert decision.ops[-1] == Set("/brokers/topics/orders", znodes.encode_topic(ORDERS_ID, [done]))
    assert after(image, decision) == [done]
    assert reassignments.progress(image, [("orders", 0)]).ops == []


def test_a_leader_that_stays_goes_on_leading() -> None:
    image = cluster(PartitionRegistration((2, 3, 1), (1, 2, 3), 3, 6, 8, (3,), (1,)))
    assert after(image, reassignments.progress(image, [("orders", 0)])) == [
        PartitionRegistration((2, 3), (2, 3), 3, 7, 9)
    ]


def test_a_move_waits_for_one_that_can_lead() -> None:
    image = cluster(PartitionRegistration((4, 1), (1, 4), 1, 6, 8, (4,), (1,)))
    assert reassignments.progress(image, [("orders", 0)]).ops == []


def test_a_replica_that_is_leaving_does_not_take_over() -> None:
    image = cluster(MOVING._replace(isr=(1, 2, 3)))
    decision = reassignments.progress(image, [("orders", 0)], leaving=(2,))
    assert after(image, decision)[0].leader == 3


@pytest.mark.parametrize(
    ("target", "done"),
    [
        ((2, 1), PartitionRegistration((2, 1), (1, 2), 1, 6, 8)),
        ((2,), PartitionRegistration((2,), (2,), 2, 6, 8)),
        ((1,), PartitionRegistration((1,), (1,), 1, 6, 8)),
    ],
)
def test_what_needs_no_copy_is_done_at_once(target: tuple[int, ...], done: PartitionRegistration) -> None:
    image = cluster(AT_REST)
    assert after(image, alter(image, target)) == [done]


def test_asking_for_what_is_changes_nothing() -> None:
    decision = alter(cluster(AT_REST, MOVING), (1, 2), (2, 3))
    assert outcomes(decision) == [(0, None)] * 2
    assert decision.ops == []


def test_more_replicas_are_a_move_that_removes_none() -> None:
    image = cluster(AT_REST)
    assert after(image, alter(image, (1, 2, 3))) == [
        PartitionRegistration((1, 2, 3), (1, 2), 1, 6, 8, adding=(3,))
    ]


def test_fewer_replicas_wait_until_one_that_stays_is_in_sync() -> None:
    image = cluster(PartitionRegistration((1, 2), (1,), 1))
    assert after(image, alter(image, (2,))) == [PartitionRegistration((2, 1), (1,), 1, 1, 1, removing=(1,))]


def test_a_cancelled_move_leaves_the_replicas_from_before() -> None:
    image = cluster(MOVING._replace(isr=(1, 2, 3), leader=3))
    assert after(image, alter(image, None)) == [PartitionRegistration((2, 1), (1, 2), 2, 7, 9)]


def test_a_move_is_replaced_by_another() -> None:
    image = cluster(MOVING._replace(isr=(1, 2, 3), leader=3), brokers=(1, 2, 3, 4))
    assert after(image, alter(image, (4, 1))) == [
        PartitionRegistration((4, 1, 2), (1, 2), 1, 7, 9, (4,), (2,))
    ]


@pytest.mark.parametrize("leader", [3, NO_LEADER])
def test_a_move_cannot_be_cancelled_when_only_what_was_added_is_in_sync(leader: int) -> None:
    decision = alter(cluster(MOVING._replace(isr=(3,), leader=leader)), None)
    ((code, text),) = outcomes(decision)
    assert code == ErrorCode.INVALID_REPLICA_ASSIGNMENT
    assert "[2, 1]" in str(text)
    assert decision.ops == []


def test_there_must_be_a_move_to_cancel() -> None:
    assert outcomes(alter(cluster(AT_REST), None)) == [
        (ErrorCode.NO_REASSIGNMENT_IN_PROGRESS, "No partition reassignment is in progress.")
    ]


@pytest.mark.parametrize(
    ("target", "rest"),
    [
        ((), "includes an empty replica list."),
        ((1, 1), "includes the broker 1 more than once."),
        ((1, 9), "includes broker 9, but no such broker is registered."),
        ((1, -1), "includes broker -1, but no such broker is registered."),
    ],
)
def test_a_target_that_cannot_be_is_refused(target: tuple[int, ...], rest: str) -> None:
    text = f"The manual partition assignment {rest}"
    assert outcomes(alter(cluster(AT_REST), target)) == [(ErrorCode.INVALID_REPLICA_ASSIGNMENT, text)]


def test_a_replica_whose_broker_is_away_may_stay_but_not_come() -> None:
    image = cluster(PartitionRegistration((1, 4), (1,), 1))
    assert outcomes(alter(image, (2, 4))) == [(0, None)]
    assert outcomes(alter(image, (1, 3), leaving=(3,)))[0][0] == ErrorCode.INVALID_REPLICA_ASSIGNMENT


def test_the_number_of_replicas_may_be_kept_on_request() -> None:
    image = cluster(AT_REST, MOVING)
    decision = alter(image, (1, 2, 3), (1, 3, 2), allow_replication_factor_change=False)
    text = "The replication factor is changed from 2 to 3"
    assert outcomes(decision) == [(ErrorCode.INVALID_REPLICATION_FACTOR, text)] * 2


def test_what_is_not_there_cannot_move() -> None:
    image = cluster(PartitionRegistration((1,), (), NO_LEADER, 0, NO_STATE))
    unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert outcomes(alter(image, (1,), (1,))) == [
        (unknown, "Unable to find partition orders:0."),
        (unknown, "Unable to find partition orders:1."),
    ]
    assert outcomes(alter(image, (1,), topic="none")) == [(unknown, "Unable to find a topic named none.")]


def test_a_partition_named_twice_moves_once() -> None:
    asked = [ReassignablePartition(partition_index=0, replicas=[id]) for id in (1, 2)]
    request = AlterPartitionReassignmentsRequest(topics=[ReassignableTopic(name="orders", partitions=asked)])
    decision = reassignments.alter(cluster(AT_REST), request)
    assert [code for code, _ in outcomes(decision)] == [0, ErrorCode.INVALID_REQUEST]
    assert len(decision.changes) == 1


def test_too_many_at_once_are_refused() -> None:
    with pytest.raises(ApiError, match="Excessively large number of partitions"):
        alter(cluster(AT_REST), *[None] * (MAX_PARTITIONS_PER_REQUEST + 1))


def test_a_partition_without_leader_may_move_and_still_has_none() -> None:
    image = cluster(PartitionRegistration((1, 2), (1, 2), NO_LEADER), brokers=(3,))
    moving = PartitionRegistration((3, 1, 2), (1, 2), NO_LEADER, 1, 1, (3,), (1, 2))
    assert after(image, alter(image, (3,))) == [moving]


def test_moves_are_listed() -> None:
    image = cluster(AT_REST, MOVING)

    def listed(request: ListPartitionReassignmentsRequest) -> list[tuple[str, list[int]]]:
        found = reassignments.list_(image, request)
        return [(topic.name, [each.partition_index for each in topic.partitions]) for topic in found]

    assert listed(ListPartitionReassignmentsRequest(topics=None)) == [("orders", [1])]
    for indexes, found in (([0, 9], []), ([0, 1], [("orders", [1])])):
        named = ListPartitionReassignmentsTopics(name="orders", partition_indexes=indexes)
        assert listed(ListPartitionReassignmentsRequest(topics=[named])) == found
    (topic,) = reassignments.list_(image, ListPartitionReassignmentsRequest())
    (ongoing,) = topic.partitions
    assert tuple(map(tuple, (ongoing.replicas, ongoing.adding_replicas, ongoing.removing_replicas))) == (
        (2, 3, 1), (3,), (1,),
    )  # fmt: skip
    assert reassignments.reassigning(image) == [("orders", 1)]


def test_a_growing_topic_counts_the_replicas_that_its_first_partition_will_have() -> None:
    image = cluster(MOVING)
    request = CreatePartitionsRequest(topics=[CreatePartitionsTopic(name="orders", count=2)])
    assert len(after(image, create_partitions(image, request))[1].replicas) == 2
