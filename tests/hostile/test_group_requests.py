"""Members of groups that should not be obeyed: each gets Kafka's error code, and the healthy one goes on.

Where Apache Kafka 4.3.1, asked the same, answers otherwise, a comment says so.
"""

import time
from collections.abc import Callable
from typing import Any

import pytest

from penstock.model.errors import ErrorCode
from penstock.testing.penstock_broker import PenstockBroker
from penstock.wire.messages.consumer_group_heartbeat import TopicPartitions
from penstock.wire.messages.delete_groups import DeleteGroupsRequest
from penstock.wire.messages.describe_groups import DescribeGroupsRequest
from penstock.wire.messages.join_group import JoinGroupRequestProtocol
from penstock.wire.messages.leave_group import LeaveGroupRequest, MemberIdentity
from penstock.wire.messages.list_transactions import ListTransactionsRequest
from penstock.wire.messages.sync_group import SyncGroupRequestAssignment
from penstock.wire.primitives import uvarint
from tests.hostile.coordinator_client import TOPIC, ClassicMember, ConsumerMember, commit_request, committed
from tests.hostile.raw_client import RawClient, frame_of

E = ErrorCode
LARGEST = 2**31 - 1
LONGEST = 32_767


# ── classic groups ──────────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def member(client: RawClient, name: str) -> ClassicMember:
    return ClassicMember(client, name)


def joined(member: ClassicMember, **fields: Any) -> int:
    return int(member.client.ask(member.join_request(**fields), 9).error_code)


def synced(member: ClassicMember, **fields: Any) -> int:
    return int(member.client.ask(member.sync_request(**fields), 5).error_code)


def left(member: ClassicMember, **fields: Any) -> int:
    request = LeaveGroupRequest(group_id=member.group, members=[MemberIdentity(**fields)])
    answer = member.client.ask(request, 5)
    return int(answer.error_code or answer.members[0].error_code)


def deleted(member: ClassicMember) -> int:
    answer = member.client.ask(DeleteGroupsRequest(groups_names=[member.group]), 2)
    return int(answer.results[0].error_code)


WRONG_MEMBERS: dict[str, tuple[Callable[[ClassicMember], int], ErrorCode]] = {
    "a heartbeat of the generation before": (
        lambda m: m.heartbeat(generation_id=m.generation_id - 1),
        E.ILLEGAL_GENERATION,
    ),
    "a heartbeat of the next generation": (
        lambda m: m.heartbeat(generation_id=m.generation_id + 1),
        E.ILLEGAL_GENERATION,
    ),
    "a heartbeat of generation -1": (lambda m: m.heartbeat(generation_id=-1), E.ILLEGAL_GENERATION),
    "a heartbeat of the last generation there can be": (
        lambda m: m.heartbeat(generation_id=LARGEST),
        E.ILLEGAL_GENERATION,
    ),
    "a heartbeat of a stranger": (lambda m: m.heartbeat(member_id="stranger"), E.UNKNOWN_MEMBER_ID),
    "a heartbeat of nobody": (lambda m: m.heartbeat(member_id=""), E.UNKNOWN_MEMBER_ID),
    "a heartbeat as an instance that nobody is": (
        lambda m: m.heartbeat(group_instance_id="i-1"),
        E.UNKNOWN_MEMBER_ID,
    ),
    "a heartbeat in no group": (lambda m: m.heartbeat(group_id=""), E.INVALID_GROUP_ID),
    "a heartbeat in an unknown group": (lambda m: m.heartbeat(group_id="unheard of"), E.UNKNOWN_MEMBER_ID),
    "a sync of the generation before": (
        lambda m: synced(m, generation_id=m.generation_id - 1),
        E.ILLEGAL_GENERATION,
    ),
    "a sync of a stranger": (lambda m: synced(m, member_id="stranger"), E.UNKNOWN_MEMBER_ID),
    "a sync of another protocol": (lambda m: synced(m, protocol_name="odd"), E.INCONSISTENT_GROUP_PROTOCOL),
    "a sync of another type": (lambda m: synced(m, protocol_type="odd"), E.INCONSISTENT_GROUP_PROTOCOL),
    "a join without protocols": (lambda m: joined(m, protocols=[]), E.INCONSISTENT_GROUP_PROTOCOL),
    "a join without a type": (lambda m: joined(m, protocol_type=""), E.INCONSISTENT_GROUP_PROTOCOL),
    "a join of another type": (lambda m: joined(m, protocol_type="odd"), E.INCONSISTENT_GROUP_PROTOCOL),
    "a join with foreign protocols": (
        lambda m: joined(m, protocols=[JoinGroupRequestProtocol(name="odd", metadata=b"")]),
        E.INCONSISTENT_GROUP_PROTOCOL,
    ),
    "a join of a stranger": (lambda m: joined(m, member_id="stranger"), E.UNKNOWN_MEMBER_ID),
    "a join in no group": (lambda m: joined(m, group_id=""), E.INVALID_GROUP_ID),
    "a join for a moment": (lambda m: joined(m, session_timeout_ms=1), E.INVALID_SESSION_TIMEOUT),
    "a join for ever": (lambda m: joined(m, session_timeout_ms=LARGEST), E.INVALID_SESSION_TIMEOUT),
    "a join for less than nothing": (lambda m: joined(m, session_timeout_ms=-1), E.INVALID_SESSION_TIMEOUT),
    "a stranger who leaves": (lambda m: left(m, member_id="stranger"), E.UNKNOWN_MEMBER_ID),
    "an instance that nobody is and that leaves": (
        lambda m: left(m, group_instance_id="i-1"),
        E.UNKNOWN_MEMBER_ID,
    ),
    "a commit of the generation before": (
        lambda m: m.commit(generation_id_or_member_epoch=m.generation_id - 1),
        E.ILLEGAL_GENERATION,
    ),
    "a commit of a stranger": (lambda m: m.commit(member_id="stranger"), E.UNKNOWN_MEMBER_ID),
    "a commit from outside of a group with members": (
        lambda m: m.commit(member_id="", generation_id_or_member_epoch=-1),
        E.UNKNOWN_MEMBER_ID,
    ),
    "a commit with too much metadata": (lambda m: m.commit(metadata="x" * 4097), E.OFFSET_METADATA_TOO_LARGE),
    "the deletion of a group with members": (deleted, E.NON_EMPTY_GROUP),
}


@pytest.mark.parametrize("case", WRONG_MEMBERS)
def test_a_member_is_not_harmed_by(member: ClassicMember, case: str) -> None:
    ask, expected = WRONG_MEMBERS[case]
    assert ErrorCode(ask(member)) is expected
    assert member.is_healthy()


def test_a_static_member_that_was_replaced_is_told_so(client: RawClient, name: str) -> None:
    old = ClassicMember(client, name, instance_id="i-1")
    new = ClassicMember(client, name, instance_id="i-1")
    assert new.member_id != old.member_id
    assert old.heartbeat() == E.FENCED_INSTANCE_ID
    assert old.commit() == E.FENCED_INSTANCE_ID
    assert synced(old) == E.FENCED_INSTANCE_ID
    assert joined(old, member_id=old.member_id) == E.FENCED_INSTANCE_ID
    assert left(old, member_id=old.member_id, group_instance_id="i-1") == E.FENCED_INSTANCE_ID
    assert new.is_healthy()


def test_an_assignment_for_members_that_are_not_there_is_left_out(member: ClassicMember) -> None:
    rejoining = member.client.ask(member.join_request(member_id=member.member_id), 9)
    member.generation_id = rejoining.generation_id
    strangers = [
        SyncGroupRequestAssignment(member_id=f"stranger-{number}", assignment=b"x" * 1000)
        for number in range(1000)
    ]
    own = member.sync_request().assignments
    assert synced(member, assignments=[*strangers, *own, *strangers]) == 0
    assert member.is_healthy()
    (described,) = member.client.ask(DescribeGroupsRequest(groups=[member.group]), 5).groups
    assert [one.member_id for one in described.members] == [member.member_id]


def test_thousands_who_leave_without_having_joined_are_each_told_so(member: ClassicMember) -> None:
    strangers = [MemberIdentity(member_id=f"stranger-{number}") for number in range(5000)]
    answer = member.client.ask(LeaveGroupRequest(group_id=member.group, members=strangers), 5)
    assert {one.error_code for one in answer.members} == {E.UNKNOWN_MEMBER_ID}
    assert len(answer.members) == 5000
    assert member.is_healthy()


def test_the_longest_group_id_there_can_be_is_answered(member: ClassicMember) -> None:
    longest = "g" * LONGEST
    request = commit_request(longest, generation_id_or_member_epoch=-1)
    # Kafka takes 767 bytes more than Penstock.
    assert committed(member.client, request) in (E.INVALID_GROUP_ID, E.NONE)
    assert joined(member, group_id=longest) in (E.INVALID_GROUP_ID, E.MEMBER_ID_REQUIRED)
    assert member.heartbeat(group_id=longest) in (E.INVALID_GROUP_ID, E.UNKNOWN_MEMBER_ID)
    assert member.is_healthy()


# ── consumer groups ─────────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def consumer(client: RawClient, name: str) -> ConsumerMember:
    return ConsumerMember(client, name)


JOINING: dict[str, Any] = {
    "member_id": "m-2",
    "member_epoch": 0,
    "rebalance_timeout_ms": 30_000,
    "subscribed_topic_names": ["nothing"],
    "topic_partitions": [],
}

WRONG_HEARTBEATS: dict[str, tuple[dict[str, Any], ErrorCode]] = {
    "of a later epoch": ({"member_epoch": LARGEST}, E.FENCED_MEMBER_EPOCH),
    "of a stranger": ({"member_id": "stranger", "member_epoch": 5}, E.UNKNOWN_MEMBER_ID),
    "of a stranger who leaves": ({"member_id": "stranger", "member_epoch": -1}, E.UNKNOWN_MEMBER_ID),
    "in an unknown group": ({"group_id": "unheard of", "member_epoch": 5}, E.GROUP_ID_NOT_FOUND),
    "of an epoch that is none": ({"member_epoch": -3}, E.INVALID_REQUEST),
    "of an instance that leaves and is none": ({"member_epoch": -2}, E.INVALID_REQUEST),
    "as an instance that nobody is": ({"instance_id": "i-9"}, E.UNKNOWN_MEMBER_ID),
    "in no group": ({"group_id": ""}, E.INVALID_REQUEST),
    "of nobody": ({"member_id": ""}, E.INVALID_REQUEST),
    "of nobody who joins": (JOINING | {"member_id": ""}, E.INVALID_REQUEST),
    "with an empty instance": ({"instance_id": ""}, E.INVALID_REQUEST),
    "with an empty rack": ({"rack_id": ""}, E.INVALID_REQUEST),
    "joining without a timeout": (JOINING | {"rebalance_timeout_ms": -1}, E.INVALID_REQUEST),
    "joining with partitions": (
        JOINING | {"topic_partitions": [TopicPartitions(topic_id=b"x" * 16, partitions=[0])]},
        E.INVALID_REQUEST,
    ),
    "joining without saying what it owns": (JOINING | {"topic_partitions": None}, E.INVALID_REQUEST),
    "joining without a subscription": (JOINING | {"subscribed_topic_names": None}, E.INVALID_REQUEST),
    "with an unknown assignor": ({"server_assignor": "odd"}, E.UNSUPPORTED_ASSIGNOR),
    "with an expression that is none": (
        JOINING | {"subscribed_topic_regex": "("},
        E.INVALID_REGULAR_EXPRESSION,
    ),
    "with an expression that looks back": (
        JOINING | {"subscribed_topic_regex": r"(a)\1"},
        E.INVALID_REGULAR_EXPRESSION,
    ),
    "with an expression that looks ahead": (
        JOINING | {"subscribed_topic_regex": "(?=a)a"},
        E.INVALID_REGULAR_EXPRESSION,
    ),
    "with an expression that unfolds to billions": (  # which Kafka calls UNKNOWN_SERVER_ERROR
        JOINING | {"subscribed_topic_regex": "((a{1000}){1000}){1000}"},
        E.INVALID_REGULAR_EXPRESSION,
    ),
}


@pytest.mark.parametrize("case", WRONG_HEARTBEATS)
def test_a_consumer_is_not_harmed_by_a_heartbeat(consumer: ConsumerMember, case: str) -> None:
    fields, expected = WRONG_HEARTBEATS[case]
    assert ErrorCode(consumer.beat(**fields).error_code) is expected
    assert consumer.is_healthy()


def test_an_earlier_epoch_is_fenced_and_its_commit_is_stale(consumer: ConsumerMember) -> None:
    first = consumer.member_epoch
    for regex in (
        "nothing-1",
        "nothing-2",
    ):  # the member's own subscription changes: its epoch moves on twice
        _resubscribe(consumer, regex)
    assert consumer.beat(member_epoch=first).error_code == E.FENCED_MEMBER_EPOCH
    assert consumer.commit(generation_id_or_member_epoch=consumer.member_epoch + 1) == E.STALE_MEMBER_EPOCH
    assert consumer.is_healthy()


def _resubscribe(consumer: ConsumerMember, regex: str) -> None:
    """To some more topics; until the member has a later epoch."""
    before = consumer.member_epoch
    assert consumer.beat(subscribed_topic_names=[TOPIC, regex]).error_code == 0
    deadline = time.monotonic() + 10
    while consumer.member_epoch == before:
        _settle(consumer)
        assert time.monotonic() < deadline


def _settle(consumer: ConsumerMember) -> None:
    """Beat until nothing changes any more."""
    deadline = time.monotonic() + 10
    while True:
        beat = consumer.beat(topic_partitions=consumer.owned)
        assert beat.error_code == 0, beat
        if beat.assignment is not None:
            consumer.owned = list(beat.assignment.topic_partitions)
        elif beat.member_epoch == consumer.member_epoch:
            return
        consumer.member_epoch = beat.member_epoch
        assert time.monotonic() < deadline


def test_a_consumer_commits_only_as_itself(consumer: ConsumerMember) -> None:
    assert consumer.commit(member_id="stranger") == E.UNKNOWN_MEMBER_ID
    assert consumer.commit(member_id="", generation_id_or_member_epoch=-1) == E.UNKNOWN_MEMBER_ID
    assert consumer.commit(version=8) == E.UNSUPPORTED_VERSION
    assert consumer.commit(metadata="x" * 4097) == E.OFFSET_METADATA_TOO_LARGE
    assert consumer.is_healthy()


def test_a_static_consumer_that_was_replaced_is_told_so(client: RawClient, name: str) -> None:
    old = ConsumerMember(client, name, "m-1", instance_id="i-1")
    taken = old.beat(**JOINING | {"instance_id": "i-1"})
    assert taken.error_code == E.UNRELEASED_INSTANCE_ID
    assert old.is_healthy()
    assert old.beat(member_epoch=-2).error_code == 0
    new = ConsumerMember(client, name, "m-2", instance_id="i-1")
    assert old.beat().error_code == E.FENCED_INSTANCE_ID
    assert old.commit() == E.UNKNOWN_MEMBER_ID
    assert new.is_healthy()


def test_an_expression_made_to_run_long_does_not(consumer: ConsumerMember) -> None:
    bait = "a" * 200 + "!"
    for regex in ("(a+)+$", "(a|aa)+", "(.*)*" + "!", "(" * 500 + "a" + ")" * 500):
        beat = consumer.beat(**JOINING | {"subscribed_topic_names": [bait], "subscribed_topic_regex": regex})
        assert beat.error_code in (E.NONE, E.INVALID_REGULAR_EXPRESSION)
        if beat.error_code == E.NONE:
            assert consumer.beat(member_id="m-2", member_epoch=-1).error_code == 0
    listed = consumer.client.ask(ListTransactionsRequest(transactional_id_pattern="(a+)+$"), 2)
    assert listed.error_code == 0  # where it runs long, it runs for hours
    _settle(consumer)
    assert consumer.is_healthy()


def test_an_expression_of_a_megabyte_loses_its_connection(
    hostile_broker: PenstockBroker, consumer: ConsumerMember
) -> None:
    short = "?" * 1000
    frame = frame_of(consumer.request(**JOINING | {"subscribed_topic_regex": short}), 1)
    told = uvarint(len(short) + 1) + short.encode()
    assert told in frame
    with RawClient(hostile_broker.port) as attacker:
        attacker.send_frame(frame.replace(told, uvarint(2**20 + 1) + b"a" * 2**20))
        assert attacker.is_closed_by_the_broker()
    assert consumer.is_healthy()


def test_partitions_that_it_does_not_have_give_a_consumer_nothing(consumer: ConsumerMember) -> None:
    foreign = [TopicPartitions(topic_id=b"x" * 16, partitions=list(range(-5, 1000)))]
    beat = consumer.beat(topic_partitions=foreign)
    assert beat.error_code == 0
    assert consumer.is_healthy()
