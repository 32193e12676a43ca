"""Changes of in-sync sets that leaders propose to the controller, by AlterPartition, many in one request.

Until the controller has answered, a proposed member counts for the high watermark: the change may be in force already. A
request whose answer is lost is sent again; when it was in force, the controller says that our version is old, and what holds
now comes by LeaderAndIsr.
"""

import logging
from asyncio import Task, sleep
from typing import TYPE_CHECKING, Final
from weakref import WeakKeyDictionary

from penstock.broker.partition import Partition
from penstock.model.errors import ApiError, ErrorCode
from penstock.wire.messages.alter_partition import (
    AlterPartitionRequest,
    AlterPartitionResponse,
    BrokerState,
    RequestPartitionData,
    RequestTopicData,
)

if TYPE_CHECKING:
    from penstock.broker.node import Node

log = logging.getLogger("penstock.broker")

VERSION: Final = 3
TIMEOUT_SECONDS: Final = 10.0
RETRY_SECONDS: Final = 0.1
REFUSED_SECONDS: Final = 0.5
PARTITIONS_PER_REQUEST: Final = 1000
_REFUSED: Final = frozenset((ErrorCode.INELIGIBLE_REPLICA, ErrorCode.OPERATION_NOT_ATTEMPTED))
"""Nothing has changed, and asking later may help. After other errors the controller's LeaderAndIsr is on its way."""


class IsrChanges:
    def __init__(self, node: "Node") -> None:
        self._node = node
        self._waiting: dict[Partition, frozenset[int]] = {}
        self._resting: WeakKeyDictionary[Partition, float] = WeakKeyDictionary()
        """Until when a partition whose proposal was refused is left alone: followers fetch many times a second."""
        self._task: Task[None] | None = None

    def propose(self, partition: Partition, isr: frozenset[int]) -> None:
        assert partition.leadership is not None
        if self._node.clock.monotonic() < self._resting.get(partition, 0.0):
            return
        partition.leadership.proposed = isr
        self._waiting[partition] = isr
        if self._task is None:
            self._task = self._node.loop.create_task(self._send_all())

    def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()

    async def _send_all(self) -> None:
        try:
            while self._waiting:
                batch = dict(list(self._waiting.items())[:PARTITIONS_PER_REQUEST])
                for partition in batch:
                    del self._waiting[partition]
                batch = {
                    partition: isr
                    for partition, isr in batch.items()
                    if partition.leadership is not None and partition.leadership.proposed is isr
                }
                if batch and not await self._send(batch):
                    for partition, isr in batch.items():
                        self._waiting.setdefault(partition, isr)
                    await sleep(RETRY_SECONDS)
        finally:
            self._task = None

    async def _send(self, batch: dict[Partition, frozenset[int]]) -> bool:
        """Whether the controller has answered."""
        node = self._node
        request = self._request(batch)
        epochs = {partition: partition.leader_epoch for partition in batch}
        try:
            response = await node.ask_controller(
                request, AlterPartitionResponse, version=VERSION, timeout_s=TIMEOUT_SECONDS
            )
        except (OSError, ApiError) as error:
            log.info("the controller cannot be asked to change in-sync sets: %s", error)
            return False
        if response.error_code:
            log.info("in-sync sets are not changed: %s", ErrorCode(response.error_code).name)
            return False
        by_place = {
            (topic.topic_id, each.partition_index): each
            for topic in response.topics
            for each in topic.partitions
        }
        for partition, isr in batch.items():
            answer = by_place.get((node.image.topic_id(partition.topic), partition.index))
            leadership = partition.leadership
            if leadership is None or partition.leader_epoch != epochs[partition]:
                continue
            if answer is None or answer.error_code in _REFUSED:
                if leadership.proposed is isr:
                    leadership.withdraw()
                self._resting[partition] = node.clock.monotonic() + REFUSED_SECONDS
            elif answer.error_code:
                log.info("%s: in-sync set not changed: %s", partition, ErrorCode(answer.error_code).name)
            elif answer.partition_epoch > partition.partition_epoch:
                log.info("%s: in-sync replicas are now %s", partition, sorted(answer.isr))
                partition.settle_isr(frozenset(answer.isr), answer.partition_epoch)
        return True

    def _request(self, batch: dict[Partition, frozenset[int]]) -> AlterPartitionRequest:
        node = self._node
        topics: dict[bytes, list[RequestPartitionData]] = {}
        for partition, isr in batch.items():
            assert partition.leadership is not None
            members = [BrokerState(broker_id=node.broker_id, broker_epoch=node.broker_epoch)]
            for member, follower in partition.leadership.followers.items():
                if member in isr:
                    # As it said in its fetches: one that has been started again since may have lost what it fetched.
                    members.append(BrokerState(broker_id=member, broker_epoch=follower.broker_epoch))
            topics.setdefault(node.image.topic_id(partition.topic), []).append(
                RequestPartitionData(
                    partition_index=partition.index,
                    leader_epoch=partition.leader_epoch,
                    new_isr_with_epochs=members,
                    partition_epoch=partition.partition_epoch,
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
