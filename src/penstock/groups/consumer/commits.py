"""Who may commit and fetch offsets of a consumer group: its members, with their epoch.

A commit with an older epoch is taken for partitions that the member had then and still has: it was under way when the
member moved on, and nobody else can have read them since.
"""

from collections.abc import Iterable
from typing import Final

from penstock.groups.consumer.heartbeat import unknown_member
from penstock.groups.consumer.state import ConsumerGroup, Member
from penstock.groups.offsets import TOPIC_IDS_FROM
from penstock.groups.topics import Topics
from penstock.model.errors import ApiError, ErrorCode
from penstock.wire.messages.offset_commit import OffsetCommitRequest
from penstock.wire.messages.offset_fetch import OffsetFetchRequestGroup
from penstock.wire.messages.txn_offset_commit import TxnOffsetCommitRequest

MEMBER_EPOCHS_FROM: Final = 9
"""OffsetCommit before this version knows no member epochs."""


def check_commit(
    group: ConsumerGroup, request: OffsetCommitRequest, topics: Topics, *, api_version: int
) -> None:
    """One partition that may not be committed refuses them all."""
    member_epoch = request.generation_id_or_member_epoch
    if member_epoch < 0 and not group.members:
        return
    member = _member(group, request.member_id)
    if member.classic is None and api_version < MEMBER_EPOCHS_FROM:
        raise ApiError(ErrorCode.UNSUPPORTED_VERSION)
    by_id = api_version >= TOPIC_IDS_FROM
    partitions = (
        (topic.topic_id if by_id else topics.topic_id(topic.name), partition.partition_index)
        for topic in request.topics
        for partition in topic.partitions
    )
    _check_epoch(member, member_epoch, partitions)


def check_txn_commit(group: ConsumerGroup, request: TxnOffsetCommitRequest, topics: Topics) -> None:
    """As `check_commit`; producers that name no member are believed. They know ILLEGAL_GENERATION only."""
    is_nobody = request.generation_id == -1 and not request.member_id and request.group_instance_id is None
    if is_nobody or (request.generation_id < 0 and not group.members):
        return
    member = _member(group, request.member_id)
    partitions = (
        (topics.topic_id(topic.name), partition.partition_index)
        for topic in request.topics
        for partition in topic.partitions
    )
    try:
        _check_epoch(member, request.generation_id, partitions)
    except ApiError:
        raise ApiError(ErrorCode.ILLEGAL_GENERATION) from None


def check_fetch(group: ConsumerGroup, request: OffsetFetchRequestGroup) -> None:
    if request.member_id is None and request.member_epoch < 0:
        return
    member = _member(group, request.member_id or "")
    if request.member_epoch != member.member_epoch:
        raise _stale(member)


def _member(group: ConsumerGroup, member_id: str) -> Member:
    member = group.members.get(member_id)
    if member is None:
        raise unknown_member(group, member_id)
    return member


def _check_epoch(member: Member, member_epoch: int, partitions: Iterable[tuple[bytes | None, int]]) -> None:
    if member_epoch == member.member_epoch:
        return
    if member_epoch > member.member_epoch:
        raise _stale(member)
    for topic_id, partition in partitions:
        since = member.assigned.get(topic_id or b"", {}).get(partition)
        if since is None:
            since = member.pending_revocation.get(topic_id or b"", {}).get(partition)
        if since is None or member_epoch < since:
            raise _stale(member)


def _stale(member: Member) -> ApiError:
    is_classic = member.classic is not None
    return ApiError(ErrorCode.ILLEGAL_GENERATION if is_classic else ErrorCode.STALE_MEMBER_EPOCH)
