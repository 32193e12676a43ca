"""cleaner-offset-checkpoint: up to which offset each log of a directory is clean.

If it is lost, the whole log is cleaned again. If it were too high, records would count as clean that are not. So when a log is
truncated, this offset is lowered before anything is appended. It is also lowered when a log is opened and turns out to be
shorter.
"""

from collections.abc import Collection

from penstock.model.ids import TopicPartition
from penstock.runtime.files import Disk
from penstock.runtime.locks import DeviceLock
from penstock.storage import checkpoints


class CleanerOffsets:
    __slots__ = ("_directory", "_disk", "_offsets", "_writing", "problem")

    def __init__(self, disk: Disk, directory: str) -> None:
        self._disk = disk
        self._directory = directory
        self._writing = DeviceLock("the cleaner's offsets")
        self.problem: str | None = None
        """Why nothing is known although there is a file."""
        try:
            self._offsets = checkpoints.read_offsets(disk, self._path)
        except checkpoints.CorruptCheckpoint as error:
            self._offsets = {}
            self.problem = str(error)

    @property
    def _path(self) -> str:
        return f"{self._directory}/{checkpoints.CLEANER_CHECKPOINT}"

    def get(self, topic_partition: TopicPartition) -> int | None:
        return self._offsets.get(topic_partition)

    def set(self, topic_partition: TopicPartition, offset: int) -> None:
        """Known at once; lasting after the next `write`."""
        self._offsets[topic_partition] = offset

    def lower(self, topic_partition: TopicPartition, end_offset: int) -> None:
        """The log ends there now. On the device when this returns, if it changed anything."""
        if self._offsets.get(topic_partition, -1) > end_offset:
            self.set(topic_partition, end_offset)
            self.write()
            self._disk.sync_directory(self._directory)

    def forget(self, topic_partitions: Collection[TopicPartition]) -> None:
        """Their logs are gone: another one of the same name has nothing clean in it."""
        found = [known for known in topic_partitions if known in self._offsets]
        if found:
            for topic_partition in found:
                self._offsets.pop(topic_partition, None)
            self.write()

    def write(self) -> None:
        with self._writing:
            checkpoints.write_offsets(self._disk, self._path, self._offsets.copy())
