"""Strays: logs that a cluster's metadata does not place where they are. Found on all brokers, or in one directory; and what it
takes to make a topic of them again.

Brokers tell of them by DescribeLogDirs, in a field of Penstock's. A topic is restored by making it with its id, on the brokers
that have its strays, above the leader epochs that they know: each broker then takes its own back. How many partitions it had
nobody says any more: where a broker that comes later has strays of further ones, the topic grows by them.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import Any, Final, NamedTuple

from penstock.cli.cluster_client import ClusterClient, refused
from penstock.cli.failures import Refused, UserError
from penstock.cli.logs.units import count_text
from penstock.cli.wire_client import UnsupportedByBroker
from penstock.config.topic_options import KEEP_ALL
from penstock.model.errors import ErrorCode
from penstock.model.ids import NO_ID, id_text
from penstock.model.internal_topics import CONSUMER_OFFSETS, TRANSACTION_STATE
from penstock.runtime.files import OsDisk
from penstock.storage.strays import list_strays, measure
from penstock.wire.messages.create_partitions import (
    CreatePartitionsAssignment,
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopic,
    CreatePartitionsTopicResult,
)
from penstock.wire.messages.create_partitions import PenstockRestored as RestoredPartitions
from penstock.wire.messages.create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
    CreateTopicsResponse,
    PenstockRestored,
)
from penstock.wire.messages.describe_log_dirs import DescribeLogDirsRequest, DescribeLogDirsResponse
from penstock.wire.messages.metadata import MetadataResponse, MetadataResponseTopic

TIMEOUT_MS: Final = 30_000
NAMED_AT_MOST: Final = 20
"""In one message."""
INTERNAL_CONFIGS: Final = {"cleanup.policy": "compact", "segment.bytes": "104857600"}


class FoundStray(NamedTuple):
    broker: int | None
    """None: found in a directory, without a broker."""
    log_directory: str
    directory: str
    topic: str
    partition: int
    topic_id: bytes
    size_bytes: int
    start_offset: int
    end_offset: int
    leader_epoch: int
    set_aside_ms: int

    @property
    def reach(self) -> tuple[int, int]:
        """The one with the greatest has all that was ever committed."""
        return self.leader_epoch, self.end_offset

    def as_json(self) -> dict[str, Any]:
        return {**self._asdict(), "topic_id": id_text(self.topic_id)}


def ask_strays(client: ClusterClient) -> list[FoundStray]:
    """Of all brokers that are there; those that are not Penstock's tell of none."""
    found: list[FoundStray] = []
    for node in client.nodes():
        try:
            answer = client.ask_node(node, DescribeLogDirsRequest(topics=[]), DescribeLogDirsResponse)
        except UnsupportedByBroker:
            continue
        found += strays_of(node.node_id, answer)
    return sorted(found, key=lambda one: (one.topic, one.partition, one.broker, one.directory))


def strays_of(broker: int, answer: DescribeLogDirsResponse) -> list[FoundStray]:
    """What a broker tells of."""
    return [
        FoundStray(
            broker, directory.log_dir, stray.directory, stray.topic, stray.partition_index,
            stray.topic_id, stray.size_bytes, stray.start_offset, stray.end_offset,
            stray.leader_epoch, stray.set_aside_ms,
        )
        for directory in answer.results
        for stray in directory.penstock_strays
    ]  # fmt: skip


def read_strays(path: str) -> list[FoundStray]:
    """Of one log directory, whether a broker uses it or not."""
    path = os.path.abspath(path)
    if not os.path.isdir(path):
        raise UserError(f"{path} is not a directory")
    disk = OsDisk()
    found = []
    try:
        for stray in list_strays(disk, path):
            extent = measure(disk, stray)
            found.append(
                FoundStray(
                    None, path, stray.name, *stray.topic_partition, stray.topic_id, extent.size_bytes,
                    extent.start_offset, extent.end_offset, extent.leader_epoch, stray.set_aside_ms,
                )
            )  # fmt: skip
    except OSError as error:
        raise UserError(f"cannot read {error.filename}: {error.strerror}") from None
    return sorted(found, key=lambda one: (one.topic, one.partition, one.directory))


class StrayTopic(NamedTuple):
    """The strays of one topic id, and what the cluster has of it."""

    name: str
    topic_id: bytes
    strays: list[FoundStray]
    known_as: str | None
    """The name of the cluster's topic with that id; None: it has none."""
    known_partitions: int

    @property
    def lost(self) -> list[int]:
        """Partitions that the cluster does not have: these strays are all that is left of them."""
        return sorted({stray.partition for stray in self.strays if stray.partition >= self.known_partitions})

    @property
    def partitions(self) -> list[int]:
        return sorted({stray.partition for stray in self.strays})

    @property
    def brokers(self) -> list[int]:
        return sorted({stray.broker for stray in self.strays if stray.broker is not None})

    @property
    def size_bytes(self) -> int:
        return sum(stray.size_bytes for stray in self.strays)


def by_topic(
    strays: Iterable[FoundStray], topics: Iterable[MetadataResponseTopic] = ()
) -> list[StrayTopic]:
    """In the order of their names; `topics` are the cluster's."""
    known = {topic.topic_id: topic for topic in topics}
    found: dict[bytes, StrayTopic] = {}
    for stray in strays:
        if stray.topic_id not in found:
            topic = known.get(stray.topic_id)
            known_as, count = (None, 0) if topic is None else (topic.name, len(topic.partitions))
            found[stray.topic_id] = StrayTopic(stray.topic, stray.topic_id, [], known_as, count)
        found[stray.topic_id].strays.append(stray)
    return sorted(found.values(), key=lambda topic: (topic.name, topic.topic_id))


class Restoration(NamedTuple):
    name: str
    topic_id: bytes
    first_partition: int
    """Above 0: the topic is there, and lacks the partitions from here on."""
    assignments: list[list[int]]
    """By partition: the brokers that have strays of it. Their order is spread, so that each leads its share in the end."""
    leaders: list[int]
    """By partition: the one whose stray goes furthest. It leads until the preferred one has caught up."""
    leader_epoch: int
    missing: list[int]
    """Partitions of which nobody has a stray."""
    end_offsets: list[int]
    brokers: list[int]
    """Those that have strays of it: from what they have the partitions are counted."""

    @property
    def num_partitions(self) -> int:
        return self.first_partition + len(self.assignments)

    @property
    def replicas_text(self) -> str:
        """`3 replicas each`."""
        least, most = (pick(len(brokers) for brokers in self.assignments) for pick in (min, max))
        return f"{count_text(least, 'replica')} each" if least == most else f"{least} to {most} replicas each"


def plan(
    strays: Iterable[FoundStray],
    wanted: str,
    *,
    name: str | None = None,
    partitions: int | None = None,
    topics: Iterable[MetadataResponseTopic] = (),
) -> Restoration:
    """Of the topic with that name or id, or of the partitions that it lacks where it is one of the cluster's `topics`.
    `partitions`: how many it had, where somebody knows. UserError when it cannot be restored."""
    chosen = _choose(strays, wanted)
    first_partition, name = _place(
        chosen, name or chosen[0].topic, is_renamed=name is not None, topics=topics
    )
    by_partition: dict[int, dict[int, FoundStray]] = {}
    for stray in chosen:
        assert stray.broker is not None
        if stray.partition >= first_partition:
            of_partition = by_partition.setdefault(stray.partition, {})
            known = of_partition.get(stray.broker)
            if known is None or known.reach < stray.reach:
                of_partition[stray.broker] = stray
    count = max(by_partition) + 1
    if partitions is not None:
        if partitions < count:
            raise UserError(f"there is a stray of partition {count - 1} of {wanted}: it had {count} or more")
        count = partitions
    brokers = sorted({broker for found in by_partition.values() for broker in found})
    topic_id = chosen[0].topic_id
    assignments: list[list[int]] = []
    leaders: list[int] = []
    ends: list[int] = []
    for index in range(first_partition, count):
        found = by_partition.get(index, {})
        ordered = _spread(sorted(found) or brokers, int.from_bytes(topic_id) + index)
        leader = max(ordered, key=lambda broker: found[broker].reach) if found else ordered[0]
        assignments.append(ordered)
        leaders.append(leader)
        ends.append(found[leader].end_offset if found else 0)
    return Restoration(
        name,
        topic_id,
        first_partition,
        assignments,
        leaders,
        max(max(stray.leader_epoch for stray in chosen), -1) + 1,
        [index for index in range(first_partition, count) if index not in by_partition],
        ends,
        brokers,
    )


def _spread(brokers: list[int], turn: int) -> list[int]:
    """Another one is the first at each turn."""
    start = turn % len(brokers)
    return brokers[start:] + brokers[:start]


def _choose(strays: Iterable[FoundStray], wanted: str) -> list[FoundStray]:
    chosen = [stray for stray in strays if wanted in (stray.topic, id_text(stray.topic_id))]
    if not chosen:
        raise UserError(
            f"no broker has a stray of {wanted}: penstock log strays list shows those that there are"
        )
    ids = sorted({id_text(stray.topic_id) for stray in chosen})
    if len(ids) > 1:
        raise UserError(
            f"{wanted} is the name of several topics: give the id of one of them ({', '.join(ids)})"
        )
    return chosen


def _place(
    chosen: list[FoundStray], name: str, *, is_renamed: bool, topics: Iterable[MetadataResponseTopic]
) -> tuple[int, str]:
    """The first partition that has to be made, and the topic's name."""
    by_id = {topic.topic_id: topic for topic in topics}
    known = by_id.get(chosen[0].topic_id)
    if known is not None:
        if is_renamed and known.name != name:
            raise UserError(f"the cluster has this topic, as {known.name}: leave --as out")
        count = len(known.partitions)
        if all(stray.partition < count for stray in chosen):
            raise UserError(_nothing_lacks(known.name or "", chosen))
        return count, known.name or ""
    if any(topic.name == name for topic in by_id.values()):
        raise UserError(
            f"another topic is called {name}: delete it first, or restore under another name with --as"
        )
    return 0, name


def _nothing_lacks(name: str, chosen: list[FoundStray]) -> str:
    named = ", ".join(
        f"{stray.topic}-{stray.partition} on broker {stray.broker}" for stray in chosen[:NAMED_AT_MOST]
    )
    more = " …" if len(chosen) > NAMED_AT_MOST else ""
    return (
        f"the cluster has this topic, as {name}, with these partitions on other brokers: nothing is restored. A stray may "
        f"hold records that the topic lacks: keep it unless you know better ({named}{more})"
    )


def brokers_away(described: MetadataResponse) -> list[int]:
    """As far as the metadata knows of them: those that keep partitions and are not there."""
    placed = {id for topic in described.topics for one in topic.partitions for id in one.replica_nodes}
    return sorted(placed.difference(one.node_id for one in described.brokers))


def restored_configs(name: str, given: Mapping[str, str]) -> dict[str, str]:
    """Those of a topic were in the metadata that is lost: where none are given, it keeps all records."""
    assumed = INTERNAL_CONFIGS if name in (CONSUMER_OFFSETS, TRANSACTION_STATE) else KEEP_ALL
    return {**assumed, **given}


def restore(client: ClusterClient, planned: Restoration, configs: Mapping[str, str]) -> None:
    """Refused when the controller refuses."""
    if planned.first_partition:
        _restore_partitions(client, planned)
    else:
        _restore_topic(client, planned, configs)


def _restore_topic(client: ClusterClient, planned: Restoration, configs: Mapping[str, str]) -> None:
    topic = CreatableTopic(
        name=planned.name,
        num_partitions=-1,
        replication_factor=-1,
        assignments=[
            CreatableReplicaAssignment(partition_index=index, broker_ids=brokers)
            for index, brokers in enumerate(planned.assignments)
        ],
        configs=[CreatableTopicConfig(name=name, value=value) for name, value in configs.items()],
        penstock_restored=[
            PenstockRestored(
                topic_id=planned.topic_id, leader_epoch=planned.leader_epoch, leaders=planned.leaders
            )
        ],
    )
    answer = client.ask_controller(
        CreateTopicsRequest(topics=[topic], timeout_ms=TIMEOUT_MS),
        CreateTopicsResponse,
        codes=lambda answered: [one.error_code for one in answered.topics],
        timeout_s=TIMEOUT_MS / 1000,
    )
    (result,) = answer.topics
    if result.error_code != ErrorCode.NONE:
        raise refused(result.error_code, result.error_message)
    if result.topic_id != planned.topic_id:
        raise Refused(
            f"the controller gave {planned.name} another id: it is of a version that cannot restore"
        )


def _restore_partitions(client: ClusterClient, planned: Restoration) -> None:
    # A controller that does not know what restoring is would make new partitions: what it says to an id that is none tells.
    if _grow(client, planned, NO_ID, validate_only=True).error_code != ErrorCode.INCONSISTENT_TOPIC_ID:
        raise Refused("the controller is of a version that cannot restore partitions")
    result = _grow(client, planned, planned.topic_id, validate_only=False)
    if result.error_code != ErrorCode.NONE:
        raise refused(result.error_code, result.error_message)


def _grow(
    client: ClusterClient, planned: Restoration, topic_id: bytes, *, validate_only: bool
) -> CreatePartitionsTopicResult:
    topic = CreatePartitionsTopic(
        name=planned.name,
        count=planned.num_partitions,
        assignments=[CreatePartitionsAssignment(broker_ids=brokers) for brokers in planned.assignments],
        penstock_restored=[
            RestoredPartitions(topic_id=topic_id, leader_epoch=planned.leader_epoch, leaders=planned.leaders)
        ],
    )
    answer = client.ask_controller(
        CreatePartitionsRequest(topics=[topic], timeout_ms=TIMEOUT_MS, validate_only=validate_only),
        CreatePartitionsResponse,
        codes=lambda answered: [one.error_code for one in answered.results],
        timeout_s=TIMEOUT_MS / 1000,
    )
    (result,) = answer.results
    return result
