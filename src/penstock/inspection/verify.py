"""All logs of a directory, one problem after the other."""

import os
from collections.abc import Generator, Iterator
from itertools import pairwise

from penstock.inspection.check_files import (
    check_epochs,
    check_log_directory,
    check_snapshots,
    check_topic_id,
    find_leftovers,
)
from penstock.inspection.check_segment import Progress, SegmentPlace, check_segment
from penstock.inspection.check_transactions import TransactionCheck
from penstock.inspection.places import LogPlace, Place
from penstock.inspection.problems import Problem
from penstock.model.ids import TopicPartition
from penstock.model.internal_topics import CLUSTER_METADATA
from penstock.storage import names
from penstock.storage.log_directory import CLEAN_SHUTDOWN


class Counts:
    """What was read so far."""

    def __init__(self) -> None:
        self.logs = 0
        self.segments = 0
        self.batches = 0
        self.bytes = 0


def segments_of(directory: str) -> list[SegmentPlace]:
    found = (names.offset_of(name, names.LOG_SUFFIX) for name in os.listdir(directory))
    bases: list[int | None] = [*sorted(base for base in found if base is not None), None]
    return [SegmentPlace(directory, base, end) for base, end in pairwise(bases) if base is not None]


def total_bytes(place: Place) -> int:
    return sum(
        os.path.getsize(segment.path(names.LOG_SUFFIX))
        for log in place.logs
        for segment in segments_of(log.path)
    )


def _ignore(size: int) -> None:
    pass


def check(
    place: Place, counts: Counts | None = None, *, deep: bool = False, progress: Progress = _ignore
) -> Iterator[Problem]:
    """Each problem of the logs and of the files beside them. Reads everything and writes nothing.

    `deep` takes every record apart, not only every batch. `counts` grows while it goes on, and `progress` is told how
    many bytes were read.
    """
    counts = Counts() if counts is None else counts

    def read(size: int) -> None:
        counts.bytes += size
        progress(size)

    is_clean = os.path.exists(os.path.join(place.log_directory, CLEAN_SHUTDOWN))
    ends: dict[TopicPartition, int] = {}
    for log in place.logs:
        end_offset = yield from _check_log(
            log, counts, deep=deep, is_live=place.is_in_use, is_clean=is_clean, progress=read
        )
        ends[log.topic_partition] = end_offset
    if place.is_log_directory:
        yield from check_log_directory(place.path, ends)


def _check_log(
    log: LogPlace, counts: Counts, *, deep: bool, is_live: bool, is_clean: bool, progress: Progress
) -> Generator[Problem, None, int]:
    """Returns the end offset."""
    counts.logs += 1
    epochs: list[tuple[int, int]] = []
    end_offset = 0
    transactions = TransactionCheck(log.path)
    for segment in segments_of(log.path):
        try:
            checked = check_segment(
                segment, transactions, deep=deep, is_live=is_live, is_clean=is_clean, progress=progress
            )
        except FileNotFoundError:
            continue  # deleted by the broker meanwhile
        counts.segments += 1
        counts.batches += checked.batches
        yield from checked.problems
        epochs += [entry for entry in checked.epochs if not epochs or entry[0] != epochs[-1][0]]
        end_offset = max(checked.end_offset, segment.base_offset)
    if (
        log.topic_partition.topic != CLUSTER_METADATA
    ):  # KRaft's own log keeps its epochs and snapshots otherwise
        yield from check_epochs(log.path, epochs, end_offset=end_offset)
    yield from check_snapshots(log.path)
    yield from check_topic_id(log.path)
    yield from find_leftovers(log.path)
    return end_offset
