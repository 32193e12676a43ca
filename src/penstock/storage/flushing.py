"""What must be synced so that a log is on the device: its segments from the recovery point on, and all that is beside them.

A `Flush` is made by the log's owner and run in a thread; `Log.flushed` afterwards moves the recovery point.
"""

import os
from typing import TYPE_CHECKING

from penstock.runtime.files import DiskFile
from penstock.storage import names
from penstock.storage.chores import Flush

if TYPE_CHECKING:
    from penstock.storage.log import Log


def prepare_flush(log: "Log", *, include_active: bool = True) -> Flush | None:
    """Up to the log's end, or to its active segment; None when that is on the device already."""
    end_offset = log.end_offset if include_active else log.segments.active.base_offset
    if end_offset <= log.recovery_point or log.is_being_cut:
        return None
    segments = log.segments.from_offset(log.recovery_point)
    if not include_active:
        segments.pop()
    files: list[DiskFile] = []
    paths: list[str] = []
    for segment in segments:
        segment.offset_index.write()
        segment.time_index.write()
        files.append(segment.open_file())
        paths += [segment.offset_index.path, segment.time_index.path]
        if segment.transactions is not None:
            segment.transactions.write()
            paths.append(segment.transactions.path)
        paths.append(segment.path(names.SNAPSHOT_SUFFIX))
    paths.append(names.segment_path(log.directory, end_offset, names.SNAPSHOT_SUFFIX))
    paths.append(log.leader_epochs.path)
    directories = [log.directory]
    if log.report.created:  # its own name must last as well
        paths.append(f"{log.directory}/{names.PARTITION_METADATA}")
        directories.append(os.path.dirname(log.directory) or ".")
    return Flush(log.disk, directories, files=files, paths=paths, end_offset=end_offset, cuts=log.cuts)


def prepare_close(log: "Log") -> Flush | None:
    """Completes indexes and snapshot. When this is flushed and the log closed, the next open may believe the files."""
    active = log.segments.active
    unsynced = active.finish()
    snapshot = names.segment_path(log.directory, log.end_offset, names.SNAPSHOT_SUFFIX)
    if not log.disk.exists(snapshot):
        unsynced = log.write_snapshot() or unsynced
    flush = prepare_flush(log)
    if flush is None and unsynced:
        paths = [active.offset_index.path, active.time_index.path, snapshot]
        flush = Flush(
            log.disk, [log.directory], files=[], paths=paths, end_offset=log.end_offset, cuts=log.cuts
        )
    return flush
