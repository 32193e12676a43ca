"""What consumers of the classic protocol say inside their bytes."""

import struct

import pytest

from penstock.groups.consumer_protocol import (
    gives_up,
    read_assignment,
    read_subscription,
    subscribed_topics,
    write_assignment,
)
from simulation.consumer_protocol import assignment, subscription
from tests.unit.groups.consumer.crowd import topic_id
from tests.unit.groups.harness import FakeTopics

TOPICS = FakeTopics(orders=3, payments=1)


def test_an_assignment_goes_there_and_back() -> None:
    target = {topic_id("payments"): frozenset({0}), topic_id("orders"): frozenset({2, 0})}
    raw = write_assignment(target, TOPICS, like=subscription("orders"))
    assert raw == assignment("orders:0,2 payments:0")
    assert read_assignment(raw, TOPICS) == (target, False)


def test_an_assignment_is_written_in_the_version_that_its_reader_speaks() -> None:
    for version, written in ((0, 0), (1, 1), (3, 3), (9, 3)):
        like = struct.pack(">h", version) + subscription("orders")[2:]
        assert write_assignment({}, TOPICS, like=like)[:2] == struct.pack(">h", written)


def test_topics_that_are_gone_are_left_out() -> None:
    assert read_assignment(assignment("orders:0 gone:1"), TOPICS)[0] == {topic_id("orders"): frozenset({0})}
    gone = {topic_id("gone"): frozenset({1})}
    assert read_assignment(write_assignment(gone, TOPICS, like=b"\0\0"), TOPICS) == ({}, False)


def test_no_assignment_is_an_empty_one() -> None:
    assert read_assignment(b"", TOPICS) == ({}, False)


def test_user_data_is_noticed() -> None:
    raw = assignment("orders:0")[:-4] + b"\0\0\0\1x"
    assert read_assignment(raw, TOPICS)[1]


def test_a_subscription_of_a_newer_version_is_read_as_far_as_we_know() -> None:
    rest = (
        struct.pack(">iih", 0, 5, 4) + b"rack" + b"more"
    )  # no owned partitions, generation, rack, and what is to come
    found = read_subscription(b"\0\7" + subscription("orders")[2:] + rest)
    assert (list(found.topics), found.generation_id, found.rack_id) == (["orders"], 5, "rack")


@pytest.mark.parametrize("raw", [b"", b"\0", b"\xff\xff\0\0\0\0", b"\0\0", b"\0\0\0\0\0\1", b"\0\1\0\0\0\0"])
def test_what_is_no_subscription_is_refused(raw: bytes) -> None:
    with pytest.raises(ValueError):
        read_subscription(raw)


@pytest.mark.parametrize(
    ("joined_with", "assigned", "expected"),
    [
        ("orders owns orders:0,1", "orders:0,1", False),
        ("orders owns orders:0,1", "orders:1 payments:0", True),
        ("orders owns orders:0,1", "payments:0,1", True),
        ("orders", "orders:0", False),
    ],
)
def test_who_was_not_assigned_all_that_it_owned_gives_partitions_up(
    joined_with: str, assigned: str, expected: bool
) -> None:
    assert gives_up(subscription(joined_with), assignment(assigned)) is expected


def test_nobody_is_waited_for_because_of_bytes_that_cannot_be_read() -> None:
    owner = subscription("orders owns orders:0")
    assert gives_up(owner, b"")
    assert not gives_up(owner, b"\0")
    assert not gives_up(owner, assignment("orders:0")[:-6])
    assert not gives_up(b"", assignment("orders:0"))
    assert not gives_up(owner[:-2], b"")


@pytest.mark.parametrize(
    ("raw", "topics"),
    [
        (subscription("orders,payments"), {"orders", "payments"}),
        (subscription("orders owns orders:0"), {"orders"}),
        (b"\0\7" + subscription("orders")[2:] + b"what is to come", {"orders"}),
        (subscription("orders owns orders:0")[:-2], {"orders"}),  # what is cut off stands behind the topics
        (subscription(""), set()),
        (b"", None),
        (b"\0\0", None),
        (subscription("orders")[:10], None),
        (b"\0\0\0\0\0\1\0\2\xff\xff", None),
    ],
)
def test_the_topics_of_a_subscription_are_read_in_every_version(raw: bytes, topics: set[str] | None) -> None:
    assert subscribed_topics(raw) == topics
