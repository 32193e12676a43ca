"""kill -9 in the middle of work, again and again on one directory: nothing acknowledged is missing, nothing is there twice."""

import random
import threading
import time
from collections import defaultdict
from functools import partial

import pytest
from confluent_kafka import KafkaError, KafkaException, Message, Producer
from confluent_kafka.admin import AdminClient, NewTopic

from penstock.testing.penstock_broker import PenstockBroker
from tests.conftest import StartBroker
from tests.crash.plain_client import create_topic, delete_topic, produce, read_all, topics_of, wait_until

ROUNDS = 5
PARTITIONS = 3
DRAIN_S = 60.0


class StormyProducer(threading.Thread):
    """Sends numbered values to all partitions until told to stop, and notes which were acknowledged."""

    def __init__(self, bootstrap: str, topic: str, name: str) -> None:
        super().__init__(name=name, daemon=True)
        self._topic = topic
        self._ends = threading.Event()
        self._producer = Producer(
            {
                "bootstrap.servers": bootstrap,
                "acks": "all",
                "enable.idempotence": True,
                "linger.ms": 1,
                "batch.num.messages": 50,
                "delivery.timeout.ms": 120_000,
                "reconnect.backoff.max.ms": 200,
                "retry.backoff.ms": 20,
                "queue.buffering.max.messages": 2_000,
                "log_level": 0,
            }
        )
        self.sent: dict[int, list[bytes]] = defaultdict(list)
        self.acknowledged: dict[int, list[bytes]] = defaultdict(list)
        self.errors: list[str] = []

    @property
    def acknowledged_count(self) -> int:
        return sum(map(len, self.acknowledged.values()))

    def has_passed(self, count: int) -> bool:
        return bool(self.errors) or self.acknowledged_count > count

    def run(self) -> None:
        number = 0
        padding = b"." * 100
        while not self._ends.is_set():
            partition = number % PARTITIONS
            value = b"%s:%d:%s" % (self.name.encode(), number, padding)
            try:
                self._producer.produce(self._topic, value, partition=partition, on_delivery=self._delivered)
            except BufferError:
                self._producer.poll(0.01)
                continue
            except KafkaException as error:
                self.errors.append(str(error))
                return
            self.sent[partition].append(value)
            number += 1
            self._producer.poll(0)
        if self._producer.flush(DRAIN_S):
            self.errors.append("records are still not acknowledged")

    def _delivered(self, error: KafkaError | None, message: Message) -> None:
        if error is not None:
            self.errors.append(str(error))
        else:
            partition = message.partition()
            assert partition is not None
            self.acknowledged[partition].append(message.value() or b"")

    def finish(self) -> None:
        self._ends.set()
        self.join(DRAIN_S + 10)
        assert not self.is_alive()


@pytest.mark.parametrize("segment_bytes", ["1073741824", "1048576"], ids=["one segment", "many segments"])
def test_a_produce_storm_survives_five_kills(start_broker: StartBroker, segment_bytes: str) -> None:
    chance = random.Random(segment_bytes)
    broker = start_broker()
    create_topic(broker.bootstrap, "storm", partitions=PARTITIONS, config={"segment.bytes": segment_bytes})
    producers = [StormyProducer(broker.bootstrap, "storm", f"p{number}") for number in range(3)]
    for producer in producers:
        producer.start()
    for _ in range(ROUNDS):
        counts = [producer.acknowledged_count for producer in producers]
        for producer, count in zip(producers, counts, strict=True):
            wait_until(partial(producer.has_passed, count + 200), what=f"the progress of {producer.name}")
        time.sleep(chance.uniform(0, 0.2))  # a random moment, not a wait for anything
        broker.kill()
        broker = start_broker(port=broker.port)
    for producer in producers:
        producer.finish()
    assert [producer.errors for producer in producers] == [[], [], []]
    for partition in range(PARTITIONS):
        stored = read_all(broker.bootstrap, "storm", partition=partition)
        for producer in producers:
            mine = [value for value in stored if value.startswith(producer.name.encode() + b":")]
            assert mine == producer.sent[partition]
            assert mine == producer.acknowledged[partition]


def test_topics_made_and_deleted_in_a_storm_are_what_the_answers_said(start_broker: StartBroker) -> None:
    chance = random.Random(9)
    broker = start_broker()
    made: set[str] = set()
    deleted: set[str] = set()
    unclear: set[str] = set()
    for storm in range(3):
        storming = _TopicStorm(broker.bootstrap, prefix=f"t{storm}")
        storming.start()
        wait_until(storming.has_begun, what="some topics")
        time.sleep(chance.uniform(0, 0.1))  # a random moment, not a wait for anything
        broker.kill()
        storming.join(30)
        assert not storming.is_alive()
        made |= storming.made
        deleted |= storming.deleted
        unclear |= storming.unclear
        broker = start_broker(port=broker.port)
        found = topics_of(broker.bootstrap)
        assert set(found) - unclear == made - deleted - unclear
        assert set(found.values()) <= {2}
        directories = {path.name for path in broker.data_dir.iterdir() if path.is_dir()}
        assert directories >= {f"{name}-{index}" for name in found for index in range(2)}
    for name in chance.sample(sorted(made - deleted - unclear), 5):
        produce(broker.bootstrap, name, [b"alive"], partition=1)


class _TopicStorm(threading.Thread):
    """Makes topics and deletes every other one, one at a time, until the broker is gone."""

    def __init__(self, bootstrap: str, *, prefix: str) -> None:
        super().__init__(daemon=True)
        self._admin = AdminClient({"bootstrap.servers": bootstrap, "log_level": 0})
        self._prefix = prefix
        self.made: set[str] = set()
        self.deleted: set[str] = set()
        self.unclear: set[str] = set()

    def has_begun(self) -> bool:
        return len(self.made) > 10

    def run(self) -> None:
        for number in range(10_000):
            name = f"{self._prefix}-{number}"
            self.unclear = {name}
            try:
                self._admin.create_topics([NewTopic(name, 2, 1)], request_timeout=2)[name].result(10)
                self.made.add(name)
                if number % 2:
                    self._admin.delete_topics([name], request_timeout=2)[name].result(10)
                    self.deleted.add(name)
            except KafkaException:
                return
            self.unclear = set()


def test_a_topic_made_again_after_a_crash_in_its_deletion_is_empty(start_broker: StartBroker) -> None:
    """Metadata says it is gone, but the crash came before its directory was moved away."""
    broker = start_broker()
    create_topic(broker.bootstrap, "twice")
    produce(broker.bootstrap, "twice", [b"of the first"])
    directory = broker.data_dir / "twice-0"
    kept = {path.name: path.read_bytes() for path in directory.iterdir()}
    delete_topic(broker.bootstrap, "twice")
    wait_until(lambda: not directory.exists(), what="the directory's end")
    broker.kill()
    directory.mkdir()
    for name, content in kept.items():
        (directory / name).write_bytes(content)
    again = start_broker(port=broker.port)
    assert "twice" not in topics_of(again.bootstrap)
    create_topic(again.bootstrap, "twice")
    assert read_all(again.bootstrap, "twice") == []


def test_a_topic_whose_directory_was_never_made_is_whole_after_the_crash(start_broker: StartBroker) -> None:
    """The other half: metadata says it is there, but the crash came before its directory."""
    broker = start_broker()
    create_topic(broker.bootstrap, "late", partitions=2)
    broker.kill()
    for path in (broker.data_dir / "late-1").iterdir():
        path.unlink()
    (broker.data_dir / "late-1").rmdir()
    again: PenstockBroker = start_broker(port=broker.port)
    produce(again.bootstrap, "late", [b"works"], partition=1)
    assert read_all(again.bootstrap, "late", partition=1) == [b"works"]


def test_a_half_deleted_directory_is_removed_at_the_next_start(start_broker: StartBroker) -> None:
    broker = start_broker()
    create_topic(broker.bootstrap, "kept")
    broker.kill()
    leftover = broker.data_dir / ("gone-0." + "0123456789abcdef" * 2 + "-delete")
    leftover.mkdir()
    (leftover / "00000000000000000000.log").write_bytes(b"x" * 1000)
    again = start_broker(port=broker.port)
    wait_until(lambda: not leftover.exists(), what="the end of the leftover")
    assert set(topics_of(again.bootstrap)) == {"kept"}
