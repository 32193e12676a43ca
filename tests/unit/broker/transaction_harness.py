"""What tests of the transaction coordinator's host need: a node with real logs, and a few requests."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from penstock.broker.access.authorizer import Authorizer
from penstock.broker.coordinators.transactions import TransactionHost
from penstock.broker.partitions.openings import Openings
from penstock.broker.partitions.partition import Partition
from penstock.broker.requests.answers import Answers
from penstock.config.loading import load
from penstock.coordination.form import RequestContext
from penstock.metadata import image
from penstock.model.errors import ApiError, ErrorCode
from penstock.model.internal_topics import TRANSACTION_STATE
from penstock.records.build import build_batch
from penstock.runtime.clock import SystemClock
from penstock.runtime.files import OsDisk
from penstock.runtime.pools import Pools
from penstock.storage.log import Log
from penstock.storage.options import LogOptions
from penstock.wire.messages.add_partitions_to_txn import (
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
)
from penstock.wire.messages.end_txn import EndTxnRequest
from penstock.wire.messages.init_producer_id import InitProducerIdRequest
from tests.unit.broker.no_quotas import NO_QUOTAS

OPTIONS = {
    "transaction.max.timeout.ms": 900_000,
    "transactional.id.expiration.ms": 604_800_000,
    "transaction.remove.expired.transaction.cleanup.interval.ms": 3_600_000,
    "transaction.two.phase.commit.enable": False,
}
CONTEXT = RequestContext(4, "client", "/127.0.0.1")
PRODUCER_ID = 1000


class Held(list[Partition]):
    """The partitions of one topic."""

    name: str
    partition: Callable[[int], Partition]


class FakeNode:
    """As much of a node as the host asks for: a partition of its own topic, and two of `orders`."""

    broker_id = 1
    config = OPTIONS

    def __init__(self, directory: Path) -> None:
        self.loop = asyncio.get_running_loop()
        self.pools = Pools(self.loop)
        self.openings = Openings(self.pools.codecs, self.pools.reads)
        self.answers = Answers()
        self.authorizer = Authorizer(load({}, {})[0])
        self.client_quotas: Any = NO_QUOTAS
        self.clock = SystemClock()
        self.image = image.ClusterImage()
        self.logs: dict[tuple[str, int], Partition] = {}
        placed = image.PartitionRegistration(replicas=(1,), isr=(1,), leader=1)
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
        """As both the host and the produce handler ask for it."""
        held = Held(partition for (topic, _), partition in self.logs.items() if topic == name)
        held.name, held.partition = name, lambda index: self.get(name, index)
        return held


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
