"""What the checkpoints of the log directories are to say: gathered on the loop in steps, written by a thread."""

from collections.abc import Callable, Generator, Iterable
from typing import Final

from penstock.broker.partitions.partition import Partition
from penstock.broker.upkeep.log_directories import LogDirectories
from penstock.model.ids import TopicPartition
from penstock.storage.log import Log
from penstock.storage.log_directory import LogDirectory

GATHERED_AT_ONCE: Final = 500
ByDirectory = dict[LogDirectory, tuple[list[Log], dict[TopicPartition, int]]]
"""The logs of a directory, and their high watermarks."""
WriteCheckpoints = Callable[[], list[tuple[str, OSError]]]
"""Returns the directories that could not be written to."""


def gather(partitions: Iterable[Partition], directories: LogDirectories) -> ByDirectory:
    """All of them at once."""
    found = _nothing(directories)
    for partition in partitions:
        _add(found, partition, directories)
    return found


def gather_in_steps(
    partitions: list[Partition], directories: LogDirectories
) -> Generator[None, None, WriteCheckpoints]:
    """Others may have their turn between the steps."""
    found = _nothing(directories)
    for number, partition in enumerate(partitions, 1):
        _add(found, partition, directories)
        if number % GATHERED_AT_ONCE == 0:
            yield

    def write() -> list[tuple[str, OSError]]:
        failed = []
        for directory, (logs, high_watermarks) in found.items():
            try:
                directory.checkpoint(logs, high_watermarks)
            except OSError as error:
                failed.append((directory.path, error))
        return failed

    return write


def _nothing(directories: LogDirectories) -> ByDirectory:
    return {directory: ([], {}) for directory in directories.online}


def _add(found: ByDirectory, partition: Partition, directories: LogDirectories) -> None:
    topic_partition = TopicPartition(partition.topic, partition.index)
    home = directories.home(topic_partition)
    if home in found:
        logs, high_watermarks = found[home]
        logs.append(partition.log)
        high_watermarks[topic_partition] = partition.high_watermark
