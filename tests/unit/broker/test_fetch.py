"""A fetch that finds no records: when it waits for them, and when there is something else to tell at once."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar

import pytest

from penstock.broker.access.authorizer import Authorizer
from penstock.broker.handlers.fetch import handle_frame
from penstock.broker.metrics.request_counts import RequestCounts
from penstock.broker.partitions.fetch_sessions import FetchSessions
from penstock.broker.partitions.held_partitions import HeldPartitions
from penstock.broker.partitions.partition import Partition
from penstock.broker.requests.call import Call
from penstock.config.loading import load
from penstock.metadata.image import BrokerRegistration, ClusterImage, PartitionRegistration, Topic
from penstock.net.connection import Deferred
from penstock.replication.closest import RACK_AWARE
from penstock.runtime.clock import SystemClock
from penstock.runtime.files import Disk, OsDisk
from penstock.runtime.pools import Pools
from penstock.storage.options import LogOptions
from penstock.testing.disk import MemoryDisk
from penstock.wire.framing import read_header
from penstock.wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from tests.hostile.raw_client import frame_of, read_response
from tests.unit.broker.no_quotas import NO_QUOTAS
from tests.unit.storage.batches import make_batch

VERSION = 12
LONG_POLL_MS = 600_000
ORDERS = bytes(15) + b"1"


class FakeConnection:
    is_closed = False

    def defer(self) -> Deferred:
        me: Any = self
        return Deferred(me)


class FakeNode:
    """It leads a partition that has a follower in another rack."""

    broker_id = 1
    fetch_max_bytes = 1 << 20
    is_clustered = True
    config: ClassVar = {"replica.selector.class": RACK_AWARE}

    def __init__(self, path: Path, disk: Disk, loop: asyncio.AbstractEventLoop) -> None:
        self.loop = loop
        self.pools = Pools(self.loop)
        self.clock = SystemClock()
        self.client_quotas: Any = NO_QUOTAS
        self.request_counts = RequestCounts()
        self.effects = self
        self.authorizer = Authorizer(load({}, {})[0])
        self.image = ClusterImage()
        for broker_id, rack in ((1, "a"), (2, "b")):
            self.image.add_broker(BrokerRegistration(broker_id, {}, rack))
        self.fetch_sessions = FetchSessions(10, lambda: 1)
        self.partitions = HeldPartitions(disk, [str(path)], self.clock, broker_id=1)
        placed = PartitionRegistration(replicas=(1, 2), isr=(1, 2), leader=1)
        for _ in self.partitions.open_topic(
            Topic("orders", topic_id=ORDERS, partitions=[placed]), LogOptions()
        ):
            pass
        self.partitions.get("orders", 0).lead(placed, own_id=1)
        self.partitions.get("orders", 0).follower_fetched(2, 0)

    def fetch(self, *, rack: str, session: tuple[int, int] = (0, -1), offset: int = 0) -> Any:
        wanted = FetchPartition(partition=0, fetch_offset=offset, partition_max_bytes=1000)
        request = FetchRequest(
            max_wait_ms=LONG_POLL_MS,
            min_bytes=1,
            session_id=session[0],
            session_epoch=session[1],
            topics=[FetchTopic(topic="orders", partitions=[wanted])],
            rack_id=rack,
        )
        frame = memoryview(bytearray(frame_of(request, VERSION)))
        header = read_header(frame)
        me: Any = self
        connection: Any = FakeConnection()
        return handle_frame(me, Call(connection, header), frame, header.body_offset)


def with_node(path: Path, check: Callable[[FakeNode], None]) -> None:
    async def main() -> None:
        node = FakeNode(path, OsDisk(), asyncio.get_running_loop())
        check(node)
        node.partitions.release()

    asyncio.run(main())


def told_replica(parts: Any) -> int:
    response = read_response(1, VERSION, b"".join(bytes(part) for part in parts)[4:])
    return int(response.responses[0].partitions[0].preferred_read_replica)


def test_a_consumer_that_should_read_elsewhere_is_told_so_at_once(tmp_path: Path) -> None:
    def check(node: FakeNode) -> None:
        reply = node.fetch(rack="b")
        assert not isinstance(reply, Deferred)
        assert told_replica(reply) == 2

    with_node(tmp_path, check)


def test_an_answer_of_a_session_says_again_where_to_read(tmp_path: Path) -> None:
    """It has no other news: left out of the answer, the consumer would ask again and again."""

    def check(node: FakeNode) -> None:
        assert told_replica(node.fetch(rack="b", session=(0, 0))) == 2
        assert told_replica(node.fetch(rack="b", session=(1, 1))) == 2

    with_node(tmp_path, check)


def test_a_consumer_that_reads_here_waits_for_records(tmp_path: Path) -> None:
    def check(node: FakeNode) -> None:
        assert isinstance(node.fetch(rack="a"), Deferred)
        assert isinstance(node.fetch(rack=""), Deferred)

    with_node(tmp_path, check)


def test_a_fetch_of_what_is_not_in_memory_waits_for_a_thread_and_not_on_the_loop() -> None:
    """Neither for the index, nor for the headers, nor for the records: the test disk would not allow it."""
    disk = MemoryDisk()
    with asyncio.Runner() as runner:
        node = FakeNode(Path("/data"), disk, runner.get_loop())
        partition = node.partitions.get("orders", 0)
        partition.log.options = LogOptions(index_interval_bytes=100)
        for _ in range(20):
            partition.append(memoryview(bytearray(make_batch()[0])))
        partition.follower_fetched(2, 20)
        partition.log.roll()
        disk.cool()

        async def fetch() -> bytes:
            reply = node.fetch(rack="a", offset=13)
            assert isinstance(reply, Deferred)
            async with asyncio.timeout(60):
                while not reply.is_ready:
                    await asyncio.sleep(0)
            return b"".join(_bytes_of(part) for part in reply.parts)

        response = read_response(1, VERSION, runner.run(fetch())[4:])
        records = response.responses[0].partitions[0].records
        assert int.from_bytes(records[:8], "big") == 13
        node.partitions.release()


def _bytes_of(part: Any) -> bytes:
    if isinstance(part, (bytes, bytearray, memoryview)):
        return bytes(part)
    found: bytes = part.file.read_at(part.position, part.size_bytes)
    return found


def test_a_partition_that_goes_offline_while_others_are_read_is_looked_at_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A disk fault under one entry takes the directory of all offline, also of entries that were read before."""

    def check(node: FakeNode) -> None:
        held = node.partitions.topic("orders")
        assert held is not None

        def read(partition: Partition, *args: object, **options: object) -> None:
            held.take_offline(0)

        monkeypatch.setattr(Partition, "read", read)
        assert isinstance(node.fetch(rack=""), Deferred)

    with_node(tmp_path, check)
