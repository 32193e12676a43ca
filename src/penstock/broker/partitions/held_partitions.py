"""The partitions this broker holds: by topic name and by topic id for the hot path, and their logs in the log directories.

A log directory that fails takes its partitions offline and nothing else: whoever asks for one of them gets
KAFKA_STORAGE_ERROR until the broker is started again, with the directory in order.
"""

import logging
import os
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from typing import Final

from penstock.broker.metrics.traffic import TopicTraffic
from penstock.broker.partitions.checkpointing import WriteCheckpoints, gather, gather_in_steps
from penstock.broker.partitions.damage import report_damage
from penstock.broker.partitions.held_topic import HeldTopic, unknown_topic
from penstock.broker.partitions.partition import Partition
from penstock.broker.partitions.refused_firsts import RefusedFirsts
from penstock.broker.upkeep.log_directories import LogDirectories, UnfinishedMove, is_of_the_disk
from penstock.broker.upkeep.strays import take_furthest_back
from penstock.metadata import image
from penstock.model.ids import TopicPartition
from penstock.runtime.clock import Clock
from penstock.runtime.files import Disk
from penstock.storage.chores import Flush, Removal, run_each
from penstock.storage.log import Log
from penstock.storage.log_directory import LogDirectory, MovedLog
from penstock.storage.options import LogOptions
from penstock.storage.strays import Stray

log = logging.getLogger("penstock.broker")


class HeldPartitions:
    def __init__(
        self, disk: Disk, paths: list[str], clock: Clock, *, broker_id: int, is_clustered: bool = False
    ) -> None:
        """Takes the log directories that can be had; OSError when none can, LogDirectoryError when another broker has one.

        In a cluster a partition has no role until the controller gives it one; else it leads from the beginning.
        """
        self._is_clustered = is_clustered
        self.disk: Final = disk
        self._clock = clock
        self._broker_id = broker_id
        self._topics: dict[str | bytes, HeldTopic] = {}
        self.run_later: Callable[[Removal], None] = Removal.run
        """How files are removed: at once until the broker serves, then after their delay, by a thread."""
        self.on_offline: Callable[[list[TopicPartition]], None] = lambda lost: None
        """Told which partitions went offline."""
        self.flush_soon: Callable[[Partition], object] = lambda partition: None
        """Asks for a flush of a partition."""
        self.start_offsets_moved = False
        """Somebody deleted records: the next checkpoint should not wait its usual minute."""
        self.log_directories: Final = LogDirectories(disk, paths, clock)
        self.refused_firsts: Final = RefusedFirsts(clock)
        self.gone_traffic: Final = TopicTraffic()
        """Of topics that this broker holds no more, or never did."""

    # --- looking up

    def topic(self, key: str | bytes) -> HeldTopic | None:
        """By name or by id."""
        return self._topics.get(key)

    def get(self, key: str | bytes, index: int) -> Partition:
        topic = self._topics.get(key)
        if topic is None:
            raise unknown_topic(key)
        return topic.partition(index)

    def __iter__(self) -> Iterator[Partition]:
        for key, topic in self._topics.items():
            if isinstance(key, str):
                yield from topic

    def topics(self) -> list[HeldTopic]:
        """Also those of which all partitions are elsewhere."""
        return [topic for key, topic in self._topics.items() if isinstance(key, str)]

    @property
    def directories(self) -> list[str]:
        """The paths of log.dirs, also of those that failed."""
        return self.log_directories.paths

    def cluster_id(self) -> str | None:
        return self.log_directories.cluster_id()

    # --- coming and going

    def claim(self, cluster_id: str) -> None:
        for directory in tuple(self.log_directories.online):
            try:
                directory.claim(broker_id=self._broker_id, cluster_id=cluster_id)
            except OSError as error:
                self.fail(directory.path, error, "cannot write its meta.properties")

    def begin_leftovers(self) -> list[UnfinishedMove]:
        """Has the trees removed that the last run left behind; the moves to begin again. Once the topics are open."""
        removals, moves = self.log_directories.leftovers()
        for removal in removals:
            self.run_later(removal)
        return moves

    def open_topic(self, topic: image.Topic, options: LogOptions, *, is_new: bool = True) -> Iterator[int]:
        """Open the partitions that the cluster puts on this broker and that are not open yet, one at each step, so that
        others get their turn between them. One that fails does not keep the others; OSError at the end says so.

        Those of a topic that is not new were somewhere: when they are nowhere now, but a directory has failed, they
        are taken to be in there, and stay offline.
        """
        held = self._know(topic.name, topic.topic_id)
        if self._is_clustered:
            held.held_elsewhere = len(topic.partitions)
        failed: OSError | None = None
        for index, placed in enumerate(topic.partitions):
            if self._broker_id in placed.replicas and not held.has(index):
                topic_partition = TopicPartition(topic.name, index)
                try:
                    strays = self.strays_for(topic.topic_id, topic_partition)
                    if not is_new and strays and self._broker_id in placed.isr:
                        home = take_furthest_back(self.disk, strays, topic.topic_id, topic_partition, options)
                        if home is not None:
                            self.log_directories.settle(topic_partition, home)
                    elif not is_new and self._is_lost(topic_partition):
                        self._lose(topic_partition)
                        continue
                    self._open(held, index, placed, options)
                except OSError as error:
                    failed = failed or error
                yield index
        if failed is not None:
            raise failed

    def strays_for(
        self, topic_id: bytes, topic_partition: TopicPartition
    ) -> list[tuple[LogDirectory, Stray]]:
        """What was set aside of a partition and may be taken back: none where it has a log. One of another topic, of the same
        name, is no such log, and goes out of the way."""
        found = self.log_directories.strays_of(topic_id, topic_partition.partition)
        home = self.log_directories.home(topic_partition)
        if home is None or not found:
            return found
        if home.topic_id(topic_partition) in (topic_id, None):
            return []
        held = self._topics.get(topic_partition.topic)
        if held is not None and held.has(topic_partition.partition):
            self.set_topic_aside(held.name)
        else:
            self.log_directories.forget(topic_partition)
            self.make_strays(home, {topic_partition: None})
        return found if self.log_directories.home(topic_partition) is None else []

    def _is_lost(self, topic_partition: TopicPartition) -> bool:
        """Whether a log that was somewhere must be in a directory that failed."""
        directories = self.log_directories
        return bool(directories.failed) and directories.home(topic_partition) is None

    def know(self, topic: image.Topic) -> None:
        """The cluster has this topic, whether or not we hold any of it."""
        self._know(topic.name, topic.topic_id).held_elsewhere = len(topic.partitions)

    def _know(self, name: str, topic_id: bytes) -> HeldTopic:
        held = self._topics.get(name)
        if held is not None and held.topic_id != topic_id:
            self.set_topic_aside(name)  # which had the name before, and which nobody told us to delete
            held = None
        if held is None:
            held = HeldTopic(name, topic_id)
            self._topics[name] = held
            self._topics[topic_id] = held
        return held

    def ensure(
        self, topic_id: bytes, topic_partition: TopicPartition, options: LogOptions, *, is_new: bool
    ) -> Partition:
        """The partition of a cluster, opened if it is not here yet. ApiError when it is offline, OSError when it cannot be
        opened.
        """
        held = self._know(topic_partition.topic, topic_id)
        if not held.has(topic_partition.partition) and not is_new and self._is_lost(topic_partition):
            held.take_offline(topic_partition.partition)
        if not held.has(topic_partition.partition):
            self._open(
                held,
                topic_partition.partition,
                image.PartitionRegistration((), (), image.NO_LEADER, -1),
                options,
            )
        return held.partition(topic_partition.partition)

    def _open(
        self, held: HeldTopic, index: int, placed: image.PartitionRegistration, options: LogOptions
    ) -> None:
        """A log that is in no directory yet and cannot be made in one is tried in the next."""
        topic_partition = TopicPartition(held.name, index)
        while True:
            home = self.log_directories.home(topic_partition)
            directory = home or self.log_directories.emptiest()
            try:
                opened = directory.open_log(topic_partition, options, topic_id=held.topic_id)
                break
            except OSError as error:
                if not is_of_the_disk(error):
                    raise
                self.fail(directory.path, error, f"cannot open {topic_partition}")
                if home is not None:
                    return
        self.log_directories.settle(topic_partition, directory)
        opened.on_damaged = report_damage
        for line in opened.report.lines:
            log.warning("%s: %s", topic_partition, line)
        if self._is_clustered:
            partition = Partition(
                held.name, index, opened, self._clock, leader_epoch=-1,
                high_watermark=directory.high_watermarks.get(topic_partition, 0), flush_soon=self._flush_soon,
                traffic=held.traffic,
            )  # fmt: skip
        else:
            partition = Partition(
                held.name, index, opened, self._clock, leader_epoch=placed.leader_epoch,
                flush_soon=self._flush_soon, traffic=held.traffic,
            )  # fmt: skip
        held.add(index, partition)

    def _flush_soon(self, partition: Partition) -> None:
        self.flush_soon(partition)

    def _leave_topic(self, name: str) -> dict[LogDirectory, list[Log]]:
        """We hold nothing of it any more; the logs that were open, which nobody uses now."""
        held = self._topics.pop(name, None)
        logs: dict[LogDirectory, list[Log]] = {}
        if held is None:
            return logs
        del self._topics[held.topic_id]
        for index in held.offline:
            self.log_directories.forget(TopicPartition(name, index))
        for partition in held:
            partition.leave()
            directory = self.log_directories.forget(TopicPartition(name, partition.index))
            assert directory is not None
            logs.setdefault(directory, []).append(partition.log)
        self.gone_traffic.add(held.traffic)
        return logs

    def delete_topic(self, name: str) -> None:
        """Somebody deleted it."""
        for directory, deleted in self._leave_topic(name).items():
            try:
                self.run_later(directory.delete_logs(deleted, os.urandom(16)))
            except OSError as error:
                # The topic is gone all the same. What stays is moved away when a topic of its name comes to the same place.
                log.error("%s: cannot delete all of %s: %s", directory.path, name, error)
                for left in deleted:
                    self.log_directories.settle(TopicPartition(name, left.partition), directory)

    def delete_partition(self, name: str, index: int) -> None:
        """One replica goes; the topic stays."""
        held = self._topics.get(name)
        if held is None:
            return
        partition = held.partition(index)
        partition.leave()
        held.drop(index)
        directory = self.log_directories.forget(TopicPartition(name, index))
        assert directory is not None
        try:
            self.run_later(directory.delete_logs([partition.log], os.urandom(16)))
        except OSError as error:
            log.error("%s: cannot delete %s: %s", directory.path, partition, error)
            self.log_directories.settle(TopicPartition(name, index), directory)

    def set_topic_aside(self, name: str) -> None:
        """The metadata has it no more, and nobody told us that it was deleted: its logs are strays."""
        for directory, logs in self._leave_topic(name).items():
            self.make_strays(directory, {TopicPartition(name, left.partition): left for left in logs})

    def leave_strays(
        self, topic_partitions: Iterable[TopicPartition]
    ) -> dict[LogDirectory, dict[TopicPartition, Log | None]]:
        """We hold these partitions no more, which the metadata does not place here. Their logs, as far as they were open, are for
        `make_strays`."""
        strays: dict[LogDirectory, dict[TopicPartition, Log | None]] = {}
        for topic_partition in topic_partitions:
            held = self._topics.get(topic_partition.topic)
            opened: Log | None = None
            if held is not None and held.has(topic_partition.partition):
                partition = held.partition(topic_partition.partition)
                partition.leave()
                held.drop(topic_partition.partition)
                opened = partition.log
            directory = self.log_directories.forget(topic_partition)
            assert directory is not None
            strays.setdefault(directory, {})[topic_partition] = opened
        return strays

    def make_strays(self, directory: LogDirectory, logs: Mapping[TopicPartition, Log | None]) -> None:
        try:
            for stray in directory.make_strays(logs):
                log.info("%s is kept as %s", stray.topic_partition, stray.path)
        except OSError as error:
            log.error("%s: cannot rename all strays: %s", directory.path, error)
            for topic_partition in logs:
                if directory.topic_id(topic_partition) is not None:
                    self.log_directories.settle(topic_partition, directory)

    def delete_records(self, partition: Partition, before_offset: int) -> int:
        """Move the partition's start; what lies before it is removed. The new start offset."""
        removal = partition.delete_records(before_offset)
        if removal is not None:
            self.run_later(removal)
        self.start_offsets_moved = True
        return partition.log.start_offset

    def apply_retention(self, partition: Partition, *, now_ms: int) -> bool:
        """Drop some of what retention has used up; whether there may be more."""
        removal = partition.log.apply_retention(now_ms=now_ms, end_offset=partition.high_watermark)
        if removal is None:
            return False
        self.run_later(removal)
        self.start_offsets_moved = True
        partition.wake()
        return True

    def replace_log(self, partition: Partition, moved: MovedLog, target: LogDirectory) -> None:
        """Put the complete copy of a partition's log in its place, and the log away. OSError leaves all as it was."""
        old = partition.log
        source = self.log_directories.home(moved.topic_partition)
        assert source is not None
        new = target.adopt(moved, old.options)
        assert (new.start_offset, new.end_offset) == (old.start_offset, old.end_offset), moved.path
        # A snapshot knows a producer's last batch only; a retry may be of an earlier one.
        new.producers = old.producers
        new.on_damaged = report_damage
        clean_to = source.cleaner_offsets.get(moved.topic_partition)
        if clean_to is not None:
            target.cleaner_offsets.set(moved.topic_partition, clean_to)
        partition.replace_log(new)
        self.log_directories.settle(moved.topic_partition, target)
        self.start_offsets_moved = True  # so that both directories' checkpoints are written soon
        try:
            self.run_later(source.delete_logs([old], os.urandom(16)))
        except OSError as error:
            self.fail(source.path, error, f"cannot remove {moved.topic_partition} from where it was")

    def set_options(self, name: str, options: LogOptions, *, min_insync_replicas: int = 1) -> None:
        held = self._topics.get(name)
        for partition in held or ():
            partition.log.options = options
            partition.replica.min_insync_replicas = min_insync_replicas

    # --- failing

    def fail(self, path: str, error: OSError, what: str = "") -> None:
        """A directory cannot be relied upon any more: its partitions go offline. Again is no harm."""
        lost = self.log_directories.fail(path, error)
        if lost is None:
            return
        log.error(
            "the log directory %s has failed and is offline with its %s partitions (%s): %s",
            path, len(lost), what or "maintenance", error,
        )  # fmt: skip
        for topic_partition in lost:
            self._lose(topic_partition, tell=False)
        self.on_offline(lost)

    def _lose(self, topic_partition: TopicPartition, *, tell: bool = True) -> None:
        held = self._topics.get(topic_partition.topic)
        if held is not None:
            held.take_offline(topic_partition.partition)
        if tell:
            self.on_offline([topic_partition])

    # --- the directories' own files

    def gather_checkpoint(self) -> Generator[None, None, WriteCheckpoints]:
        """Recovery points, start offsets and high watermarks as they are now, in steps between which others may have their
        turn; run the result in a thread. It returns the directories that could not be written to.
        """
        self.start_offsets_moved = False
        return gather_in_steps(list(self), self.log_directories)

    def close(self, run_all: Callable[[Iterable[Flush]], None] = run_each) -> None:
        """A clean stop: every log on the device, and the marker that says so."""
        for directory, (logs, high_watermarks) in gather(self, self.log_directories).items():
            try:
                directory.close(logs, high_watermarks, run_all=run_all)
            except OSError as error:
                log.error(
                    "%s could not be closed cleanly and will be checked at the next start: %s",
                    directory.path,
                    error,
                )

    def release(self) -> None:
        self.log_directories.release()
