import pytest

from penstock.controller.decision import Decision
from penstock.controller.isr import alter_partition
from penstock.metadata.image import NO_LEADER, NO_STATE, ClusterImage, PartitionRegistration
from penstock.metadata.tree import Set
from penstock.model.errors import ApiError, ErrorCode
from penstock.wire.messages.alter_partition import (
    AlterPartitionRequest,
    BrokerState,
    RequestPartitionData,
    RequestTopicData,
    ResponseTopicData,
)
from tests.unit.controller.clusters import ORDERS_ID, after, cluster

EPOCHS = {1: 10, 2: 10, 3: 10}


def asked(*isr: int, index: int = 0, leader_epoch: int = 5, partition_epoch: int = 7) -> RequestPartitionData:
    return RequestPartitionData(
        partition_index=index,
        leader_epoch=leader_epoch,
        new_isr_with_epochs=[BrokerState(broker_id=id, broker_epoch=10) for id in isr],
        partition_epoch=partition_epoch,
    )


def alter(
    image: ClusterImage,
    *partitions: RequestPartitionData,
    sender: int = 1,
    sender_epoch: int = 10,
    topic_id: bytes = ORDERS_ID,
    shutting_down: tuple[int, ...] = (),
) -> Decision[ResponseTopicData]:
    topic = RequestTopicData(topic_id=topic_id, partitions=partitions)
    request = AlterPartitionRequest(broker_id=sender, broker_epoch=sender_epoch, topics=[topic])
    return alter_partition(image, request, broker_epochs=EPOCHS, shutting_down=shutting_down)


def codes(decision: Decision[ResponseTopicData]) -> list[int]:
    return [partition.error_code for topic in decision.results for partition in topic.partitions]


def led(isr: tuple[int, ...] = (1, 2)) -> PartitionRegistration:
    return PartitionRegistration((1, 2, 3), isr, 1, 5, 7)


def test_a_leader_changes_its_isr_within_its_epoch() -> None:
    image = cluster(led())
    decision = alter(image, asked(1, 2, 3))
    state = b'{"controller_epoch":4,"leader":1,"version":1,"leader_epoch":5,"isr":[1,2,3]}'
    assert decision.ops == [Set("/brokers/topics/orders/partitions/0/state", state, 7)]
    (answer,) = decision.results[0].partitions
    assert (answer.error_code, answer.leader_id, answer.leader_epoch) == (0, 1, 5)
    assert (list(answer.isr), answer.partition_epoch) == ([1, 2, 3], 8)
    assert after(image, decision) == [PartitionRegistration((1, 2, 3), (1, 2, 3), 1, 5, 8)]


def test_a_request_that_was_answered_already_gets_the_same_answer() -> None:
    decision = alter(cluster(led()), asked(2, 1, partition_epoch=6))
    assert codes(decision) == [0]
    assert decision.results[0].partitions[0].partition_epoch == 7
    assert decision.ops == []


@pytest.mark.parametrize(
    ("leader_epoch", "partition_epoch", "code"),
    [
        (4, 7, ErrorCode.FENCED_LEADER_EPOCH),
        (6, 7, ErrorCode.NOT_CONTROLLER),
        (5, 8, ErrorCode.NOT_CONTROLLER),
        (5, 6, ErrorCode.INVALID_UPDATE_VERSION),
    ],
)
def test_epochs_that_are_not_ours_are_refused(
    leader_epoch: int, partition_epoch: int, code: ErrorCode
) -> None:
    decision = alter(cluster(led()), asked(1, leader_epoch=leader_epoch, partition_epoch=partition_epoch))
    assert codes(decision) == [code]
    assert (decision.ops, decision.changes) == ([], [])


@pytest.mark.parametrize("isr", [(), (2,), (1, 4), (1, 1)])
def test_an_isr_without_the_leader_or_beyond_the_replicas_is_refused(isr: tuple[int, ...]) -> None:
    assert codes(alter(cluster(led()), asked(*isr))) == [ErrorCode.INVALID_REQUEST]


def test_only_the_leader_may_ask() -> None:
    assert codes(alter(cluster(led()), asked(1), sender=2)) == [ErrorCode.INVALID_REQUEST]


def test_a_recovering_leader_is_not_known_here() -> None:
    request = asked(1)
    request.leader_recovery_state = 1
    assert codes(alter(cluster(led()), request)) == [ErrorCode.INVALID_REQUEST]


def test_what_is_not_there_is_said() -> None:
    image = cluster(led(), PartitionRegistration((1,), (), NO_LEADER, 0, NO_STATE))
    unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert codes(alter(image, asked(1, index=1), asked(1, index=2), asked(1, index=-1))) == [unknown] * 3
    assert codes(alter(image, asked(1), topic_id=bytes(16))) == [ErrorCode.UNKNOWN_TOPIC_ID]


def test_a_partition_asked_for_twice_is_altered_once() -> None:
    decision = alter(cluster(led()), asked(1), asked(1, 2, 3))
    assert codes(decision) == [0, ErrorCode.INVALID_REQUEST]
    assert len(decision.ops) == 1


@pytest.mark.parametrize("epoch", [9, 11])
def test_a_sender_with_another_epoch_is_refused_as_a_whole(epoch: int) -> None:
    with pytest.raises(ApiError) as caught:
        alter(cluster(led()), asked(1), sender_epoch=epoch)
    assert caught.value.code == ErrorCode.STALE_BROKER_EPOCH


def test_a_sender_that_is_not_there_is_refused_as_a_whole() -> None:
    with pytest.raises(ApiError, match="Broker 9 is not registered"):
        alter(cluster(led()), asked(1), sender=9)


def test_one_that_was_started_again_does_not_come_in_by_its_old_epoch() -> None:
    request = asked(1, 2)
    request.new_isr_with_epochs = [
        BrokerState(broker_id=1, broker_epoch=10),
        BrokerState(broker_id=2, broker_epoch=9),
    ]
    assert codes(alter(cluster(led((1,))), request)) == [ErrorCode.INELIGIBLE_REPLICA]


def test_an_epoch_that_the_sender_does_not_know_is_not_checked() -> None:
    request = RequestPartitionData(leader_epoch=5, partition_epoch=7, new_isr=[1, 2, 3])
    assert codes(alter(cluster(led()), request)) == [0]


def test_one_that_is_away_or_leaving_or_failed_does_not_come_in() -> None:
    four = PartitionRegistration((1, 2, 3, 4), (1,), 1, 5, 7)
    assert codes(alter(cluster(four), asked(1, 4))) == [ErrorCode.INELIGIBLE_REPLICA]
    assert codes(alter(cluster(four), asked(1, 2), shutting_down=(2,))) == [ErrorCode.INELIGIBLE_REPLICA]
    image = cluster(four)
    image.set_failed_replicas("orders", 0, [3])
    assert codes(alter(image, asked(1, 3))) == [ErrorCode.INELIGIBLE_REPLICA]


def test_a_leader_that_is_leaving_may_let_its_successor_in() -> None:
    assert codes(alter(cluster(led((1,))), asked(1, 2), shutting_down=(1,))) == [0]
