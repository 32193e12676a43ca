"""Consumer groups: members share the partitions, offsets are kept, and whoever comes next goes on from there."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from penstock.testing.penstock_broker import PenstockBroker
from tests.clients.admin import create_topic, delete_records
from tests.clients.driver import (
    WAIT_S,
    Consumer,
    Driver,
    NoStartingOffset,
    Received,
    Record,
    produce,
    read,
    wait_until,
)
from tests.conftest import MakeTopic, StartBroker


def values(received: list[Received]) -> list[bytes | None]:
    return [each.record.value for each in received]


def numbered(first: int, last: int, *, partitions: int = 1) -> list[Record]:
    return [Record(b"%04d" % number, partition=number % partitions) for number in range(first, last)]


@contextmanager
def member(driver: Driver, bootstrap: str, group: str, **options: object) -> Iterator[Consumer]:
    consumer = driver.consumer(bootstrap, group=group, **options)  # type: ignore[arg-type]
    try:
        yield consumer
    finally:
        consumer.close()


def test_a_group_goes_on_where_its_last_member_committed(
    broker: PenstockBroker, make_topic: MakeTopic, driver: Driver
) -> None:
    topic = make_topic()
    group = f"group-of-{topic}"
    produce(driver, broker.bootstrap, topic, numbered(0, 100))
    with member(driver, broker.bootstrap, group, topics=[topic]) as consumer:
        assert values(read(consumer, 100))[-1] == b"0099"
        consumer.commit()
    produce(driver, broker.bootstrap, topic, numbered(100, 110))
    with member(driver, broker.bootstrap, group, topics=[topic]) as consumer:
        assert values(read(consumer, 10)) == [record.value for record in numbered(100, 110)]
    # That member did not commit, so the next one reads the same again.
    with member(driver, broker.bootstrap, group, topics=[topic]) as consumer:
        assert values(read(consumer, 10)) == [record.value for record in numbered(100, 110)]


@pytest.mark.parametrize("ending", ["stop", "kill"])
def test_committed_offsets_outlive_the_broker(
    start_broker: StartBroker, topic_name: str, driver: Driver, ending: str
) -> None:
    broker = start_broker()
    create_topic(broker.bootstrap, topic_name, partitions=2)
    produce(driver, broker.bootstrap, topic_name, numbered(0, 100, partitions=2))
    with member(driver, broker.bootstrap, "group", topics=[topic_name]) as consumer:
        read(consumer, 100)
        consumer.commit()
    broker.stop() if ending == "stop" else broker.kill()
    start_broker(port=broker.port)
    produce(driver, broker.bootstrap, topic_name, numbered(100, 110, partitions=2))
    with member(driver, broker.bootstrap, "group", topics=[topic_name]) as consumer:
        received = sorted(value or b"" for value in values(read(consumer, 10)))
    assert received == [record.value for record in numbered(100, 110)]


def test_a_member_goes_on_through_a_restart_of_the_broker(
    start_broker: StartBroker, topic_name: str, driver: Driver
) -> None:
    broker = start_broker()
    create_topic(broker.bootstrap, topic_name)
    produce(driver, broker.bootstrap, topic_name, numbered(0, 10))
    with member(driver, broker.bootstrap, "group", topics=[topic_name]) as consumer:
        assert len(read(consumer, 10)) == 10
        consumer.commit()
        broker.stop()
        start_broker(port=broker.port)
        produce(driver, broker.bootstrap, topic_name, numbered(10, 20))
        assert values(read(consumer, 10, timeout_s=40)) == [record.value for record in numbered(10, 20)]
        consumer.commit()


class PollingMember:
    """A member that polls in a thread of its own, as a member must to stay one, until it is told to leave."""

    def __init__(self, driver: Driver, bootstrap: str, group: str, topics: list[str]) -> None:
        self.received: list[Received] = []
        self._leave = threading.Event()
        self._consumer = driver.consumer(bootstrap, group=group, topics=topics)
        self._thread = threading.Thread(target=self._poll, daemon=True)
        self.partitions: set[tuple[str, int]] = set()
        self._thread.start()

    def _poll(self) -> None:
        while not self._leave.is_set():
            self.received += self._consumer.poll(0.1)
            self.partitions = self._consumer.assignment()
        self._consumer.close()

    def leave(self) -> None:
        self._leave.set()
        self._thread.join(WAIT_S)
        assert not self._thread.is_alive()


def test_two_members_share_the_partitions_and_one_takes_over_when_the_other_leaves(
    broker: PenstockBroker, make_topic: MakeTopic, driver: Driver
) -> None:
    topic = make_topic(partitions=4)
    group = f"group-of-{topic}"
    everything = {(topic, index) for index in range(4)}
    first = PollingMember(driver, broker.bootstrap, group, [topic])
    second = None
    try:
        wait_until(lambda: first.partitions == everything, "the first member has all partitions")
        second = PollingMember(driver, broker.bootstrap, group, [topic])
        wait_until(
            lambda: (
                len(first.partitions) == 2
                and len(second.partitions) == 2
                and first.partitions | second.partitions == everything
            ),
            "each member has two partitions",
        )
        produce(driver, broker.bootstrap, topic, numbered(0, 200, partitions=4))
        wait_until(lambda: len(first.received) + len(second.received) >= 200, "all records have come")
        both = sorted(value or b"" for value in values(first.received + second.received))
        assert both == [record.value for record in numbered(0, 200)]
        assert {(topic, each.record.partition) for each in second.received} == second.partitions
        first.leave()
        wait_until(lambda: second.partitions == everything, "the second member has all partitions")
    finally:
        first.leave()
        if second is not None:
            second.leave()


def test_members_of_different_libraries_share_one_group(
    broker: PenstockBroker, make_topic: MakeTopic, drivers: dict[str, Driver]
) -> None:
    # Both offer round robin or range under Kafka's names and formats; the broker picks one that all of them know.
    topic = make_topic(partitions=4)
    group = f"group-of-{topic}"
    members = [
        PollingMember(drivers[name], broker.bootstrap, group, [topic])
        for name in ("kafka_python", "aiokafka")
    ]
    try:
        wait_until(lambda: [len(each.partitions) for each in members] == [2, 2], "each has two partitions")
        produce(drivers["confluent"], broker.bootstrap, topic, numbered(0, 100, partitions=4))
        wait_until(lambda: sum(len(each.received) for each in members) == 100, "all records have come")
    finally:
        for each in members:
            each.leave()


def test_without_an_offset_the_reset_policy_decides(
    broker: PenstockBroker, make_topic: MakeTopic, driver: Driver
) -> None:
    topic = make_topic()
    produce(driver, broker.bootstrap, topic, numbered(0, 10))
    with member(driver, broker.bootstrap, f"early-{topic}", topics=[topic]) as consumer:
        assert values(read(consumer, 10)) == [record.value for record in numbered(0, 10)]
    with member(driver, broker.bootstrap, f"late-{topic}", topics=[topic], offset_reset="latest") as consumer:
        received: list[Received] = []
        number = 10

        # When a consumer has found the end cannot be seen from outside: records are sent until one comes.
        def has_come() -> bool:
            nonlocal number
            produce(driver, broker.bootstrap, topic, numbered(number, number + 1))
            number += 1
            received.extend(consumer.poll(0.2))
            return bool(received)

        wait_until(has_come, "a record sent after the consumer began")
        assert received[0].offset >= 10
    with (
        member(driver, broker.bootstrap, f"none-{topic}", topics=[topic], offset_reset="none") as consumer,
        pytest.raises(NoStartingOffset),
    ):
        read(consumer, 1)


def test_a_position_that_was_deleted_is_out_of_range_and_the_reset_policy_decides(
    broker: PenstockBroker, make_topic: MakeTopic, driver: Driver
) -> None:
    topic = make_topic()
    group = f"group-of-{topic}"
    produce(driver, broker.bootstrap, topic, numbered(0, 100))
    with member(driver, broker.bootstrap, group, topics=[topic]) as consumer:
        read(consumer, 100)
        consumer.seek(topic, 0, 10)
        read(consumer, 90)
        delete_records(broker.bootstrap, topic, 0, 60)
        consumer.seek(topic, 0, 20)
        received = read(consumer, 40)
    assert [received[0].offset, received[-1].offset] == [60, 99]


def test_a_pattern_takes_in_topics_that_are_made_later(
    broker: PenstockBroker, topic_name: str, driver: Driver
) -> None:
    names = [f"pattern-{topic_name}-{number}" for number in range(3)]
    create_topic(broker.bootstrap, names[0])
    create_topic(broker.bootstrap, f"other-{topic_name}")
    pattern = f"pattern-{topic_name}-[01]"
    with member(driver, broker.bootstrap, f"group-{topic_name}", pattern=pattern) as consumer:
        produce(driver, broker.bootstrap, names[0], numbered(0, 5))
        assert len(read(consumer, 5)) == 5
        consumer.commit()
        for name in names[1:]:
            create_topic(broker.bootstrap, name)
            produce(driver, broker.bootstrap, name, numbered(5, 10))
        assert {each.topic for each in read(consumer, 5)} == {names[1]}
        assert {topic for topic, _ in consumer.assignment()} == set(names[:2])
