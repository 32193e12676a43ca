"""An idempotent producer with acks=all, as real ones work: in order, several requests in flight, tried again for ever."""

from asyncio import Future, gather, sleep, timeout
from collections import deque
from dataclasses import dataclass
from typing import Final

from penstock.model.errors import ErrorCode
from penstock.records.build import build_batch
from penstock.wire.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from penstock.wire.messages.produce import (
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from simulation.seeds.client import ANSWER_SECONDS, Client
from simulation.seeds.history import History, Place
from simulation.seeds.wire import Unanswered, Wire

PRODUCE_TIMEOUT_MS: Final = 4_000
PRODUCE_VERSION: Final = 9
MAX_RECORDS: Final = 4
LARGE_RECORD_BYTES: Final = 6_000
LARGE_CHANCE: Final = 0.05
WAITING_BATCHES: Final = 10
"""As max.block.ms would: a producer that has so many unacknowledged makes no more."""

RETRIABLE: Final = frozenset(
    {
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.LEADER_NOT_AVAILABLE, ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.REQUEST_TIMED_OUT, ErrorCode.REPLICA_NOT_AVAILABLE, ErrorCode.NOT_ENOUGH_REPLICAS,
        ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND, ErrorCode.KAFKA_STORAGE_ERROR, ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.UNKNOWN_LEADER_EPOCH, ErrorCode.OFFSET_NOT_AVAILABLE, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.NOT_COORDINATOR, ErrorCode.CONCURRENT_TRANSACTIONS,
        ErrorCode.BROKER_NOT_AVAILABLE, ErrorCode.NETWORK_EXCEPTION, ErrorCode.UNSTABLE_OFFSET_COMMIT,
        ErrorCode.NOT_CONTROLLER, ErrorCode.UNKNOWN_TOPIC_ID, ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR,
    }
)  # fmt: skip


@dataclass
class Batch:
    base_sequence: int
    values: list[bytes]
    is_acknowledged: bool = False


class Producer:
    def __init__(self, client: Client, history: History, *, max_in_flight: int) -> None:
        self._client = client
        self._history = history
        self._max_in_flight = max_in_flight
        self._producer_id = -1
        self._producer_epoch = -1

    async def run(self, places: list[Place], *, until: float) -> None:
        """Make records until that moment, and return when all of them are acknowledged."""
        await self._init()
        await gather(*(PartitionLine(self, place).run(until) for place in places))

    async def _init(self) -> None:
        request = InitProducerIdRequest(transactional_id=None)
        while True:
            answer = await self._client.ask_any(request, InitProducerIdResponse, 4)
            if answer.error_code == ErrorCode.NONE:
                self._producer_id, self._producer_epoch = answer.producer_id, answer.producer_epoch
                return
            await self._client.pause()

    @property
    def client(self) -> Client:
        return self._client

    @property
    def history(self) -> History:
        return self._history

    @property
    def max_in_flight(self) -> int:
        return self._max_in_flight

    def encode(self, place: Place, batch: Batch) -> ProduceRequest:
        now_ms = self._client.process.clock.now_ms()
        records = build_batch(
            [(None, value, (), now_ms) for value in batch.values],
            producer_id=self._producer_id,
            producer_epoch=self._producer_epoch,
            base_sequence=batch.base_sequence,
        )
        return produce_request(place, bytes(records))


class PartitionLine:
    """The batches of one producer for one partition, in the order of their sequence numbers."""

    def __init__(self, producer: Producer, place: Place) -> None:
        self._producer = producer
        self._client = producer.client
        self._place = place
        self._batches: deque[Batch] = deque()
        self._next_sequence = 0
        self._made = 0
        self._has_been_accepted = False

    async def run(self, until: float) -> None:
        loop = self._client.process.loop
        random = self._client.random
        while loop.time() < until or self._batches:
            if loop.time() < until and len(self._batches) < WAITING_BATCHES:
                for _ in range(random.randint(1, 3)):
                    self._make()
            await self._send_some()
            if loop.time() < until:
                await sleep(random.random() * 0.4)

    def _make(self) -> None:
        random = self._client.random
        values: list[bytes] = []
        for number in range(random.randint(1, MAX_RECORDS)):
            is_large = number == 0 and random.random() < LARGE_CHANCE
            padding = b"." * (LARGE_RECORD_BYTES if is_large else random.randrange(40))
            value = b"%s/%d/%d/%s" % (self._client.name.encode(), self._place[1], self._made, padding)
            self._producer.history.was_sent(self._place, value)
            values.append(value)
            self._made += 1
        self._batches.append(Batch(self._next_sequence, values))
        self._next_sequence += len(values)

    async def _send_some(self) -> None:
        """Send the line in windows until all is acknowledged or something goes wrong."""
        try:
            address, _ = await self._client.leader(self._place)
            wire = await self._client.wire(address)
            while self._batches:
                # Before a partition knows a producer it takes any sequence number for the first: so do not overtake.
                window = self._producer.max_in_flight if self._has_been_accepted else 1
                sent: list[tuple[Batch, Future[ProduceResponse]]] = []
                for batch in list(self._batches)[:window]:
                    request = self._producer.encode(self._place, batch)
                    sent.append((batch, wire.send(request, ProduceResponse, PRODUCE_VERSION)))
                if not await self._answers(wire, sent):
                    break
            else:
                return
        except Unanswered:
            pass
        self._client.forget_leader(self._place)
        await self._client.pause()

    async def _answers(self, wire: Wire, sent: list[tuple[Batch, "Future[ProduceResponse]"]]) -> bool:
        """Take all answers, also behind one that failed: those may have been stored. Whether all is well."""
        refused: list[tuple[Batch, int]] = []
        lost: Unanswered | None = None
        for batch, future in sent:
            try:
                async with timeout(ANSWER_SECONDS):
                    answer = (await future).responses[0].partition_responses[0]
            except (Unanswered, TimeoutError) as error:
                wire.close("no answer")
                lost = lost or Unanswered(str(error))
                continue
            if answer.error_code in (ErrorCode.NONE, ErrorCode.DUPLICATE_SEQUENCE_NUMBER):
                self._accepted(batch, answer)
            else:
                refused.append((batch, answer.error_code))
        self._drop_acknowledged()
        if refused and lost is None and self._batches and self._batches[0] is refused[0][0]:
            self._judge(*refused[0])
        if lost is not None:
            raise lost
        return not refused

    def _drop_acknowledged(self) -> None:
        """Also those before one that was acknowledged, whatever became of their own answers (REQUEST_TIMED_OUT, say): a
        partition takes batches in their order only, so they are there. Tried again they might not be known any more, since
        a broker that was started again knows the last batch of a producer only.
        """
        last = max((n for n, batch in enumerate(self._batches) if batch.is_acknowledged), default=-1)
        for _ in range(last + 1):
            batch = self._batches.popleft()
            if not batch.is_acknowledged:
                for value in batch.values:
                    self._producer.history.was_acknowledged(self._place, value, -1)

    def _accepted(self, batch: Batch, answer: PartitionProduceResponse) -> None:
        self._has_been_accepted = True
        if batch.is_acknowledged:
            return
        batch.is_acknowledged = True
        for number, value in enumerate(batch.values):
            offset = answer.base_offset + number if answer.base_offset >= 0 else -1
            self._producer.history.was_acknowledged(self._place, value, offset)

    def _judge(self, batch: Batch, code: int) -> None:
        """The first that is not acknowledged was refused, and none behind it was taken: that must be a passing trouble."""
        if code not in RETRIABLE:
            self._producer.history.violated(
                f"{self._place[0]}-{self._place[1]}: the batch of sequence {batch.base_sequence} of {self._client.name} "
                f"was refused with {ErrorCode(code).name} although all before it were acknowledged"
            )


def produce_request(
    place: Place, records: bytes, *, acks: int = -1, transactional_id: str | None = None
) -> ProduceRequest:
    return ProduceRequest(
        transactional_id=transactional_id,
        acks=acks,
        timeout_ms=PRODUCE_TIMEOUT_MS,
        topic_data=[
            TopicProduceData(
                name=place[0], partition_data=[PartitionProduceData(index=place[1], records=records)]
            )
        ],
    )
