"""API 28 TxnOffsetCommit, versions 0–5: a group's offsets as part of a transaction.

The offsets count once the transaction is committed. From version 5 on (transaction version 2) the broker adds the group's
partition of `__consumer_offsets` to the transaction by itself; before, the producer has done so by AddOffsetsToTxn.
"""

from types import CoroutineType
from typing import TYPE_CHECKING

from penstock.broker.call import Call
from penstock.broker.coordinator_host import context_of
from penstock.broker.transaction_host import ClientLevel
from penstock.groups.placement import partition_for
from penstock.model.errors import ApiError, ErrorCode
from penstock.model.ids import TopicPartition
from penstock.wire.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitResponse,
    TxnOffsetCommitResponsePartition,
    TxnOffsetCommitResponseTopic,
)

if TYPE_CHECKING:
    from penstock.broker.node import Node

REQUEST = TxnOffsetCommitRequest
RESPONSE = TxnOffsetCommitResponse

ABORTABLE_FROM = 4
ADDS_BY_ITSELF_FROM = 5


async def handle(node: "Node", call: Call, request: TxnOffsetCommitRequest) -> TxnOffsetCommitResponse:
    context = context_of(call)
    try:
        level = ClientLevel.of(call.api_version, abortable_from=ABORTABLE_FROM, adds_from=ADDS_BY_ITSELF_FROM)
        await _admit(node, request, level)
        answer: TxnOffsetCommitResponse = await node.groups.answer(
            request.group_id,
            lambda shard, ticket, now_ms: shard.txn_commit_offsets(request, context, ticket, now_ms),
        )
    except ApiError as refusal:
        return _refuse(request, refusal.code)
    return answer


async def _admit(node: "Node", request: TxnOffsetCommitRequest, client: ClientLevel) -> None:
    topic = await node.topics.consumer_offsets()
    place = TopicPartition(topic.name, partition_for(request.group_id, len(topic.partitions)))
    partition = node.partitions.get(*place)
    if partition.has_open_transaction(request.producer_id, request.producer_epoch):
        return
    refusals = node.transactions.admit(
        request.transactional_id,
        [place],
        producer_id=request.producer_id,
        producer_epoch=request.producer_epoch,
        client=client,
    )
    if isinstance(refusals, CoroutineType):
        refusals = await refusals
    error = refusals.get(place)
    if error is ErrorCode.NOT_ENOUGH_REPLICAS:
        raise ApiError(
            ErrorCode.COORDINATOR_NOT_AVAILABLE
        )  # what a consumer's coordinator says to "try again"
    if error is not None:
        raise ApiError(error)


def _refuse(request: TxnOffsetCommitRequest, error: ErrorCode) -> TxnOffsetCommitResponse:
    return TxnOffsetCommitResponse(
        topics=[
            TxnOffsetCommitResponseTopic(
                name=topic.name,
                partitions=[
                    TxnOffsetCommitResponsePartition(
                        partition_index=partition.partition_index, error_code=error
                    )
                    for partition in topic.partitions
                ],
            )
            for topic in request.topics
        ]
    )
