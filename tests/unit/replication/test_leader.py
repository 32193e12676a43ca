"""The leader's picture of its followers: the high watermark, who joins the in-sync set, and who leaves it."""

import pytest

from penstock.replication.leader import UNKNOWN, Leadership

MAX_LAG_MS = 1000


@pytest.fixture
def leadership() -> Leadership:
    """Broker 1 leads, 2 and 3 follow; what was there when it began ends at 100."""
    return Leadership(1, replicas=(1, 2, 3), isr=(1, 2, 3), epoch_start_offset=100, now_ms=0)


def fetch(leadership: Leadership, replica_id: int, offset: int, *, end_offset: int, now_ms: int = 0) -> bool:
    return leadership.fetched(replica_id, offset, end_offset=end_offset, now_ms=now_ms)


def test_the_high_watermark_is_not_known_before_every_member_has_fetched(leadership: Leadership) -> None:
    fetch(leadership, 2, 120, end_offset=120)
    assert leadership.high_watermark(end_offset=120) == UNKNOWN


def test_the_high_watermark_is_what_the_slowest_member_has(leadership: Leadership) -> None:
    fetch(leadership, 2, 120, end_offset=130)
    fetch(leadership, 3, 110, end_offset=130)
    assert leadership.high_watermark(end_offset=130) == 110
    fetch(leadership, 3, 130, end_offset=130)
    assert leadership.high_watermark(end_offset=130) == 120


def test_a_replica_out_of_sync_does_not_hold_the_high_watermark() -> None:
    leadership = Leadership(1, replicas=(1, 2, 3), isr=(1, 2), epoch_start_offset=0, now_ms=0)
    fetch(leadership, 2, 50, end_offset=50)
    fetch(leadership, 3, 10, end_offset=50)
    assert leadership.high_watermark(end_offset=50) == 50


def test_one_who_may_have_become_a_member_holds_the_high_watermark() -> None:
    leadership = Leadership(1, replicas=(1, 2, 3), isr=(1, 2), epoch_start_offset=0, now_ms=0)
    fetch(leadership, 2, 50, end_offset=50)
    fetch(leadership, 3, 40, end_offset=50)
    leadership.proposed = frozenset((1, 2, 3))
    assert leadership.high_watermark(end_offset=50) == 40
    leadership.withdraw()
    assert leadership.high_watermark(end_offset=50) == 50


def test_one_whose_leaving_is_not_confirmed_still_holds_the_high_watermark(leadership: Leadership) -> None:
    fetch(leadership, 2, 120, end_offset=120)
    fetch(leadership, 3, 100, end_offset=120)
    leadership.proposed = frozenset((1, 2))
    assert leadership.high_watermark(end_offset=120) == 100
    leadership.settle((1, 2))
    assert leadership.high_watermark(end_offset=120) == 120


def test_a_fetch_says_whether_the_follower_has_got_more(leadership: Leadership) -> None:
    assert fetch(leadership, 2, 100, end_offset=120)
    assert not fetch(leadership, 2, 100, end_offset=120)
    assert fetch(leadership, 2, 120, end_offset=120)


def test_a_follower_that_cut_its_log_has_less_from_then_on(leadership: Leadership) -> None:
    fetch(leadership, 2, 120, end_offset=120)
    fetch(leadership, 2, 105, end_offset=120)
    assert leadership.followers[2].end_offset == 105


# --- joining


def outsider(*, end_offset: int) -> Leadership:
    """Broker 3 is out of sync and has all before an offset; 2 has all before 150."""
    leadership = Leadership(1, replicas=(1, 2, 3), isr=(1, 2), epoch_start_offset=100, now_ms=0)
    fetch(leadership, 2, 150, end_offset=200)
    fetch(leadership, 3, end_offset, end_offset=200)
    return leadership


def test_who_has_all_that_is_committed_joins() -> None:
    assert outsider(end_offset=150).joining(3, high_watermark=150) == frozenset((1, 2, 3))


def test_who_lacks_something_committed_does_not_join() -> None:
    assert outsider(end_offset=149).joining(3, high_watermark=150) is None


def test_who_has_not_reached_this_leadership_does_not_join_although_it_has_all_that_is_committed() -> None:
    assert outsider(end_offset=99).joining(3, high_watermark=90) is None


def test_nobody_joins_while_a_proposal_is_open_nor_twice() -> None:
    leadership = outsider(end_offset=150)
    leadership.proposed = frozenset((1,))
    assert leadership.joining(3, high_watermark=150) is None
    leadership.settle((1, 2, 3))
    assert leadership.joining(3, high_watermark=150) is None


# --- leaving


def staying(leadership: Leadership, *, end_offset: int, now_ms: int) -> frozenset[int] | None:
    return leadership.staying(end_offset=end_offset, now_ms=now_ms, max_lag_ms=MAX_LAG_MS)


def test_a_member_has_the_whole_lag_time_for_its_first_fetch(leadership: Leadership) -> None:
    assert staying(leadership, end_offset=100, now_ms=1000) is None
    assert staying(leadership, end_offset=100, now_ms=1001) == frozenset((1,))


def test_who_is_silent_for_too_long_leaves(leadership: Leadership) -> None:
    for now_ms in (500, 1200):
        fetch(leadership, 2, 100, end_offset=100, now_ms=now_ms)
    fetch(leadership, 3, 100, end_offset=100, now_ms=100)
    assert staying(leadership, end_offset=200, now_ms=1300) == frozenset((1, 2))


def test_who_has_everything_stays_however_long_ago_it_fetched(leadership: Leadership) -> None:
    for replica in (2, 3):
        fetch(leadership, replica, 100, end_offset=100, now_ms=10)
    assert staying(leadership, end_offset=100, now_ms=1_000_000) is None


def test_who_keeps_up_with_a_busy_leader_stays_although_it_never_has_the_very_end(
    leadership: Leadership,
) -> None:
    for step in range(1, 100):
        for replica in (2, 3):
            fetch(leadership, replica, 90 + 10 * step, end_offset=100 + 10 * step, now_ms=300 * step)
        assert staying(leadership, end_offset=105 + 10 * step, now_ms=300 * step + 200) is None


def test_who_fetches_but_falls_behind_leaves(leadership: Leadership) -> None:
    for step in range(1, 10):
        fetch(leadership, 2, 100 + 10 * step, end_offset=100 + 10 * step, now_ms=300 * step)
        fetch(leadership, 3, 100 + step, end_offset=100 + 10 * step, now_ms=300 * step)
    assert staying(leadership, end_offset=191, now_ms=2701) == frozenset((1, 2))


def test_nobody_leaves_while_a_proposal_is_open(leadership: Leadership) -> None:
    leadership.proposed = frozenset((1, 2))
    assert staying(leadership, end_offset=200, now_ms=5000) is None


# --- replicas that come and go


def test_a_replica_that_is_added_begins_with_nothing(leadership: Leadership) -> None:
    fetch(leadership, 2, 120, end_offset=120)
    leadership.set_replicas((1, 2, 4))
    assert leadership.followers[2].end_offset == 120
    assert leadership.followers[4].end_offset == UNKNOWN
    assert not leadership.has(3)


def test_a_member_that_is_no_replica_any_more_does_not_hold_the_high_watermark(
    leadership: Leadership,
) -> None:
    fetch(leadership, 2, 120, end_offset=120)
    leadership.set_replicas((1, 2))
    leadership.settle((1, 2))
    assert leadership.high_watermark(end_offset=120) == 120


# --- the low watermark


def test_the_low_watermark_is_where_the_log_begins_on_every_member(leadership: Leadership) -> None:
    assert leadership.low_watermark(start_offset=50) == UNKNOWN
    leadership.followers[2].start_offset = 50
    leadership.followers[3].start_offset = 20
    assert leadership.low_watermark(start_offset=50) == 20
    leadership.settle((1, 2))
    assert leadership.low_watermark(start_offset=50) == 50
