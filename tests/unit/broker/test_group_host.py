"""The host of the group coordinator over a real log: what it loads, what it answers, what it does when the
disk fails."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from penstock.broker.coordinators import host as coordinator_host
from penstock.broker.coordinators import shard_log
from penstock.broker.coordinators.groups import GroupHost
from penstock.broker.partitions.partition import Partition
from penstock.coordination.form import Alarm
from penstock.metadata import image
from penstock.model.errors import ApiError, ErrorCode
from penstock.model.internal_topics import CONSUMER_OFFSETS
from penstock.records.build import build_batch
from penstock.wire.messages.offset_fetch import OffsetFetchRequestGroup
from tests.unit.broker.group_harness import CONTEXT, FakeNode, commit, committed, in_loop, join, until_parked


def test_an_acknowledged_offset_is_there_for_the_host_that_reads_the_log_next(tmp_path: Path) -> None:
    async def work(node: Any) -> None:
        assert await commit(GroupHost(node), 42) == ErrorCode.NONE
        assert await committed(GroupHost(node)) == 42

    in_loop(work, tmp_path)


def test_others_have_their_turn_while_a_long_log_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shard_log, "LOAD_CHUNK_BYTES", 1)

    async def work(node: Any) -> None:
        host = GroupHost(node)
        for offset in range(50):
            await commit(host, offset)
        loading = asyncio.create_task(committed(GroupHost(node)))
        turns = 0
        while not loading.done():
            await asyncio.sleep(0)
            turns += 1
        assert loading.result() == 49
        assert turns > 50

    in_loop(work, tmp_path)


def test_a_mistake_with_one_alarm_is_not_the_end_of_all(tmp_path: Path) -> None:
    async def work(node: Any) -> None:
        host = GroupHost(node)
        mistakes: list[object] = []
        node.loop.set_exception_handler(lambda _, context: mistakes.append(context["exception"]))
        joining = asyncio.create_task(join(host))
        await until_parked(host, 1)
        (shard,) = host._shards.values()
        real = shard.on_alarm

        def fail_once(key: Any, now_ms: int) -> Any:
            if not mistakes:
                host._alarms.set(0, [Alarm(key, now_ms + 1)])
                mistakes.append(key)
                raise RuntimeError("a bug")
            return real(key, now_ms)

        host._shards[0] = type(
            "Shard", (), {"on_alarm": staticmethod(fail_once), "on_unload": shard.on_unload}
        )()
        assert (await joining).error_code == ErrorCode.NONE
        assert len(mistakes) == 2
        host.close()

    in_loop(work, tmp_path)


def test_a_parked_join_is_answered_when_its_alarm_goes_off(tmp_path: Path) -> None:
    async def work(node: Any) -> None:
        host = GroupHost(node)
        response = await join(host)
        assert (response.error_code, response.generation_id) == (ErrorCode.NONE, 1)
        host.close()

    in_loop(work, tmp_path)


def test_a_request_to_a_loaded_shard_is_answered_without_waiting(tmp_path: Path) -> None:
    async def work(node: Any) -> None:
        host = GroupHost(node)
        await committed(host)
        request = OffsetFetchRequestGroup(group_id="simple", topics=None)
        answer = host.ask("simple", lambda s, ticket, _: s.fetch_offsets(request, CONTEXT, ticket))
        assert answer.group_id == "simple"

    in_loop(work, tmp_path)


def test_a_failed_append_is_never_acknowledged_and_leaves_what_the_log_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def work(node: Any) -> None:
        host = GroupHost(node)
        assert await commit(host, 1) == ErrorCode.NONE
        parked = asyncio.create_task(join(host))
        await until_parked(host, 1)

        def fail(*_: object) -> None:
            raise OSError("no space left on device")

        with monkeypatch.context() as broken:
            broken.setattr(Partition, "append_own", fail)
            with pytest.raises(ApiError) as refusal:
                await commit(host, 2)
        assert refusal.value.code == ErrorCode.NOT_COORDINATOR
        assert (await parked).error_code == ErrorCode.NOT_COORDINATOR
        assert node.faults == [f"{CONSUMER_OFFSETS}-0"]
        assert await committed(host) == 1
        assert await commit(host, 3) == ErrorCode.NONE

    in_loop(work, tmp_path)


def test_a_host_that_closes_answers_all_who_are_parked_and_takes_no_more(tmp_path: Path) -> None:
    async def work(node: Any) -> None:
        host = GroupHost(node)
        parked = asyncio.create_task(join(host))
        await until_parked(host, 1)
        host.close()
        assert (await parked).error_code == ErrorCode.NOT_COORDINATOR
        with pytest.raises(ApiError) as refusal:
            await committed(host)
        assert refusal.value.code == ErrorCode.COORDINATOR_NOT_AVAILABLE

    in_loop(work, tmp_path)


def test_a_slow_load_is_told_to_the_client_and_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def work(node: Any) -> None:
        host = GroupHost(node)
        assert await commit(host, 7) == ErrorCode.NONE
        host, slowly = GroupHost(node), asyncio.Event()
        replay_log = host._replay_log

        async def replay_slowly(*arguments: Any) -> None:
            await slowly.wait()
            await replay_log(*arguments)

        monkeypatch.setattr(coordinator_host, "LOAD_WAIT_SECONDS", 0.01)
        monkeypatch.setattr(host, "_replay_log", replay_slowly)
        with pytest.raises(ApiError) as refusal:
            await committed(host)
        assert refusal.value.code == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        assert not any(host._queued.values())  # nobody is kept who was told to come back
        slowly.set()
        while host._loads:
            await asyncio.sleep(0)
        assert await committed(host) == 7

    in_loop(work, tmp_path)


def test_a_log_that_cannot_be_read_is_tried_once_in_a_while(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """The length of its last batch passes the end of the file."""

    async def work(node: Any) -> None:
        host = GroupHost(node)
        assert await commit(host, 7) == ErrorCode.NONE
        path = node.partition.log.segments[0].path(".log")
        with open(path, "r+b") as file:
            file.seek(8)
            file.write((10_000).to_bytes(4, "big"))
        host = GroupHost(node)
        for _ in range(5):
            with pytest.raises(ApiError) as refusal:
                await committed(host)
            assert refusal.value.code == ErrorCode.COORDINATOR_NOT_AVAILABLE
        assert len([each for each in caplog.messages if "cannot load" in each]) == 1

    in_loop(work, tmp_path)


def test_only_so_many_wait_for_a_load(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def work(node: Any) -> None:
        host = GroupHost(node)
        assert await commit(host, 7) == ErrorCode.NONE
        host = GroupHost(node)
        monkeypatch.setattr(coordinator_host, "MAX_QUEUED", 2)
        answers = await asyncio.gather(*(committed(host) for _ in range(4)), return_exceptions=True)
        assert answers[:2] == [7, 7]
        codes = [answer.code for answer in answers[2:] if isinstance(answer, ApiError)]
        assert codes == [ErrorCode.COORDINATOR_LOAD_IN_PROGRESS] * 2

    in_loop(work, tmp_path)


def test_records_that_make_no_sense_are_left_out(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async def work(node: Any) -> None:
        assert await commit(GroupHost(node), 9) == ErrorCode.NONE
        nonsense = [(b"\0\1\0", b"", (), 1), (None, b"x", (), 1), (b"\0\x63", b"of another kind", (), 1)]
        node.partition.append_own(build_batch(nonsense))
        assert await committed(GroupHost(node)) == 9
        assert "skipped 2 records that are not valid" in caplog.text

    in_loop(work, tmp_path)


def test_the_offsets_of_a_deleted_topic_are_forgotten(tmp_path: Path) -> None:
    async def work(node: Any) -> None:
        host = GroupHost(node)
        assert await commit(host, 9) == ErrorCode.NONE
        node.image.apply(image.TopicDeleted("orders"))
        host.topic_deleted("orders")
        assert await committed(host) == -1
        assert await committed(GroupHost(node)) == -1

    in_loop(work, tmp_path)


def test_a_topic_made_again_under_its_name_has_no_offsets_yet(tmp_path: Path) -> None:
    async def work(node: Any) -> None:
        assert await commit(GroupHost(node), 9) == ErrorCode.NONE
        placed = image.PartitionRegistration(replicas=(1,), isr=(1,), leader=1)
        node.image.apply(image.TopicDeleted("orders"))
        node.image.apply(image.TopicCreated("orders", bytes(15) + b"\x09", (placed,)))
        assert await committed(GroupHost(node)) == -1

    in_loop(work, tmp_path)


def test_requests_that_wait_for_the_load_keep_their_order(tmp_path: Path) -> None:
    async def work(node: FakeNode) -> None:
        host = GroupHost(node)
        commits = [asyncio.create_task(commit(host, offset)) for offset in range(5)]
        await asyncio.sleep(0)  # all five have asked; none can be answered before the log is read
        assert await asyncio.gather(*commits) == [ErrorCode.NONE] * 5
        assert await committed(host) == 4

    in_loop(work, tmp_path)
