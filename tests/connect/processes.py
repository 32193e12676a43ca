"""What /proc says of the processes of a worker's tasks."""

from __future__ import annotations

import os
from pathlib import Path

KILOBYTE = 1024


def _status(process: int) -> tuple[str, int] | None:
    """Its state and its parent; None where it is gone."""
    try:
        words = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None
    return words[0], int(words[1])


def children_of(process: int) -> list[int]:
    found = [int(name) for name in os.listdir("/proc") if name.isdigit()]
    return sorted(each for each in found if (_status(each) or ("", 0))[1] == process)


def with_descendants(process: int) -> list[int]:
    found = [process]
    for each in found:
        found += children_of(each)
    return found


def is_alive(process: int) -> bool:
    status = _status(process)
    return status is not None and status[0] != "Z"


def kill(process: int, number: int) -> None:
    try:
        os.kill(process, number)
    except ProcessLookupError:
        pass


def shared_memory_bytes(process: int) -> int:
    """Its own pages, and its part of those that it shares."""
    try:
        lines = Path(f"/proc/{process}/smaps_rollup").read_text().splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) * KILOBYTE for line in lines if line.startswith("Pss:")), 0)
