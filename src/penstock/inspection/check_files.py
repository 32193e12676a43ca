"""The small files: producer snapshots, leader epochs, topic ids, the directory's checkpoints, and leftovers."""

import os
from collections.abc import Iterator, Mapping

from penstock.inspection.problems import CORRECT_OFFSETS, REBUILD_EPOCHS, REMOVE, SET_ASIDE, Problem
from penstock.model.ids import TopicPartition
from penstock.runtime.files import OsDisk
from penstock.storage import checkpoints, names
from penstock.storage.leader_epochs import LeaderEpochs
from penstock.storage.meta_properties import META_PROPERTIES
from penstock.storage.producer_state import CorruptSnapshot, ProducerState

LEFTOVER_SUFFIXES = (".deleted", ".cleaned", ".tmp")
SWAP_SUFFIX = ".swap"
OFFSET_CHECKPOINTS = (
    checkpoints.RECOVERY_POINT_CHECKPOINT,
    checkpoints.HIGH_WATERMARK_CHECKPOINT,
    checkpoints.LOG_START_OFFSET_CHECKPOINT,
    checkpoints.CLEANER_CHECKPOINT,
)
_INDEX_SUFFIXES = (names.OFFSET_INDEX_SUFFIX, names.TIME_INDEX_SUFFIX, names.TRANSACTION_INDEX_SUFFIX)


def check_snapshots(directory: str) -> Iterator[Problem]:
    for name in sorted(os.listdir(directory)):
        if names.offset_of(name, names.SNAPSHOT_SUFFIX) is None:
            continue
        path = os.path.join(directory, name)
        try:
            with open(path, "rb") as file:
                ProducerState().load_snapshot(file.read())
        except CorruptSnapshot as error:
            # The broker then reads the producers from the log.
            yield Problem(path, f"not a producer snapshot: {error}", repair=REMOVE)


def check_epochs(directory: str, written: list[tuple[int, int]], *, end_offset: int) -> Iterator[Problem]:
    """`written`: the epochs of the batches, each with the offset at which it was seen first."""
    epochs = LeaderEpochs(OsDisk(), os.path.join(directory, names.LEADER_EPOCH_CHECKPOINT))
    seen = [(epoch, offset) for epoch, offset in written if epoch >= 0]
    if not epochs.load():
        is_there = os.path.exists(epochs.path)
        if is_there or seen:
            cause = "cannot be understood" if is_there else "missing"
            yield Problem(epochs.path, cause, repair=REBUILD_EPOCHS)
        return
    previous = (-1, -1)
    for entry in epochs.entries:
        if entry[0] <= previous[0] or entry[1] < previous[1]:
            cause = f"epoch {entry[0]} at offset {entry[1]} is out of order"
            yield Problem(epochs.path, cause, offset=entry[1], repair=REBUILD_EPOCHS)
            return
        previous = entry
    if epochs.entries and epochs.entries[-1][1] > end_offset:
        epoch, offset = epochs.entries[-1]
        cause = f"epoch {epoch} begins behind the end of the log, {end_offset}"
        yield Problem(epochs.path, cause, offset=offset, repair=REBUILD_EPOCHS)
    for number, (epoch, offset) in enumerate(seen):
        last_offset = (seen[number + 1][1] if number + 1 < len(seen) else end_offset) - 1
        for asked in (offset, last_offset):
            known = epochs.epoch_at(asked)
            # Below the first entry: it was moved up with the log's start offset, by retention or kafka-delete-records.
            is_below = bool(epochs.entries) and asked < epochs.entries[0][1] and epoch <= epochs.entries[0][0]
            if known != epoch and not is_below:
                cause = f"says epoch {known} where the log has epoch {epoch}"
                yield Problem(epochs.path, cause, offset=asked, repair=REBUILD_EPOCHS)
                return


def check_topic_id(directory: str) -> Iterator[Problem]:
    path = os.path.join(directory, names.PARTITION_METADATA)
    try:
        checkpoints.read_topic_id(OsDisk(), path)
    except checkpoints.CorruptCheckpoint:
        # The broker writes it again with the id it knows the topic by.
        yield Problem(path, "holds no topic id", repair=SET_ASIDE)


def find_leftovers(directory: str) -> Iterator[Problem]:
    files = set(os.listdir(directory))
    for name in sorted(files):
        path = os.path.join(directory, name)
        if name.endswith(LEFTOVER_SUFFIXES):
            yield Problem(path, "a leftover that nobody needs", repair=REMOVE, is_note=True)
        elif name.endswith(SWAP_SUFFIX):
            yield Problem(
                path, "a compaction that did not finish; the broker finishes it when it starts", is_note=True
            )
        for suffix in _INDEX_SUFFIXES:
            offset = names.offset_of(name, suffix)
            if offset is not None and f"{offset:020d}{names.LOG_SUFFIX}" not in files:
                yield Problem(path, "an index without its log", repair=REMOVE, is_note=True)


def check_log_directory(directory: str, ends: Mapping[TopicPartition, int]) -> Iterator[Problem]:
    """`ends`: where each log of the directory ends, as found by reading it."""
    yield from _check_meta(directory)
    for name in OFFSET_CHECKPOINTS:
        path = os.path.join(directory, name)
        try:
            offsets = checkpoints.read_offsets(OsDisk(), path)
        except checkpoints.CorruptCheckpoint:
            yield Problem(path, "not an offset checkpoint", repair=SET_ASIDE)
            continue
        for topic_partition, offset in offsets.items():
            end_offset = ends.get(topic_partition)
            if end_offset is None:
                cause = f"names {topic_partition}, whose log is not here"
                yield Problem(path, cause, offset=offset, is_note=True)
            elif not 0 <= offset <= end_offset:
                cause = f"{topic_partition} ends at offset {end_offset}"
                yield Problem(path, cause, offset=offset, repair=CORRECT_OFFSETS)
    for name in sorted(os.listdir(directory)):
        path = os.path.join(directory, name)
        if names.is_deleted_directory(name):
            yield Problem(path, "a deleted topic's log on its way out", repair=REMOVE, is_note=True)
        elif names.stray_of(name) is not None:
            cause = "a stray: the cluster did not place this log here; penstock log strays list tells more"
            yield Problem(path, cause, is_note=True)
        elif name.endswith(".tmp") and os.path.isfile(path):
            yield Problem(path, "a leftover that nobody needs", repair=REMOVE, is_note=True)


def _check_meta(directory: str) -> Iterator[Problem]:
    path = os.path.join(directory, META_PROPERTIES)
    try:
        properties = checkpoints.read_properties(OsDisk(), path)
    except checkpoints.CorruptCheckpoint:
        yield Problem(path, "cannot be understood")
        return
    if properties is None:
        yield Problem(path, "missing; the next broker to start here writes its own", is_note=True)
        return
    for wanted in (("cluster.id",), ("node.id", "broker.id")):
        if not any(name in properties for name in wanted):
            yield Problem(path, f"says no {' or '.join(wanted)}")
