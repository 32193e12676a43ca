"""The small text files at the top of a log directory.

Offset checkpoints (recovery points, high watermarks, log start offsets, cleaner positions) share one form:

    0              version
    2              entries
    orders 0 1500  topic, partition, offset
    orders 1 0
"""

from collections.abc import Mapping

from penstock.model.ids import TopicPartition, id_from_text, id_text
from penstock.runtime.files import Disk, write_atomically

RECOVERY_POINT_CHECKPOINT = "recovery-point-offset-checkpoint"
HIGH_WATERMARK_CHECKPOINT = "replication-offset-checkpoint"
LOG_START_OFFSET_CHECKPOINT = "log-start-offset-checkpoint"
CLEANER_CHECKPOINT = "cleaner-offset-checkpoint"


class CorruptCheckpoint(ValueError):
    """A file of this directory that cannot be understood."""


def read_offsets(disk: Disk, path: str) -> dict[TopicPartition, int]:
    """Empty when the file is missing; CorruptCheckpoint when it is not a checkpoint."""
    try:
        lines = disk.read(path).decode("utf-8").split("\n")
    except FileNotFoundError:
        return {}
    except UnicodeDecodeError as error:
        raise CorruptCheckpoint(f"{path} is not text") from error
    if lines == [""]:
        return {}  # Kafka creates its checkpoints empty
    try:
        if lines[0] != "0" or len(lines) < 2 or int(lines[1]) != len(lines) - 3:
            raise ValueError
        offsets = {}
        for line in lines[2:-1]:
            topic, partition, offset = line.split(" ")
            offsets[TopicPartition(topic, int(partition))] = int(offset)
    except ValueError:
        raise CorruptCheckpoint(f"{path} is not an offset checkpoint") from None
    return offsets


def write_offsets(disk: Disk, path: str, offsets: Mapping[TopicPartition, int], *, sync: bool = True) -> None:
    lines = ["0", str(len(offsets))]
    lines += [f"{topic} {partition} {offset}" for (topic, partition), offset in offsets.items()]
    write_atomically(disk, path, ("\n".join(lines) + "\n").encode(), sync=sync)


def read_properties(disk: Disk, path: str) -> dict[str, str] | None:
    """name=value lines, `#` comments skipped; None when the file is missing."""
    try:
        text = disk.read(path).decode("utf-8")
    except FileNotFoundError:
        return None
    except UnicodeDecodeError as error:
        raise CorruptCheckpoint(f"{path} is not text") from error
    properties = {}
    for line in text.splitlines():
        name, equals, value = line.partition("=")
        if equals and not line.startswith("#"):
            properties[name.strip()] = value.strip()
    return properties


def write_properties(disk: Disk, path: str, properties: Mapping[str, str], *, sync: bool = True) -> None:
    text = "".join(f"{name}={value}\n" for name, value in properties.items())
    write_atomically(disk, path, text.encode(), sync=sync)


def read_topic_id(disk: Disk, path: str) -> bytes | None:
    """The topic id of a partition.metadata file; None when there is none."""
    try:
        lines = disk.read(path).decode("ascii").splitlines()
    except FileNotFoundError:
        return None
    except UnicodeDecodeError as error:
        raise CorruptCheckpoint(f"{path} is not text") from error
    fields = dict(line.split(": ", 1) for line in lines if ": " in line)
    try:
        return id_from_text(fields["topic_id"])
    except (KeyError, ValueError):
        raise CorruptCheckpoint(f"{path} holds no topic id") from None


def write_topic_id(disk: Disk, path: str, topic_id: bytes) -> None:
    write_atomically(disk, path, f"version: 0\ntopic_id: {id_text(topic_id)}".encode())
