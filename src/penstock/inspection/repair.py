"""Mending what can be mended without losing anything that is still good."""

import os
import time
from collections.abc import Iterable, Iterator

from penstock.client.errors import UserError
from penstock.inspection.places import Place
from penstock.inspection.problems import (
    CORRECT_OFFSETS,
    CUT_TAIL,
    REBUILD_EPOCHS,
    REBUILD_INDEXES,
    REMOVE,
    SET_ASIDE,
    Problem,
)
from penstock.inspection.verify import segments_of
from penstock.model.errors import ApiError
from penstock.model.ids import TopicPartition
from penstock.runtime.files import OsDisk
from penstock.storage import checkpoints, names
from penstock.storage.leader_epochs import LeaderEpochs
from penstock.storage.log_directory import LOCK
from penstock.storage.options import LogOptions
from penstock.storage.recovery import OpenReport, recover_segment
from penstock.storage.replay import rebuild_transaction_indexes
from penstock.storage.segment import Segment

DAMAGED_SUFFIX = ".damaged"


def repair(place: Place, problems: Iterable[Problem]) -> Iterator[tuple[Problem, str]]:
    """Each problem that was mended, and how. UserError when a broker holds the directory.

    `problems` must be all that were found: the indexes of a segment that is damaged within are left alone, since
    rebuilding them would cut the segment there.
    """
    disk = OsDisk()
    has_lock_file = disk.exists(os.path.join(place.log_directory, LOCK))
    try:
        lock = disk.lock(os.path.join(place.log_directory, LOCK))
    except OSError:
        raise UserError(f"a broker is using {place.log_directory}: stop it before a repair") from None
    try:
        yield from _repair_all(disk, place, problems)
    finally:
        lock.close()
        if not has_lock_file:
            disk.delete(os.path.join(place.log_directory, LOCK))


def _repair_all(disk: OsDisk, place: Place, problems: Iterable[Problem]) -> Iterator[tuple[Problem, str]]:
    done: dict[tuple[str, str], str] = {}
    found = list(problems)
    hopeless = {
        _segment_stem(problem.path)
        for problem in found
        if problem.repair is None and problem.path.endswith(names.LOG_SUFFIX)
    }
    for problem in found:
        if problem.repair is None:
            continue
        if problem.repair in (CUT_TAIL, REBUILD_INDEXES):
            key = (_segment_stem(problem.path), "segment")
            if key[0] in hopeless:
                continue
        else:
            key = (problem.path, problem.repair)
        if key not in done:
            done[key] = _act(disk, place, problem)
        yield problem, done[key]


def _segment_stem(path: str) -> str:
    return path.rpartition(".")[0]


def _act(disk: OsDisk, place: Place, problem: Problem) -> str:
    directory = os.path.dirname(problem.path)
    if problem.repair in (CUT_TAIL, REBUILD_INDEXES):
        return _rebuild_segment(disk, directory, int(os.path.basename(_segment_stem(problem.path))))
    if problem.repair == REBUILD_EPOCHS:
        return _rebuild_epochs(disk, directory)
    if problem.repair == REMOVE:
        if os.path.isdir(problem.path):
            disk.delete_tree(problem.path)
        else:
            disk.delete(problem.path)
        return "removed"
    if problem.repair == SET_ASIDE:
        disk.replace(problem.path, problem.path + DAMAGED_SUFFIX)
        return f"set aside as {os.path.basename(problem.path)}{DAMAGED_SUFFIX}"
    assert problem.repair == CORRECT_OFFSETS, problem.repair
    return _correct_offsets(disk, place, problem.path)


def _rebuild_segment(disk: OsDisk, directory: str, base_offset: int) -> str:
    """The broker's own recovery. It cuts at the first bad byte, so it is only asked for where that is the tail."""
    now_ms = time.time_ns() // 1_000_000
    segments = [
        Segment(
            disk, directory, place.base_offset, created_ms=now_ms,
            size_bytes=disk.size(place.path(names.LOG_SUFFIX)),
        )
        for place in segments_of(directory)
    ]  # fmt: skip
    (segment,) = (one for one in segments if one.base_offset == base_offset)
    report = OpenReport()
    epochs = LeaderEpochs(disk, os.path.join(directory, names.LEADER_EPOCH_CHECKPOINT))
    epochs.load()
    recover_segment(segment, LogOptions(), epochs, report)
    try:
        rebuild_transaction_indexes(disk, directory, segments, report.with_markers)
    except ApiError as error:  # an earlier segment is damaged, and there is no snapshot to begin from
        return f"indexes rebuilt, but not that of aborted transactions: {error}"
    if report.truncated_bytes:
        return f"cut {report.truncated_bytes} bytes off, indexes rebuilt"
    return "indexes rebuilt"


def _rebuild_epochs(disk: OsDisk, directory: str) -> str:
    epochs = LeaderEpochs(disk, os.path.join(directory, names.LEADER_EPOCH_CHECKPOINT))
    epochs.entries, epochs.latest = [], -1
    for place in segments_of(directory):
        size = disk.size(place.path(names.LOG_SUFFIX))
        segment = Segment(disk, directory, place.base_offset, created_ms=0, size_bytes=size)
        for _, header in segment.headers():
            if header.partition_leader_epoch > epochs.latest:
                epochs.assign(header.partition_leader_epoch, header.base_offset)
    if not epochs.entries:
        disk.write(epochs.path, b"0\n0\n")
    return f"rebuilt with {len(epochs.entries)} epochs"


def _correct_offsets(disk: OsDisk, place: Place, path: str) -> str:
    offsets = checkpoints.read_offsets(disk, path)
    ends = {log.topic_partition: log.path for log in place.logs}
    corrected = {
        topic_partition: min(max(offset, 0), _end_offset(disk, ends[topic_partition]))
        if topic_partition in ends
        else offset
        for topic_partition, offset in offsets.items()
    }
    checkpoints.write_offsets(disk, path, corrected)
    return "corrected: " + ", ".join(_changes(offsets, corrected))


def _changes(before: dict[TopicPartition, int], after: dict[TopicPartition, int]) -> list[str]:
    return [f"{key} {before[key]} → {value}" for key, value in after.items() if before[key] != value]


def _end_offset(disk: OsDisk, directory: str) -> int:
    segments = segments_of(directory)
    if not segments:
        return 0
    end_offset = segments[-1].base_offset
    path = segments[-1].path(names.LOG_SUFFIX)
    last = Segment(disk, directory, end_offset, created_ms=0, size_bytes=disk.size(path))
    for _, header in last.headers():
        end_offset = header.last_offset + 1
    return end_offset
