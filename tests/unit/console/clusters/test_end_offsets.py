"""The lag in seconds, from where logs ended at which time."""

from hypothesis import given
from hypothesis import strategies as st

from penstock.console.clusters.end_offsets import MAX_POINTS, EndHistory, PartitionEnds
from penstock.model.ids import TopicPartition

ORDERS = TopicPartition("orders", 0)


def ends_of(*points: tuple[float, int]) -> PartitionEnds:
    ends = PartitionEnds()
    for at_s, offset in points:
        ends.add(at_s, offset)
    return ends


def test_an_offset_between_two_points_was_written_between_their_times() -> None:
    assert ends_of((10, 100), (20, 200)).time_of(150) == 15


def test_what_was_written_after_a_pause_is_not_taken_for_older() -> None:
    ends = ends_of((10, 100), (20, 100), (30, 100), (40, 200))
    assert ends.time_of(100) == 30
    assert len(ends) == 3, "of a level stretch only the two ends are kept"


def test_before_the_first_point_the_slope_goes_on_backwards() -> None:
    assert ends_of((100, 1000), (110, 1100)).time_of(500) == 50


def test_where_nothing_was_written_since_we_look_the_time_is_not_known() -> None:
    assert ends_of((10, 100), (20, 100)).time_of(50) is None


def test_the_timestamps_of_a_batch_say_what_was_before_the_first_look() -> None:
    ends = ends_of((1000, 200), (1005, 200))
    ends.insert(300, 200)
    ends.insert(100, 0)
    assert ends.time_of(150) == 250
    ends.insert(50, 100)
    assert (ends.time_of(0), ends.time_of(100)) == (100, 100), "times stay in order"


def test_points_that_are_far_apart_say_little_and_a_batch_between_them_says_more() -> None:
    ends = ends_of((1000, 100), (5000, 600))  # nothing was written from 1010 s to 4990 s
    assert not ends.knows(522)
    ends.insert(4995, 530)
    ends.insert(4992, 515)
    assert ends.knows(522)
    assert 4992 <= (ends.time_of(522) or 0) <= 4995
    assert not ends.knows(300), "which is still somewhere in the pause"


def test_a_level_stretch_has_two_points_however_often_it_is_looked_up() -> None:
    ends = ends_of((10, 100), (500, 200))
    for _ in range(5):
        ends.insert(20, 200)
    assert len(ends) == 3
    assert ends.time_of(200) == 500
    assert ends.time_of(199) == 19.9


def test_a_timestamp_of_the_future_does_not_turn_the_order_of_times() -> None:
    ends = ends_of((1000, 200), (1005, 300))
    ends.insert(99_999, 100)
    assert ends.time_of(150) == 1000


def test_a_log_that_ends_earlier_is_another_log() -> None:
    ends = ends_of((10, 100), (20, 200), (30, 5), (40, 15))
    assert ends.time_of(10) == 35


@given(st.lists(st.tuples(st.floats(0.1, 100), st.integers(0, 1000)), min_size=1, max_size=300))
def test_points_are_bounded_and_times_grow_with_offsets(steps: list[tuple[float, int]]) -> None:
    ends = PartitionEnds()
    at_s, end = 0.0, 0
    for pause_s, written in steps:
        at_s, end = at_s + pause_s, end + written
        ends.add(at_s, end)
        assert len(ends) <= MAX_POINTS
    times = [
        found for offset in range(0, end, max(1, end // 50)) if (found := ends.time_of(offset)) is not None
    ]
    assert times == sorted(times)
    assert all(found <= at_s for found in times)


def test_who_has_read_everything_has_no_lag() -> None:
    history = EndHistory()
    history.add(10, {ORDERS: 100}, [ORDERS])
    assert history.lag_s(ORDERS, 100, 100, 12) == 0
    assert history.lag_s(ORDERS, 101, 100, 12) == 0, "an end that is older than the commit is no negative lag"


def test_a_lag_lasts_until_now() -> None:
    history = EndHistory()
    for at_s, end in ((10, 100), (20, 200), (30, 300)):
        history.add(at_s, {ORDERS: end}, [ORDERS])
    assert history.lag_s(ORDERS, 250, 300, 31) == 6


def test_partitions_that_nobody_reads_are_forgotten() -> None:
    history = EndHistory()
    history.add(10, {ORDERS: 100}, [ORDERS])
    history.add(20, {ORDERS: 100}, [])
    assert len(history) == 0
    assert history.lag_s(ORDERS, 10, 100, 20) is None


def test_a_partition_that_did_not_answer_keeps_its_points() -> None:
    history = EndHistory()
    for at_s, ends in ((10, {ORDERS: 0}), (20, {ORDERS: 100}), (30, {})):
        history.add(at_s, ends, [ORDERS, ORDERS])
    assert history.lag_s(ORDERS, 50, 100, 30) == 15
