"""Histograms that cost one increment."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from penstock.broker.metrics.quantiles import BUCKETS, MOST, Histogram, bounds, quantiles


@given(st.integers(0, MOST))
def test_a_value_lies_within_its_bucket(value: int) -> None:
    histogram = Histogram()
    histogram.note(value)
    low, high = bounds(histogram.counts().index(1))
    assert low <= value < high
    assert high - low <= max(1, value / 4)


def test_buckets_follow_one_another() -> None:
    ends = [bounds(bucket) for bucket in range(BUCKETS)]
    assert all(here[1] == after[0] for here, after in pairwise(ends))


@given(st.lists(st.integers(0, 10**9), min_size=1, max_size=300))
def test_a_quantile_is_off_by_an_eighth_at_most(values: list[int]) -> None:
    histogram = Histogram()
    for value in values:
        histogram.note(value)
    found = quantiles(histogram.counts())
    assert found == sorted(found)
    true = sorted(values)[max(-(-len(values) // 2) - 1, 0)]
    assert true * 0.75 - 1 <= found[0] <= true * 1.25 + 1


def test_what_is_beyond_counts_at_the_ends() -> None:
    histogram = Histogram()
    for value in (-5, MOST * 100):
        histogram.note(value)
    assert histogram.counts()[0] == 1
    assert histogram.counts()[-1] == 1


def test_quantiles_forget_what_is_two_turns_old() -> None:
    histogram = Histogram()
    histogram.note(1000)
    histogram.turn()
    assert sum(histogram.counts()) == 1
    histogram.note(3)
    assert sum(histogram.counts()) == 2
    histogram.turn()
    assert quantiles(histogram.counts(), [0.999]) == [3]
    histogram.turn()
    assert quantiles(histogram.counts(), [0.5]) == [0]
