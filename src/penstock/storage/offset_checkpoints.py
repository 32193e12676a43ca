"""Three of a log directory's checkpoints: recovery points, start offsets and high watermarks of the logs in it.

A checkpoint that is too low only costs time or precision. One that is too high is dangerous. So when a log is truncated, the
lower value is on the disk before anything is appended. A deleted log is removed from all checkpoints at once: after a crash
another log of the same name would inherit its values.
"""

from collections.abc import Callable, Collection, Iterable, Mapping
from time import sleep

from penstock.model.ids import TopicPartition
from penstock.runtime.files import Disk
from penstock.runtime.locks import DeviceLock
from penstock.storage import checkpoints
from penstock.storage.log import Log


class OffsetCheckpoints:
    """Written by threads, but for `forget` and `forget_recovery_point`."""

    __slots__ = (
        "_directory",
        "_disk",
        "_lowered",
        "_writing",
        "high_watermarks",
        "is_whole",
        "recovery_points",
        "start_offsets",
    )

    def __init__(self, disk: Disk, directory: str) -> None:
        self._disk = disk
        self._directory = directory
        self._lowered: dict[TopicPartition, Log] = {}  # whose recovery points are too high on the device
        self._writing = DeviceLock("the checkpoints")
        self.is_whole = True
        """False: one of the files could not be understood."""
        self.recovery_points = self._read(checkpoints.RECOVERY_POINT_CHECKPOINT)
        self.start_offsets = self._read(checkpoints.LOG_START_OFFSET_CHECKPOINT)
        self.high_watermarks = self._read(checkpoints.HIGH_WATERMARK_CHECKPOINT)

    def write(self, logs: Iterable[Log], high_watermarks: Mapping[TopicPartition, int]) -> None:
        """Of the logs that are open. Of the others all stays as it was."""
        recovery_points = {}
        start_offsets = {}
        with self._writing:
            for number, log in enumerate(logs):
                if number % 500 == 499:
                    sleep(0)  # lets the event loop's thread have the interpreter
                if log.is_deleted:
                    continue  # since these were gathered
                topic_partition = TopicPartition(log.topic, log.partition)
                recovery_points[topic_partition] = log.recovery_point
                if log.start_offset > log.segments[0].base_offset:
                    start_offsets[topic_partition] = log.start_offset
            is_open = recovery_points.keys()
            unopened = {known: at for known, at in self.start_offsets.items() if known not in is_open}
            self.start_offsets = {**unopened, **start_offsets}
            marks = {known: at for known, at in high_watermarks.items() if known in is_open}
            self.high_watermarks = {**self.high_watermarks, **marks}
            self._write(checkpoints.LOG_START_OFFSET_CHECKPOINT, self.start_offsets)
            self._write(checkpoints.HIGH_WATERMARK_CHECKPOINT, self.high_watermarks)
            self._write_recovery_points({**self.recovery_points, **recovery_points})

    def put(self, topic_partition: TopicPartition, *, recovery_point: int, start_offset: int) -> None:
        """Of a log that comes from elsewhere."""
        with self._writing:
            self.start_offsets[topic_partition] = start_offset
            self._write(checkpoints.LOG_START_OFFSET_CHECKPOINT, self.start_offsets)
            self._write_recovery_points({**self.recovery_points, topic_partition: recovery_point})

    def forget(self, topic_partitions: Collection[TopicPartition]) -> None:
        """Logs that are gone. Another of the same name would inherit their offsets at a restart after a crash: with the start
        offset it would lose all that it holds below, with the high watermark it would show what is not committed.
        """
        with self._writing:
            for name, offsets in (
                (checkpoints.RECOVERY_POINT_CHECKPOINT, self.recovery_points),
                (checkpoints.LOG_START_OFFSET_CHECKPOINT, self.start_offsets),
                (checkpoints.HIGH_WATERMARK_CHECKPOINT, self.high_watermarks),
            ):
                found = [known for known in topic_partitions if known in offsets]
                for topic_partition in found:
                    del offsets[topic_partition]
                if found:
                    self._write(name, offsets)

    def forget_recovery_point(self, topic_partition: TopicPartition) -> None:
        with self._writing:
            self._write_recovery_points(
                {known: point for known, point in self.recovery_points.items() if known != topic_partition}
            )

    # --- of a log that is cut

    def lower_recovery_point(self, log: Log) -> Callable[[], None]:
        """The chore that does. The first writes for all who wait by then: a change of roles may cut thousands of logs."""
        self._lowered[TopicPartition(log.topic, log.partition)] = log
        return self._write_lowered

    def _write_lowered(self) -> None:
        with self._writing:  # also behind a `write` that has looked at a log before it was cut
            waiting = dict(self._lowered)
            lowered = {
                topic_partition: log.recovery_point
                for topic_partition, log in waiting.items()
                if self.recovery_points.get(topic_partition, 0) > log.recovery_point
            }
            if lowered:
                self._write_recovery_points({**self.recovery_points, **lowered})
            for topic_partition, log in waiting.items():
                if self._lowered[topic_partition] is log:
                    del self._lowered[topic_partition]

    def lower_start_offset(self, log: Log) -> None:
        """A log that was cut below what DeleteRecords had said is empty now. Left as it is, the start offset would hide what is
        appended next after a crash.
        """
        if log.start_offset < log.end_offset:
            return
        topic_partition = TopicPartition(log.topic, log.partition)
        with self._writing:
            if self.start_offsets.get(topic_partition, 0) > log.start_offset:
                self.start_offsets[topic_partition] = log.start_offset
                self._write(checkpoints.LOG_START_OFFSET_CHECKPOINT, self.start_offsets)

    # --- the files

    def _write_recovery_points(self, recovery_points: dict[TopicPartition, int]) -> None:
        self._write(checkpoints.RECOVERY_POINT_CHECKPOINT, recovery_points)
        # What was lowered must not come back with the old file.
        self._disk.sync_directory(self._directory)
        # Not before: where this fails, the old ones are still on the device.
        self.recovery_points = recovery_points

    def _write(self, name: str, offsets: Mapping[TopicPartition, int]) -> None:
        checkpoints.write_offsets(self._disk, f"{self._directory}/{name}", offsets)

    def _read(self, name: str) -> dict[TopicPartition, int]:
        try:
            return checkpoints.read_offsets(self._disk, f"{self._directory}/{name}")
        except checkpoints.CorruptCheckpoint:
            self.is_whole = False
            return {}
