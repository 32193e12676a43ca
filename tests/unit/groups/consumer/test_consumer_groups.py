"""What transcripts do not show of consumer groups."""

from typing import Any

import pytest

from penstock.coordination.form import Outcome
from penstock.groups.consumer import records
from penstock.groups.consumer.records import CurrentValue, MemberValue, write_key, write_value
from penstock.groups.options import GroupOptions
from penstock.model.errors import ErrorCode
from tests.unit.groups.consumer.crowd import AT_ONCE, Client, settle
from tests.unit.groups.harness import Harness


def recorded(harness: Harness, *entries: tuple[int, str, Any]) -> None:
    outcome = Outcome()
    for kind, name, value in entries:
        raw = value if isinstance(value, bytes) else write_value(value)
        outcome.record(write_key(kind, "g", name), raw)
    harness.do(outcome)


def test_a_member_in_a_state_that_we_do_not_know_begins_anew() -> None:
    """As after a broker newer than ours has had the group."""
    harness = Harness(AT_ONCE)
    recorded(
        harness,
        (records.MEMBER, "m1", MemberValue(subscribed_topic_names=["orders"], subscribed_topic_regex="")),
        (records.CURRENT, "m1", CurrentValue(member_epoch=5, previous_member_epoch=4, state=99)),
    )
    member = Client(harness, "m1")
    member.epoch, member.owned = 5, {b"x" * 16: {0}}
    assert ErrorCode(member.heartbeat().error_code) is ErrorCode.FENCED_MEMBER_EPOCH
    settle(member)
    assert len(member.places) == 3


def test_partition_metadata_of_older_brokers_is_deleted() -> None:
    harness = Harness(AT_ONCE)
    recorded(harness, (records.PARTITION_METADATA, "", b"\0\0\1\0"))
    Client(harness, "m1").heartbeat()
    tombstone = (write_key(records.PARTITION_METADATA, "g"), None)
    assert tombstone in [record for outcome in harness.outcomes for record in outcome.records]


def test_a_heartbeat_that_brings_nothing_new_writes_nothing() -> None:
    harness = Harness(AT_ONCE)
    members = [Client(harness, f"m{index}") for index in range(3)]
    settle(*members)
    before = len(harness.log)
    settle(*members)
    assert len(harness.log) == before


def test_names_that_do_not_fit_into_a_record_are_refused() -> None:
    harness = Harness()
    for client in (
        Client(harness, "m" * 40_000),
        Client(harness, "m1", group="g" * 40_000),
        Client(harness, "m1", ("t" * 40_000,)),
        Client(harness, "m1", None, regex="r" * 40_000),
        Client(harness, "m1", instance_id="i" * 40_000),
    ):
        assert ErrorCode(client.heartbeat().error_code) is ErrorCode.INVALID_REQUEST
    assert harness.log == []


def test_a_regular_expression_is_matched_again_after_the_refresh_interval() -> None:
    options = GroupOptions(consumer_assignment_interval_ms=0, consumer_regex_refresh_interval_ms=10_000)
    harness = Harness(options)
    member = Client(harness, "m1", None, regex="orders.*")
    settle(member)
    harness.topics.partitions["orders-eu"] = 1  # and nobody tells the shard
    harness.advance(10_000)
    member.heartbeat()
    assert ("orders-eu", 0) not in member.places
    harness.advance(1)
    member.heartbeat()
    assert ("orders-eu", 0) in member.places


@pytest.mark.parametrize("assignor", ["uniform", "range"])
def test_a_hundred_members_share_and_survive_the_loss_of_one(assignor: str) -> None:
    harness = Harness(AT_ONCE)
    harness.topics.partitions["orders"] = 250
    members = [Client(harness, f"m{index:03}", assignor=assignor) for index in range(100)]
    settle(*members, rounds=20)
    gone = members.pop()
    gone.leave()
    settle(*members)
    loads = [len(member.places) for member in members]
    assert sum(loads) == 250
    assert max(loads) - min(loads) == 1
