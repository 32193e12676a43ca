"""The host of the group coordinator where followers must have its records before anybody is told of them."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from penstock.broker.coordinators import host as coordinator_host
from penstock.broker.coordinators import uncommitted
from penstock.broker.coordinators.groups import GroupHost
from penstock.broker.partitions.partition import Partition
from penstock.metadata import image
from penstock.model.errors import ApiError, ErrorCode
from penstock.model.internal_topics import CONSUMER_OFFSETS
from penstock.runtime.files import OsDisk
from penstock.storage.log import Log
from penstock.storage.options import LogOptions
from penstock.wire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from penstock.wire.messages.heartbeat import HeartbeatRequest
from penstock.wire.messages.list_groups import ListGroupsRequest
from tests.unit.broker.group_harness import (
    CONTEXT,
    OPTIONS,
    FakeNode,
    commit,
    committed,
    in_loop,
    join,
    until_parked,
)

ANY = ListGroupsRequest()


def lead(node: FakeNode, *, epoch: int = 1, isr: tuple[int, ...] = (1, 2)) -> None:
    node.partition.lead(image.PartitionRegistration((1, 2), isr, leader=1, leader_epoch=epoch), own_id=1)


def replicate(node: FakeNode) -> None:
    """The follower has all, and says so."""
    node.partition.follower_fetched(2, node.partition.log.end_offset)


def lose(node: FakeNode) -> None:
    placed = image.PartitionRegistration(
        (1, 2), (1, 2), leader=2, leader_epoch=node.partition.leader_epoch + 1
    )
    node.partition.follow(placed)


async def loaded(node: Any) -> GroupHost:
    lead(node)
    host = GroupHost(node)
    loading = asyncio.create_task(committed(host))
    while not loading.done():
        replicate(node)
        await asyncio.sleep(0)
    assert loading.result() == -1
    return host


async def turns() -> None:
    """Enough for everything that does not wait for anybody else."""
    for _ in range(20):
        await asyncio.sleep(0)


def test_an_offset_is_acknowledged_when_the_follower_has_it(tmp_path: Path) -> None:
    async def work(node: Any) -> None:
        host = await loaded(node)
        commits = [asyncio.create_task(commit(host, offset)) for offset in (1, 2)]
        await turns()
        assert not any(each.done() for each in commits)
        replicate(node)
        assert await asyncio.gather(*commits) == [ErrorCode.NONE] * 2

    in_loop(work, tmp_path)


def test_answers_leave_in_the_order_in_which_they_were_decided(tmp_path: Path) -> None:
    async def work(node: Any) -> None:
        host = await loaded(node)
        order: list[str] = []

        async def noted(name: str, asked: Any) -> None:
            await asked
            order.append(name)

        asked = [
            asyncio.create_task(noted("first", commit(host, 1))),
            asyncio.create_task(noted("a read", committed(host))),
            asyncio.create_task(noted("second", commit(host, 2))),
        ]
        await turns()
        assert not order
        replicate(node)
        await asyncio.gather(*asked)
        assert order == ["first", "a read", "second"]

    in_loop(work, tmp_path)


def test_nobody_reads_what_a_new_leader_may_not_have(tmp_path: Path) -> None:
    async def work(node: Any) -> None:
        host = await loaded(node)
        writing = asyncio.create_task(commit(host, 1))
        await turns()
        reading = asyncio.create_task(committed(host))
        await turns()
        assert not reading.done()
        replicate(node)
        assert (await writing, await reading) == (ErrorCode.NONE, 1)

    in_loop(work, tmp_path)


@pytest.mark.parametrize("is_told", [True, False], ids=["the host is told", "only the log is"])
def test_who_waits_when_leadership_ends_looks_for_the_coordinator_again(
    tmp_path: Path, is_told: bool
) -> None:
    async def work(node: Any) -> None:
        node.config = {
            **node.config,
            "group.initial.rebalance.delay.ms": 60_000,
        }  # so that the member stays parked
        host = await loaded(node)
        parked = asyncio.create_task(join(host))
        await until_parked(host, 1)
        waiting = asyncio.create_task(commit(host, 1))
        await turns()
        lose(node)
        if is_told:
            host.partition_lost(0)
        with pytest.raises(ApiError) as refusal:
            await waiting
        assert refusal.value.code is ErrorCode.NOT_COORDINATOR
        assert (await parked).error_code == ErrorCode.NOT_COORDINATOR
        with pytest.raises(ApiError) as refusal:
            await committed(host)
        assert refusal.value.code is ErrorCode.NOT_COORDINATOR
        host.close()

    in_loop(work, tmp_path)


def test_a_new_epoch_of_the_same_leader_changes_nothing_for_those_who_wait(tmp_path: Path) -> None:
    async def work(node: Any) -> None:
        host = await loaded(node)
        waiting = asyncio.create_task(commit(host, 1))
        await turns()
        lead(node, epoch=2)
        host.partition_led(0)
        await turns()
        assert not waiting.done()
        replicate(node)
        assert await waiting == ErrorCode.NONE

    in_loop(work, tmp_path)


def test_an_answer_that_waits_too_long_is_refused_and_what_was_decided_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(OPTIONS, "offsets.commit.timeout.ms", 10)

    async def work(node: Any) -> None:
        host = await loaded(node)
        with pytest.raises(ApiError) as refusal:
            await commit(host, 7)
        assert refusal.value.code is ErrorCode.COORDINATOR_NOT_AVAILABLE
        replicate(node)
        assert await committed(host) == 7

    in_loop(work, tmp_path)


def test_too_few_replicas_in_sync_refuse_what_would_be_written_and_nothing_else(tmp_path: Path) -> None:
    async def work(node: Any) -> None:
        host = await loaded(node)
        node.partition.replica.min_insync_replicas = 2
        node.partition.settle_isr(frozenset({1}), 1)
        end = node.partition.log.end_offset
        with pytest.raises(ApiError) as refusal:
            await commit(host, 1)
        assert refusal.value.code is ErrorCode.COORDINATOR_NOT_AVAILABLE
        assert host._shards, "nothing has happened that would have to be undone"
        assert await host.answer_of_all(lambda s, ticket, _: s.list_groups(ANY, ticket)) == [[]]
        heartbeat = HeartbeatRequest(group_id="g", generation_id=1, member_id="m")
        answer = await host.answer(
            "g", lambda s, ticket, now_ms: s.heartbeat(heartbeat, CONTEXT, ticket, now_ms), reads_only=True
        )
        assert answer.error_code == ErrorCode.UNKNOWN_MEMBER_ID
        assert node.partition.log.end_offset == end
        node.partition.settle_isr(frozenset({1, 2}), 2)
        writing = asyncio.create_task(commit(host, 1))
        await turns()
        replicate(node)
        assert await writing == ErrorCode.NONE

    in_loop(work, tmp_path)


def test_an_alarm_is_put_off_while_too_few_replicas_are_in_sync(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(coordinator_host, "ALARM_AGAIN_MS", 5)

    async def work(node: Any) -> None:
        host = await loaded(node)
        joining = asyncio.create_task(join(host))
        await until_parked(host, 1)
        replicate(node)
        node.partition.replica.min_insync_replicas = 2
        node.partition.settle_isr(frozenset({1}), 1)
        asked: list[bool] = []
        real = host.can_write

        def noted(index: int) -> bool:
            asked.append(real(index))
            return asked[-1]

        monkeypatch.setattr(host, "can_write", noted)
        while len(asked) < 2:
            await asyncio.sleep(0.001)
        assert asked == [False, False]
        assert not joining.done()
        node.partition.settle_isr(frozenset({1, 2}), 2)
        while not joining.done():
            replicate(node)
            await asyncio.sleep(0.001)
        assert joining.result().error_code == ErrorCode.NONE
        host.close()

    in_loop(work, tmp_path)


def test_members_who_could_not_be_heard_have_their_whole_session_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A heartbeat of the newer protocol may write, and is refused while too few replicas are in sync."""
    monkeypatch.setattr(coordinator_host, "ALARM_AGAIN_MS", 5)
    monkeypatch.setitem(OPTIONS, "group.consumer.session.timeout.ms", 300)

    async def beat(host: GroupHost, epoch: int) -> Any:
        request = ConsumerGroupHeartbeatRequest(
            group_id="g",
            member_id="m",
            member_epoch=epoch,
            rebalance_timeout_ms=10_000 if epoch == 0 else -1,
            subscribed_topic_names=["orders"] if epoch == 0 else None,
            topic_partitions=[] if epoch == 0 else None,
        )
        asked = asyncio.create_task(
            host.answer(
                "g", lambda s, ticket, now_ms: s.consumer_group_heartbeat(request, CONTEXT, ticket, now_ms)
            )
        )
        while not asked.done():
            replicate(node_of_test[0])
            await asyncio.sleep(0)
        return await asked

    node_of_test: list[Any] = []

    async def work(node: Any) -> None:
        node_of_test.append(node)
        host = await loaded(node)
        joined = await beat(host, 0)
        assert joined.error_code == ErrorCode.NONE
        node.partition.replica.min_insync_replicas = 2
        node.partition.settle_isr(frozenset({1}), 1)
        while not host._deaf:  # its session is over, and nobody could write that down
            with pytest.raises(ApiError):
                await beat(host, joined.member_epoch)
            await asyncio.sleep(0.005)
        node.partition.settle_isr(frozenset({1, 2}), 2)
        while host._deaf:
            await asyncio.sleep(0.001)
        assert (await beat(host, joined.member_epoch)).error_code == ErrorCode.NONE
        host.close()

    in_loop(work, tmp_path)


def test_too_many_who_wait_are_told_to_come_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(uncommitted, "MAX_UNCOMMITTED", 2)

    async def work(node: Any) -> None:
        host = await loaded(node)
        waiting = [asyncio.create_task(commit(host, offset)) for offset in (1, 2)]
        await turns()
        with pytest.raises(ApiError) as refusal:
            await commit(host, 3)
        assert refusal.value.code is ErrorCode.COORDINATOR_NOT_AVAILABLE
        replicate(node)
        assert await asyncio.gather(*waiting) == [ErrorCode.NONE] * 2

    in_loop(work, tmp_path)


def test_a_new_leader_answers_when_what_it_inherited_is_committed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(coordinator_host, "LOAD_WAIT_SECONDS", 0.01)

    async def work(node: Any) -> None:
        assert await commit(GroupHost(node), 5) == ErrorCode.NONE
        lead(node)
        node.partition.replica.high_watermark = 0
        host = GroupHost(node)
        host.partition_led(0)
        with pytest.raises(ApiError) as refusal:
            await committed(host)
        assert refusal.value.code is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        replicate(node)
        while host._loads:
            await asyncio.sleep(0)
        assert await committed(host) == 5

    in_loop(work, tmp_path)


def test_a_load_ends_with_the_leadership_and_begins_anew_with_the_next(tmp_path: Path) -> None:
    async def work(node: Any) -> None:
        assert await commit(GroupHost(node), 5) == ErrorCode.NONE
        lead(node)
        node.partition.replica.high_watermark = 0
        host = GroupHost(node)
        host.partition_led(0)
        reading = asyncio.create_task(committed(host))
        await turns()
        lose(node)
        host.partition_lost(0)
        with pytest.raises(ApiError) as refusal:
            await reading
        assert refusal.value.code is ErrorCode.NOT_COORDINATOR
        lead(node, epoch=3)
        host.partition_led(0)
        replicate(node)
        assert await committed(host) == 5

    in_loop(work, tmp_path)


def test_a_broker_that_does_not_lead_is_no_coordinator(tmp_path: Path) -> None:
    async def work(node: Any) -> None:
        lose(node)
        host = GroupHost(node)
        with pytest.raises(ApiError) as refusal:
            await committed(host)
        assert refusal.value.code is ErrorCode.NOT_COORDINATOR
        assert await host.answer_of_all(lambda s, ticket, _: s.list_groups(ANY, ticket)) == []
        host.load_all()
        assert not host._loads

    in_loop(work, tmp_path)


def test_a_topic_that_cannot_be_made_is_complained_of_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def work(node: Any) -> None:
        node.image.apply(image.TopicDeleted(CONSUMER_OFFSETS))

        async def refuse() -> None:
            raise ApiError(ErrorCode.INVALID_REPLICATION_FACTOR, "3 replicas need 3 brokers")

        node.consumer_offsets = refuse
        host = GroupHost(node)
        for _ in range(3):
            with pytest.raises(ApiError) as refusal:
                await committed(host)
            assert refusal.value.code is ErrorCode.COORDINATOR_NOT_AVAILABLE
        assert caplog.text.count("3 replicas need 3 brokers") == 1

    in_loop(work, tmp_path)


def test_a_topic_that_is_made_anew_does_not_go_on_with_what_the_old_one_held(tmp_path: Path) -> None:
    """Its answers would wait for the followers of a log that is gone, and so for nobody."""

    async def work(node: Any) -> None:
        host = await loaded(node)
        old = asyncio.create_task(commit(host, 7))
        await turns()
        replicate(node)
        assert await old == ErrorCode.NONE
        node.partition.leave()
        node.partition.log.delete(bytes(16))
        log = Log.open(OsDisk(), str(tmp_path / f"{CONSUMER_OFFSETS}-0"), LogOptions(), node.clock)
        node.partition = Partition(CONSUMER_OFFSETS, 0, log, node.clock, leader_epoch=-1, high_watermark=0)
        lead(node)
        host.partition_led(0)
        reading = asyncio.create_task(committed(host))
        while not reading.done():
            replicate(node)
            await asyncio.sleep(0)
        assert reading.result() == -1
        new = asyncio.create_task(commit(host, 8))
        await turns()
        assert not new.done()
        replicate(node)
        assert await new == ErrorCode.NONE

    in_loop(work, tmp_path)
