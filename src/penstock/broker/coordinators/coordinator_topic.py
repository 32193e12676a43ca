"""The internal topic of a coordinator. The leader of a key's partition in this topic coordinates the key."""

import logging
from collections.abc import Awaitable, Callable, Container
from typing import TYPE_CHECKING, Final, Protocol

from penstock.coordination.placement import partition_for
from penstock.metadata.image import NO_LEADER, Topic
from penstock.metadata.tree import TreeError
from penstock.model.errors import ApiError, ErrorCode

if TYPE_CHECKING:
    from penstock.broker.facets import WithBrokerId, WithClock, WithImage, WithPartitions

    class Needs(WithBrokerId, WithClock, WithImage, WithPartitions, Protocol): ...


log = logging.getLogger("penstock.broker")

COMPLAIN_EVERY_SECONDS: Final = 60.0
"""Clients ask again and again for a topic that cannot be made; the log says so once."""


class CoordinatorTopic:
    def __init__(self, node: "Needs", name: str, make: Callable[[], Awaitable[Topic]]) -> None:
        self._node = node
        self._name = name
        self._make = make
        self._monotonic = node.clock.monotonic
        self._complained_at = -COMPLAIN_EVERY_SECONDS

    async def ensure(self) -> Topic:
        """Made on first use; COORDINATOR_NOT_AVAILABLE while it cannot be, e.g. because there are too few brokers."""
        topic = self._node.image.topic(self._name)
        if topic is not None:
            return topic
        try:
            return await self._make()
        except (ApiError, OSError, TreeError) as error:
            if self._monotonic() - self._complained_at >= COMPLAIN_EVERY_SECONDS:
                self._complained_at = self._monotonic()
                log.warning("cannot create %s: %s", self._name, error)
            raise ApiError(
                ErrorCode.COORDINATOR_NOT_AVAILABLE, f"cannot create {self._name}: {error}"
            ) from error

    def coordinator_of(self, key: str, loaded: Container[int]) -> int | None:
        """The broker that coordinates a key as far as we know, or NO_LEADER; None while there is no topic.

        `loaded`: the partitions whose shards are here.
        """
        topic = self._node.image.topic(self._name)
        if topic is None:
            return None
        index = partition_for(key, len(topic.partitions))
        if index in loaded or self.leads(index):
            return self._node.broker_id
        leader, _ = self._node.image.leader_and_offline(self._name, index)
        # Our own role is told by the partition, not by the image, which may lag behind.
        return NO_LEADER if leader == self._node.broker_id else leader

    def leads(self, index: int) -> bool:
        try:
            return self._node.partitions.get(self._name, index).is_leader
        except ApiError:
            return False

    def led_indexes(self) -> list[int]:
        held = self._node.partitions.topic(self._name)
        return [partition.index for partition in held or () if partition.is_leader]
