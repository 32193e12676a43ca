"""Which log is worth a cleaning. Pure: numbers in, a decision out.

A log, from its start: [ clean | dirty, may be cleaned | may not be cleaned yet ]
                        ^ start  ^ first_dirty_offset    ^ end_offset            ^ active segment or later
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple


class SegmentFacts(NamedTuple):
    base_offset: int
    size_bytes: int
    largest_timestamp: int
    first_timestamp: int  # of the first batch; -1 when it has none


class LogFacts(NamedTuple):
    segments: Sequence[SegmentFacts]  # the last one is active
    start_offset: int
    log_end_offset: int
    last_stable_offset: int
    checkpoint: int | None  # where the last cleaning ended
    min_cleanable_dirty_ratio: float
    min_compaction_lag_ms: int
    max_compaction_lag_ms: int


class Cleanable(NamedTuple):
    first_dirty_offset: int
    end_offset: int
    clean_bytes: int
    dirty_bytes: int
    overdue_ms: int  # how long max.compaction.lag.ms has been passed
    is_due: bool

    @property
    def dirty_ratio(self) -> float:
        total = self.clean_bytes + self.dirty_bytes
        return self.dirty_bytes / total if total else 0.0


def examine(log: LogFacts, *, now_ms: int) -> Cleanable:
    first_dirty = first_dirty_offset(log)
    bases = [segment.base_offset for segment in log.segments]
    # Also the one that an earlier cleaning, out of memory, has mapped only in part.
    dirty = [
        segment
        for segment, following in zip(log.segments, bases[1:], strict=False)
        if following > first_dirty
    ]
    limit = _uncleanable_offset(log, dirty, first_dirty, now_ms)
    # Only whole segments are cleaned, so none that reaches past the limit.
    end_offset = max((base for base in bases if base <= limit), default=bases[0])
    dirty_bytes = sum(segment.size_bytes for segment in dirty if segment.base_offset < end_offset)
    total = sum(segment.size_bytes for segment in log.segments if segment.base_offset < end_offset)
    overdue_ms = _overdue_ms(log, dirty, now_ms)
    is_due = dirty_bytes > 0 and (overdue_ms > 0 or dirty_bytes / total > log.min_cleanable_dirty_ratio)
    return Cleanable(first_dirty, end_offset, total - dirty_bytes, dirty_bytes, overdue_ms, is_due)


def dirtiest(found: Iterable[tuple[object, Cleanable]]) -> object | None:
    """The key of the due log with the largest dirty ratio."""
    due = [(cleanable.dirty_ratio, key) for key, cleanable in found if cleanable.is_due]
    return max(due, key=lambda pair: pair[0])[1] if due else None


def first_dirty_offset(log: LogFacts) -> int:
    """The checkpoint, where it can be believed: the log may have lost its head or its tail since."""
    checkpoint = log.checkpoint
    if checkpoint is None or not log.start_offset <= checkpoint <= log.log_end_offset:
        return log.start_offset
    return checkpoint


def _uncleanable_offset(log: LogFacts, dirty: list[SegmentFacts], first_dirty: int, now_ms: int) -> int:
    limit = min(log.last_stable_offset, log.segments[-1].base_offset)
    if log.min_compaction_lag_ms > 0:
        for segment in dirty:
            if segment.largest_timestamp > now_ms - log.min_compaction_lag_ms:
                limit = min(limit, segment.base_offset)
                break
    return max(limit, first_dirty)


def _overdue_ms(log: LogFacts, dirty: list[SegmentFacts], now_ms: int) -> int:
    earliest = min((s.first_timestamp for s in dirty if s.first_timestamp > 0), default=None)
    if earliest is None:
        return 0
    return max(now_ms - log.max_compaction_lag_ms - earliest, 0)
