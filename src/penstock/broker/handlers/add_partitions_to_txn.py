"""API 24 AddPartitionsToTxn, versions 0–5: Add partitions to a transaction.

Before version 4 from producers, one transaction; from then on also from brokers, for many, or only to verify. A partition
that does not exist fails its whole transaction: nothing is added. Many transactions wait for their followers together.
Not done: nothing that Kafka documents.
"""

from asyncio import gather, sleep
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final, Protocol

from penstock.broker.coordinators.host import context_of
from penstock.broker.requests.call import Call
from penstock.broker.requests.later import Later, NowOrLater
from penstock.broker.requests.slices import GIVE_WAY_EVERY
from penstock.model.errors import ApiError, ErrorCode
from penstock.model.internal_topics import is_internal
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
    from penstock.broker.facets import WithImage, WithTransactions

    class Needs(WithImage, WithTransactions, Protocol): ...


REQUEST = AddPartitionsToTxnRequest
RESPONSE = AddPartitionsToTxnResponse

MANY_FROM: Final = 4
NONE_REFUSED: Final[Mapping[tuple[str, int], ErrorCode]] = {}


async def handle(node: "Needs", call: Call, request: AddPartitionsToTxnRequest) -> AddPartitionsToTxnResponse:
    if call.api_version >= MANY_FROM:
        results = await _add_all(node, call, request.transactions)
        return AddPartitionsToTxnResponse(results_by_transaction=results)
    only = AddPartitionsToTxnTransaction(
        transactional_id=request.v3_and_below_transactional_id,
        producer_id=request.v3_and_below_producer_id,
        producer_epoch=request.v3_and_below_producer_epoch,
        topics=request.v3_and_below_topics,
    )
    (result,) = await _add_all(node, call, [only])
    return AddPartitionsToTxnResponse(results_by_topic_v3_and_below=result.topic_results)


async def _add_all(
    node: "Needs", call: Call, all_wanted: Sequence[AddPartitionsToTxnTransaction]
) -> list[AddPartitionsToTxnResult]:
    results: list[AddPartitionsToTxnResult] = []
    for start in range(0, len(all_wanted), GIVE_WAY_EVERY):
        begun = [_add(node, call, wanted) for wanted in all_wanted[start : start + GIVE_WAY_EVERY]]
        later = [each for each in begun if isinstance(each, Later)]
        if not later:
            await sleep(0)
        answers = iter([await later[0]] if len(later) == 1 else await gather(*later))
        results += [next(answers) if isinstance(each, Later) else each for each in begun]
    return results


def _add(
    node: "Needs", call: Call, wanted: AddPartitionsToTxnTransaction
) -> NowOrLater[AddPartitionsToTxnResult]:
    refused = {
        (topic.name, index): error
        for topic in wanted.topics
        for index in topic.partitions
        if (error := _why_not(node, call, topic.name, index)) is not None
    }
    if refused:
        return AddPartitionsToTxnResult(
            transactional_id=wanted.transactional_id,
            topic_results=_all_with(wanted.topics, ErrorCode.OPERATION_NOT_ATTEMPTED, refused),
        )
    context = context_of(call)
    try:
        answered = node.transactions.ask(
            wanted.transactional_id,
            lambda shard, ticket, now_ms: shard.add_partitions(wanted, context, ticket, now_ms),
            reads_only=wanted.verify_only,
        )
    except ApiError as refusal:
        return _refused(wanted, refusal)
    return Later(_add_later(wanted, answered)) if isinstance(answered, Later) else answered


async def _add_later(
    wanted: AddPartitionsToTxnTransaction, answered: Later[AddPartitionsToTxnResult]
) -> AddPartitionsToTxnResult:
    try:
        return await answered
    except ApiError as refusal:
        return _refused(wanted, refusal)


def _refused(wanted: AddPartitionsToTxnTransaction, refusal: ApiError) -> AddPartitionsToTxnResult:
    return AddPartitionsToTxnResult(
        transactional_id=wanted.transactional_id, topic_results=_all_with(wanted.topics, refusal.code)
    )


def _why_not(node: "Needs", call: Call, topic: str, index: int) -> ErrorCode | None:
    # Offsets of groups are added by their coordinators, on behalf of AddOffsetsToTxn or TxnOffsetCommit.
    if call.api_version < MANY_FROM and is_internal(topic):
        return ErrorCode.TOPIC_AUTHORIZATION_FAILED
    return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION if node.image.partition(topic, index) is None else None


def _all_with(
    topics: Sequence[AddPartitionsToTxnTopic],
    error: ErrorCode,
    refused: Mapping[tuple[str, int], ErrorCode] = NONE_REFUSED,
) -> list[AddPartitionsToTxnTopicResult]:
    return [
        AddPartitionsToTxnTopicResult(
            name=topic.name,
            results_by_partition=[
                AddPartitionsToTxnPartitionResult(
                    partition_index=index,
                    partition_error_code=refused.get((topic.name, index), error),
                )
                for index in topic.partitions
            ],
        )
        for topic in topics
    ]
