import pytest

from penstock.controller.decision import Decision
from penstock.controller.partitions import create_partitions
from penstock.metadata.image import BrokerRegistration, ClusterImage, PartitionRegistration, TopicCreated
from penstock.metadata.tree import Create, Set
from penstock.model.errors import ErrorCode
from penstock.wire.messages.create_partitions import (
    CreatePartitionsAssignment,
    CreatePartitionsRequest,
    CreatePartitionsTopic,
    CreatePartitionsTopicResult,
    PenstockRestored,
)


def image_with_orders(num_partitions: int = 4) -> ClusterImage:
    image = ClusterImage()
    image.add_broker(BrokerRegistration(1, {}))
    image.apply(
        TopicCreated("orders", bytes([1] * 16), (PartitionRegistration((1,), (1,), 1),) * num_partitions)
    )
    return image


def grow(
    image: ClusterImage,
    *topics: tuple[str, int],
    assignments: list[list[int]] | None = None,
    validate_only: bool = False,
) -> Decision[CreatePartitionsTopicResult]:
    given = None
    if assignments is not None:
        given = [CreatePartitionsAssignment(broker_ids=ids) for ids in assignments]
    asked = [CreatePartitionsTopic(name=name, count=count, assignments=given) for name, count in topics]
    return create_partitions(image, CreatePartitionsRequest(topics=asked, validate_only=validate_only))


def test_a_topic_grows() -> None:
    image = image_with_orders(1)
    decision = grow(image, ("orders", 2))
    assert [(r.name, r.error_code, r.error_message) for r in decision.results] == [("orders", 0, None)]
    assert isinstance(decision.ops[0], Set)
    assert b'"partitions":{"0":[1],"1":[1]}' in decision.ops[0].data
    assert decision.ops[1] == Create("/brokers/topics/orders/partitions/1")
    image.apply_all(decision.changes)
    assert image.partition("orders", 1) == PartitionRegistration((1,), (1,), 1)


def restored(
    image: ClusterImage, assignments: list[list[int]], *, topic_id: bytes = bytes([1] * 16)
) -> Decision[CreatePartitionsTopicResult]:
    asked = CreatePartitionsTopic(
        name="orders",
        count=len(image.topics["orders"].partitions) + len(assignments),
        assignments=[CreatePartitionsAssignment(broker_ids=ids) for ids in assignments],
        penstock_restored=[PenstockRestored(topic_id=topic_id, leader_epoch=5)],
    )
    return create_partitions(image, CreatePartitionsRequest(topics=[asked]))


def test_partitions_are_restored_above_their_epochs_with_the_replicas_that_are_left() -> None:
    image = image_with_orders(1)
    image.add_broker(BrokerRegistration(2, {}))
    image.apply_all(restored(image, [[2, 1], [2]]).changes)
    assert image.topics["orders"].partitions[1:] == [
        PartitionRegistration((2, 1), (2,), 2, leader_epoch=5),
        PartitionRegistration((2,), (2,), 2, leader_epoch=5),
    ]


def test_partitions_of_another_topic_are_not_restored() -> None:
    decision = restored(image_with_orders(1), [[1]], topic_id=bytes([9] * 16))
    assert decision.results[0].error_code == ErrorCode.INCONSISTENT_TOPIC_ID
    assert not decision.changes


def test_validating_changes_nothing() -> None:
    decision = grow(image_with_orders(), ("orders", 9), validate_only=True)
    assert decision.results[0].error_code == 0
    assert (decision.ops, decision.changes) == ([], [])


@pytest.mark.parametrize(
    ("asked", "code", "message"),
    [
        (
            ("orders", 1),
            ErrorCode.INVALID_PARTITIONS,
            "The topic orders currently has 4 partition(s); 1 would not be an increase.",
        ),
        (("orders", 4), ErrorCode.INVALID_PARTITIONS, "Topic already has 4 partition(s)."),
        (("none", 5), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, None),
        (
            ("orders", 2_000_000_000),
            ErrorCode.POLICY_VIOLATION,
            "Excessively large number of partitions per request.",
        ),
    ],
)
def test_refusals_are_kafkas(asked: tuple[str, int], code: ErrorCode, message: str | None) -> None:
    decision = grow(image_with_orders(), asked)
    assert (decision.results[0].error_code, decision.results[0].error_message) == (code, message)
    assert decision.ops == []


def test_a_topic_named_twice_is_refused_once() -> None:
    decision = grow(image_with_orders(), ("orders", 5), ("orders", 6))
    assert [r.error_message for r in decision.results] == ["Duplicate topic name."]


def test_new_partitions_may_be_placed_by_hand() -> None:
    image = image_with_orders()
    image.add_broker(BrokerRegistration(2, {}))
    image.apply_all(grow(image, ("orders", 6), assignments=[[2], [1]]).changes)
    assert [p.replicas for p in image.topics["orders"].partitions[4:]] == [(2,), (1,)]


@pytest.mark.parametrize(
    ("assignments", "message"),
    [
        (
            [[1]],
            "Attempted to add 2 additional partition(s), but only 1 assignment(s) were specified.",
        ),
        (
            [[1], [8]],
            "The manual partition assignment includes broker 8, but no such broker is registered.",
        ),
    ],
)
def test_bad_assignments_are_refused(assignments: list[list[int]], message: str) -> None:
    (result,) = grow(image_with_orders(), ("orders", 6), assignments=assignments).results
    assert (result.error_code, result.error_message) == (ErrorCode.INVALID_REPLICA_ASSIGNMENT, message)
