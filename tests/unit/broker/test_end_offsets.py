"""Where partitions end on other brokers, as the metrics page asks for it."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from penstock.broker.metrics import end_offsets
from penstock.broker.metrics.end_offsets import EndOffsets
from penstock.model.errors import ApiError, ErrorCode
from penstock.model.ids import TopicPartition
from penstock.wire.messages.list_offsets import (
    ListOffsetsPartitionResponse,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)


class Peers:
    """Leaders that answer with offset 7; leader 2 takes `slow_s` for each answer."""

    def __init__(self, slow_s: float) -> None:
        self._slow_s = slow_s
        self.asked: list[int] = []

    async def ask(self, leader: int, request: Any, response: Any, *, version: int, timeout_s: float) -> Any:
        self.asked.append(leader)
        if leader == 2:
            async with asyncio.timeout(timeout_s):
                await asyncio.sleep(self._slow_s)
        return ListOffsetsResponse(
            topics=[
                ListOffsetsTopicResponse(
                    name=topic.name,
                    partitions=[
                        ListOffsetsPartitionResponse(partition_index=each.partition_index, offset=7)
                        for each in topic.partitions
                    ],
                )
                for topic in request.topics
            ]
        )


def node_with(peers: Peers) -> Any:
    def elsewhere(name: str, index: int) -> Any:
        raise ApiError(ErrorCode.NOT_LEADER_OR_FOLLOWER)

    return SimpleNamespace(
        loop=asyncio.get_running_loop(), is_clustered=True, broker_id=1, peers=peers,
        clock=SimpleNamespace(now_ms=lambda: 1_000_000), partitions=SimpleNamespace(get=elsewhere),
        image=SimpleNamespace(leader_and_offline=lambda name, index: (2 if name == "slow" else 3, ())),
    )  # fmt: skip


def test_a_slow_leader_with_many_partitions_holds_up_a_page_for_one_timeout_only(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(end_offsets, "PARTITIONS_AT_ONCE", 1)
    monkeypatch.setattr(end_offsets, "LOOK_TIMEOUT_SECONDS", 0.1)

    async def run() -> tuple[set[str], list[int]]:
        peers = Peers(slow_s=0.03)
        ends = EndOffsets(node_with(peers))
        found = await ends.of(
            {TopicPartition(name, index) for name in ("slow", "quick") for index in range(200)}
        )
        ends.stop()
        return {f"{one.topic}" for one in found if one.topic == "quick"}, peers.asked

    quick, asked = asyncio.run(run())
    assert quick == {"quick"}
    assert asked.count(3) == 200
    assert asked.count(2) < 20


def test_what_nobody_reads_any_more_is_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(end_offsets, "PARTITIONS_AT_ONCE", 10)

    async def run() -> list[set[TopicPartition]]:
        ends = EndOffsets(node_with(Peers(slow_s=0)))
        every = {TopicPartition("quick", index) for index in range(100)}
        some = {TopicPartition("quick", index) for index in range(5)}
        found = [set(await ends.of(wanted)) for wanted in (every, some)]
        ends.stop()
        return found

    assert [len(each) for each in asyncio.run(run())] == [100, 5]
