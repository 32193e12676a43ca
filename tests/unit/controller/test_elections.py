import pytest

from penstock.controller.elections import PREFERRED, UNCLEAN, elect_leaders
from penstock.metadata.image import BrokerRegistration, ClusterImage, PartitionRegistration, TopicCreated
from penstock.metadata.tree import Set
from penstock.model.errors import ApiError, ErrorCode
from penstock.wire.messages.elect_leaders import ElectLeadersRequest, TopicPartitions


def image_with(*partitions: PartitionRegistration, brokers: tuple[int, ...] = (1, 2)) -> ClusterImage:
    image = ClusterImage()
    image.set_controller(brokers[0] if brokers else -1, epoch=4)
    for id in brokers:
        image.add_broker(BrokerRegistration(id, {}))
    image.apply(TopicCreated("orders", bytes([1] * 16), partitions))
    return image


def asked(election_type: int, *partitions: int, topic: str = "orders") -> ElectLeadersRequest:
    named = [TopicPartitions(topic=topic, partitions=partitions)] if partitions else None
    return ElectLeadersRequest(election_type=election_type, topic_partitions=named)


def outcome(image: ClusterImage, request: ElectLeadersRequest) -> list[tuple[int, str | None]]:
    (result,) = elect_leaders(image, request).results
    return [(p.error_code, p.error_message) for p in result.partition_result]


@pytest.mark.parametrize("election_type", [PREFERRED, UNCLEAN])
def test_one_node_needs_no_election(election_type: int) -> None:
    image = image_with(PartitionRegistration((1,), (1,), 1), brokers=(1,))
    text = "Leader election not needed for topic partition."
    assert outcome(image, asked(election_type, 0)) == [(ErrorCode.ELECTION_NOT_NEEDED, text)]


def test_the_preferred_leader_takes_over_in_a_new_epoch() -> None:
    image = image_with(PartitionRegistration((1, 2), (1, 2), 2, 5, 7))
    decision = elect_leaders(image, asked(PREFERRED, 0))
    state = b'{"controller_epoch":4,"leader":1,"version":1,"leader_epoch":6,"isr":[1,2]}'
    assert decision.ops == [Set("/brokers/topics/orders/partitions/0/state", state, 7)]
    image.apply_all(decision.changes)
    assert image.partition("orders", 0) == PartitionRegistration((1, 2), (1, 2), 1, 6, 8)


@pytest.mark.parametrize(("isr", "brokers"), [((2,), (1, 2)), ((1, 2), (2,))])
def test_a_preferred_leader_out_of_sync_or_absent_is_not_elected(
    isr: tuple[int, ...], brokers: tuple[int, ...]
) -> None:
    image = image_with(PartitionRegistration((1, 2), isr, 2), brokers=brokers)
    assert outcome(image, asked(PREFERRED, 0)) == [
        (ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE, "The preferred leader was not available.")
    ]


def test_an_unclean_election_takes_a_replica_that_was_in_sync_if_there_is_one() -> None:
    image = image_with(PartitionRegistration((1, 2, 3), (2, 3), 3), brokers=(1, 2))
    image.apply_all(elect_leaders(image, asked(UNCLEAN, 0)).changes)
    assert image.partition("orders", 0) == PartitionRegistration((1, 2, 3), (2,), 2, 1, 1)


def test_an_unclean_election_takes_any_replica_in_need() -> None:
    image = image_with(PartitionRegistration((3, 1), (3,), -1), brokers=(1,))
    image.apply_all(elect_leaders(image, asked(UNCLEAN, 0)).changes)
    assert image.partition("orders", 0) == PartitionRegistration((3, 1), (1,), 1, 1, 1)


def test_no_replica_alive_is_said() -> None:
    image = image_with(PartitionRegistration((3,), (3,), 3), brokers=(1,))
    text = "Eligible topic partition leaders are not available."
    assert outcome(image, asked(UNCLEAN, 0)) == [(ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE, text)]


def test_unknown_topics_and_partitions_are_said() -> None:
    image = image_with(PartitionRegistration((1,), (1,), 1))
    unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert outcome(image, asked(PREFERRED, 9)) == [(unknown, "No such partition as orders-9")]
    assert outcome(image, asked(PREFERRED, 0, topic="none")) == [(unknown, "No such topic as none")]


def test_a_partition_asked_for_twice_is_elected_once() -> None:
    image = image_with(PartitionRegistration((1, 2), (1, 2), 2))
    assert [code for code, _ in outcome(image, asked(PREFERRED, 0, 0))] == [0, ErrorCode.ELECTION_NOT_NEEDED]


def test_when_all_are_asked_for_those_that_need_none_are_left_out() -> None:
    image = image_with(PartitionRegistration((1, 2), (1, 2), 1), PartitionRegistration((1, 2), (1, 2), 2))
    decision = elect_leaders(image, asked(PREFERRED))
    (result,) = decision.results
    assert [(p.partition_id, p.error_code) for p in result.partition_result] == [(1, 0)]
    assert len(decision.ops) == 1


def test_an_unknown_kind_of_election_is_refused() -> None:
    with pytest.raises(ApiError, match="Unknown election type 5") as caught:
        elect_leaders(image_with(), asked(5))
    assert caught.value.code == ErrorCode.INVALID_REQUEST
