"""EndTxn: commit or abort, decided by one record, carried out by markers, closed by another record.

Up to transaction version 1 a producer keeps its epoch, so a repeated EndTxn looks like the first. From version 2 on each
end takes the next epoch: one with the epoch before is a repetition, one with the current epoch is about a transaction
whose first batch may not have arrived.

    version 2        abort with               commit with
    state            last epoch   current     last epoch   current
    Empty            fenced       new epoch   fenced       refused
    CompleteAbort    as before    new epoch   refused      refused
    CompleteCommit   refused      new epoch   as before    refused
"""

from penstock.coordination.form import NO_PRODUCER_ID
from penstock.model.errors import ApiError, ErrorCode
from penstock.transactions.options import TransactionOptions
from penstock.transactions.state import (
    CLIENT_EPOCH_MAX,
    ENDING,
    EPOCH_MAX,
    EPOCH_PER_TRANSACTION,
    NO_PRODUCER_EPOCH,
    SETTLED,
    TransactionMetadata,
    TransactionState,
    move,
)
from penstock.wire.messages.end_txn import EndTxnRequest


def is_to_do(metadata: TransactionMetadata, request: EndTxnRequest, *, transaction_version: int) -> bool:
    """False: it is done already, this is a repetition. ApiError: it is not theirs to do, or not possible now."""
    if transaction_version < EPOCH_PER_TRANSACTION:
        return _is_to_do_in_one_epoch(metadata, request)
    return _is_to_do_with_own_epoch(metadata, request)


def _completed(request: EndTxnRequest) -> TransactionState:
    return TransactionState.COMPLETE_COMMIT if request.committed else TransactionState.COMPLETE_ABORT


def _is_to_do_in_one_epoch(metadata: TransactionMetadata, request: EndTxnRequest) -> bool:
    if metadata.producer_id != request.producer_id:
        raise ApiError(ErrorCode.INVALID_PRODUCER_ID_MAPPING)
    if metadata.producer_epoch != request.producer_epoch:
        raise ApiError(ErrorCode.PRODUCER_FENCED)
    if metadata.state in ENDING:
        raise ApiError(ErrorCode.CONCURRENT_TRANSACTIONS)
    if metadata.state is TransactionState.ONGOING:
        return True
    if metadata.state is _completed(request):
        return False
    raise ApiError(ErrorCode.INVALID_TXN_STATE)


def _is_to_do_with_own_epoch(metadata: TransactionMetadata, request: EndTxnRequest) -> bool:
    if metadata.state in ENDING:
        raise ApiError(ErrorCode.CONCURRENT_TRANSACTIONS)
    if metadata.producer_id == request.producer_id:
        # Where a timeout has taken the highest epoch there is nothing to give back: only a new id helps.
        is_last_epoch = metadata.producer_epoch == request.producer_epoch + 1 != EPOCH_MAX
    else:
        is_last_epoch = (
            metadata.previous_producer_id == request.producer_id
            and request.producer_epoch == CLIENT_EPOCH_MAX
            and metadata.producer_epoch == 0
        )
        if not is_last_epoch:
            raise ApiError(ErrorCode.INVALID_PRODUCER_ID_MAPPING)
    if is_last_epoch and metadata.state in (
        TransactionState.COMPLETE_COMMIT,
        TransactionState.COMPLETE_ABORT,
    ):
        if metadata.state is not _completed(request):
            raise ApiError(ErrorCode.INVALID_TXN_STATE)
        return False
    if is_last_epoch or metadata.producer_epoch != request.producer_epoch:
        raise ApiError(ErrorCode.PRODUCER_FENCED)
    if request.committed and metadata.state in SETTLED:
        raise ApiError(ErrorCode.INVALID_TXN_STATE)
    return True


def prepare(
    metadata: TransactionMetadata,
    *,
    committed: bool,
    has_new_epoch: bool,
    next_producer_id: int,
    transaction_version: int,
    now_ms: int,
) -> TransactionMetadata:
    epoch = metadata.producer_epoch
    return move(
        metadata,
        TransactionState.PREPARE_COMMIT if committed else TransactionState.PREPARE_ABORT,
        producer_epoch=min(epoch + 1, EPOCH_MAX) if has_new_epoch else epoch,
        next_producer_id=next_producer_id,
        start_ms=now_ms if metadata.state in SETTLED else metadata.start_ms,
        last_update_ms=now_ms,
        client_transaction_version=transaction_version,
    )


def abort(
    metadata: TransactionMetadata,
    options: TransactionOptions,
    *,
    now_ms: int,
    spare_producer_id: int = NO_PRODUCER_ID,
) -> tuple[TransactionMetadata, int]:
    """The abort that the producer has not asked for, and the epoch that may repeat its requests: it is fenced."""
    has_epochs = options.transaction_version >= EPOCH_PER_TRANSACTION
    prepared = prepare(
        metadata,
        committed=False,
        has_new_epoch=True,
        next_producer_id=(
            spare_producer_id if has_epochs and metadata.is_epoch_exhausted else NO_PRODUCER_ID
        ),
        transaction_version=options.transaction_version if has_epochs else 0,
        now_ms=now_ms,
    )
    return prepared, metadata.producer_epoch if has_epochs else NO_PRODUCER_EPOCH


def complete(metadata: TransactionMetadata, *, now_ms: int) -> TransactionMetadata:
    """All markers are written. Where the epochs were used up, the next producer id takes over here."""
    is_committed = metadata.state is TransactionState.PREPARE_COMMIT
    has_next_id = metadata.next_producer_id != NO_PRODUCER_ID
    return move(
        metadata,
        TransactionState.COMPLETE_COMMIT if is_committed else TransactionState.COMPLETE_ABORT,
        producer_id=metadata.next_producer_id if has_next_id else metadata.producer_id,
        producer_epoch=0 if has_next_id else metadata.producer_epoch,
        next_producer_id=NO_PRODUCER_ID,
        partitions=frozenset(),
        last_update_ms=now_ms,
    )
