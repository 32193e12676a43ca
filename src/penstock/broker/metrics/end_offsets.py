"""Where the partitions end that groups of this coordinator read: here by a look, on other brokers by asking their leaders.

Leaders are asked with ListOffsets, each about all its partitions at once and all at the same time, and when a page is made: so an
end is never older than the committed offsets beside it. In between they are looked at every LOOK_SECONDS, for lag in seconds, as
long as somebody asks for pages. A leader that does not answer keeps what it said last.
"""

import logging
from asyncio import Task, gather, sleep
from collections.abc import Iterable
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

from penstock.broker.metrics.lag import Looks
from penstock.metadata.image import NO_LEADER
from penstock.model.errors import ApiError
from penstock.model.ids import TopicPartition
from penstock.wire.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)

if TYPE_CHECKING:
    from penstock.broker.facets import (
        WithBrokerId,
        WithClock,
        WithClustered,
        WithImage,
        WithLoop,
        WithPartitions,
        WithPeers,
    )

    class Needs(
        WithBrokerId, WithClock, WithClustered, WithImage, WithLoop, WithPartitions, WithPeers, Protocol
    ): ...


log = logging.getLogger("penstock.broker")

LOOK_SECONDS: Final = 5.0
FORGET_AFTER_SECONDS: Final = 300.0
"""Without a page nobody looks any more."""
ASK_SECONDS: Final = 2.0
"""Of one question."""
LOOK_TIMEOUT_SECONDS: Final = 5.0
"""Of all questions to one leader in one look: who waits for a page waits no longer for a leader that is slow."""
PARTITIONS_AT_ONCE: Final = 1000
"""Of one request, and of one step here."""
LOOKED_AT_ONCE: Final = 200
VERSION: Final = 7
LATEST: Final = -1
CONSUMER: Final = -1
SEEDS: Final = 16
"""Segments whose first timestamps say when the log was where, before anybody looked."""


class End(NamedTuple):
    end_offset: int
    looks: Looks


class EndOffsets:
    def __init__(self, node: "Needs") -> None:
        self._node = node
        self._ends: dict[TopicPartition, End] = {}
        self._wanted: set[TopicPartition] = set()
        self._asked_at = 0.0
        self._looking: Task[None] | None = None

    async def of(self, wanted: set[TopicPartition]) -> dict[TopicPartition, End]:
        """As they are now; what is not known is left out."""
        self._wanted = wanted
        self._asked_at = self._node.loop.time()
        for number, known in enumerate(list(self._ends), 1):
            if number % PARTITIONS_AT_ONCE == 0:
                await sleep(0)
            if known not in wanted:
                self._ends.pop(known, None)
        await self._look(wanted)
        if self._looking is None and wanted:
            self._looking = self._node.loop.create_task(self._go_on_looking())
        return self._ends.copy()

    def stop(self) -> None:
        if self._looking is not None:
            self._looking.cancel()

    async def _go_on_looking(self) -> None:
        try:
            while self._node.loop.time() - self._asked_at < FORGET_AFTER_SECONDS:
                await sleep(LOOK_SECONDS)
                await self._look(self._wanted)
            self._ends.clear()
        except Exception:
            log.exception("looking at the ends of partitions failed")
        finally:
            self._looking = None

    async def _look(self, wanted: Iterable[TopicPartition]) -> None:
        elsewhere: dict[int, list[TopicPartition]] = {}
        for number, topic_partition in enumerate(wanted, 1):
            if number % LOOKED_AT_ONCE == 0:
                await sleep(0)
            if not self._look_here(topic_partition):
                name, index = topic_partition
                leader, _ = self._node.image.leader_and_offline(name, index)
                if leader not in (NO_LEADER, self._node.broker_id):
                    elsewhere.setdefault(leader, []).append(topic_partition)
        if elsewhere and self._node.is_clustered:
            await gather(*(self._ask(leader, asked) for leader, asked in elsewhere.items()))

    def _look_here(self, topic_partition: TopicPartition) -> bool:
        try:
            partition = self._node.partitions.get(*topic_partition)
        except ApiError:
            return False
        if not partition.is_leader:
            return False
        if topic_partition not in self._ends:
            looks = Looks()
            for segment in list(partition.log.segments)[-SEEDS:]:
                if segment.first_timestamp > 0 and segment.size_bytes:
                    looks.add(segment.first_timestamp / 1000, segment.base_offset)
            self._ends[topic_partition] = End(0, looks)
        self._note(topic_partition, partition.high_watermark)
        return True

    def _note(self, topic_partition: TopicPartition, end_offset: int) -> None:
        end = self._ends.get(topic_partition)
        looks = Looks() if end is None else end.looks
        looks.add(self._node.clock.now_ms() / 1000, end_offset)
        self._ends[topic_partition] = End(end_offset, looks)

    async def _ask(self, leader: int, asked: list[TopicPartition]) -> None:
        until = self._node.loop.time() + LOOK_TIMEOUT_SECONDS
        for first in range(0, len(asked), PARTITIONS_AT_ONCE):
            topics: dict[str, list[ListOffsetsPartition]] = {}
            for name, index in asked[first : first + PARTITIONS_AT_ONCE]:
                wanted = ListOffsetsPartition(partition_index=index, timestamp=LATEST)
                topics.setdefault(name, []).append(wanted)
            request = ListOffsetsRequest(
                replica_id=CONSUMER,
                topics=[ListOffsetsTopic(name=name, partitions=each) for name, each in topics.items()],
            )
            left_s = min(ASK_SECONDS, max(until - self._node.loop.time(), 0.0))
            try:
                answer = await self._node.peers.ask(
                    leader, request, ListOffsetsResponse, version=VERSION, timeout_s=left_s
                )
            except (OSError, ApiError, TimeoutError) as error:
                log.debug("broker %s does not say where its partitions end: %s", leader, error)
                return
            for topic in answer.topics:
                for each in topic.partitions:
                    if not each.error_code:
                        self._note(TopicPartition(topic.name, each.partition_index), each.offset)
