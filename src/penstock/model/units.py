"""Sizes, times, counts and ranges as people read them."""

from collections.abc import Iterable
from datetime import datetime


def size_text(size_bytes: int) -> str:
    size = float(size_bytes)
    for unit in ("B", "KiB", "MiB", "GiB"):
        if size < 1024:
            return f"{size_bytes} B" if unit == "B" else f"{size:.1f} {unit}"
        size /= 1024
    return f"{size:.1f} TiB"


def count_text(count: int, noun: str, plural: str | None = None) -> str:
    """`1 log`, `2 logs`."""
    return f"{count} {noun if count == 1 else plural or noun + 's'}"


def time_text(timestamp_ms: int | None) -> str:
    """In the local zone, to the second; a dash where there is none."""
    if timestamp_ms is None or timestamp_ms < 0:
        return "–"
    try:
        return f"{datetime.fromtimestamp(timestamp_ms // 1000):%Y-%m-%d %H:%M:%S}"
    except (OverflowError, ValueError, OSError):
        return f"{timestamp_ms} ms"


def ranges_text(numbers: Iterable[int]) -> str:
    """`0-2, 5` for [0, 1, 2, 5]."""
    spans: list[list[int]] = []
    for number in numbers:
        if spans and spans[-1][-1] == number - 1:
            spans[-1][1:] = [number]
        else:
            spans.append([number])
    return ", ".join("-".join(map(str, span)) for span in spans)
