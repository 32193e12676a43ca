"""What is known of a cluster at one look ◇. Nothing in here changes once it is made, so pages and threads may share it."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from penstock.admin.health import Health
from penstock.model.ids import TopicPartition

SPARK_PREFIX: Final = "penstock-spark-"
STOCK_SPARK_PREFIX: Final = "spark-kafka-source-"
CONNECT_PREFIX: Final = "connect-"
SPARK_MARKERS: Final = "__penstock_spark_batches"
"""The topic in which exactly-once queries note their batches, as offsets of their groups: a number of batches, not a place."""


class GroupKind(enum.Enum):
    """What a group is, for people. The values are the last parts of the words' keys."""

    CLASSIC = "classic"
    CONSUMER = "consumer"
    SHARE = "share"
    STREAMS = "streams"
    SPARK = "spark"
    CONNECT_SINK = "connect_sink"
    CONNECT_WORKERS = "connect_workers"
    OFFSETS_ONLY = "offsets_only"
    OTHER = "other"


def kind_of(group: str, *, type_name: str, protocol: str, state: str) -> GroupKind:
    """By what ListGroups says, and by the names that Spark and Connect give their groups.

    >>> kind_of("penstock-spark-totals", type_name="Classic", protocol="", state="Empty")
    <GroupKind.SPARK: 'spark'>
    """
    if group.startswith((SPARK_PREFIX, STOCK_SPARK_PREFIX)):
        return GroupKind.SPARK
    if protocol == "connect":
        return GroupKind.CONNECT_WORKERS
    named = {"share": GroupKind.SHARE, "streams": GroupKind.STREAMS}.get(type_name.lower())
    if named is not None:
        return named
    if group.startswith(CONNECT_PREFIX):
        return GroupKind.CONNECT_SINK
    if type_name.lower() == "consumer":
        return GroupKind.CONSUMER
    if protocol == "consumer":
        return GroupKind.CLASSIC
    if not protocol:
        return GroupKind.OFFSETS_ONLY if state == "Empty" else GroupKind.CLASSIC
    return GroupKind.OTHER


class BrokerRow(NamedTuple):
    id: int
    host: str
    port: int
    rack: str | None
    is_controller: bool
    partitions: int
    leaders: int
    size_bytes: int | None
    """Of all logs. None: it has not been asked, or does not say."""
    disk_total_bytes: int | None
    disk_usable_bytes: int | None
    answers: bool
    """False: it did not answer in the last look."""


class PartitionRow(NamedTuple):
    number: int
    leader: int
    leader_epoch: int
    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    start_offset: int | None
    end_offset: int | None
    size_bytes: int | None
    """Of the leader's log."""
    per_second: float | None
    """Records."""

    @property
    def is_offline(self) -> bool:
        return self.leader < 0

    @property
    def is_under_replicated(self) -> bool:
        return len(self.isr) < len(self.replicas)


class TopicRow(NamedTuple):
    name: str
    topic_id: str
    is_internal: bool
    partitions: tuple[PartitionRow, ...]
    replication_factor: int
    records: int | None
    """From the first offset to the last: fewer where the topic is compacted or has transactions."""
    size_bytes: int | None
    """Of the leaders' logs."""
    per_second: float | None
    offline: int
    under_replicated: int


class GroupPartition(NamedTuple):
    """How far a group is in a partition."""

    partition: TopicPartition
    committed: int | None
    """None: nothing."""
    end_offset: int | None
    lag: int | None
    """Records. None: the partition cannot be asked, or its offset is no place in a log."""
    lag_s: float | None
    """How old the oldest record is that has not been read. None: not known yet."""


class GroupRow(NamedTuple):
    name: str
    kind: GroupKind
    state: str
    type_name: str
    protocol: str
    coordinator: int
    members: int | None
    """None: nobody has asked yet."""
    partitions: tuple[GroupPartition, ...]
    topics: tuple[str, ...]
    lag: int | None
    """The sum of what is known."""
    lag_s: float | None
    """Of the partition that is furthest behind."""
    per_second: float | None
    """Records that it committed."""
    error: str = ""
    """Why its offsets could not be asked."""


class Totals(NamedTuple):
    """Of the whole cluster. None: not known, or not yet."""

    records_in: float | None = None
    records_out: float | None = None
    """What groups committed, per second."""
    bytes_in: float | None = None
    bytes_out: float | None = None
    requests: float | None = None
    lag: int | None = None
    lag_s: float | None = None


@dataclass(frozen=True, kw_only=True)
class ClusterView:
    at_s: float
    """Unix time."""
    took_s: float
    requests: int
    """How many questions this look asked."""
    cluster_id: str | None
    controller: int | None
    brokers: tuple[BrokerRow, ...]
    topics: Mapping[str, TopicRow]
    groups: Mapping[str, GroupRow]
    readers: Mapping[str, tuple[str, ...]]
    """Of each topic: the groups with offsets in it."""
    health: Health
    totals: Totals
    notes: tuple[str, ...] = ()
    """What could not be asked, and why."""
    by_broker: Mapping[int, Totals] = field(default_factory=dict)
    """As far as brokers have a metrics page."""
