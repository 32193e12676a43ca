"""One entry of log.dirs: the logs in it, and the files beside them that say who owns it and how it was left.

.lock                               held while a broker uses the directory
meta.properties                     which broker and cluster it belongs to
.kafka_cleanshutdown                present: every log was closed properly; removed as soon as the directory is opened
recovery-point-offset-checkpoint    per log: everything below is on the device
replication-offset-checkpoint       per log: the high watermark
log-start-offset-checkpoint         per log: what DeleteRecords and retention moved it to
<topic>-<partition>/                the logs
<topic>-<partition>.<hex>-delete/   logs of deleted topics, on their way out
<topic>-<partition>.<hex>-future/   copies of logs that are on their way here from another directory
"""

import os
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from time import sleep
from typing import NamedTuple

from penstock.model.ids import TopicPartition
from penstock.runtime.clock import Clock
from penstock.runtime.files import Disk
from penstock.runtime.locks import DeviceLock
from penstock.storage import checkpoints, names
from penstock.storage.chores import Flush, Removal, run_each
from penstock.storage.cleaner_offsets import CleanerOffsets
from penstock.storage.log import Log
from penstock.storage.options import LogOptions

META_PROPERTIES = "meta.properties"
CLEAN_SHUTDOWN = ".kafka_cleanshutdown"
LOCK = ".lock"


class LogDirectoryError(Exception):
    """The directory cannot be used by this broker; the message is for the operator."""


class Found(NamedTuple):
    """A log that is in the directory but not open yet."""

    topic_partition: TopicPartition
    topic_id: bytes | None


class MovedLog(NamedTuple):
    """A complete copy of a log, beside where it will be."""

    topic_partition: TopicPartition
    path: str
    start_offset: int
    recovery_point: int


class LogDirectory:
    __slots__ = (
        "_clock",
        "_disk",
        "_lock",
        "_lowered",
        "_recovery_points",
        "_start_offsets",
        "_writing",
        "clean",
        "cleaner_offsets",
        "high_watermarks",
        "path",
    )

    def __init__(self, disk: Disk, path: str, clock: Clock) -> None:
        """Takes the directory, creating it when missing; LogDirectoryError when another broker has it."""
        self._disk = disk
        self._clock = clock
        self._lowered: dict[TopicPartition, Log] = {}  # whose recovery points are too high on the device
        self._writing = DeviceLock("the checkpoints")  # checkpoints are written by threads, and at a deletion
        self.path = path.rstrip("/") or "/"
        if not disk.exists(self.path):
            disk.make_directory(self.path)
            disk.sync_directory(os.path.dirname(self.path) or ".")
        try:
            self._lock = disk.lock(self._file(LOCK))
        except BlockingIOError:
            raise LogDirectoryError(
                f"{self.path} is in use by another broker process (its {LOCK} file is locked): stop it, "
                "or give this one its own directory"
            ) from None
        try:
            self.clean = disk.exists(self._file(CLEAN_SHUTDOWN))
            self._recovery_points = self._read(checkpoints.RECOVERY_POINT_CHECKPOINT)
            self._start_offsets = self._read(checkpoints.LOG_START_OFFSET_CHECKPOINT)
            self.high_watermarks = self._read(checkpoints.HIGH_WATERMARK_CHECKPOINT)
            self.cleaner_offsets = CleanerOffsets(disk, self.path)
        except BaseException:
            self._lock.close()
            raise
        # From here on a crash, also of the machine, must not find the marker of the last, clean stop.
        if disk.exists(self._file(CLEAN_SHUTDOWN)):
            disk.delete(self._file(CLEAN_SHUTDOWN))
            disk.sync_directory(self.path)

    def claim(self, *, broker_id: int, cluster_id: str) -> None:
        """Writes who owns the directory, or checks that it is this broker."""
        known = self._properties()
        if not known:  # also when a power failure left it empty
            checkpoints.write_properties(
                self._disk,
                self._file(META_PROPERTIES),
                {"version": "0", "broker.id": str(broker_id), "cluster.id": cluster_id},
            )
            return
        id_name = (
            "node.id" if "node.id" in known else "broker.id"
        )  # as KRaft writes it, or as ZooKeeper's brokers did
        for name, ours in ((id_name, str(broker_id)), ("cluster.id", cluster_id)):
            theirs = known.get(name)
            if theirs is not None and theirs != ours:
                hint = f": start it with --set {name}={theirs}" if name == id_name else ""
                raise LogDirectoryError(
                    f"{self._file(META_PROPERTIES)} says {name}={theirs}, but this broker has {name}={ours}{hint}"
                )

    def cluster_id(self) -> str | None:
        """The cluster this directory belongs to, when it was claimed before."""
        return self._properties().get("cluster.id")

    def _properties(self) -> dict[str, str]:
        try:
            return checkpoints.read_properties(self._disk, self._file(META_PROPERTIES)) or {}
        except checkpoints.CorruptCheckpoint as error:
            raise LogDirectoryError(
                f"{error}: put the right file back, or delete it if this directory belongs to this broker"
            ) from None

    def list_partitions(self) -> list[TopicPartition]:
        """As `list_logs`, without a look into each: one listing, however many there are."""
        found = (names.partition_of(name) for name in self._disk.list_directories(self.path))
        return [TopicPartition(*partition) for partition in found if partition is not None]

    def list_logs(self) -> list[Found]:
        found = []
        for name in self._disk.list_directories(self.path):
            partition = names.partition_of(name)
            if partition is not None:
                found.append(Found(TopicPartition(*partition), self._topic_id(name)))
        return found

    def open_log(
        self, topic_partition: TopicPartition, options: LogOptions, *, topic_id: bytes | None = None
    ) -> Log:
        """Opens a log, creating it when missing; a new one, or one without an id, gets the topic id."""
        directory = self._file(str(topic_partition))
        known = self._topic_id(str(topic_partition))
        if topic_id is not None and known is not None and known != topic_id:
            # A topic of this name was deleted, and a crash came before its directory was: the next start removes it.
            self._disk.replace(
                directory, self._file(names.deleted_directory_name(str(topic_partition), known))
            )
            known = None
        if known is None and not self._disk.exists(directory):
            self._forget((topic_partition,))
        log = Log.open(
            self._disk,
            directory,
            options,
            self._clock,
            clean=self.clean,
            recovery_point=self._recovery_points.get(topic_partition, 0),
            start_offset=self._start_offsets.get(topic_partition, 0),
        )
        if log.end_offset < self._recovery_points.get(topic_partition, 0):
            # What was on the device is damaged and cut. Behind the cut nothing is, whatever the checkpoint says.
            self._forget_recovery_point(topic_partition)
        self.cleaner_offsets.lower(topic_partition, log.end_offset)
        log.on_truncated, log.on_lowered = self._truncated, self._lower_recovery_point
        if topic_id is not None and known is None:
            checkpoints.write_topic_id(self._disk, f"{directory}/{names.PARTITION_METADATA}", topic_id)
        return log

    def delete_logs(self, logs: Sequence[Log], unique: bytes) -> Removal:
        """The logs are out of sight at once; their bytes go when the removal is run.

        `unique`: 16 random bytes. One that cannot be moved is named in the OSError, after all others were.
        """
        trees: list[str] = []
        failed: OSError | None = None
        for log in logs:
            try:
                trees.append(log.delete(unique))
            except OSError as error:
                failed = failed or error
        self._forget({TopicPartition(log.topic, log.partition) for log in logs})
        if failed is not None:
            raise failed
        delay_ms = max((log.options.file_delete_delay_ms for log in logs), default=0)
        return Removal(self._disk, [], trees=tuple(trees), delay_ms=delay_ms)

    def _forget(self, topic_partitions: Collection[TopicPartition]) -> None:
        """Take deleted logs out of the checkpoints now, not at the next one: a log made meanwhile under the same name would
        inherit their start offset at a restart after a crash, and with it lose all that it holds below.
        """
        self.cleaner_offsets.forget(topic_partitions)
        with self._writing:
            for topic_partition in topic_partitions:
                self.high_watermarks.pop(topic_partition, None)
            for name, offsets in (
                (checkpoints.RECOVERY_POINT_CHECKPOINT, self._recovery_points),
                (checkpoints.LOG_START_OFFSET_CHECKPOINT, self._start_offsets),
            ):
                found = [known for known in topic_partitions if known in offsets]
                for topic_partition in found:
                    del offsets[topic_partition]
                if found:
                    checkpoints.write_offsets(self._disk, self._file(name), offsets)

    def _truncated(self, log: Log) -> None:
        self.cleaner_offsets.lower(TopicPartition(log.topic, log.partition), log.end_offset)

    def _lower_recovery_point(self, log: Log) -> Callable[[], None]:
        """The chore that does. The first writes for all who wait by then: a change of roles may cut thousands of logs."""
        self._lowered[TopicPartition(log.topic, log.partition)] = log
        return self._write_lowered

    def _write_lowered(self) -> None:
        with self._writing:  # also behind a checkpoint that has looked at a log before it was cut
            waiting = dict(self._lowered)
            lowered = {
                topic_partition: log.recovery_point
                for topic_partition, log in waiting.items()
                if self._recovery_points.get(topic_partition, 0) > log.recovery_point
            }
            if lowered:
                self._write_recovery_points({**self._recovery_points, **lowered})
            for topic_partition, log in waiting.items():
                if self._lowered[topic_partition] is log:
                    del self._lowered[topic_partition]

    def _forget_recovery_point(self, topic_partition: TopicPartition) -> None:
        with self._writing:
            self._write_recovery_points(
                {known: point for known, point in self._recovery_points.items() if known != topic_partition}
            )

    def _write_recovery_points(self, recovery_points: dict[TopicPartition, int]) -> None:
        path = self._file(checkpoints.RECOVERY_POINT_CHECKPOINT)
        checkpoints.write_offsets(self._disk, path, recovery_points)
        # What was lowered must not come back with the old file.
        self._disk.sync_directory(self.path)
        # Not before: where this fails, the old ones are still on the device.
        self._recovery_points = recovery_points

    def list_futures(self) -> list[tuple[TopicPartition, str]]:
        """Copies that a move did not finish: of which log, and where."""
        found = []
        for name in self._disk.list_directories(self.path):
            partition = names.future_partition_of(name)
            if partition is not None:
                found.append((TopicPartition(*partition), self._file(name)))
        return found

    def progress(self, topic_partition: TopicPartition) -> tuple[int, int]:
        """How far a log goes, without opening it: base offset and size of its last segment. To compare two copies."""
        files = self._disk.list_files(self._file(str(topic_partition)))
        sizes = {names.offset_of(name, names.LOG_SUFFIX): size for name, size in files}
        bases = [base for base in sizes if base is not None]
        return (max(bases), sizes[max(bases)]) if bases else (-1, 0)

    def set_aside(self, topic_partition: TopicPartition) -> str:
        """Marks a log that is not open for deletion; `leftover_removals` has it from then on. Where it is now."""
        name = str(topic_partition)
        target = self._file(names.deleted_directory_name(name, bytes(16)))
        self._disk.delete_tree(target)
        self._disk.replace(self._file(name), target)
        return target

    def adopt(self, moved: MovedLog, options: LogOptions) -> Log:
        """Opens a copy that is complete under its final name: nothing in it needs to be checked."""
        path = self._file(str(moved.topic_partition))
        self._disk.replace(moved.path, path)
        try:
            # Before the original goes, this must be known to last.
            self._disk.sync_directory(self.path)
            log = Log.open(
                self._disk, path, options, self._clock, clean=True,
                recovery_point=moved.recovery_point, start_offset=moved.start_offset,
            )  # fmt: skip
            log.on_truncated, log.on_lowered = self._truncated, self._lower_recovery_point
            return log
        except BaseException:
            self._disk.replace(path, moved.path)
            raise

    def leftover_removals(self) -> Removal | None:
        """Logs of topics whose deletion the last run did not finish."""
        trees = [
            self._file(name)
            for name in self._disk.list_directories(self.path)
            if names.is_deleted_directory(name)
        ]
        return Removal(self._disk, [], trees=tuple(trees)) if trees else None

    def checkpoint(self, logs: Iterable[Log], high_watermarks: Mapping[TopicPartition, int]) -> None:
        """Writes down recovery points, start offsets and high watermarks.

        Every minute or so, and at the end.
        """
        recovery_points = {}
        start_offsets = {}
        with self._writing:
            for number, log in enumerate(logs):
                if number % 500 == 499:
                    sleep(0)  # lets the event loop's thread have the interpreter
                if log.is_deleted:
                    continue
                topic_partition = TopicPartition(log.topic, log.partition)
                recovery_points[topic_partition] = log.recovery_point
                if log.start_offset > log.segments[0].base_offset:
                    start_offsets[topic_partition] = log.start_offset
            self._start_offsets = start_offsets
            for name, offsets in (
                (checkpoints.LOG_START_OFFSET_CHECKPOINT, start_offsets),
                (checkpoints.HIGH_WATERMARK_CHECKPOINT, high_watermarks),
            ):
                checkpoints.write_offsets(self._disk, self._file(name), offsets)
            self._write_recovery_points(recovery_points)

    def close(
        self,
        logs: Iterable[Log],
        high_watermarks: Mapping[TopicPartition, int],
        *,
        run_all: Callable[[Iterable[Flush]], None] = run_each,
    ) -> None:
        """A clean stop: flushes and closes every log, then says so. `run_all` may spread the flushes over threads.

        A fault on the way leaves the directory marked as not clean.
        """
        open_logs = list(logs)
        flushes = [(log, flush) for log in open_logs if (flush := log.prepare_close()) is not None]
        run_all([flush for _, flush in flushes])
        for log, flush in flushes:
            log.flushed(flush)
        self.checkpoint(open_logs, high_watermarks)
        for log in open_logs:
            log.close()
        self._disk.write(self._file(CLEAN_SHUTDOWN), b'{"version":0,"brokerEpoch":-1}', sync=True)
        self._disk.sync_directory(self.path)
        self._lock.close()

    def release(self) -> None:
        """Lets go without a clean stop, as a crash would."""
        self._lock.close()

    def _topic_id(self, directory_name: str) -> bytes | None:
        path = self._file(f"{directory_name}/{names.PARTITION_METADATA}")
        try:
            return checkpoints.read_topic_id(self._disk, path)
        except checkpoints.CorruptCheckpoint:
            return None  # written without a sync: a power failure may have left it empty

    def _read(self, name: str) -> dict[TopicPartition, int]:
        try:
            return checkpoints.read_offsets(self._disk, self._file(name))
        except checkpoints.CorruptCheckpoint:
            # Every checkpoint only saves work or precision: without it the whole log is checked.
            self.clean = False
            return {}

    def _file(self, name: str) -> str:
        return f"{self.path}/{name}"
