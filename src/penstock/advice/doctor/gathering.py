"""Facts of a cluster, by a few batched questions to each broker, at two looks with a pause between.

What cannot be asked (a broker that does not answer, a login that may not see it) is left out and told; it stops nothing else. No
broker is asked for more than `MAX_GROUPS` groups. Nothing is changed and no record is read.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Final, NamedTuple

from penstock.admin.configs import BROKER, SOURCE_NAMES, config_entries, describe_configs, topics_configs
from penstock.admin.health import MIN_ISR, Health, judge
from penstock.admin.health import examine as examine_health
from penstock.admin.offsets import EARLIEST, LATEST, MAX_TIMESTAMP
from penstock.advice.doctor.facts import (
    BrokerFacts,
    DirectoryFacts,
    Facts,
    GroupFacts,
    PartitionFacts,
    ReplicaFacts,
    ServiceFacts,
    Setting,
    TopicFacts,
)
from penstock.advice.doctor.group_offsets import committed_of_groups, consumer_groups
from penstock.client.clients import Connection
from penstock.client.cluster_client import BrokerNode, ClusterClient
from penstock.client.error_names import refused
from penstock.client.errors import Refused, Unreachable
from penstock.client.leaders import Leader, offset_requests, offsets_in
from penstock.client.reach import parse_addresses
from penstock.client.wire_client import UnsupportedByBroker
from penstock.model.endpoints import Address
from penstock.model.ids import TopicPartition
from penstock.wire.messages.describe_log_dirs import DescribeLogDirsRequest, DescribeLogDirsResponse
from penstock.wire.messages.list_offsets import ListOffsetsResponse
from penstock.wire.messages.metadata import MetadataRequest, MetadataResponse, MetadataResponseBroker

LOOK_S: Final = 6.0
"""A little more than consumers take between two commits."""
PROBE_TIMEOUT_S: Final = 4.0
PROBES_AT_ONCE: Final = 16
MAX_GROUPS: Final = 10_000
OWN_SOURCES: Final = frozenset(
    number for number, name in SOURCE_NAMES.items() if name.startswith("DYNAMIC_") and "BROKER" not in name
)
TOPIC_CONFIGS: Final = [
    "cleanup.policy", "max.message.bytes", "message.timestamp.type", "min.insync.replicas", "retention.bytes",
    "retention.ms", "segment.bytes", "segment.ms", "unclean.leader.election.enable",
]  # fmt: skip

Tell = Callable[[str], None]


class Offsets(NamedTuple):
    """At one look."""

    offset: int
    timestamp_ms: int


class Watch(NamedTuple):
    """How time passes between the looks; tests put theirs in."""

    look_s: float = LOOK_S
    """0: one look, and nothing about rates."""
    pause: Callable[[float], None] = time.sleep
    monotonic: Callable[[], float] = time.monotonic
    now_s: Callable[[], float] = time.time


def gather(
    connection: Connection,
    *,
    watch: Watch | None = None,
    services: Iterable[ServiceFacts] = (),
    tell: Tell = lambda sentence: None,
) -> Facts:
    """Facts whose `unreachable` says why, where no broker answers."""
    members = tuple(services)
    try:
        with ClusterClient(connection, timeout_s=PROBE_TIMEOUT_S) as client:
            return _Gathering(connection, client, tell).facts(watch or Watch())._replace(services=members)
    except (Unreachable, Refused) as error:
        return Facts(None, services=members, unreachable=str(error).rstrip("."))


class _Gathering:
    """One examination: what is asked, over one client."""

    def __init__(self, connection: Connection, client: ClusterClient, tell: Tell) -> None:
        self._connection = connection
        self._client = client
        self._tell = tell
        self._unseen: dict[str, None] = {}
        self._nodes: dict[int, BrokerNode] = {}

    def facts(self, watch: Watch) -> Facts:
        self._tell("asking who is there")
        described = self._client.metadata()
        brokers = self._brokers(described)
        self._nodes = {
            one.id: BrokerNode(one.id, one.host, one.port) for one in brokers if one.problem is None
        }
        topics = self._topics(described)
        health = self._health(described, topics)
        self._tell("asking for groups and their offsets")
        groups = self._listed_groups()
        first_ms, first_s = watch.now_s() * 1000, watch.monotonic()
        before = self._look(described, groups) if watch.look_s > 0 else None
        if before is not None:
            self._tell(f"watching for {watch.look_s:.0f} s")
            watch.pause(watch.look_s)
        between_s = watch.monotonic() - first_s if before is not None else 0.0
        now = self._look(described, groups)
        starts = self._offsets(described, EARLIEST)
        newest = self._offsets(described, MAX_TIMESTAMP)
        last_ms = watch.now_s() * 1000
        return Facts(
            health,
            tuple(brokers),
            tuple(topics),
            tuple(_partitions(described, starts, before.ends if before else {}, now.ends, newest)),
            tuple(_replicas(now.directories, before.directories if before else {})),
            tuple(_directories(now.directories)),
            tuple(_groups(groups, before.committed if before else None, now.committed)),
            bootstrap_hosts=tuple(one.host for one in parse_addresses(self._connection.bootstrap)),
            between_s=max(between_s, 1e-6) if before is not None else 0.0,
            first_look_ms=int(first_ms),
            last_look_ms=int(last_ms),
            unseen=tuple(self._unseen),
        )

    @contextmanager
    def _allowed(self, what: str) -> Iterator[None]:
        """What is refused or not answered is noted, and left out."""
        try:
            yield
        except (Refused, Unreachable) as error:
            self._unseen.setdefault(f"{what}: {str(error).rstrip('.')}")

    def _brokers(self, described: MetadataResponse) -> list[BrokerFacts]:
        with ThreadPoolExecutor(PROBES_AT_ONCE) as threads:
            found = list(threads.map(self._probed, sorted(described.brokers, key=lambda one: one.node_id)))
        asked = []
        for one in found:
            if one.problem is None:
                with self._allowed(f"configs of broker {one.id}"):
                    entries = describe_configs(self._client, BROKER, str(one.id))
                    one = one._replace(settings={entry.name: Setting(entry.value) for entry in entries})
            asked.append(one)
        return asked

    def _probed(self, broker: MetadataResponseBroker) -> BrokerFacts:
        """As a client would reach it; its own word about the cluster."""
        facts = BrokerFacts(broker.node_id, broker.host, broker.port, broker.rack)
        try:
            with self._connection.wire(
                Address(broker.host, broker.port), timeout_s=PROBE_TIMEOUT_S
            ) as client:
                known = client.ask(MetadataRequest(topics=[]), MetadataResponse)
                apis = {
                    one.api_key: (one.min_version, one.max_version) for one in client.api_versions.api_keys
                }
        except (Unreachable, Refused) as error:
            text = str(error).rstrip(".")
            return facts._replace(problem=text.removeprefix(f"cannot reach the broker at {facts.address}: "))
        return facts._replace(cluster_id=known.cluster_id, apis=apis)

    def _topics(self, described: MetadataResponse) -> list[TopicFacts]:
        names = sorted(topic.name or "" for topic in described.topics)
        self._tell(f"asking for the configs of {len(names):,} topics")
        configs: dict[str, dict[str, Setting]] = {}
        with self._allowed("configs of topics"):
            configs = {
                each.resource_name: {
                    entry.name: Setting(entry.value, entry.source in OWN_SOURCES)
                    for entry in config_entries(each)
                }
                for each in topics_configs(self._client, names, TOPIC_CONFIGS)
            }
        return [TopicFacts(name, configs.get(name, {})) for name in names]

    def _health(self, described: MetadataResponse, topics: list[TopicFacts]) -> Health:
        self._tell("asking each broker how it is")
        try:
            return examine_health(self._client)
        except (Refused, Unreachable) as error:
            self._unseen.setdefault(f"what brokers say about themselves: {str(error).rstrip('.')}")
        return judge(described, {one.name: one.number(MIN_ISR) or 1 for one in topics})

    def _listed_groups(self) -> dict[str, str]:
        """State by name."""
        found: dict[str, str] = {}
        for node in self._nodes.values():
            with self._allowed(f"groups of broker {node.node_id}"):
                found |= consumer_groups(self._client, node)
        if len(found) > MAX_GROUPS:
            self._unseen.setdefault(
                f"{len(found) - MAX_GROUPS:,} of {len(found):,} groups: they are too many"
            )
            found = dict(sorted(found.items())[:MAX_GROUPS])
        return found

    def _look(self, described: MetadataResponse, groups: Mapping[str, str]) -> _Look:
        """Committed offsets before the ends: so no group seems to be beyond the end."""
        committed: dict[str, dict[TopicPartition, int]] = {}
        with self._allowed("offsets of groups"):
            committed = committed_of_groups(self._client, self._nodes, groups)
        return _Look(committed, self._offsets(described, LATEST), self._log_dirs())

    def _offsets(self, described: MetadataResponse, when: int) -> dict[TopicPartition, Offsets]:
        """Of each partition that is led by a broker which answers; other partitions are absent."""
        leaders = {
            TopicPartition(topic.name or "", one.partition_index): Leader(one.leader_id)
            for topic in described.topics
            for one in topic.partitions
            if one.leader_id in self._nodes
        }
        found: dict[TopicPartition, Offsets] = {}
        for node_id, request in offset_requests(
            dict.fromkeys(leaders, when), leaders, isolation_level=0
        ).items():
            with self._allowed(f"offsets of broker {node_id}"):
                answer = self._client.ask_node(self._nodes[node_id], request, ListOffsetsResponse)
                found |= {
                    partition: Offsets(one.offset, one.timestamp)
                    for partition, one in offsets_in(answer)
                    if not one.error_code
                }
        return found

    def _log_dirs(self) -> dict[int, DescribeLogDirsResponse]:
        found: dict[int, DescribeLogDirsResponse] = {}
        for node in self._nodes.values():
            with self._allowed(f"log directories of broker {node.node_id}"):
                try:
                    request = DescribeLogDirsRequest(topics=None)
                    answer = self._client.ask_node(node, request, DescribeLogDirsResponse)
                    if answer.error_code:
                        raise refused(answer.error_code)
                    found[node.node_id] = answer
                except UnsupportedByBroker:
                    continue
        return found


class _Look(NamedTuple):
    committed: Mapping[str, Mapping[TopicPartition, int]]
    ends: Mapping[TopicPartition, Offsets]
    directories: Mapping[int, DescribeLogDirsResponse]


def _partitions(
    described: MetadataResponse,
    starts: Mapping[TopicPartition, Offsets],
    ends_before: Mapping[TopicPartition, Offsets],
    ends: Mapping[TopicPartition, Offsets],
    newest: Mapping[TopicPartition, Offsets],
) -> Iterator[PartitionFacts]:
    for topic in sorted(described.topics, key=lambda topic: topic.name or ""):
        for one in sorted(topic.partitions, key=lambda one: one.partition_index):
            place = TopicPartition(topic.name or "", one.partition_index)
            latest = newest.get(place)
            yield PartitionFacts(
                place,
                one.leader_id,
                tuple(one.replica_nodes),
                tuple(one.isr_nodes),
                _offset(starts, place),
                _offset(ends, place),
                _offset(ends_before, place),
                latest.timestamp_ms if latest is not None and latest.timestamp_ms >= 0 else None,
            )


def _offset(found: Mapping[TopicPartition, Offsets], place: TopicPartition) -> int | None:
    known = found.get(place)
    return None if known is None else known.offset


def _replicas(
    now: Mapping[int, DescribeLogDirsResponse], before: Mapping[int, DescribeLogDirsResponse]
) -> Iterator[ReplicaFacts]:
    sizes = {(broker, path, place): size for broker, path, place, size in _sizes(before)}
    for broker, path, place, size in _sizes(now):
        yield ReplicaFacts(broker, path, place, size, sizes.get((broker, path, place)))


def _sizes(
    answers: Mapping[int, DescribeLogDirsResponse],
) -> Iterator[tuple[int, str, TopicPartition, int]]:
    for broker, answer in answers.items():
        for directory in answer.results:
            for topic in directory.topics:
                for one in topic.partitions:
                    place = TopicPartition(topic.name, one.partition_index)
                    yield broker, directory.log_dir, place, one.partition_size


def _directories(answers: Mapping[int, DescribeLogDirsResponse]) -> Iterator[DirectoryFacts]:
    for broker, answer in answers.items():
        for one in answer.results:
            if not one.error_code:
                total = one.total_bytes if one.total_bytes > 0 else None
                yield DirectoryFacts(broker, one.log_dir, total, one.usable_bytes if total else None)


def _groups(
    groups: Mapping[str, str],
    before: Mapping[str, Mapping[TopicPartition, int]] | None,
    now: Mapping[str, Mapping[TopicPartition, int]],
) -> Iterator[GroupFacts]:
    for name, state in sorted(groups.items()):
        if now.get(name):
            yield GroupFacts(name, state, now[name], None if before is None else before.get(name))
