"""Logs drawn in the terminal: a bar in which each segment is as long as it is large, and a table of them."""

from typing import Any

from penstock.cli.verbs.output import console
from penstock.inspection.layout import ACTIVE, CLEAN, CLOSED, DIRTY, LogLayout
from penstock.inspection.pictures import DELETED, GAP, first_and_last, runs, sizes_by_state
from penstock.model.units import count_text, size_text, time_text

STYLES = {
    CLEAN: ("█", "green"),
    DIRTY: ("▓", "yellow"),
    CLOSED: ("█", "blue"),
    ACTIVE: ("▒", "cyan"),
    DELETED: ("░", "dim"),
    GAP: ("│", "dim"),
}
MAX_ROWS = 40
"""Segments shown of one log; of more the first and the last of them."""
WIDE = 110
OVERVIEW_BAR = 16


def show_overview(layouts: list[LogLayout]) -> None:
    from rich.text import Text

    out = console()
    is_wide = out.width >= WIDE
    is_cleaned = any(layout.dirty_ratio is not None for layout in layouts)
    table = _table()
    table.add_column("log", style="green", overflow="fold")
    for name in ("segments", "size", "start", "end"):
        table.add_column(name, justify="right")
    if is_cleaned:
        table.add_column("dirty", justify="right")
    if is_wide:
        table.add_column("latest record")
    table.add_column("segments by size", no_wrap=True)
    for layout in layouts:
        cells = [
            str(layout.topic_partition),
            str(len(layout.segments)),
            size_text(layout.size_bytes),
            str(layout.start_offset),
            str(layout.end_offset),
        ]
        if is_cleaned:
            cells.append("–" if layout.dirty_ratio is None else f"{layout.dirty_ratio:.0%}")
        if is_wide:
            cells.append(time_text(layout.largest_timestamp))
        table.add_row(*(Text(cell) for cell in cells), bar(layout, OVERVIEW_BAR))
    out.print(table)
    out.print(_legend(layouts))


def show_details(layouts: list[LogLayout]) -> None:
    out = console()
    width = min(out.width, 120)
    for number, layout in enumerate(layouts):
        if number:
            out.print()
        out.print(_title(layout))
        if layout.segments:
            out.print(bar(layout, width))
            out.print(_segment_table(layout, is_wide=width >= WIDE))
    out.print(_legend(layouts))


def bar(layout: LogLayout, width: int) -> Any:
    from rich.text import Text

    text = Text(no_wrap=True)
    for run in runs(layout, width):
        shade, style = STYLES[run.state]
        text.append(shade * run.cells, style)
    return text


def _title(layout: LogLayout) -> Any:
    from rich.text import Text

    text = Text()
    text.append(str(layout.topic_partition), "bold green")
    text.append(
        f"  {count_text(len(layout.segments), 'segment')}, {size_text(layout.size_bytes)}, "
        f"offsets {layout.start_offset}–{layout.end_offset}"
    )
    for name, offset in (
        ("high watermark", layout.high_watermark),
        ("on the device up to", layout.recovery_point),
        ("cleaned up to", layout.cleaner_offset),
    ):
        if offset is not None:
            text.append(f", {name} {offset}")
    if layout.leader_epoch >= 0:
        text.append(f", leader epoch {layout.leader_epoch}")
    return text


def _segment_table(layout: LogLayout, *, is_wide: bool) -> Any:
    from rich.text import Text

    table = _table()
    for name in ("base", "size", "index", "times", "first record", "latest record", ""):
        is_number = name in ("base", "size", "index", "times")
        table.add_column(name, justify="right" if is_number else "left", no_wrap=True)
    shown, left_out = first_and_last(layout.segments, MAX_ROWS)
    for number, segment in enumerate(shown):
        if left_out and number == MAX_ROWS // 2:
            table.add_row(Text(f"… {left_out} more", "dim"))
        first, latest = time_text(segment.first_timestamp), time_text(segment.largest_timestamp)
        if not is_wide:
            first, latest = first[:16], latest[:16]  # to the minute
        table.add_row(
            Text(str(segment.base_offset)),
            Text(size_text(segment.size_bytes)),
            Text(str(segment.offset_index_entries)),
            Text(str(segment.time_index_entries)),
            Text(first),
            Text(latest),
            Text(segment.state, STYLES[segment.state][1]),
        )
    return table


def _legend(layouts: list[LogLayout]) -> Any:
    from rich.text import Text

    text = Text()
    for state, size in sizes_by_state(layouts).items():
        shade, style = STYLES[state]
        text.append(f"{shade}{shade}", style)
        text.append(f" {state} {size_text(size)}   ")
    if any(layout.has_deleted for layout in layouts):
        shade, style = STYLES[DELETED]
        text.append(f"{shade}{shade}", style)
        text.append(" deleted, still on disk")
    return text


def _table() -> Any:
    from rich import box
    from rich.table import Table

    return Table(
        box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, 1, 0, 0), header_style="bold cyan"
    )
