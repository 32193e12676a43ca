"""What a directory is: a whole log directory, or one partition's."""

import fcntl
import os
from typing import NamedTuple

from penstock.client.errors import UserError
from penstock.model.ids import TopicPartition
from penstock.storage import names
from penstock.storage.log_directory import LOCK
from penstock.storage.meta_properties import META_PROPERTIES


class LogPlace(NamedTuple):
    """One partition's directory."""

    path: str
    topic_partition: TopicPartition


class Place(NamedTuple):
    """What lies at a path: a broker's data directory, or one partition of it."""

    path: str
    is_log_directory: bool
    """False: `path` is one partition's directory."""
    logs: list[LogPlace]
    is_in_use: bool
    """A broker holds it now."""

    @property
    def log_directory(self) -> str:
        return self.path if self.is_log_directory else os.path.dirname(self.path)


def look_at(path: str) -> Place:
    """UserError when there is no such directory, or nothing of a log in it."""
    path = os.path.abspath(path)
    if not os.path.isdir(path):
        raise UserError(f"{path} is not a directory")
    partition = names.partition_of(os.path.basename(path))
    try:
        entries = os.listdir(path)
        holds_segments = any(names.offset_of(name, names.LOG_SUFFIX) is not None for name in entries)
        if partition is not None and (holds_segments or META_PROPERTIES not in entries):
            logs = [LogPlace(path, TopicPartition(*partition))]
            return Place(path, False, logs, is_locked(os.path.dirname(path)))
        logs = [
            LogPlace(os.path.join(path, name), TopicPartition(*found))
            for name in entries
            if (found := names.partition_of(name)) and os.path.isdir(os.path.join(path, name))
        ]
    except OSError as error:
        raise UserError(f"cannot read {error.filename}: {error.strerror}") from None
    if not logs and META_PROPERTIES not in entries:
        raise UserError(f"{path} is neither a broker's data directory nor a partition's")
    logs.sort(key=lambda log: log.topic_partition)
    return Place(path, True, logs, is_locked(path))


def is_locked(log_directory: str) -> bool:
    """Whether a broker holds the directory: ours with one kind of lock, Apache Kafka with the other."""
    try:
        fd = os.open(os.path.join(log_directory, LOCK), os.O_RDWR | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
        fcntl.lockf(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return True
    finally:
        os.close(fd)
    return False
