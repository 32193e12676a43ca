"""Commit and abort markers: written into the partitions of this broker, and sent to the leaders of the others.

A marker counts as written when it is committed. `MarkerWriter` carries out what a coordinator has decided, however long it
takes: when a partition has no leader, too few in-sync replicas, or answers an error that is not listed here as final, it is
tried again after a pause.
"""

import logging
from asyncio import TimerHandle
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Final, Protocol

from penstock.broker.coordinators.peer_batches import PeerBatches
from penstock.broker.partitions.waits import CommitWait
from penstock.metadata.image import NO_LEADER
from penstock.model.api_keys import ApiKey
from penstock.model.errors import ApiError, ErrorCode
from penstock.model.ids import TopicPartition
from penstock.model.internal_topics import CONSUMER_OFFSETS, TRANSACTION_STATE
from penstock.wire.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)

if TYPE_CHECKING:
    from penstock.broker.facets import (
        WithBrokerId,
        WithDiskFaults,
        WithGroups,
        WithImage,
        WithLoop,
        WithPartitions,
        WithPeers,
        WithTransactions,
    )
    from penstock.broker.partitions.partition import Partition
    from penstock.transactions.markers import MarkersToWrite

    class Needs(
        WithBrokerId,
        WithDiskFaults,
        WithGroups,
        WithImage,
        WithLoop,
        WithPartitions,
        WithPeers,
        WithTransactions,
        Protocol,
    ): ...


log = logging.getLogger("penstock.broker")

RETRY_SECONDS: Final = 0.2
"""Between two tries to write a marker to a partition that does not take it now."""
COMMIT_TIMEOUT_MS: Final = 5_000
"""A marker waits this long for the followers; then it is written again."""
ASK_TIMEOUT_SECONDS: Final = 10.0
"""Longer than a leader waits for its followers."""

Results = dict[TopicPartition, ErrorCode]

_FINAL: Final = frozenset(
    (
        ErrorCode.NONE,
        ErrorCode.INVALID_PRODUCER_EPOCH,  # the partition knows a newer epoch, so this transaction is over there
        ErrorCode.TRANSACTION_COORDINATOR_FENCED,  # a newer coordinator has written there
        ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT,  # its format knows no transactions, so none is open there
    )
)
"""The answers that end a partition's part in a transaction. After any other the marker is sent again: a transaction that is
taken for ended without its marker would hold back the partition's last stable offset for ever."""


def write_markers(
    node: "Needs",
    partitions: Iterable[tuple[str, int]],
    tell: Callable[[Results], None],
    *,
    producer_id: int,
    producer_epoch: int,
    committed: bool,
    coordinator_epoch: int,
    transaction_version: int,
) -> None:
    """Into partitions of this broker; `tell` gets the answer of each once all are committed, at once where they are.

    The groups are told of markers that decide about their offsets.
    """
    results: Results = {}
    uncommitted: list[tuple[TopicPartition, Partition, int]] = []
    for name, index in partitions:
        topic_partition = TopicPartition(name, index)
        try:
            partition = node.partitions.get(name, index)
            partition.append_marker(
                producer_id=producer_id,
                producer_epoch=producer_epoch,
                committed=committed,
                coordinator_epoch=coordinator_epoch,
                transaction_version=transaction_version,
            )
            if name == CONSUMER_OFFSETS:
                node.groups.transaction_ended(index, producer_id, committed=committed)
            node.transactions.admissions.ended(topic_partition, producer_id)
            if not partition.is_committed:
                uncommitted.append((topic_partition, partition, partition.log.end_offset))
            error = ErrorCode.NONE
        except ApiError as refusal:
            error = refusal.code
        except OSError as fault:
            node.report_disk_fault(f"cannot write a marker to {name}-{index}", fault, partition)
            error = ErrorCode.KAFKA_STORAGE_ERROR
        results[topic_partition] = error
    if not uncommitted:
        tell(results)
        return

    def finish(errors: Results) -> None:
        results.update(errors)
        tell(results)

    CommitWait(node.loop, uncommitted, finish, timeout_ms=COMMIT_TIMEOUT_MS)


class _Round:
    """One transaction whose markers are being written, until each of its partitions has one."""

    __slots__ = ("awaited", "errand", "index", "is_over", "left", "timer")

    def __init__(self, index: int, errand: "MarkersToWrite") -> None:
        self.index = index
        self.errand = errand
        self.awaited = 0
        """Answers that are still to come in this try."""
        self.left: list[TopicPartition] = []
        """For the next try."""
        self.timer: TimerHandle | None = None
        self.is_over = False

    def end(self) -> None:
        self.is_over = True
        if self.timer is not None:
            self.timer.cancel()


class _Asked:
    """Markers of one transaction for the partitions of one other broker."""

    __slots__ = ("_partitions", "_tell", "coordinator_epoch", "round")

    def __init__(
        self,
        round_: _Round,
        partitions: list[TopicPartition],
        coordinator_epoch: int,
        tell: Callable[[_Round, Results], None],
    ) -> None:
        self.round = round_
        self.coordinator_epoch = coordinator_epoch
        self._partitions = partitions
        self._tell: Callable[[_Round, Results], None] | None = tell

    @property
    def name(self) -> int:
        return self.round.errand.producer_id

    @property
    def partition_count(self) -> int:
        return len(self._partitions)

    def fail(self) -> None:
        self.tell({})

    def tell(self, results: Results) -> None:
        """What is missing in the answer was not done."""
        tell, self._tell = self._tell, None
        if tell is not None:
            tell(
                self.round,
                {each: results.get(each, ErrorCode.NETWORK_EXCEPTION) for each in self._partitions},
            )

    def marker(self) -> WritableTxnMarker:
        errand = self.round.errand
        topics: dict[str, list[int]] = {}
        for name, index in self._partitions:
            topics.setdefault(name, []).append(index)
        return WritableTxnMarker(
            producer_id=errand.producer_id,
            producer_epoch=errand.producer_epoch,
            transaction_result=errand.committed,
            topics=[
                WritableTxnMarkerTopic(name=name, partition_indexes=indexes)
                for name, indexes in topics.items()
            ],
            coordinator_epoch=self.coordinator_epoch,
            transaction_version=errand.transaction_version,
        )


class MarkerWriter:
    def __init__(self, node: "Needs", written: Callable[[int, "MarkersToWrite"], None]) -> None:
        """`written` is told when all partitions of an errand have their marker, or exist no more."""
        self._node = node
        self._written = written
        self._rounds: dict[int, dict[str, _Round]] = {}
        self._batches: PeerBatches[_Asked] = PeerBatches(node.loop, self._send)

    def begin(self, index: int, errand: "MarkersToWrite") -> None:
        """For the shard of a partition of `__transaction_state`, which this broker leads."""
        rounds = self._rounds.setdefault(index, {})
        earlier = rounds.get(errand.transactional_id)
        if earlier is not None:
            earlier.end()
        round_ = rounds[errand.transactional_id] = _Round(index, errand)
        self._try(round_, errand.partitions)

    def drop(self, index: int) -> None:
        """The shard is given up: whoever loads it next begins again. A marker that came later than that one's would end a
        transaction that has only begun.
        """
        for round_ in self._rounds.pop(index, {}).values():
            round_.end()

    def close(self) -> None:
        for index in tuple(self._rounds):
            self.drop(index)
        self._batches.close()

    def _try(self, round_: _Round, partitions: Sequence[TopicPartition]) -> None:
        if round_.is_over:
            return
        errand = round_.errand
        try:
            coordinator_epoch = self._node.partitions.get(TRANSACTION_STATE, round_.index).leader_epoch
        except ApiError:
            return  # the log is lost to us, and the shard is being given up
        here: list[TopicPartition] = []
        elsewhere: dict[int, list[TopicPartition]] = {}
        round_.left = []
        for topic_partition in partitions:
            leader = self._leader(topic_partition)
            if leader == self._node.broker_id:
                here.append(topic_partition)
            elif leader == NO_LEADER:
                round_.left.append(topic_partition)
            else:
                elsewhere.setdefault(leader, []).append(topic_partition)
        round_.awaited = 1 + len(elsewhere)
        for broker_id, topic_partitions in elsewhere.items():
            asked = _Asked(round_, topic_partitions, coordinator_epoch, self._told)
            self._batches.put(broker_id, asked)
        write_markers(
            self._node,
            here,
            partial(self._told, round_),
            producer_id=errand.producer_id,
            producer_epoch=errand.producer_epoch,
            committed=errand.committed,
            coordinator_epoch=coordinator_epoch,
            transaction_version=errand.transaction_version,
        )

    def _leader(self, topic_partition: TopicPartition) -> int:
        """Ours is the one we lead, and the one that is not known: it will be found out which it is, unknown or deleted."""
        node = self._node
        try:
            if node.partitions.get(*topic_partition).is_leader:
                return node.broker_id
        except ApiError:
            pass
        placed = node.image.partition(*topic_partition)
        if placed is None or placed.leader == node.broker_id:
            return node.broker_id
        return placed.leader if placed.leader in node.image.brokers else NO_LEADER

    async def _send(self, broker_id: int, asked: list[_Asked]) -> None:
        current = [each for each in asked if not each.round.is_over]
        if not current:
            return
        response = await self._node.peers.ask(
            broker_id,
            WriteTxnMarkersRequest(markers=[each.marker() for each in current]),
            WriteTxnMarkersResponse,
            version=await self._node.spoken.version(broker_id, ApiKey.WRITE_TXN_MARKERS, purpose="markers"),
            timeout_s=ASK_TIMEOUT_SECONDS,
            purpose="markers",
        )
        answers: dict[int, Results] = {
            marker.producer_id: {
                TopicPartition(topic.name, result.partition_index): ErrorCode(result.error_code)
                for topic in marker.topics
                for result in topic.partitions
            }
            for marker in response.markers
        }
        for each in current:
            each.tell(answers.get(each.name, {}))

    def _told(self, round_: _Round, results: Results) -> None:
        if round_.is_over:
            return
        errand = round_.errand
        for topic_partition, error in results.items():
            if error is ErrorCode.NONE:
                continue
            if error in _FINAL:
                log.warning(
                    "cannot write the marker of a transaction to %s (transactional id %s): %s",
                    topic_partition,
                    errand.transactional_id,
                    error.name,
                )
            # One that was deleted needs no marker. One that is not there yet does: it would hang for ever.
            elif error is not ErrorCode.UNKNOWN_TOPIC_OR_PARTITION or not self._is_deleted(
                round_.index, topic_partition
            ):
                round_.left.append(topic_partition)
        round_.awaited -= 1
        if round_.awaited:
            return
        if round_.left:
            round_.timer = self._node.loop.call_later(RETRY_SECONDS, self._try, round_, round_.left)
            return
        round_.end()
        del self._rounds[round_.index][errand.transactional_id]
        self._written(round_.index, errand)

    def _is_deleted(self, index: int, topic_partition: TopicPartition) -> bool:
        """Not known, by an image that is not older than our leadership: a broker that has just started may lead before it
        is told which topics there are.
        """
        node = self._node
        own = node.image.partition(TRANSACTION_STATE, index)
        is_current = (
            own is not None and own.leader_epoch >= node.partitions.get(TRANSACTION_STATE, index).leader_epoch
        )
        return is_current and node.image.partition(*topic_partition) is None
