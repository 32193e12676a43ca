from collections.abc import Mapping, Sequence
from itertools import count

import pytest

from penstock.controller.decision import Decision
from penstock.controller.topics import (
    TopicDefaults,
    create_topics,
    delete_topics,
    marked_for_deletion,
    new_partition,
)
from penstock.metadata.image import BrokerRegistration, ClusterImage, PartitionRegistration
from penstock.metadata.tree import Create, Delete
from penstock.model.errors import ApiError, ErrorCode
from penstock.model.ids import NO_ID
from penstock.wire.messages.create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreatableTopicResult,
    CreateTopicsRequest,
    PenstockRestored,
)
from penstock.wire.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState


def one_node() -> ClusterImage:
    image = ClusterImage()
    image.set_controller(1, epoch=3)
    image.add_broker(BrokerRegistration(1, {}))
    return image


def refuse_nonsense(overrides: Mapping[str, str]) -> None:
    if "nonsense" in overrides:
        raise ApiError(ErrorCode.INVALID_CONFIG, "Unknown topic config name: nonsense")


def create(
    image: ClusterImage, *topics: CreatableTopic, validate_only: bool = False
) -> Decision[CreatableTopicResult]:
    ids = count(1)
    return create_topics(
        image,
        CreateTopicsRequest(topics=topics, validate_only=validate_only),
        defaults=TopicDefaults(2, 1),
        check_overrides=refuse_nonsense,
        new_topic_id=lambda: next(ids).to_bytes(16, "big"),
    )


def topic(name: str = "orders", partitions: int = 1, replication_factor: int = 1) -> CreatableTopic:
    return CreatableTopic(name=name, num_partitions=partitions, replication_factor=replication_factor)


def with_topics(*topics: CreatableTopic) -> ClusterImage:
    image = one_node()
    image.apply_all(create(image, *topics).changes)
    return image


def assigned(*assignments: tuple[int, list[int]], partitions: int = -1, factor: int = -1) -> CreatableTopic:
    made = [CreatableReplicaAssignment(partition_index=i, broker_ids=ids) for i, ids in assignments]
    return CreatableTopic(
        name="orders", num_partitions=partitions, replication_factor=factor, assignments=made
    )


def test_a_topic_is_made_with_kafkas_nodes() -> None:
    asked = topic(partitions=1)
    asked.configs = [CreatableTopicConfig(name="retention.ms", value="60000")]
    decision = create(one_node(), asked)
    state = b'{"controller_epoch":3,"leader":1,"version":1,"leader_epoch":0,"isr":[1]}'
    node = b'{"partitions":{"0":[1]},"topic_id":"AAAAAAAAAAAAAAAAAAAAAQ",'
    node += b'"adding_replicas":{},"removing_replicas":{},"version":3}'
    assert decision.ops == [
        Create("/config/topics/orders", b'{"version":1,"config":{"retention.ms":"60000"}}'),
        Create("/brokers/topics/orders", node),
        Create("/brokers/topics/orders/partitions"),
        Create("/brokers/topics/orders/partitions/0"),
        Create("/brokers/topics/orders/partitions/0/state", state),
    ]


def test_a_made_topic_is_answered_with_its_id_and_shape() -> None:
    (result,) = create(one_node(), topic(partitions=3)).results
    assert (result.error_code, result.error_message) == (0, None)
    assert (result.topic_id, result.num_partitions, result.replication_factor) == (bytes(15) + b"\x01", 3, 1)


def test_minus_one_means_the_brokers_defaults() -> None:
    (result,) = create(one_node(), topic(partitions=-1, replication_factor=-1)).results
    assert (result.num_partitions, result.replication_factor) == (2, 1)


def test_validating_changes_nothing_and_gives_no_id() -> None:
    decision = create(one_node(), topic(), validate_only=True)
    assert decision.results[0].error_code == 0
    assert decision.results[0].topic_id == NO_ID
    assert (decision.ops, decision.changes) == ([], [])


def test_one_refused_topic_does_not_keep_the_others_away() -> None:
    decision = create(one_node(), topic("a/b"), topic("fine"))
    assert [result.error_code for result in decision.results] == [ErrorCode.INVALID_TOPIC_EXCEPTION, 0]
    assert decision.ops[0].path == "/config/topics/fine"


def test_a_topic_named_twice_is_refused_once() -> None:
    decision = create(one_node(), topic("a"), topic("b"), topic("a"))
    assert [(r.name, r.error_code, r.error_message) for r in decision.results] == [
        ("a", ErrorCode.INVALID_REQUEST, "Duplicate topic name."),
        ("b", 0, None),
    ]


@pytest.mark.parametrize(
    ("asked", "code", "message"),
    [
        (topic("orders"), ErrorCode.TOPIC_ALREADY_EXISTS, "Topic 'orders' already exists."),
        (
            topic("my_topic"),
            ErrorCode.INVALID_TOPIC_EXCEPTION,
            "Topic 'my_topic' collides with existing topic: my.topic",
        ),
        (topic("my.topic"), ErrorCode.TOPIC_ALREADY_EXISTS, "Topic 'my.topic' already exists."),
        (
            topic("__cluster_metadata"),
            ErrorCode.INVALID_REQUEST,
            "Creation of internal topic __cluster_metadata is prohibited.",
        ),
        (
            topic("new", 0),
            ErrorCode.INVALID_PARTITIONS,
            "Number of partitions was set to an invalid non-positive value.",
        ),
        (
            topic("new", 1, 0),
            ErrorCode.INVALID_REPLICATION_FACTOR,
            "Replication factor must be larger than 0, or -1 to use the default value.",
        ),
        (
            topic("new", 1, 3),
            ErrorCode.INVALID_REPLICATION_FACTOR,
            "Unable to replicate the partition 3 time(s): The target replication factor of 3 cannot be"
            " reached because only 1 broker(s) are registered.",
        ),
        (
            topic("new", 10_001),
            ErrorCode.POLICY_VIOLATION,
            "Excessively large number of partitions per request.",
        ),
    ],
)
def test_refusals_are_kafkas(asked: CreatableTopic, code: ErrorCode, message: str) -> None:
    decision = create(with_topics(topic("orders"), topic("my.topic")), asked)
    (result,) = decision.results
    assert (result.error_code, result.error_message) == (code, message)
    assert (decision.ops, decision.changes) == ([], [])


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("nonsense", "1", "Unknown topic config name: nonsense"),
        ("retention.ms", None, "Null value not supported for topic configs: retention.ms"),
    ],
)
def test_a_config_that_is_not_allowed_refuses_the_topic(name: str, value: str | None, message: str) -> None:
    asked = topic()
    asked.configs = [CreatableTopicConfig(name=name, value=value)]
    (result,) = create(one_node(), asked).results
    assert (result.error_code, result.error_message) == (ErrorCode.INVALID_CONFIG, message)


def test_a_manual_assignment_is_taken_as_it_is() -> None:
    image = one_node()
    image.add_broker(BrokerRegistration(2, {}))
    decision = create(image, assigned((1, [1, 2]), (0, [2, 1])))
    image.apply_all(decision.changes)
    assert [p.replicas for p in image.topics["orders"].partitions] == [(2, 1), (1, 2)]
    assert [p.leader for p in image.topics["orders"].partitions] == [2, 1]


@pytest.mark.parametrize(
    ("asked", "code", "message"),
    [
        (
            assigned((0, [1]), factor=1),
            ErrorCode.INVALID_REQUEST,
            "A manual partition assignment was specified, but replication factor was not set to -1.",
        ),
        (
            assigned((0, [1]), partitions=1),
            ErrorCode.INVALID_REQUEST,
            "A manual partition assignment was specified, but numPartitions was not set to -1.",
        ),
        (
            assigned((0, [1]), (0, [1])),
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            "Found multiple manual partition assignments for partition 0",
        ),
        (
            assigned((0, [1]), (2, [1])),
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            "partitions should be a consecutive 0-based integer sequence",
        ),
        (
            assigned((0, [7])),
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            "The manual partition assignment includes broker 7, but no such broker is registered.",
        ),
    ],
)
def test_bad_manual_assignments_are_refused(asked: CreatableTopic, code: ErrorCode, message: str) -> None:
    (result,) = create(one_node(), asked).results
    assert (result.error_code, result.error_message) == (code, message)


def restored(
    *assignments: tuple[int, list[int]], topic_id: bytes = bytes([7] * 16), leaders: Sequence[int] = ()
) -> CreatableTopic:
    asked = assigned(*assignments)
    asked.penstock_restored = [PenstockRestored(topic_id=topic_id, leader_epoch=5, leaders=leaders)]
    return asked


def test_a_topic_is_restored_with_its_id_above_its_epochs_and_its_first_replicas_are_in_sync() -> None:
    image = one_node()
    image.add_broker(BrokerRegistration(2, {}))
    decision = create(image, restored((0, [2, 1]), (1, [1])))
    assert decision.results[0].topic_id == bytes([7] * 16)
    image.apply_all(decision.changes)
    made = image.topic_with_id(bytes([7] * 16))
    assert made is not None
    assert made.partitions == [
        PartitionRegistration((2, 1), (2,), 2, leader_epoch=5),
        PartitionRegistration((1,), (1,), 1, leader_epoch=5),
    ]


def test_another_than_the_preferred_replica_may_lead_a_restored_partition_first() -> None:
    image = one_node()
    image.add_broker(BrokerRegistration(2, {}))
    image.apply_all(create(image, restored((0, [2, 1]), (1, [2, 1]), leaders=[1, 2])).changes)
    assert image.topics["orders"].partitions == [
        PartitionRegistration((2, 1), (1,), 1, leader_epoch=5),
        PartitionRegistration((2, 1), (2,), 2, leader_epoch=5),
    ]


@pytest.mark.parametrize("leaders", [[2], [1, 1]])
def test_who_has_no_replica_leads_no_restored_partition(leaders: list[int]) -> None:
    (refused,) = create(one_node(), restored((0, [1]), leaders=leaders)).results
    assert refused.error_code == ErrorCode.INVALID_REQUEST


def test_a_topic_is_not_restored_twice_nor_without_replicas() -> None:
    image = with_topics(topic("other"))
    taken = image.topics["other"].topic_id
    (refused,) = create(image, restored((0, [1]), topic_id=taken)).results
    assert (refused.error_code, refused.error_message) == (
        ErrorCode.TOPIC_ALREADY_EXISTS,
        "The topic id belongs to topic 'other'.",
    )
    (refused,) = create(one_node(), restored()).results
    assert refused.error_code in (ErrorCode.INVALID_REQUEST, ErrorCode.INVALID_PARTITIONS)
    (refused,) = create(one_node(), restored((0, [1]), topic_id=NO_ID)).results
    assert refused.error_code == ErrorCode.INVALID_REQUEST


def test_a_topic_is_deleted_with_all_its_nodes_children_first() -> None:
    image = with_topics(topic("orders", 1))
    decision = delete_topics(image, DeleteTopicsRequest(topic_names=["orders"]))
    assert decision.ops == [
        Delete("/brokers/topics/orders/partitions/0/state"),
        Delete("/brokers/topics/orders/partitions/0"),
        Delete("/brokers/topics/orders/partitions"),
        Delete("/brokers/topics/orders"),
        Delete("/config/topics/orders"),
    ]
    image.apply_all(decision.changes)
    assert image.topics == {}
    assert not image.has_config_node("topics", "orders")


def test_a_topic_is_deleted_by_name_or_by_id_and_answered_with_both() -> None:
    image = with_topics(topic("a"), topic("b"))
    asked = [DeleteTopicState(name="a"), DeleteTopicState(topic_id=image.topic_id("b"))]
    decision = delete_topics(image, DeleteTopicsRequest(topics=asked))
    assert [(r.name, r.topic_id, r.error_code) for r in decision.results] == [
        ("a", image.topic_id("a"), 0),
        ("b", image.topic_id("b"), 0),
    ]


UNKNOWN_ID = bytes([9] * 16)


@pytest.mark.parametrize(
    ("asked", "code", "message"),
    [
        (
            [DeleteTopicState(name="none")],
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
            "This server does not host this topic-partition.",
        ),
        (
            [DeleteTopicState(topic_id=UNKNOWN_ID)],
            ErrorCode.UNKNOWN_TOPIC_ID,
            "This server does not host this topic ID.",
        ),
        ([DeleteTopicState()], ErrorCode.INVALID_REQUEST, "Neither topic name nor id were specified."),
        (
            [DeleteTopicState(name="orders", topic_id=UNKNOWN_ID)],
            ErrorCode.INVALID_REQUEST,
            "You may not specify both topic name and topic id.",
        ),
        ([DeleteTopicState(name="orders")] * 2, ErrorCode.INVALID_REQUEST, "Duplicate topic name."),
        ([DeleteTopicState(topic_id=UNKNOWN_ID)] * 2, ErrorCode.INVALID_REQUEST, "Duplicate topic id."),
    ],
)
def test_deletions_are_refused_as_kafka_does(
    asked: list[DeleteTopicState], code: ErrorCode, message: str
) -> None:
    decision = delete_topics(with_topics(topic("orders")), DeleteTopicsRequest(topics=asked))
    (result,) = decision.results
    assert (result.error_code, result.error_message) == (code, message)
    assert (result.name, result.topic_id) == (asked[0].name, asked[0].topic_id)
    assert decision.ops == []


def test_a_topic_asked_for_by_name_and_id_is_deleted_once() -> None:
    image = with_topics(topic("orders"))
    asked = [DeleteTopicState(topic_id=image.topic_id("orders")), DeleteTopicState(name="orders")]
    decision = delete_topics(image, DeleteTopicsRequest(topics=asked))
    assert [result.error_code for result in decision.results] == [0, ErrorCode.INVALID_REQUEST]
    assert len(decision.ops) == 5


def test_nothing_is_deleted_where_deletion_is_disabled() -> None:
    image = with_topics(topic("orders"))
    decision = delete_topics(image, DeleteTopicsRequest(topic_names=["orders"]), deletion_enabled=False)
    assert decision.results[0].error_code == ErrorCode.TOPIC_DELETION_DISABLED
    assert decision.ops == []


def test_a_new_partition_is_led_by_the_first_that_stays() -> None:
    assert new_partition((1, 2, 3), leaving={1}) == PartitionRegistration((1, 2, 3), (2, 3), 2)
    assert new_partition((1, 2), leaving={1, 2}) == PartitionRegistration((1, 2), (1, 2), 1)


def test_where_deletion_is_disabled_a_mark_goes_and_its_topic_stays() -> None:
    image = with_topics(topic("orders"))
    decision = marked_for_deletion(image, ["orders"], existing=(), deletion_enabled=False)
    assert decision.ops == [Delete("/admin/delete_topics/orders")]
    assert decision.changes == []
