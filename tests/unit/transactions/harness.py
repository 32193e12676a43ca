"""A host without a broker: the log is a list, time moves when told, markers are written when told, and every reply is
checked to be the only one."""

from itertools import count
from typing import Any

from penstock.coordination.alarms import AlarmHeap
from penstock.coordination.form import Outcome, RequestContext, Ticket
from penstock.transactions.options import TransactionOptions
from penstock.transactions.records import read_key, read_value
from penstock.transactions.shard import MarkersToWrite, TransactionShard
from penstock.transactions.state import TransactionMetadata
from penstock.wire.messages.add_offsets_to_txn import AddOffsetsToTxnRequest
from penstock.wire.messages.add_partitions_to_txn import (
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
)
from penstock.wire.messages.end_txn import EndTxnRequest
from penstock.wire.messages.init_producer_id import InitProducerIdRequest


class Harness:
    def __init__(self, options: TransactionOptions | None = None) -> None:
        self.options = options or TransactionOptions()
        self.now_ms = 0
        self.log: list[tuple[bytes, bytes | None]] = []
        self.alarms = AlarmHeap()
        self.errands: list[MarkersToWrite] = []
        self.replies: dict[Ticket, Any] = {}
        self.tickets = 0
        self.producer_ids = count(1_000)
        self.shard = self.reloaded()
        self.do(self.shard.on_loaded(self.now_ms))

    # ── what a host does ────────────────────────────────────────────────────────────────────────────────────

    def do(self, outcome: Outcome) -> Outcome:
        assert outcome.producer is None
        self.log += outcome.records
        for key, value in outcome.records:
            self.shard.replay(key, value)
        for alarm, at_ms in outcome.alarms:
            self.alarms.set(0, alarm, at_ms)
        for ticket, response in outcome.replies:
            assert ticket not in self.replies, f"ticket {ticket} is answered twice"
            self.replies[ticket] = response
        for errand in outcome.errands:
            assert isinstance(errand, MarkersToWrite)
            self.errands.append(errand)
        return outcome

    def advance(self, step_ms: int) -> None:
        end_ms = self.now_ms + step_ms
        while (next_ms := self.alarms.next_at_ms()) is not None and next_ms <= end_ms:
            self.now_ms = max(next_ms, self.now_ms)
            for _, key in self.alarms.due(self.now_ms):
                self.do(self.shard.on_alarm(key, self.now_ms))
        self.now_ms = end_ms

    def restart(self) -> None:
        given_up = self.shard.on_unload()
        assert given_up.records == []
        self.do(given_up)
        self.alarms.drop(0)
        self.shard = self.reloaded()
        self.do(self.shard.on_loaded(self.now_ms))

    def reloaded(self) -> TransactionShard:
        shard = TransactionShard(options=self.options, partition_index=0)
        for key, value in self.log:
            shard.replay(key, value)
        return shard

    # ── what clients do ─────────────────────────────────────────────────────────────────────────────────────

    def asked(self, version: int) -> tuple[RequestContext, Ticket, int]:
        self.tickets += 1
        return RequestContext(version, "client", "/127.0.0.1"), Ticket(self.tickets), self.now_ms

    def answer(self, outcome: Outcome) -> Any:
        (_, response), *more = self.do(outcome).replies
        assert not more
        return response

    def init(
        self, name: str, *, version: int = 5, timeout_ms: int = 60_000, known: tuple[int, int] = (-1, -1)
    ) -> Any:
        request = InitProducerIdRequest(
            transactional_id=name,
            transaction_timeout_ms=timeout_ms,
            producer_id=known[0],
            producer_epoch=known[1],
        )
        spare_producer_id = next(self.producer_ids)
        return self.answer(
            self.shard.init_producer_id(request, *self.asked(version), spare_producer_id=spare_producer_id)
        )

    def add(
        self,
        name: str,
        known: tuple[int, int],
        *partitions: int,
        version: int = 5,
        verify_only: bool = False,
    ) -> Any:
        request = AddPartitionsToTxnTransaction(
            transactional_id=name,
            producer_id=known[0],
            producer_epoch=known[1],
            verify_only=verify_only,
            topics=[AddPartitionsToTxnTopic(name="orders", partitions=partitions)],
        )
        return self.answer(self.shard.add_partitions(request, *self.asked(version)))

    def add_offsets(self, name: str, known: tuple[int, int], *, version: int = 3) -> Any:
        request = AddOffsetsToTxnRequest(
            transactional_id=name, producer_id=known[0], producer_epoch=known[1], group_id="g"
        )
        return self.answer(self.shard.add_offsets(request, *self.asked(version), offsets_partition=7))

    def end(self, name: str, known: tuple[int, int], *, committed: bool, version: int = 5) -> Any:
        request = EndTxnRequest(
            transactional_id=name, producer_id=known[0], producer_epoch=known[1], committed=committed
        )
        asked = self.asked(version)
        outcome = self.shard.end_transaction(request, *asked, spare_producer_id=None)
        if outcome is None:
            spare = next(self.producer_ids)
            outcome = self.shard.end_transaction(request, *asked, spare_producer_id=spare)
        assert outcome is not None
        return self.answer(outcome)

    def write_markers(self, which: int = -1) -> None:
        if self.errands:
            errand = self.errands[which % len(self.errands)]
            self.do(self.shard.markers_written(errand, self.now_ms))

    # ── what there is ───────────────────────────────────────────────────────────────────────────────────────

    def recorded(self, since: int = 0) -> list[tuple[str | None, TransactionMetadata | None]]:
        return [
            (read_key(key), None if value is None else read_value(value)) for key, value in self.log[since:]
        ]

    def state_of(self, name: str) -> TransactionMetadata | None:
        known = self.shard.hard_state()
        assert isinstance(known, dict)
        found: TransactionMetadata | None = known.get(name)
        return found
