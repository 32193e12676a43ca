"""Reassignments as files, and the throttles that go with them."""

import json

import pytest

from penstock.admin.moves.files import as_json, checked_assignment, parse_brokers, parse_request, parse_topics
from penstock.admin.moves.model import Reassignment, Replica
from penstock.admin.moves.throttles import brokers_of, proposed_moves, topic_throttles
from penstock.client.errors import UserError
from penstock.model.ids import TopicPartition

ORDERS = TopicPartition("orders", 0)


def request(*partitions: object, **others: object) -> str:
    return json.dumps({"version": 1, "partitions": partitions, **others})


def test_a_file_says_brokers_and_log_directories() -> None:
    text = request(
        {"topic": "orders", "partition": 0, "replicas": [1, 2], "log_dirs": ["any", "/data"]},
        {"topic": "bills", "partition": 3, "replicas": [2]},
    )
    parsed = parse_request(text)
    assert checked_assignment(parsed) == {ORDERS: [1, 2], TopicPartition("bills", 3): [2]}
    assert parsed.log_dirs == {Replica(2, "orders", 0): "/data"}


def test_what_is_written_can_be_read() -> None:
    text = as_json({ORDERS: [1, 2]}, {Replica(2, "orders", 0): "/data"})
    assert text == (
        '{"version":1,"partitions":[{"topic":"orders","partition":0,"replicas":[1,2],"log_dirs":["any","/data"]}]}'
    )
    assert checked_assignment(parse_request(text)) == {ORDERS: [1, 2]}


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("{", "not a valid JSON"),
        ("[]", "Expected JSON object"),
        ("[" * 100_000, "not a valid JSON"),
        ('{"version": 2}', "Not supported version field value 2"),
        ('{"partitions": 3}', "must be a list of objects with topic, partition and replicas"),
        (request({"topic": "a"}), "No such field exists: `partition`"),
        (request({"topic": "a", "partition": "0", "replicas": []}), "the field `partition` must be a number"),
        (request({"topic": "a", "partition": 0, "replicas": "1"}), "the field `replicas` must be a list"),
        (request({"topic": "a", "partition": 0, "replicas": [True]}), "must hold a number each, not true"),
        (
            request({"topic": "a", "partition": 0, "replicas": [1, 2], "log_dirs": ["any"]}),
            r"Size of replicas list \[1, 2\] is different from size of log dirs list \[any\] for partition a-0",
        ),
        (request(), "Partition reassignment list cannot be empty"),
        (request({"topic": "a", "partition": 0, "replicas": []}), "Partition replica list cannot be empty"),
        (
            request(*[{"topic": "a", "partition": 0, "replicas": [1]}] * 2),
            "Partition reassignment contains duplicate topic partitions: a-0",
        ),
        (
            request({"topic": "a", "partition": 0, "replicas": [1, 1]}),
            "Partition replica lists may not contain duplicate entries: a-0 contains multiple entries for 1",
        ),
    ],
)
def test_a_file_that_cannot_be_used_is_told_in_one_line(text: str, complaint: str) -> None:
    with pytest.raises(UserError, match=complaint):
        checked_assignment(parse_request(text))


def test_topics_and_brokers_are_named_once() -> None:
    assert parse_topics('{"topics": [{"topic": "a"}, {"topic": "b"}], "version": 1}') == ["a", "b"]
    assert parse_brokers("1,2") == [1, 2]
    with pytest.raises(UserError, match=r"List of topics to reassign contains duplicate entries: \[a\]"):
        parse_topics('{"topics": [{"topic": "a"}, {"topic": "a"}]}')
    with pytest.raises(UserError, match=r"Broker list contains duplicate entries: \[1\]"):
        parse_brokers("1,2,1")
    with pytest.raises(UserError, match="'x' is none"):
        parse_brokers("1,x")


def test_a_throttle_names_who_sends_and_who_fetches() -> None:
    moves = proposed_moves({}, {ORDERS: [3, 2]}, {ORDERS: [1, 2]})
    assert topic_throttles(moves) == {
        "orders": {
            "leader.replication.throttled.replicas": "0:1,0:2",
            "follower.replication.throttled.replicas": "0:3",
        }
    }
    assert brokers_of(moves) == [1, 2, 3]


def test_a_throttle_goes_on_for_what_moves_already() -> None:
    other = TopicPartition("bills", 1)
    ongoing = {ORDERS: Reassignment([3, 2, 1], [3], [1]), other: Reassignment([1, 4], [4], [])}
    moves = proposed_moves(ongoing, {ORDERS: [3, 2]}, {ORDERS: [3, 2, 1]})
    assert topic_throttles(moves) == {
        "bills": {
            "leader.replication.throttled.replicas": "1:1",
            "follower.replication.throttled.replicas": "1:4",
        },
        "orders": {
            "leader.replication.throttled.replicas": "0:1,0:2",
            "follower.replication.throttled.replicas": "0:3",
        },
    }
