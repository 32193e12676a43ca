"""What holds for a group shard whatever its clients do, in any order and at any time."""

from typing import Any

from hypothesis import example, given, settings
from hypothesis import strategies as st

from penstock.coordination.form import RequestContext, Ticket
from penstock.groups.options import GroupOptions
from penstock.groups.records import GroupKey, read_group, read_key
from penstock.groups.shard import GroupShard
from penstock.groups.state import GroupState
from penstock.model.errors import ErrorCode
from penstock.wire.messages.heartbeat import HeartbeatRequest
from penstock.wire.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from penstock.wire.messages.leave_group import LeaveGroupRequest, MemberIdentity
from penstock.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from penstock.wire.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from penstock.wire.messages.offset_fetch import OffsetFetchRequestGroup, OffsetFetchRequestTopics
from penstock.wire.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment
from penstock.wire.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from tests.unit.groups.harness import Harness

OPTIONS = GroupOptions(
    initial_rebalance_delay_ms=1_000,
    max_size=3,
    offsets_retention_ms=200_000,
    offsets_retention_check_interval_ms=50_000,
)
CONTEXT = RequestContext(9, "client", "/127.0.0.1")

who = st.integers(0, 3)
producer = st.sampled_from([7, 8])
steps = st.one_of(
    st.tuples(st.just("join"), who, st.sampled_from([3, 9]), st.sampled_from([("r",), ("r", "s"), ("s",)])),
    st.tuples(st.just("join"), who, st.just(9), st.just(("r",))),
    st.tuples(st.just("sync"), who),
    st.tuples(st.just("sync"), who),
    st.tuples(st.just("heartbeat"), who),
    st.tuples(st.just("leave"), who),
    st.tuples(st.just("forget"), who),
    st.tuples(st.just("gather"), st.sets(who, min_size=1)),
    st.tuples(st.just("gather"), st.sets(who, min_size=1)),
    st.tuples(st.just("come_back"), who),
    st.tuples(st.just("commit"), who, st.integers(0, 3), st.integers(0, 9)),
    st.tuples(st.just("txn_commit"), who, producer, st.integers(0, 2), st.integers(0, 9)),
    st.tuples(st.just("txn_commit"), st.just(None), producer, st.integers(0, 2), st.integers(0, 9)),
    st.tuples(st.just("end"), producer, st.booleans()),
    st.tuples(st.just("delete_offset"), st.integers(0, 2)),
    st.tuples(st.just("delete_group")),
    st.tuples(st.just("wait"), st.sampled_from([0, 500, 1_000, 6_000, 20_000, 120_000])),
    st.tuples(st.just("restart")),
)


class World:
    """Four clients of one group (two of them static members), who use what they were last told."""

    def __init__(self) -> None:
        self.harness = Harness(OPTIONS)
        self.known: list[tuple[str, int]] = [("", -1)] * 4
        self.joins: dict[Ticket, int] = {}
        self.commits: dict[Ticket, tuple[int, int, int | None]] = {}
        self.deletions: dict[Ticket, int | None] = {}
        self.asked = 0
        self.acknowledged: dict[int, tuple[int, int]] = {}
        """What clients may rely on, kept by rules as plain as can be: partition → (offset, when it was written)."""
        self.pending: dict[int, dict[int, tuple[int, int]]] = {}
        """… and what it may become: producer → partition → the same."""
        self.written = 0

    def step(self, name: str, *values: Any) -> None:
        getattr(self, name)(*values)
        self._hear()

    def _hear(self) -> None:
        replies: dict[Ticket, Any] = self.harness.replies
        for ticket in [ticket for ticket in self.joins if ticket in replies]:
            client, response = self.joins.pop(ticket), replies[ticket]
            if response.error_code in (ErrorCode.NONE, ErrorCode.MEMBER_ID_REQUIRED):
                self.known[client] = (response.member_id, response.generation_id)
        for ticket, (partition, offset, producer_id) in self.commits.items():
            if replies[ticket].topics[0].partitions[0].error_code == ErrorCode.NONE:
                self.written += 1
                kept = self.acknowledged if producer_id is None else self.pending.setdefault(producer_id, {})
                kept[partition] = (offset, self.written)
        self.commits.clear()
        for ticket, gone in self.deletions.items():
            response = replies[ticket]
            if gone is None and response.error_code == ErrorCode.NONE:
                self._forget(None)
            elif gone is not None and response.topics and not response.topics[0].partitions[0].error_code:
                self._forget(gone)
        self.deletions.clear()

    def _forget(self, partition: int | None) -> None:
        for kept in (self.acknowledged, *self.pending.values()):
            for place in list(kept) if partition is None else [partition]:
                kept.pop(place, None)

    def _ask(self, api: str, request: object, version: int = 9) -> Ticket:
        self.asked += 1
        return self.harness.ask(api, request, version=version)

    def _instance(self, client: int) -> str | None:
        return f"i{client}" if client >= 2 else None

    def join(self, client: int, version: int, protocols: tuple[str, ...]) -> None:
        request = JoinGroupRequest(
            group_id="g",
            member_id=self.known[client][0],
            group_instance_id=self._instance(client),
            session_timeout_ms=6_000 + 1_000 * client,
            rebalance_timeout_ms=5_000,
            protocol_type="consumer",
            protocols=[JoinGroupRequestProtocol(name=name, metadata=name.encode()) for name in protocols],
        )
        self.joins[self._ask("join_group", request, version)] = client

    def sync(self, client: int) -> None:
        member_id, generation = self.known[client]
        assignments = [
            SyncGroupRequestAssignment(member_id=other, assignment=b"%d" % index)
            for index, (other, _) in enumerate(self.known)
        ]
        request = SyncGroupRequest(
            group_id="g", member_id=member_id, generation_id=generation, assignments=assignments
        )
        self._ask("sync_group", request)

    def heartbeat(self, client: int) -> None:
        member_id, generation = self.known[client]
        self._ask("heartbeat", HeartbeatRequest(group_id="g", member_id=member_id, generation_id=generation))

    def leave(self, client: int) -> None:
        leaving = MemberIdentity(member_id=self.known[client][0])
        self._ask("leave_group", LeaveGroupRequest(group_id="g", members=[leaving]))

    def forget(self, client: int) -> None:
        self.known[client] = ("", -1)

    def gather(self, clients: set[int]) -> None:
        """What clients do when all goes well, so that a script often gets as far as a stable group."""
        for client in sorted(clients) * 2:
            self.step("join", client, 9, ("r",))
        self.step("wait", 5_000)
        for client in sorted(clients):
            self.step("sync", client)

    def come_back(self, client: int) -> None:
        self.forget(client)
        self.join(client, 9, ("r",))

    def commit(self, client: int, partition: int, offset: int) -> None:
        member_id, generation = self.known[client]
        topic = OffsetCommitRequestTopic(
            name="orders",
            partitions=[OffsetCommitRequestPartition(partition_index=partition, committed_offset=offset)],
        )
        request = OffsetCommitRequest(
            group_id="g", member_id=member_id, generation_id_or_member_epoch=generation, topics=[topic]
        )
        self.commits[self._ask("commit_offsets", request)] = (partition, offset, None)

    def txn_commit(self, client: int | None, producer_id: int, partition: int, offset: int) -> None:
        member_id, generation = ("", -1) if client is None else self.known[client]
        one = TxnOffsetCommitRequestPartition(partition_index=partition, committed_offset=offset)
        request = TxnOffsetCommitRequest(
            group_id="g",
            member_id=member_id,
            generation_id=generation,
            producer_id=producer_id,
            topics=[TxnOffsetCommitRequestTopic(name="orders", partitions=[one])],
        )
        self.commits[self._ask("txn_commit_offsets", request, 5)] = (partition, offset, producer_id)

    def end(self, producer_id: int, committed: bool) -> None:
        self.harness.end_transaction(producer_id, committed=committed)
        for partition, written in self.pending.pop(producer_id, {}).items():
            if committed and written[1] > self.acknowledged.get(partition, (0, 0))[1]:
                self.acknowledged[partition] = written

    def delete_offset(self, partition: int) -> None:
        topic = OffsetDeleteRequestTopic(
            name="orders", partitions=[OffsetDeleteRequestPartition(partition_index=partition)]
        )
        ticket = self.harness.new_ticket()
        self.asked += 1
        request = OffsetDeleteRequest(group_id="g", topics=[topic])
        self.harness.do(self.harness.shard.delete_offsets(request, ticket))
        self.deletions[ticket] = partition

    def delete_group(self) -> None:
        ticket = self.harness.new_ticket()
        self.asked += 1
        self.harness.do(self.harness.shard.delete_group("g", ticket))
        self.deletions[ticket] = None

    def wait(self, step_ms: int) -> None:
        self.harness.advance(step_ms)
        # Which offsets may expire is for the transcripts to say; here it is taken as it comes.
        left = committed(self.harness.shard)
        self.acknowledged = {place: it for place, it in self.acknowledged.items() if place in left}

    def restart(self) -> None:
        self.harness.restart()


def committed(shard: GroupShard) -> dict[int, int]:
    request = OffsetFetchRequestGroup(group_id="g", topics=None)
    response: Any = shard.fetch_offsets(request, CONTEXT, Ticket(0)).replies[0][1]
    return {p.partition_index: p.committed_offset for topic in response.topics for p in topic.partitions}


def unstable(shard: GroupShard) -> set[int]:
    topic = OffsetFetchRequestTopics(name="orders", partition_indexes=[0, 1, 2])
    request = OffsetFetchRequestGroup(group_id="g", topics=[topic])
    response: Any = shard.fetch_offsets(request, CONTEXT, Ticket(0), require_stable=True).replies[0][1]
    return {p.partition_index for p in response.topics[0].partitions if p.error_code}


def described(shard: GroupShard) -> tuple[Any, ...]:
    group: Any = shard.describe_group("g", CONTEXT, Ticket(0)).replies[0][1]
    members = [
        (m.member_id, m.group_instance_id, m.member_metadata, m.member_assignment) for m in group.members
    ]
    return (group.group_state, group.protocol_type, group.protocol_data, members)


@settings(max_examples=200)
@example([("commit", 0, 0, 0), ("join", 0, 9, ("r",)), ("delete_offset", 0)])
@given(st.lists(steps, max_size=40))
def test_a_shard_read_from_the_log_equals_the_one_that_wrote_it(script: list[tuple[Any, ...]]) -> None:
    world = World()
    for step in script:
        world.step(*step)
        check_a_restart(world)


def check_a_restart(world: World) -> None:
    harness = world.harness
    again = harness.reloaded()
    assert again.hard_state() == harness.shard.hard_state()
    again.on_loaded(harness.now_ms)
    state, _, _, members = described(harness.shard)
    # Static members who stay away keep their place, so that a group may have one member too many; a group
    # that is too large when it is loaded is rebalanced at once.
    settled = state in (GroupState.STABLE, GroupState.EMPTY, GroupState.DEAD)
    if settled and len(members) <= OPTIONS.max_size:
        assert described(again) == described(harness.shard)
    expected = {partition: offset for partition, (offset, _) in world.acknowledged.items()}
    assert committed(again) == committed(harness.shard) == expected
    assert unstable(again) == {place for places in world.pending.values() for place in places}


@settings(max_examples=80)
@given(st.lists(steps, max_size=40))
def test_every_request_is_answered_once_and_no_later_than_the_end(script: list[tuple[Any, ...]]) -> None:
    world = World()
    for step in script:
        world.step(*step)
    harness = world.harness
    harness.do(harness.shard.on_unload())
    assert len(harness.replies) == world.asked


@settings(max_examples=80)
@given(st.lists(steps, max_size=40))
def test_when_all_fall_silent_nothing_is_left_but_what_is_pending(script: list[tuple[Any, ...]]) -> None:
    world = World()
    for step in script:
        world.step(*step)
    harness = world.harness
    harness.advance(10 * OPTIONS.new_member_join_timeout_ms)
    assert described(harness.shard)[0] in (GroupState.EMPTY, GroupState.DEAD)
    assert len(harness.alarms) == 1, "only the one that looks for expired offsets"
    assert len(harness.replies) == world.asked
    for producer_id in list(world.pending):
        world.end(producer_id, False)
    harness.advance(OPTIONS.offsets_retention_ms)
    assert harness.shard.hard_state() == harness.new_shard().hard_state()


@settings(max_examples=80)
@given(st.lists(steps, max_size=40))
def test_generations_only_go_up_as_long_as_the_group_is_known(script: list[tuple[Any, ...]]) -> None:
    world = World()
    for step in script:
        world.step(*step)
    last = -1
    for entry in world.harness.log:
        name = read_key(entry[0]) if len(entry) == 3 else None
        if isinstance(name, GroupKey):
            generation = read_group(entry[1]).generation if entry[1] is not None else -1
            assert generation >= last or generation == -1
            last = generation
