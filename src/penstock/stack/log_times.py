"""Logs by time: where a log reaches back to a moment, and lines of several in the order of their times.

Times are at the beginning of lines: `[2026-01-31 12:00:00,123]` as brokers and services write them, `2026-01-31T12:00:00.1Z` as
ZooKeeper and Spark do, or `"time": "…"` in JSON. A line without one belongs to the line before it.
"""

from __future__ import annotations

import datetime
import heapq
import re
import time
from collections.abc import Iterable, Iterator
from typing import Final

from penstock.client.errors import UserError
from penstock.stack.logs import LogLine, LogReader, followed
from penstock.stack.stack import Member, Stack

MAX_LINES: Final = 200_000
"""Of one log that are looked at."""
_TIME: Final = re.compile(
    r'^(?:\[|\{"time": ?"|)(\d{2,4}[-/]\d\d[-/]\d\d)[ T](\d\d:\d\d:\d\d)(?:[.,](\d{1,9}))?(Z|[+-]\d\d:?\d\d)?'
)
_AGO: Final = re.compile(r"(\d{1,9}(?:\.\d+)?)\s*(s|m|h|d)")
_UNITS_S: Final = {"s": 1, "m": 60, "h": 3600, "d": 86_400}


def parse_since(text: str, *, now_s: float | None = None) -> float:
    """Seconds since 1970. UserError."""
    now_s = time.time() if now_s is None else now_s
    if ago := _AGO.fullmatch(text.strip()):
        return now_s - float(ago[1]) * _UNITS_S[ago[2]]
    try:
        if re.fullmatch(r"\d\d?:\d\d(:\d\d)?", text):
            clock = datetime.time.fromisoformat(text.zfill(5))
            today = datetime.datetime.fromtimestamp(now_s).date()
            return datetime.datetime.combine(today, clock).timestamp()
        return datetime.datetime.fromisoformat(text).timestamp()
    except (ValueError, OverflowError):
        raise UserError(f"--since {text}: that is no time; say 10m, 2h, 14:30 or 2026-01-31T14:30") from None


def time_of(line: str) -> float | None:
    """Seconds since 1970; None where the line does not begin with a time. Without a zone it is this machine's."""
    match = _TIME.match(line)
    if match is None:
        return None
    date, clock, fraction, zone = match.groups()
    if len(date) == 8:  # Spark's years have two digits
        date = f"20{date}"
    text = f"{date.replace('/', '-')}T{clock}.{(fraction or '0')[:6].ljust(6, '0')}{zone or ''}"
    try:
        return datetime.datetime.fromisoformat(text).timestamp()
    except ValueError:
        return None


def read_since(
    stack: Stack, members: Iterable[Member], *, since_s: float, last: int | None, follow: bool
) -> Iterator[LogLine]:
    """The lines of all since then, in the order of their times; of each the `last`, if so many are said. Then what comes."""
    readers = [(member, LogReader(stack.log_of(member), last=MAX_LINES)) for member in members]
    begun = [_since(member, reader.lines(at_end=not follow), since_s, last) for member, reader in readers]
    for _, _, _, line in heapq.merge(*begun):
        yield line
    if follow:
        yield from followed(readers)


def _since(
    member: Member, lines: list[str], since_s: float, last: int | None
) -> list[tuple[float, str, int, LogLine]]:
    """With what sorts them: a line without a time keeps its place behind the one before."""
    found: list[tuple[float, str, int, LogLine]] = []
    at_s: float | None = None
    for place, text in enumerate(lines):
        told_s = time_of(text)
        at_s = at_s if told_s is None else told_s if at_s is None else max(at_s, told_s)
        if at_s is not None and at_s >= since_s:
            found.append((at_s, member.name, place, LogLine(member, text)))
    return found if last is None else found[len(found) - min(last, len(found)) :]
