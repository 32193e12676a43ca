"""A member of a consumer group (classic protocol): joins, shares out the partitions, reads, commits, leaves now
and then and in the end.

The offsets of a partition only go up as long as a member of an older generation cannot commit: so the last acknowledged
commit is the least that may be found afterwards.
"""

import struct
from asyncio import sleep
from typing import Final

from penstock.model.errors import ErrorCode
from penstock.wire.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from penstock.wire.messages.join_group import (
    JoinGroupRequest,
    JoinGroupRequestProtocol,
    JoinGroupResponse,
)
from penstock.wire.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse, MemberIdentity
from penstock.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
)
from penstock.wire.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestTopic,
    OffsetFetchResponse,
)
from penstock.wire.messages.sync_group import (
    SyncGroupRequest,
    SyncGroupRequestAssignment,
    SyncGroupResponse,
)
from simulation.consumer_protocol import assignment, subscription
from simulation.seeds.client import GROUP, Client
from simulation.seeds.consumers import Consumer, take
from simulation.seeds.history import Commits, History, Place
from simulation.seeds.producers import RETRIABLE
from simulation.seeds.wire import Unanswered

SESSION_TIMEOUT_MS: Final = 6_000
REBALANCE_TIMEOUT_MS: Final = 4_000
HEARTBEAT_SECONDS: Final = 1.0
LEAVE_CHANCE: Final = 0.03
"""Of leaving after a round of work, and joining again."""
BEGIN_ANEW: Final = frozenset(
    {
        ErrorCode.ILLEGAL_GENERATION, ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.REBALANCE_IN_PROGRESS,
        ErrorCode.MEMBER_ID_REQUIRED, ErrorCode.INCONSISTENT_GROUP_PROTOCOL,
    }
)  # fmt: skip


class Rebalance(Exception):
    """The member's generation is over."""


class Member:
    def __init__(self, client: Client, history: History, *, group: str, topic: str, partitions: int) -> None:
        self._client = client
        self._history = history
        self._group = group
        self._topic = topic
        self._partitions = partitions
        self._member_id = ""
        self._generation = -1
        self._next_heartbeat = 0.0

    async def run(self, *, until: float) -> None:
        loop = self._client.process.loop
        while loop.time() < until:
            try:
                indexes = await self._join()
                positions = {index: await self._committed(index) for index in indexes}
                while loop.time() < until and self._client.random.random() >= LEAVE_CHANCE:
                    await self._work(positions)
                await self._leave()
            except Rebalance:
                pass
            except Unanswered:
                await self._client.pause()

    # --- membership

    async def _join(self) -> list[int]:
        """The partitions of this member in the new generation."""
        protocol = JoinGroupRequestProtocol(name="range", metadata=subscription(self._topic))
        answer = await self._client.ask_coordinator(
            GROUP,
            self._group,
            JoinGroupRequest(
                group_id=self._group,
                session_timeout_ms=SESSION_TIMEOUT_MS,
                rebalance_timeout_ms=REBALANCE_TIMEOUT_MS,
                member_id=self._member_id,
                protocol_type="consumer",
                protocols=[protocol],
            ),
            JoinGroupResponse,
            5,
            answer_seconds=REBALANCE_TIMEOUT_MS / 1000 + 4,
        )
        if answer.error_code == ErrorCode.MEMBER_ID_REQUIRED:
            self._member_id = answer.member_id
        await self._check(answer.error_code)
        self._member_id, self._generation = answer.member_id, answer.generation_id
        shares = []
        if answer.leader == answer.member_id:
            members = sorted(member.member_id for member in answer.members)
            for number, member in enumerate(members):
                indexes = range(number, self._partitions, len(members))
                text = f"{self._topic}:{','.join(map(str, indexes))}" if indexes else ""
                shares.append(SyncGroupRequestAssignment(member_id=member, assignment=assignment(text)))
        synced = await self._client.ask_coordinator(
            GROUP,
            self._group,
            SyncGroupRequest(
                group_id=self._group,
                generation_id=self._generation,
                member_id=self._member_id,
                assignments=shares,
            ),
            SyncGroupResponse,
            3,
            answer_seconds=REBALANCE_TIMEOUT_MS / 1000 + 4,
        )
        await self._check(synced.error_code)
        self._next_heartbeat = self._client.process.loop.time() + HEARTBEAT_SECONDS
        return assigned(synced.assignment)

    async def _heartbeat(self) -> None:
        loop = self._client.process.loop
        if loop.time() < self._next_heartbeat:
            return
        self._next_heartbeat = loop.time() + HEARTBEAT_SECONDS
        answer = await self._client.ask_coordinator(
            GROUP,
            self._group,
            HeartbeatRequest(group_id=self._group, generation_id=self._generation, member_id=self._member_id),
            HeartbeatResponse,
            3,
        )
        await self._check(answer.error_code)

    async def _leave(self) -> None:
        """The others need not wait for its session to end. Said once, as real members do."""
        request = LeaveGroupRequest(
            group_id=self._group, members=[MemberIdentity(member_id=self._member_id)]
        )  # fmt: skip
        self._member_id = ""
        answer = await self._client.ask_coordinator(GROUP, self._group, request, LeaveGroupResponse, 4)
        if answer.error_code == ErrorCode.NONE:
            self._history.counts["members that left"] += 1
        await self._check(answer.error_code or answer.members[0].error_code)

    async def _check(self, code: int) -> None:
        if code == ErrorCode.NONE:
            return
        if code == ErrorCode.UNKNOWN_MEMBER_ID:
            self._member_id = ""
        if code in RETRIABLE:
            self._client.forget_coordinator(GROUP, self._group)
            await self._client.pause()
        elif code not in BEGIN_ANEW:
            self._history.violated(f"{self._client.name}: the group refused with {ErrorCode(code).name}")
            await self._client.pause()
        raise Rebalance

    # --- reading and committing

    async def _work(self, positions: dict[int, int]) -> None:
        await self._heartbeat()
        if not positions:
            await sleep(HEARTBEAT_SECONDS / 2)
            return
        consumer = Consumer(self._client, self._history, committed=False)
        moved = []
        for index, position in positions.items():
            place = (self._topic, index)
            data = await consumer.fetch(place, position, max_wait_ms=100)
            if data is not None:
                positions[index], records = take(data, position, committed=False)
                for offset, value in records:
                    self._history.was_seen(place, offset, value, committed=False)
                if records:
                    moved.append(index)
        if moved:
            await self._commit({index: positions[index] for index in moved})
        await sleep(0.1 + self._client.random.random() * 0.4)

    async def _commit(self, positions: dict[int, int]) -> None:
        for index, offset in positions.items():
            commits = self._history.commits.setdefault((self._group, self._topic, index), Commits())
            commits.attempted = max(commits.attempted, offset)
        answer = await self._client.ask_coordinator(
            GROUP,
            self._group,
            OffsetCommitRequest(
                group_id=self._group,
                generation_id_or_member_epoch=self._generation,
                member_id=self._member_id,
                topics=[
                    OffsetCommitRequestTopic(
                        name=self._topic,
                        partitions=[
                            OffsetCommitRequestPartition(partition_index=index, committed_offset=offset)
                            for index, offset in positions.items()
                        ],
                    )
                ],
            ),
            OffsetCommitResponse,
            8,
        )
        for told in answer.topics[0].partitions:
            if told.error_code == ErrorCode.NONE:
                commits = self._history.commits[self._group, self._topic, told.partition_index]
                commits.acknowledged = max(commits.acknowledged, positions[told.partition_index])
                self._history.counts["commits"] += 1
        for told in answer.topics[0].partitions:
            await self._check(told.error_code)

    async def _committed(self, index: int) -> int:
        known = self._history.commits.get((self._group, self._topic, index), Commits()).acknowledged
        offset = await committed_offset(self._client, self._group, (self._topic, index))
        if offset < known:
            self._history.violated(
                f"group {self._group}: {self._topic}-{index} was committed up to {known}, but a new "
                f"generation is told {offset}"
            )
        return max(offset, 0)


async def committed_offset(client: Client, group: str, place: Place) -> int:
    """What the group has committed for a partition; -1 for nothing."""
    request = OffsetFetchRequest(
        group_id=group,
        topics=[OffsetFetchRequestTopic(name=place[0], partition_indexes=[place[1]])],
        require_stable=True,
    )
    while True:
        try:
            answer = await client.ask_coordinator(GROUP, group, request, OffsetFetchResponse, 7)
        except Unanswered:
            await client.pause()
            continue
        told = answer.topics[0].partitions[0] if answer.topics else None
        code = answer.error_code or (told.error_code if told is not None else 0)
        if code == ErrorCode.NONE and told is not None:
            return told.committed_offset
        client.forget_coordinator(GROUP, group)
        await client.pause()


def assigned(raw: bytes) -> list[int]:
    """The partitions of the one topic in an assignment."""
    if not raw:
        return []
    (topics,) = struct.unpack_from(">i", raw, 2)
    if not topics:
        return []
    (length,) = struct.unpack_from(">h", raw, 6)
    (count,) = struct.unpack_from(">i", raw, 8 + length)
    return list(struct.unpack_from(f">{count}i", raw, 12 + length))
