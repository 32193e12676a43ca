"""A consumer group and its members, as the log has them. All of it is hard: changed by replay, or on a copy (`draft.py`).

A member's states, and what moves it on (always its own heartbeat):

    STABLE ──target epoch is newer, and takes partitions away──▶ UNREVOKED_PARTITIONS
       ▲                                                              │ it reports that it no longer owns them
       │ all are free                                                 ▼
       └──────────────────────── UNRELEASED_PARTITIONS ◀──some of its target still belong to others──

The state of a group follows from these: Empty (no members), Assigning (the target is older than the group's epoch),
Reconciling (a member is not yet where the target wants it), Stable.
"""

from collections.abc import Iterable, Mapping
from enum import IntEnum, StrEnum
from typing import Final, NamedTuple

from penstock.groups.consumer.records import (
    CURRENT,
    GROUP,
    MEMBER,
    PARTITION_METADATA,
    TARGET,
    TARGET_EPOCH,
    ConsumerKey,
    CurrentPartitions,
    CurrentValue,
    GroupValue,
    MemberValue,
    RegexValue,
    TargetEpochValue,
    TargetValue,
    Value,
)

Partitions = Mapping[bytes, Mapping[int, int]]
"""Topic id → partition → the member epoch with which the member got it."""
Target = Mapping[bytes, frozenset[int]]
"""Topic id → partitions."""

NO_PARTITIONS: Final[Partitions] = {}
NO_TARGET: Final[Target] = {}

JOIN_EPOCH: Final = 0
LEAVE_EPOCH: Final = -1
STATIC_LEAVE_EPOCH: Final = -2
"""A static member is away and comes back: its partitions are kept for it until its session ends."""


class MemberState(IntEnum):
    STABLE = 0
    UNREVOKED_PARTITIONS = 1
    UNRELEASED_PARTITIONS = 2
    UNKNOWN = 127


class ConsumerGroupState(StrEnum):
    EMPTY = "Empty"
    ASSIGNING = "Assigning"
    RECONCILING = "Reconciling"
    STABLE = "Stable"


class ClassicSide(NamedTuple):
    """What a member that speaks the classic protocol has said when it joined."""

    session_timeout_ms: int
    protocols: tuple[tuple[str, bytes], ...]
    """Names and subscriptions, the one it likes best first."""


class Member(NamedTuple):
    member_id: str
    member_epoch: int = 0
    previous_member_epoch: int = -1
    state: MemberState = MemberState.STABLE
    assigned: Partitions = NO_PARTITIONS
    pending_revocation: Partitions = NO_PARTITIONS
    instance_id: str | None = None
    rack_id: str | None = None
    rebalance_timeout_ms: int = -1
    client_id: str = ""
    client_host: str = ""
    subscribed_topic_names: frozenset[str] = frozenset()
    subscribed_topic_regex: str = ""
    server_assignor: str | None = None
    classic: ClassicSide | None = None

    def moved_to(self, member_epoch: int) -> "Member":
        """With a new epoch. The one before is remembered: our answer may be lost, and the member ask again with it."""
        return self._replace(member_epoch=member_epoch, previous_member_epoch=self.member_epoch)

    def is_reconciled_to(self, assignment_epoch: int) -> bool:
        return self.state is MemberState.STABLE and self.member_epoch == assignment_epoch


class ResolvedRegex(NamedTuple):
    topics: frozenset[str]
    version: int
    """Which state of the cluster's topics it was matched with; grows with every change of them."""
    timestamp_ms: int


class ConsumerGroup:
    __slots__ = (
        "assignment_epoch",
        "assignment_timestamp_ms",
        "group_epoch",
        "group_id",
        "has_partition_metadata",
        "members",
        "metadata_hash",
        "owners",
        "regexes",
        "static_members",
        "targets",
    )

    def __init__(self, group_id: str) -> None:
        self.group_id = group_id
        self.group_epoch = 0
        self.metadata_hash = 0
        self.assignment_epoch = 0
        self.assignment_timestamp_ms = 0
        self.has_partition_metadata = False
        self.members: dict[str, Member] = {}
        self.targets: dict[str, Target] = {}
        self.regexes: dict[str, ResolvedRegex] = {}
        # What follows from the members:
        self.static_members: dict[str, str] = {}
        self.owners: dict[tuple[bytes, int], str] = {}
        """Who has a partition, or has yet to give it back."""

    def copy(self) -> "ConsumerGroup":
        """All values are immutable, so that copies of the tables are enough."""
        copy = ConsumerGroup(self.group_id)
        for name in self.__slots__:
            value = getattr(self, name)
            setattr(copy, name, value.copy() if isinstance(value, dict) else value)
        return copy

    def hard_state(self) -> object:
        return tuple(getattr(self, name) for name in self.__slots__)

    # ── what is asked of it ─────────────────────────────────────────────────────────────────────────────────

    @property
    def state(self) -> ConsumerGroupState:
        if not self.members:
            return ConsumerGroupState.EMPTY
        if self.group_epoch > self.assignment_epoch:
            return ConsumerGroupState.ASSIGNING
        if all(member.is_reconciled_to(self.assignment_epoch) for member in self.members.values()):
            return ConsumerGroupState.STABLE
        return ConsumerGroupState.RECONCILING

    def static_member(self, instance_id: str | None) -> Member | None:
        member_id = self.static_members.get(instance_id) if instance_id is not None else None
        return self.members.get(member_id) if member_id is not None else None

    def topics_of(self, member: Member) -> frozenset[str]:
        """What it subscribes to by name and by regular expression; one that is not resolved matches nothing."""
        resolved = self.regexes.get(member.subscribed_topic_regex)
        if resolved is None:
            return member.subscribed_topic_names
        return member.subscribed_topic_names | resolved.topics

    def subscribed_topics(self) -> set[str]:
        topics: set[str] = set()
        for member in self.members.values():
            topics |= member.subscribed_topic_names
        for resolved in self.regexes.values():
            topics |= resolved.topics
        return topics

    def subscribed_regexes(self) -> set[str]:
        return {m.subscribed_topic_regex for m in self.members.values() if m.subscribed_topic_regex}

    def classic_members(self) -> list[Member]:
        return [member for member in self.members.values() if member.classic is not None]

    def preferred_assignor(self, offered: Iterable[str]) -> str:
        """The one that most members name; of equals, and if nobody names one, the first that is offered."""
        names = list(offered)
        votes = dict.fromkeys(names, 0)
        for member in self.members.values():
            if member.server_assignor in votes:
                votes[member.server_assignor] += 1
        return max(names, key=votes.__getitem__)

    # ── what is recorded of it ──────────────────────────────────────────────────────────────────────────────

    def put(self, key: ConsumerKey, value: Value | None) -> None:
        if isinstance(value, GroupValue):
            self.group_epoch = value.epoch
            self.metadata_hash = value.metadata_hash
        elif isinstance(value, TargetEpochValue):
            self.assignment_epoch = value.assignment_epoch
            self.assignment_timestamp_ms = value.assignment_timestamp
        elif isinstance(value, MemberValue):
            known = self.members.get(key.name) or Member(key.name)
            self.set_member(with_metadata(known, value))
        elif isinstance(value, CurrentValue):
            known = self.members.get(key.name) or Member(key.name)
            self.set_member(with_current(known, value))
        elif isinstance(value, TargetValue):
            parts = value.topic_partitions
            self.targets[key.name] = {part.topic_id: frozenset(part.partitions) for part in parts}
        elif isinstance(value, RegexValue):
            self.regexes[key.name] = ResolvedRegex(frozenset(value.topics), value.version, value.timestamp)
        else:
            self.has_partition_metadata = True

    def drop(self, key: ConsumerKey) -> None:
        if key.kind == GROUP:
            self.group_epoch = self.metadata_hash = 0
        elif key.kind == TARGET_EPOCH:
            self.assignment_epoch = self.assignment_timestamp_ms = 0
        elif key.kind == MEMBER:
            member = self.members.pop(key.name, None)
            if member is not None:
                self._forget(member)
        elif key.kind == CURRENT:
            known = self.members.get(key.name)
            if known is not None:
                gone = known._replace(member_epoch=LEAVE_EPOCH, previous_member_epoch=LEAVE_EPOCH)
                self.set_member(gone._replace(assigned=NO_PARTITIONS, pending_revocation=NO_PARTITIONS))
        elif key.kind == TARGET:
            self.targets.pop(key.name, None)
        elif key.kind == PARTITION_METADATA:
            self.has_partition_metadata = False
        else:
            self.regexes.pop(key.name, None)

    def set_member(self, member: Member) -> None:
        known = self.members.get(member.member_id)
        if known is not None:
            self._forget(known)
        self.members[member.member_id] = member
        if member.instance_id is not None:
            self.static_members[member.instance_id] = member.member_id
        for partitions in (member.assigned, member.pending_revocation):
            for topic_id, epochs in partitions.items():
                for partition in epochs:
                    self.owners[topic_id, partition] = member.member_id

    def _forget(self, member: Member) -> None:
        if member.instance_id is not None and self.static_members.get(member.instance_id) == member.member_id:
            del self.static_members[member.instance_id]
        for partitions in (member.assigned, member.pending_revocation):
            for topic_id, epochs in partitions.items():
                for partition in epochs:
                    if self.owners.get((topic_id, partition)) == member.member_id:
                        del self.owners[topic_id, partition]


def with_metadata(member: Member, value: MemberValue) -> Member:
    classic = value.classic_member_metadata
    return member._replace(
        instance_id=value.instance_id,
        rack_id=value.rack_id,
        rebalance_timeout_ms=value.rebalance_timeout_ms,
        client_id=value.client_id,
        client_host=value.client_host,
        subscribed_topic_names=frozenset(value.subscribed_topic_names),
        subscribed_topic_regex=value.subscribed_topic_regex or "",
        server_assignor=value.server_assignor,
        classic=None
        if classic is None
        else ClassicSide(
            classic.session_timeout_ms,
            tuple((protocol.name, bytes(protocol.metadata)) for protocol in classic.supported_protocols),
        ),
    )


def with_current(member: Member, value: CurrentValue) -> Member:
    known = value.state in MemberState._value2member_map_
    return member._replace(
        member_epoch=value.member_epoch,
        previous_member_epoch=value.previous_member_epoch,
        state=MemberState(value.state) if known else MemberState.UNKNOWN,
        assigned=_partitions(value.assigned_partitions, value.member_epoch),
        pending_revocation=_partitions(value.partitions_pending_revocation, value.member_epoch),
    )


def _partitions(parts: Iterable[CurrentPartitions], member_epoch: int) -> Partitions:
    partitions: dict[bytes, Mapping[int, int]] = {}
    for part in parts:
        epochs = part.assignment_epochs
        if len(epochs) != len(part.partitions):
            epochs = [member_epoch] * len(part.partitions)
        partitions[part.topic_id] = dict(zip(part.partitions, epochs, strict=True))
    return partitions
