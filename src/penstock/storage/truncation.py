"""Truncates a log: a follower removes what its leader does not have.

Example: segments 0, 1000, 2000 with end offset 2500. Truncating to 1700 removes segment 2000, cuts 1000 behind the last
batch below 1700 and lets the log end there. When the offset is inside a batch all of that batch goes, so the log may end
below the offset.

A power failure in the middle must not leave a hole, nor bring back what was cut off once something else was appended: the
order of the steps and of the syncs between them is what this file is about. What waits for the device is handed out as
chores, which the log's owner runs in threads, one after the other. Between them the log is a log: it can be read, and it
ends where it says. But until the last chore is done nothing may be appended, and the log's end may not be told to the
leader; `Log.is_being_cut` says so to whoever would flush, compact, move or shorten it.
"""

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from penstock.storage.chores import Chores, Removal
from penstock.storage.producer_state import ProducerState
from penstock.storage.replay import rebuild_producers
from penstock.storage.segment import Segment

if TYPE_CHECKING:
    from penstock.storage.log import Log


def truncate_to(log: "Log", offset: int) -> Chores:
    """Drops every batch with an offset at or above the given one."""
    if offset >= log.end_offset:
        return
    if offset < log.segments[0].base_offset:
        yield from truncate_fully_and_start_at(log, offset)
    else:
        yield from _alone(log, partial(_cut, log, offset))


def truncate_fully_and_start_at(log: "Log", offset: int) -> Chores:
    """Drops every batch; the next one gets the offset."""
    yield from _alone(log, partial(_start_anew, log, offset))


def _alone(log: "Log", steps: Callable[[], Chores]) -> Chores:
    log.is_being_cut = True
    log.cuts += 1  # a flush that is under way says nothing about what comes in the place of the cut
    try:
        for chore in steps():
            yield chore
            if log.is_deleted:
                return
    finally:
        log.is_being_cut = False


def _cut(log: "Log", offset: int) -> Chores:
    row = list(log.segments)
    kept = [segment for segment in row if segment.base_offset <= offset]
    last = kept[-1]
    ends: list[int] = []
    yield lambda: ends.append(_end_before(last, offset))
    # Before anything that a power failure may leave half done: everything from there on is then checked.
    yield log.lower_recovery_point(*ends)
    if len(kept) < len(row):
        # The newest first, and all of them before the cut: a crash in between leaves no hole.
        removal = log.removal_of(row[: len(kept) - 1 : -1])
        log.segments.replace(kept)
        log.end_offset = row[len(kept)].base_offset
        yield partial(_remove, log, removal)
    log.end_offset = last.truncate_to(offset)
    log.segments.replace(kept)
    # On the device before anything is appended: else a power failure brings back what was cut off.
    yield last.open_file().sync
    yield from _settle(log)


def _end_before(segment: Segment, offset: int) -> int:
    """Where a segment ends when it is cut at an offset. Reads all that the cut will read then."""
    for index in (segment.offset_index, segment.time_index, segment.transactions):
        if index is not None:
            index.load()
    segment.find(offset - 1)
    found = segment.find(offset)
    if found is not None:
        return found.base_offset
    end_offset = segment.base_offset
    for _, header in segment.headers(segment.offset_index.last_position()):
        end_offset = header.last_offset + 1
    return end_offset


def _start_anew(log: "Log", offset: int) -> Chores:
    yield log.lower_recovery_point(0)
    removal = log.removal_of(list(log.segments)[::-1])
    log.segments.replace([Segment.create(log.disk, log.directory, offset, now_ms=log.clock.now_ms())])
    log.start_offset = offset
    log.end_offset = offset
    yield partial(_remove, log, removal)
    yield from _settle(log)


def _remove(log: "Log", removal: Removal) -> None:
    removal.run()
    log.disk.sync_directory(log.directory)


def _settle(log: "Log") -> Chores:
    """All that the log knows beside its records is cut as well."""
    log.start_offset = min(log.start_offset, log.end_offset)
    log.leader_epochs.truncate_from_end(log.end_offset)
    producers = ProducerState()
    yield partial(_read_producers, log, producers)
    log.producers = producers


def _read_producers(log: "Log", producers: ProducerState) -> None:
    rebuild_producers(log.disk, log.directory, list(log.segments), producers, end_offset=log.end_offset)
    log.disk.sync_directory(log.directory)  # old snapshots of the producers must not come back either
    if log.on_truncated is not None:
        log.on_truncated(log)
