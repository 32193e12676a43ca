"""Lag in seconds, from looks at where a partition ended when."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.broker.metrics.lag import MOST_LOOKS, Looks, lag_seconds


def looks_of(*points: tuple[float, int]) -> Looks:
    looks = Looks()
    for at, end in points:
        looks.add(at, end)
    return looks


def seconds(looks: Looks, committed: int, end_offset: int, now: float) -> float:
    times, ends = looks.points()
    return lag_seconds(times, ends, committed=committed, end_offset=end_offset, now=now)


def test_between_two_looks_records_came_evenly() -> None:
    looks = looks_of((100, 50), (110, 70))
    assert seconds(looks, 60, 90, 130) == 25
    assert seconds(looks, 50, 90, 130) == 30


def test_who_has_read_all_has_no_lag() -> None:
    looks = looks_of((100, 50))
    assert seconds(looks, 50, 50, 1000) == 0
    assert seconds(looks, 60, 50, 1000) == 0  # it committed after the end was looked at


def test_what_came_after_the_last_look_came_since() -> None:
    assert seconds(looks_of((100, 50)), 60, 70, 110) == pytest.approx(5)


def test_what_came_before_the_first_look_came_at_the_same_pace() -> None:
    looks = looks_of((100, 500), (200, 1500))
    assert seconds(looks, 400, 1500, 200) == pytest.approx(110)


def test_where_nothing_comes_any_more_the_lag_grows_with_the_time() -> None:
    looks = looks_of((100, 50), (110, 60), (120, 60), (500, 60))
    assert seconds(looks, 55, 60, 500) == pytest.approx(395)
    assert seconds(looks_of((100, 50)), 10, 50, 160) == 60  # at least


def test_a_topic_that_was_made_anew_has_no_past() -> None:
    looks = looks_of((100, 50), (110, 70), (120, 3))
    assert looks.points() == ((120,), (3,))


def test_long_ago_is_known_roughly_and_now_exactly() -> None:
    looks = looks_of(*((float(at), 10 * at) for at in range(10_000)))
    times, _ = looks.points()
    assert len(times) <= MOST_LOOKS
    assert times[0] == 0
    assert times[-1] == 9_999
    for behind in (1, 30, 100, 5_000, 9_000):
        assert seconds(looks, 10 * (9_999 - behind), 99_990, 9_999) == pytest.approx(behind)


@given(
    st.lists(st.tuples(st.floats(0, 1e6), st.integers(0, 10**9)), min_size=1, max_size=100),
    st.integers(0, 10**9),
    st.floats(0, 1e6),
)
def test_a_lag_is_never_negative_and_never_longer_for_who_has_read_more(
    steps: list[tuple[float, int]], committed: int, later: float
) -> None:
    looks, at, end = Looks(), 0.0, 0
    for seconds_on, records in steps:
        at, end = at + seconds_on, end + records
        looks.add(at, end)
    now = at + later
    lag = seconds(looks, committed, end, now)
    assert lag >= 0
    assert seconds(looks, committed + 1, end, now) <= lag + 1e-6 * max(now, 1)
