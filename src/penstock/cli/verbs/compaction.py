"""How far the compaction of a topic is, shown."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from penstock.admin.compaction import Compaction

COLUMNS = ("partition", "dirty", "last run", "took", "removed", "kept", "now")


def as_json(compaction: Compaction) -> dict[str, Any]:
    return {**compaction._asdict(), "dirty_ratio": round(compaction.dirty_ratio, 4)}


def as_row(partition: int, compaction: Compaction) -> list[object]:
    if compaction.last_run_ms is None or compaction.last_duration_ms is None:
        run: tuple[object, ...] = ("none yet", "", "", "")
    else:
        run = (
            f"{ago(time.time() - compaction.last_run_ms / 1000)} ago",
            f"{compaction.last_duration_ms / 1000:.1f} s",
            compaction.records_removed,
            compaction.records_kept,
        )
    return [partition, f"{compaction.dirty_ratio:.0%}", *run, compaction.state]


def ago(seconds: float) -> str:
    """In one unit: 12 s, 3 min, 5 h, 2 d."""
    whole = max(int(seconds), 0)
    for unit, size in (("d", 86_400), ("h", 3_600), ("min", 60)):
        if whole >= size:
            return f"{whole // size} {unit}"
    return f"{whole} s"
