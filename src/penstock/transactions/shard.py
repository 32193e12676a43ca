"""TransactionShard: the transactional ids of one partition of `__transaction_state`.

Every request takes its ticket and the time and returns an `Outcome`; the promises are those of `coordination`. Nothing is
parked here: each request is answered in the outcome it leads to.
"""

from collections.abc import Iterable
from itertools import islice
from typing import Final

from penstock.coordination.form import NO_PRODUCER_ID, AlarmKey, Outcome, RequestContext, Ticket
from penstock.model.errors import ApiError, ErrorCode
from penstock.model.ids import TopicPartition
from penstock.model.internal_topics import CONSUMER_OFFSETS
from penstock.transactions import describe, end, init_producer, partitions, timeouts
from penstock.transactions.markers import MarkersToWrite, markers_of
from penstock.transactions.options import TransactionOptions
from penstock.transactions.records import read_key, read_value, write_key, write_value
from penstock.transactions.state import (
    ENDING,
    EPOCH_PER_TRANSACTION,
    NO_PRODUCER_EPOCH,
    TransactionMetadata,
)
from penstock.wire.messages.add_offsets_to_txn import AddOffsetsToTxnRequest, AddOffsetsToTxnResponse
from penstock.wire.messages.add_partitions_to_txn import AddPartitionsToTxnTransaction
from penstock.wire.messages.end_txn import EndTxnRequest, EndTxnResponse
from penstock.wire.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from penstock.wire.messages.list_transactions import ListTransactionsRequest, ListTransactionsResponse

__all__ = ["MarkersToWrite", "TransactionShard"]


# The versions from which a client understands PRODUCER_FENCED; the others are told INVALID_PRODUCER_EPOCH.
INIT_KNOWS_FENCED_FROM: Final = 4
OTHERS_KNOW_FENCED_FROM: Final = 2

# The versions that speak of transaction version 2.
ADD_PARTITIONS_V2_FROM: Final = 4
END_V2_FROM: Final = 5


class TransactionShard:
    __slots__ = ("_last_epochs", "_options", "_transactions", "partition_index")

    def __init__(self, *, options: TransactionOptions, partition_index: int) -> None:
        self.partition_index = partition_index
        self._options = options
        # Hard: changed by replay alone.
        self._transactions: dict[str, TransactionMetadata] = {}
        # Soft: the epoch before the current one, while its owner may repeat the request that has ended it.
        self._last_epochs: dict[str, int] = {}

    # ── the form ────────────────────────────────────────────────────────────────────────────────────────────

    def replay(self, key: bytes, value: bytes | None, producer_id: int = NO_PRODUCER_ID) -> None:
        transactional_id = read_key(key)
        if transactional_id is None:
            return
        if value is None:
            self._transactions.pop(transactional_id, None)
        else:
            self._transactions[transactional_id] = read_value(value)

    def replay_marker(self, producer_id: int, *, committed: bool) -> None:
        """No transaction writes to `__transaction_state`, so there is none to end."""

    def hard_state(self) -> object:
        return self._transactions

    def on_writable(self, now_ms: int) -> Outcome:
        return Outcome()  # a transaction has its timeout, whatever keeps it from its end

    def on_loaded(self, now_ms: int) -> Outcome:
        """What was decided before is carried out; what was open has its timeout counted from its start."""
        outcome = Outcome()
        for transactional_id, metadata in self._transactions.items():
            if metadata.state in ENDING:
                self._carry_out(outcome, transactional_id, metadata, now_ms)
            self._watch(outcome, transactional_id, metadata)
        outcome.alarm(timeouts.EXPIRE_ALARM, now_ms + self._options.expiration_check_interval_ms)
        return outcome

    def on_alarm(self, key: AlarmKey, now_ms: int) -> Outcome:
        outcome = Outcome()
        if key == timeouts.EXPIRE_ALARM:
            self._expire(outcome, now_ms)
        elif key[0] == "timeout":
            transactional_id = key[1]
            metadata = self._transactions.get(transactional_id)
            at_ms = None if metadata is None else timeouts.timeout_at_ms(metadata)
            if metadata is not None and at_ms is not None:
                if now_ms < at_ms:
                    self._watch(outcome, transactional_id, metadata)
                else:
                    prepared, last_epoch = end.abort(metadata, self._options, now_ms=now_ms)
                    self._end(outcome, transactional_id, prepared, last_epoch, now_ms)
        return outcome

    def on_unload(self) -> Outcome:
        self._last_epochs.clear()
        return Outcome()

    # ── producers ───────────────────────────────────────────────────────────────────────────────────────────

    def init_producer_id(
        self,
        request: InitProducerIdRequest,
        context: RequestContext,
        ticket: Ticket,
        now_ms: int,
        *,
        spare_producer_id: int,
    ) -> Outcome:
        """The spare id is a new one, which is used for an id that is new here, or one whose epochs are used up."""
        outcome = Outcome()
        transactional_id = request.transactional_id or ""
        try:
            begun = init_producer.init_producer_id(
                self._transactions.get(transactional_id),
                request,
                self._options,
                last_epoch=self._last_epochs.get(transactional_id, NO_PRODUCER_EPOCH),
                spare_producer_id=spare_producer_id,
                now_ms=now_ms,
            )
            if begun.metadata.state in ENDING:
                self._end(outcome, transactional_id, begun.metadata, begun.last_epoch, now_ms)
                # The transaction of the producer before must be over first: come again.
                raise ApiError(ErrorCode.CONCURRENT_TRANSACTIONS)
            self._record(outcome, transactional_id, begun.metadata)
            self._keep_last_epoch(transactional_id, begun.last_epoch)
            response = InitProducerIdResponse(
                producer_id=begun.metadata.producer_id, producer_epoch=begun.metadata.producer_epoch
            )
        except ApiError as refusal:
            error = _as_understood(refusal.code, context, since=INIT_KNOWS_FENCED_FROM)
            response = InitProducerIdResponse(error_code=error, producer_epoch=NO_PRODUCER_EPOCH)
        outcome.reply(ticket, response)
        return outcome

    # ── partitions ──────────────────────────────────────────────────────────────────────────────────────────

    def add_partitions(
        self, request: AddPartitionsToTxnTransaction, context: RequestContext, ticket: Ticket, now_ms: int
    ) -> Outcome:
        """The reply is an `AddPartitionsToTxnResult`, with an error for each partition."""
        outcome = Outcome()
        topic_partitions = partitions.topic_partitions_of(request)
        errors: dict[TopicPartition, ErrorCode] | ErrorCode = ErrorCode.NONE
        try:
            if not request.transactional_id:
                raise ApiError(ErrorCode.INVALID_REQUEST)
            if request.verify_only:
                errors = partitions.verify(
                    self._transactions.get(request.transactional_id),
                    topic_partitions,
                    producer_id=request.producer_id,
                    producer_epoch=request.producer_epoch,
                )
            else:
                is_v2 = context.api_version >= ADD_PARTITIONS_V2_FROM
                self._add(outcome, request, topic_partitions, now_ms, is_v2=is_v2)
        except ApiError as refusal:
            errors = _as_understood(refusal.code, context)
        outcome.reply(ticket, partitions.result(request, errors))
        return outcome

    def add_offsets(
        self,
        request: AddOffsetsToTxnRequest,
        context: RequestContext,
        ticket: Ticket,
        now_ms: int,
        *,
        offsets_partition: int,
    ) -> Outcome:
        """`offsets_partition` is the one of `__consumer_offsets` that the group lives in."""
        outcome = Outcome()
        error = ErrorCode.NONE
        try:
            if not request.transactional_id:
                raise ApiError(ErrorCode.INVALID_REQUEST)
            topic_partition = TopicPartition(CONSUMER_OFFSETS, offsets_partition)
            self._add(outcome, request, [topic_partition], now_ms, is_v2=False)
        except ApiError as refusal:
            error = _as_understood(refusal.code, context)
        outcome.reply(ticket, AddOffsetsToTxnResponse(error_code=error))
        return outcome

    # ── the end ─────────────────────────────────────────────────────────────────────────────────────────────

    def end_transaction(
        self,
        request: EndTxnRequest,
        context: RequestContext,
        ticket: Ticket,
        now_ms: int,
        *,
        spare_producer_id: int | None,
    ) -> Outcome | None:
        """None: nothing has happened, and nothing is answered; ask again with a spare producer id."""
        outcome = Outcome()
        version = EPOCH_PER_TRANSACTION if context.api_version >= END_V2_FROM else 0
        has_new_epoch = version >= EPOCH_PER_TRANSACTION
        try:
            if not request.transactional_id:
                raise ApiError(ErrorCode.INVALID_REQUEST)
            metadata = self._transactions.get(request.transactional_id)
            if metadata is None:
                raise ApiError(ErrorCode.INVALID_PRODUCER_ID_MAPPING)
            after = metadata
            if end.is_to_do(metadata, request, transaction_version=version):
                next_producer_id = NO_PRODUCER_ID
                if has_new_epoch and metadata.is_epoch_exhausted:
                    if spare_producer_id is None:
                        return None
                    next_producer_id = spare_producer_id
                prepared = end.prepare(
                    metadata,
                    committed=request.committed,
                    has_new_epoch=has_new_epoch,
                    next_producer_id=next_producer_id,
                    transaction_version=version,
                    now_ms=now_ms,
                )
                last_epoch = metadata.producer_epoch if has_new_epoch else None
                self._end(outcome, request.transactional_id, prepared, last_epoch, now_ms)
                after = end.complete(prepared, now_ms=now_ms)
            response = EndTxnResponse()
            if has_new_epoch:
                response = EndTxnResponse(producer_id=after.producer_id, producer_epoch=after.producer_epoch)
        except ApiError as refusal:
            response = EndTxnResponse(error_code=_as_understood(refusal.code, context))
        outcome.reply(ticket, response)
        return outcome

    def markers_written(self, errand: MarkersToWrite, now_ms: int) -> Outcome:
        """All partitions of the errand have their marker (or exist no more). A stale errand is harmless."""
        outcome = Outcome()
        metadata = self._transactions.get(errand.transactional_id)
        if (
            metadata is not None
            and metadata.state in ENDING
            and markers_of(errand.transactional_id, metadata) == errand
        ):
            self._record(outcome, errand.transactional_id, end.complete(metadata, now_ms=now_ms))
        return outcome

    # ── for people ──────────────────────────────────────────────────────────────────────────────────────────

    def describe(self, transactional_ids: Iterable[str], ticket: Ticket, now_ms: int) -> Outcome:
        """The reply is a list of DescribeTransactions' `TransactionState`."""
        outcome = Outcome()
        outcome.reply(
            ticket,
            [describe.described(name, self._transactions.get(name)) for name in transactional_ids],
        )
        return outcome

    def list(self, request: ListTransactionsRequest, ticket: Ticket, now_ms: int) -> Outcome:
        """The reply is a `ListTransactionsResponse` of this shard's transactional ids."""
        outcome = Outcome()
        try:
            response = describe.listed(self._transactions, request, now_ms=now_ms)
        except ApiError as refusal:
            response = ListTransactionsResponse(error_code=refusal.code)
        outcome.reply(ticket, response)
        return outcome

    # ── within ──────────────────────────────────────────────────────────────────────────────────────────────

    def _record(self, outcome: Outcome, transactional_id: str, metadata: TransactionMetadata) -> None:
        # A client that goes by version 2 needs the fields that version 0 of the record does not have.
        is_flexible = self._options.transaction_version >= 1 or metadata.client_transaction_version
        value = write_value(metadata, version=1 if is_flexible else 0)
        outcome.record(write_key(transactional_id), value)

    def _add(
        self,
        outcome: Outcome,
        request: AddPartitionsToTxnTransaction | AddOffsetsToTxnRequest,
        topic_partitions: Iterable[TopicPartition],
        now_ms: int,
        *,
        is_v2: bool,
    ) -> None:
        before = self._transactions.get(request.transactional_id)
        after = partitions.add(
            before,
            topic_partitions,
            producer_id=request.producer_id,
            producer_epoch=request.producer_epoch,
            transaction_version=EPOCH_PER_TRANSACTION if is_v2 else 0,
            now_ms=now_ms,
        )
        if after is not None:
            self._record(outcome, request.transactional_id, after)
            if before is None or before.state is not after.state:
                self._watch(outcome, request.transactional_id, after)

    def _end(
        self,
        outcome: Outcome,
        transactional_id: str,
        prepared: TransactionMetadata,
        last_epoch: int | None,
        now_ms: int,
    ) -> None:
        """Record what is decided, and see to it. `last_epoch` None: as it was.

        The alarm of its timeout is left to go off in vain: the next transaction moves it, which costs less.
        """
        self._record(outcome, transactional_id, prepared)
        if last_epoch is not None:
            self._keep_last_epoch(transactional_id, last_epoch)
        self._carry_out(outcome, transactional_id, prepared, now_ms)

    def _carry_out(
        self, outcome: Outcome, transactional_id: str, prepared: TransactionMetadata, now_ms: int
    ) -> None:
        if prepared.partitions:
            outcome.errands.append(markers_of(transactional_id, prepared))
        else:
            self._record(outcome, transactional_id, end.complete(prepared, now_ms=now_ms))

    def _keep_last_epoch(self, transactional_id: str, last_epoch: int) -> None:
        if last_epoch == NO_PRODUCER_EPOCH:
            self._last_epochs.pop(transactional_id, None)
        else:
            self._last_epochs[transactional_id] = last_epoch

    def _watch(self, outcome: Outcome, transactional_id: str, metadata: TransactionMetadata) -> None:
        at_ms = timeouts.timeout_at_ms(metadata)
        if at_ms is not None:
            outcome.alarm(timeouts.timeout_alarm(transactional_id), at_ms)

    def _expire(self, outcome: Outcome, now_ms: int) -> None:
        before_ms = now_ms - self._options.transactional_id_expiration_ms
        expired = timeouts.expired(self._transactions, before_ms=before_ms)
        for transactional_id in islice(expired, timeouts.EXPIRED_AT_ONCE_MAX):
            outcome.record(write_key(transactional_id), None)
            self._last_epochs.pop(transactional_id, None)
        is_more = len(outcome.records) == timeouts.EXPIRED_AT_ONCE_MAX
        wait_ms = timeouts.EXPIRE_AGAIN_MS if is_more else self._options.expiration_check_interval_ms
        outcome.alarm(timeouts.EXPIRE_ALARM, now_ms + wait_ms)


def _as_understood(
    error: ErrorCode, context: RequestContext, *, since: int = OTHERS_KNOW_FENCED_FROM
) -> ErrorCode:
    if error is ErrorCode.PRODUCER_FENCED and context.api_version < since:
        return ErrorCode.INVALID_PRODUCER_EPOCH
    return error
