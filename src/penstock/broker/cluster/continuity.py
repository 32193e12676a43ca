"""Whether the logs are intact: whether nothing was lost since this broker was registered last.

A restarted broker normally leaves the in-sync sets, because it may have lost what was not on the disk. But when only its
process ended, the page cache still has everything, and after a clean stop everything is on the disk. Then the broker says so in
its registration: "intact since epoch 17". A file beside the logs holds the last registration and the boot id of the machine at
that time.

In doubt, records count as lost: no file, directories that disagree, a failed directory, a log that is missing or had to be
repaired. There is no file while the logs are being opened: a start that is killed then may have repaired a log, and the next
start would find it intact. The file is not synced. A power failure changes the boot id anyway, and after a clean stop a lost
file only means that the broker leaves the in-sync sets.
"""

import logging
from typing import Final

from penstock.broker.partitions.held_partitions import HeldPartitions
from penstock.broker.partitions.partition import Partition
from penstock.metadata.image import NO_BROKER_EPOCH
from penstock.model.ids import TopicPartition

FILE_NAME: Final = "penstock-registration"

log = logging.getLogger("penstock.broker")


class Continuity:
    def __init__(self, partitions: HeldPartitions, boot_id: str) -> None:
        """Before the logs are opened. `boot_id` is empty where the machine has none."""
        self._partitions = partitions
        self._boot_id = boot_id
        self._is_broken = False
        self._written = self._read()
        self.intact_since = NO_BROKER_EPOCH
        """The epoch of a registration, or NO_BROKER_EPOCH."""
        self._delete_files()

    def logs_opened(self) -> None:
        """Whether they are intact is known now, and a start that comes to nothing after this does not change it."""
        self.intact_since = self._found()
        if self.intact_since != NO_BROKER_EPOCH:
            self._write(self.intact_since)

    def _read(self) -> set[int]:
        """The epochs that the files tell of."""
        epochs = set()
        for directory in self._partitions.log_directories.online:
            try:
                content = self._partitions.disk.read(f"{directory.path}/{FILE_NAME}")
                epoch, _, boot_id = content.partition(b" ")
                is_same_boot = self._boot_id and boot_id.decode() == self._boot_id
                epochs.add(int(epoch) if is_same_boot or directory.clean else NO_BROKER_EPOCH)
            except (OSError, ValueError):
                epochs.add(NO_BROKER_EPOCH)
        return epochs

    def _found(self) -> int:
        if len(self._written) != 1 or self._partitions.log_directories.failed:
            return NO_BROKER_EPOCH
        if any(self._has_lost(partition) for partition in self._partitions):
            return NO_BROKER_EPOCH
        (epoch,) = self._written
        return epoch

    def _has_lost(self, partition: Partition) -> bool:
        """Also if it was made again and a checkpoint names it. Else this broker was not told of it yet, as when a topic is new: a
        clean stop names all logs, and whatever is younger than the last checkpoint is gone only if somebody removed it."""
        report = partition.log.report
        key = TopicPartition(partition.topic, partition.index)
        directories = self._partitions.log_directories.online
        was_here = any(key in each.missing or key in each.high_watermarks for each in directories)
        return bool((report.created and was_here) or report.truncated_bytes or report.removed_segments)

    def registered(self, broker_epoch: int) -> None:
        """As long as the process lives, nothing is lost from here on, unless a disk fails."""
        self.intact_since = broker_epoch
        if self._is_broken:
            self.broke()
            return
        self._write(broker_epoch)

    def _write(self, broker_epoch: int) -> None:
        for directory in self._partitions.log_directories.online:
            try:
                self._partitions.disk.write(
                    f"{directory.path}/{FILE_NAME}", f"{broker_epoch} {self._boot_id}".encode()
                )
            except OSError as error:
                log.warning("cannot write %s/%s: %s", directory.path, FILE_NAME, error)

    def broke(self) -> None:
        """A disk failed: nobody knows what it has kept."""
        self._is_broken = True
        self.intact_since = NO_BROKER_EPOCH
        self._delete_files()

    def _delete_files(self) -> None:
        for path in self._partitions.directories:
            try:
                self._partitions.disk.delete(f"{path}/{FILE_NAME}")
            except OSError as error:
                log.warning("cannot delete %s/%s: %s", path, FILE_NAME, error)
