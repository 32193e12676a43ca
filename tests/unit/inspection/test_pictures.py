"""A log as a bar: each segment as long as it is large, and no longer than the bar."""

from __future__ import annotations

from penstock.inspection.layout import ACTIVE, CLOSED, LogLayout, SegmentLayout
from penstock.inspection.pictures import DELETED, GAP, Run, first_and_last, runs, sizes_by_state
from penstock.model.ids import TopicPartition


def layout(*sizes: int, start_offset: int = 0) -> LogLayout:
    """Each segment has ten offsets; the last one is active."""
    segments = [
        SegmentLayout(
            base_offset=10 * number,
            end_offset=10 * number + 10,
            size_bytes=size,
            first_timestamp=-1,
            largest_timestamp=number,
            offset_index_entries=0,
            time_index_entries=0,
            state=ACTIVE if number == len(sizes) - 1 else CLOSED,
        )
        for number, size in enumerate(sizes)
    ]
    return LogLayout(
        TopicPartition("orders", 0), "/logs/orders-0", segments, start_offset, None, None, None, -1
    )


def drawn(*sizes: int, width: int, start_offset: int = 0) -> list[Run]:
    return [run for run in runs(layout(*sizes, start_offset=start_offset), width) if run.cells]


def test_segments_share_the_cells_by_their_sizes() -> None:
    assert drawn(300, 100, width=9) == [Run(CLOSED, 5), Run(GAP, 1), Run(ACTIVE, 3)]
    assert drawn(width=9) == []


def test_a_small_segment_has_a_cell_too_as_long_as_there_are_cells() -> None:
    assert drawn(10_000, 1, 1, width=6) == [Run(CLOSED, 3), Run(CLOSED, 1), Run(ACTIVE, 2)]
    many = drawn(*[1] * 100, width=10)
    assert sum(run.cells for run in many) == 10


def test_what_is_deleted_and_still_on_disk_is_told_apart() -> None:
    assert drawn(100, 100, width=9, start_offset=15) == [
        Run(DELETED, 4), Run(GAP, 1), Run(DELETED, 2), Run(ACTIVE, 2),
    ]  # fmt: skip
    assert layout(100, start_offset=5).has_deleted
    assert not layout(100).has_deleted


def test_states_that_there_are_have_their_bytes() -> None:
    assert sizes_by_state([layout(5, 7), layout(1, 2)]) == {CLOSED: 6, ACTIVE: 9}
    assert layout(5, 7).largest_timestamp == 1


def test_of_many_rows_the_first_and_the_last_are_left() -> None:
    assert first_and_last(range(5), 6) == ([0, 1, 2, 3, 4], 0)
    assert first_and_last(range(10), 4) == ([0, 1, 8, 9], 6)
