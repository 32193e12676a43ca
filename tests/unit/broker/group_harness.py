"""What tests of the group coordinator's host need: a node with a real log, and a few requests."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from random import Random
from typing import Any

from penstock.broker.coordinators.groups import GroupHost
from penstock.broker.partitions.openings import Openings
from penstock.broker.partitions.partition import Partition
from penstock.coordination.form import RequestContext
from penstock.metadata import image
from penstock.model.internal_topics import CONSUMER_OFFSETS
from penstock.runtime.clock import SystemClock
from penstock.runtime.files import OsDisk
from penstock.runtime.pools import Pools
from penstock.storage.log import Log
from penstock.storage.options import LogOptions
from penstock.wire.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from penstock.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from penstock.wire.messages.offset_fetch import OffsetFetchRequestGroup, OffsetFetchRequestTopics

CONTEXT = RequestContext(3, "client", "/127.0.0.1")
OPTIONS = {
    "group.min.session.timeout.ms": 1,
    "group.max.session.timeout.ms": 60_000,
    "group.initial.rebalance.delay.ms": 5,
    "group.max.size": 10,
    "offset.metadata.max.bytes": 4_096,
    "offsets.commit.timeout.ms": 5_000,
    "offsets.retention.minutes": 10_080,
    "offsets.retention.check.interval.ms": 600_000,
    "group.consumer.session.timeout.ms": 45_000,
    "group.consumer.heartbeat.interval.ms": 5_000,
    "group.consumer.max.size": 10,
    "group.consumer.assignors": ["uniform", "range"],
    "group.consumer.assignment.interval.ms": 1_000,
    "group.consumer.migration.policy": "bidirectional",
}


class FakeNode:
    """As much of a node as the host asks for: one partition of the offsets topic, and a topic `orders`."""

    broker_id = 1
    config = OPTIONS

    def __init__(self, directory: Path) -> None:
        self.loop = asyncio.get_running_loop()
        self.pools = Pools(self.loop)
        self.openings = Openings(self.pools.codecs, self.pools.reads)
        self.clock = SystemClock()
        self.random = Random(1)
        self.image = image.ClusterImage()
        for number, name in enumerate((CONSUMER_OFFSETS, "orders"), 1):
            placed = image.PartitionRegistration(replicas=(1,), isr=(1,), leader=1)
            self.image.apply(image.TopicCreated(name, bytes(15) + bytes([number]), (placed,)))
        path = str(directory / f"{CONSUMER_OFFSETS}-0")
        OsDisk().make_directory(path)
        log = Log.open(OsDisk(), path, LogOptions(), self.clock)
        self.partition = Partition(CONSUMER_OFFSETS, 0, log, self.clock, leader_epoch=0)
        self.topics = self
        self.partitions = self
        self.faults: list[str] = []

    async def consumer_offsets(self) -> image.Topic:
        topic = self.image.topic(CONSUMER_OFFSETS)
        assert topic is not None
        return topic

    def get(self, name: str, index: int) -> Any:
        return self.partition

    def topic(self, name: str) -> list[Partition]:
        return [self.partition]

    def report_disk_fault(self, what: str, error: OSError, partition: object = None) -> None:
        self.faults.append(what)


async def commit(host: GroupHost, offset: int) -> int:
    partition = OffsetCommitRequestPartition(partition_index=0, committed_offset=offset)
    topic = OffsetCommitRequestTopic(name="orders", partitions=[partition])
    request = OffsetCommitRequest(group_id="simple", topics=[topic])
    response = await host.answer(
        "simple", lambda s, ticket, now_ms: s.commit_offsets(request, CONTEXT, ticket, now_ms)
    )
    return int(response.topics[0].partitions[0].error_code)


async def committed(host: GroupHost) -> int:
    topic = OffsetFetchRequestTopics(name="orders", partition_indexes=[0])
    request = OffsetFetchRequestGroup(group_id="simple", topics=[topic])
    response = await host.answer("simple", lambda s, ticket, _: s.fetch_offsets(request, CONTEXT, ticket))
    return int(response.topics[0].partitions[0].committed_offset)


async def join(host: GroupHost) -> Any:
    protocol = JoinGroupRequestProtocol(name="range")
    request = JoinGroupRequest(
        group_id="g",
        session_timeout_ms=10_000,
        rebalance_timeout_ms=10_000,
        protocol_type="x",
        protocols=[protocol],
    )
    return await host.answer("g", lambda s, ticket, now_ms: s.join_group(request, CONTEXT, ticket, now_ms))


def in_loop(work: Callable[[FakeNode], Awaitable[None]], directory: Path) -> None:
    async def run() -> None:
        node = FakeNode(directory)
        await asyncio.wait_for(work(node), 60)
        node.partition.log.close()

    asyncio.run(run())


async def until_parked(host: GroupHost, count: int) -> None:
    while len(host._tickets) < count:
        await asyncio.sleep(0)
