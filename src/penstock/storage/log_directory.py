"""One entry of log.dirs: the logs in it, and the files beside them that say who owns it and how it was left.

.lock                               held while a broker uses the directory
meta.properties                     which broker and cluster it belongs to
.kafka_cleanshutdown                present: every log was closed properly; removed as soon as the directory is opened
recovery-point-offset-checkpoint    per log: everything below is on the device
replication-offset-checkpoint       per log: the high watermark
log-start-offset-checkpoint         per log: what DeleteRecords and retention moved it to
<topic>-<partition>/                the logs
<topic>-<partition>.<hex>-delete/   logs of deleted topics, on their way out
"""

from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

from penstock.model.ids import TopicPartition
from penstock.runtime.clock import Clock
from penstock.runtime.files import Disk
from penstock.storage import checkpoints, names
from penstock.storage.chores import Flush, Removal, run_each
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


class LogDirectory:
    __slots__ = (
        "_clock",
        "_disk",
        "_lock",
        "_recovery_points",
        "_start_offsets",
        "clean",
        "high_watermarks",
        "path",
    )

    def __init__(self, disk: Disk, path: str, clock: Clock) -> None:
        """Takes the directory, creating it when missing; LogDirectoryError when another broker has it."""
        self._disk = disk
        self._clock = clock
        self.path = path.rstrip("/") or "/"
        disk.make_directory(self.path)
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
        except BaseException:
            self._lock.close()
            raise
        # From here on a crash must not find the marker of the last, clean stop.
        disk.delete(self._file(CLEAN_SHUTDOWN))

    def claim(self, *, broker_id: int, cluster_id: str) -> None:
        """Writes who owns the directory, or checks that it is this broker."""
        known = checkpoints.read_properties(self._disk, self._file(META_PROPERTIES))
        if known is None:
            checkpoints.write_properties(
                self._disk,
                self._file(META_PROPERTIES),
                {"version": "0", "broker.id": str(broker_id), "cluster.id": cluster_id},
            )
            return
        for name, ours in (("broker.id", str(broker_id)), ("cluster.id", cluster_id)):
            theirs = known.get(name, known.get("node.id") if name == "broker.id" else None)
            if theirs is not None and theirs != ours:
                raise LogDirectoryError(
                    f"{self._file(META_PROPERTIES)} says {name}={theirs}, but this broker has {name}={ours}"
                )

    def cluster_id(self) -> str | None:
        """The cluster this directory belongs to, when it was claimed before."""
        return (checkpoints.read_properties(self._disk, self._file(META_PROPERTIES)) or {}).get("cluster.id")

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
            for offsets in (self._recovery_points, self._start_offsets, self.high_watermarks):
                offsets.pop(topic_partition, None)
            known = None
        log = Log.open(
            self._disk,
            directory,
            options,
            self._clock,
            clean=self.clean,
            recovery_point=self._recovery_points.get(topic_partition, 0),
            start_offset=self._start_offsets.get(topic_partition, 0),
        )
        if topic_id is not None and known is None:
            checkpoints.write_topic_id(self._disk, f"{directory}/{names.PARTITION_METADATA}", topic_id)
        return log

    def delete_log(self, log: Log, unique: bytes) -> Removal:
        """The log is out of sight at once; its bytes go when the removal is run.

        `unique`: 16 random bytes.
        """
        topic_partition = TopicPartition(log.topic, log.partition)
        for offsets in (self._recovery_points, self._start_offsets, self.high_watermarks):
            offsets.pop(topic_partition, None)
        return log.delete(unique)

    def leftover_removals(self) -> Removal | None:
        """Logs of topics whose deletion the last run did not finish."""
        trees = [
            self._file(name)
            for name in self._disk.list_directories(self.path)
            if names.is_deleted_directory(name)
        ]
        return Removal(self._disk, [], trees=tuple(trees)) if trees else None

    def checkpoint(
        self, logs: Iterable[Log], high_watermarks: Mapping[TopicPartition, int], *, sync: bool = True
    ) -> None:
        """Writes down recovery points, start offsets and high watermarks.

        Every minute or so, and at the end.
        """
        recovery_points = {}
        start_offsets = {}
        for log in logs:
            topic_partition = TopicPartition(log.topic, log.partition)
            recovery_points[topic_partition] = log.recovery_point
            if log.start_offset > log.segments[0].base_offset:
                start_offsets[topic_partition] = log.start_offset
        self._recovery_points, self._start_offsets = recovery_points, start_offsets
        for name, offsets in (
            (checkpoints.RECOVERY_POINT_CHECKPOINT, recovery_points),
            (checkpoints.LOG_START_OFFSET_CHECKPOINT, start_offsets),
            (checkpoints.HIGH_WATERMARK_CHECKPOINT, high_watermarks),
        ):
            checkpoints.write_offsets(self._disk, self._file(name), offsets, sync=sync)

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
