"""What a log's batches say about its producers and transactions, read back from them.

Both are functions of the log. A snapshot of the producers saves the way up to its offset; the rest is replayed from the
batch headers and the markers.
"""

from collections.abc import Iterable, Iterator
from itertools import pairwise
from typing import Final

from penstock.model.errors import ApiError, ErrorCode
from penstock.records.batch import CONTROL_BIT, BatchHeader, Buffer
from penstock.records.marker import marker_of
from penstock.runtime.files import Disk
from penstock.runtime.page_cache import NotInMemory, memory_only
from penstock.storage import names
from penstock.storage.producer_state import CorruptSnapshot, ProducerState
from penstock.storage.segment import Segment
from penstock.storage.segments import Segments
from penstock.storage.transaction_index import AbortedTransaction

RECALLED_BYTES: Final = 16 * 1024 * 1024
"""Of the log before a producer's last batch, in which its batches before that are looked for."""


def replay_batch(
    producers: ProducerState, header: BatchHeader, batch: Buffer, base_offset: int
) -> AbortedTransaction | None:
    """A batch with a producer id is in the log at base_offset. What it ends, when it is the marker of an abort."""
    if not header.attributes & CONTROL_BIT:
        producers.update(header, base_offset)
        return None
    marker = marker_of(batch, header)
    if marker is None:
        return None  # compacted away, or another control record, which says nothing about producers
    first_offset = producers.end_transaction(header, marker.coordinator_epoch)
    if marker.committed or first_offset < 0:
        return None
    undecided = producers.first_undecided_offset
    stable = base_offset + 1 if undecided is None else undecided
    return AbortedTransaction(header.producer_id, first_offset, base_offset, stable)


def rebuild_producers(
    disk: Disk,
    directory: str,
    segments: list[Segment],
    producers: ProducerState,
    *,
    end_offset: int,
    snapshots: list[int] | None = None,
) -> None:
    """From the newest snapshot that is within the log, then from the batches behind it. Other snapshots are deleted,
    except those at the base of a segment, which a later truncation may need. `snapshots`: where they are, if known."""
    producers.clear()
    bases = {segment.base_offset for segment in segments}
    from_offset = segments[0].base_offset
    loaded = False
    if snapshots is None:
        snapshots = _list_snapshots(disk, directory)
    for offset in sorted(snapshots, reverse=True):
        path = names.segment_path(directory, offset, names.SNAPSHOT_SUFFIX)
        usable = segments[0].base_offset <= offset <= end_offset
        if usable and not loaded:
            try:
                producers.load_snapshot(disk.read(path))
                loaded = True
                from_offset = offset
                continue
            except CorruptSnapshot:
                usable = False
        if not usable or offset not in bases:
            disk.delete(path)
    if from_offset < end_offset:
        for _, header, batch in _batches_of_producers(segments, from_offset):
            replay_batch(producers, header, batch, header.base_offset)


def rebuild_transaction_indexes(
    disk: Disk, directory: str, segments: list[Segment], wanted: Iterable[int]
) -> None:
    """Fills the empty transaction indexes of the segments with these base offsets.

    A transaction may have begun in an earlier segment, so the producers' state at the first of them is needed: from a
    snapshot at or before it, else from the start of the log.
    """
    bases = {segment.base_offset for segment in segments}.intersection(wanted)
    if not bases:
        return
    producers = ProducerState()
    from_offset = segments[0].base_offset
    for offset in sorted(_list_snapshots(disk, directory), reverse=True):
        if segments[0].base_offset <= offset <= min(bases):
            try:
                producers.load_snapshot(
                    disk.read(names.segment_path(directory, offset, names.SNAPSHOT_SUFFIX))
                )
                from_offset = offset
                break
            except CorruptSnapshot:
                continue
    read = [segment for segment in segments if segment.base_offset <= max(bases)]
    for segment, header, batch in _batches_of_producers(read, from_offset):
        aborted = replay_batch(producers, header, batch, header.base_offset)
        if aborted is not None and segment.base_offset in bases:
            segment.add_aborted(aborted)


def _list_snapshots(disk: Disk, directory: str) -> list[int]:
    found = (names.offset_of(name, names.SNAPSHOT_SUFFIX) for name, _ in disk.list_files(directory))
    return [offset for offset in found if offset is not None]


def _batches_of_producers(
    segments: list[Segment], from_offset: int
) -> Iterator[tuple[Segment, BatchHeader, bytes]]:
    """The batches that have a producer id; with their bytes only where those are a marker's."""
    for segment, following in pairwise([*segments, None]):
        assert segment is not None
        if following is not None and following.base_offset <= from_offset:
            continue
        found = segment.find(from_offset)
        if found is None:
            continue
        for position, header in segment.headers(found.position):
            if header.producer_id >= 0:
                batch = b""
                if header.attributes & CONTROL_BIT:
                    batch = segment.open_file().read_at(position, header.size_bytes)
                yield segment, header, batch


def recall_batches(segments: Segments, producers: ProducerState, producer_id: int) -> bool:
    """Find in the log which batches a producer wrote before the one that a snapshot remembers: a producer with several requests
    in flight may repeat any of them to a leader that has just been started. Whether any was found.

    Read only when such a repetition has come, once for each producer, and not further back than RECALLED_BYTES. Where that is
    not in memory it is sent for, and the producer told to come again.
    """
    wanted = producers.to_recall(producer_id)
    if wanted is None:
        return False
    try:
        with memory_only:
            found = _batches_before(segments, producer_id, *wanted)
    except NotInMemory as cold:
        cold.file.prefetch(cold.position, RECALLED_BYTES)
        raise ApiError(
            ErrorCode.NOT_LEADER_OR_FOLLOWER,
            "the producer's earlier batches are still being loaded: try again",
        ) from None
    producers.recall(producer_id, found)
    return bool(found)


def _batches_before(
    segments: Segments, producer_id: int, epoch: int, count: int, before_offset: int
) -> list[BatchHeader]:
    """The producer's last ones before an offset."""
    found: list[BatchHeader] = []
    for segment in reversed(segments.up_to(before_offset)):
        last_position = segment.position_of(before_offset)
        indexed = segment.offset_index.offset_from(max(last_position - RECALLED_BYTES, 0))
        start = segment.find(indexed) if indexed is not None and last_position > RECALLED_BYTES else None
        own: list[BatchHeader] = []
        for _, header in segment.headers(0 if start is None else start.position):
            if header.base_offset >= before_offset:
                break
            if (header.producer_id, header.producer_epoch) == (
                producer_id,
                epoch,
            ) and header.base_sequence >= 0:
                own.append(header)
        found = own + found
        if len(found) >= count or last_position >= RECALLED_BYTES:
            break
    return found[-count:]
