from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.controller.placement import broker_ring, check_manual_assignment, place_replicas, start_index_of
from penstock.metadata.image import BrokerRegistration
from penstock.model.errors import ApiError, ErrorCode


def brokers(*racks: str | None) -> dict[int, BrokerRegistration]:
    return {id: BrokerRegistration(id, {}, rack) for id, rack in enumerate(racks, 1)}


def test_one_broker_gets_everything() -> None:
    assert place_replicas(brokers(None), num_partitions=3, replication_factor=1) == [(1,)] * 3


def test_followers_move_on_each_time_the_leaders_have_gone_round() -> None:
    placed = place_replicas(brokers(None, None, None), num_partitions=7, replication_factor=2)
    assert placed == [(1, 2), (2, 3), (3, 1), (1, 3), (2, 1), (3, 2), (1, 2)]


def test_the_start_turns_the_ring() -> None:
    placed = place_replicas(brokers(None, None, None), num_partitions=2, replication_factor=2, start_index=2)
    assert placed == [(3, 1), (1, 2)]


def test_racks_alternate_in_the_ring() -> None:
    assert broker_ring(brokers("a", "a", "b", "b", "c").values()) == [1, 3, 5, 2, 4]
    assert start_index_of(brokers("a", "a", "b"), 3) == 1
    assert start_index_of(brokers("a", "a", "b"), 9) == 0


def test_a_growing_topic_goes_on_where_it_was() -> None:
    three = brokers(None, None, None)
    whole = place_replicas(three, num_partitions=8, replication_factor=2)
    first = place_replicas(three, num_partitions=3, replication_factor=2)
    rest = place_replicas(three, num_partitions=5, replication_factor=2, first_partition=3)
    assert first + rest == whole


@settings(max_examples=100)
@given(
    st.lists(st.sampled_from([None, "a", "b", "c"]), min_size=1, max_size=8),
    st.integers(1, 8),
    st.integers(1, 40),
    st.integers(0, 20),
)
def test_replicas_are_distinct_spread_over_racks_and_evenly_led(
    racks: list[str | None], replication_factor: int, num_partitions: int, start_index: int
) -> None:
    all_brokers = brokers(*racks)
    replication_factor = min(replication_factor, len(all_brokers))
    placed = place_replicas(
        all_brokers,
        num_partitions=num_partitions,
        replication_factor=replication_factor,
        start_index=start_index,
    )
    assert len(placed) == num_partitions
    for replicas in placed:
        assert len(set(replicas)) == len(replicas) == replication_factor
        used = {all_brokers[id].rack for id in replicas}
        assert len(used) == min(replication_factor, len(set(racks)))
    leaders = Counter(replicas[0] for replicas in placed)
    assert max(leaders.values()) - min(leaders[id] for id in all_brokers) <= 1


@pytest.mark.parametrize(
    ("replication_factor", "reason"),
    [
        (
            3,
            "The target replication factor of 3 cannot be reached because only 1 broker(s) are registered.",
        ),
        (0, "Invalid replication factor 0: the replication factor must be positive."),
    ],
)
def test_too_few_brokers_are_refused_in_kafkas_words(replication_factor: int, reason: str) -> None:
    with pytest.raises(ApiError) as caught:
        place_replicas(brokers(None), num_partitions=1, replication_factor=replication_factor)
    assert caught.value.code == ErrorCode.INVALID_REPLICATION_FACTOR
    text = f"Unable to replicate the partition {replication_factor} time(s): {reason}"
    assert caught.value.detail == text


def test_no_brokers_at_all_are_refused() -> None:
    with pytest.raises(ApiError, match="All brokers are currently fenced"):
        place_replicas({}, num_partitions=1, replication_factor=1)


@pytest.mark.parametrize(
    ("replicas", "before", "reason"),
    [
        ([], None, "includes an empty replica list."),
        ([1, 5], None, "includes broker 5, but no such broker is registered."),
        ([2, 2], None, "includes the broker 2 more than once."),
        (
            [1],
            2,
            "includes a partition with 1 replica(s), but this is not consistent with previous partitions,"
            " which have 2 replica(s).",
        ),
    ],
)
def test_bad_manual_assignments_are_refused(replicas: list[int], before: int | None, reason: str) -> None:
    with pytest.raises(ApiError) as caught:
        check_manual_assignment(brokers(None, None), replicas, replication_factor=before)
    assert caught.value.code == ErrorCode.INVALID_REPLICA_ASSIGNMENT
    assert caught.value.detail == f"The manual partition assignment {reason}"
