"""API 24 AddPartitionsToTxn, versions 0–5: the partitions a transaction is about to write to.

Before version 4 from producers, one transaction; from then on also from brokers, for many, or only to verify. A partition
that does not exist fails its whole transaction: nothing is added.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from penstock.broker.call import Call
from penstock.broker.coordinator_host import context_of
from penstock.model.errors import ApiError, ErrorCode
from penstock.wire.messages.add_partitions_to_txn import (
    AddPartitionsToTxnPartitionResult,
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnResult,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTopicResult,
    AddPartitionsToTxnTransaction,
)

if TYPE_CHECKING:
    from penstock.broker.node import Node

REQUEST = AddPartitionsToTxnRequest
RESPONSE = AddPartitionsToTxnResponse

MANY_FROM = 4


async def handle(node: "Node", call: Call, request: AddPartitionsToTxnRequest) -> AddPartitionsToTxnResponse:
    if call.api_version >= MANY_FROM:
        results = [await _add(node, call, wanted) for wanted in request.transactions]
        return AddPartitionsToTxnResponse(results_by_transaction=results)
    only = AddPartitionsToTxnTransaction(
        transactional_id=request.v3_and_below_transactional_id,
        producer_id=request.v3_and_below_producer_id,
        producer_epoch=request.v3_and_below_producer_epoch,
        topics=request.v3_and_below_topics,
    )
    result = await _add(node, call, only)
    return AddPartitionsToTxnResponse(results_by_topic_v3_and_below=result.topic_results)


async def _add(node: "Node", call: Call, wanted: AddPartitionsToTxnTransaction) -> AddPartitionsToTxnResult:
    unknown = [
        (topic.name, index)
        for topic in wanted.topics
        for index in topic.partitions
        if node.image.partition(topic.name, index) is None
    ]
    if unknown:
        return AddPartitionsToTxnResult(
            transactional_id=wanted.transactional_id,
            topic_results=_all_with(
                wanted.topics, ErrorCode.OPERATION_NOT_ATTEMPTED, unknown=frozenset(unknown)
            ),
        )
    context = context_of(call)
    try:
        result: AddPartitionsToTxnResult = await node.transactions.answer(
            wanted.transactional_id,
            lambda shard, ticket, now_ms: shard.add_partitions(wanted, context, ticket, now_ms),
        )
    except ApiError as refusal:
        return AddPartitionsToTxnResult(
            transactional_id=wanted.transactional_id, topic_results=_all_with(wanted.topics, refusal.code)
        )
    return result


def _all_with(
    topics: Sequence[AddPartitionsToTxnTopic],
    error: ErrorCode,
    *,
    unknown: frozenset[tuple[str, int]] = frozenset(),
) -> list[AddPartitionsToTxnTopicResult]:
    return [
        AddPartitionsToTxnTopicResult(
            name=topic.name,
            results_by_partition=[
                AddPartitionsToTxnPartitionResult(
                    partition_index=index,
                    partition_error_code=(
                        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION if (topic.name, index) in unknown else error
                    ),
                )
                for index in topic.partitions
            ],
        )
        for topic in topics
    ]
