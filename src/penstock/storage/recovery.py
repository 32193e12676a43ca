"""Opening a log: what is there, what can be believed, and what has to be rebuilt.

After a clean close the file sizes, the indexes and the newest producer snapshot are believed; only the
headers behind the last index entry of the active segment are read. After anything else every batch from the
recovery point's segment on is checked (header, CRC, order of offsets). The first bad byte ends the log: the
rest of its segment is cut, later segments are deleted.
"""

from penstock.model.errors import ApiError
from penstock.records.batch import (
    ATTRIBUTES_AT,
    CONTROL_BIT,
    HEADER_SIZE,
    MAGIC,
    BatchHeader,
    read_header,
)
from penstock.records.crc import crc32c
from penstock.runtime.files import Disk, DiskFile
from penstock.storage import names
from penstock.storage.compaction.swap import recover_swaps
from penstock.storage.index import OFFSET_ENTRY_SIZE, TIME_ENTRY_SIZE
from penstock.storage.leader_epochs import LeaderEpochs
from penstock.storage.options import LogOptions
from penstock.storage.producer_state import ProducerState
from penstock.storage.replay import rebuild_producers, rebuild_transaction_indexes
from penstock.storage.segment import MAX_RELATIVE_OFFSET, MIN_BATCH_LENGTH, Segment
from penstock.storage.transaction_index import TransactionIndex, find_problem

_WINDOW_BYTES = 1024 * 1024


class OpenReport:
    """What opening a log had to repair; `lines` are for the operator."""

    __slots__ = (
        "created",
        "has_gaps",
        "lines",
        "rebuilt",
        "recovered_segments",
        "removed_segments",
        "truncated_bytes",
        "with_markers",
    )

    def __init__(self) -> None:
        self.created = False  # there was no log; its directory is not known to last until the first flush
        self.has_gaps = False  # offsets are missing between the batches that were read: it was compacted
        self.rebuilt: list[int] = []  # base offsets of the segments that were read and indexed again
        self.with_markers: set[int] = set()  # those of them in which transactions end
        self.recovered_segments = 0
        self.truncated_bytes = 0
        self.removed_segments = 0
        self.lines: list[str] = []


class Loaded:
    __slots__ = ("end_offset", "report", "segments", "start_offset", "unsynced_from")

    def __init__(
        self, segments: list[Segment], *, start_offset: int, end_offset: int, report: OpenReport
    ) -> None:
        self.segments = segments
        # Indexes that were just rebuilt are not on the device.
        self.unsynced_from = min(report.rebuilt, default=end_offset)
        self.start_offset = start_offset
        self.end_offset = end_offset
        self.report = report


def load(
    disk: Disk,
    directory: str,
    options: LogOptions,
    leader_epochs: LeaderEpochs,
    producers: ProducerState,
    *,
    now_ms: int,
    clean: bool,
    recovery_point: int,
    start_offset: int,
) -> Loaded:
    """The segments of a directory, repaired; leader epochs and producers are brought to the same point."""
    report = OpenReport()
    segments, damaged, snapshots = _list_segments(disk, directory, now_ms, report)
    if not segments:
        segments = [Segment.create(disk, directory, start_offset, now_ms=now_ms)]
        clean = True  # there is nothing to recover in what was just made
        report.created = True
    epochs_known = leader_epochs.load()
    first_to_recover = len(segments)
    if not clean:
        first_to_recover = max(sum(segment.base_offset <= recovery_point for segment in segments) - 1, 0)
    if not epochs_known:
        _assign_epochs(segments[:first_to_recover], leader_epochs)
    for segment in segments[:first_to_recover]:
        if segment.base_offset in damaged or _contradicts(segment):
            recover_segment(segment, options, leader_epochs, report, reason="its index is missing or damaged")
    end_offset = segments[-1].base_offset
    if first_to_recover == len(segments):
        try:
            end_offset = segments[-1].reload_tail()
        except ApiError:  # closed cleanly, and yet not whole: somebody else has been here
            end_offset = recover_segment(
                segments[-1], options, leader_epochs, report, reason="its tail is damaged"
            )
    for number in range(first_to_recover, len(segments)):
        whole = segments[number].size_bytes
        end_offset = recover_segment(segments[number], options, leader_epochs, report)
        if number + 1 == len(segments):
            break
        lost = not (options.compacted or report.has_gaps) and segments[number + 1].base_offset > end_offset
        # A tail may be missing at the end of a batch, too: then only the next segment's name tells.
        if segments[number].size_bytes < whole or lost:
            _delete_segments(disk, segments[number + 1 :], report)
            del segments[number + 1 :]
            break
    if end_offset < start_offset:
        report.lines.append(
            f"all of {directory} is below its start offset {start_offset}: starting there, empty"
        )
        _delete_segments(disk, segments, report)
        segments = [Segment.create(disk, directory, start_offset, now_ms=now_ms)]
        end_offset = start_offset
    start_offset = max(start_offset, segments[0].base_offset)
    leader_epochs.truncate_from_end(end_offset)
    leader_epochs.truncate_from_start(start_offset)
    rebuild_transaction_indexes(disk, directory, segments, report.with_markers)
    rebuild_producers(
        disk, directory, segments, producers, end_offset=end_offset,
        snapshots=snapshots if report.removed_segments == 0 else None,
    )  # fmt: skip
    return Loaded(segments, start_offset=start_offset, end_offset=end_offset, report=report)


def recover_segment(
    segment: Segment,
    options: LogOptions,
    leader_epochs: LeaderEpochs,
    report: OpenReport,
    *,
    reason: str = "",
) -> int:
    """Checks every batch, cuts at the first bad byte, rebuilds both indexes; returns the end offset.

    The transaction index is emptied. Where `with_markers` of the report names the segment, `rebuild_transaction_indexes`
    fills it again, when all segments are what they should be.
    """
    segment.offset_index.reset()
    segment.time_index.reset()
    segment.drop_aborted()
    segment.restart_bookkeeping()
    file = segment.open_file()
    position = 0
    end_offset = segment.base_offset
    problem = ""
    reader = _Reader(file)
    while position < file.size:
        header, problem = _check_batch(reader, position, end_offset, segment.base_offset)
        if header is None:
            break
        if header.base_offset != end_offset or header.records_count != header.last_offset_delta + 1:
            report.has_gaps = True
        segment.note(position, header, options.index_interval_bytes)
        if header.attributes & CONTROL_BIT and header.producer_id >= 0:
            report.with_markers.add(segment.base_offset)
        if header.partition_leader_epoch > leader_epochs.latest:
            leader_epochs.assign(header.partition_leader_epoch, header.base_offset)
        end_offset = header.last_offset + 1
        position += header.size_bytes
    report.recovered_segments += 1
    report.rebuilt.append(segment.base_offset)
    if reason:
        report.lines.append(f"read all of {segment.path(names.LOG_SUFFIX)}: {reason}")
    if position < file.size:
        cut = file.size - position
        report.truncated_bytes += cut
        report.lines.append(
            f"cut {cut} bytes off {segment.path(names.LOG_SUFFIX)} at byte {position}: {problem}"
        )
        segment.cut(position)
    segment.finish()
    return end_offset


def _list_segments(
    disk: Disk, directory: str, now_ms: int, report: OpenReport
) -> tuple[list[Segment], set[int], list[int]]:
    """The segments in order, the base offsets of those whose indexes cannot be used, and where snapshots are.

    Leftovers are deleted.
    """
    try:
        sizes = dict(disk.list_files(directory))
    except FileNotFoundError:
        disk.make_directory(directory)
        sizes = {}
    leftovers = [name for name in sizes if name.endswith(_LEFTOVERS)]
    if leftovers:
        swaps = recover_swaps(disk, directory, sizes)
        if swaps is not None:
            report.lines += swaps
            sizes = dict(disk.list_files(directory))
        for name in sizes:
            if name.endswith(_LEFTOVERS):
                disk.delete(f"{directory}/{name}")
    found = _by_suffix(sizes)
    logs = found[names.LOG_SUFFIX]
    index_sizes = found[names.OFFSET_INDEX_SUFFIX]
    time_index_sizes = found[names.TIME_INDEX_SUFFIX]
    segments: list[Segment] = []
    damaged: set[int] = set()
    for base_offset in sorted(logs):
        size = logs[base_offset]
        index_size = index_sizes.get(base_offset, -1)
        time_index_size = time_index_sizes.get(base_offset, -1)
        if (
            index_size % OFFSET_ENTRY_SIZE
            or time_index_size % TIME_ENTRY_SIZE
            # A closed segment with records ends its time index with an entry.
            or (size and time_index_size == 0)
        ):
            damaged.add(base_offset)
            index_size = time_index_size = 0
        segments.append(
            Segment(
                disk,
                directory,
                base_offset,
                created_ms=now_ms,
                size_bytes=size,
                index_size=index_size,
                time_index_size=time_index_size,
            )
        )
    damaged |= _attach_transaction_indexes(disk, segments, found[names.TRANSACTION_INDEX_SUFFIX])
    for suffix in (names.OFFSET_INDEX_SUFFIX, names.TIME_INDEX_SUFFIX, names.TRANSACTION_INDEX_SUFFIX):
        for offset in found[suffix]:
            if offset not in logs:
                disk.delete(names.segment_path(directory, offset, suffix))
    return segments, damaged, list(found[names.SNAPSHOT_SUFFIX])


def _attach_transaction_indexes(disk: Disk, segments: list[Segment], sizes: dict[int, int]) -> set[int]:
    """The base offsets of the segments whose index cannot be believed. That one is missing cannot be seen."""
    damaged: set[int] = set()
    for segment in segments if sizes else ():
        size = sizes.get(segment.base_offset, 0)
        if size == 0:
            continue
        index = TransactionIndex(disk, segment.path(names.TRANSACTION_INDEX_SUFFIX), size)
        segment.transactions = index
        if find_problem(disk.read(index.path), base_offset=segment.base_offset):
            damaged.add(segment.base_offset)
    return damaged


_LEFTOVERS = (names.DELETED_SUFFIX, names.CLEANED_SUFFIX, names.SWAP_SUFFIX, ".tmp")


def _by_suffix(sizes: dict[str, int]) -> dict[str, dict[int, int]]:
    """The files that are named after an offset: suffix → offset → size. In one pass: a start lists every partition."""
    found: dict[str, dict[int, int]] = {
        suffix: {} for suffix in (*names.SEGMENT_SUFFIXES, names.SNAPSHOT_SUFFIX)
    }
    for name, size in sizes.items():
        of_suffix = found.get(name[_OFFSET_DIGITS:])
        if of_suffix is not None and name[:_OFFSET_DIGITS].isdecimal():
            of_suffix[int(name[:_OFFSET_DIGITS])] = size
    return found


_OFFSET_DIGITS = 20


def _contradicts(segment: Segment) -> bool:
    """An index whose last entry cannot be right. Entries before it are not looked at."""
    index, time_index = segment.offset_index, segment.time_index
    if segment.size_bytes == 0:
        return False
    if index.entries_count:
        relative_offset, position = index.entry(index.entries_count - 1)
        # The first batch of a segment never gets an entry.
        if not (0 < position < segment.size_bytes) or relative_offset <= 0:
            return True
    if time_index.entries_count:
        timestamp, relative_offset = time_index.entry(time_index.entries_count - 1)
        return timestamp < 0 or relative_offset < 0 or timestamp == relative_offset == 0
    return False


class _Reader:
    """A file read forward through a window, so that small batches cost no system call each."""

    __slots__ = ("_at", "_file", "_window", "size")

    def __init__(self, file: DiskFile) -> None:
        self._file = file
        self._window = memoryview(b"")
        self._at = 0
        self.size = file.size

    def view(self, position: int, size: int) -> memoryview:
        """`size` bytes (at most a window's) at a position; fewer at the end of the file."""
        start = position - self._at
        if start + size > len(self._window):
            self._window = memoryview(self._file.read_at(position, max(size, _WINDOW_BYTES)))
            self._at = position
            start = 0
        return self._window[start : start + size]

    def crc(self, position: int, end: int) -> int:
        crc = 0
        while position < end:
            part = self.view(position, min(_WINDOW_BYTES, end - position))
            crc = crc32c(part, crc)
            position += len(part)
        return crc


def _check_batch(
    reader: _Reader, position: int, least_offset: int, segment_base_offset: int
) -> tuple[BatchHeader | None, str]:
    """The header of a batch that can be believed, or None and why not."""
    data = reader.view(position, HEADER_SIZE)
    if len(data) < HEADER_SIZE:
        return None, "a torn batch header"
    header = read_header(data)
    if header.magic != MAGIC or header.batch_length < MIN_BATCH_LENGTH or header.last_offset_delta < 0:
        return None, "not a batch header"
    end = position + header.size_bytes
    if end > reader.size:
        return None, "a torn batch"
    if header.base_offset < least_offset or header.last_offset - segment_base_offset > MAX_RELATIVE_OFFSET:
        return None, f"offset {header.base_offset} where {least_offset} was expected"
    if reader.crc(position + ATTRIBUTES_AT, end) != header.crc:
        return None, "a wrong CRC"
    return header, ""


def _assign_epochs(segments: list[Segment], leader_epochs: LeaderEpochs) -> None:
    for segment in segments:
        for _, header in segment.headers():
            if header.partition_leader_epoch > leader_epochs.latest:
                leader_epochs.assign(header.partition_leader_epoch, header.base_offset)


def _delete_segments(disk: Disk, segments: list[Segment], report: OpenReport) -> None:
    for segment in segments:
        report.removed_segments += 1
        report.lines.append(f"deleted {segment.path(names.LOG_SUFFIX)}: what came before it is damaged")
        for path in segment.rename_deleted():
            disk.delete(path)
