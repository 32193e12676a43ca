"""The host of the transaction coordinator: writes the markers its shards ask for, and lets producers in.

A producer is let in once per transaction and partition: `admit` asks the coordinator whether the partition belongs to
the transaction (or, for clients of transaction version 2, adds it), before the first batch is appended.
"""

import logging
from collections.abc import Coroutine, Sequence
from enum import IntEnum
from types import CoroutineType
from typing import TYPE_CHECKING, Any, Final

from penstock.broker.coordinator_host import CoordinatorHost
from penstock.broker.transaction_markers import write_markers
from penstock.coordination.form import RequestContext
from penstock.metadata.image import Topic
from penstock.model.errors import ApiError, ErrorCode
from penstock.model.ids import TopicPartition
from penstock.model.internal_topics import TRANSACTION_STATE
from penstock.wire.messages.add_partitions_to_txn import (
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTopicResult,
    AddPartitionsToTxnTransaction,
)

if TYPE_CHECKING:
    from asyncio import TimerHandle

    from penstock.broker.node import Node
    from penstock.transactions.markers import MarkersToWrite
    from penstock.transactions.options import TransactionOptions
    from penstock.transactions.shard import TransactionShard

log = logging.getLogger("penstock.broker")

RETRY_SECONDS: Final = 1.0
"""Between two tries to write a marker to a partition that is offline."""
INSIDE: Final = RequestContext(5, "", "")
"""Who asks when a broker does, in the newest version of AddPartitionsToTxn."""


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


class TransactionHost(CoordinatorHost["TransactionShard"]):
    topic_name = TRANSACTION_STATE

    def __init__(self, node: "Node") -> None:
        super().__init__(node)
        self._retries: dict[tuple[int, str], TimerHandle] = {}

    def new_shard(self, index: int) -> "TransactionShard":
        from penstock.transactions.shard import TransactionShard

        return TransactionShard(options=_options(self._node), partition_index=index)

    async def ensure_topic(self) -> Topic:
        return await self._node.topics.transaction_state()

    def topic_deleted(self, name: str) -> None:
        if name == TRANSACTION_STATE:
            for index, shard in tuple(self._shards.items()):
                self._give_up(index, shard)

    def close(self) -> None:
        for timer in self._retries.values():
            timer.cancel()
        self._retries.clear()
        super().close()

    # --- markers

    def run_errand(self, index: int, errand: object) -> None:
        from penstock.transactions.markers import MarkersToWrite

        assert isinstance(errand, MarkersToWrite)
        earlier = self._retries.pop((index, errand.transactional_id), None)
        if earlier is not None:  # of a shard that was given up, and has begun again with all partitions
            earlier.cancel()
        self._write_markers(index, errand, errand.partitions)

    def _write_markers(
        self, index: int, errand: "MarkersToWrite", partitions: Sequence[tuple[str, int]]
    ) -> None:
        shard = self._shards.get(index)
        if shard is None or self._is_closed:
            return  # whoever loads it next begins again
        results = write_markers(
            self._node,
            partitions,
            producer_id=errand.producer_id,
            producer_epoch=errand.producer_epoch,
            committed=errand.committed,
            coordinator_epoch=self._node.partitions.get(TRANSACTION_STATE, index).leader_epoch,
            transaction_version=errand.transaction_version,
        )
        left: list[TopicPartition] = []
        for place, error in results.items():
            if error is ErrorCode.KAFKA_STORAGE_ERROR:
                left.append(place)
            elif error is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
                # One that was deleted needs no marker. One whose log could not be opened does: it would hang for ever.
                if self._node.image.partition(*place) is not None:
                    left.append(place)
            elif error is not ErrorCode.NONE:  # which will not change by asking again
                log.warning(
                    "%s-%s takes no marker of transaction %s: %s", *place, errand.transactional_id, error.name
                )
        if left:
            name = (index, errand.transactional_id)
            self._retries[name] = self._node.loop.call_later(
                RETRY_SECONDS, self._write_markers, index, errand, left
            )
            return
        self._retries.pop((index, errand.transactional_id), None)
        self._act_unasked(index, shard, shard.markers_written(errand, self._now_ms()))

    # --- admission

    def admit(
        self,
        transactional_id: str,
        partitions: Sequence[TopicPartition],
        *,
        producer_id: int,
        producer_epoch: int,
        client: "ClientLevel",
    ) -> Any:
        """`Refusals` for the partitions that a batch may not be appended to, or a coroutine that will return them."""
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
            answered = self.ask(
                transactional_id,
                lambda shard, ticket, now_ms: shard.add_partitions(wanted, INSIDE, ticket, now_ms),
            )
        except ApiError as refusal:
            return {place: _as_produce_error(refusal.code, client) for place in partitions}
        if isinstance(answered, CoroutineType):
            return self._admit_later(answered, partitions, client)
        return _refusals(answered.topic_results, client)

    async def _admit_later(
        self, answered: Coroutine[Any, Any, Any], partitions: Sequence[TopicPartition], client: "ClientLevel"
    ) -> Refusals:
        try:
            result = await answered
        except ApiError as refusal:
            return {place: _as_produce_error(refusal.code, client) for place in partitions}
        return _refusals(result.topic_results, client)


def _refusals(results: Sequence[AddPartitionsToTxnTopicResult], client: "ClientLevel") -> Refusals:
    return {
        TopicPartition(topic.name, result.partition_index): _as_produce_error(
            ErrorCode(result.partition_error_code), client
        )
        for topic in results
        for result in topic.results_by_partition
        if result.partition_error_code
    }


_PASSING: Final = frozenset(
    (
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.NOT_COORDINATOR,
    )
)


def _as_produce_error(error: ErrorCode, client: "ClientLevel") -> ErrorCode:
    """What a producer is told: errors of the coordinator mean nothing to it; what passes, it should try again."""
    if error in _PASSING:
        return ErrorCode.NOT_ENOUGH_REPLICAS
    if error is ErrorCode.CONCURRENT_TRANSACTIONS and client < ClientLevel.LEAVES_ADDING_TO_THE_BROKER:
        return ErrorCode.NOT_ENOUGH_REPLICAS
    if error is ErrorCode.TRANSACTION_ABORTABLE and client < ClientLevel.KNOWS_ABORTABLE:
        return ErrorCode.INVALID_TXN_STATE
    return ErrorCode.INVALID_PRODUCER_EPOCH if error is ErrorCode.PRODUCER_FENCED else error


def _options(node: "Node") -> "TransactionOptions":
    from penstock.transactions.options import TransactionOptions

    get = node.config.get
    return TransactionOptions(
        max_timeout_ms=get("transaction.max.timeout.ms"),
        transactional_id_expiration_ms=get("transactional.id.expiration.ms"),
        expiration_check_interval_ms=get("transaction.remove.expired.transaction.cleanup.interval.ms"),
        two_phase_commit=get("transaction.two.phase.commit.enable"),
    )
