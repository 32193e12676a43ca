"""A classic group while it is alive: its states as a table, and who is in it.

    Empty ──join──▶ PreparingRebalance ──all joined, or time is up──▶ CompletingRebalance ──sync──▶ Stable
      ▲                 │    ▲                                              │                         │
      └── all left ─────┘    └─────── join, leave, session expired ─────────┴─────────────────────────┘

All of this is soft: what survives a restart is `records.GroupMetadata`, written when a generation is complete
(the leader has synced) or empty. `Group.from_metadata` and `Group.metadata` go between the two.
"""

from collections.abc import Iterable, Sequence
from enum import StrEnum
from typing import Final

from penstock.coordination.form import Ticket
from penstock.groups.consumer_protocol import subscribed_topics
from penstock.groups.records import GroupMetadata, MemberMetadata
from penstock.model.errors import ApiError, ErrorCode
from penstock.wire.messages.join_group import JoinGroupRequestProtocol


class GroupState(StrEnum):
    EMPTY = "Empty"
    PREPARING_REBALANCE = "PreparingRebalance"
    COMPLETING_REBALANCE = "CompletingRebalance"
    STABLE = "Stable"
    DEAD = "Dead"


TRANSITIONS: Final = {
    GroupState.EMPTY: {GroupState.PREPARING_REBALANCE, GroupState.DEAD},
    GroupState.PREPARING_REBALANCE: {GroupState.EMPTY, GroupState.COMPLETING_REBALANCE, GroupState.DEAD},
    GroupState.COMPLETING_REBALANCE: {GroupState.PREPARING_REBALANCE, GroupState.STABLE, GroupState.DEAD},
    GroupState.STABLE: {GroupState.PREPARING_REBALANCE, GroupState.DEAD},
    GroupState.DEAD: set(),
}

CONSUMER_PROTOCOL_TYPE: Final = "consumer"


class Member:
    """One member: what it said when it joined, what it was assigned, and which of its requests we hold."""

    __slots__ = (
        "assignment",
        "client_host",
        "client_id",
        "group_instance_id",
        "is_new",
        "join_ticket",
        "member_id",
        "protocols",
        "rebalance_timeout_ms",
        "session_timeout_ms",
        "sync_ticket",
    )

    def __init__(
        self, *, member_id: str, group_instance_id: str | None, client_id: str, client_host: str
    ) -> None:
        self.member_id = member_id
        self.group_instance_id = group_instance_id
        self.client_id = client_id
        self.client_host = client_host
        self.rebalance_timeout_ms = 0
        self.session_timeout_ms = 0
        self.protocols: dict[str, bytes] = {}
        self.assignment = b""
        self.is_new = False
        self.join_ticket: Ticket | None = None
        self.sync_ticket: Ticket | None = None

    @property
    def must_show_life(self) -> bool:
        """Whether silence counts: a held request is a sign of life, except a first join (its sender may be
        gone)."""
        return self.is_new or (self.join_ticket is None and self.sync_ticket is None)

    def offers_the_same(self, protocols: Sequence[JoinGroupRequestProtocol]) -> bool:
        return list(self.protocols.items()) == [(protocol.name, protocol.metadata) for protocol in protocols]

    def vote(self, candidates: set[str]) -> str:
        return next(name for name in self.protocols if name in candidates)


class InitialDelay:
    """The wait for more members before the first rebalance of an empty group, lengthened while they keep
    coming."""

    __slots__ = ("delay_ms", "member_added", "remaining_ms")

    def __init__(self, *, delay_ms: int, remaining_ms: int) -> None:
        self.delay_ms = delay_ms
        self.remaining_ms = remaining_ms
        self.member_added = False


class Group:
    __slots__ = (
        "generation_id",
        "group_id",
        "initial_delay",
        "joined_count",
        "leader_id",
        "members",
        "offer_counts",
        "pending_members",
        "protocol_name",
        "protocol_type",
        "state",
        "state_timestamp_ms",
        "static_members",
        "unsynced_members",
    )

    def __init__(self, group_id: str, now_ms: int) -> None:
        self.group_id = group_id
        self.state = GroupState.EMPTY
        self.state_timestamp_ms = now_ms
        self.generation_id = 0
        self.protocol_type: str | None = None
        self.protocol_name: str | None = None
        self.leader_id: str | None = None
        self.members: dict[str, Member] = {}
        # Both are counted along: looking at all members for each that joins was 40 % of a rebalance of 100.
        self.joined_count = 0
        """Members whose JoinGroup is held."""
        self.offer_counts: dict[str, int] = {}
        """Of each protocol, how many members offer it."""
        self.static_members: dict[str, str] = {}
        self.pending_members: set[str] = set()
        """Ids given out with MEMBER_ID_REQUIRED, whose owners have not come back yet."""
        self.unsynced_members: set[str] = set()
        """Members of this generation whose SyncGroup has not come yet."""
        self.initial_delay: InitialDelay | None = None

    @classmethod
    def from_metadata(cls, group_id: str, metadata: GroupMetadata) -> "Group":
        group = cls(group_id, metadata.current_state_timestamp_ms)
        group.generation_id = metadata.generation
        group.protocol_type = metadata.protocol_type or None
        group.protocol_name = metadata.protocol
        for recorded in metadata.members:
            member = Member(
                member_id=recorded.member_id,
                group_instance_id=recorded.group_instance_id,
                client_id=recorded.client_id,
                client_host=recorded.client_host,
            )
            member.rebalance_timeout_ms = recorded.rebalance_timeout_ms
            member.session_timeout_ms = recorded.session_timeout_ms
            member.protocols = {metadata.protocol or "": recorded.subscription}
            member.assignment = recorded.assignment
            group.add(member)
        if group.members:
            group.state = GroupState.STABLE
            group.leader_id = metadata.leader
        return group

    def metadata(self) -> GroupMetadata:
        members = tuple(
            MemberMetadata(
                member.member_id,
                member.group_instance_id,
                member.client_id,
                member.client_host,
                member.rebalance_timeout_ms,
                member.session_timeout_ms,
                member.protocols[self.protocol_name or ""],
                member.assignment,
            )
            for member in self.members.values()
        )
        return GroupMetadata(
            self.protocol_type or "",
            self.generation_id,
            self.protocol_name,
            self.leader_id,
            self.state_timestamp_ms,
            members,
        )

    def move_to(self, state: GroupState, now_ms: int) -> None:
        assert state in TRANSITIONS[self.state], f"group {self.group_id}: {self.state} to {state}"
        self.state = state
        self.state_timestamp_ms = now_ms

    def add(self, member: Member) -> None:
        """A new member, none of whose requests is held yet."""
        self.members[member.member_id] = member
        self.count_offer(member)
        self.pending_members.discard(member.member_id)
        if member.group_instance_id is not None:
            self.static_members[member.group_instance_id] = member.member_id
        if self.leader_id is None:
            self.leader_id = member.member_id

    def remove(self, member_id: str) -> None:
        """Whatever request of the member was held has been answered."""
        member = self.members.pop(member_id, None)
        if member is not None:
            self.discount_offer(member)
        self.pending_members.discard(member_id)
        self.unsynced_members.discard(member_id)
        if member is not None and member.group_instance_id is not None:
            self.static_members.pop(member.group_instance_id, None)
        if self.leader_id == member_id:
            self.leader_id = next(iter(self.members), None)

    def check_member(self, member_id: str, group_instance_id: str | None) -> Member:
        """The member that a request speaks for, or the refusal that Kafka has for it."""
        if group_instance_id is not None:
            current_id = self.static_members.get(group_instance_id)
            if current_id is None:
                raise ApiError(ErrorCode.UNKNOWN_MEMBER_ID)
            if current_id != member_id:
                raise ApiError(ErrorCode.FENCED_INSTANCE_ID)
        member = self.members.get(member_id)
        if member is None:
            raise ApiError(ErrorCode.UNKNOWN_MEMBER_ID)
        return member

    def count_offer(self, member: Member) -> None:
        for name in member.protocols:
            self.offer_counts[name] = self.offer_counts.get(name, 0) + 1

    def discount_offer(self, member: Member) -> None:
        """Before a member goes, or changes its protocols."""
        for name in member.protocols:
            self.offer_counts[name] -= 1
            if not self.offer_counts[name]:
                del self.offer_counts[name]

    def hold_join(self, member: Member, ticket: Ticket) -> None:
        member.join_ticket = ticket
        self.joined_count += 1

    def release_join(self, member: Member) -> Ticket | None:
        """The ticket that was held, to be answered."""
        ticket = member.join_ticket
        if ticket is not None:
            member.join_ticket = None
            self.joined_count -= 1
        return ticket

    @property
    def all_joined(self) -> bool:
        return not self.pending_members and self.joined_count == len(self.members)

    @property
    def rebalance_timeout_ms(self) -> int:
        return max((member.rebalance_timeout_ms for member in self.members.values()), default=0)

    def elect_joined_leader(self) -> bool:
        """Keep the leader if it has joined, else take the first member that has; False if nobody has."""
        leader = self.members.get(self.leader_id or "")
        if leader is None or leader.join_ticket is None:
            leader = next(
                (member for member in self.members.values() if member.join_ticket is not None), None
            )
        if leader is None:
            return False
        self.leader_id = leader.member_id
        return True

    def common_protocols(self) -> set[str]:
        """The protocols that every member offers."""
        everybody = len(self.members)
        return {name for name, count in self.offer_counts.items() if count == everybody}

    def supports(self, protocol_type: str, names: Iterable[str]) -> bool:
        if self.state is GroupState.EMPTY:
            return bool(protocol_type) and any(True for _ in names)
        if protocol_type != self.protocol_type:
            return False
        # All have left before the first rebalance was through: whoever comes decides.
        everybody = len(self.members)
        return not everybody or any(self.offer_counts.get(name) == everybody for name in names)

    def select_protocol(self) -> str:
        """The protocol that most members like best among those that all offer; the oldest member's wish
        decides ties."""
        candidates = self.common_protocols()
        votes: dict[str, int] = {}
        for member in self.members.values():
            choice = member.vote(candidates)
            votes[choice] = votes.get(choice, 0) + 1
        return max(votes, key=votes.__getitem__)

    @property
    def is_of_consumers(self) -> bool:
        return self.protocol_type == CONSUMER_PROTOCOL_TYPE

    def is_subscribed_to(self, topic: str) -> bool:
        """Whether a member reads the topic; in doubt (a subscription that we cannot read), yes."""
        if not self.is_of_consumers or not self.members:
            return False
        topics = self.subscribed_topics()
        return topics is None or topic in topics

    def subscribed_topics(self) -> set[str] | None:
        """What the members read, or None if that cannot be told."""
        if not self.is_of_consumers:
            return None
        found: set[str] = set()
        for member in self.members.values():
            topics = subscribed_topics(member.protocols.get(self.protocol_name or "", b""))
            if topics is None:
                return None
            found |= topics
        return found
