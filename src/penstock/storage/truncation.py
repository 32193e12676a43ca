"""The tail of a log is cut: a follower drops what its leader does not have.

Example: segments 0, 1000, 2000 with end offset 2500. Truncating to 1700 removes segment 2000, cuts 1000 behind the last
batch below 1700 and lets the log end there. When the offset is inside a batch all of that batch goes, so the log may end
below the offset.

A power failure in the middle must not leave a hole, nor bring back what was cut off once something else was appended: the
order of the steps and of the syncs between them is what this file is about.
"""

from typing import TYPE_CHECKING

from penstock.storage.replay import rebuild_producers
from penstock.storage.segment import Segment

if TYPE_CHECKING:
    from penstock.storage.log import Log


def truncate_to(log: "Log", offset: int) -> None:
    """Drops every batch with an offset at or above the given one."""
    if offset >= log.end_offset:
        return
    if offset < log.segments[0].base_offset:
        truncate_fully_and_start_at(log, offset)
        return
    row = list(log.segments)
    kept = [segment for segment in row if segment.base_offset <= offset]
    if len(kept) < len(row):
        log.lower_recovery_point(offset)
        # The newest first, and all of them before the cut: a crash in between leaves no hole.
        log.removal_of(row[: len(kept) - 1 : -1]).run()
        log.disk.sync_directory(log.directory)
    log.end_offset = kept[-1].truncate_to(offset)
    log.segments.replace(kept)
    # On the device before anything is appended: else a power failure brings back what was cut off.
    kept[-1].open_file().sync()
    _settle(log)


def truncate_fully_and_start_at(log: "Log", offset: int) -> None:
    """Drops every batch; the next one gets the offset."""
    log.lower_recovery_point(0)
    log.removal_of(list(log.segments)[::-1]).run()
    log.segments.replace([Segment.create(log.disk, log.directory, offset, now_ms=log.clock.now_ms())])
    log.start_offset = offset
    log.end_offset = offset
    _settle(log)


def _settle(log: "Log") -> None:
    """All that the log knows beside its records is cut as well."""
    log.cuts += 1
    log.was_cut = True
    log.start_offset = min(log.start_offset, log.end_offset)
    log.recovery_point = min(log.recovery_point, log.end_offset)
    log.leader_epochs.truncate_from_end(log.end_offset)
    rebuild_producers(log.disk, log.directory, list(log.segments), log.producers, end_offset=log.end_offset)
    log.disk.sync_directory(log.directory)  # old snapshots of the producers must not come back either
    if log.on_truncated is not None:
        log.on_truncated(log)
