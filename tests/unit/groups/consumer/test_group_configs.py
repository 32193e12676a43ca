"""A group's own configs: asked for at each heartbeat, so that a change is in force at once."""

from penstock.groups.options import GroupOptions
from penstock.groups.shard import GroupShard
from tests.unit.groups.consumer.crowd import Client, settle
from tests.unit.groups.harness import Harness

SHARED = GroupOptions(
    consumer_session_timeout_ms=45_000,
    consumer_heartbeat_interval_ms=5_000,
    consumer_assignment_interval_ms=0,
)


class ConfiguredHarness(Harness):
    def __init__(self) -> None:
        self.own: dict[str, GroupOptions] = {}
        super().__init__(SHARED)

    def new_shard(self) -> GroupShard:
        return GroupShard(
            options=self.options,
            topics=self.topics,
            new_id=lambda: "unused",
            options_of=lambda group_id: self.own.get(group_id, self.options),
        )


def test_a_member_is_told_the_interval_of_its_group() -> None:
    harness = ConfiguredHarness()
    configured, other = Client(harness, "m1", group="configured"), Client(harness, "m2", group="other")
    assert configured.heartbeat().heartbeat_interval_ms == 5_000
    harness.own["configured"] = SHARED._replace(consumer_heartbeat_interval_ms=7_000)
    assert configured.heartbeat().heartbeat_interval_ms == 7_000
    assert other.heartbeat().heartbeat_interval_ms == 5_000


def test_a_silent_member_is_out_after_the_session_of_its_group() -> None:
    harness = ConfiguredHarness()
    harness.own["configured"] = SHARED._replace(consumer_session_timeout_ms=1_000)
    configured, other = Client(harness, "m1", group="configured"), Client(harness, "m2", group="other")
    settle(configured)
    settle(other)
    harness.advance(1_000)
    assert configured.heartbeat().error_code != 0
    assert other.heartbeat().error_code == 0


def test_after_a_restart_members_have_the_session_of_their_group_again() -> None:
    harness = ConfiguredHarness()
    harness.own["configured"] = SHARED._replace(consumer_session_timeout_ms=1_000)
    configured, other = Client(harness, "m1", group="configured"), Client(harness, "m2", group="other")
    settle(configured)
    settle(other)
    harness.do(harness.shard.on_writable(harness.now_ms))
    harness.advance(1_000)
    assert configured.heartbeat().error_code != 0
    assert other.heartbeat().error_code == 0


def test_a_group_is_assigned_anew_at_most_once_in_its_own_interval() -> None:
    harness = ConfiguredHarness()
    harness.own["g"] = SHARED._replace(consumer_assignment_interval_ms=10_000)
    harness.advance(1)
    first, second = Client(harness, "m1"), Client(harness, "m2")
    settle(first)
    second.heartbeat()
    settle(first, second)
    assert second.places == set()
    harness.advance(10_000)
    settle(first, second)
    assert second.places
