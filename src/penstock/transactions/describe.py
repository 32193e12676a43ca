"""DescribeTransactions and ListTransactions."""

from collections.abc import Mapping

from penstock.model.errors import ErrorCode
from penstock.model.patterns import full_match
from penstock.transactions.state import NAMES, TransactionMetadata
from penstock.wire.messages import list_transactions
from penstock.wire.messages.describe_transactions import TopicData, TransactionState
from penstock.wire.messages.list_transactions import ListTransactionsRequest, ListTransactionsResponse

_KNOWN_NAMES = frozenset(NAMES.values())


def described(transactional_id: str, metadata: TransactionMetadata | None) -> TransactionState:
    if metadata is None:
        error = ErrorCode.TRANSACTIONAL_ID_NOT_FOUND if transactional_id else ErrorCode.INVALID_REQUEST
        return TransactionState(transactional_id=transactional_id, error_code=error)
    topics: dict[str, list[int]] = {}
    for topic, partition in sorted(metadata.partitions):
        topics.setdefault(topic, []).append(partition)
    return TransactionState(
        transactional_id=transactional_id,
        transaction_state=NAMES[metadata.state],
        transaction_timeout_ms=metadata.timeout_ms,
        transaction_start_time_ms=metadata.start_ms,
        producer_id=metadata.producer_id,
        producer_epoch=metadata.producer_epoch,
        topics=[TopicData(topic=topic, partitions=partitions) for topic, partitions in topics.items()],
    )


def listed(
    transactions: Mapping[str, TransactionMetadata], request: ListTransactionsRequest, *, now_ms: int
) -> ListTransactionsResponse:
    """ApiError: the pattern is no regular expression."""
    matches = full_match(request.transactional_id_pattern) if request.transactional_id_pattern else None
    states, producer_ids = frozenset(request.state_filters), frozenset(request.producer_id_filters)
    return ListTransactionsResponse(
        unknown_state_filters=[name for name in request.state_filters if name not in _KNOWN_NAMES],
        transaction_states=[
            list_transactions.TransactionState(
                transactional_id=transactional_id,
                producer_id=metadata.producer_id,
                transaction_state=NAMES[metadata.state],
            )
            for transactional_id, metadata in transactions.items()
            if (not producer_ids or metadata.producer_id in producer_ids)
            and (not states or NAMES[metadata.state] in states)
            # As in Kafka, an id without a transaction has been without one for ever, and passes.
            and (request.duration_filter < 0 or now_ms - metadata.start_ms > request.duration_filter)
            and (matches is None or matches(transactional_id))
        ],
    )
