"""OffsetCommit, OffsetFetch, OffsetDelete: how far a group has read.

A commit comes from a member of the current generation, or, with generation -1, from a consumer that assigns
its partitions itself or from an operator; the latter only while the group has no members. Topics of version
10 and later come as ids; the id is also recorded, so that a topic of the same name made later does not
inherit old offsets.
"""

from collections.abc import Mapping, Sequence
from typing import Final, Protocol

from penstock.coordination.form import Outcome
from penstock.groups.classic.rebalance import Turn, expect_life
from penstock.groups.records import (
    NO_TIMESTAMP,
    CommittedOffset,
    OffsetKey,
    write_offset,
    write_offset_key,
)
from penstock.groups.state import Group, GroupState
from penstock.model.errors import ApiError, ErrorCode
from penstock.model.ids import NO_ID
from penstock.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)
from penstock.wire.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteResponse,
    OffsetDeleteResponsePartition,
    OffsetDeleteResponseTopic,
)
from penstock.wire.messages.offset_fetch import (
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopics,
)

NO_OFFSET: Final = -1
TOPIC_IDS_FROM: Final = 10
GROUP_ID_NOT_FOUND_FROM: Final = 9
LATEST_TIMESTAMP: Final = 2**63 - 1

GroupOffsets = Mapping[tuple[str, int], CommittedOffset]
"""The committed offsets of one group, by topic and partition."""


class Topics(Protocol):
    """What the host knows of the cluster's topics."""

    def topic_name(self, topic_id: bytes) -> str | None: ...
    def topic_id(self, name: str) -> bytes | None: ...
    def has_partition(self, name: str, partition: int) -> bool: ...


def commit(
    turn: Turn, group: Group | None, request: OffsetCommitRequest, topics: Topics
) -> OffsetCommitResponse:
    """Record what can be recorded; each partition has its own answer, a wrong member or generation fails them
    all."""
    try:
        _check_committer(turn, group, request)
    except ApiError as refusal:
        return refuse_commit(request, refusal.code)
    committed = [_commit_topic(turn, request, topic, topics) for topic in request.topics]
    return OffsetCommitResponse(topics=committed)


def refuse_commit(request: OffsetCommitRequest, error: ErrorCode) -> OffsetCommitResponse:
    return OffsetCommitResponse(topics=[_refuse_topic(topic, error) for topic in request.topics])


def _refuse_topic(topic: OffsetCommitRequestTopic, error: ErrorCode) -> OffsetCommitResponseTopic:
    partitions = [
        OffsetCommitResponsePartition(partition_index=partition.partition_index, error_code=error)
        for partition in topic.partitions
    ]
    return OffsetCommitResponseTopic(topic_id=topic.topic_id, name=topic.name, partitions=partitions)


def _check_committer(turn: Turn, group: Group | None, request: OffsetCommitRequest) -> None:
    generation_id = request.generation_id_or_member_epoch
    if group is None:
        if generation_id >= 0:
            unknown = turn.context.api_version >= GROUP_ID_NOT_FOUND_FROM
            raise ApiError(ErrorCode.GROUP_ID_NOT_FOUND if unknown else ErrorCode.ILLEGAL_GENERATION)
        return
    if generation_id < 0 and group.state is GroupState.EMPTY:
        return
    if generation_id < 0 and not request.member_id and request.group_instance_id is None:
        raise ApiError(ErrorCode.UNKNOWN_MEMBER_ID)
    member = group.check_member(request.member_id, request.group_instance_id)
    if generation_id != group.generation_id:
        raise ApiError(ErrorCode.ILLEGAL_GENERATION)
    if group.state is GroupState.COMPLETING_REBALANCE:
        raise ApiError(ErrorCode.REBALANCE_IN_PROGRESS)
    if not member.is_new:
        expect_life(turn, group, member)


def _commit_topic(
    turn: Turn, request: OffsetCommitRequest, topic: OffsetCommitRequestTopic, topics: Topics
) -> OffsetCommitResponseTopic:
    if turn.context.api_version >= TOPIC_IDS_FROM:
        topic_id, name = topic.topic_id, topics.topic_name(topic.topic_id)
        if name is None:
            return _refuse_topic(topic, ErrorCode.UNKNOWN_TOPIC_ID)
    else:
        topic_id, name = topics.topic_id(topic.name) or NO_ID, topic.name
    results = []
    for partition in topic.partitions:
        error = _check_partition(turn, name, partition, topics)
        if error is ErrorCode.NONE:
            key = OffsetKey(request.group_id, name, partition.partition_index)
            value = _committed(turn, request, partition, topic_id)
            turn.outcome.record(write_offset_key(key), write_offset(value))
        results.append(
            OffsetCommitResponsePartition(partition_index=partition.partition_index, error_code=error)
        )
    return OffsetCommitResponseTopic(topic_id=topic.topic_id, name=topic.name, partitions=results)


def _check_partition(
    turn: Turn, name: str, partition: OffsetCommitRequestPartition, topics: Topics
) -> ErrorCode:
    if not topics.has_partition(name, partition.partition_index):
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    if len(partition.committed_metadata or "") > turn.options.offset_metadata_max_bytes:
        return ErrorCode.OFFSET_METADATA_TOO_LARGE
    return ErrorCode.NONE


def _committed(
    turn: Turn, request: OffsetCommitRequest, partition: OffsetCommitRequestPartition, topic_id: bytes
) -> CommittedOffset:
    # Clients of versions 2 to 4 may say how long an offset is worth keeping.
    retention_ms = request.retention_time_ms
    return CommittedOffset(
        offset=partition.committed_offset,
        leader_epoch=partition.committed_leader_epoch,
        metadata=partition.committed_metadata or "",
        commit_timestamp_ms=turn.now_ms,
        expire_timestamp_ms=(
            NO_TIMESTAMP
            if retention_ms == NO_TIMESTAMP
            else min(turn.now_ms + retention_ms, LATEST_TIMESTAMP)
        ),
        topic_id=topic_id,
    )


def fetch(
    offsets: GroupOffsets, request: OffsetFetchRequestGroup, topics: Topics, *, api_version: int
) -> OffsetFetchResponseGroup:
    """What is committed; -1 where nothing is, also for a group or a topic (by name) that does not exist."""
    if request.topics is None:
        found = _fetch_all(offsets, topics, api_version=api_version)
    else:
        found = [_fetch_topic(offsets, topic, topics, api_version=api_version) for topic in request.topics]
    return OffsetFetchResponseGroup(group_id=request.group_id, topics=found)


def _fetch_topic(
    offsets: GroupOffsets, topic: OffsetFetchRequestTopics, topics: Topics, *, api_version: int
) -> OffsetFetchResponseTopics:
    if api_version < TOPIC_IDS_FROM:
        name, topic_id = topic.name, topics.topic_id(topic.name) or NO_ID
    else:
        known, topic_id = topics.topic_name(topic.topic_id), topic.topic_id
        if known is None:
            partitions = [
                OffsetFetchResponsePartitions(
                    partition_index=index, committed_offset=NO_OFFSET, error_code=ErrorCode.UNKNOWN_TOPIC_ID
                )
                for index in topic.partition_indexes
            ]
            return OffsetFetchResponseTopics(topic_id=topic_id, partitions=partitions)
        name = known
    partitions = [
        _fetched(offsets.get((name, index)), topic_id, index=index) for index in topic.partition_indexes
    ]
    return OffsetFetchResponseTopics(topic_id=topic.topic_id, name=name, partitions=partitions)


def _fetch_all(offsets: GroupOffsets, topics: Topics, *, api_version: int) -> list[OffsetFetchResponseTopics]:
    by_topic: dict[str, list[int]] = {}
    for name, partition in offsets:
        by_topic.setdefault(name, []).append(partition)
    found = []
    for name, indexes in by_topic.items():
        topic_id = topics.topic_id(name)
        if topic_id is None and api_version >= TOPIC_IDS_FROM:
            continue  # The topic is gone, and with it the id that the answer would have to name.
        partitions = [
            _fetched(offsets[name, index], topic_id or NO_ID, index=index) for index in sorted(indexes)
        ]
        found.append(OffsetFetchResponseTopics(topic_id=topic_id or NO_ID, name=name, partitions=partitions))
    return found


def _fetched(
    committed: CommittedOffset | None, topic_id: bytes, *, index: int
) -> OffsetFetchResponsePartitions:
    """`topic_id` is that of the topic today; an offset of one that had its name before is none of it."""
    if committed is None or (NO_ID not in (topic_id, committed.topic_id) and topic_id != committed.topic_id):
        return OffsetFetchResponsePartitions(partition_index=index, committed_offset=NO_OFFSET)
    return OffsetFetchResponsePartitions(
        partition_index=index,
        committed_offset=committed.offset,
        committed_leader_epoch=committed.leader_epoch,
        metadata=committed.metadata,
    )


def delete(
    outcome: Outcome, group: Group, offsets: GroupOffsets, request: OffsetDeleteRequest
) -> OffsetDeleteResponse:
    """Forget offsets of topics that no member reads. Deleting what is not there succeeds."""
    if group.members and group.protocol_type != "consumer":
        # We cannot tell what its members read.
        raise ApiError(ErrorCode.NON_EMPTY_GROUP)
    deleted = []
    for topic in request.topics:
        subscribed = group.is_subscribed_to(topic.name)
        error = ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC if subscribed else ErrorCode.NONE
        results = []
        for partition in topic.partitions:
            index = partition.partition_index
            if not subscribed and (topic.name, index) in offsets:
                outcome.record(write_offset_key(OffsetKey(request.group_id, topic.name, index)), None)
            results.append(OffsetDeleteResponsePartition(partition_index=index, error_code=error))
        deleted.append(OffsetDeleteResponseTopic(name=topic.name, partitions=results))
    return OffsetDeleteResponse(topics=deleted)


def forget_all(outcome: Outcome, group_id: str, partitions: Sequence[tuple[str, int]]) -> None:
    for topic, partition in partitions:
        outcome.record(write_offset_key(OffsetKey(group_id, topic, partition)), None)
