import pytest

from penstock.controller import announce
from penstock.controller.effects import EPOCH_DURING_DELETE, DeletedTopic, effects, partitions_of
from penstock.metadata.image import (
    NO_LEADER,
    NO_STATE,
    TOPICS,
    Change,
    ClusterImage,
    ConfigsChanged,
    PartitionChanged,
    PartitionRegistration,
    PartitionsAdded,
    TopicCreated,
    TopicDeleted,
)
from penstock.wire.codec import decode, encode
from penstock.wire.messages.update_metadata import UpdateMetadataRequest
from tests.unit.controller.clusters import ORDERS_ID, broker, cluster

PAYMENTS_ID = bytes([2] * 16)
FIRST = PartitionRegistration((1, 2), (1, 2), 1, 5, 7)
SECOND = PartitionRegistration((2, 3), (2, 3), 2)


def test_a_new_topic_is_told_to_its_replicas_and_to_all() -> None:
    found = effects(cluster(), [TopicCreated("payments", PAYMENTS_ID, (FIRST, SECOND))])
    both = [("payments", 0), ("payments", 1)]
    assert found.told == found.new == {1: both[:1], 2: both, 3: both[1:]}
    assert (found.stopped, found.updated, found.deleted) == ({}, both, [])


def test_new_partitions_are_numbered_after_those_that_are_there() -> None:
    found = effects(cluster(FIRST), [PartitionsAdded("orders", (SECOND,))])
    assert found.told == found.new == {2: [("orders", 1)], 3: [("orders", 1)]}


def test_a_new_leader_is_told_to_the_replicas_that_stay_and_the_others_stop() -> None:
    moved = PartitionRegistration((2, 3), (2,), 2, 6, 8)
    found = effects(cluster(FIRST), [PartitionChanged("orders", 0, moved)])
    place = ("orders", 0)
    assert found.told == {2: [place], 3: [place]}
    assert found.new == {3: [place]}
    assert found.stopped == {1: {place: 6}}
    assert found.updated == [place]


def test_a_change_that_the_leader_asked_for_is_only_metadata() -> None:
    shrunk = FIRST._replace(isr=(1,), partition_epoch=8)
    found = effects(cluster(FIRST), [PartitionChanged("orders", 0, shrunk)])
    assert (found.told, found.updated) == ({}, [("orders", 0)])


def test_a_first_state_is_told_although_the_epoch_is_the_same() -> None:
    image = cluster(PartitionRegistration((1, 2), (), NO_LEADER, 0, NO_STATE))
    found = effects(image, [PartitionChanged("orders", 0, PartitionRegistration((1, 2), (1, 2), 1))])
    assert found.told == found.new == {1: [("orders", 0)], 2: [("orders", 0)]}


def test_a_deleted_topic_is_stopped_whatever_the_epoch() -> None:
    found = effects(cluster(FIRST, SECOND), [TopicDeleted("orders"), ConfigsChanged(TOPICS, "orders", None)])
    assert found.deleted == [DeletedTopic("orders", ORDERS_ID, 2)]
    assert found.stopped[2] == {("orders", 0): EPOCH_DURING_DELETE, ("orders", 1): EPOCH_DURING_DELETE}
    assert (found.told, found.updated) == ({}, [])


def test_roles_are_told_from_the_image_to_those_who_hold_a_replica() -> None:
    without_state = PartitionRegistration((3,), (), NO_LEADER, 0, NO_STATE)
    image = cluster(FIRST, PartitionRegistration((3, 2, 1), (2, 3), 9, 1, 1, (3,), (1,)), without_state)
    places = [("orders", 0), ("orders", 1), ("orders", 2), ("orders", 9), ("none", 0)]
    request = announce.leader_and_isr(image, 3, places, broker_epoch=10, is_full=False, new=[("orders", 1)])
    assert (request.controller_id, request.controller_epoch, request.broker_epoch) == (1, 4, 10)
    assert request.type == announce.RequestType.INCREMENTAL
    (topic,) = request.topic_states
    assert (topic.topic_name, topic.topic_id) == ("orders", ORDERS_ID)
    (state,) = topic.partition_states
    assert (state.partition_index, state.leader, state.leader_epoch, state.partition_epoch) == (1, 9, 1, 1)
    assert (state.replicas, state.adding_replicas, state.removing_replicas) == ((3, 2, 1), (3,), (1,))
    assert state.is_new
    assert request.live_leaders == []


def test_the_addresses_of_leaders_are_those_of_the_listener_between_brokers() -> None:
    image = cluster(FIRST)
    for listener, found in (
        (None, [(1, "host-1", 9091)]),
        ("PLAINTEXT", [(1, "host-1", 9091)]),
        ("OTHER", []),
    ):
        request = announce.leader_and_isr(
            image, 2, partitions_of(image, 2), broker_epoch=10, is_full=True, listener=listener
        )
        assert request.type == announce.RequestType.FULL
        assert [(each.broker_id, each.host_name, each.port) for each in request.live_leaders] == found


def test_an_order_to_stop_names_the_epoch() -> None:
    image = cluster()
    stopped = effects(cluster(FIRST), [PartitionChanged("orders", 0, FIRST._replace(replicas=(1,)))]).stopped[
        2
    ]
    request = announce.stop_replica(image, stopped, broker_epoch=10)
    (topic,) = request.topic_states
    (state,) = topic.partition_states
    assert (topic.topic_name, state.partition_index, state.leader_epoch) == ("orders", 0, 5)
    assert state.delete_partition


def sent(request: UpdateMetadataRequest) -> UpdateMetadataRequest:
    """As it arrives."""
    return decode(UpdateMetadataRequest, 8, encode(request, 8))[0]


def told(
    receiver: ClusterImage, controller: ClusterImage, places: object = announce.ALL, *deleted: DeletedTopic
) -> list[Change]:
    request = announce.update_metadata(controller, places, deleted=deleted, broker_epoch=10)  # type: ignore[arg-type]
    return announce.apply_update(receiver, sent(request))


def test_a_broker_that_knows_nothing_learns_the_image() -> None:
    controller, receiver = cluster(FIRST, SECOND), ClusterImage()
    assert told(receiver, controller) == [TopicCreated("orders", ORDERS_ID, (FIRST, SECOND))]
    assert receiver.topics == controller.topics
    assert receiver.brokers == {id: broker(id, epoch=-1) for id in (1, 2, 3)}
    assert told(receiver, controller) == []


def test_hearing_the_same_again_leaves_the_revision() -> None:
    controller, receiver = cluster(FIRST, SECOND), ClusterImage()
    told(receiver, controller)
    revision = receiver.revision
    told(receiver, controller)
    assert receiver.revision == revision


def test_only_what_is_named_is_told() -> None:
    controller, receiver = cluster(FIRST, SECOND), cluster(FIRST, SECOND)
    changed = SECOND._replace(leader=3, leader_epoch=1, partition_epoch=1)
    controller.apply_all([PartitionChanged("orders", 0, changed), PartitionChanged("orders", 1, changed)])
    assert told(receiver, controller, [("orders", 1), ("none", 0)]) == [
        PartitionChanged("orders", 1, changed)
    ]


def test_a_growing_topic_is_told_whichever_partition_comes_first() -> None:
    controller, receiver = cluster(FIRST, SECOND, SECOND), cluster(FIRST)
    told(receiver, controller, [("orders", 2)])
    assert receiver.partition("orders", 1) == PartitionRegistration((), (), NO_LEADER, 0, NO_STATE)
    told(receiver, controller, [("orders", 1)])
    assert receiver.topics == controller.topics


def test_a_deleted_topic_goes_by_its_id() -> None:
    controller, receiver = cluster(), cluster(FIRST)
    controller.apply(TopicDeleted("orders"))
    assert told(receiver, controller, [], DeletedTopic("orders", PAYMENTS_ID, 1)) == []
    assert told(receiver, controller, [], DeletedTopic("orders", ORDERS_ID, 1)) == [TopicDeleted("orders")]


@pytest.mark.parametrize("deleted", [(), (DeletedTopic("orders", ORDERS_ID, 1),)])
def test_a_topic_that_was_deleted_and_made_again_is_another(deleted: tuple[DeletedTopic, ...]) -> None:
    controller, receiver = cluster(), cluster(FIRST)
    controller.apply_all([TopicDeleted("orders"), TopicCreated("orders", PAYMENTS_ID, (SECOND,))])
    assert told(receiver, controller, [("orders", 0)], *deleted) == [
        TopicDeleted("orders"),
        TopicCreated("orders", PAYMENTS_ID, (SECOND,)),
    ]


@pytest.mark.parametrize("deleted", [(), (DeletedTopic("orders", ORDERS_ID, 1),)])
def test_what_is_not_in_a_full_update_is_gone(deleted: tuple[DeletedTopic, ...]) -> None:
    controller, receiver = cluster(), cluster(FIRST)
    controller.apply(TopicDeleted("orders"))
    assert told(receiver, controller, announce.ALL, *deleted) == [TopicDeleted("orders")]


def test_failed_directories_are_told_and_absent_brokers_are_seen_from_the_list() -> None:
    controller, receiver = cluster(FIRST, brokers=(1,)), cluster(FIRST)
    controller.set_failed_replicas("orders", 0, [1])
    told(receiver, controller)
    assert receiver.failed_replicas == {("orders", 0): (1,)}
    assert receiver.offline_replicas("orders", 0) == [1, 2]
    controller.set_failed_replicas("orders", 0, [])
    told(receiver, controller)
    assert receiver.failed_replicas == {}


def test_what_moves_is_known_while_the_replicas_are_the_same() -> None:
    moving = PartitionRegistration((2, 3, 1), (1, 2), 1, 6, 8, (3,), (1,))
    controller, receiver = cluster(moving), cluster(moving)
    assert told(receiver, controller) == []
    done = PartitionRegistration((2, 3), (2, 3), 2, 7, 9)
    controller.apply(PartitionChanged("orders", 0, done))
    assert told(receiver, controller) == [PartitionChanged("orders", 0, done)]
