"""InitProducerId: a producer takes over a transactional id. The earlier producer is fenced by a higher epoch.

A producer that knows its id and epoch (from version 3 on) only continues after an error: it gets the next epoch if nobody
has taken over since, and the same answer again if it has missed the first.
"""

from typing import NamedTuple

from penstock.coordination.form import NO_PRODUCER_ID
from penstock.model.errors import ApiError, ErrorCode
from penstock.transactions.end import abort
from penstock.transactions.options import TransactionOptions
from penstock.transactions.state import (
    CLIENT_EPOCH_MAX,
    ENDING,
    EPOCH_MAX,
    NO_PRODUCER_EPOCH,
    NO_TIMEOUT_MS,
    NO_TIMESTAMP,
    TransactionMetadata,
    TransactionState,
    move,
)
from penstock.wire.messages.init_producer_id import InitProducerIdRequest


class Begun(NamedTuple):
    metadata: TransactionMetadata
    """Empty for the new producer; or PrepareAbort: first the transaction of the one before must come to its end."""
    last_epoch: int
    """The epoch that may repeat its request, or NO_PRODUCER_EPOCH."""


def check_request(request: InitProducerIdRequest, options: TransactionOptions) -> None:
    if not request.transactional_id:
        raise ApiError(ErrorCode.INVALID_REQUEST, "the transactional id is empty")
    if (request.producer_id == NO_PRODUCER_ID) != (request.producer_epoch == NO_PRODUCER_EPOCH):
        raise ApiError(ErrorCode.INVALID_REQUEST, "producer id and epoch go together")
    if request.enable2_pc and not options.two_phase_commit:
        raise ApiError(ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED, "two-phase commit is not enabled")
    if request.keep_prepared_txn:
        raise ApiError(ErrorCode.UNSUPPORTED_VERSION, "a prepared transaction cannot be kept")
    if not request.enable2_pc and not 0 < request.transaction_timeout_ms <= options.max_timeout_ms:
        raise ApiError(ErrorCode.INVALID_TRANSACTION_TIMEOUT)


def init_producer_id(
    known: TransactionMetadata | None,
    request: InitProducerIdRequest,
    options: TransactionOptions,
    *,
    last_epoch: int,
    spare_producer_id: int,
    now_ms: int,
) -> Begun:
    check_request(request, options)
    timeout_ms = NO_TIMEOUT_MS if request.enable2_pc else request.transaction_timeout_ms
    metadata = known or TransactionMetadata(
        spare_producer_id, NO_PRODUCER_EPOCH, timeout_ms, TransactionState.EMPTY, frozenset(), now_ms
    )
    expected = request.producer_epoch if request.producer_id != NO_PRODUCER_ID else None
    if expected is not None and not _may_be_ours(metadata, request.producer_id, expected):
        raise ApiError(ErrorCode.PRODUCER_FENCED)
    if metadata.state in ENDING:
        raise ApiError(ErrorCode.CONCURRENT_TRANSACTIONS)
    if metadata.state is TransactionState.ONGOING:
        if expected not in (None, metadata.producer_epoch):
            # Kafka would abort the transaction of the newer producer first, and refuse the older one then.
            raise ApiError(ErrorCode.PRODUCER_FENCED)
        return Begun(*abort(metadata, options, now_ms=now_ms, spare_producer_id=spare_producer_id))
    producer = _next_producer(metadata, expected, last_epoch, spare_producer_id)
    is_repeated = (producer.id, producer.epoch) == (metadata.producer_id, metadata.producer_epoch)
    empty = move(
        metadata,
        TransactionState.EMPTY,
        producer_id=producer.id,
        previous_producer_id=metadata.previous_producer_id if is_repeated else metadata.producer_id,
        producer_epoch=producer.epoch,
        timeout_ms=timeout_ms,
        partitions=frozenset(),
        start_ms=NO_TIMESTAMP,
        last_update_ms=now_ms,
    )
    return Begun(empty, producer.last_epoch)


def _may_be_ours(metadata: TransactionMetadata, producer_id: int, epoch: int) -> bool:
    """The id is new here, or theirs, or was theirs until its epochs were used up and they have missed the answer."""
    return (
        metadata.producer_epoch == NO_PRODUCER_EPOCH
        or producer_id == metadata.producer_id
        or (producer_id == metadata.previous_producer_id and epoch >= CLIENT_EPOCH_MAX)
    )


class _Producer(NamedTuple):
    id: int
    epoch: int
    last_epoch: int


def _next_producer(
    metadata: TransactionMetadata, expected: int | None, last_epoch: int, spare_producer_id: int
) -> _Producer:
    current = metadata.producer_epoch
    is_new = current == NO_PRODUCER_EPOCH or expected in (None, current)
    is_retry = expected == last_epoch
    if metadata.is_epoch_exhausted and (is_new or (is_retry and current == EPOCH_MAX)):
        return _Producer(spare_producer_id, 0, NO_PRODUCER_EPOCH if expected is None else expected)
    if is_new:
        return _Producer(
            metadata.producer_id, current + 1, NO_PRODUCER_EPOCH if expected is None else current
        )
    if is_retry:
        return _Producer(metadata.producer_id, current, last_epoch)
    raise ApiError(ErrorCode.PRODUCER_FENCED)
