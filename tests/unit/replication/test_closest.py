"""Which replica a consumer is sent to."""

from penstock.replication.closest import LEADER, closest_replica

RACKS = {1: "a", 2: "b", 3: "b", 4: None}


def closest(rack: str, *followers: tuple[int, int], fetch_offset: int = 10) -> int:
    """Broker 1 leads."""
    return closest_replica(rack, leader_id=1, racks=RACKS, followers=followers, fetch_offset=fetch_offset)


def test_the_leader_is_read_in_its_own_rack() -> None:
    assert closest("a", (2, 100)) == LEADER


def test_a_follower_in_the_rack_is_preferred_to_a_leader_elsewhere() -> None:
    assert closest("b", (2, 100)) == 2


def test_of_several_in_the_rack_the_one_that_has_most_is_read() -> None:
    assert closest("b", (2, 90), (3, 100)) == 3


def test_a_follower_that_lacks_what_is_asked_for_is_not_read() -> None:
    assert closest("b", (2, 9)) == LEADER
    assert closest("b", (2, 9), (3, 10)) == 3


def test_a_rack_without_a_replica_reads_from_the_leader() -> None:
    assert closest("c", (2, 100), (3, 100)) == LEADER


def test_a_broker_that_says_no_rack_is_in_none() -> None:
    assert closest("", (4, 100)) == LEADER
