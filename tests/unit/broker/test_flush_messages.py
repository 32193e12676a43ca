"""flush.messages: a produce request is answered when its records are on the device, and not before."""

import asyncio
import errno
import threading
from pathlib import Path
from typing import Any

import pytest

from penstock.broker.access.authorizer import Authorizer
from penstock.broker.cluster.addresses import Addresses
from penstock.broker.handlers.produce import handle_frame
from penstock.broker.metrics.request_counts import RequestCounts
from penstock.broker.partitions.held_partitions import HeldPartitions
from penstock.broker.requests.answers import Answers
from penstock.broker.requests.call import Call
from penstock.broker.upkeep.flushes import Flushes
from penstock.config.loading import load
from penstock.metadata.image import ClusterImage, PartitionRegistration, Topic
from penstock.model.errors import ErrorCode
from penstock.net.connection import Deferred
from penstock.records.build import build_batch
from penstock.runtime.clock import SystemClock
from penstock.runtime.files import OsDisk
from penstock.runtime.pools import Pools
from penstock.storage.chores import Flush
from penstock.storage.options import LogOptions
from penstock.wire.framing import read_header
from penstock.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from tests.hostile.raw_client import frame_of, read_response
from tests.unit.broker.no_quotas import NO_QUOTAS

VERSION = 12


class FakeConnection:
    is_closed = False
    listener_name = "PLAINTEXT"

    def close(self, reason: str) -> None:
        self.is_closed = True

    def defer(self) -> Deferred:
        me: Any = self
        return Deferred(me)

    def reply_ready(self) -> None:
        pass


class FakeNode:
    def __init__(self, path: Path) -> None:
        node: Any = self
        self.loop = asyncio.get_running_loop()
        self.pools = Pools(self.loop)
        self.answers = Answers()
        self.authorizer = Authorizer(load({}, {})[0])
        self.client_quotas: Any = NO_QUOTAS
        self.request_counts = RequestCounts()
        self.broker_id = 1
        self.image = ClusterImage()
        self.config: dict[str, str] = {}
        self.addresses = Addresses(node, {})
        self.partitions = HeldPartitions(OsDisk(), [str(path)], SystemClock(), broker_id=1)
        placed = PartitionRegistration(replicas=(1,), isr=(1,), leader=1)
        wanted = Topic("orders", topic_id=bytes(16), partitions=[placed])
        for _ in self.partitions.open_topic(wanted, LogOptions(flush_messages=2)):
            pass
        self.flushes = Flushes(node)
        self.partitions.flush_soon = self.flushes.ask
        self.faults: list[str] = []
        self.connection = FakeConnection()

    def is_proven(self) -> bool:
        return True

    def report_disk_fault(self, what: str, error: OSError, partition: object = None) -> None:
        self.faults.append(what)

    def produce(self, *, acks: int = -1) -> Any:
        batch = bytes(build_batch([(None, b"v", (), 1_700_000_000_000)]))
        data = TopicProduceData(name="orders", partition_data=[PartitionProduceData(index=0, records=batch)])
        request = ProduceRequest(acks=acks, timeout_ms=1000, topic_data=[data])
        frame = memoryview(bytearray(frame_of(request, VERSION)))
        header = read_header(frame)
        me: Any = self
        connection: Any = self.connection
        return handle_frame(me, Call(connection, header), frame, header.body_offset)


def error_code(parts: Any) -> int:
    response = read_response(0, VERSION, b"".join(bytes(part) for part in parts)[4:])
    return int(response.responses[0].partition_responses[0].error_code)


async def until(condition: Any) -> None:
    async with asyncio.timeout(60):
        while not condition():
            await asyncio.sleep(0.001)


def test_the_answer_comes_after_the_flush(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    let_go = threading.Event()
    real = Flush.run

    def slow(self: Flush) -> None:
        assert let_go.wait(10)
        real(self)

    monkeypatch.setattr(Flush, "run", slow)

    async def scenario() -> None:
        node = FakeNode(tmp_path)
        assert error_code(node.produce()) == 0  # one record: below flush.messages
        deferred = node.produce()
        assert isinstance(deferred, Deferred)
        await asyncio.sleep(0)
        assert not deferred.is_ready
        partition = node.partitions.get("orders", 0)
        assert (partition.high_watermark, partition.log.recovery_point) == (1, 0)
        let_go.set()
        await until(lambda: deferred.is_ready)
        assert error_code(deferred.parts) == 0
        assert partition.log.recovery_point == 2
        node.partitions.release()

    asyncio.run(scenario())


def test_a_flush_that_fails_is_told_to_the_producer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(self: Flush) -> None:
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(Flush, "run", broken)

    async def scenario() -> None:
        node = FakeNode(tmp_path)
        node.produce()
        deferred = node.produce()
        await until(lambda: deferred.is_ready)
        assert error_code(deferred.parts) == ErrorCode.KAFKA_STORAGE_ERROR
        assert node.faults == ["cannot flush orders-0"]
        node.partitions.release()

    asyncio.run(scenario())


def test_without_an_answer_the_flush_is_done_all_the_same(tmp_path: Path) -> None:
    async def scenario() -> None:
        node = FakeNode(tmp_path)
        assert node.produce(acks=0) is None
        assert node.produce(acks=0) is None
        await until(lambda: node.partitions.get("orders", 0).log.recovery_point == 2)
        node.partitions.release()

    asyncio.run(scenario())


def test_a_producer_that_comes_between_two_flushes_waits_for_the_second(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second has not begun by then, so that it covers what this one has appended, and no third may run beside it."""
    begun, let_go = threading.Event(), threading.Event()
    real = Flush.run

    def slow(self: Flush) -> None:
        begun.set()
        assert let_go.wait(10)
        real(self)

    monkeypatch.setattr(Flush, "run", slow)

    async def scenario() -> None:
        node = FakeNode(tmp_path)
        partition = node.partitions.get("orders", 0)
        node.produce()
        answers = [node.produce()]
        await until(begun.is_set)
        answers.append(node.produce())
        first, second = node.flushes._running[partition], node.flushes._waiting[partition]
        asked = []

        def produce_in_between(_: object) -> None:
            answers.append(node.produce())
            asked.append(node.flushes.ask(partition))

        first.add_done_callback(produce_in_between)
        let_go.set()
        await until(lambda: len(answers) == 3 and all(answer.is_ready for answer in answers))
        assert asked == [second]
        assert [error_code(answer.parts) for answer in answers] == [0, 0, 0]
        assert [await task for task in (first, second)] == [None, None]
        assert partition.log.recovery_point == 4
        assert not node.flushes._running
        assert not node.flushes._waiting
        node.partitions.release()

    asyncio.run(scenario())


def test_a_mistake_in_a_flush_ends_the_connection_instead_of_leaving_it_without_an_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def mistaken(self: Flush) -> None:
        raise ValueError("a mistake")

    monkeypatch.setattr(Flush, "run", mistaken)

    async def scenario() -> None:
        node = FakeNode(tmp_path)
        node.produce()
        deferred = node.produce()
        await until(lambda: node.connection.is_closed)
        assert not deferred.is_ready
        assert "answering a produce request failed" in caplog.text
        node.partitions.release()

    asyncio.run(scenario())
