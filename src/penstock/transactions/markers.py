"""The errand of a transaction that has been decided: what its markers say and where they go."""

from typing import NamedTuple

from penstock.model.ids import TopicPartition
from penstock.transactions.state import NO_TIMESTAMP, TransactionMetadata, TransactionState


class MarkersToWrite(NamedTuple):
    transactional_id: str
    producer_id: int
    producer_epoch: int
    committed: bool
    partitions: tuple[TopicPartition, ...]
    transaction_version: int
    decided_ms: int = NO_TIMESTAMP
    """Tells the errand from that of another transaction of the same producer: before version 2 all else may be equal."""


def markers_of(transactional_id: str, metadata: TransactionMetadata) -> MarkersToWrite:
    return MarkersToWrite(
        transactional_id,
        metadata.producer_id,
        metadata.producer_epoch,
        metadata.state is TransactionState.PREPARE_COMMIT,
        tuple(sorted(metadata.partitions)),
        metadata.client_transaction_version,
        metadata.last_update_ms,
    )
