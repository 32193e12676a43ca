"""Offsets and groups that nobody needs any more go with time, by Kafka's rules. Once `offsets_retention_ms` have passed

    classic group, empty          since it became empty, whenever they were committed
    never had members             since they were committed, each by itself
    classic, stable, consumers    since they were committed, for topics that no member is subscribed to
    consumer group                the same
    otherwise                     never

unless the client that committed said itself when (record version 1). A pending one is kept, and a group that is empty and
has no offset left is forgotten.
"""

from typing import Final, NamedTuple

from penstock.coordination.form import Outcome
from penstock.groups.consumer.groups import tombstones
from penstock.groups.directory import GroupDirectory, is_idle
from penstock.groups.forget import forget_group, forget_offset
from penstock.groups.offset_book import OffsetBook
from penstock.groups.options import GroupOptions
from penstock.groups.records import NO_TIMESTAMP, CommittedOffset
from penstock.groups.state import Group, GroupState

EXPIRY_ALARM: Final = ("expire",)
STEP_OFFSETS: Final = 5_000
"""Looked at in one go: about 10 ms. The others follow at once, but after whoever waits."""


class Expiry:
    """Goes round all groups of a shard, once in a check interval, step by step."""

    __slots__ = ("_check_interval_ms", "_directory", "_retention_ms", "_to_look_at")

    def __init__(self, directory: GroupDirectory, options: GroupOptions) -> None:
        self._directory = directory
        self._retention_ms = options.offsets_retention_ms
        self._check_interval_ms = options.offsets_retention_check_interval_ms
        self._to_look_at: list[str] = []

    def start(self, outcome: Outcome, now_ms: int) -> None:
        outcome.alarm(EXPIRY_ALARM, now_ms + self._check_interval_ms)

    def step(self, now_ms: int) -> Outcome:
        outcome = Outcome()
        self._to_look_at = self._to_look_at or self._directory.names()
        looked_at = 0
        while self._to_look_at and looked_at < STEP_OFFSETS:
            group_id = self._to_look_at.pop()
            looked_at += 1 + self._directory.offsets.count(group_id)
            self._look_at(outcome, group_id, now_ms)
        outcome.alarm(EXPIRY_ALARM, now_ms + (0 if self._to_look_at else self._check_interval_ms))
        return outcome

    def _look_at(self, outcome: Outcome, group_id: str, now_ms: int) -> None:
        consumer, group = self._directory.consumers.get(group_id), self._directory.find(group_id)
        if consumer is not None:
            rule = ExpiryRule(True, consumer.subscribed_topics())
        elif group is not None:
            rule = _rule_of(group)
        else:
            return
        if not _expire(
            outcome, group_id, rule, self._directory.offsets, retention_ms=self._retention_ms, now_ms=now_ms
        ):
            return
        if consumer is not None:
            if not consumer.members:
                outcome.records += tombstones(consumer)
        elif group is not None and group_id in self._directory.metadata and is_idle(group):
            forget_group(outcome, group_id)


class ExpiryRule(NamedTuple):
    """What of a group's offsets time may take."""

    may_expire: bool
    subscribed: frozenset[str] | set[str] = frozenset()
    """Topics whose offsets stay."""
    since_ms: int = NO_TIMESTAMP
    """Where the retention begins for all of them; without it, at the commit of each."""


def _rule_of(group: Group) -> ExpiryRule:
    if group.protocol_type is None:
        return ExpiryRule(True)
    if group.state is GroupState.EMPTY:
        return ExpiryRule(True, since_ms=group.state_timestamp_ms)
    subscribed = group.subscribed_topics() if group.state is GroupState.STABLE else None
    return ExpiryRule(False) if subscribed is None else ExpiryRule(True, subscribed)


def _expire(
    outcome: Outcome, group_id: str, rule: ExpiryRule, book: OffsetBook, *, retention_ms: int, now_ms: int
) -> bool:
    """Forget what has expired; True if the group has no offset left, not even a pending one."""
    kept = book.has_pending(group_id)
    if not rule.may_expire:
        return not book.has(group_id)
    for topic_partition, committed in book.committed(group_id):
        if (
            topic_partition.topic not in rule.subscribed
            and _is_expired(committed, rule.since_ms, retention_ms=retention_ms, now_ms=now_ms)
            and not book.is_pending(group_id, topic_partition)
        ):
            forget_offset(outcome, group_id, topic_partition)
        else:
            kept = True
    return not kept


def _is_expired(committed: CommittedOffset, since_ms: int, *, retention_ms: int, now_ms: int) -> bool:
    if committed.expire_timestamp_ms != NO_TIMESTAMP:
        return now_ms >= committed.expire_timestamp_ms
    start_ms = committed.commit_timestamp_ms if since_ms == NO_TIMESTAMP else since_ms
    return now_ms - start_ms >= retention_ms
