import pytest

from penstock.controller.shutdown import controlled_shutdown
from penstock.metadata.image import NO_LEADER, ClusterImage, PartitionRegistration
from penstock.model.errors import ApiError, ErrorCode
from tests.unit.controller.clusters import after, cluster


def shut_down(image: ClusterImage, *others: int) -> tuple[list[PartitionRegistration], list[tuple[str, int]]]:
    decision = controlled_shutdown(image, 1, set(others))
    remaining = [(each.topic_name, each.partition_index) for each in decision.results]
    return after(image, decision), remaining


def test_what_it_leads_is_led_by_another_in_sync_and_it_leaves_the_isr() -> None:
    found = shut_down(cluster(PartitionRegistration((1, 2, 3), (3, 1), 1, 5, 7)))
    assert found == ([PartitionRegistration((1, 2, 3), (3,), 3, 6, 8)], [])


def test_what_it_follows_goes_on_without_it() -> None:
    found = shut_down(cluster(PartitionRegistration((1, 2, 3), (1, 2, 3), 2)))
    assert found == ([PartitionRegistration((1, 2, 3), (2, 3), 2, 1, 1)], [])


def test_a_partition_that_nobody_else_in_sync_could_lead_remains() -> None:
    assert shut_down(cluster(PartitionRegistration((1, 2), (1,), 1))) == (
        [PartitionRegistration((1, 2), (1,), 1)],
        [("orders", 0)],
    )


def test_one_that_is_shutting_down_too_does_not_take_over_and_is_not_waited_for() -> None:
    two = PartitionRegistration((1, 2), (1, 2), 1)
    assert shut_down(cluster(two), 2) == ([two], [])


def test_nobody_is_waited_for_where_no_other_replica_is_there() -> None:
    for lone in (
        PartitionRegistration((1,), (1,), 1),
        PartitionRegistration((1, 9), (1, 9), 1),
        PartitionRegistration((1, 9), (1,), 1),
    ):
        assert shut_down(cluster(lone)) == ([lone], [])


def test_a_partition_without_leader_keeps_its_isr() -> None:
    waiting = PartitionRegistration((1, 2), (1, 2), NO_LEADER)
    assert shut_down(cluster(waiting)) == ([waiting], [])


def test_asking_again_finds_nothing_more_to_do() -> None:
    image = cluster(
        PartitionRegistration((1, 2, 3), (1, 2, 3), 1), PartitionRegistration((1, 2, 3), (1, 2, 3), 2)
    )
    shut_down(image)
    assert controlled_shutdown(image, 1, {1}).ops == []


def test_an_unknown_broker_and_one_of_an_earlier_start_are_refused() -> None:
    with pytest.raises(ApiError, match=r"Broker id 9 does not exist\.") as caught:
        controlled_shutdown(cluster(), 9, set())
    assert caught.value.code == ErrorCode.BROKER_NOT_AVAILABLE
    with pytest.raises(ApiError, match="epoch 9, but is registered with 10") as caught:
        controlled_shutdown(cluster(), 1, set(), broker_epoch=9)
    assert caught.value.code == ErrorCode.STALE_BROKER_EPOCH
