"""Real clients under access rules: with exactly those that Kafka documents for them, and when a rule is taken away."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer

from penstock.model.acl import Operation, Pattern, Permission, ResourceType, Rule
from penstock.model.endpoints import Address
from penstock.stack.certificates import Authority
from tests.clients.driver import WAIT_S, wait_until
from tests.security.guard_cases import request_of
from tests.security.guarded_broker import GuardedBroker, ask
from tests.security.secured_broker import SecuredBroker

TOPIC = Pattern(ResourceType.TOPIC, "orders")
GROUP = Pattern(ResourceType.GROUP, "readers")
NEWER_GROUP = Pattern(ResourceType.GROUP, "newer-readers")


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GuardedBroker]:
    with GuardedBroker(tmp_path_factory.mktemp("guarded"), ["admin", "writer", "reader"]) as broker:
        broker.set_rules(rules())
        writer = producer(broker, "admin")
        for number in range(10):
            writer.produce("orders", f"first {number}")
            writer.produce("secrets", f"secret {number}")
        assert writer.flush(WAIT_S) == 0
        yield broker


def allow(user: str, *operations: Operation) -> list[Rule]:
    return [Rule(f"User:{user}", "*", operation, Permission.ALLOW) for operation in operations]


def rules() -> dict[Pattern, list[Rule]]:
    """What `kafka-acls --producer` and `--consumer` would add."""
    return {
        TOPIC: allow("writer", Operation.WRITE, Operation.DESCRIBE, Operation.CREATE)
        + allow("reader", Operation.READ, Operation.DESCRIBE),
        GROUP: allow("reader", Operation.READ),
        NEWER_GROUP: allow("reader", Operation.READ),
    }


def options(broker: GuardedBroker, user: str) -> dict[str, Any]:
    return {
        "bootstrap.servers": broker.bootstrap,
        "security.protocol": "sasl_plaintext",
        "sasl.mechanisms": "PLAIN",
        "sasl.username": user,
        "sasl.password": user,
        "log_level": 0,
    }


def producer(broker: GuardedBroker, user: str) -> Producer:
    return Producer({**options(broker, user), "acks": "all", "enable.idempotence": True})


def consumer(broker: GuardedBroker, **more: Any) -> Consumer:
    settings = {
        "group.id": "readers",
        "auto.offset.reset": "earliest",
        "topic.metadata.refresh.interval.ms": 500,
    }
    return Consumer({**options(broker, "reader"), **settings, **more})


class Reading:
    def __init__(self, consumer: Consumer) -> None:
        self.consumer = consumer
        self.values: list[bytes] = []
        self.errors: list[int] = []

    def until(self, what: str, count: int) -> None:
        wait_until(lambda: self.go_on() or len(self.values) >= count, what)

    def until_refused(self, code: int) -> None:
        self.errors.clear()
        wait_until(lambda: self.go_on() or code in self.errors, "a refusal")

    def go_on(self) -> None:
        try:
            for message in self.consumer.consume(100, 0.2):
                error = message.error()
                if error:
                    self.errors.append(error.code())
                else:
                    self.values.append(message.value())
        except KafkaException as failure:
            self.errors.append(failure.args[0].code())


def test_a_producer_and_a_consumer_need_the_rules_that_kafka_documents(broker: GuardedBroker) -> None:
    writer = producer(broker, "writer")
    failures: list[Any] = []
    for number in range(10):
        writer.produce("orders", f"{number}", on_delivery=lambda error, _: failures.append(error))
    assert writer.flush(WAIT_S) == 0
    assert failures == [None] * 10
    reading = Reading(consumer(broker))
    try:
        reading.consumer.subscribe(["orders"])
        reading.until("all records", 20)
        reading.consumer.commit(asynchronous=False)
    finally:
        reading.consumer.close()


def test_a_topic_that_may_not_be_written_looks_like_one_that_is_not_there(
    broker: GuardedBroker, caplog: pytest.LogCaptureFixture
) -> None:
    writer = producer(broker, "writer")
    failures: list[Any] = []
    with caplog.at_level(logging.INFO, "penstock.authorizer"):
        for topic in ("secrets", "no-such-topic"):
            writer.produce(topic, "v", on_delivery=lambda error, _: failures.append(error.code()))
        assert writer.flush(WAIT_S) == 0
    assert failures == [KafkaError.TOPIC_AUTHORIZATION_FAILED] * 2
    line = "Principal = User:writer is Denied operation = DESCRIBE from host = 127.0.0.1 on resource = TOPIC:secrets"
    assert line in caplog.text


def test_writing_brings_describe_and_a_denial_of_describe_stops_it(broker: GuardedBroker) -> None:
    def written() -> int | None:
        failures: list[Any] = []
        writer = producer(broker, "writer")
        writer.produce("orders", "v", on_delivery=lambda error, _: failures.append(error))
        assert writer.flush(WAIT_S) == 0
        return failures[0] and failures[0].code()

    only_write = allow("writer", Operation.WRITE)
    try:
        broker.set_rules({TOPIC: only_write})
        assert written() is None
        deny = Rule("User:writer", "*", Operation.DESCRIBE, Permission.DENY)
        broker.set_rules({TOPIC: [*only_write, deny]})
        assert written() == KafkaError.TOPIC_AUTHORIZATION_FAILED
    finally:
        broker.set_rules(rules())


def test_a_rule_that_is_taken_away_acts_on_the_next_request(broker: GuardedBroker) -> None:
    reading = Reading(consumer(broker, **{"group.id": "readers", "enable.auto.commit": False}))
    writer = producer(broker, "admin")
    try:
        reading.consumer.subscribe(["orders"])
        wait_until(lambda: reading.go_on() or bool(reading.consumer.assignment()), "an assignment")
        broker.set_rules({TOPIC: []})
        reading.until_refused(KafkaError.TOPIC_AUTHORIZATION_FAILED)
        writer.produce("orders", "unseen")
        assert writer.flush(WAIT_S) == 0
        reading.go_on()
        assert b"unseen" not in reading.values
        broker.set_rules(rules())
        wait_until(lambda: reading.go_on() or b"unseen" in reading.values, "the record")
        broker.set_rules({GROUP: []})
        wait_until(lambda: is_refused_to_commit(reading.consumer), "a commit to be refused")
    finally:
        broker.set_rules(rules())
        reading.consumer.close()


def is_refused_to_commit(consumer: Consumer) -> bool:
    try:
        consumer.commit(asynchronous=False)
    except KafkaException as failure:
        return bool(failure.args[0].code() == KafkaError.GROUP_AUTHORIZATION_FAILED)
    return False


def test_a_regular_expression_matches_what_a_member_may_see(broker: GuardedBroker) -> None:
    """Of the newer protocol, where the broker does the matching."""
    reading = Reading(consumer(broker, **{"group.id": "newer-readers", "group.protocol": "consumer"}))
    try:
        reading.consumer.subscribe(["^(orders|secrets)"])
        reading.until("the records of one topic", 10)
        request = request_of("consumer_group_describe", group_ids=["newer-readers"])
        described = ask(Address("127.0.0.1", broker.port), "admin", request, 0)
        (member,) = described.groups[0].members
        assert {each.topic_name for each in member.assignment.topic_partitions} == {"orders"}
        assert not [value for value in reading.values if value.startswith(b"secret")]
    finally:
        reading.consumer.close()


def test_super_users_without_an_authorizer_are_told_of(tmp_path: Path, authority: Authority) -> None:
    """Kafka says nothing, and an operator may believe that rules are checked."""
    with SecuredBroker(tmp_path, authority, **{"super.users": "User:admin"}) as broker:
        told = "super.users without authorizer.class.name: nothing is checked"
        wait_until(lambda: told in broker.log(), "a line in the log")
