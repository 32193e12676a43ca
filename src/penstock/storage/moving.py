"""Copying a log that is in use into another log directory.

The way: `create`; then, as often as much is missing, `plan` by the owner of the log and `copy` by a thread; when little
is missing, `finish` by the owner, with no append in between. Then the copy holds what the log holds, and
`LogDirectory.adopt` opens it. Segments that were dropped or rewritten meanwhile are noticed by the next `plan`: a segment
is known by its object, which compaction replaces. When the log's tail is cut (its leader has other records) all is copied
again: the same bytes of a segment may be others by then. A crash leaves a `-future` directory, from which nothing is read.
"""

from typing import NamedTuple

from penstock.model.ids import TopicPartition
from penstock.runtime.files import Disk, DiskFile
from penstock.storage import names
from penstock.storage.log import Log
from penstock.storage.log_directory import MovedLog
from penstock.storage.segment import Segment

CHUNK_BYTES = 1024 * 1024
_BESIDE = (
    names.OFFSET_INDEX_SUFFIX,
    names.TIME_INDEX_SUFFIX,
    names.TRANSACTION_INDEX_SUFFIX,
    names.SNAPSHOT_SUFFIX,
)


class SourceFault(OSError):
    """The log that is copied cannot be read: the fault is its directory's, not the new one's."""


class Part(NamedTuple):
    """What `copy` has to add to one segment of the copy."""

    segment: Segment
    file: DiskFile
    position: int
    end: int
    is_closed: bool
    end_offset: int


class FutureLog:
    __slots__ = (
        "_copied",
        "_cuts",
        "_disk",
        "_fell_short",
        "_source",
        "_synced_offset",
        "end_offset",
        "path",
        "size_bytes",
    )

    def __init__(self, disk: Disk, source: Log, target_directory: str, unique: bytes) -> None:
        self._disk = disk
        self._source = source
        name = names.future_directory_name(f"{source.topic}-{source.partition}", unique)
        self.path = f"{target_directory}/{name}"
        # By base offset: of which segment, how many bytes, and whether it was closed then, with its indexes complete.
        self._copied: dict[int, tuple[Segment | None, int, bool]] = {}
        self._cuts = source.cuts
        self._fell_short = False
        self._synced_offset = 0
        self.end_offset = source.start_offset
        self.size_bytes = 0

    def create(self) -> None:
        self._disk.make_directory(self.path)

    def plan(self) -> list[Part]:
        """What is missing now, in order."""
        self._look_for_cuts()
        parts: list[Part] = []
        segments = list(self._source.segments)
        for number, segment in enumerate(segments):
            known, copied, was_closed = self._copied.get(segment.base_offset, (None, 0, False))
            is_closed = number + 1 < len(segments)
            if known is not segment:
                copied = 0
            elif copied >= segment.size_bytes and was_closed == is_closed:
                continue
            end_offset = segments[number + 1].base_offset if is_closed else self._source.end_offset
            parts.append(
                Part(segment, segment.open_file(), copied, segment.size_bytes, is_closed, end_offset)
            )
        return parts

    def _look_for_cuts(self) -> None:
        source = self._source
        fell_short, self._fell_short = self._fell_short, False
        if source.cuts != self._cuts:
            self._cuts = source.cuts
            self._copied = {base: (None, size, closed) for base, (_, size, closed) in self._copied.items()}
            self._synced_offset = 0
            self.end_offset = source.start_offset
        elif fell_short:
            raise SourceFault(None, "the log is shorter than it should be")

    def copy(self, parts: list[Part], *, sync: bool = True) -> None:
        """May be run in a thread. Afterwards everything up to the parts' ends is there, and on the device when `sync`; but not
        when the log was cut meanwhile, which the next `plan` sees.
        """
        for part in parts:
            base_offset = part.segment.base_offset
            if part.position == 0:
                self._drop(base_offset)
            file = self._disk.open(self._path(base_offset, names.LOG_SUFFIX), create=True)
            try:
                file.truncate(part.position)
                for position in range(part.position, part.end, CHUNK_BYTES):
                    size = min(CHUNK_BYTES, part.end - position)
                    chunk = self._read(part.file, position, size)
                    if len(chunk) < size:
                        self._fell_short = True
                        return
                    file.append(chunk)
                    self.size_bytes += len(chunk)
                if sync:
                    file.sync()
            finally:
                file.close()
            if part.is_closed:
                self._copy_beside(base_offset, _BESIDE, sync=sync)
            self._copied[base_offset] = (part.segment, part.end, part.is_closed)
            self.end_offset = max(self.end_offset, part.end_offset)
        if sync and parts:
            self._synced_offset = parts[-1].end_offset

    def finish(self) -> MovedLog:
        """The rest, the small files, and what the log knows only in memory; nothing may be appended until it is adopted."""
        source = self._source
        parts = self.plan()
        self.copy(parts, sync=source.recovery_point > self._synced_offset)
        if self._fell_short:
            raise SourceFault(None, "the log is shorter than it should be")
        bases = {segment.base_offset for segment in source.segments}
        for base_offset in set(self._copied) - bases:
            self._drop(base_offset)
        active = source.segments.active
        if active.size_bytes:
            active.finish()
        self._copy_beside(active.base_offset, _BESIDE, sync=False)
        for name in (names.LEADER_EPOCH_CHECKPOINT, names.PARTITION_METADATA):
            self._copy_file(f"{source.directory}/{name}", f"{self.path}/{name}", sync=False)
        self._disk.write(self._path(source.end_offset, names.SNAPSHOT_SUFFIX), source.producers.snapshot())
        return MovedLog(
            TopicPartition(source.topic, source.partition),
            self.path,
            source.start_offset,
            source.recovery_point,
        )

    def discard(self) -> None:
        self._disk.delete_tree(self.path)

    def _drop(self, base_offset: int) -> None:
        _, size, _ = self._copied.pop(base_offset, (None, 0, False))
        self.size_bytes -= size
        for suffix in (names.LOG_SUFFIX, *_BESIDE):
            self._disk.delete(self._path(base_offset, suffix))

    def _copy_beside(self, base_offset: int, suffixes: tuple[str, ...], *, sync: bool) -> None:
        for suffix in suffixes:
            source = names.segment_path(self._source.directory, base_offset, suffix)
            self._copy_file(source, self._path(base_offset, suffix), sync=sync)

    def _copy_file(self, source: str, target: str, *, sync: bool) -> None:
        try:
            data = self._disk.read(source)
        except FileNotFoundError:
            return  # it never was, or its segment has just been dropped
        except OSError as error:
            raise SourceFault(error.errno, error.strerror) from error
        self._disk.write(target, data, sync=sync)

    def _read(self, file: DiskFile, position: int, size: int) -> bytes:
        try:
            return file.read_at(position, size)
        except OSError as error:
            raise SourceFault(error.errno, error.strerror) from error

    def _path(self, base_offset: int, suffix: str) -> str:
        return names.segment_path(self.path, base_offset, suffix)
