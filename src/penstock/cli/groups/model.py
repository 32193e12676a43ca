"""What the commands know of a group, however it was asked for."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple, Protocol

from penstock.cli.failures import Refused
from penstock.model.ids import TopicPartition

LATEST, EARLIEST = -1, -2

# As ListGroups and the describing APIs write them, for groups of consumers.
STATES = (
    "PreparingRebalance",
    "CompletingRebalance",
    "Stable",
    "Dead",
    "Empty",
    "Assigning",
    "Reconciling",
)
REBALANCING_STATES = frozenset({"PreparingRebalance", "CompletingRebalance", "Assigning", "Reconciling"})
INACTIVE_STATES = frozenset({"Empty", "Dead"})
TYPES = ("Classic", "Consumer")
CONSUMER_PROTOCOLS = frozenset({"", "consumer"})


class Listing(NamedTuple):
    group_id: str
    type: str
    state: str
    protocol: str

    @property
    def is_of_consumers(self) -> bool:
        """Not of Connect workers, share consumers or streams: those have protocols of their own."""
        return self.protocol in CONSUMER_PROTOCOLS and self.type in ("", *TYPES)


class Coordinator(NamedTuple):
    node_id: int
    host: str
    port: int

    def __str__(self) -> str:
        return f"{self.host}:{self.port}"


class Member(NamedTuple):
    member_id: str
    instance_id: str
    client_id: str
    host: str
    assignment: list[TopicPartition]
    target: list[TopicPartition] | None = None
    """What it shall have in the end; None where the protocol knows no target."""
    epoch: int | None = None
    is_upgraded: bool | None = None
    """In a consumer group: whether the member itself speaks the new protocol. None in a classic group."""


class Description(NamedTuple):
    group_id: str
    type: str
    state: str
    assignor: str
    coordinator: Coordinator
    members: list[Member]
    group_epoch: int | None = None
    assignment_epoch: int | None = None

    @property
    def is_inactive(self) -> bool:
        return self.state in INACTIVE_STATES


class Committed(NamedTuple):
    offset: int
    leader_epoch: int | None


class DeletedOffsets(NamedTuple):
    error: Refused | None
    """What was wrong with the request as a whole."""
    partitions: dict[TopicPartition, Refused | None]


class Groups(Protocol):
    """A cluster's groups. Every call may raise Refused, Unreachable or UserError."""

    def listing(self, *, states: Iterable[str] = (), types: Iterable[str] = ()) -> list[Listing]:
        """Groups of every kind, in the brokers' order; only those of the states and types where some are given."""

    def describe(self, group_ids: Iterable[str]) -> dict[str, Description | Refused]: ...

    def committed(self, group_id: str) -> dict[TopicPartition, Committed]: ...

    def commit(self, group_id: str, offsets: dict[TopicPartition, int]) -> None: ...

    def delete(self, group_ids: Iterable[str]) -> dict[str, Refused | None]: ...

    def delete_offsets(self, group_id: str, partitions: Iterable[TopicPartition]) -> DeletedOffsets: ...

    def partitions(self, topics: Iterable[str]) -> dict[str, list[int]]:
        """Of the topics that are there."""

    def log_offsets(self, partitions: Iterable[TopicPartition], timestamp: int) -> dict[TopicPartition, int]:
        """LATEST, EARLIEST or a time in ms. -1 where nothing is as late; a partition that cannot be asked is left out."""

    def close(self) -> None: ...


def by_topic(partitions: Iterable[TopicPartition]) -> dict[str, list[int]]:
    topics: dict[str, list[int]] = {}
    for topic, partition in partitions:
        topics.setdefault(topic, []).append(partition)
    return topics
