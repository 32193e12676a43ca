"""Offsets in Spark's form, shares of a limit, and the parts of ranges."""

import itertools
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.model.ids import TopicPartition
from penstock.spark.reading.offsets import (
    BadOffsets,
    OffsetRange,
    cut,
    from_json,
    limited,
    parse_assignment,
    parse_offsets,
    split,
    to_json,
    topic_ids_of,
)

A0, A1, B0 = TopicPartition("a", 0), TopicPartition("a", 1), TopicPartition("b", 0)


def test_offsets_have_sparks_form_and_one_order() -> None:
    form = to_json({B0: 5, A1: 2, A0: 1})
    assert json.dumps(form) == '{"a": {"0": 1, "1": 2}, "b": {"0": 5}}'
    assert from_json(form) == {A0: 1, A1: 2, B0: 5}


def test_the_ids_of_topics_are_entries_without_partitions() -> None:
    form = to_json({A0: 1, B0: 5}, {"a": "id-of_a", "other": "unused"})
    assert json.dumps(form) == '{"a": {"0": 1}, "b": {"0": 5}, "a@id-of_a": {}}'
    assert topic_ids_of(form) == {"a": "id-of_a"}
    assert from_json(form) == parse_offsets(json.dumps(form)) == {A0: 1, B0: 5}


def test_partitions_are_ordered_as_numbers() -> None:
    form = to_json({TopicPartition("a", number): 0 for number in (10, 9, 2)})
    assert list(form["a"]) == ["2", "9", "10"]


@pytest.mark.parametrize(
    "text", ["", "x", "[]", "{}", '{"a": 1}', '{"a": {"x": 1}}', '{"a": {"0": "1"}}', '{"a": {"0": true}}']
)
def test_what_is_not_of_the_form_is_refused(text: str) -> None:
    with pytest.raises(BadOffsets, match="must be like"):
        parse_offsets(text)


def test_an_assignment_lists_partitions() -> None:
    assert parse_assignment('{"b": [0], "a": [1, 0, 1]}') == [A0, A1, B0]


@pytest.mark.parametrize("text", ['{"a": 0}', '{"a": ["0"]}', '{"a": [-1]}'])
def test_an_assignment_of_something_else_is_refused(text: str) -> None:
    with pytest.raises(BadOffsets, match="must be like"):
        parse_assignment(text)


def test_a_limit_is_shared_in_proportion() -> None:
    assert limited({A0: 0, A1: 0}, {A0: 300, A1: 100}, 40) == {A0: 30, A1: 10}


def test_a_small_partition_moves_on_beside_a_large_one() -> None:
    assert limited({A0: 0, A1: 7}, {A0: 1_000_000, A1: 8}, 10)[A1] == 8


def test_a_limit_that_is_not_reached_changes_nothing() -> None:
    assert limited({A0: 0}, {A0: 5, A1: 3}, 5) == {A0: 5, A1: 3}


@given(
    st.lists(st.tuples(st.integers(0, 1000), st.integers(0, 1000)), min_size=1, max_size=6),
    st.integers(1, 500),
)
def test_a_limit_never_passes_an_end_and_always_moves(waiting: list[tuple[int, int]], max_rows: int) -> None:
    start = {TopicPartition("t", number): first for number, (first, _) in enumerate(waiting)}
    end = {TopicPartition("t", number): first + size for number, (first, size) in enumerate(waiting)}
    stop = limited(start, end, max_rows)
    assert all(start[place] <= stop[place] <= end[place] for place in end)
    moved = sum(stop[place] - start[place] for place in end)
    assert moved <= max_rows + len(waiting)
    assert moved > 0 or all(size == 0 for _, size in waiting)


@given(
    st.lists(st.tuples(st.integers(0, 100), st.integers(1, 1000)), min_size=1, max_size=5),
    st.integers(0, 20),
    st.integers(0, 300),
)
def test_parts_cover_their_ranges_without_gaps(sizes: list[tuple[int, int]], least: int, most: int) -> None:
    ranges = [OffsetRange("t", number, first, first + size) for number, (first, size) in enumerate(sizes)]
    parts = split(ranges, min_partitions=least, max_records=most)
    assert parts == split(ranges, min_partitions=least, max_records=most)
    for whole in ranges:
        own = [part for part in parts if part.partition == whole.partition]
        assert own[0].start_offset == whole.start_offset
        assert own[-1].end_offset == whole.end_offset
        assert all(part.end_offset == following.start_offset for part, following in itertools.pairwise(own))
        assert all(part.size > 0 for part in own)
        assert not most or all(part.size <= most for part in own)


def test_a_large_range_is_split_into_as_many_parts_as_asked_for() -> None:
    parts = split([OffsetRange("t", 0, 10, 110)], min_partitions=4)
    assert [part.size for part in parts] == [25, 25, 25, 25]


def test_a_range_whose_records_are_gone_stays_a_range() -> None:
    assert cut(OffsetRange("a", 0, 10, 20), {A0: 15}) == OffsetRange("a", 0, 10, 15)
    assert cut(OffsetRange("a", 0, 10, 20), {A0: 5}) == OffsetRange("a", 0, 5, 5)
