"""What holds for consumer groups whatever members of either protocol do, in any order and at any time."""

from collections import Counter
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.coordination.form import Ticket
from penstock.groups.options import GroupOptions
from penstock.model.errors import ErrorCode
from penstock.wire.messages.heartbeat import HeartbeatRequest
from penstock.wire.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from penstock.wire.messages.leave_group import LeaveGroupRequest, MemberIdentity
from penstock.wire.messages.sync_group import SyncGroupRequest
from simulation.consumer_protocol import subscription
from tests.unit.groups.consumer.crowd import Client
from tests.unit.groups.harness import Harness

OPTIONS = GroupOptions(
    initial_rebalance_delay_ms=0, consumer_session_timeout_ms=20_000, consumer_assignment_interval_ms=500
)
SUBSCRIPTIONS: list[tuple[tuple[str, ...] | None, str | None]] = [
    (("orders",), None),
    (("orders", "payments"), None),
    (("payments", "returns"), None),
    ((), "or.*"),
    (("payments",), ".*s"),
    ((), ""),
]

who = st.integers(0, 3)
old = st.integers(0, 1)
steps = st.one_of(
    st.tuples(st.just("heartbeat"), who),
    st.tuples(st.just("heartbeat"), who),
    st.tuples(st.just("heartbeat"), who),
    st.tuples(st.just("all_heartbeat")),
    st.tuples(st.just("forget"), who),
    st.tuples(st.just("leave"), who),
    st.tuples(st.just("leave_for_a_while"), who),
    st.tuples(st.just("lose_answer"), who),
    st.tuples(st.just("keep_quiet_about_partitions"), who),
    st.tuples(st.just("subscribe"), who, st.sampled_from(SUBSCRIPTIONS)),
    st.tuples(st.just("set_topic"), st.sampled_from(["orders", "payments", "returns"]), st.integers(0, 5)),
    st.tuples(st.just("wait"), st.sampled_from([0, 600, 5_000, 11_000, 30_000])),
    st.tuples(st.just("restart")),
    st.tuples(st.just("classic_join"), old),
    st.tuples(st.just("classic_join"), old),
    st.tuples(st.just("classic_sync"), old),
    st.tuples(st.just("classic_heartbeat"), old),
    st.tuples(st.just("classic_leave"), old),
)


class World:
    """Four clients of the newer protocol (the last of them static) and two of the classic one, in one group."""

    def __init__(self) -> None:
        self.harness = Harness(OPTIONS)
        self.clients = [Client(self.harness, f"m{index}") for index in range(4)]
        self.clients[3].instance_id = "i3"
        self.classic: list[tuple[str, int]] = [("", -1)] * 2
        self.joins: dict[Ticket, int] = {}

    def step(self, name: str, *values: Any) -> None:
        getattr(self, name)(*values)
        self._hear()
        self.check()

    def check(self) -> None:
        """After every step: what clients own, and what the coordinator thinks they own, is nobody else's."""
        group = self.harness.shard._consumers.get("g")
        reloaded = self.harness.reloaded()
        assert reloaded.hard_state() == self.harness.shard.hard_state()
        if group is None:
            return
        assigned = Counter(
            (topic_id, index)
            for member in group.members.values()
            for partitions in (member.assigned, member.pending_revocation)
            for topic_id, epochs in partitions.items()
            for index in epochs
        )
        assert all(count == 1 for count in assigned.values()), assigned
        for member_id, member in group.members.items():
            assert member.member_epoch <= group.assignment_epoch <= group.group_epoch
            assert all(group.owners[t, p] == member_id for t, ps in member.assigned.items() for p in ps)

    def _hear(self) -> None:
        for ticket in [ticket for ticket in self.joins if ticket in self.harness.replies]:
            response: Any = self.harness.replies[ticket]
            index = self.joins.pop(ticket)
            if response.error_code in (ErrorCode.NONE, ErrorCode.MEMBER_ID_REQUIRED):
                self.classic[index] = (response.member_id, response.generation_id)
            elif response.error_code == ErrorCode.UNKNOWN_MEMBER_ID:
                self.classic[index] = ("", -1)

    def heartbeat(self, index: int) -> None:
        self.clients[index].heartbeat()

    def all_heartbeat(self) -> None:
        for client in self.clients:
            client.heartbeat()

    def forget(self, index: int) -> None:
        """A client is killed, and started again under another id."""
        self.clients[index].forget()
        self.clients[index].member_id += "x"

    def leave(self, index: int) -> None:
        self.clients[index].leave()

    def leave_for_a_while(self, index: int) -> None:
        if self.clients[index].instance_id is not None:
            self.clients[index].leave(-2)

    def lose_answer(self, index: int) -> None:
        client = self.clients[index]
        epoch, owned = client.epoch, client.owned
        client.heartbeat()
        if client.epoch > epoch > 0:
            client.epoch, client.owned = epoch, owned

    def keep_quiet_about_partitions(self, index: int) -> None:
        client = self.clients[index]
        if client.epoch > 0:
            client.send(member_epoch=client.epoch)

    def subscribe(self, index: int, wanted: tuple[tuple[str, ...] | None, str | None]) -> None:
        self.clients[index].subscribe(*wanted)

    def set_topic(self, name: str, count: int) -> None:
        known = self.harness.topics.partitions
        if count == 0 or count < known.get(name, 0):
            known.pop(name, None)
            self.harness.do(self.harness.shard.on_topic_deleted(name))
        else:
            known[name] = count
        self.harness.do(self.harness.shard.on_topics_changed(self.harness.now_ms))

    def wait(self, step_ms: int) -> None:
        self.harness.advance(step_ms)

    def restart(self) -> None:
        self.harness.restart()

    def classic_join(self, index: int) -> None:
        request = JoinGroupRequest(
            group_id="g",
            member_id=self.classic[index][0],
            session_timeout_ms=10_000,
            rebalance_timeout_ms=8_000,
            protocol_type="consumer",
            protocols=[JoinGroupRequestProtocol(name="range", metadata=subscription("orders"))],
        )
        self.joins[self.harness.ask("join_group", request, version=9)] = index

    def classic_sync(self, index: int) -> None:
        member_id, generation_id = self.classic[index]
        request = SyncGroupRequest(group_id="g", member_id=member_id, generation_id=generation_id)
        self.harness.ask("sync_group", request, version=5)

    def classic_heartbeat(self, index: int) -> None:
        member_id, generation_id = self.classic[index]
        request = HeartbeatRequest(group_id="g", member_id=member_id, generation_id=generation_id)
        self.harness.ask("heartbeat", request, version=4)

    def classic_leave(self, index: int) -> None:
        request = LeaveGroupRequest(group_id="g", members=[MemberIdentity(member_id=self.classic[index][0])])
        self.harness.ask("leave_group", request, version=5)


@settings(max_examples=120)
@given(st.lists(steps, max_size=40))
def test_a_partition_has_one_owner_and_the_log_says_all(script: list[tuple[Any, ...]]) -> None:
    world = World()
    for step in script:
        world.step(*step)


@settings(max_examples=80)
@given(st.lists(steps, max_size=30))
def test_when_all_heartbeat_they_own_every_partition_once(script: list[tuple[Any, ...]]) -> None:
    world = World()
    for step in script:
        world.step(*step)
    world.wait(100_000)  # who is not heard of goes; a classic group, if it is one, empties
    world.joins.clear()
    for _ in range(20):
        world.wait(1_000)
        world.all_heartbeat()
    owned = Counter(place for client in world.clients for place in client.places)
    assert all(count == 1 for count in owned.values()), owned
    assert set(owned) == wanted_places(world)
    for client in world.clients:
        assert {name for name, _ in client.places} <= topics_of(client, world)


def topics_of(client: Client, world: World) -> set[str]:
    known = world.harness.topics.partitions
    topics = set(client.topics or ()) & set(known)
    if client.regex == "or.*":
        topics |= {name for name in known if name.startswith("or")}
    elif client.regex == ".*s":
        topics |= {name for name in known if name.endswith("s")}
    return topics


def wanted_places(world: World) -> set[tuple[str, int]]:
    known = world.harness.topics.partitions
    wanted: set[str] = set().union(*(topics_of(client, world) for client in world.clients))
    return {(name, index) for name in wanted for index in range(known[name])}


@settings(max_examples=50)
@given(st.lists(steps, max_size=30))
def test_when_all_fall_silent_the_group_empties_and_its_alarms_go(script: list[tuple[Any, ...]]) -> None:
    world = World()
    for step in script:
        world.step(*step)
    world.wait(10 * OPTIONS.new_member_join_timeout_ms)
    group = world.harness.shard._consumers.get("g")
    assert group is None or not group.members
    assert not world.harness.shard._consumers._rejoining
