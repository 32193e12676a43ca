"""Topics are made again of their strays: with their ids, on the brokers that have the strays, above the leader epochs that they
know. Each broker then takes its own back. How many partitions a topic had nobody says any more: where a broker that comes later
has strays of further ones, the topic grows by them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final, NamedTuple

from penstock.admin.strays import StrayTopic
from penstock.client.cluster_client import ClusterClient
from penstock.client.error_names import refused
from penstock.client.errors import Refused, UserError
from penstock.config.topic_options import KEEP_ALL
from penstock.model.errors import ErrorCode
from penstock.model.ids import NO_ID, id_text
from penstock.model.internal_topics import CONSUMER_OFFSETS, TRANSACTION_STATE, is_internal
from penstock.model.strays import FoundStray
from penstock.model.units import count_text
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
from penstock.wire.messages.metadata import MetadataResponse, MetadataResponseTopic

TIMEOUT_MS: Final = 30_000
NAMED_AT_MOST: Final = 20
"""In one message."""
INTERNAL_CONFIGS: Final = {"cleanup.policy": "compact", "segment.bytes": "104857600"}


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

    def as_json(self) -> dict[str, Any]:
        return {
            "topic": self.name,
            "topic_id": id_text(self.topic_id),
            "first_partition": self.first_partition,
            "replicas": self.assignments,
            "leaders": self.leaders,
            "counted_on_brokers": self.brokers,
            "end_offsets": self.end_offsets,
            "missing": self.missing,
        }


def lost_names(topics: Iterable[StrayTopic]) -> list[str]:
    """What there is to restore. Internal topics come first: a consumer that came between its topic and its offsets would begin
    where auto.offset.reset says."""
    names = {topic.name for topic in topics if topic.lost}
    return sorted(names, key=lambda name: (not is_internal(name), name))


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
    chosen = [stray for stray in strays if stray.is_of(wanted)]
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
    topics = list(topics)
    known = next((topic for topic in topics if topic.topic_id == chosen[0].topic_id), None)
    if known is not None:
        if is_renamed and known.name != name:
            raise UserError(f"the cluster has this topic, as {known.name}: leave --as out")
        count = len(known.partitions)
        if all(stray.partition < count for stray in chosen):
            raise UserError(_nothing_lacks(known.name or "", chosen))
        return count, known.name or ""
    if any(topic.name == name for topic in topics):
        raise UserError(_is_taken(name))
    return 0, name


def _is_taken(name: str) -> str:
    if is_internal(name):
        return (
            f"another topic is called {name}: clients have made it anew. Stop them, delete it with penstock topics delete {name} "
            "and restore at once: its old records come back, those of meanwhile are lost"
        )
    return f"another topic is called {name}: delete it first, or restore under another name with --as"


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
    probe = _grow(client, planned, NO_ID, validate_only=True)
    if probe.error_code == ErrorCode.NONE:
        raise Refused("the controller is of a version that cannot restore partitions")
    if probe.error_code != ErrorCode.INCONSISTENT_TOPIC_ID:
        raise refused(probe.error_code, probe.error_message)
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
