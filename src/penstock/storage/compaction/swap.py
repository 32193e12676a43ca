"""How a cleaned segment takes the place of the ones it was made from, so that a crash at any step loses nothing.

    begin       .cleaned → .swap, the .log last     before it: an open deletes what is there of the new segment
    take_over   the old files → .deleted            from here on the log reads the new segment, under its .swap names
    finish      .swap → the final names, the .log last

Each step is on the device (`sync`, in a thread) before the next one. An open that finds a `.log.swap` completes the
swap: all files that make up the new segment were there before the old ones were touched. Whatever is found of an
index without its `.log.swap` is deleted; a missing index is rebuilt.
"""

from typing import TYPE_CHECKING

from penstock.model.errors import ApiError
from penstock.runtime.files import Disk
from penstock.storage import names
from penstock.storage.chores import Removal
from penstock.storage.segment import Segment

if TYPE_CHECKING:
    from penstock.storage.compaction.task import CleanedSegment
    from penstock.storage.log import Log

# The .log comes last: it is the one that says that the others are complete.
_ORDER = (
    names.OFFSET_INDEX_SUFFIX,
    names.TIME_INDEX_SUFFIX,
    names.TRANSACTION_INDEX_SUFFIX,
    names.LOG_SUFFIX,
)


class Swap:
    """One cleaned segment on its way into a log. All but `sync` belong to the log's owner."""

    __slots__ = ("_cleaned", "_disk", "_log", "_new", "_old", "_path")

    def __init__(self, disk: Disk, log: "Log", cleaned: "CleanedSegment") -> None:
        self._disk = disk
        self._log = log
        self._cleaned = cleaned
        self._path = names.segment_path(log.directory, cleaned.base_offset, "")
        self._old: list[Segment] = []
        self._new: Segment | None = None

    def begin(self) -> bool:
        """False, and nothing is left of the cleaned segment, when the log is not what it was made from any more."""
        log = self._log
        wanted = set(self._cleaned.replaced)
        row = list(log.segments)
        self._old = [segment for segment in row[:-1] if segment.base_offset in wanted]
        if (
            log.is_deleted
            or log.is_being_cut
            or [segment.base_offset for segment in self._old] != self._cleaned.replaced
        ):
            self._discard(names.CLEANED_SUFFIX)
            return False
        log.swap = self
        for suffix in _ORDER:
            source = self._path + suffix + names.CLEANED_SUFFIX
            if self._disk.exists(source):
                self._disk.replace(source, self._path + suffix + names.SWAP_SUFFIX)
        return True

    def abandon(self) -> None:
        """The log is about to lose segments: an open after a crash must not bring them back."""
        if self._new is None:
            self._log.swap = None
            self._discard(names.SWAP_SUFFIX)

    def take_over(self) -> Removal | None:
        """The old segments' files, for removal; None when the swap was abandoned meanwhile."""
        log = self._log
        if log.swap is not self or log.is_deleted:
            return None
        cleaned = self._cleaned
        new = Segment(
            self._disk,
            log.directory,
            cleaned.base_offset,
            created_ms=self._old[-1].created_ms,
            size_bytes=cleaned.size_bytes,
            index_size=cleaned.index_bytes,
            time_index_size=cleaned.time_index_bytes,
            file_suffix=names.SWAP_SUFFIX,
        )
        new.open_file()
        new.attach_aborted()
        row = list(log.segments)
        first = row.index(self._old[0])
        row[first : first + len(self._old)] = [new]
        log.segments.replace(row)
        self._new = new
        paths: list[str] = []
        for segment in self._old:
            paths += segment.rename_deleted(keep_snapshot=segment.base_offset == cleaned.base_offset)
        return Removal(self._disk, paths, delay_ms=log.options.file_delete_delay_ms)

    def finish(self) -> None:
        log = self._log
        new = self._new
        if new is None or log.swap is not self:
            return
        log.swap = None
        if log.is_deleted or new not in list(log.segments):
            return
        for suffix in _ORDER:
            source = self._path + suffix + names.SWAP_SUFFIX
            if self._disk.exists(source):
                self._disk.replace(source, self._path + suffix)
        new.file_suffix = ""
        new.offset_index.follow(new.path(names.OFFSET_INDEX_SUFFIX))
        new.time_index.follow(new.path(names.TIME_INDEX_SUFFIX))
        if new.transactions is not None:
            new.transactions.path = new.path(names.TRANSACTION_INDEX_SUFFIX)

    def sync(self) -> None:
        try:
            self._disk.sync_directory(self._log.directory)
        except FileNotFoundError:
            pass  # the log was deleted meanwhile

    def _discard(self, suffix: str) -> None:
        for kind in reversed(_ORDER):
            self._disk.delete(self._path + kind + suffix)


def recover_swaps(disk: Disk, directory: str, files: dict[str, int]) -> list[str] | None:
    """At an open, before anything else is read: undoes or completes what a crash interrupted.

    `files`: the directory's, with their sizes. Lines for the operator; None when there was nothing to do.
    """
    cleaned = {base for name in files if (base := _base_of(name, names.CLEANED_SUFFIX)) is not None}
    swapped = {base for name in files if (base := _base_of(name, names.SWAP_SUFFIX)) is not None}
    if not cleaned and not swapped:
        return None
    lines = []
    for base_offset in sorted(swapped):
        path = names.segment_path(directory, base_offset, "")
        is_whole = f"{base_offset:020d}{names.LOG_SUFFIX}{names.SWAP_SUFFIX}" in files
        if is_whole and base_offset not in cleaned:
            _complete(disk, directory, base_offset, files)
            lines.append(f"completed the swap of the compacted segment {path}{names.LOG_SUFFIX}")
            continue
        for suffix in reversed(_ORDER):
            disk.delete(path + suffix + names.SWAP_SUFFIX)
    if swapped:
        disk.sync_directory(directory)
    for base_offset in cleaned:
        for suffix in _ORDER:
            disk.delete(names.segment_path(directory, base_offset, suffix + names.CLEANED_SUFFIX))
    return lines


def _complete(disk: Disk, directory: str, base_offset: int, files: dict[str, int]) -> None:
    end_offset = _end_offset(disk, directory, base_offset, files)
    for name in files:
        for suffix in (*names.SEGMENT_SUFFIXES, names.SNAPSHOT_SUFFIX):
            offset = names.offset_of(name, suffix)
            if offset is not None and base_offset < offset < end_offset:
                disk.delete(f"{directory}/{name}")
    path = names.segment_path(directory, base_offset, "")
    for suffix in _ORDER:
        if f"{base_offset:020d}{suffix}{names.SWAP_SUFFIX}" in files:
            disk.replace(path + suffix + names.SWAP_SUFFIX, path + suffix)
        else:
            disk.delete(path + suffix)  # of the old segment


def _end_offset(disk: Disk, directory: str, base_offset: int, files: dict[str, int]) -> int:
    """Where the new segment's batches end. Old segments behind that had nothing left in it; they may stay."""

    def size(suffix: str) -> int:
        return files.get(f"{base_offset:020d}{suffix}{names.SWAP_SUFFIX}", 0)

    segment = Segment(
        disk,
        directory,
        base_offset,
        created_ms=0,
        size_bytes=size(names.LOG_SUFFIX),
        index_size=size(names.OFFSET_INDEX_SUFFIX),
        file_suffix=names.SWAP_SUFFIX,
    )
    try:
        return segment.reload_tail()
    except ApiError:  # damaged on the device: the segment is checked, and cut, like any other
        return base_offset + 1


def _base_of(name: str, state: str) -> int | None:
    if not name.endswith(state):
        return None
    stem = name[: -len(state)]
    for suffix in names.SEGMENT_SUFFIXES:
        offset = names.offset_of(stem, suffix)
        if offset is not None:
            return offset
    return None
