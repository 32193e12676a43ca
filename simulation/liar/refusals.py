"""What a real cluster may refuse with, by API, and how such an answer looks.

Every code here is one that clients are to try again after. `BEFORE` are given without doing the work; `AFTER` are given though
it was done: the append waited too long for replicas, or the coordinator lost its place before it could answer.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from penstock.model.api_keys import ApiKey
from penstock.model.errors import ErrorCode
from penstock.wire.messages.add_offsets_to_txn import AddOffsetsToTxnResponse
from penstock.wire.messages.add_partitions_to_txn import (
    AddPartitionsToTxnPartitionResult,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnResult,
    AddPartitionsToTxnTopicResult,
)
from penstock.wire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatResponse
from penstock.wire.messages.create_topics import CreatableTopicResult, CreateTopicsResponse
from penstock.wire.messages.end_txn import EndTxnResponse
from penstock.wire.messages.find_coordinator import Coordinator, FindCoordinatorResponse
from penstock.wire.messages.heartbeat import HeartbeatResponse
from penstock.wire.messages.init_producer_id import InitProducerIdResponse
from penstock.wire.messages.join_group import JoinGroupResponse
from penstock.wire.messages.leave_group import LeaveGroupResponse
from penstock.wire.messages.offset_commit import (
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)
from penstock.wire.messages.offset_fetch import (
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartition,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopic,
    OffsetFetchResponseTopics,
)
from penstock.wire.messages.sync_group import SyncGroupResponse
from penstock.wire.messages.txn_offset_commit import (
    TxnOffsetCommitResponse,
    TxnOffsetCommitResponsePartition,
    TxnOffsetCommitResponseTopic,
)
from penstock.wire.schema import Message
from simulation.liar.stage import Coordination

E = ErrorCode
_COORDINATOR: Final = (E.NOT_COORDINATOR, E.COORDINATOR_NOT_AVAILABLE, E.COORDINATOR_LOAD_IN_PROGRESS)
_COORDINATOR_LEFT: Final = (E.NOT_COORDINATOR, E.COORDINATOR_NOT_AVAILABLE)

BEFORE: Final[Mapping[int, tuple[ErrorCode, ...]]] = {
    ApiKey.PRODUCE: (
        E.NOT_LEADER_OR_FOLLOWER, E.UNKNOWN_TOPIC_OR_PARTITION, E.NOT_ENOUGH_REPLICAS, E.KAFKA_STORAGE_ERROR,
    ),
    ApiKey.FETCH: (
        E.NOT_LEADER_OR_FOLLOWER, E.UNKNOWN_TOPIC_OR_PARTITION, E.KAFKA_STORAGE_ERROR, E.OFFSET_NOT_AVAILABLE,
    ),
    ApiKey.LIST_OFFSETS: (
        E.NOT_LEADER_OR_FOLLOWER, E.UNKNOWN_TOPIC_OR_PARTITION, E.KAFKA_STORAGE_ERROR, E.OFFSET_NOT_AVAILABLE,
    ),
    ApiKey.OFFSET_FOR_LEADER_EPOCH: (E.NOT_LEADER_OR_FOLLOWER, E.UNKNOWN_TOPIC_OR_PARTITION),
    ApiKey.METADATA: (E.LEADER_NOT_AVAILABLE,),
    ApiKey.FIND_COORDINATOR: (E.COORDINATOR_NOT_AVAILABLE,),
    ApiKey.OFFSET_COMMIT: (*_COORDINATOR, E.REBALANCE_IN_PROGRESS, E.UNKNOWN_TOPIC_OR_PARTITION),
    ApiKey.OFFSET_FETCH: (*_COORDINATOR, E.UNSTABLE_OFFSET_COMMIT),
    ApiKey.JOIN_GROUP: _COORDINATOR,
    ApiKey.SYNC_GROUP: (*_COORDINATOR_LEFT, E.REBALANCE_IN_PROGRESS),
    ApiKey.HEARTBEAT: (*_COORDINATOR_LEFT, E.REBALANCE_IN_PROGRESS),
    ApiKey.LEAVE_GROUP: _COORDINATOR,
    ApiKey.CONSUMER_GROUP_HEARTBEAT: _COORDINATOR,
    ApiKey.INIT_PRODUCER_ID: (*_COORDINATOR, E.CONCURRENT_TRANSACTIONS),
    ApiKey.ADD_PARTITIONS_TO_TXN: (*_COORDINATOR, E.CONCURRENT_TRANSACTIONS, E.UNKNOWN_TOPIC_OR_PARTITION),
    ApiKey.ADD_OFFSETS_TO_TXN: (*_COORDINATOR, E.CONCURRENT_TRANSACTIONS),
    ApiKey.TXN_OFFSET_COMMIT: (*_COORDINATOR, E.REBALANCE_IN_PROGRESS, E.UNKNOWN_TOPIC_OR_PARTITION),
    ApiKey.END_TXN: (*_COORDINATOR, E.CONCURRENT_TRANSACTIONS),
    ApiKey.CREATE_TOPICS: (E.NOT_CONTROLLER,),
}  # fmt: skip
AFTER: Final[Mapping[int, tuple[ErrorCode, ...]]] = {
    ApiKey.PRODUCE: (E.NOT_ENOUGH_REPLICAS_AFTER_APPEND, E.REQUEST_TIMED_OUT, E.NOT_LEADER_OR_FOLLOWER),
    ApiKey.OFFSET_COMMIT: _COORDINATOR_LEFT,
    ApiKey.SYNC_GROUP: _COORDINATOR_LEFT,
    ApiKey.LEAVE_GROUP: _COORDINATOR_LEFT,
    ApiKey.INIT_PRODUCER_ID: _COORDINATOR_LEFT,
    ApiKey.ADD_PARTITIONS_TO_TXN: _COORDINATOR_LEFT,
    ApiKey.ADD_OFFSETS_TO_TXN: _COORDINATOR_LEFT,
    ApiKey.TXN_OFFSET_COMMIT: _COORDINATOR_LEFT,
    ApiKey.END_TXN: _COORDINATOR_LEFT,
    ApiKey.CREATE_TOPICS: (E.REQUEST_TIMED_OUT,),
}


def coordination(request: Any) -> Coordination | None:
    """Whose coordinator has to answer this; None: anybody."""
    key = request.API_KEY
    if key in _OF_A_TRANSACTION:
        return Coordination("transaction", request.transactional_id) if request.transactional_id else None
    if key == ApiKey.ADD_PARTITIONS_TO_TXN:
        named = request.v3_and_below_transactional_id or next(
            (each.transactional_id for each in request.transactions), None
        )
        return Coordination("transaction", named) if named else None
    if key == ApiKey.OFFSET_FETCH and request.groups:
        return Coordination("group", request.groups[0].group_id)
    if key in _OF_A_GROUP:
        return Coordination("group", request.group_id)
    return None


_OF_A_TRANSACTION: Final = frozenset({ApiKey.INIT_PRODUCER_ID, ApiKey.ADD_OFFSETS_TO_TXN, ApiKey.END_TXN})
_OF_A_GROUP: Final = frozenset(
    {
        ApiKey.OFFSET_COMMIT, ApiKey.OFFSET_FETCH, ApiKey.JOIN_GROUP, ApiKey.SYNC_GROUP, ApiKey.HEARTBEAT,
        ApiKey.LEAVE_GROUP, ApiKey.CONSUMER_GROUP_HEARTBEAT, ApiKey.TXN_OFFSET_COMMIT,
    }
)  # fmt: skip


def may_refuse(request: Any) -> tuple[ErrorCode, ...]:
    """With what this may be refused before the work is done."""
    codes = BEFORE.get(request.API_KEY, ())
    if request.API_KEY == ApiKey.OFFSET_FETCH and not request.require_stable:
        return tuple(code for code in codes if code != E.UNSTABLE_OFFSET_COMMIT)
    return codes


def refusal(request: Any, code: int, version: int) -> Message:
    """The answer to a request that is refused as a whole. For those about leaders see `partitions`."""
    simple = _SIMPLE.get(request.API_KEY)
    if simple is not None:
        return simple(error_code=code)
    return _SHAPED[request.API_KEY](request, code, version)


_SIMPLE: Final[Mapping[int, Callable[..., Message]]] = {
    ApiKey.JOIN_GROUP: JoinGroupResponse,
    ApiKey.SYNC_GROUP: SyncGroupResponse,
    ApiKey.HEARTBEAT: HeartbeatResponse,
    ApiKey.LEAVE_GROUP: LeaveGroupResponse,
    ApiKey.CONSUMER_GROUP_HEARTBEAT: ConsumerGroupHeartbeatResponse,
    ApiKey.INIT_PRODUCER_ID: InitProducerIdResponse,
    ApiKey.ADD_OFFSETS_TO_TXN: AddOffsetsToTxnResponse,
    ApiKey.END_TXN: EndTxnResponse,
}


def _find_coordinator(request: Any, code: int, version: int) -> Message:
    nobody: dict[str, Any] = {"error_code": code, "node_id": -1, "host": "", "port": -1}
    if version < 4:
        return FindCoordinatorResponse(**nobody)
    return FindCoordinatorResponse(
        coordinators=[Coordinator(key=key, **nobody) for key in request.coordinator_keys]
    )


def _offset_commit(request: Any, code: int, version: int) -> Message:
    return OffsetCommitResponse(
        topics=[
            OffsetCommitResponseTopic(
                name=topic.name,
                topic_id=topic.topic_id,
                partitions=[
                    OffsetCommitResponsePartition(partition_index=one.partition_index, error_code=code)
                    for one in topic.partitions
                ],
            )
            for topic in request.topics
        ]
    )


def _offset_fetch(request: Any, code: int, version: int) -> Message:
    is_unstable = code == E.UNSTABLE_OFFSET_COMMIT  # which is told of each partition
    if version < 8:
        topics = [
            OffsetFetchResponseTopic(
                name=topic.name,
                partitions=[
                    OffsetFetchResponsePartition(partition_index=index, committed_offset=-1, error_code=code)
                    for index in topic.partition_indexes
                ],
            )
            for topic in request.topics or ()
        ]
        return OffsetFetchResponse(
            topics=topics if is_unstable else (), error_code=0 if is_unstable else code
        )
    return OffsetFetchResponse(
        groups=[
            OffsetFetchResponseGroup(
                group_id=group.group_id,
                topics=_unstable(group.topics or ()) if is_unstable else (),
                error_code=0 if is_unstable else code,
            )
            for group in request.groups
        ]
    )


def _unstable(topics: Any) -> list[OffsetFetchResponseTopics]:
    return [
        OffsetFetchResponseTopics(
            name=topic.name,
            topic_id=topic.topic_id,
            partitions=[
                OffsetFetchResponsePartitions(
                    partition_index=index, committed_offset=-1, error_code=E.UNSTABLE_OFFSET_COMMIT
                )
                for index in topic.partition_indexes
            ],
        )
        for topic in topics
    ]


def _txn_offset_commit(request: Any, code: int, version: int) -> Message:
    return TxnOffsetCommitResponse(
        topics=[
            TxnOffsetCommitResponseTopic(
                name=topic.name,
                partitions=[
                    TxnOffsetCommitResponsePartition(partition_index=one.partition_index, error_code=code)
                    for one in topic.partitions
                ],
            )
            for topic in request.topics
        ]
    )


def _add_partitions(request: Any, code: int, version: int) -> Message:
    if version < 4:
        return AddPartitionsToTxnResponse(
            results_by_topic_v3_and_below=_added(request.v3_and_below_topics, code)
        )
    return AddPartitionsToTxnResponse(
        results_by_transaction=[
            AddPartitionsToTxnResult(
                transactional_id=each.transactional_id, topic_results=_added(each.topics, code)
            )
            for each in request.transactions
        ]
    )


def _added(topics: Any, code: int) -> list[AddPartitionsToTxnTopicResult]:
    return [
        AddPartitionsToTxnTopicResult(
            name=topic.name,
            results_by_partition=[
                AddPartitionsToTxnPartitionResult(partition_index=index, partition_error_code=code)
                for index in topic.partitions
            ],
        )
        for topic in topics
    ]


def _create_topics(request: Any, code: int, version: int) -> Message:
    return CreateTopicsResponse(
        topics=[
            CreatableTopicResult(name=topic.name, error_code=code, error_message=None)
            for topic in request.topics
        ]
    )


_SHAPED: Final[Mapping[int, Callable[[Any, int, int], Message]]] = {
    ApiKey.FIND_COORDINATOR: _find_coordinator,
    ApiKey.OFFSET_COMMIT: _offset_commit,
    ApiKey.OFFSET_FETCH: _offset_fetch,
    ApiKey.TXN_OFFSET_COMMIT: _txn_offset_commit,
    ApiKey.ADD_PARTITIONS_TO_TXN: _add_partitions,
    ApiKey.CREATE_TOPICS: _create_topics,
}
