"""Members of classic groups as scripts for a `swarm`: they do what a consumer does, and nothing with records."""

import time
from collections.abc import Sequence
from typing import Final

from bench.swarm import Ask, Connection, Pause, Script, ask
from penstock.model.errors import ErrorCode
from penstock.wire.codec import encode
from penstock.wire.messages.consumer_protocol_assignment import ConsumerProtocolAssignment
from penstock.wire.messages.consumer_protocol_assignment import TopicPartition as AssignedPartitions
from penstock.wire.messages.consumer_protocol_subscription import ConsumerProtocolSubscription
from penstock.wire.messages.describe_groups import (
    DescribedGroup,
    DescribeGroupsRequest,
    DescribeGroupsResponse,
)
from penstock.wire.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from penstock.wire.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol, JoinGroupResponse
from penstock.wire.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse, MemberIdentity
from penstock.wire.messages.sync_group import (
    SyncGroupRequest,
    SyncGroupRequestAssignment,
    SyncGroupResponse,
)

TOPIC = "read-by-groups"  # nobody looks whether it exists
PROTOCOL_VERSION: Final = b"\0\3"
SUBSCRIPTION: Final = PROTOCOL_VERSION + encode(ConsumerProtocolSubscription(topics=[TOPIC]), 3)
SESSION_TIMEOUT_MS = 45_000
REBALANCE_TIMEOUT_MS = 300_000
HEARTBEAT_INTERVAL_S = 0.1
JOIN_VERSION, SYNC_VERSION, HEARTBEAT_VERSION, LEAVE_VERSION, DESCRIBE_VERSION = 9, 5, 4, 5, 5


class UnexpectedAnswer(Exception):
    pass


def check(error_code: int, what: str) -> None:
    if error_code != ErrorCode.NONE:
        raise UnexpectedAnswer(f"{what} was answered with {ErrorCode(error_code).name}")


class Group:
    """Seen from its members: it is whole once `wanted` of them have the assignment of one generation."""

    def __init__(self, group_id: str, wanted: int) -> None:
        self.group_id = group_id
        self.wanted = wanted
        self.generation_id = -1
        self.synced_ids: set[str] = set()
        self.whole_at: float | None = None  # time.perf_counter()

    def synced(self, member_id: str, generation_id: int) -> None:
        if generation_id != self.generation_id:
            self.generation_id = generation_id
            self.synced_ids.clear()
        self.synced_ids.add(member_id)
        if len(self.synced_ids) == self.wanted:
            self.whole_at = time.perf_counter()

    def expect(self, wanted: int) -> None:
        """From now on it is whole with so many, in a generation yet to come."""
        self.wanted = wanted
        self.whole_at = None


class Member:
    def __init__(self, connection: Connection, group: Group) -> None:
        self.connection = connection
        self.group = group
        self.member_id = ""
        self.generation_id = -1
        self._join_ask = self._make_join_ask()

    def take_id(self) -> Script:
        """The first half of joining: the broker gives out an id and waits for its bearer to ask again."""
        refused: JoinGroupResponse = yield self._join_ask
        if refused.error_code != ErrorCode.MEMBER_ID_REQUIRED:
            raise UnexpectedAnswer(f"JoinGroup without an id was answered with {refused.error_code}")
        self.member_id = refused.member_id
        self._join_ask = self._make_join_ask()

    def join(self) -> Script:
        """Ends with an assignment, however many generations that takes."""
        if not self.member_id:
            yield from self.take_id()
        while True:
            joined: JoinGroupResponse = yield self._join_ask
            if joined.error_code == ErrorCode.REBALANCE_IN_PROGRESS:
                continue
            check(joined.error_code, "JoinGroup")
            self.generation_id = joined.generation_id
            synced: SyncGroupResponse = yield self._sync_ask(joined)
            if synced.error_code == ErrorCode.REBALANCE_IN_PROGRESS:
                continue
            check(synced.error_code, "SyncGroup")
            if not synced.assignment:
                raise UnexpectedAnswer("SyncGroup was answered without an assignment")
            self.group.synced(self.member_id, self.generation_id)
            return

    def join_and_stay(self) -> Script:
        yield from self.join()
        yield Pause(HEARTBEAT_INTERVAL_S)
        yield from self.stay()

    def stay(self) -> Script:
        """Joins again when told so by a heartbeat, until the group is whole."""
        while self.group.whole_at is None:
            yield from self.beat()
            if self.group.whole_at is None:
                yield Pause(HEARTBEAT_INTERVAL_S)

    def beat(self) -> Script:
        """One heartbeat, and what follows from it."""
        answered: HeartbeatResponse = yield ask(
            HeartbeatRequest(
                group_id=self.group.group_id, generation_id=self.generation_id, member_id=self.member_id
            ),
            HeartbeatResponse,
            HEARTBEAT_VERSION,
        )
        if answered.error_code == ErrorCode.REBALANCE_IN_PROGRESS:
            yield from self.join()
        else:
            check(answered.error_code, "Heartbeat")

    def leave(self) -> Script:
        left: LeaveGroupResponse = yield ask(
            LeaveGroupRequest(
                group_id=self.group.group_id, members=[MemberIdentity(member_id=self.member_id)]
            ),
            LeaveGroupResponse,
            LEAVE_VERSION,
        )
        check(left.error_code, "LeaveGroup")
        check(left.members[0].error_code, "LeaveGroup")
        self.member_id = ""
        self._join_ask = self._make_join_ask()

    def _make_join_ask(self) -> Ask:
        request = JoinGroupRequest(
            group_id=self.group.group_id,
            session_timeout_ms=SESSION_TIMEOUT_MS,
            rebalance_timeout_ms=REBALANCE_TIMEOUT_MS,
            member_id=self.member_id,
            protocol_type="consumer",
            protocols=[JoinGroupRequestProtocol(name="range", metadata=SUBSCRIPTION)],
        )
        return ask(request, JoinGroupResponse, JOIN_VERSION)

    def _sync_ask(self, joined: JoinGroupResponse) -> Ask:
        """A leader, who alone is told of the members, gives each a partition."""
        assignments = [
            SyncGroupRequestAssignment(member_id=member.member_id, assignment=assignment(number))
            for number, member in enumerate(joined.members)
        ]
        request = SyncGroupRequest(
            group_id=self.group.group_id,
            generation_id=joined.generation_id,
            member_id=self.member_id,
            protocol_type="consumer",
            protocol_name="range",
            assignments=assignments,
        )
        return ask(request, SyncGroupResponse, SYNC_VERSION)


_assignments: dict[int, bytes] = {}


def assignment(partition: int) -> bytes:
    made = _assignments.get(partition)
    if made is None:
        assigned = ConsumerProtocolAssignment(
            assigned_partitions=[AssignedPartitions(topic=TOPIC, partitions=[partition])]
        )
        made = _assignments[partition] = PROTOCOL_VERSION + encode(assigned, 3)
    return made


def check_stable(groups: Sequence[Group]) -> Script:
    """Asks the broker whether the groups are what their members believe."""
    request = DescribeGroupsRequest(groups=[group.group_id for group in groups])
    answered: DescribeGroupsResponse = yield ask(request, DescribeGroupsResponse, DESCRIBE_VERSION)
    described: dict[str, DescribedGroup] = {each.group_id: each for each in answered.groups}
    for group in groups:
        found = described[group.group_id]
        if found.group_state != "Stable" or len(found.members) != group.wanted:
            raise UnexpectedAnswer(
                f"{group.group_id} is {found.group_state} with {len(found.members)} of {group.wanted} members"
            )
