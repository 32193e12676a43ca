"""What a follower takes of its leader's answers, and what becomes of those it cannot take."""

import asyncio
import errno
import threading
from collections import deque
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest

from penstock.broker.cluster.spoken import PAGE
from penstock.broker.partitions.partition import Partition
from penstock.broker.replication.cuts import Cuts
from penstock.broker.replication.fetchers import ReplicaFetchers
from penstock.broker.upkeep.flushes import Flushes
from penstock.config.loading import load
from penstock.metadata import image
from penstock.model.api_keys import ApiKey
from penstock.model.errors import ErrorCode
from penstock.net.peers import PeerUnavailable
from penstock.runtime.files import OsDisk
from penstock.runtime.pools import Pools
from penstock.storage.chores import Flush
from penstock.storage.log import Log
from penstock.storage.options import LogOptions
from penstock.wire.fetch import FetchRequest, FetchResult, read_request, write_response
from tests.unit.broker.newest_versions import NewestVersions
from tests.unit.storage.batches import StillClock, make_batch

ORDERS, LEADER = bytes(15) + b"1", 2
PATIENCE_SECONDS = 60


class Quota:
    is_active = False


FETCH_VERSION = PAGE[ApiKey.FETCH].highest


class FakeNode:
    """A follower's, with a leader that the test plays."""

    def __init__(self, path: Path) -> None:
        self.loop = asyncio.get_running_loop()
        self.pools = Pools(self.loop)
        self.cuts = Cuts(self)  # type: ignore[arg-type]
        self.flushes = Flushes(self)  # type: ignore[arg-type]
        self.config, _ = load({}, {})
        self.broker_id, self.broker_epoch = 1, 10
        self.peers = self
        self.spoken = NewestVersions()
        self.asked: deque[tuple[FetchRequest, asyncio.Future[memoryview]]] = deque()
        self.faults: list[str] = []
        self.is_asked_for_its_end, self.may_answer = asyncio.Event(), asyncio.Event()
        self.may_answer.set()
        clock = StillClock()
        self.partitions_ = []
        for index in (0, 1):
            log = Log.open(OsDisk(), str(path / f"orders-{index}"), LogOptions(), clock)
            self.partitions_.append(Partition("orders", index, log, clock, leader_epoch=-1, high_watermark=0))

    def peer(self, broker_id: int, purpose: str) -> "FakeNode":
        return self

    async def ask_raw(self, api_key: int, version: int, body: bytes, *, timeout_s: float) -> memoryview:
        answer: asyncio.Future[memoryview] = self.loop.create_future()
        self.asked.append((read_request(memoryview(body), 0, version), answer))
        return await answer

    async def ask(self, *args: Any, **options: Any) -> Any:
        self.is_asked_for_its_end.set()
        await self.may_answer.wait()
        raise PeerUnavailable("broker 2: it is not there any more")

    def report_disk_fault(self, what: str, error: OSError, partition: Partition) -> None:
        self.faults.append(what)

    async def request(self) -> "tuple[FetchRequest, asyncio.Future[memoryview]]":
        async with asyncio.timeout(PATIENCE_SECONDS):
            while not self.asked:
                await asyncio.sleep(0)
        return self.asked.popleft()


class Bytes:
    """Records in an answer, as a slice of a log is."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.size_bytes = len(data)


def answer(*results: FetchResult, session_id: int = 7) -> memoryview:
    parts, _ = write_response([(ORDERS, list(results))], FETCH_VERSION, error_code=0, session_id=session_id)
    return memoryview(b"".join(part.data if isinstance(part, Bytes) else bytes(part) for part in parts))


def follow(node: FakeNode, fetchers: ReplicaFetchers, *indexes: int, epoch: int = 5) -> None:
    for index in indexes:
        partition = node.partitions_[index]
        partition.follow(image.PartitionRegistration((1, 2), (1, 2), leader=LEADER, leader_epoch=epoch))
        fetchers.follow(partition, ORDERS, LEADER)


def run(path: Path, scenario: Callable[[FakeNode, ReplicaFetchers], Coroutine[Any, Any, None]]) -> None:
    async def main() -> None:
        node: Any = FakeNode(path)
        quota: Any = Quota()
        fetchers = ReplicaFetchers(node, quota)
        try:
            await scenario(node, fetchers)
        finally:
            fetchers.stop()

    asyncio.run(main())


def records(offset: int, epoch: int) -> Any:
    batch, _ = make_batch(3, base_offset=offset, leader_epoch=epoch)
    return Bytes(bytes(batch))


def test_an_answer_to_what_was_asked_in_an_earlier_epoch_is_not_taken(tmp_path: Path) -> None:
    """It arrives in the moment in which the new epoch is told: the leader may have cut its log since it answered."""

    async def scenario(node: FakeNode, fetchers: ReplicaFetchers) -> None:
        follow(node, fetchers, 0, 1)
        _, answered = await node.request()
        answered.set_result(answer(FetchResult(0, 0, 3, 3, 0, records(0, epoch=5))))
        follow(node, fetchers, 0, epoch=7)
        request, _ = await node.request()
        assert node.partitions_[0].log.end_offset == 0
        assert request.topics[0][1][0].current_leader_epoch == 7

    run(tmp_path, scenario)


def test_a_partition_whose_records_cannot_be_read_does_not_hold_up_the_others(tmp_path: Path) -> None:
    async def scenario(node: FakeNode, fetchers: ReplicaFetchers) -> None:
        follow(node, fetchers, 0, 1)
        _, answered = await node.request()
        junk: Any = Bytes(bytes(100))
        good = FetchResult(1, 0, 3, 3, 0, records(0, epoch=5))
        answered.set_result(answer(FetchResult(0, 0, 3, 3, 0, junk), good))
        request, _ = await node.request()
        assert [partition.log.end_offset for partition in node.partitions_] == [0, 3]
        assert [each.partition for each in request.topics[0][1]] == [1]
        assert request.session_epoch == 1  # the session goes on

    run(tmp_path, scenario)


def test_what_cannot_be_taken_is_asked_for_less_and_less_often(tmp_path: Path) -> None:
    async def scenario(node: FakeNode, fetchers: ReplicaFetchers) -> None:
        follow(node, fetchers, 0)
        junk: Any = Bytes(bytes(100))
        rests = []
        for _ in range(3):
            _, answered = await node.request()
            answered.set_result(answer(FetchResult(0, 0, 3, 3, 0, junk)))
            fetcher = fetchers._fetchers[LEADER]
            followed = fetcher._by_partition[node.partitions_[0]]
            while followed.resting is None:
                await asyncio.sleep(0)
            rests.append(followed.rest_seconds)
        assert rests == sorted(set(rests))

    run(tmp_path, scenario)


def test_a_leader_that_refuses_every_request_is_asked_with_pauses(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario(node: FakeNode, fetchers: ReplicaFetchers) -> None:
        follow(node, fetchers, 0)
        refusal, _ = write_response([], FETCH_VERSION, error_code=ErrorCode.UNKNOWN_TOPIC_ID, session_id=0)
        for failures in range(1, 4):
            _, answered = await node.request()
            answered.set_result(memoryview(b"".join(bytes(part) for part in refusal)))
            fetcher = fetchers._fetchers[LEADER]
            async with asyncio.timeout(30):
                while fetcher._failures != failures:
                    await asyncio.sleep(0)

    with caplog.at_level("INFO"):
        run(tmp_path, scenario)
    assert len([each for each in caplog.messages if "UNKNOWN_TOPIC_ID" in each]) == 1


def test_a_leader_that_is_away_when_asked_for_its_end_is_no_fault_of_the_disk(tmp_path: Path) -> None:
    async def scenario(node: FakeNode, fetchers: ReplicaFetchers) -> None:
        follow(node, fetchers, 0)
        _, answered = await node.request()
        answered.set_result(answer(FetchResult(0, ErrorCode.OFFSET_OUT_OF_RANGE, log_start_offset=0)))
        await node.request()
        assert node.faults == []

    run(tmp_path, scenario)


def test_a_new_session_names_the_old_one_so_that_the_leader_forgets_it(tmp_path: Path) -> None:
    async def scenario(node: FakeNode, fetchers: ReplicaFetchers) -> None:
        follow(node, fetchers, 0)
        _, answered = await node.request()
        answered.set_result(answer(session_id=7))
        request, answered = await node.request()
        assert (request.session_id, request.session_epoch) == (7, 1)
        answered.set_exception(PeerUnavailable("broker 2: its connection is lost"))
        request, _ = await node.request()
        assert (request.session_id, request.session_epoch) == (7, 0)
        assert len(request.topics[0][1]) == 1

    run(tmp_path, scenario)


class SlowPool:
    """Begins nothing before it may."""

    def __init__(self, pool: Any) -> None:
        self._pool = pool
        self.may_begin = asyncio.Event()

    async def run(self, chore: Callable[[], None]) -> None:
        await self.may_begin.wait()
        await self._pool.run(chore)


def test_a_follower_asks_on_when_its_cut_is_on_the_device_and_others_do_not_wait(tmp_path: Path) -> None:
    async def scenario(node: FakeNode, fetchers: ReplicaFetchers) -> None:
        log = node.partitions_[0].log
        for offset in (0, 3):
            log.append_as_follower(memoryview(make_batch(3, base_offset=offset, leader_epoch=4)[0]))
        syncs = SlowPool(node.pools.syncs)
        node.pools.syncs = syncs  # type: ignore[assignment]
        follow(node, fetchers, 0, 1)
        _, answered = await node.request()
        diverging = FetchResult(0, 0, 3, 3, 0, diverging_epoch=(4, 3))
        answered.set_result(answer(diverging, FetchResult(1, 0, 3, 3, 0, records(0, epoch=5))))
        async with asyncio.timeout(PATIENCE_SECONDS):
            while not (log.is_being_cut and node.partitions_[1].log.end_offset == 3):
                await asyncio.sleep(0)
        assert (log.end_offset, node.asked) == (6, deque())
        assert log.prepare_flush() is None
        syncs.may_begin.set()
        request, _ = await node.request()
        assert (log.end_offset, log.is_being_cut, node.faults) == (3, False, [])
        asked = {
            each.partition: (each.fetch_offset, each.last_fetched_epoch) for each in request.topics[0][1]
        }
        assert asked == {0: (3, 4), 1: (3, 5)}

    run(tmp_path, scenario)


def test_a_cut_goes_on_when_its_fetcher_stops(tmp_path: Path) -> None:
    async def scenario(node: FakeNode, fetchers: ReplicaFetchers) -> None:
        log = node.partitions_[0].log
        log.append_as_follower(memoryview(make_batch(3, leader_epoch=4)[0]))
        syncs = SlowPool(node.pools.syncs)
        node.pools.syncs = syncs  # type: ignore[assignment]
        follow(node, fetchers, 0)
        _, answered = await node.request()
        answered.set_result(answer(FetchResult(0, 0, 3, 3, 0, diverging_epoch=(3, 0))))
        async with asyncio.timeout(PATIENCE_SECONDS):
            while not log.is_being_cut:
                await asyncio.sleep(0)
            fetchers.stop()
            draining = asyncio.create_task(node.cuts.drain())
            await asyncio.sleep(0)
            assert not draining.done()
            syncs.may_begin.set()
            await draining
        assert (log.end_offset, log.is_being_cut) == (0, False)

    run(tmp_path, scenario)


def test_a_partition_that_leads_by_now_is_not_cut(tmp_path: Path) -> None:
    """Its answer came with that of another, for which the leader is asked once more; meanwhile it is elected."""

    async def scenario(node: FakeNode, fetchers: ReplicaFetchers) -> None:
        elected, log = node.partitions_[0], node.partitions_[0].log
        for offset in (0, 3):
            log.append_as_follower(memoryview(make_batch(3, base_offset=offset, leader_epoch=4)[0]))
        node.may_answer.clear()
        follow(node, fetchers, 0, 1)
        _, answered = await node.request()
        diverging = FetchResult(0, 0, 3, 3, 0, diverging_epoch=(4, 3))
        answered.set_result(
            answer(diverging, FetchResult(1, ErrorCode.OFFSET_OUT_OF_RANGE, log_start_offset=0))
        )
        async with asyncio.timeout(PATIENCE_SECONDS):
            await node.is_asked_for_its_end.wait()
        fetchers.leave(elected)
        elected.lead(image.PartitionRegistration((1, 2), (1,), leader=1, leader_epoch=6), own_id=1)
        elected.append(make_batch(2)[0])
        node.may_answer.set()
        request, _ = await node.request()
        assert [each.partition for each in request.topics[0][1]] == [1]
        assert (log.end_offset, log.cuts, elected.high_watermark) == (8, 0, 8)

    run(tmp_path, scenario)


def test_a_partition_that_was_refused_is_asked_for_again_in_the_same_session(tmp_path: Path) -> None:
    """A request waits at the leader until the refused one is to be asked for again, and is not given up for it."""

    async def scenario(node: FakeNode, fetchers: ReplicaFetchers) -> None:
        follow(node, fetchers, 0, 1)
        request, answered = await node.request()
        assert request.max_wait_ms == 500
        answered.set_result(answer(FetchResult(0, ErrorCode.NOT_LEADER_OR_FOLLOWER)))
        request, answered = await node.request()
        assert (request.session_epoch, request.forgotten) == (1, [(ORDERS, [0])])
        assert request.max_wait_ms <= 20
        rest = fetchers._fetchers[LEADER]._resting
        async with asyncio.timeout(PATIENCE_SECONDS):
            while rest:
                await asyncio.sleep(0.001)
        assert not answered.done()  # nor cancelled: the leader answers it when its time is over
        answered.set_result(answer())
        request, _ = await node.request()
        assert [each.partition for each in request.topics[0][1]] == [0]
        assert (request.session_id, request.session_epoch) == (7, 2)
        assert request.max_wait_ms == 500

    run(tmp_path, scenario)


def test_a_follower_confirms_what_flush_messages_wants_when_it_is_on_the_device(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    let_go = threading.Event()
    real = Flush.run

    def slow(self: Flush) -> None:
        assert let_go.wait(PATIENCE_SECONDS)
        real(self)

    monkeypatch.setattr(Flush, "run", slow)

    async def scenario(node: FakeNode, fetchers: ReplicaFetchers) -> None:
        log = node.partitions_[0].log
        log.options = LogOptions(flush_messages=3)
        follow(node, fetchers, 0)
        _, answered = await node.request()
        answered.set_result(answer(FetchResult(0, 0, 3, 3, 0, records(0, epoch=5))))
        async with asyncio.timeout(PATIENCE_SECONDS):
            while log.end_offset < 3:
                await asyncio.sleep(0)
        for _ in range(10):
            await asyncio.sleep(0)
        assert not node.asked
        let_go.set()
        request, _ = await node.request()
        assert request.topics[0][1][0].fetch_offset == log.recovery_point == 3

    run(tmp_path, scenario)


def test_a_flush_that_fails_keeps_a_follower_from_confirming(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(self: Flush) -> None:
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(Flush, "run", broken)

    async def scenario(node: FakeNode, fetchers: ReplicaFetchers) -> None:
        node.partitions_[0].log.options = LogOptions(flush_messages=1)
        follow(node, fetchers, 0, 1)
        _, answered = await node.request()
        answered.set_result(answer(FetchResult(0, 0, 3, 3, 0, records(0, epoch=5))))
        request, _ = await node.request()
        assert request.topics == []
        assert request.forgotten == [(ORDERS, [0])]
        assert node.faults == ["cannot flush orders-0"]

    run(tmp_path, scenario)
