"""OffsetCommit and TxnOffsetCommit: how far a group has read.

A commit comes from a member of the current generation, or, with generation -1, from a consumer that assigns
its partitions itself or from an operator; the latter only while the group has no members. Topics of version
10 and later come as ids; the id is also recorded, so that a topic of the same name made later does not
inherit old offsets.

The commit of a transaction is recorded as part of it, and counts when the transaction's marker comes (see
`offset_book`). It is checked less: its producer has an epoch of its own, and old ones name no member.
"""

import struct
from collections.abc import Sequence
from typing import Final, NamedTuple, TypeVar

from penstock.groups.classic.rebalance import Turn, expect_life
from penstock.groups.records import (
    NO_TIMESTAMP,
    CommittedOffset,
    write_offset,
    write_offset_key_head,
    write_offset_tail,
    write_offset_with,
)
from penstock.groups.state import Group, GroupState
from penstock.groups.topics import Topics
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
from penstock.wire.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitResponse,
    TxnOffsetCommitResponsePartition,
    TxnOffsetCommitResponseTopic,
)

TOPIC_IDS_FROM: Final = 10
GROUP_ID_NOT_FOUND_FROM: Final = 9
LATEST_TIMESTAMP: Final = 2**63 - 1

A = TypeVar("A", OffsetCommitResponsePartition, TxnOffsetCommitResponsePartition)


class Committer(NamedTuple):
    """Who a commit says it comes from."""

    member_id: str
    group_instance_id: str | None
    generation_id: int
    """Or the member epoch, where the group has those."""

    @classmethod
    def of(cls, request: OffsetCommitRequest | TxnOffsetCommitRequest) -> "Committer":
        if isinstance(request, OffsetCommitRequest):
            generation_id = request.generation_id_or_member_epoch
        else:
            generation_id = request.generation_id
        return cls(request.member_id, request.group_instance_id, generation_id)


# ── who may commit ──────────────────────────────────────────────────────────────────────────────────────────


def check_committer(turn: Turn, group: Group | None, committer: Committer) -> None:
    """Refuse, or take the commit as a sign of life."""
    if group is None:
        if committer.generation_id >= 0:
            unknown = turn.context.api_version >= GROUP_ID_NOT_FOUND_FROM
            raise ApiError(ErrorCode.GROUP_ID_NOT_FOUND if unknown else ErrorCode.ILLEGAL_GENERATION)
        return
    if committer.generation_id < 0 and group.state is GroupState.EMPTY:
        return
    if _is_nobody(committer):
        raise ApiError(ErrorCode.UNKNOWN_MEMBER_ID)
    member = group.check_member(committer.member_id, committer.group_instance_id)
    if committer.generation_id != group.generation_id:
        raise ApiError(ErrorCode.ILLEGAL_GENERATION)
    if group.state is GroupState.COMPLETING_REBALANCE:
        raise ApiError(ErrorCode.REBALANCE_IN_PROGRESS)
    if not member.is_new:
        expect_life(turn, group, member)


def check_txn_committer(group: Group | None, committer: Committer) -> None:
    """Producers from before version 3 name no member; they are believed whatever the group does."""
    if group is None:
        if committer.generation_id >= 0:
            raise ApiError(ErrorCode.ILLEGAL_GENERATION)
        return
    if _is_nobody(committer) or (committer.generation_id < 0 and group.state is GroupState.EMPTY):
        return
    group.check_member(committer.member_id, committer.group_instance_id)
    if committer.generation_id != group.generation_id:
        raise ApiError(ErrorCode.ILLEGAL_GENERATION)


def _is_nobody(committer: Committer) -> bool:
    return committer.generation_id < 0 and not committer.member_id and committer.group_instance_id is None


# ── what is recorded ────────────────────────────────────────────────────────────────────────────────────────


def commit(turn: Turn, request: OffsetCommitRequest, topics: Topics) -> OffsetCommitResponse:
    """Record what can be recorded; each partition has its own answer."""
    # Clients of versions 2 to 4 may say how long an offset is worth keeping.
    retention_ms = request.retention_time_ms
    expire_ms = (
        NO_TIMESTAMP if retention_ms == NO_TIMESTAMP else min(turn.now_ms + retention_ms, LATEST_TIMESTAMP)
    )
    by_id = turn.context.api_version >= TOPIC_IDS_FROM
    committed = []
    for topic in request.topics:
        name = topics.topic_name(topic.topic_id) if by_id else topic.name
        if name is None:
            committed.append(_refuse_topic(topic, ErrorCode.UNKNOWN_TOPIC_ID))
            continue
        partitions = _record(
            turn, topics, request.group_id, name, topic.partitions, expire_ms, OffsetCommitResponsePartition
        )
        committed.append(
            OffsetCommitResponseTopic(topic_id=topic.topic_id, name=topic.name, partitions=partitions)
        )
    return OffsetCommitResponse(topics=committed)


def txn_commit(turn: Turn, request: TxnOffsetCommitRequest, topics: Topics) -> TxnOffsetCommitResponse:
    turn.outcome.producer = (request.producer_id, request.producer_epoch)
    committed = []
    for topic in request.topics:
        partitions = _record(
            turn,
            topics,
            request.group_id,
            topic.name,
            topic.partitions,
            NO_TIMESTAMP,
            TxnOffsetCommitResponsePartition,
        )
        committed.append(TxnOffsetCommitResponseTopic(name=topic.name, partitions=partitions))
    return TxnOffsetCommitResponse(topics=committed)


def _record(
    turn: Turn,
    topics: Topics,
    group_id: str,
    topic: str,
    partitions: Sequence[OffsetCommitRequestPartition] | Sequence[TxnOffsetCommitRequestPartition],
    expire_timestamp_ms: int,
    answer: type[A],
) -> list[A]:
    """The offsets of one topic; the answer of each partition.

    Commits of many partitions are the rule, so that what they share is made once, and the loop is kept short.
    """
    metadata_max, records = turn.options.offset_metadata_max_bytes, turn.outcome.records
    topic_id, partition_count = topics.topic_id(topic) or NO_ID, topics.partition_count(topic)
    key_head, tail = write_offset_key_head(group_id, topic=topic), write_offset_tail(turn.now_ms, topic_id)
    none = ErrorCode.NONE
    answers = []
    for partition in partitions:
        index, metadata = partition.partition_index, partition.committed_metadata or ""
        error = none
        if not 0 <= index < partition_count:
            error = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        elif len(metadata) > metadata_max:
            error = ErrorCode.OFFSET_METADATA_TOO_LARGE
        else:
            offset, leader_epoch = partition.committed_offset, partition.committed_leader_epoch
            if expire_timestamp_ms == NO_TIMESTAMP:
                value = write_offset_with(offset, metadata, tail, leader_epoch=leader_epoch)
            else:
                value = write_offset(
                    CommittedOffset(offset, leader_epoch, metadata, turn.now_ms, expire_timestamp_ms)
                )
            records.append((key_head + _INT32.pack(index), value))
        answers.append(answer(partition_index=index, error_code=error))
    return answers


_INT32: Final = struct.Struct(">i")


# ── refusing all ────────────────────────────────────────────────────────────────────────────────────────────


def refuse_commit(request: OffsetCommitRequest, error: ErrorCode) -> OffsetCommitResponse:
    return OffsetCommitResponse(topics=[_refuse_topic(topic, error) for topic in request.topics])


def _refuse_topic(topic: OffsetCommitRequestTopic, error: ErrorCode) -> OffsetCommitResponseTopic:
    partitions = [
        OffsetCommitResponsePartition(partition_index=partition.partition_index, error_code=error)
        for partition in topic.partitions
    ]
    return OffsetCommitResponseTopic(topic_id=topic.topic_id, name=topic.name, partitions=partitions)


def refuse_txn_commit(request: TxnOffsetCommitRequest, error: ErrorCode) -> TxnOffsetCommitResponse:
    topics = []
    for topic in request.topics:
        partitions = [
            TxnOffsetCommitResponsePartition(partition_index=partition.partition_index, error_code=error)
            for partition in topic.partitions
        ]
        topics.append(TxnOffsetCommitResponseTopic(name=topic.name, partitions=partitions))
    return TxnOffsetCommitResponse(topics=topics)
