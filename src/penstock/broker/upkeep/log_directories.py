"""The entries of log.dirs together: which of them can be used, and which log is in which."""

import errno
import logging
from typing import Final, NamedTuple

from penstock.model.ids import TopicPartition
from penstock.runtime.clock import Clock
from penstock.runtime.files import Disk
from penstock.storage.chores import Removal
from penstock.storage.log_directory import LogDirectory
from penstock.storage.strays import Stray

log = logging.getLogger("penstock.broker")

_NOT_OF_THE_DISK: Final = frozenset(
    {errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.EFBIG, errno.EINTR, errno.EAGAIN, errno.EISDIR}
)
"""Limits of the process, or an entry of the wrong kind in the way of one file: refused, and tried again by the next."""


def is_of_the_disk(error: OSError) -> bool:
    """Whether an error says that the directory cannot be relied upon any more: no room, no answer, read-only, gone."""
    return error.errno not in _NOT_OF_THE_DISK


class UnfinishedMove(NamedTuple):
    """A log that was on its way to another directory when the broker last ended."""

    topic_partition: TopicPartition
    target: LogDirectory


class LogDirectories:
    def __init__(self, disk: Disk, paths: list[str], clock: Clock) -> None:
        """Takes those that can be had. OSError of the first when there is none; LogDirectoryError when another broker
        has one of them."""
        self.disk: Final = disk
        self.paths = [path.rstrip("/") or "/" for path in paths]
        self.online: list[LogDirectory] = []
        self.failed: dict[str, OSError] = {}
        self._homes: dict[TopicPartition, LogDirectory] = {}
        self._counts = dict.fromkeys(self.paths, 0)
        try:
            for path in self.paths:
                try:
                    directory = LogDirectory(disk, path, clock)
                    found = directory.list_partitions()
                except OSError as fault:
                    self.failed[path] = fault
                    log.error("%s cannot be used, its partitions are offline: %s", path, fault)
                    continue
                self.online.append(directory)
                for topic_partition in found:
                    self._found(topic_partition, directory)
            if not self.online:
                raise next(iter(self.failed.values()))
        except BaseException:
            self.release()
            raise

    def _found(self, topic_partition: TopicPartition, directory: LogDirectory) -> None:
        """A log in two directories: the broker ended between the two renames of a move. The later copy continues."""
        other = self._homes.get(topic_partition)
        if other is None:
            self.settle(topic_partition, directory)
            return
        kept, dropped = other, directory
        if directory.progress(topic_partition) > other.progress(topic_partition):
            kept, dropped = directory, other
        log.warning("%s is in both %s and %s: using the first", topic_partition, kept.path, dropped.path)
        if kept.topic_id(topic_partition) == dropped.topic_id(topic_partition):
            dropped.set_aside(topic_partition)
        else:
            dropped.make_strays({topic_partition: None})
        self.settle(topic_partition, kept)

    # --- where is what

    def is_closed(self, topic_partition: TopicPartition) -> bool:
        """Whether the log was closed by a clean stop. Else its end may be lost; or all of it, where there is none."""
        home = self._homes.get(topic_partition)
        return home is not None and home.clean

    def at(self, path: str) -> LogDirectory | None:
        """The directory of that path, if it can be used."""
        return next((directory for directory in self.online if directory.path == path), None)

    def home(self, topic_partition: TopicPartition) -> LogDirectory | None:
        return self._homes.get(topic_partition)

    def all_logs(self) -> list[TopicPartition]:
        """In the directories that can be used, whether they are open or not."""
        usable = set(self.online)
        return [known for known, directory in self._homes.items() if directory in usable]

    def strays_of(self, topic_id: bytes, partition: int) -> list[tuple[LogDirectory, Stray]]:
        """What was set aside of a partition, in the directories that can be used."""
        return [
            (directory, stray)
            for directory in self.online
            for stray in directory.strays
            if stray.topic_id == topic_id and stray.topic_partition.partition == partition
        ]

    def settle(self, topic_partition: TopicPartition, directory: LogDirectory) -> None:
        self.forget(topic_partition)
        self._homes[topic_partition] = directory
        self._counts[directory.path] += 1

    def forget(self, topic_partition: TopicPartition) -> LogDirectory | None:
        known = self._homes.pop(topic_partition, None)
        if known is not None:
            self._counts[known.path] -= 1
        return known

    def emptiest(self) -> LogDirectory:
        """As Kafka does, a new log goes where there are the fewest. OSError when no directory is left."""
        if not self.online:
            raise OSError(errno.EIO, "every log directory has failed")
        return min(self.online, key=lambda directory: self._counts[directory.path])

    # --- coming and going

    def fail(self, path: str, error: OSError) -> list[TopicPartition] | None:
        """Give a directory up. The logs that were in it; None when it was given up before."""
        directory = self.at(path)
        if directory is None:
            return None
        self.online.remove(directory)
        self.failed[path] = error
        lost = [known for known, home in self._homes.items() if home is directory]
        directory.release()
        return lost

    def cluster_id(self) -> str | None:
        """The cluster that the directories say they belong to."""
        return next(filter(None, (directory.cluster_id() for directory in self.online)), None)

    def leftovers(self) -> tuple[list[Removal], list[UnfinishedMove]]:
        """What the last run left behind: trees to remove, and moves to begin again.

        A copy whose original cannot be seen now is kept: it may be all that there is.
        """
        removals: list[Removal] = []
        moves: list[UnfinishedMove] = []
        for directory in self.online:
            removal = directory.leftover_removals()
            if removal is not None:
                removals.append(removal)
            for topic_partition, tree in directory.list_futures():
                home = self._homes.get(topic_partition)
                if home is not None:
                    removals.append(Removal(self.disk, [], trees=(tree,)))
                    if home is not directory:
                        moves.append(UnfinishedMove(topic_partition, directory))
        return removals, moves

    def release(self) -> None:
        for directory in self.online:
            directory.release()
