"""A log as a bar of cells in which each segment is as long as it is large. What a cell looks like is for who draws it to say."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final, NamedTuple, TypeVar

from penstock.inspection.layout import ACTIVE, CLEAN, CLOSED, DIRTY, LogLayout, SegmentLayout

T = TypeVar("T")
STATES: Final = (CLEAN, DIRTY, CLOSED, ACTIVE)
DELETED: Final = "deleted"
"""What lies before the log's start offset: there, but no longer served."""
GAP: Final = "gap"
"""Between segments, where there is room."""
_ROOM: Final = 4  # cells for each segment, from which on there are gaps


class Run(NamedTuple):
    """So many cells of one kind: a segment's state, DELETED or GAP."""

    state: str
    cells: int


def runs(layout: LogLayout, width: int) -> Iterator[Run]:
    """Each segment has at least one cell, as long as there are cells: `width` of them, gaps too."""
    segments = layout.segments
    gaps = len(segments) - 1 if len(segments) * _ROOM <= width else 0
    sizes = [segment.size_bytes for segment in segments]
    for number, (segment, cells) in enumerate(zip(segments, _shares(sizes, width - gaps), strict=True)):
        if gaps and number:
            yield Run(GAP, 1)
        deleted = _deleted_cells(segment, layout.start_offset, cells)
        yield Run(DELETED, deleted)
        yield Run(segment.state, cells - deleted)


def _shares(sizes: list[int], width: int) -> list[int]:
    """How many of `width` cells each gets; with more segments than cells, some get none."""
    total = sum(sizes)
    least = 1 if len(sizes) <= width else 0
    room = width - least * len(sizes)
    shares = []
    before = 0
    for size in sizes:
        behind = before + size
        shares.append(least + (behind * room // total - before * room // total if total else 0))
        before = behind
    return shares


def _deleted_cells(segment: SegmentLayout, start_offset: int, cells: int) -> int:
    offsets = segment.end_offset - segment.base_offset
    if start_offset <= segment.base_offset or offsets <= 0:
        return 0
    return min(cells, (min(start_offset, segment.end_offset) - segment.base_offset) * cells // offsets)


def sizes_by_state(layouts: Iterable[LogLayout]) -> dict[str, int]:
    """Bytes of the segments in each state that there is."""
    each = list(layouts)
    there = {segment.state for layout in each for segment in layout.segments}
    return {state: sum(layout.size_of(state) for layout in each) for state in STATES if state in there}


def first_and_last(rows: Sequence[T], most: int) -> tuple[list[T], int]:
    """Of many rows the first and the last half, and how many are left out between them."""
    left_out = len(rows) - most
    if left_out <= 0:
        return list(rows), 0
    return [*rows[: most // 2], *rows[-most // 2 :]], left_out
