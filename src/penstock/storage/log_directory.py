"""One entry of log.dirs: the logs in it, and the files beside them that say who owns it and how it was left.

.lock                               held while a broker uses the directory
meta.properties                     which broker and cluster it belongs to
penstock-session                    the last session with ZooKeeper, by which a killed broker knows its own node
.kafka_cleanshutdown                present: every log was closed properly; removed as soon as the directory is opened
recovery-point-offset-checkpoint    per log: everything below is on the device
replication-offset-checkpoint       per log: the high watermark
log-start-offset-checkpoint         per log: what DeleteRecords and retention moved it to
<topic>-<partition>/                the logs
<topic>-<partition>.<hex>-delete/   logs of deleted topics, on their way out
<topic>-<partition>.<hex>-stray/    logs that the cluster does not place here: see `strays`
<topic>-<partition>.<hex>-future/   copies of logs that are on their way here from another directory
"""

import os
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from errno import EEXIST
from typing import NamedTuple

from penstock.model.ids import TopicPartition
from penstock.runtime.clock import Clock
from penstock.runtime.files import Disk
from penstock.storage import checkpoints, meta_properties, names, strays
from penstock.storage.chores import Flush, Removal, run_each
from penstock.storage.cleaner_offsets import CleanerOffsets
from penstock.storage.log import Log
from penstock.storage.meta_properties import LogDirectoryError
from penstock.storage.offset_checkpoints import OffsetCheckpoints
from penstock.storage.options import LogOptions
from penstock.storage.strays import Stray

CLEAN_SHUTDOWN = ".kafka_cleanshutdown"
LOCK = ".lock"


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
        "_offsets",
        "_taken_back",
        "clean",
        "cleaner_offsets",
        "missing",
        "path",
        "strays",
    )

    def __init__(self, disk: Disk, path: str, clock: Clock) -> None:
        """Takes the directory, creating it when missing; LogDirectoryError when another broker has it."""
        self._disk = disk
        self._clock = clock
        self._taken_back: set[TopicPartition] = set()  # strays that were checked as a whole
        self.missing: set[TopicPartition] = set()
        """Logs that the checkpoints name and that were not there when they were to be opened."""
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
            self._offsets = OffsetCheckpoints(disk, self.path)
            # Without one of the checkpoints the whole log is checked.
            self.clean = disk.exists(self._file(CLEAN_SHUTDOWN)) and self._offsets.is_whole
            self.cleaner_offsets = CleanerOffsets(disk, self.path)
            self.strays = strays.list_strays(disk, self.path)
        except BaseException:
            self._lock.close()
            raise
        # From here on a crash, also of the machine, must not find the marker of the last, clean stop.
        if disk.exists(self._file(CLEAN_SHUTDOWN)):
            disk.delete(self._file(CLEAN_SHUTDOWN))
            disk.sync_directory(self.path)

    @property
    def high_watermarks(self) -> Mapping[TopicPartition, int]:
        """As they were last written down."""
        return self._offsets.high_watermarks

    def claim(self, *, broker_id: int, cluster_id: str) -> None:
        """Writes who owns the directory, or checks that it is this broker."""
        meta_properties.claim(self._disk, self.path, broker_id=broker_id, cluster_id=cluster_id)

    def cluster_id(self) -> str | None:
        """The cluster this directory belongs to, when it was claimed before."""
        return meta_properties.read(self._disk, self.path).get("cluster.id")

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
            # Another topic of this name. It was deleted, or the metadata is not what it was: who knows.
            self.make_strays({topic_partition: None})
            known = None
        if known is None and not self._disk.exists(directory):
            if topic_partition in self._offsets.high_watermarks:
                self.missing.add(topic_partition)
            self._forget((topic_partition,))
        log = Log.open(
            self._disk,
            directory,
            options,
            self._clock,
            clean=self.clean or topic_partition in self._taken_back,
            recovery_point=self._offsets.recovery_points.get(topic_partition, 0),
            start_offset=self._offsets.start_offsets.get(topic_partition, 0),
        )
        if log.end_offset < self._offsets.recovery_points.get(topic_partition, 0):
            # What was on the device is damaged and cut. Behind the cut nothing is, whatever the checkpoint says.
            self._offsets.forget_recovery_point(topic_partition)
        self.cleaner_offsets.lower(topic_partition, log.end_offset)
        self._connect(log)
        if topic_id is not None and known is None:
            checkpoints.write_topic_id(self._disk, f"{directory}/{names.PARTITION_METADATA}", topic_id)
        return log

    def load(self, topic_partition: TopicPartition) -> None:
        """For a thread: what `open_log` reads first is in memory then."""
        self._topic_id(str(topic_partition))

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

    def make_strays(self, logs: Mapping[TopicPartition, Log | None]) -> list[Stray]:
        """Sets logs aside that the cluster does not place here. Those that are open come with their `Log`, which nobody uses any
        more. One that cannot be moved is named in the OSError, after all others were.
        """
        made: list[Stray] = []
        failed: OSError | None = None
        for topic_partition, log in logs.items():
            try:
                made.append(strays.set_aside(self._disk, self._stray_of(topic_partition, log)))
            except OSError as error:
                failed = failed or error
        self.strays = [*self.strays, *made]
        self._forget({stray.topic_partition for stray in made})
        if failed is not None:
            raise failed
        return made

    def _stray_of(self, topic_partition: TopicPartition, log: Log | None) -> Stray:
        now_ms = self._clock.now_ms()
        topic_id = self.topic_id(topic_partition) or strays.id_of_unnamed(topic_partition, now_ms)
        stray = Stray(topic_partition, topic_id, self.path, name="", set_aside_ms=now_ms)
        if log is None:
            known = self._offsets
            return stray._replace(
                start_offset=known.start_offsets.get(topic_partition, 0),
                recovery_point=known.recovery_points.get(topic_partition, 0),
                is_clean=self.clean,
            )
        log.leave()
        return stray._replace(start_offset=log.start_offset, recovery_point=log.recovery_point)

    def take_back(
        self, stray: Stray, topic_partition: TopicPartition, topic_id: bytes, options: LogOptions
    ) -> None:
        """A stray is a log again, checked as a whole: not for the event loop. OSError when it is not there any more, or when
        the partition has a log already.
        """
        directory = self._file(str(topic_partition))
        if self._disk.exists(directory):
            raise FileExistsError(EEXIST, "the partition has a log already", directory)
        self._forget((topic_partition,))
        if self._topic_id(stray.name) != topic_id:
            checkpoints.write_topic_id(self._disk, f"{stray.path}/{names.PARTITION_METADATA}", topic_id)
        self._offsets.put(
            topic_partition, recovery_point=stray.recovery_point, start_offset=stray.start_offset
        )
        self._disk.replace(stray.path, directory)
        log = Log.open(
            self._disk, directory, options, self._clock, clean=stray.is_clean,
            recovery_point=stray.recovery_point, start_offset=stray.start_offset,
        )  # fmt: skip
        flush = log.prepare_close()
        if flush is not None:
            flush.run()
            log.flushed(flush)
        log.close()
        self._disk.delete(f"{directory}/{strays.NOTES}")
        self._disk.sync_directory(self.path)
        self._offsets.put(topic_partition, recovery_point=log.recovery_point, start_offset=log.start_offset)
        self._taken_back.add(topic_partition)
        self.strays = [known for known in self.strays if known != stray]

    def _forget(self, topic_partitions: Collection[TopicPartition]) -> None:
        """Take logs that are gone out of the checkpoints now, not at the next one."""
        self._taken_back.difference_update(topic_partitions)
        self.cleaner_offsets.forget(topic_partitions)
        self._offsets.forget(topic_partitions)

    def _connect(self, log: Log) -> None:
        """What is cut off a log is cut off the checkpoints."""
        log.on_truncated, log.on_lowered = self._truncated, self._offsets.lower_recovery_point

    def _truncated(self, log: Log) -> None:
        self.cleaner_offsets.lower(TopicPartition(log.topic, log.partition), log.end_offset)
        self._offsets.lower_start_offset(log)

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
            self._connect(log)
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
        self._offsets.write(logs, high_watermarks)

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

    def topic_id(self, topic_partition: TopicPartition) -> bytes | None:
        """Of the topic that a log is of; None when there is no log, or nothing is known."""
        return self._topic_id(str(topic_partition))

    def _topic_id(self, directory_name: str) -> bytes | None:
        path = self._file(f"{directory_name}/{names.PARTITION_METADATA}")
        try:
            return checkpoints.read_topic_id(self._disk, path)
        except checkpoints.CorruptCheckpoint:
            return None  # written without a sync: a power failure may have left it empty

    def _file(self, name: str) -> str:
        return f"{self.path}/{name}"
