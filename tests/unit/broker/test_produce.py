"""What the Produce handler refuses before anything is stored, and how much it does at once."""

import asyncio
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from penstock.broker.handlers import produce as module
from penstock.broker.handlers.produce import BATCHES_AT_ONCE, Produce
from penstock.broker.metrics.request_counts import RequestCounts
from penstock.broker.partitions.held_partitions import HeldPartitions
from penstock.broker.partitions.openings import Openings
from penstock.metadata.image import PartitionRegistration, Topic
from penstock.model.errors import ErrorCode
from penstock.records.build import build_batch
from penstock.records.compression import ZSTD
from penstock.runtime.clock import SystemClock
from penstock.runtime.files import OsDisk
from penstock.runtime.pools import Pools
from penstock.storage.options import LogOptions
from penstock.wire.produce import ProduceRequest
from tests.unit.broker.no_quotas import NO_QUOTAS


@pytest.mark.parametrize(
    ("client_id", "code"),
    [("console-producer", ErrorCode.INVALID_TOPIC_EXCEPTION), ("__admin_client", ErrorCode.NONE)],
)
def test_clients_do_not_write_to_internal_topics(tmp_path: Path, client_id: str, code: ErrorCode) -> None:
    placed = PartitionRegistration(replicas=(1,), isr=(1,), leader=1)
    partitions = HeldPartitions(OsDisk(), [str(tmp_path)], SystemClock(), broker_id=1)
    topic = Topic("__consumer_offsets", topic_id=bytes(15) + b"1", partitions=[placed])
    for _ in partitions.open_topic(topic, LogOptions()):
        pass
    batch = memoryview(build_batch([(b"key", b"value", (), 1_700_000_000_000)]))
    node: Any = SimpleNamespace(partitions=partitions, is_proven=lambda: True, request_counts=RequestCounts())
    call: Any = SimpleNamespace(client_id=client_id)
    request = ProduceRequest(None, -1, 1000, [(topic.name, [(0, batch)])])
    produce = Produce(node, call, request)
    produce.append(request.topics, {})
    assert produce.results[0][:2] == (0, code)
    partitions.release()


@pytest.fixture
def orders(tmp_path: Path) -> Iterator[HeldPartitions]:
    """A compacted topic of one partition."""
    placed = PartitionRegistration(replicas=(1,), isr=(1,), leader=1)
    partitions = HeldPartitions(OsDisk(), [str(tmp_path)], SystemClock(), broker_id=1)
    topic = Topic("orders", topic_id=bytes(15) + b"1", partitions=[placed])
    for _ in partitions.open_topic(topic, LogOptions(compacted=True)):
        pass
    yield partitions
    partitions.release()


def many_batches(node: Any, count: int, *, key: bytes | None = b"key") -> Produce:
    batch = bytes(build_batch([(key, b"value", (), 1_700_000_000_000)] * 1000, codec=ZSTD))
    batches = [(0, memoryview(bytearray(batch))) for _ in range(count)]
    return Produce(node, SimpleNamespace(client_id="c"), ProduceRequest(None, 1, 1000, [("orders", batches)]))  # type: ignore[arg-type,list-item]


@pytest.mark.parametrize("key", [b"key", None])
def test_one_request_opens_only_so_many_batches_at_once(orders: HeldPartitions, key: bytes | None) -> None:
    """Whether they are accepted or refused: 20,000 of them in one request would hold up everybody for a minute."""
    node: Any = SimpleNamespace(partitions=orders, is_proven=lambda: True, request_counts=RequestCounts())
    produce = many_batches(node, 20, key=key)
    produce.append(produce.request.topics, {})
    assert produce.unchecked == list(range(2, 20))


def test_opened_batches_are_appended_before_many_more_are_opened(
    orders: HeldPartitions, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = orders.get("orders", 0).log
    ends: list[int] = []

    async def check(partition: Any, records: memoryview, now_ms: int) -> memoryview:
        ends.append(log.end_offset)
        return records

    node: Any = SimpleNamespace(
        partitions=orders,
        is_proven=lambda: True,
        clock=SystemClock(),
        openings=SimpleNamespace(check=check),
    )
    produce = many_batches(node, 8)
    produce.append(produce.request.topics, {})
    monkeypatch.setattr(module, "PORTION_BYTES", 2 * len(produce.request.topics[0][1][0][1] or b""))
    asyncio.run(produce._check_and_append())
    assert ends == [2000, 2000, 4000, 4000, 6000, 6000]
    assert log.end_offset == 8000
    assert [result[1] for result in produce.results] == [0] * 8


def test_an_answer_that_waits_does_not_keep_the_records(orders: HeldPartitions) -> None:
    partition = orders.get("orders", 0)
    placed = PartitionRegistration(replicas=(1, 2), isr=(1, 2), leader=1, leader_epoch=1)
    partition.lead(placed, 1)
    received = build_batch([(b"key", b"value", (), 1_700_000_000_000)])

    async def main() -> None:
        connection = SimpleNamespace(defer=lambda: SimpleNamespace(on_abandoned=None))
        node: Any = SimpleNamespace(
            partitions=orders, is_proven=lambda: True, loop=asyncio.get_running_loop()
        )
        call: Any = SimpleNamespace(client_id="c", connection=connection)
        request = ProduceRequest(None, -1, 1000, [("orders", [(0, memoryview(received))])])
        produce = Produce(node, call, request)
        produce.append(request.topics, {})
        del request
        answer: Any = produce.answer()
        received.clear()  # BufferError while somebody has a view of it
        answer.on_abandoned()

    asyncio.run(main())


def test_a_batch_does_not_overtake_one_of_its_request_for_the_same_partition(orders: HeldPartitions) -> None:
    """The first must be checked in steps, the second could be appended at once."""
    stamp = 1_700_000_000_000
    large = memoryview(build_batch([(b"key", b"first", (), stamp)] * 5000))
    small = memoryview(build_batch([(b"key", b"second", (), stamp)]))

    async def run() -> list[int]:
        node = node_of(orders)
        request = ProduceRequest(None, 1, 1000, [("orders", [(0, large)]), ("orders", [(0, small)])])
        produce = Produce(node, SimpleNamespace(client_id="c"), request)  # type: ignore[arg-type]
        produce.append(request.topics, {})
        assert produce.unchecked == [0, 1]
        assert orders.get("orders", 0).log.end_offset == 0
        await produce._check_and_append()
        return [result[2] for result in produce.results]

    assert asyncio.run(run()) == [0, 5000]


def test_one_request_appends_only_so_many_batches_at_once(tmp_path: Path) -> None:
    """Also where none of them is opened: each costs a write."""
    placed = PartitionRegistration(replicas=(1,), isr=(1,), leader=1)
    partitions = HeldPartitions(OsDisk(), [str(tmp_path)], SystemClock(), broker_id=1)
    topic = Topic("orders", topic_id=bytes(15) + b"1", partitions=[placed, placed])
    for _ in partitions.open_topic(topic, LogOptions()):
        pass
    batch = bytes(build_batch([(b"key", b"value", (), 1_700_000_000_000)], codec=ZSTD))
    count = 3 * BATCHES_AT_ONCE
    batches = [(place % 2, memoryview(bytearray(batch))) for place in range(count)]
    turns = 0

    async def run() -> list[tuple[int, int]]:
        nonlocal turns
        node = node_of(partitions)
        request = ProduceRequest(None, 1, 1000, [("orders", batches)])  # type: ignore[list-item]
        produce = Produce(node, SimpleNamespace(client_id="c"), request)  # type: ignore[arg-type]
        produce.append(request.topics, {})
        assert produce.unchecked == list(range(BATCHES_AT_ONCE, count))

        async def other() -> None:
            nonlocal turns
            while True:
                turns += 1
                await asyncio.sleep(0)

        others = asyncio.create_task(other())
        await produce._check_and_append()
        others.cancel()
        return [(result[0], result[2]) for result in produce.results]

    assert asyncio.run(run()) == [(place % 2, place // 2) for place in range(count)]
    assert turns >= 2
    partitions.release()


def node_of(partitions: HeldPartitions) -> Any:
    pools = Pools(asyncio.get_running_loop())
    return SimpleNamespace(
        partitions=partitions,
        is_proven=lambda: True,
        clock=SystemClock(),
        openings=Openings(pools.codecs, pools.reads),
        client_quotas=NO_QUOTAS,
        request_counts=RequestCounts(),
    )
