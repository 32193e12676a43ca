"""What decisions about consumer groups see beside their Turn, and their alarms.

session    a member must show life (shared with the classic protocol, so that it outlives a change of protocol)
rebalance  a member must have given back what it was told to
rejoin     a member of the classic protocol must join again, as its heartbeat was told
resync     … and having joined, must ask for its assignment
"""

from typing import Final, NamedTuple

from penstock.coordination.form import AlarmKey
from penstock.groups.classic.rebalance import Turn, session_alarm
from penstock.groups.consumer.state import ConsumerGroup
from penstock.groups.options import GroupOptions
from penstock.groups.state import Group
from penstock.groups.topics import Topics

SESSION: Final = "session"
REBALANCE: Final = "rebalance"
REJOIN: Final = "rejoin"
RESYNC: Final = "resync"


class Scene(NamedTuple):
    turn: Turn
    topics: Topics
    topics_version: int
    """Grows whenever the cluster's topics change."""
    classic_groups: dict[str, Group]
    """The shard's living classic groups, for those that change sides."""
    rejoining: set[tuple[str, str]]
    """Group and member of each rejoin alarm that is set: a heartbeat must not push it back."""

    @property
    def now_ms(self) -> int:
        return self.turn.now_ms

    @property
    def options(self) -> GroupOptions:
        return self.turn.options

    def options_of(self, group: ConsumerGroup) -> GroupOptions:
        return self.turn.options_of(group.group_id)

    def set_alarm(self, kind: str, group_id: str, member_id: str, delay_ms: int) -> None:
        self.turn.outcome.alarm(alarm_key(kind, group_id, member_id), self.turn.now_ms + delay_ms)

    def cancel_alarm(self, kind: str, group_id: str, member_id: str) -> None:
        self.turn.outcome.alarm(alarm_key(kind, group_id, member_id), None)

    def expect_rejoin(self, group_id: str, member_id: str, delay_ms: int) -> None:
        if (group_id, member_id) not in self.rejoining:
            self.rejoining.add((group_id, member_id))
            self.set_alarm(REJOIN, group_id, member_id, delay_ms)

    def cancel_rejoin(self, group_id: str, member_id: str) -> None:
        if (group_id, member_id) in self.rejoining:
            self.rejoining.discard((group_id, member_id))
            self.cancel_alarm(REJOIN, group_id, member_id)

    def cancel_all(self, group_id: str, member_id: str) -> None:
        self.cancel_alarm(SESSION, group_id, member_id)
        self.cancel_rebalance_alarms(group_id, member_id)

    def cancel_rebalance_alarms(self, group_id: str, member_id: str) -> None:
        self.cancel_alarm(REBALANCE, group_id, member_id)
        self.cancel_alarm(RESYNC, group_id, member_id)
        self.cancel_rejoin(group_id, member_id)


def alarm_key(kind: str, group_id: str, member_id: str) -> AlarmKey:
    return session_alarm(group_id, member_id) if kind == SESSION else (kind, group_id, member_id)
