"""Whole batches sent to the leaders of their partitions, by an idempotent producer of our own, in transactions where asked.

Each request has one batch of a partition at most, since a broker takes no more; DEPTH requests are on their way to a broker at a
time. What a broker refuses for the moment is sent again as it is, in the same order: by its sequence a broker knows a batch that
it has already. What cannot be sent in the time is an error, after which the offsets that were kept say where to begin again.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final, TypeVar

from penstock.client.brokers import Brokers
from penstock.client.connection import BrokerConnection
from penstock.client.error_names import error_name
from penstock.client.errors import ReadFailed
from penstock.client.options import ClientOptions
from penstock.client.patience import Patience, Retriable
from penstock.connect.errors import ConnectError
from penstock.connect.tasks.writing import NotWritten
from penstock.mirror.batches import Outgoing, next_sequence
from penstock.model.errors import RETRIABLE, ErrorCode
from penstock.model.ids import TopicPartition, by_topic
from penstock.wire.codec import decode
from penstock.wire.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnTopic,
)
from penstock.wire.messages.end_txn import EndTxnRequest, EndTxnResponse
from penstock.wire.messages.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from penstock.wire.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from penstock.wire.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from penstock.wire.schema import Message

R = TypeVar("R", bound=Message)
log = logging.getLogger("penstock.mirror")

DEPTH: Final = 4
REQUEST_BYTES: Final = 4 << 20
PRODUCE_VERSION: Final = 11
"""The last one in which partitions are added to a transaction before they are written to."""
ADD_VERSION: Final = 3
END_VERSION: Final = 4
INIT_VERSION: Final = 4
TRANSACTION: Final = 1
TRANSACTION_TIMEOUT_MS: Final = 60_000
_AGAIN: Final = (RETRIABLE | {ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER}) - {ErrorCode.CORRUPT_MESSAGE}
_FENCED: Final = (ErrorCode.INVALID_PRODUCER_EPOCH, ErrorCode.PRODUCER_FENCED)
_COORDINATOR: Final = (ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_NOT_AVAILABLE)


class Sending:
    """A batch for a partition; `base_offset` is known when it is there."""

    __slots__ = ("base_offset", "batch", "is_stamped", "place")

    def __init__(self, place: TopicPartition, batch: Outgoing) -> None:
        self.place, self.batch = place, batch
        self.base_offset = -1
        self.is_stamped = False


class BatchWriter:
    """Use from one thread. `check` is called while it waits, and raises to end that."""

    def __init__(
        self,
        options: ClientOptions,
        *,
        transactional_id: str | None = None,
        check: Callable[[], None] = lambda: None,
    ) -> None:
        self._options, self._transactional_id, self._check = options, transactional_id, check
        self._brokers = Brokers(options)
        self._connections: dict[int, BrokerConnection] = {}
        self._leaders: dict[TopicPartition, int] = {}
        self.partitions: dict[str, int] = {}
        """Of the topics that were written to."""
        self._sequences: dict[TopicPartition, int] = {}
        self._producer_id, self._epoch = -1, -1
        self._coordinator: int | None = None
        self._added: set[TopicPartition] = set()
        self.is_in_transaction = False

    def open(self) -> None:
        """Whoever wrote with this transactional id before cannot any more. ConnectError."""
        request = InitProducerIdRequest(
            transactional_id=self._transactional_id, transaction_timeout_ms=TRANSACTION_TIMEOUT_MS
        )
        if self._transactional_id is None:
            answer = self._patiently(
                lambda: self._initialized(self._brokers.ask_any(request, InitProducerIdResponse))
            )
        else:
            answer = self._ask_coordinator(request, InitProducerIdResponse, self._initialized, INIT_VERSION)
        self._producer_id, self._epoch = answer.producer_id, answer.producer_epoch
        self._sequences.clear()

    def close(self) -> None:
        for connection in self._connections.values():
            connection.close()
        self._brokers.close()

    # Batches.

    def write(self, sendings: Sequence[Sending]) -> None:
        """All of them are there when it returns, in their order. ConnectError."""
        if self._transactional_id is not None:
            self._join(sending.place for sending in sendings)
        left = list(sendings)
        patience = self._options.patience()
        while left:
            failure = self._send_once(left)
            done = [sending for sending in left if sending.base_offset >= 0]
            left = [sending for sending in left if sending.base_offset < 0]
            if not left:
                return
            if done:
                patience = self._options.patience()
            self._check()
            self._leaders.clear()
            self._brokers.doubt()
            if not patience.pause():
                raise NotWritten(f"{left[0].place} cannot be written at the target: {failure}")

    def partition_count(self, topic: str) -> int:
        """ConnectError for a topic that is not there."""
        if topic not in self.partitions:
            self._patiently(lambda: self._learn([topic]))
        return self.partitions[topic]

    def _send_once(self, left: Sequence[Sending]) -> str:
        """What failed last."""
        failure = ""
        try:
            missing = {one.place.topic for one in left if one.place not in self._leaders}
            if missing:
                self._learn(missing)
        except Retriable as error:
            return str(error)
        for sending in left:
            if not sending.is_stamped:
                self._stamp(sending)
        lines: list[_Line] = []
        for node_id, requests in self._requests(left).items():
            try:
                lines.append(_Line(self, node_id, self._connection(node_id), requests))
            except Retriable as error:
                failure = str(error)
        while lines:
            for line in list(lines):
                try:
                    line.fill()
                    failure = line.take() or failure
                except OSError as error:
                    failure = f"the broker at {line.connection.address} stopped answering: {error}"
                    self._drop(line.node_id)
                    lines.remove(line)
                    continue
                if line.is_done:
                    lines.remove(line)
        return failure

    def _stamp(self, sending: Sending) -> None:
        sequence = self._sequences.get(sending.place, 0)
        sending.batch.stamp(
            self._producer_id, self._epoch, sequence, is_transactional=self._transactional_id is not None
        )
        self._sequences[sending.place] = next_sequence(sequence, sending.batch.count)
        sending.is_stamped = True

    def _requests(self, left: Sequence[Sending]) -> dict[int, deque[dict[TopicPartition, Sending]]]:
        """By leader; the batches of a partition are in requests one behind the other."""
        found: dict[int, deque[dict[TopicPartition, Sending]]] = {}
        sizes: dict[int, list[int]] = {}
        next_of: dict[TopicPartition, int] = {}
        for sending in left:
            node_id = self._leaders.get(sending.place)
            if node_id is None:
                continue
            requests, filled = found.setdefault(node_id, deque()), sizes.setdefault(node_id, [])
            at, size = next_of.get(sending.place, 0), len(sending.batch.data)
            while at < len(requests) and filled[at] + size > REQUEST_BYTES:
                at += 1
            if at == len(requests):
                requests.append({})
                filled.append(0)
            requests[at][sending.place] = sending
            filled[at] += size
            next_of[sending.place] = at + 1
        return found

    def request(self, batches: dict[TopicPartition, Sending]) -> ProduceRequest:
        topics: dict[str, list[PartitionProduceData]] = {}
        for place, sending in batches.items():
            data: Any = sending.batch.data
            topics.setdefault(place.topic, []).append(
                PartitionProduceData(index=place.partition, records=data)
            )
        return ProduceRequest(
            transactional_id=self._transactional_id,
            acks=-1,
            timeout_ms=self._options.request_timeout_ms,
            topic_data=[TopicProduceData(name=name, partition_data=data) for name, data in topics.items()],
        )

    def _learn(self, topics: Iterable[str]) -> None:
        for topic in self._brokers.metadata(sorted(topics)).topics:
            name = topic.name or ""
            if topic.error_code:
                if topic.error_code in RETRIABLE:
                    raise Retriable(f"{name}: {error_name(topic.error_code)}")
                raise NotWritten(
                    f"the topic {name} cannot be written at the target: {error_name(topic.error_code)}"
                )
            self.partitions[name] = len(topic.partitions)
            for one in topic.partitions:
                if one.leader_id >= 0:
                    self._leaders[TopicPartition(name, one.partition_index)] = one.leader_id

    def _connection(self, node_id: int) -> BrokerConnection:
        found = self._connections.get(node_id)
        if found is None:
            found = self._connections[node_id] = self._brokers.connect(node_id)
        return found

    def _drop(self, node_id: int) -> None:
        self._connections.pop(node_id).close()

    def fenced(self) -> str:
        """The same is said of a transaction that took too long. So the task does not end for good, but begins anew."""
        return (
            f"another task uses {self._transactional_id}, or its transaction took longer than "
            f"{TRANSACTION_TIMEOUT_MS // 1000} s"
        )

    # Transactions.

    def begin(self) -> None:
        self.is_in_transaction = True

    def end(self, *, is_commit: bool) -> None:
        """ConnectError."""
        self.is_in_transaction = False
        if not self._added:
            return
        request = EndTxnRequest(
            transactional_id=self._transactional_id or "",
            producer_id=self._producer_id,
            producer_epoch=self._epoch,
            committed=is_commit,
        )
        self._ask_coordinator(request, EndTxnResponse, self._ended, END_VERSION)
        self._added.clear()

    def _join(self, places: Iterable[TopicPartition]) -> None:
        new = set(places) - self._added
        if not new:
            return
        request = AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=self._transactional_id or "",
            v3_and_below_producer_id=self._producer_id,
            v3_and_below_producer_epoch=self._epoch,
            v3_and_below_topics=[
                AddPartitionsToTxnTopic(name=name, partitions=numbers)
                for name, numbers in by_topic(sorted(new)).items()
            ],
        )
        self._ask_coordinator(request, AddPartitionsToTxnResponse, self._joined, ADD_VERSION)
        self._added |= new

    def _initialized(self, answer: InitProducerIdResponse) -> InitProducerIdResponse:
        self._checked([answer.error_code], "the producer cannot be begun")
        return answer

    def _joined(self, answer: AddPartitionsToTxnResponse) -> AddPartitionsToTxnResponse:
        codes = [
            one.partition_error_code
            for topic in answer.results_by_topic_v3_and_below
            for one in topic.results_by_partition
        ]
        # Those beside a partition that is refused are not tried.
        told = [code for code in codes if code != ErrorCode.OPERATION_NOT_ATTEMPTED]
        self._checked(told, "the transaction cannot go on")
        return answer

    def _ended(self, answer: EndTxnResponse) -> EndTxnResponse:
        self._checked([answer.error_code], "the transaction cannot be ended")
        return answer

    def _checked(self, codes: Iterable[int], what: str) -> None:
        for code in codes:
            if code in _FENCED:
                raise NotWritten(self.fenced())
            if code in _COORDINATOR:
                self._coordinator = None
            if code in RETRIABLE or code == ErrorCode.CONCURRENT_TRANSACTIONS:
                raise Retriable(f"{what}: {error_name(code)}")
            if code:
                raise NotWritten(f"{what}: {error_name(code)}")

    def _ask_coordinator(
        self, request: Message, answer: type[R], checked: Callable[[R], R], highest: int
    ) -> R:
        def attempt() -> R:
            if self._coordinator is None:
                self._coordinator = self._find_coordinator()
            return checked(self._brokers.ask(self._coordinator, request, answer, highest=highest))

        found: R = self._patiently(attempt)
        return found

    def _find_coordinator(self) -> int:
        key = self._transactional_id or ""
        request = FindCoordinatorRequest(key=key, key_type=TRANSACTION, coordinator_keys=[key])
        answer = self._brokers.ask_any(request, FindCoordinatorResponse)
        found = answer.coordinators[0] if answer.coordinators else answer
        if found.error_code in RETRIABLE:
            raise Retriable(f"the transaction's coordinator: {error_name(found.error_code)}")
        if found.error_code:
            raise NotWritten(f"there is no coordinator of {key}: {error_name(found.error_code)}")
        if found.node_id not in self._brokers.addresses:
            self._brokers.metadata([])
        return int(found.node_id)

    def _patiently(self, attempt: Callable[[], Any]) -> Any:
        patience: Patience = self._options.patience()
        while True:
            try:
                return attempt()
            except Retriable as error:
                self._check()
                self._coordinator = None
                self._brokers.doubt()
                if not patience.pause():
                    raise NotWritten(str(error)) from None
            except ReadFailed as error:
                raise ConnectError(f"the target cluster does not answer: {error}") from None


class _Line:
    """Requests on their way to one broker."""

    def __init__(
        self,
        writer: BatchWriter,
        node_id: int,
        connection: BrokerConnection,
        requests: deque[dict[TopicPartition, Sending]],
    ) -> None:
        self.node_id, self.connection = node_id, connection
        self._writer, self._left = writer, requests
        self._sent: deque[tuple[int, dict[TopicPartition, Sending]]] = deque()
        self._version = connection.version(ProduceRequest, highest=PRODUCE_VERSION)
        self._number = 0

    @property
    def is_done(self) -> bool:
        return not self._left and not self._sent

    def fill(self) -> None:
        while self._left and len(self._sent) < DEPTH:
            batches = self._left.popleft()
            self._number += 1
            self._sent.append((self._number, batches))
            self.connection.send(self._writer.request(batches), self._version)

    def take(self) -> str:
        """The oldest answer, and what failed in it. Behind a batch that failed a broker takes no later one of its partition."""
        _, batches = self._sent.popleft()
        size = self.connection.receive_size()
        frame = memoryview(self.connection.receive(size, bytearray(size)))[:size]
        at = 4 if self._version < ProduceResponse.FLEXIBLE_FROM else 5
        answer, _ = decode(ProduceResponse, self._version, frame, at)
        failure = ""
        for topic in answer.responses:
            for one in topic.partition_responses:
                place = TopicPartition(topic.name, one.index)
                sending = batches[place]
                code = one.error_code
                if not code and one.base_offset >= 0:
                    sending.base_offset = one.base_offset
                    continue
                failure = f"{error_name(code)}{f' ({one.error_message})' if one.error_message else ''}"
                if code in _FENCED:
                    raise NotWritten(self._writer.fenced())
                if code and code not in _AGAIN:
                    raise NotWritten(f"the target does not take a batch for {place}: {failure}")
        return failure
