"""Figures as people read them, and names as a shell takes them."""

from __future__ import annotations

import shlex
from collections.abc import Iterable


def size(count: float) -> str:
    """`1.5 GB`: decimal units."""
    for unit in ("B", "kB", "MB", "GB", "TB"):
        if abs(count) < 1000:
            return f"{count:.0f} {unit}" if unit == "B" or count >= 100 else f"{count:.3g} {unit}"
        count /= 1000
    return f"{count:.3g} PB"


def duration(seconds: float) -> str:
    """`42 s`, `5 min`, `7 h`, `3 days`: one unit."""
    for limit, unit_s, name in ((90, 1, "s"), (5_400, 60, "min"), (172_800, 3_600, "h")):
        if seconds < limit:
            return f"{seconds / unit_s:.0f} {name}"
    return f"{seconds / 86_400:.0f} days"


def count(number: int, one: str, many: str | None = None) -> str:
    """`1 topic`, `2 topics`."""
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def word(name: str) -> str:
    """A name of the cluster as one word of a command."""
    return shlex.quote(name)


def commands(lines: Iterable[str], limit: int = 10) -> str | None:
    """Several commands, one on each line; None where there is none. The first few of many."""
    shown = list(lines)[:limit]
    return "\n".join(shown) or None


def ids(brokers: Iterable[int]) -> str:
    return ",".join(map(str, brokers)) or "none"
