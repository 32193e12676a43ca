"""Topics made, grown and deleted, and records deleted, by the protocol's own requests."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from penstock.admin.offsets import LATEST, positions
from penstock.client.cluster_client import ClusterClient
from penstock.client.error_names import refused
from penstock.client.errors import Refused
from penstock.client.patience import Patience
from penstock.model.errors import RETRIABLE, ErrorCode
from penstock.model.ids import TopicPartition
from penstock.wire.messages.create_partitions import (
    CreatePartitionsAssignment,
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopic,
)
from penstock.wire.messages.create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreatableTopicResult,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from penstock.wire.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopic,
)
from penstock.wire.messages.delete_topics import DeleteTopicsRequest, DeleteTopicsResponse, DeleteTopicState

OPERATION_TIMEOUT_S = 30.0
"""How long the controller waits until the brokers have made the change."""
ANSWER_TIMEOUT_S = OPERATION_TIMEOUT_S + 10.0
TO_HIGH_WATERMARK = -1

Assignment = Sequence[Sequence[int]]
"""The brokers of the first partition, of the second, and so on; the preferred leader first."""


class NewTopic(NamedTuple):
    name: str
    partitions: int | None = None
    """None: what the broker has as default, as for the replication factor."""
    replication_factor: int | None = None
    configs: Mapping[str, str | None] = {}
    assignment: Assignment = ()
    """In place of the two numbers."""


class NewPartitions(NamedTuple):
    name: str
    total: int
    """How many the topic has from then on."""
    assignment: Assignment = ()
    """Of the new partitions only."""


def create_topics(
    client: ClusterClient, topics: Iterable[NewTopic], *, validate_only: bool = False
) -> dict[str, Refused | None]:
    """Why each was refused, and None where it was not."""
    results = _asked_to_create(client, topics, validate_only=validate_only)
    return {one.name: _refusal(one.error_code, one.error_message) for one in results}


def would_create(client: ClusterClient, topic: NewTopic) -> NewTopic:
    """The topic with the numbers that it would have; nothing is made. Refused. Numbers that the broker does not tell stay as they
    are."""
    (found,) = _asked_to_create(client, [topic], validate_only=True)
    refusal = _refusal(found.error_code, found.error_message)
    if refusal is not None:
        raise refusal
    return topic._replace(
        partitions=found.num_partitions if found.num_partitions > 0 else topic.partitions,
        replication_factor=found.replication_factor
        if found.replication_factor > 0
        else topic.replication_factor,
    )


def _asked_to_create(
    client: ClusterClient, topics: Iterable[NewTopic], *, validate_only: bool
) -> Sequence[CreatableTopicResult]:
    request = CreateTopicsRequest(
        topics=[_creatable(topic) for topic in topics],
        timeout_ms=int(OPERATION_TIMEOUT_S * 1000),
        validate_only=validate_only,
    )
    answer = client.ask_controller(
        request,
        CreateTopicsResponse,
        codes=lambda answered: [one.error_code for one in answered.topics],
        timeout_s=ANSWER_TIMEOUT_S,
    )
    return answer.topics


def _creatable(topic: NewTopic) -> CreatableTopic:
    is_by_hand = bool(topic.assignment)
    return CreatableTopic(
        name=topic.name,
        num_partitions=-1 if is_by_hand or topic.partitions is None else topic.partitions,
        replication_factor=-1 if is_by_hand or topic.replication_factor is None else topic.replication_factor,
        assignments=[
            CreatableReplicaAssignment(partition_index=index, broker_ids=list(brokers))
            for index, brokers in enumerate(topic.assignment)
        ],
        configs=[CreatableTopicConfig(name=name, value=value) for name, value in topic.configs.items()],
    )


def create_partitions(
    client: ClusterClient, topics: Iterable[NewPartitions], *, validate_only: bool = False
) -> dict[str, Refused | None]:
    request = CreatePartitionsRequest(
        topics=[
            CreatePartitionsTopic(
                name=topic.name,
                count=topic.total,
                assignments=[CreatePartitionsAssignment(broker_ids=list(one)) for one in topic.assignment]
                or None,
            )
            for topic in topics
        ],
        timeout_ms=int(OPERATION_TIMEOUT_S * 1000),
        validate_only=validate_only,
    )
    answer = client.ask_controller(
        request,
        CreatePartitionsResponse,
        codes=lambda answered: [one.error_code for one in answered.results],
        timeout_s=ANSWER_TIMEOUT_S,
    )
    return {one.name: _refusal(one.error_code, one.error_message) for one in answer.results}


def delete_topics(client: ClusterClient, names: Iterable[str]) -> dict[str, Refused | None]:
    wanted = list(names)
    request = DeleteTopicsRequest(
        topics=[DeleteTopicState(name=name) for name in wanted],
        topic_names=wanted,
        timeout_ms=int(OPERATION_TIMEOUT_S * 1000),
    )
    answer = client.ask_controller(
        request,
        DeleteTopicsResponse,
        codes=lambda answered: [one.error_code for one in answered.responses],
        timeout_s=ANSWER_TIMEOUT_S,
    )
    return {one.name or "": _refusal(one.error_code, one.error_message) for one in answer.responses}


def delete_records(
    client: ClusterClient, before: Mapping[TopicPartition, int], *, timeout_s: float = OPERATION_TIMEOUT_S
) -> dict[TopicPartition, int | Refused]:
    """Deletes what lies before each offset (-1: before the high watermark). The new first offset of each partition, or why it
    was refused. A partition whose leader changes is asked for again until the deadline."""
    patience = Patience(timeout_s)
    found: dict[TopicPartition, int | Refused] = {}
    # What is there now: asked a second time, -1 would take what was written in between, too.
    all_of = [one for one, offset in before.items() if offset == HIGH_WATERMARK]
    ends = positions(client, all_of, LATEST, patience_s=timeout_s)
    found |= {one: end for one, end in ends.items() if isinstance(end, Refused)}
    before = {**before, **{one: end.offset for one, end in ends.items() if not isinstance(end, Refused)}}
    left = {one: offset for one, offset in before.items() if one not in found}
    while left:
        found |= _delete_records_once(client, left)
        left = {one: before[one] for one in left if _may_change(found[one])}
        if left and not patience.pause():
            break
    return found


HIGH_WATERMARK = -1


def _may_change(outcome: int | Refused) -> bool:
    # A topic that is not there is an answer, and not waited for.
    retriable = RETRIABLE - {ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}
    return isinstance(outcome, Refused) and outcome.code in retriable


def _delete_records_once(
    client: ClusterClient, before: Mapping[TopicPartition, int]
) -> dict[TopicPartition, int | Refused]:
    nodes, described = client.leaders(one.topic for one in before)
    leaders = {
        TopicPartition(topic.name or "", one.partition_index): one.leader_id
        for topic in described.topics
        for one in topic.partitions
    }
    found: dict[TopicPartition, int | Refused] = {}
    by_leader: dict[int, list[TopicPartition]] = {}
    for partition in before:
        if partition not in leaders:
            found[partition] = refused(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        elif leaders[partition] not in nodes:
            found[partition] = refused(ErrorCode.LEADER_NOT_AVAILABLE)
        else:
            by_leader.setdefault(leaders[partition], []).append(partition)
    for leader, mine in by_leader.items():
        topics: dict[str, list[DeleteRecordsPartition]] = {}
        for one in mine:
            wanted = DeleteRecordsPartition(partition_index=one.partition, offset=before[one])
            topics.setdefault(one.topic, []).append(wanted)
        request = DeleteRecordsRequest(
            topics=[DeleteRecordsTopic(name=name, partitions=parts) for name, parts in topics.items()],
            timeout_ms=int(OPERATION_TIMEOUT_S * 1000),
        )
        answer = client.ask_node(nodes[leader], request, DeleteRecordsResponse, timeout_s=ANSWER_TIMEOUT_S)
        for topic in answer.topics:
            for each in topic.partitions:
                found[TopicPartition(topic.name, each.partition_index)] = (
                    refused(each.error_code) if each.error_code else each.low_watermark
                )
    return found


def _refusal(code: int, message: str | None) -> Refused | None:
    return refused(code, message) if code else None
