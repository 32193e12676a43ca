"""Sliding windows are those of Kafka Streams: by their definition, over all rows that have come so far."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.streams.plan.nodes import STREAM
from penstock.streams.plan.types import BIGINT
from tests.unit.streams.kernel.plans import Run, aggregate, listed, read, schema, sliding, write

COLUMNS = schema(("V", BIGINT))


def run(size: int, times: list[int], grace_ms: int | None = None) -> tuple[dict[int, list[int]], Run]:
    """By start of the window: the times of its rows, in the order in which they came."""
    plan = aggregate(read("in", STREAM, COLUMNS), listed("V"), window=sliding(size, grace_ms))
    made = Run(write(plan))
    for time in times:
        made.pipe("in", "a", {"V": time}, time)
    return {key[1]: value["LISTED"] for key, value, _ in made.new()}, made


def windows(size: int, times: list[int]) -> dict[int, list[int]]:
    """The definition. Who comes before `size` shares the window from 0."""
    starts = {max(time - size, 0) for time in times} | {time + 1 for time in times}
    held = {start: sorted(time for time in times if start <= time <= start + size) for start in starts}
    return {start: rows for start, rows in held.items() if rows}


def test_the_windows_of_the_description() -> None:
    found, _ = run(10, [5, 12, 14])
    assert found == {0: [5], 2: [5, 12], 4: [5, 12, 14], 6: [12, 14], 13: [14]}


@settings(max_examples=400, deadline=None)
@given(st.integers(1, 12), st.lists(st.integers(0, 60), max_size=14))
def test_every_window_holds_its_rows_whatever_their_order(size: int, times: list[int]) -> None:
    found, _ = run(size, times)
    assert {start: sorted(rows) for start, rows in found.items()} == windows(size, times)


def test_a_window_takes_rows_until_its_grace_is_over() -> None:
    found, _ = run(10, [100, 117, 104], grace_ms=15)  # what ends at 102 or later is open
    assert (found[90], found[94], found[101]) == ([100], [100, 104], [104])
    found, made = run(10, [100, 126, 104, 99], grace_ms=15)  # 111 or later
    assert (94 in found, found[101]) == (False, [104])
    assert [trouble.kind for trouble in made.driver.troubles] == ["late", "late"]


def test_its_key_in_a_topic_is_that_of_a_window_by_time() -> None:
    _, made = run(10, [50])
    (record,) = made.driver.outputs("out")
    assert record.key == b'"a"' + (40).to_bytes(8, "big")
