"""A transactional producer: transactions over several partitions, most committed, some aborted on purpose.

It speaks the older protocol (partitions are added first) or version 2 (the first batch adds its partition, every end brings a
new epoch). Several of its batches for a partition are on their way at once, and are taken in their order. What it cannot
know stays UNKNOWN: then all of the transaction or nothing of it must be there.
"""

from asyncio import Future, gather, sleep, timeout
from collections.abc import Coroutine
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Final

from penstock.model.errors import ErrorCode
from penstock.records.build import build_batch
from penstock.wire.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnTopic,
)
from penstock.wire.messages.end_txn import EndTxnRequest, EndTxnResponse
from penstock.wire.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from penstock.wire.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from simulation.seeds.client import ANSWER_SECONDS, TRANSACTION, Client
from simulation.seeds.history import History, Outcome, Place, Transaction
from simulation.seeds.producers import PRODUCE_TIMEOUT_MS, RETRIABLE
from simulation.seeds.sockets import Address
from simulation.seeds.wire import Unanswered, Wire

TIMEOUT_MS: Final = 8_000
ABORT_CHANCE: Final = 0.25
FORGET_CHANCE: Final = 0.05
"""Of leaving a transaction open, as a producer that was killed does; the next one of its name ends it."""
FENCED: Final = frozenset(
    {
        ErrorCode.INVALID_PRODUCER_EPOCH, ErrorCode.PRODUCER_FENCED, ErrorCode.INVALID_TXN_STATE,
        ErrorCode.INVALID_PRODUCER_ID_MAPPING, ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, ErrorCode.UNKNOWN_PRODUCER_ID,
        ErrorCode.TRANSACTION_ABORTABLE,
    }
)  # fmt: skip
"""After these the producer begins anew; its transaction was timed out and aborted, or is now."""


TAKEN: Final = (ErrorCode.NONE, ErrorCode.DUPLICATE_SEQUENCE_NUMBER)
MAX_ROUNDS: Final = 3
LONGEST_GAP_SECONDS: Final = 0.01


class Fenced(Exception):
    pass


@dataclass
class Batch:
    place: Place
    base_sequence: int
    records: bytes
    wire: Wire | None = None
    """The connection on which it was sent."""
    code: int = ErrorCode.NETWORK_EXCEPTION


class TransactionalProducer:
    def __init__(self, client: Client, history: History, *, version_2: bool) -> None:
        self._client = client
        self._history = history
        self._version_2 = version_2
        self._id = client.name
        self._producer_id = -1
        self._producer_epoch = -1
        self._sequences: dict[Place, int] = {}
        self._count = 0

    async def run(self, places: list[Place], *, until: float) -> None:
        random = self._client.random
        loop = self._client.process.loop
        await self._init()
        while loop.time() < until:
            transaction = Transaction(f"{self._id}.{self._count}")
            self._count += 1
            self._history.transactions.append(transaction)
            chosen = random.sample(places, random.randint(1, min(3, len(places))))
            try:
                await self._write(transaction, sorted(chosen))
                if random.random() < FORGET_CHANCE:
                    transaction.outcome = Outcome.ABORTED
                    await self._init()
                else:
                    await self._end(transaction, committed=random.random() >= ABORT_CHANCE)
            except Fenced:
                self._history.counts["transactions fenced"] += 1
                if transaction.outcome is Outcome.OPEN:
                    transaction.outcome = Outcome.ABORTED
                await self._init()
            await sleep(random.random() * 0.5)

    async def _init(self) -> None:
        request = InitProducerIdRequest(transactional_id=self._id, transaction_timeout_ms=TIMEOUT_MS)
        while True:
            try:
                answer = await self._ask_init(request)
            except Unanswered:
                await self._client.pause()
                continue
            if answer.error_code == ErrorCode.NONE:
                self._producer_id, self._producer_epoch = answer.producer_id, answer.producer_epoch
                self._sequences.clear()
                return
            try:
                self._note_error(answer.error_code)
            except Fenced:
                pass  # by somebody who began at the same moment: begin again
            await self._client.pause()

    async def _ask_init(self, request: InitProducerIdRequest) -> InitProducerIdResponse:
        return await self._client.ask_coordinator(TRANSACTION, self._id, request, InitProducerIdResponse, 4)

    async def _write(self, transaction: Transaction, places: list[Place]) -> None:
        if not self._version_2:
            await self._add(places)
        lines = await self._write_at_once(transaction, places)
        ended = await gather(
            *(self._write_rest(place, line) for place, line in lines.items()), return_exceptions=True
        )
        for error in ended:
            if error is not None:
                raise error

    async def _write_at_once(
        self, transaction: Transaction, places: list[Place]
    ) -> dict[Place, list["Batch"]]:
        """Several batches for each partition, as real producers send them: a request for all partitions of a leader, and the
        next one behind it on the same connection before it is answered."""
        random = self._client.random
        lines: dict[Place, list[Batch]] = {place: [] for place in places}
        sent: list[Coroutine[Any, Any, None]] = []
        for _ in range(random.randint(1, MAX_ROUNDS)):
            by_leader: dict[Address, list[Batch]] = {}
            for place in random.sample(places, random.randint(1, len(places))):
                batch = self._make(transaction, place)
                lines[place].append(batch)
                if all(each.wire is not None for each in lines[place][:-1]):  # else it is not its turn
                    by_leader.setdefault((await self._client.leader(place))[0], []).append(batch)
            for address, batches in by_leader.items():
                answered = await self._send(address, batches)
                if answered is not None:
                    sent.append(self._take(answered, batches))
                await sleep(random.random() * LONGEST_GAP_SECONDS)
        await gather(*sent)
        for place, line in lines.items():
            self._judge(place, line)
        return lines

    async def _send(self, address: Address, batches: list["Batch"]) -> "Future[ProduceResponse] | None":
        """One request, behind those that were sent before; None when there is no connection."""
        try:
            wire = await self._client.wire(address)
        except Unanswered:
            return None
        for batch in batches:
            batch.wire = wire
        return wire.send(self._request(batches), ProduceResponse, self._version)

    async def _take(self, answered: "Future[ProduceResponse]", batches: list["Batch"]) -> None:
        """What became of a request is noted in its batches."""
        try:
            async with timeout(ANSWER_SECONDS):
                answer = await answered
        except (Unanswered, TimeoutError):
            for batch in batches:
                if batch.wire is not None:
                    batch.wire.close("no answer")
            return
        codes = {
            (topic.name, each.index): each.error_code
            for topic in answer.responses
            for each in topic.partition_responses
        }
        for batch in batches:
            batch.code = codes[batch.place]

    def _judge(self, place: Place, line: list["Batch"]) -> None:
        """A batch came behind another on one connection, and that one was taken: so it is in order."""
        for before, batch in pairwise(line):
            if before.code not in TAKEN or before.wire is not batch.wire:
                return
            if batch.code == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER:
                self._history.violated(
                    f"{place[0]}-{place[1]}: the batch of sequence {batch.base_sequence} of {self._id} was refused with "
                    "OUT_OF_ORDER_SEQUENCE_NUMBER although all before it were acknowledged"
                )

    async def _write_rest(self, place: Place, line: list["Batch"]) -> None:
        """One after the other, what was not taken at once. A batch behind one that was refused is out of order, and only sent
        again, as real producers do."""
        is_behind_refused = False
        for batch in line:
            if is_behind_refused and batch.code == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER:
                batch.wire = None  # as if it had not been sent
            is_behind_refused |= batch.code not in TAKEN
            while batch.code not in TAKEN:
                if batch.wire is not None:
                    self._note_error(batch.code)
                    self._client.forget_leader(place)
                    await self._client.pause()
                batch.code = int(ErrorCode.NETWORK_EXCEPTION)
                answered = await self._send((await self._client.leader(place))[0], [batch])
                if answered is None:
                    self._client.forget_leader(place)
                    await self._client.pause()
                else:
                    await self._take(answered, [batch])

    def _make(self, transaction: Transaction, place: Place) -> "Batch":
        number = len(transaction.records)
        values = [
            b"%s/%d/%d" % (transaction.name.encode(), place[1], number + index)
            for index in range(self._client.random.randint(1, 3))
        ]
        transaction.records += [(place, value) for value in values]
        sequence = self._sequences.get(place, 0)
        self._sequences[place] = sequence + len(values)
        now_ms = self._client.process.clock.now_ms()
        records = build_batch(
            [(None, value, (), now_ms) for value in values],
            producer_id=self._producer_id,
            producer_epoch=self._producer_epoch,
            base_sequence=sequence,
            transactional=True,
        )
        return Batch(place, sequence, bytes(records))

    def _request(self, batches: list["Batch"]) -> ProduceRequest:
        topics: dict[str, list[PartitionProduceData]] = {}
        for batch in batches:
            data = PartitionProduceData(index=batch.place[1], records=batch.records)
            topics.setdefault(batch.place[0], []).append(data)
        return ProduceRequest(
            transactional_id=self._id,
            acks=-1,
            timeout_ms=PRODUCE_TIMEOUT_MS,
            topic_data=[TopicProduceData(name=name, partition_data=data) for name, data in topics.items()],
        )

    @property
    def _version(self) -> int:
        return 12 if self._version_2 else 11

    async def _add(self, places: list[Place]) -> None:
        by_topic: dict[str, list[int]] = {}
        for topic, index in places:
            by_topic.setdefault(topic, []).append(index)
        request = AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=self._id,
            v3_and_below_producer_id=self._producer_id,
            v3_and_below_producer_epoch=self._producer_epoch,
            v3_and_below_topics=[
                AddPartitionsToTxnTopic(name=topic, partitions=indexes) for topic, indexes in by_topic.items()
            ],
        )
        while True:
            try:
                answer = await self._client.ask_coordinator(
                    TRANSACTION, self._id, request, AddPartitionsToTxnResponse, 3
                )
            except Unanswered:
                await self._client.pause()
                continue
            codes = {
                result.partition_error_code
                for topic in answer.results_by_topic_v3_and_below
                for result in topic.results_by_partition
            } - {ErrorCode.NONE, ErrorCode.OPERATION_NOT_ATTEMPTED}
            if not codes:
                return
            for code in sorted(codes):
                self._note_error(code)
            await self._client.pause()

    async def _end(self, transaction: Transaction, *, committed: bool) -> None:
        request = EndTxnRequest(
            transactional_id=self._id,
            producer_id=self._producer_id,
            producer_epoch=self._producer_epoch,
            committed=committed,
        )
        transaction.outcome = Outcome.UNKNOWN if committed else Outcome.ABORTED
        while True:
            try:
                answer = await self._client.ask_coordinator(
                    TRANSACTION, self._id, request, EndTxnResponse, 5 if self._version_2 else 3
                )
            except Unanswered:
                await self._client.pause()
                continue
            if answer.error_code == ErrorCode.NONE:
                transaction.outcome = Outcome.COMMITTED if committed else Outcome.ABORTED
                if self._version_2:
                    self._producer_id, self._producer_epoch = answer.producer_id, answer.producer_epoch
                    self._sequences.clear()
                return
            self._note_error(answer.error_code)
            await self._client.pause()

    def _note_error(self, code: int) -> None:
        """Fenced where the producer must begin anew; nothing where it may try again."""
        self._client.forget_coordinator(TRANSACTION, self._id)
        if code in FENCED:
            raise Fenced
        if code not in RETRIABLE:
            self._history.violated(f"{self._id}: a transaction was refused with {ErrorCode(code).name}")
