"""The nouns of a reassignment."""

from typing import NamedTuple

from penstock.model.ids import TopicPartition

ANY_LOG_DIR = "any"

Assignment = dict[TopicPartition, list[int]]
"""The brokers that keep each partition, the preferred leader first."""


class Replica(NamedTuple):
    """One broker's copy of a partition. In order: by broker, then by partition."""

    broker: int
    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}-{self.broker}"


LogDirs = dict[Replica, str]


class Reassignment(NamedTuple):
    """One that is under way. `replicas` holds those that are being added and those that will go, too."""

    replicas: list[int]
    adding: list[int]
    removing: list[int]

    @property
    def origin(self) -> list[int]:
        return [broker for broker in self.replicas if broker not in self.adding]

    @property
    def target(self) -> list[int]:
        return [broker for broker in self.replicas if broker not in self.removing]


class LogDirMove(NamedTuple):
    """Where a replica is, and where it is moving within its broker."""

    current: str | None
    future: str | None


class Request(NamedTuple):
    """What a reassignment file asks for, entry by entry: duplicates are still there to be complained about."""

    partitions: list[tuple[TopicPartition, list[int]]]
    log_dirs: LogDirs
