import pytest

from penstock.controller.brokers import (
    broker_arrived,
    broker_lost,
    epochs_seen,
    led_on_after_unclean_stop,
    missing_brokers,
    partitions_without_state,
    replicas_failed,
    seen_now,
    started_again,
    started_again_intact,
)
from penstock.metadata.image import NO_LEADER, NO_STATE, ClusterImage, PartitionRegistration
from penstock.metadata.tree import Create, Set
from penstock.metadata.znodes import EpochsSeen
from penstock.model.ids import TopicPartition
from tests.unit.controller.clusters import after, broker, cluster


def lose(
    image: ClusterImage, *ids: int, unclean: bool = False, leaving: tuple[int, ...] = ()
) -> list[PartitionRegistration]:
    decision = broker_lost(image, ids, is_unclean_allowed=lambda name: unclean, leaving=leaving)
    return after(image, decision)


def arrive(image: ClusterImage, *ids: int, unclean: bool = False) -> list[PartitionRegistration]:
    for id in ids:
        image.add_broker(broker(id, epoch=11))
    return after(image, broker_arrived(image, ids, is_unclean_allowed=lambda name: unclean))


def test_the_first_replica_in_sync_and_alive_takes_over_in_a_new_epoch() -> None:
    image = cluster(PartitionRegistration((1, 2, 3), (1, 3), 1, 5, 7))
    decision = broker_lost(image, [1], is_unclean_allowed=lambda name: False)
    state = b'{"controller_epoch":4,"leader":3,"version":1,"leader_epoch":6,"isr":[3]}'
    assert decision.ops == [Set("/brokers/topics/orders/partitions/0/state", state, 7)]
    assert after(image, decision) == [PartitionRegistration((1, 2, 3), (3,), 3, 6, 8)]


def test_a_lost_follower_leaves_the_isr_in_a_new_epoch() -> None:
    assert lose(cluster(PartitionRegistration((1, 2, 3), (1, 2, 3), 1)), 2) == [
        PartitionRegistration((1, 2, 3), (1, 3), 1, 1, 1)
    ]


def test_partitions_that_the_lost_broker_does_not_serve_stay_as_they_are() -> None:
    image = cluster(PartitionRegistration((1, 2), (1,), 1), PartitionRegistration((1, 3), (1, 3), 3))
    assert broker_lost(image, [2], is_unclean_allowed=lambda name: True).changes == []


def test_the_last_in_sync_stays_in_the_isr_of_a_partition_without_leader() -> None:
    assert lose(cluster(PartitionRegistration((1, 2), (2,), 2)), 2) == [
        PartitionRegistration((1, 2), (2,), NO_LEADER, 1, 1)
    ]


def test_when_all_in_sync_are_lost_at_once_each_of_them_may_lead_later() -> None:
    image = cluster(PartitionRegistration((1, 2, 3), (1, 2), 1))
    assert lose(image, 1, 2) == [PartitionRegistration((1, 2, 3), (1, 2), NO_LEADER, 1, 1)]
    image.remove_broker(1)
    image.remove_broker(2)
    assert arrive(image, 2) == [PartitionRegistration((1, 2, 3), (2,), 2, 2, 2)]


def test_losing_again_what_has_no_leader_changes_nothing() -> None:
    image = cluster(PartitionRegistration((1, 2), (1, 2), NO_LEADER, 3, 4), brokers=(3,))
    assert broker_lost(image, [1], is_unclean_allowed=lambda name: True).changes == []


def test_an_unclean_leader_is_alone_in_the_isr() -> None:
    assert lose(cluster(PartitionRegistration((1, 2, 3), (1,), 1)), 1, unclean=True) == [
        PartitionRegistration((1, 2, 3), (2,), 2, 1, 1)
    ]


def test_an_unclean_election_takes_a_replica_that_is_being_added_only_in_need() -> None:
    moving = PartitionRegistration((3, 1, 2), (1,), 1, adding=(3,), removing=(1,))
    assert lose(cluster(moving), 1, unclean=True)[0].leader == 2
    assert lose(cluster(moving), 1, 2, unclean=True)[0].leader == 3


def test_a_leaving_broker_is_elected_only_where_there_is_no_other() -> None:
    image = cluster(PartitionRegistration((1, 2, 3), (1, 2, 3), 1), PartitionRegistration((1, 2), (1, 2), 1))
    assert lose(image, 1, leaving=(2,)) == [
        PartitionRegistration((1, 2, 3), (3,), 3, 1, 1),
        PartitionRegistration((1, 2), (2,), 2, 1, 1),
    ]


def test_a_replica_on_a_failed_directory_is_not_elected() -> None:
    image = cluster(PartitionRegistration((1, 2, 3), (1, 2, 3), 1))
    image.set_failed_replicas("orders", 0, [2])
    assert lose(image, 1) == [PartitionRegistration((1, 2, 3), (3,), 3, 1, 1)]


@pytest.mark.parametrize(("unclean", "leader"), [(False, NO_LEADER), (True, 1)])
def test_one_out_of_sync_that_arrives_leads_only_if_that_is_allowed(unclean: bool, leader: int) -> None:
    image = cluster(PartitionRegistration((1, 2), (2,), NO_LEADER), brokers=(3,))
    assert arrive(image, 1, unclean=unclean)[0].leader == leader


def test_an_arrival_leaves_partitions_with_a_leader_alone() -> None:
    assert arrive(cluster(PartitionRegistration((1, 2), (1,), 1)), 2) == [
        PartitionRegistration((1, 2), (1,), 1)
    ]


def test_a_failed_directory_is_the_loss_of_its_replicas_only() -> None:
    image = cluster(
        PartitionRegistration((1, 2), (1, 2), 1),
        PartitionRegistration((2, 1), (2, 1), 2),
        PartitionRegistration((1, 2), (1, 2), 1),
    )
    for index in (0, 1):
        image.set_failed_replicas("orders", index, [1])
    places = [("orders", 0), ("orders", 1), ("none", 0)]
    decision = replicas_failed(image, 1, places, is_unclean_allowed=lambda name: False)
    assert after(image, decision) == [
        PartitionRegistration((1, 2), (2,), 2, 1, 1),
        PartitionRegistration((2, 1), (2,), 2, 1, 1),
        PartitionRegistration((1, 2), (1, 2), 1),
    ]


def test_partitions_that_never_had_a_state_get_their_first() -> None:
    without = PartitionRegistration((3, 1), (), NO_LEADER, 0, NO_STATE)
    image = cluster(without, without, brokers=(1, 2))
    existing = {
        "/brokers/topics/orders",
        "/brokers/topics/orders/partitions",
        "/brokers/topics/orders/partitions/1",
    }
    decision = partitions_without_state(image, existing=existing)
    state = b'{"controller_epoch":4,"leader":1,"version":1,"leader_epoch":0,"isr":[1]}'
    assert decision.ops == [
        Create("/brokers/topics/orders/partitions/0"),
        Create("/brokers/topics/orders/partitions/0/state", state),
        Create("/brokers/topics/orders/partitions/1/state", state),
    ]
    assert after(image, decision) == [PartitionRegistration((3, 1), (1,), 1)] * 2
    assert partitions_without_state(image, existing=existing).ops == []


def test_the_first_leader_is_one_that_stays() -> None:
    image = cluster(PartitionRegistration((3, 1), (), NO_LEADER, 0, NO_STATE))
    decision = partitions_without_state(image, existing=(), leaving={3})
    assert after(image, decision) == [PartitionRegistration((3, 1), (1,), 1)]


def test_a_first_state_is_without_leader_while_no_replica_is_there() -> None:
    image = cluster(PartitionRegistration((5, 6), (), NO_LEADER, 0, NO_STATE))
    decision = partitions_without_state(image, existing=())
    assert decision.ops[0] == Create("/brokers/topics/orders/partitions")
    assert after(image, decision) == [PartitionRegistration((5, 6), (5, 6), NO_LEADER)]


def test_missing_are_those_that_lead_or_are_in_sync_and_are_not_there() -> None:
    image = cluster(
        PartitionRegistration((1, 4, 5, 6), (4, 5), 4), PartitionRegistration((1, 2), (1,), NO_LEADER)
    )
    assert missing_brokers(image) == {4, 5}


def test_a_broker_with_another_epoch_than_was_seen_was_started_again() -> None:
    image = cluster()
    (op,) = epochs_seen(seen_now(image, EpochsSeen())).ops
    ten = b'{"1":10,"2":10,"3":10}'
    assert op == Set("/brokers/epochs", b'{"version":1,"epochs":%s,"intact_since":%s}' % (ten, ten))
    image.add_broker(broker(2, epoch=12))
    assert started_again(image, {1: 10, 2: 10, 4: 1}) == {2, 3}


def test_a_lone_broker_leads_on_in_a_new_epoch_after_an_unclean_stop() -> None:
    image = cluster(PartitionRegistration((1,), (1,), 1, 5, 7), PartitionRegistration((1,), (1,), 1, 2, 2))
    decision = led_on_after_unclean_stop(image, {TopicPartition("orders", 1)}.__contains__)
    assert after(image, decision) == [
        PartitionRegistration((1,), (1,), 1, 6, 8),
        PartitionRegistration((1,), (1,), 1, 2, 2),
    ]


def test_one_that_was_started_again_and_lost_nothing_stays_in_sync() -> None:
    image = cluster(
        PartitionRegistration((1, 2), (1, 2), 1, 5, 7), PartitionRegistration((2, 1), (1, 2), 2, 3, 3)
    )
    image.remove_broker(2)
    decision = broker_lost(image, [], is_unclean_allowed=lambda name: False, intact=[2])
    assert after(image, decision) == [
        PartitionRegistration((1, 2), (1, 2), 1, 5, 7),
        PartitionRegistration((2, 1), (1, 2), 2, 4, 4),  # it leads on, in a new epoch
    ]


def test_one_that_lost_nothing_leads_when_the_other_is_lost_at_the_same_time() -> None:
    image = cluster(PartitionRegistration((1, 2), (1, 2), 1, 5, 7))
    image.remove_broker(2)
    decision = broker_lost(image, [1], is_unclean_allowed=lambda name: False, intact=[2])
    assert after(image, decision) == [PartitionRegistration((1, 2), (2,), 2, 6, 8)]


def test_only_what_was_seen_last_counts_as_intact() -> None:
    found = {
        id: broker(id, epoch=20)._replace(intact_since=since) for id, since in ((1, 11), (2, 10), (3, -1))
    }
    assert started_again_intact({1: 11, 2: 11, 3: 11}, found) == {1}
    assert started_again_intact({1: 20}, found) == frozenset()
    assert started_again_intact({}, found) == frozenset()
