"""What the checks know of a cluster: plain tuples, gathered by `gathering`, made by hand in tests. What is not known is None
or absent."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from penstock.admin.health import Health
from penstock.model.ids import TopicPartition
from penstock.model.internal_topics import is_internal


class Setting(NamedTuple):
    """A config of a topic or a broker."""

    value: str | None
    is_own: bool = False
    """Somebody set it for this topic (or broker), so it can be changed there."""


class BrokerFacts(NamedTuple):
    id: int
    host: str
    """As it is advertised to us."""
    port: int
    rack: str | None = None
    problem: str | None = None
    """Why it cannot be reached there; None: it can."""
    cluster_id: str | None = None
    """Of the cluster that answers at that address."""
    apis: Mapping[int, tuple[int, int]] = {}
    """By API key: the lowest and the highest version. Empty: not known."""
    settings: Mapping[str, Setting] = {}

    @property
    def address(self) -> str:
        return f"{self.host}:{self.port}"

    def setting(self, name: str) -> str | None:
        found = self.settings.get(name)
        return None if found is None else found.value


class TopicFacts(NamedTuple):
    name: str
    settings: Mapping[str, Setting] = {}

    @property
    def is_internal(self) -> bool:
        return is_internal(self.name)

    def setting(self, name: str) -> str | None:
        found = self.settings.get(name)
        return None if found is None else found.value

    def number(self, name: str) -> int | None:
        value = self.setting(name)
        try:
            return None if value is None else int(value)
        except ValueError:
            return None


class PartitionFacts(NamedTuple):
    partition: TopicPartition
    leader: int
    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    start_offset: int | None = None
    end_offset: int | None = None
    end_before: int | None = None
    """At the first look; None where there was one look only."""
    newest_ms: int | None = None
    """The latest timestamp of a record, at the last look."""

    @property
    def written(self) -> int:
        """Records, between the looks."""
        if self.end_before is None or self.end_offset is None:
            return 0
        return max(0, self.end_offset - self.end_before)


class ReplicaFacts(NamedTuple):
    """One copy of a partition."""

    broker: int
    directory: str
    partition: TopicPartition
    size_bytes: int
    size_before: int | None = None


class DirectoryFacts(NamedTuple):
    broker: int
    path: str
    total_bytes: int | None
    usable_bytes: int | None


class GroupFacts(NamedTuple):
    id: str
    state: str
    committed: Mapping[TopicPartition, int]
    committed_before: Mapping[TopicPartition, int] | None = None

    @property
    def is_empty(self) -> bool:
        return self.state in ("Empty", "Dead")


class ServiceFacts(NamedTuple):
    """A member of a stack of `penstock up`."""

    name: str
    problem: str | None
    data: str
    """The directory of the stack."""


class Facts(NamedTuple):
    health: Health | None
    brokers: tuple[BrokerFacts, ...] = ()
    topics: tuple[TopicFacts, ...] = ()
    partitions: tuple[PartitionFacts, ...] = ()
    replicas: tuple[ReplicaFacts, ...] = ()
    directories: tuple[DirectoryFacts, ...] = ()
    groups: tuple[GroupFacts, ...] = ()
    services: tuple[ServiceFacts, ...] = ()
    bootstrap_hosts: tuple[str, ...] = ()
    between_s: float = 0.0
    """From the first look to the last; 0: there was one only."""
    first_look_ms: int = 0
    """By the clock of the machine that asks."""
    last_look_ms: int = 0
    unseen: tuple[str, ...] = ()
    """What could not be asked, and why."""
    unreachable: str | None = None
    """Why no broker answers at all; all else is empty then."""

    def topic(self, name: str) -> TopicFacts:
        return self._topics().get(name, TopicFacts(name))

    def _topics(self) -> dict[str, TopicFacts]:
        return {topic.name: topic for topic in self.topics}

    def partitions_by_topic(self) -> dict[str, list[PartitionFacts]]:
        found: dict[str, list[PartitionFacts]] = {}
        for one in self.partitions:
            found.setdefault(one.partition.topic, []).append(one)
        return found

    def of_users(self) -> list[tuple[TopicFacts, list[PartitionFacts]]]:
        """Topics that are not Kafka's own, with their partitions, by name."""
        known = self._topics()
        return [
            (known.get(name, TopicFacts(name)), parts)
            for name, parts in sorted(self.partitions_by_topic().items())
            if not is_internal(name)
        ]
