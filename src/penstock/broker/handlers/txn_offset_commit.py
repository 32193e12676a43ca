"""API 28 TxnOffsetCommit, versions 0–5: Commit the offsets of a group as part of a transaction.

The offsets count once the transaction is committed. From version 5 on (transaction version 2) the broker adds the group's
partition of `__consumer_offsets` to the transaction by itself; before, the producer has done so by AddOffsetsToTxn.
Not done: nothing that Kafka documents.
"""

from typing import TYPE_CHECKING, Final, Protocol

from penstock.broker.coordinators.admission import ClientLevel
from penstock.broker.coordinators.host import context_of
from penstock.broker.requests.call import Call
from penstock.broker.requests.later import Later, settled
from penstock.broker.requests.portions import Portions
from penstock.coordination.form import Outcome, Ticket
from penstock.coordination.placement import partition_for
from penstock.groups.offsets import refuse_txn_commit
from penstock.model.errors import ApiError, ErrorCode
from penstock.model.ids import TopicPartition
from penstock.model.internal_topics import CONSUMER_OFFSETS
from penstock.wire.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
    TxnOffsetCommitResponse,
    TxnOffsetCommitResponsePartition,
    TxnOffsetCommitResponseTopic,
)

if TYPE_CHECKING:
    from penstock.broker.coordinators.admission import Refusals
    from penstock.broker.facets import WithGroups, WithImage, WithPartitions, WithTransactions
    from penstock.groups.shard import GroupShard

    class Needs(WithGroups, WithImage, WithPartitions, WithTransactions, Protocol): ...


REQUEST = TxnOffsetCommitRequest
RESPONSE = TxnOffsetCommitResponse
PORTIONS = (Portions(("topics", "partitions"), ("topics", "partitions")),)

ABORTABLE_FROM = 4
ADDS_BY_ITSELF_FROM = 5
ADMISSION_TRIES: Final = 3
"""The group may have to be loaded again while its transaction coordinator is asked."""


class _AskFirst(Exception):
    """The transaction coordinator must be waited for before anything is decided here."""

    def __init__(self, admission: "Later[Refusals]") -> None:
        self.admission = admission


async def handle(node: "Needs", call: Call, request: TxnOffsetCommitRequest) -> TxnOffsetCommitResponse:
    context = context_of(call)
    level = ClientLevel.of(call.api_version, abortable_from=ABORTABLE_FROM, adds_from=ADDS_BY_ITSELF_FROM)
    if not request.group_id:
        return _refuse(node, request, ErrorCode.INVALID_GROUP_ID)
    if not any(_is_known(node, topic, each) for topic in request.topics for each in topic.partitions):
        return _refuse(node, request, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)

    is_admitted = False

    def decide(shard: "GroupShard", ticket: Ticket, now_ms: int) -> Outcome:
        # In one step with the append: a transaction that ends in between would be begun again, and never end.
        if not is_admitted:
            _admit(node, request, level)
        return shard.txn_commit_offsets(request, context, ticket, now_ms)

    try:
        for _ in range(ADMISSION_TRIES):
            try:
                answered = node.groups.ask(request.group_id, decide)
                is_admitted = False  # what is decided later must be asked for again
                answer: TxnOffsetCommitResponse = await settled(answered)
                return answer
            except _AskFirst as waiting:
                _check(await waiting.admission)
                is_admitted = True
    except ApiError as refusal:
        return _refuse(node, request, refusal.code)
    return _refuse(node, request, ErrorCode.COORDINATOR_NOT_AVAILABLE)


def _admit(node: "Needs", request: TxnOffsetCommitRequest, client: ClientLevel) -> None:
    topic = node.image.topic(CONSUMER_OFFSETS)
    assert topic is not None
    topic_partition = TopicPartition(topic.name, partition_for(request.group_id, len(topic.partitions)))
    partition = node.partitions.get(*topic_partition)
    if partition.has_open_transaction(request.producer_id, request.producer_epoch):
        return
    refusals = node.transactions.admit(
        request.transactional_id,
        [topic_partition],
        producer_id=request.producer_id,
        producer_epoch=request.producer_epoch,
        client=client,
    )
    if isinstance(refusals, Later):
        raise _AskFirst(refusals)
    _check(refusals)


def _check(refusals: "Refusals") -> None:
    for error in refusals.values():
        if error is ErrorCode.NOT_ENOUGH_REPLICAS:
            # What a group's coordinator says where a producer is told to try again.
            raise ApiError(ErrorCode.COORDINATOR_NOT_AVAILABLE)
        raise ApiError(error)


def _is_known(
    node: "Needs", topic: TxnOffsetCommitRequestTopic, partition: TxnOffsetCommitRequestPartition
) -> bool:
    return node.image.partition(topic.name, partition.partition_index) is not None


def _refuse(node: "Needs", request: TxnOffsetCommitRequest, error: ErrorCode) -> TxnOffsetCommitResponse:
    return TxnOffsetCommitResponse(
        topics=[
            TxnOffsetCommitResponseTopic(
                name=topic.name,
                partitions=[
                    TxnOffsetCommitResponsePartition(
                        partition_index=partition.partition_index,
                        error_code=error
                        if _is_known(node, topic, partition) or error is ErrorCode.INVALID_GROUP_ID
                        else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
                    )
                    for partition in topic.partitions
                ],
            )
            for topic in request.topics
        ]
    )


def refuse(request: TxnOffsetCommitRequest, code: ErrorCode, detail: str | None) -> TxnOffsetCommitResponse:
    return refuse_txn_commit(request, code)
