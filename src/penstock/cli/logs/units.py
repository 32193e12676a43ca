"""Sizes and times as people read them."""

import time


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
        return time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(timestamp_ms / 1000))
    except (OverflowError, ValueError, OSError):
        return f"{timestamp_ms} ms"
