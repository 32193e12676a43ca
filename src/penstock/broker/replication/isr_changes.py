"""Changes of in-sync sets that leaders propose to the controller, by AlterPartition, many in one request.

Until the controller has answered, a proposed member counts for the high watermark: the change may be in force already. A
request whose answer is lost is sent again. If the change was already made, the controller answers that our version is outdated,
and sends the current state by LeaderAndIsr.
"""

import logging
from asyncio import Task, sleep
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol
from weakref import WeakKeyDictionary

from penstock.broker.partitions.partition import Partition
from penstock.model.errors import ApiError, ErrorCode
from penstock.model.ids import NO_ID
from penstock.wire.messages.alter_partition import (
    AlterPartitionRequest,
    AlterPartitionResponse,
    BrokerState,
    RequestPartitionData,
    RequestTopicData,
)

if TYPE_CHECKING:
    from penstock.broker.facets import (
        WithBrokerEpoch,
        WithBrokerId,
        WithClock,
        WithController,
        WithLoop,
        WithPartitions,
        WithRoles,
    )

    class Needs(
        WithBrokerEpoch,
        WithBrokerId,
        WithClock,
        WithController,
        WithLoop,
        WithPartitions,
        WithRoles,
        Protocol,
    ): ...


log = logging.getLogger("penstock.broker")

TIMEOUT_SECONDS: Final = 10.0
RETRY_SECONDS: Final = 0.1
REFUSED_SECONDS: Final = 0.5
PARTITIONS_PER_REQUEST: Final = 1000
_REFUSED: Final = frozenset((ErrorCode.INELIGIBLE_REPLICA, ErrorCode.OPERATION_NOT_ATTEMPTED))
"""Nothing has changed, and asking later may help. After other errors the controller's LeaderAndIsr is on its way."""


class Proposal(NamedTuple):
    isr: frozenset[int]
    broker_epochs: Mapping[int, int]
    """Of the followers, as they said in their fetches by then: one that has been started again since may have lost what it
    fetched, and must not come in by a request that is sent late."""


Batch = dict[Partition, Proposal]


class IsrChanges:
    def __init__(self, node: "Needs") -> None:
        self._node = node
        self._waiting: Batch = {}
        self._resting: WeakKeyDictionary[Partition, float] = WeakKeyDictionary()
        """Until when a partition whose proposal was refused is left alone: followers fetch many times a second."""
        self._task: Task[None] | None = None
        self.shrink_count = 0
        self.expand_count = 0
        self.failed_count = 0
        """Changes that the controller refused, or did not hear of."""

    def propose(self, partition: Partition, isr: frozenset[int]) -> None:
        assert partition.leadership is not None
        if self._node.clock.monotonic() < self._resting.get(partition, 0.0):
            return
        partition.leadership.proposed = isr
        followers = partition.leadership.followers
        self._waiting[partition] = Proposal(
            isr, {id: follower.broker_epoch for id, follower in followers.items() if id in isr}
        )
        if self._task is None:
            self._task = self._node.loop.create_task(self._send_all())

    def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()

    async def _send_all(self) -> None:
        failures = 0
        try:
            while self._waiting:
                topic_partitions = list(self._waiting)[:PARTITIONS_PER_REQUEST]
                batch = {
                    topic_partition: self._waiting.pop(topic_partition)
                    for topic_partition in topic_partitions
                }
                batch = {
                    topic_partition: proposal
                    for topic_partition, proposal in batch.items()
                    if _is_open(topic_partition, proposal)
                }
                asked_as = self._node.broker_epoch
                try:
                    again = await self._send(batch) if batch else {}
                    failures = 0
                except (OSError, ApiError) as error:
                    again = batch
                    if self._is_not_registered(error, asked_as):
                        self._node.roles.step_down()
                    self.failed_count += len(batch)
                    if not failures:
                        log.info("cannot ask the controller to change in-sync replicas: %s", error)
                    failures += 1
                except Exception:
                    again = batch
                    log.exception("asking the controller to change in-sync sets failed")
                if again:
                    for partition, proposal in again.items():
                        self._waiting.setdefault(partition, proposal)
                    await sleep(RETRY_SECONDS)
        finally:
            self._task = None

    async def _send(self, batch: Batch) -> Batch:
        """What is to be sent again."""
        node = self._node
        request = self._request(batch)
        response = await node.ask_controller(request, AlterPartitionResponse, timeout_s=TIMEOUT_SECONDS)
        if response.error_code:
            raise ApiError(ErrorCode(response.error_code))
        by_place = {
            (topic.topic_id, each.partition_index): each
            for topic in response.topics
            for each in topic.partitions
        }
        again: Batch = {}
        for partition, proposal in batch.items():
            answer = by_place.get((self._topic_id(partition), partition.index))
            if not _is_open(partition, proposal):
                continue
            if answer is None or answer.error_code in _REFUSED:
                self.failed_count += 1
                partition.withdraw_isr()
                self._resting[partition] = node.clock.monotonic() + REFUSED_SECONDS
            elif answer.error_code == ErrorCode.NOT_CONTROLLER:
                again[partition] = proposal  # it does not know yet that it was replaced
            elif answer.error_code:
                self.failed_count += 1
                log.info("%s: in-sync replicas not changed: %s", partition, ErrorCode(answer.error_code).name)
            elif answer.partition_epoch >= partition.replica.partition_epoch:
                log.info("%s: in-sync replicas are now %s", partition, sorted(answer.isr))
                self.shrink_count += bool(partition.replica.isr - frozenset(answer.isr))
                self.expand_count += bool(frozenset(answer.isr) - partition.replica.isr)
                partition.settle_isr(frozenset(answer.isr), answer.partition_epoch)
        return again

    def _is_not_registered(self, error: Exception, asked_as: int) -> bool:
        """Not if we have registered again since we asked: then we may have been told since what to lead, which is said once."""
        return (
            isinstance(error, ApiError)
            and error.code is ErrorCode.STALE_BROKER_EPOCH
            and asked_as == self._node.broker_epoch
        )

    def _topic_id(self, partition: Partition) -> bytes:
        """Not the image's, which knows of a new topic only after we lead it."""
        held = self._node.partitions.topic(partition.topic)
        return NO_ID if held is None else held.topic_id

    def _request(self, batch: Batch) -> AlterPartitionRequest:
        node = self._node
        topics: dict[bytes, list[RequestPartitionData]] = {}
        for partition, proposal in batch.items():
            members = [BrokerState(broker_id=node.broker_id, broker_epoch=node.broker_epoch)]
            for member, epoch in proposal.broker_epochs.items():
                members.append(BrokerState(broker_id=member, broker_epoch=epoch))
            topics.setdefault(self._topic_id(partition), []).append(
                RequestPartitionData(
                    partition_index=partition.index,
                    leader_epoch=partition.leader_epoch,
                    new_isr_with_epochs=members,
                    partition_epoch=partition.replica.partition_epoch,
                )
            )
        return AlterPartitionRequest(
            broker_id=node.broker_id,
            broker_epoch=node.broker_epoch,
            topics=[
                RequestTopicData(topic_id=topic_id, partitions=partitions)
                for topic_id, partitions in topics.items()
            ],
        )


def _is_open(partition: Partition, proposal: Proposal) -> bool:
    """Whether the leadership that proposed it continues, and has heard nothing of it yet."""
    return partition.leadership is not None and partition.leadership.proposed is proposal.isr
