"""The host of the transaction coordinator over real logs: where its markers go, and whom it lets in."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from penstock.broker import coordinator_host, transaction_host
from penstock.broker.handlers import produce
from penstock.broker.partition import Partition
from penstock.broker.transaction_host import TransactionHost
from penstock.coordination.form import RequestContext
from penstock.metadata import image
from penstock.model.errors import ApiError, ErrorCode
from penstock.model.internal_topics import TRANSACTION_STATE
from penstock.records.build import build_batch
from penstock.runtime.clock import SystemClock
from penstock.runtime.files import OsDisk
from penstock.storage.log import Log
from penstock.storage.options import LogOptions
from penstock.wire import framing
from penstock.wire.messages.add_partitions_to_txn import (
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
)
from penstock.wire.messages.end_txn import EndTxnRequest
from penstock.wire.messages.init_producer_id import InitProducerIdRequest
from penstock.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from tests.hostile.raw_client import frame_of

OPTIONS = {
    "transaction.max.timeout.ms": 900_000,
    "transactional.id.expiration.ms": 604_800_000,
    "transaction.remove.expired.transaction.cleanup.interval.ms": 3_600_000,
    "transaction.two.phase.commit.enable": False,
}
CONTEXT = RequestContext(4, "client", "/127.0.0.1")
PRODUCER_ID = 1000


class FakeNode:
    """As much of a node as the host asks for: a partition of its own topic, and two of `orders`."""

    broker_id = 1
    config = OPTIONS

    def __init__(self, directory: Path) -> None:
        self.loop = asyncio.get_running_loop()
        self.clock = SystemClock()
        self.image = image.ClusterImage()
        self.logs: dict[tuple[str, int], Partition] = {}
        placed = image.Partition(replicas=(1,), isr=(1,), leader=1)
        for number, (name, count) in enumerate({TRANSACTION_STATE: 1, "orders": 2}.items(), 1):
            self.image.apply(image.TopicCreated(name, bytes(15) + bytes([number]), (placed,) * count))
            for index in range(count):
                log = Log.open(OsDisk(), str(directory / f"{name}-{index}"), LogOptions(), self.clock)
                self.logs[name, index] = Partition(name, index, log, self.clock, leader_epoch=0)
        self.topics = self.partitions = self
        self.transactions: Any = None
        self.faults: list[str] = []

    async def transaction_state(self) -> image.Topic:
        topic = self.image.topic(TRANSACTION_STATE)
        assert topic is not None
        return topic

    def get(self, name: str, index: int) -> Partition:
        if (name, index) not in self.logs:
            raise ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        return self.logs[name, index]

    def report_disk_fault(self, what: str, error: OSError, partition: object = None) -> None:
        self.faults.append(what)

    def topic(self, name: str) -> Any:
        return SimpleNamespace(name=name, partition=lambda index: self.get(name, index))


def in_loop(work: Callable[[Any], Awaitable[None]], directory: Path) -> None:
    async def run() -> None:
        node = FakeNode(directory)
        node.transactions = TransactionHost(node)  # type: ignore[arg-type]
        await asyncio.wait_for(work(node), 60)
        node.transactions.close()
        for partition in node.logs.values():
            partition.log.close()

    asyncio.run(run())


async def begin(node: Any, *places: int) -> None:
    request = InitProducerIdRequest(transactional_id="tx", transaction_timeout_ms=60_000)
    answer = await node.transactions.answer(
        "tx",
        lambda shard, ticket, now_ms: shard.init_producer_id(
            request, CONTEXT, ticket, now_ms, spare_producer_id=PRODUCER_ID
        ),
    )
    assert answer.error_code == 0
    wanted = AddPartitionsToTxnTransaction(
        transactional_id="tx",
        producer_id=PRODUCER_ID,
        producer_epoch=0,
        topics=[AddPartitionsToTxnTopic(name="orders", partitions=list(places))],
    )
    version_3 = CONTEXT._replace(api_version=3)
    await node.transactions.answer(
        "tx", lambda shard, ticket, now_ms: shard.add_partitions(wanted, version_3, ticket, now_ms)
    )


def batch() -> bytearray:
    return build_batch(
        [(b"key", b"value", (), 1_700_000_000_000)],
        producer_id=PRODUCER_ID,
        producer_epoch=0,
        base_sequence=0,
        transactional=True,
    )


async def end(node: Any) -> int:
    request = EndTxnRequest(transactional_id="tx", producer_id=PRODUCER_ID, producer_epoch=0, committed=False)
    answer = await node.transactions.answer(
        "tx",
        lambda shard, ticket, now_ms: shard.end_transaction(
            request, CONTEXT, ticket, now_ms, spare_producer_id=None
        ),
    )
    return int(answer.error_code)


async def state(node: Any) -> str:
    (described,) = await node.transactions.answer(
        "tx", lambda shard, ticket, now_ms: shard.describe(["tx"], ticket, now_ms)
    )
    return str(described.transaction_state)


def test_a_partition_that_could_not_be_opened_gets_its_marker_when_it_is_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transaction_host, "RETRY_SECONDS", 0.01)

    async def work(node: Any) -> None:
        await begin(node, 0, 1)
        for index in (0, 1):
            node.get("orders", index).append(memoryview(batch()), verified_transaction=True)
        hidden = node.logs.pop(("orders", 1))
        assert await end(node) == 0
        assert node.get("orders", 0).last_stable_offset == 2
        assert await state(node) == "PrepareAbort"
        node.logs["orders", 1] = hidden
        while await state(node) != "CompleteAbort":
            await asyncio.sleep(0.005)
        assert hidden.last_stable_offset == 2
        assert node.get("orders", 0).log.end_offset == 2, "it has its marker, and needs no other"

    in_loop(work, tmp_path)


def test_a_partition_that_was_deleted_needs_no_marker(tmp_path: Path) -> None:
    async def work(node: Any) -> None:
        await begin(node, 0, 1)
        node.image.apply(image.TopicDeleted("orders"))
        for index in (0, 1):
            node.logs.pop(("orders", index)).log.close()
        assert await end(node) == 0
        assert await state(node) == "CompleteAbort"

    in_loop(work, tmp_path)


def test_a_batch_that_waited_for_the_coordinator_does_not_begin_again_what_has_ended(tmp_path: Path) -> None:
    async def work(node: Any) -> None:
        await begin(node, 0)
        node.transactions.close()
        node.transactions = TransactionHost(node)  # one that has to load first
        answered: list[object] = []
        data = PartitionProduceData(index=0, records=bytes(batch()))
        sent = frame_of(
            ProduceRequest(
                transactional_id="tx",
                acks=-1,
                timeout_ms=1000,
                topic_data=[TopicProduceData(name="orders", partition_data=[data])],
            ),
            11,
        )
        header = framing.read_header(memoryview(sent))
        connection = SimpleNamespace(
            defer=lambda: SimpleNamespace(resolve=answered.append), is_closed=False, close=answered.append
        )
        call: Any = SimpleNamespace(api_version=11, client_id="client", header=header, connection=connection)
        produce.handle_frame(node, call, memoryview(bytearray(sent)), header.body_offset)
        await asyncio.sleep(0)  # it is in the queue for the coordinator now
        assert await end(node) == 0  # decided in the same step as the consent to the batch, right behind it
        while not answered:
            await asyncio.sleep(0)
        partition = node.get("orders", 0)
        assert partition.last_stable_offset == partition.log.end_offset == 1, "the marker is all there is"

    in_loop(work, tmp_path)


def test_a_shard_whose_log_failed_once_is_loaded_again_though_nobody_asks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(coordinator_host, "LOAD_AGAIN_SECONDS", 0.01)

    def fail(*_: object) -> None:
        raise OSError("too many open files")

    async def work(node: Any) -> None:
        await begin(node, 0)
        with monkeypatch.context() as broken:
            broken.setattr(Partition, "append_own", fail)
            with pytest.raises(ApiError, check=lambda refusal: refusal.code is ErrorCode.NOT_COORDINATOR):
                await end(node)
        assert node.faults
        assert not node.transactions._shards
        while not node.transactions._shards:
            await asyncio.sleep(0.005)
        assert await state(node) == "Ongoing"

    in_loop(work, tmp_path)
