"""AddPartitionsToTxn and AddOffsetsToTxn: the partitions that the markers will go to, recorded before they are written to.

The first one begins the transaction. Brokers ask, too: with `verify_only` whether a partition was added (clients that add
them by themselves), or to add it for the client (transaction version 2).
"""

from collections.abc import Iterable, Sequence

from penstock.model.errors import ApiError, ErrorCode
from penstock.model.ids import TopicPartition
from penstock.transactions.state import ENDING, SETTLED, TransactionMetadata, TransactionState, move
from penstock.wire.messages.add_partitions_to_txn import (
    AddPartitionsToTxnPartitionResult,
    AddPartitionsToTxnResult,
    AddPartitionsToTxnTopicResult,
    AddPartitionsToTxnTransaction,
)


def topic_partitions_of(request: AddPartitionsToTxnTransaction) -> list[TopicPartition]:
    return [TopicPartition(topic.name, index) for topic in request.topics for index in topic.partitions]


def add(
    metadata: TransactionMetadata | None,
    topic_partitions: Iterable[TopicPartition],
    *,
    producer_id: int,
    producer_epoch: int,
    transaction_version: int,
    now_ms: int,
) -> TransactionMetadata | None:
    """The transaction with the partitions; None if they are in it already."""
    if metadata is not None and metadata.state in ENDING:
        # Before all else: the producer may go by its next id already.
        raise ApiError(ErrorCode.CONCURRENT_TRANSACTIONS)
    metadata = _of_producer(metadata, producer_id=producer_id, producer_epoch=producer_epoch)
    if metadata.state is TransactionState.ONGOING and metadata.partitions.issuperset(topic_partitions):
        return None
    return move(
        metadata,
        TransactionState.ONGOING,
        partitions=metadata.partitions.union(topic_partitions),
        start_ms=now_ms if metadata.state in SETTLED else metadata.start_ms,
        last_update_ms=now_ms,
        client_transaction_version=transaction_version,
    )


def verify(
    metadata: TransactionMetadata | None,
    topic_partitions: Iterable[TopicPartition],
    *,
    producer_id: int,
    producer_epoch: int,
) -> dict[TopicPartition, ErrorCode]:
    metadata = _of_producer(metadata, producer_id=producer_id, producer_epoch=producer_epoch)
    if metadata.state in ENDING:
        raise ApiError(ErrorCode.CONCURRENT_TRANSACTIONS)
    return {
        topic_partition: ErrorCode.NONE
        if topic_partition in metadata.partitions
        else ErrorCode.TRANSACTION_ABORTABLE
        for topic_partition in topic_partitions
    }


def _of_producer(
    metadata: TransactionMetadata | None, *, producer_id: int, producer_epoch: int
) -> TransactionMetadata:
    if metadata is None or metadata.producer_id != producer_id:
        raise ApiError(ErrorCode.INVALID_PRODUCER_ID_MAPPING)
    if metadata.producer_epoch != producer_epoch:
        raise ApiError(ErrorCode.PRODUCER_FENCED)
    return metadata


def result(
    request: AddPartitionsToTxnTransaction, errors: dict[TopicPartition, ErrorCode] | ErrorCode
) -> AddPartitionsToTxnResult:
    """With an error for each partition, or the same for all."""

    def of(topic: str, partitions: Sequence[int]) -> list[AddPartitionsToTxnPartitionResult]:
        return [
            AddPartitionsToTxnPartitionResult(
                partition_index=index,
                partition_error_code=errors[TopicPartition(topic, index)]
                if isinstance(errors, dict)
                else errors,
            )
            for index in partitions
        ]

    return AddPartitionsToTxnResult(
        transactional_id=request.transactional_id,
        topic_results=[
            AddPartitionsToTxnTopicResult(
                name=topic.name, results_by_partition=of(topic.name, topic.partitions)
            )
            for topic in request.topics
        ],
    )
