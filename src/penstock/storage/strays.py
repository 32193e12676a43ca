"""Logs that do not belong here by the cluster's metadata: renamed, and never removed by the broker.

    orders-7  →  orders-7.<topic id, 32 hex digits>-stray

Kafka names them so. The metadata may be lost or wrong, and then these files are all that is left of the topic. A stray is taken
back when the metadata counts this broker's replica of that topic id as in sync, under whatever name the topic has then.

`stray.properties` in it keeps what the checkpoints of the log directory knew of the log: the whole name of its topic (a long one
is cut short in the directory's name), where it begins, and up to where it is on the device. Lost, it costs a check of the whole
log, and records that DeleteRecords had hidden are seen again.
"""

from typing import Final, NamedTuple

from penstock.model.errors import ApiError
from penstock.model.ids import TopicPartition
from penstock.runtime.files import Disk
from penstock.storage import checkpoints, names
from penstock.storage.leader_epochs import LeaderEpochs
from penstock.storage.segment import Segment

NOTES: Final = "stray.properties"


class Stray(NamedTuple):
    topic_partition: TopicPartition
    topic_id: bytes
    log_directory: str
    name: str
    """Of its directory."""
    set_aside_ms: int = -1
    """When; -1: not known."""
    start_offset: int = 0
    recovery_point: int = 0
    is_clean: bool = False
    """It was closed properly: its bytes can be believed."""

    @property
    def path(self) -> str:
        return f"{self.log_directory}/{self.name}"


class Extent(NamedTuple):
    """How much a stray holds."""

    size_bytes: int
    """Without what retention has dropped and only waits to be removed."""
    start_offset: int
    end_offset: int
    leader_epoch: int
    """The last one in which something was written; -1: none is known."""


def set_aside(disk: Disk, stray: Stray) -> Stray:
    """Moves the log of a partition out of the way; the stray with the name that it got. `stray.name` is not looked at.

    Where the partition was set aside before with the same topic id, the next free number is taken instead of the id.
    """
    source = f"{stray.log_directory}/{stray.topic_partition}"
    checkpoints.write_properties(
        disk,
        f"{source}/{NOTES}",
        {
            "topic": stray.topic_partition.topic,
            "set.aside.ms": str(stray.set_aside_ms),
            "start.offset": str(stray.start_offset),
            "recovery.point": str(stray.recovery_point),
            "clean": "true" if stray.is_clean else "false",
        },
        sync=False,
    )
    number = int.from_bytes(stray.topic_id)
    while True:
        name = names.stray_directory_name(str(stray.topic_partition), number.to_bytes(16))
        if not disk.exists(f"{stray.log_directory}/{name}"):
            break
        number = (number + 1) % (1 << 128)
    disk.replace(source, f"{stray.log_directory}/{name}")
    return stray._replace(name=name)


def list_strays(disk: Disk, log_directory: str) -> list[Stray]:
    found = (_read(disk, log_directory, name) for name in disk.list_directories(log_directory))
    return [stray for stray in found if stray is not None]


def id_of_unnamed(topic_partition: TopicPartition, now_ms: int) -> bytes:
    """For a log of a Kafka before 2.8, which has no topic id."""
    from xxhash import xxh3_128_digest  # hardly ever needed; hashlib would bring OpenSSL into every broker

    return bytes(xxh3_128_digest(f"{topic_partition} {now_ms}".encode()))


def _read(disk: Disk, log_directory: str, name: str) -> Stray | None:
    parts = names.stray_of(name)
    if parts is None:
        return None
    topic, partition, unique = parts
    path = f"{log_directory}/{name}"
    try:
        topic_id = checkpoints.read_topic_id(disk, f"{path}/{names.PARTITION_METADATA}")
    except checkpoints.CorruptCheckpoint:
        topic_id = None
    try:
        notes = checkpoints.read_properties(disk, f"{path}/{NOTES}") or {}
    except checkpoints.CorruptCheckpoint:
        notes = {}
    return Stray(
        TopicPartition(notes.get("topic") or topic, partition),
        topic_id or unique,
        log_directory,
        name,
        set_aside_ms=_number(notes, "set.aside.ms", -1),
        start_offset=_number(notes, "start.offset", 0),
        recovery_point=_number(notes, "recovery.point", 0),
        is_clean=notes.get("clean") == "true",
    )


def _number(notes: dict[str, str], name: str, default: int) -> int:
    try:
        return int(notes[name])
    except (KeyError, ValueError):
        return default


def measure(disk: Disk, stray: Stray) -> Extent:
    """Reads the headers at the end of it: not for the event loop. OSError when it is not there any more."""
    sizes = {
        name: size for name, size in disk.list_files(stray.path) if not name.endswith(names.DELETED_SUFFIX)
    }
    bases = sorted(base for name in sizes if (base := names.offset_of(name, names.LOG_SUFFIX)) is not None)
    epochs = LeaderEpochs(disk, f"{stray.path}/{names.LEADER_EPOCH_CHECKPOINT}")
    epochs.load()
    start_offset = end_offset = max([stray.start_offset, *bases[:1]])
    if bases:
        segment = Segment(
            disk, stray.path, bases[-1], created_ms=0,
            size_bytes=sizes[f"{bases[-1]:020d}{names.LOG_SUFFIX}"],
            index_size=sizes.get(f"{bases[-1]:020d}{names.OFFSET_INDEX_SUFFIX}", 0),
            time_index_size=sizes.get(f"{bases[-1]:020d}{names.TIME_INDEX_SUFFIX}", 0),
        )  # fmt: skip
        end_offset = max(end_offset, _end_offset(segment))
    return Extent(sum(sizes.values()), start_offset, end_offset, epochs.latest)


def _end_offset(segment: Segment) -> int:
    try:
        return segment.reload_tail()
    except (ApiError, ValueError, OSError):
        pass  # the index is not in order, or the tail is torn: all headers up to there
    end_offset = segment.base_offset
    try:
        for _, header in segment.headers():
            end_offset = header.last_offset + 1
    except ApiError:
        pass
    return end_offset
