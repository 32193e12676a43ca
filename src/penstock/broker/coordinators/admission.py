"""Asks the coordinator whether a transactional batch may begin a transaction in a partition of this broker.

Asked once per transaction and partition, before the first batch is appended. The coordinator says whether the partition
belongs to the transaction (clients that add partitions by themselves) or adds it (transaction version 2). It is this broker,
or another, which is asked over the network, for many producers at once.

The transaction may end between the coordinator's answer and the append. If the batch were appended after the marker, it would
begin a transaction that never ends. So after a wait the batch is appended only if no marker of this producer was written
meanwhile.
"""

from asyncio import Future
from collections.abc import Sequence
from enum import IntEnum
from typing import TYPE_CHECKING, Any, Final, Protocol

from penstock.broker.coordinators.peer_batches import PeerBatches
from penstock.broker.requests.later import Later, NowOrLater
from penstock.coordination.form import RequestContext
from penstock.metadata.image import NO_LEADER
from penstock.model.api_keys import ApiKey
from penstock.model.errors import ApiError, ErrorCode
from penstock.model.ids import TopicPartition
from penstock.wire.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnResult,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTopicResult,
    AddPartitionsToTxnTransaction,
)

if TYPE_CHECKING:
    from penstock.broker.coordinators.transactions import TransactionHost
    from penstock.broker.facets import WithBrokerId, WithLoop, WithPartitions, WithPeers

    class Needs(WithBrokerId, WithLoop, WithPartitions, WithPeers, Protocol): ...


ASKED_VERSION: Final = 5
INSIDE: Final = RequestContext(ASKED_VERSION, "", "")
"""Who asks when this broker does."""
ASK_TIMEOUT_SECONDS: Final = 10.0
"""Longer than a coordinator waits for its followers."""


class ClientLevel(IntEnum):
    """What the version of a Produce or TxnOffsetCommit request says of its sender (KIP-890)."""

    VERIFIED = 0
    KNOWS_ABORTABLE = 1
    LEAVES_ADDING_TO_THE_BROKER = 2

    @classmethod
    def of(cls, api_version: int, *, abortable_from: int, adds_from: int) -> "ClientLevel":
        if api_version >= adds_from:
            return cls.LEAVES_ADDING_TO_THE_BROKER
        return cls.KNOWS_ABORTABLE if api_version >= abortable_from else cls.VERIFIED


Refusals = dict[TopicPartition, ErrorCode]


class _Asked:
    """A question for a coordinator elsewhere; no answer (None) means that it could not be asked."""

    __slots__ = ("answer", "partition_count", "wanted")

    def __init__(self, wanted: AddPartitionsToTxnTransaction, answer: "Future[Any]") -> None:
        self.wanted = wanted
        self.answer = answer
        self.partition_count = sum(len(topic.partitions) for topic in wanted.topics)

    @property
    def name(self) -> str:
        return self.wanted.transactional_id

    def fail(self) -> None:
        self.tell(None)

    def tell(self, result: AddPartitionsToTxnResult | None) -> None:
        if not self.answer.done():
            self.answer.set_result(result)


class _Guard:
    """Notices the end of a producer's transaction in partitions that it waits to be let into."""

    __slots__ = ("epochs", "over", "producer_id")

    def __init__(self, producer_id: int, epochs: dict[TopicPartition, int | None]) -> None:
        self.producer_id = producer_id
        self.epochs = epochs
        """The leader epoch of each: in another, markers may have come by without our knowing."""
        self.over: set[TopicPartition] = set()


class Admissions:
    def __init__(self, node: "Needs", host: "TransactionHost") -> None:
        self._node = node
        self._host = host
        self._guards: dict[tuple[TopicPartition, int], set[_Guard]] = {}
        self._batches: PeerBatches[_Asked] = PeerBatches(node.loop, self._send)

    def admit(
        self,
        transactional_id: str,
        partitions: Sequence[TopicPartition],
        *,
        producer_id: int,
        producer_epoch: int,
        client: ClientLevel,
    ) -> NowOrLater[Refusals]:
        """For the partitions that a batch may not be appended to. They hold in the step in which they are returned, no longer."""
        topics: dict[str, list[int]] = {}
        for name, index in partitions:
            topics.setdefault(name, []).append(index)
        wanted = AddPartitionsToTxnTransaction(
            transactional_id=transactional_id,
            producer_id=producer_id,
            producer_epoch=producer_epoch,
            verify_only=client < ClientLevel.LEAVES_ADDING_TO_THE_BROKER,
            topics=[
                AddPartitionsToTxnTopic(name=name, partitions=indexes) for name, indexes in topics.items()
            ],
        )
        try:
            answered = self._ask(wanted)
        except ApiError as refusal:
            return dict.fromkeys(partitions, _as_produce_error(refusal.code, client))
        if isinstance(answered, Later):
            guard = self._guard(producer_id, partitions)
            return Later(self._admit_later(answered, partitions, client, guard))
        return _refusals(answered.topic_results, client)

    def _ask(self, wanted: AddPartitionsToTxnTransaction) -> NowOrLater[AddPartitionsToTxnResult]:
        coordinator = self._host.coordinator_of(wanted.transactional_id)
        if coordinator is None or coordinator == self._node.broker_id:
            return self._host.ask(
                wanted.transactional_id,
                lambda shard, ticket, now_ms: shard.add_partitions(wanted, INSIDE, ticket, now_ms),
                reads_only=wanted.verify_only,
            )
        if coordinator == NO_LEADER:
            raise ApiError(ErrorCode.COORDINATOR_NOT_AVAILABLE)
        answer: Future[Any] = self._node.loop.create_future()
        self._batches.put(coordinator, _Asked(wanted, answer))
        return Later(_answer_from_elsewhere(answer))

    async def _admit_later(
        self,
        answered: Later[AddPartitionsToTxnResult],
        partitions: Sequence[TopicPartition],
        client: ClientLevel,
        guard: _Guard,
    ) -> Refusals:
        try:
            result = await answered
            refusals = _refusals(result.topic_results, client)
            for topic_partition in self._ended(guard):
                refusals.setdefault(topic_partition, ErrorCode.NOT_ENOUGH_REPLICAS)  # try again
        except ApiError as refusal:
            return dict.fromkeys(partitions, _as_produce_error(refusal.code, client))
        finally:
            self._release(guard)
        return refusals

    async def _send(self, broker_id: int, asked: list[_Asked]) -> None:
        response = await self._node.peers.ask(
            broker_id,
            AddPartitionsToTxnRequest(transactions=[each.wanted for each in asked]),
            AddPartitionsToTxnResponse,
            version=await self._node.spoken.version(
                broker_id, ApiKey.ADD_PARTITIONS_TO_TXN, purpose="transactions"
            ),
            timeout_s=ASK_TIMEOUT_SECONDS,
            purpose="transactions",
        )
        if response.error_code:
            return  # it cannot say now
        results = {result.transactional_id: result for result in response.results_by_transaction}
        for each in asked:
            result = results.get(each.name)
            each.tell(result if result is not None and _count(result) == each.partition_count else None)

    # --- ends that come by meanwhile

    def ended(self, topic_partition: TopicPartition, producer_id: int) -> None:
        """A marker of the producer is in the log of a partition here."""
        for guard in self._guards.get((topic_partition, producer_id), ()):
            guard.over.add(topic_partition)

    def _guard(self, producer_id: int, partitions: Sequence[TopicPartition]) -> _Guard:
        guard = _Guard(producer_id, {each: self._leader_epoch(each) for each in partitions})
        for topic_partition in guard.epochs:
            self._guards.setdefault((topic_partition, producer_id), set()).add(guard)
        return guard

    def _ended(self, guard: _Guard) -> set[TopicPartition]:
        return guard.over | {
            topic_partition
            for topic_partition, epoch in guard.epochs.items()
            if self._leader_epoch(topic_partition) != epoch
        }

    def _release(self, guard: _Guard) -> None:
        for topic_partition in guard.epochs:
            key = (topic_partition, guard.producer_id)
            guards = self._guards[key]
            guards.discard(guard)
            if not guards:
                del self._guards[key]

    def _leader_epoch(self, topic_partition: TopicPartition) -> int | None:
        try:
            partition = self._node.partitions.get(*topic_partition)
        except ApiError:
            return None
        return partition.leader_epoch if partition.is_leader else None

    def close(self) -> None:
        self._batches.close()


async def _answer_from_elsewhere(answer: "Future[Any]") -> AddPartitionsToTxnResult:
    result: AddPartitionsToTxnResult | None = await answer
    if result is None:
        raise ApiError(ErrorCode.COORDINATOR_NOT_AVAILABLE)
    return result


def _count(result: AddPartitionsToTxnResult) -> int:
    return sum(len(topic.results_by_partition) for topic in result.topic_results)


def _refusals(results: Sequence[AddPartitionsToTxnTopicResult], client: ClientLevel) -> Refusals:
    return {
        TopicPartition(topic.name, result.partition_index): _as_produce_error(
            ErrorCode(result.partition_error_code), client
        )
        for topic in results
        for result in topic.results_by_partition
        if result.partition_error_code
    }


_NOT_DECIDED: Final = frozenset(
    (
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.OPERATION_NOT_ATTEMPTED,  # because of another partition, which the coordinator may not know yet
    )
)


def _as_produce_error(error: ErrorCode, client: ClientLevel) -> ErrorCode:
    """What a producer is told: errors of the coordinator mean nothing to it; what is not decided yet, it should try again."""
    if error in _NOT_DECIDED:
        return ErrorCode.NOT_ENOUGH_REPLICAS
    if error is ErrorCode.CONCURRENT_TRANSACTIONS and client < ClientLevel.LEAVES_ADDING_TO_THE_BROKER:
        return ErrorCode.NOT_ENOUGH_REPLICAS
    if error is ErrorCode.TRANSACTION_ABORTABLE and client < ClientLevel.KNOWS_ABORTABLE:
        return ErrorCode.INVALID_TXN_STATE
    return ErrorCode.INVALID_PRODUCER_EPOCH if error is ErrorCode.PRODUCER_FENCED else error
