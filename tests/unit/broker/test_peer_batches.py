"""Questions to other brokers, asked together."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from penstock.broker.coordinators import peer_batches
from penstock.broker.coordinators.peer_batches import PeerBatches


class Item:
    def __init__(self, name: str, partition_count: int = 1) -> None:
        self.name = name
        self.partition_count = partition_count
        self.is_answered = False
        self.has_failed = False

    def answer(self) -> None:
        self.is_answered = True

    def fail(self) -> None:
        self.has_failed = not self.is_answered


class Broker:
    """Notes what it is asked, and answers when it may."""

    def __init__(self) -> None:
        self.asked: list[list[str]] = []
        self.may_answer = asyncio.Event()
        self.faults: list[Exception] = []

    async def send(self, broker_id: int, items: list[Item]) -> None:
        self.asked.append([item.name for item in items])
        await self.may_answer.wait()
        if self.faults:
            raise self.faults.pop()
        for item in items:
            item.answer()


def run(work: Callable[[Broker, PeerBatches[Item]], Awaitable[None]]) -> None:
    async def in_loop() -> None:
        broker = Broker()
        batches: PeerBatches[Item] = PeerBatches(asyncio.get_running_loop(), broker.send)
        await asyncio.wait_for(work(broker, batches), 60)

    asyncio.run(in_loop())


async def until(condition: Callable[[], bool]) -> None:
    while not condition():
        await asyncio.sleep(0)


def test_a_request_names_no_more_partitions_than_a_broker_takes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(peer_batches, "MAX_PARTITIONS_IN_REQUEST", 10)

    async def work(broker: Broker, batches: PeerBatches[Item]) -> None:
        broker.may_answer.set()
        items = [Item("a", 4), Item("b", 6), Item("c", 1), Item("huge", 50), Item("d", 1)]
        for item in items:
            batches.put(1, item)
        await until(lambda: all(item.is_answered for item in items))
        assert broker.asked == [["a", "b"], ["c"], ["huge"], ["d"]]

    run(work)


def test_too_many_who_wait_for_one_broker_fail_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(peer_batches, "MAX_QUEUED", 2)

    async def work(broker: Broker, batches: PeerBatches[Item]) -> None:
        items = [Item(name) for name in "abc"]
        for item in items:
            batches.put(1, item)
        assert [item.has_failed for item in items] == [False, False, True]
        broker.may_answer.set()
        await until(lambda: items[1].is_answered)

    run(work)


def test_a_broker_that_is_not_there_fails_all_who_wait_for_it() -> None:
    async def work(broker: Broker, batches: PeerBatches[Item]) -> None:
        items = [Item(name) for name in "aab"]
        for item in items:
            batches.put(1, item)
        broker.faults = [OSError("connection refused")]
        broker.may_answer.set()
        await until(lambda: all(item.has_failed for item in items))
        assert broker.asked == [["a", "b"]]

    run(work)


def test_a_mistake_with_one_request_is_not_the_end_of_the_next(caplog: pytest.LogCaptureFixture) -> None:
    async def work(broker: Broker, batches: PeerBatches[Item]) -> None:
        first, second = Item("a"), Item("a")
        batches.put(1, first)
        batches.put(1, second)
        broker.faults = [RuntimeError("a bug")]
        broker.may_answer.set()
        await until(lambda: second.is_answered)
        assert first.has_failed
        assert "a request to broker 1 failed" in caplog.text

    run(work)
