"""The partitions this broker holds: by topic name and by topic id for the hot path, and their logs in the log directories."""

import logging
import os
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Final

from penstock.broker.partition import Partition
from penstock.metadata import image
from penstock.model.errors import ApiError, ErrorCode
from penstock.model.ids import TopicPartition
from penstock.runtime.clock import Clock
from penstock.runtime.files import Disk
from penstock.storage.chores import Flush, Removal
from penstock.storage.log import Log
from penstock.storage.log_directory import LogDirectory
from penstock.storage.options import LogOptions

log = logging.getLogger("penstock.broker")

CLOSING_THREADS: Final = 8
_UNKNOWN: Final = ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)


class TopicPartitions:
    """The partitions of one topic; None where another broker holds it."""

    __slots__ = ("_partitions", "name", "topic_id")

    def __init__(self, name: str, topic_id: bytes) -> None:
        self.name = name
        self.topic_id = topic_id
        self._partitions: list[Partition | None] = []

    def partition(self, index: int) -> Partition:
        try:
            partition = self._partitions[index]
        except IndexError:
            raise _UNKNOWN from None
        if partition is None or index < 0:
            raise _UNKNOWN
        return partition

    def add(self, index: int, partition: Partition) -> None:
        while len(self._partitions) <= index:
            self._partitions.append(None)
        self._partitions[index] = partition

    def has(self, index: int) -> bool:
        return 0 <= index < len(self._partitions) and self._partitions[index] is not None

    def __iter__(self) -> Iterator[Partition]:
        return (partition for partition in self._partitions if partition is not None)


class Partitions:
    def __init__(self, disk: Disk, paths: list[str], clock: Clock, *, broker_id: int) -> None:
        """Takes the log directories; LogDirectoryError when one of them cannot be had."""
        self._clock = clock
        self._broker_id = broker_id
        self._topics: dict[str | bytes, TopicPartitions] = {}
        self._directories: list[LogDirectory] = []
        self.run_later: Callable[[Removal], None] = Removal.run
        """How files are removed: at once until the broker serves, then by a thread."""
        self.start_offsets_moved = False
        """Somebody deleted records: the next checkpoint should not wait its usual minute."""
        try:
            for path in paths:
                self._directories.append(LogDirectory(disk, path, clock))
        except BaseException:
            self.release()
            raise
        self._homes: dict[TopicPartition, LogDirectory] = {
            found.topic_partition: directory
            for directory in self._directories
            for found in directory.list_logs()
        }

    # --- looking up

    def topic(self, key: str | bytes) -> TopicPartitions | None:
        """By name or by id."""
        return self._topics.get(key)

    def get(self, name: str, index: int) -> Partition:
        topic = self._topics.get(name)
        if topic is None:
            raise _UNKNOWN
        return topic.partition(index)

    def __iter__(self) -> Iterator[Partition]:
        for key, topic in self._topics.items():
            if isinstance(key, str):
                yield from topic

    @property
    def directories(self) -> list[str]:
        return [directory.path for directory in self._directories]

    def cluster_id(self) -> str | None:
        """The cluster that the directories say they belong to."""
        return next(filter(None, (directory.cluster_id() for directory in self._directories)), None)

    # --- coming and going

    def claim(self, cluster_id: str) -> None:
        for directory in self._directories:
            directory.claim(broker_id=self._broker_id, cluster_id=cluster_id)
            leftover = directory.leftover_removals()
            if leftover is not None:
                leftover.run()

    def open_topic(self, topic: image.Topic, options: LogOptions) -> None:
        """Open the partitions that the cluster puts on this broker and that are not open yet."""
        held = self._topics.get(topic.name)
        if held is None:
            held = TopicPartitions(topic.name, topic.topic_id)
            self._topics[topic.name] = held
            self._topics[topic.topic_id] = held
        for index, placed in enumerate(topic.partitions):
            if self._broker_id in placed.replicas and not held.has(index):
                held.add(index, self._open(topic, index, placed, options))

    def _open(
        self, topic: image.Topic, index: int, placed: image.Partition, options: LogOptions
    ) -> Partition:
        topic_partition = TopicPartition(topic.name, index)
        directory = self._homes.get(topic_partition)
        if directory is None:
            directory = self._emptiest()
            self._homes[topic_partition] = directory
        opened = directory.open_log(topic_partition, options, topic_id=topic.topic_id)
        for line in opened.report.lines:
            log.warning("%s: %s", topic_partition, line)
        return Partition(topic.name, index, opened, self._clock, leader_epoch=placed.leader_epoch)

    def _emptiest(self) -> LogDirectory:
        """As Kafka does, a new log goes where there are the fewest."""
        counts = {id(directory): 0 for directory in self._directories}
        for directory in self._homes.values():
            counts[id(directory)] += 1
        return min(self._directories, key=lambda directory: counts[id(directory)])

    def delete_topic(self, name: str) -> None:
        held = self._topics.pop(name, None)
        if held is None:
            return
        del self._topics[held.topic_id]
        for partition in held:
            partition.leave()
            directory = self._homes.pop(TopicPartition(name, partition.index))
            self.run_later(directory.delete_log(partition.log, os.urandom(16)))

    def delete_records(self, partition: Partition, before_offset: int) -> int:
        """Move the partition's start; what lies before it is removed. The new start offset."""
        removal = partition.delete_records(before_offset)
        if removal is not None:
            self.run_later(removal)
        self.start_offsets_moved = True
        return partition.log.start_offset

    def set_options(self, name: str, options: LogOptions) -> None:
        held = self._topics.get(name)
        for partition in held or ():
            partition.log.options = options

    # --- the directories' own files

    def checkpoint_job(self) -> Callable[[], None]:
        """Recovery points, start offsets and high watermarks as they are now; run the result in a thread."""
        gathered = list(self._by_directory())
        self.start_offsets_moved = False

        def write() -> None:
            for directory, logs, high_watermarks in gathered:
                directory.checkpoint(logs, high_watermarks)

        return write

    def close(self) -> None:
        """A clean stop: every log on the device, and the marker that says so."""
        for directory, logs, high_watermarks in self._by_directory():
            try:
                directory.close(logs, high_watermarks, run_all=_run_all)
            except OSError as error:
                log.error(
                    "%s could not be closed cleanly and will be checked at the next start: %s",
                    directory.path,
                    error,
                )

    def release(self) -> None:
        for directory in self._directories:
            directory.release()

    def _by_directory(self) -> Iterator[tuple[LogDirectory, list[Log], dict[TopicPartition, int]]]:
        for directory in self._directories:
            mine = [p for p in self if self._homes[TopicPartition(p.topic, p.index)] is directory]
            yield (
                directory,
                [p.log for p in mine],
                {TopicPartition(p.topic, p.index): p.high_watermark for p in mine},
            )


def _run_all(flushes: Iterable[Flush]) -> None:
    """Several at a time: a disk takes many syncs at once about as fast as one."""
    with ThreadPoolExecutor(CLOSING_THREADS) as threads:
        for _ in threads.map(Flush.run, flushes):
            pass
