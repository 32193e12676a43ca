"""What is known of a group: frozen, however it was asked for."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from penstock.client.errors import Refused
from penstock.model.ids import TopicPartition, by_topic

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


def assignment_text(partitions: Iterable[TopicPartition]) -> str:
    """`orders:0,1;pay:0`, and `-` for nothing."""
    topics = by_topic(sorted(partitions))
    shown = [f"{topic}:{','.join(map(str, numbers))}" for topic, numbers in topics.items()]
    return ";".join(sorted(shown)) or "-"
