"""A partition's log: a row of segments, the last of which takes the appends.

start_offset ≤ … ≤ end_offset (exclusive). Example: segments 0, 1000, 2000; DeleteRecords moved start_offset
to 1500: segment 0 is gone, 1000 stays until all of it is below; the next append gets end_offset.
"""

import struct
from collections.abc import Callable, Iterator

from penstock.model.errors import ApiError, ErrorCode
from penstock.records.batch import (
    ATTRIBUTES_AT,
    CONTROL_BIT,
    LEADER_EPOCH_AT,
    BatchHeader,
    Buffer,
    iterate_headers,
)
from penstock.records.crc import crc32c
from penstock.records.walk import Steps
from penstock.runtime.clock import Clock
from penstock.runtime.files import Disk
from penstock.storage import flushing, names, retention, truncation
from penstock.storage.chores import Chores, Flush, Removal, run_here
from penstock.storage.compaction.swap import Swap
from penstock.storage.damage import Damage
from penstock.storage.leader_epochs import LeaderEpochs
from penstock.storage.options import LogOptions
from penstock.storage.producer_state import ProducerState
from penstock.storage.recovery import OpenReport, load
from penstock.storage.replay import replay_batch
from penstock.storage.segment import MAX_RELATIVE_OFFSET, Segment, TimestampOffset
from penstock.storage.segments import EMPTY_FILE, Segments, Slice

_pack_offset = struct.Struct(">q").pack_into
_pack_epoch = struct.Struct(">i").pack_into


class Log:
    __slots__ = (
        "clock",
        "closed_bytes",
        "cuts",
        "damage",
        "directory",
        "disk",
        "end_offset",
        "is_being_cut",
        "is_deleted",
        "leader_epochs",
        "on_damaged",
        "on_lowered",
        "on_truncated",
        "options",
        "partition",
        "producers",
        "recovery_point",
        "report",
        "segments",
        "start_offset",
        "swap",
        "topic",
    )

    def __init__(self, disk: Disk, directory: str, options: LogOptions, clock: Clock) -> None:
        self.disk = disk
        self.clock = clock
        self.directory = directory
        self.options = options
        name = names.partition_of(directory.rsplit("/", 1)[-1])
        if name is None:
            raise ValueError(f"not the directory of a partition: {directory}")
        self.topic, self.partition = name
        self.start_offset = 0
        self.end_offset = 0
        self.closed_bytes = 0  # of segments that were the active one since the log was opened
        self.is_deleted = False
        self.swap: Swap | None = None  # a compacted segment on its way in
        self.cuts = 0  # how often its tail was cut: what was read of it before may be another's now
        self.damage: Damage | None = None
        self.on_damaged: Callable[[Log, int, str], None] | None = None  # told at which offset, and why
        self.on_truncated: Callable[[Log], None] | None = None  # told before anything is appended again
        # The chore that brings a lower recovery point to the device.
        self.on_lowered: Callable[[Log], Callable[[], None]] | None = None
        self.is_being_cut = False  # see truncation.py
        self.recovery_point = 0  # everything below is on the device
        self.segments: Segments
        self.leader_epochs = LeaderEpochs(disk, f"{directory}/{names.LEADER_EPOCH_CHECKPOINT}")
        self.producers = ProducerState()
        self.report: OpenReport = OpenReport()

    @classmethod
    def open(
        cls,
        disk: Disk,
        directory: str,
        options: LogOptions,
        clock: Clock,
        *,
        clean: bool = False,
        recovery_point: int = 0,
        start_offset: int = 0,
    ) -> "Log":
        """Opens or creates. `clean` says that the last user closed it: then its bytes are believed, not read.

        Otherwise everything from the recovery point's segment on is checked and a damaged tail is cut: see
        `report`.
        """
        log = cls(disk, directory, options, clock)
        loaded = load(
            disk, directory, options, log.leader_epochs, log.producers, now_ms=clock.now_ms(),
            clean=clean, recovery_point=recovery_point, start_offset=start_offset,
        )  # fmt: skip
        log.report = loaded.report
        log.start_offset = loaded.start_offset
        log.end_offset = loaded.end_offset
        log.recovery_point = min(recovery_point, loaded.end_offset, loaded.unsynced_from)
        log.segments = Segments(loaded.segments)
        return log

    @property
    def size_bytes(self) -> int:
        return sum(segment.size_bytes for segment in self.segments)

    @property
    def written_bytes(self) -> int:
        """Rises with each append by its size, whatever is removed; what it begins with means nothing."""
        return self.closed_bytes + self.segments.active.size_bytes

    # --- appending

    def append(self, batch: memoryview, header: BatchHeader, leader_epoch: int) -> int:
        """Stores a validated batch and returns the base offset it was given, in place, at bytes 0-8 (and the epoch at 12-16).

        Idempotence is the caller's first question: `producers.check(header)`; this notes the batch there.
        """
        base_offset = self.end_offset
        last_offset = base_offset + header.last_offset_delta
        max_timestamp = header.max_timestamp
        segment = self.segments.active
        options = self.options
        if len(batch) > options.segment_bytes:
            raise _too_large(len(batch), options.segment_bytes)
        if self._must_roll(segment, len(batch), last_offset, max_timestamp):
            self.roll()
            segment = self.segments.active
        _pack_offset(batch, 0, base_offset)
        _pack_epoch(batch, LEADER_EPOCH_AT, leader_epoch)
        segment.append(
            batch,
            last_offset=last_offset,
            max_timestamp=max_timestamp,
            index_interval_bytes=options.index_interval_bytes,
        )
        self.end_offset = last_offset + 1
        if header.producer_id >= 0:
            if header.attributes & CONTROL_BIT:
                self._replay(segment, header, batch, base_offset)
            else:
                self.producers.update(header, base_offset)
        # Last, since it may fail: a client that is told so and tries again is then recognised.
        if leader_epoch != self.leader_epochs.latest:
            self.leader_epochs.assign(leader_epoch, base_offset)
        return base_offset

    def append_as_follower(self, batches: memoryview) -> int:
        """Stores whole batches with the offsets and epochs their leader gave them; returns the new end offset.

        Offsets must go up from end_offset; gaps are allowed, since the leader may have compacted them away. A batch from a time
        when segments were larger gets one of its own: who refused it would never get past it.
        """
        found = list(iterate_headers(batches))
        end_offset = self.end_offset
        for position, header in found:
            if header.base_offset < end_offset or header.last_offset_delta < 0:
                raise ApiError(
                    ErrorCode.OFFSET_OUT_OF_RANGE,
                    f"offset {header.base_offset} replicated to {self.topic}-{self.partition} at end offset {end_offset}",
                )
            if crc32c(batches[position + ATTRIBUTES_AT : position + header.size_bytes]) != header.crc:
                raise ApiError(ErrorCode.CORRUPT_MESSAGE, f"wrong CRC at offset {header.base_offset}")
            end_offset = header.last_offset + 1
        for position, header in found:
            batch = batches[position : position + header.size_bytes]
            segment = self.segments.active
            if self._must_roll(segment, len(batch), header.last_offset, header.max_timestamp):
                self.roll()
                segment = self.segments.active
            segment.append(
                batch,
                last_offset=header.last_offset,
                max_timestamp=header.max_timestamp,
                index_interval_bytes=self.options.index_interval_bytes,
            )
            self.end_offset = header.last_offset + 1
            if header.partition_leader_epoch > self.leader_epochs.latest:
                self.leader_epochs.assign(header.partition_leader_epoch, header.base_offset)
            if header.producer_id >= 0:
                self._replay(segment, header, batch, header.base_offset)
        return self.end_offset

    def _replay(self, segment: Segment, header: BatchHeader, batch: Buffer, base_offset: int) -> None:
        aborted = replay_batch(self.producers, header, batch, base_offset)
        if aborted is not None:
            segment.add_aborted(aborted)

    def _must_roll(self, segment: Segment, size: int, last_offset: int, max_timestamp: int) -> bool:
        options = self.options
        size_before = segment.size_bytes
        if size_before + size > options.segment_bytes:
            return size_before > 0
        first_timestamp = segment.first_timestamp
        if (
            first_timestamp < 0 or max_timestamp - first_timestamp > options.earliest_roll_ms
        ) and segment.should_roll(self.clock.now_ms(), max_timestamp, options):
            return True
        return last_offset - segment.base_offset > MAX_RELATIVE_OFFSET or (
            size_before >= options.least_bytes_of_full_index and segment.has_full_index(options)
        )

    def roll(self) -> None:
        """Closes the active segment and starts an empty one at end_offset; nothing when the active one is
        empty already.
        """
        active = self.segments.active
        if active.size_bytes == 0 and active.base_offset == self.end_offset:
            return
        active.finish()
        self.closed_bytes += active.size_bytes
        self.write_snapshot()
        segment = Segment.create(self.disk, self.directory, self.end_offset, now_ms=self.clock.now_ms())
        self.segments.replace([*self.segments, segment])

    # --- reading

    def read(
        self, offset: int, max_bytes: int, *, end_offset: int | None = None, at_least_one: bool = True
    ) -> Slice:
        """What can be served from an offset on, within one segment and below end_offset (high watermark, last stable offset).

        Starts at the batch that contains `offset`. When that batch alone is larger than max_bytes it is given
        whole, if at_least_one, else not at all. At the end: a slice of no bytes. OFFSET_OUT_OF_RANGE outside of
        start_offset … end of the log.
        """
        log_end = self.end_offset
        if offset < self.start_offset or offset > log_end:
            raise ApiError(
                ErrorCode.OFFSET_OUT_OF_RANGE,
                f"Received request for offset {offset} for partition {self.topic}-{self.partition}, "
                f"but we only have log segments from offset {self.start_offset} up to {log_end}.",
            )
        if end_offset is None or end_offset > log_end:
            end_offset = log_end
        if offset >= end_offset:
            if offset == log_end:
                active = self.segments.active
                active.mark(log_end, active.size_bytes)
            return Slice(EMPTY_FILE, 0, 0, offset)
        try:
            return self.segments.read(
                offset, max_bytes, end_offset=end_offset, log_end=log_end, at_least_one=at_least_one
            )
        except ApiError as error:
            raise self._met_damage(offset, error) from None

    def _met_damage(self, offset: int, error: ApiError) -> ApiError:
        if error.code is ErrorCode.CORRUPT_MESSAGE and self.on_damaged is not None:
            self.on_damaged(self, offset, str(error.detail))
        return error

    def aborted_transactions(self, from_offset: int, up_to_offset: int) -> list[tuple[int, int]]:
        """(producer id, first offset) of each aborted transaction that a reader of these offsets meets: with them it leaves
        out the producer's batches from the first offset up to the producer's next marker.
        """
        return self.segments.aborted_transactions(from_offset, up_to_offset)

    def aborted_in(self, found: Slice, from_offset: int, *, end_offset: int) -> list[tuple[int, int]]:
        """As `aborted_transactions`, for a slice read from an offset on: perhaps some more, below end_offset."""
        return self.segments.aborted_in(found, from_offset, end_offset=end_offset)

    def headers(self, offset: int) -> Iterator[tuple[Segment, int, BatchHeader]]:
        """(segment, position, header) of each batch from the one that contains an offset on."""
        return self.segments.headers(offset)

    def offset_for_timestamp(self, timestamp: int) -> Steps[TimestampOffset | None]:
        """The first record whose timestamp is not below the asked one."""
        return self._search(self.segments.find_timestamp(timestamp, self.start_offset))

    def max_timestamp_offset(self) -> Steps[TimestampOffset | None]:
        """The first record with the largest timestamp; None in an empty log."""
        return self._search(self.segments.find_max_timestamp(self.start_offset))

    def _search(self, search: Steps[TimestampOffset | None]) -> Steps[TimestampOffset | None]:
        try:
            return (yield from search)
        except ApiError as error:
            raise self._met_damage(self.start_offset, error) from None

    def epoch_end_offset(self, leader_epoch: int) -> tuple[int, int]:
        """(epoch, end offset) for OffsetForLeaderEpoch; (-1, -1) when it is not known."""
        return self.leader_epochs.end_offset_for(leader_epoch, self.end_offset)

    # --- cutting

    def truncating_to(self, offset: int) -> Chores:
        """Drops every batch with an offset at or above the given one. Nothing may be appended until it is through."""
        return truncation.truncate_to(self, offset)

    def starting_anew_at(self, offset: int) -> Chores:
        """Drops every batch; the next one gets the offset."""
        return truncation.truncate_fully_and_start_at(self, offset)

    def truncate_to(self, offset: int) -> None:
        """As `truncating_to`, all of it on the calling thread."""
        run_here(self.truncating_to(offset))

    def advance_start_offset(self, offset: int) -> Removal | None:
        """DeleteRecords: nothing below an offset is served any more. Segments that are wholly below it go."""
        return retention.advance_start_offset(self, offset)

    def apply_retention(self, *, now_ms: int, end_offset: int) -> Removal | None:
        """Drops segments that retention has used up, never at or above end_offset (the high watermark): a few at a
        time, so ask until there is no more. Without `delete` in cleanup.policy: only what is below start_offset.
        """
        return retention.apply_retention(self, now_ms=now_ms, end_offset=end_offset)

    def lower_recovery_point(self, offset: int) -> Callable[[], None]:
        """What brings it to the device: everything from there on is checked at the next start."""
        self.recovery_point = min(self.recovery_point, offset)
        return _nothing if self.on_lowered is None else self.on_lowered(self)

    def removal_of(self, segments: list[Segment]) -> Removal:
        """They are out of sight at once; their bytes go when it is run."""
        if self.swap is not None:
            self.swap.abandon()
        paths: list[str] = []
        for segment in segments:
            paths += segment.rename_deleted()
        return Removal(self.disk, paths, delay_ms=self.options.file_delete_delay_ms)

    # --- keeping

    def prepare_flush(self, *, include_active: bool = True) -> Flush | None:
        """What must be synced to move the recovery point to the end (or to the active segment); None when
        nothing is.
        """
        return flushing.prepare_flush(self, include_active=include_active)

    def flushed(self, flush: Flush) -> None:
        if flush.cuts == self.cuts:
            self.recovery_point = max(self.recovery_point, min(flush.end_offset, self.end_offset))
        self.report.created = False

    def flush(self) -> None:
        """All three steps at once, on the calling thread."""
        flush = self.prepare_flush()
        if flush is not None:
            flush.run()
            self.flushed(flush)

    def prepare_close(self) -> Flush | None:
        """Completes indexes and snapshot.

        When this is flushed and `close` called, the next open may believe the files.
        """
        return flushing.prepare_close(self)

    def close(self) -> None:
        """Lets go of the files. Without `prepare_close` before it this is what a crash would do.

        A file closes with its last reference, which may be a fetch that is being sent.
        """
        for segment in self.segments:
            segment.file = None

    def leave(self) -> None:
        """Its directory is about to go elsewhere: nothing is written to it any more."""
        self.is_deleted = True
        self.close()

    def delete(self, unique: bytes) -> str:
        """Moves the directory aside as `<topic>-<partition>.<unique>-delete` and returns it, for a `Removal`."""
        parent, _, name = self.directory.rpartition("/")
        target = f"{parent}/{names.deleted_directory_name(name, unique)}"
        self.leave()
        self.disk.replace(self.directory, target)
        return target

    def write_snapshot(self) -> bool:
        """What its producers have done up to the end. Whether there was anything to write."""
        if self.end_offset == self.start_offset and not len(self.producers):
            return False
        path = names.segment_path(self.directory, self.end_offset, names.SNAPSHOT_SUFFIX)
        self.disk.write(path, self.producers.snapshot())
        return True


def _nothing() -> None: ...


def _too_large(size: int, segment_bytes: int) -> ApiError:
    return ApiError(
        ErrorCode.RECORD_LIST_TOO_LARGE,
        f"The request included message batch larger than the configured segment size: "
        f"{size} > {segment_bytes}.",
    )
