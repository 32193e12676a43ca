"""The rate of throttled replication, over windows."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.replication.throttle import SHORTEST_PAUSE_MS, Throttle, ThrottledPartitions

LIMIT = 5_000
WINDOW_MS = 1000


@pytest.fixture
def throttle() -> Throttle:
    """Five bytes a millisecond, over eleven windows of a second."""
    return throttle_of(LIMIT)


def throttle_of(limit: int) -> Throttle:
    throttle = Throttle(window_count=11, window_ms=WINDOW_MS)
    throttle.limit_bytes_per_second = limit
    return throttle


def test_without_a_limit_nothing_exceeds_it() -> None:
    throttle = Throttle(window_count=11, window_ms=WINDOW_MS)
    throttle.record(10**12, now_ms=0)
    assert not throttle.is_exceeded(now_ms=0)


def test_the_bytes_of_a_second_may_go_at_once_but_not_one_more(throttle: Throttle) -> None:
    throttle.record(LIMIT, now_ms=100)
    assert not throttle.is_exceeded(now_ms=100)
    throttle.record(1, now_ms=101)
    assert throttle.is_exceeded(now_ms=101)


def test_the_pause_is_over_when_the_rate_has_fallen_to_the_limit(throttle: Throttle) -> None:
    throttle.record(8_000, now_ms=100)
    assert throttle.is_exceeded(now_ms=100)
    pause_ms = throttle.pause_ms(now_ms=100)
    assert throttle.is_exceeded(now_ms=100 + 1599)
    assert pause_ms == 1601
    assert not throttle.is_exceeded(now_ms=100 + pause_ms)


def test_what_lies_before_the_oldest_window_does_not_count(throttle: Throttle) -> None:
    throttle.record(10 * LIMIT, now_ms=0)
    assert throttle.is_exceeded(now_ms=9_999)
    throttle.record(LIMIT, now_ms=20_000)
    assert not throttle.is_exceeded(now_ms=20_000)


def test_a_limit_of_nothing_lets_nothing_through_after_the_first_byte() -> None:
    throttle = throttle_of(0)
    assert not throttle.is_exceeded(now_ms=0)
    throttle.record(1, now_ms=0)
    assert throttle.is_exceeded(now_ms=10_999)
    assert throttle.pause_ms(now_ms=0) == 11_000


def test_a_new_limit_counts_at_once(throttle: Throttle) -> None:
    throttle.record(8_000, now_ms=0)
    throttle.limit_bytes_per_second = 10_000
    assert not throttle.is_exceeded(now_ms=0)


@given(st.integers(1, 10**9), st.lists(st.integers(1, 10**7), min_size=1, max_size=200))
def test_who_waits_as_told_never_takes_more_than_the_limit_and_one_piece_and_always_goes_on(
    limit: int, pieces: list[int]
) -> None:
    throttle = throttle_of(limit)
    now_ms = taken = 0
    for piece in pieces:
        pauses = 0
        while throttle.is_exceeded(now_ms=now_ms):
            pause_ms = throttle.pause_ms(now_ms=now_ms)
            assert SHORTEST_PAUSE_MS <= pause_ms <= 11 * WINDOW_MS
            now_ms += pause_ms
            pauses += 1
            assert pauses <= 12, "it never goes on"
        throttle.record(piece, now_ms=now_ms)
        taken += piece
        if (
            now_ms < 10 * WINDOW_MS
        ):  # later the first windows are forgotten, with what was taken too much in them
            assert (taken - piece) * 1000 <= limit * max(now_ms, WINDOW_MS)


@pytest.mark.parametrize(
    ("value", "expected"),
    [(["*"], {0, 1, 2}), (["0:1", "2:1", "1:2"], {0, 2}), (["1:2"], set()), ([], set())],
)
def test_the_partitions_that_a_topic_names_for_this_broker(value: list[str], expected: set[int]) -> None:
    throttled = ThrottledPartitions(value, 1)
    assert {index for index in range(3) if index in throttled} == expected
    assert bool(throttled) == bool(expected)
