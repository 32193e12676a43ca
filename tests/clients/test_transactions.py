"""Transactions with real clients: all or nothing, one writer per transactional id, and offsets that go along."""

import asyncio
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from aiokafka import AIOKafkaProducer
from aiokafka.errors import ProducerFenced
from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer, TopicPartition

from penstock.testing.penstock_broker import PenstockBroker
from tests.clients.admin import create_topic, delete_topic
from tests.clients.driver import WAIT_S, wait_until
from tests.conftest import MakeTopic, StartBroker

READ_COMMITTED, READ_UNCOMMITTED = "read_committed", "read_uncommitted"
SHORT_S = 1.0


def transactional(bootstrap: str, transactional_id: str, **options: Any) -> Producer:
    producer = Producer(
        {
            "bootstrap.servers": bootstrap,
            "transactional.id": transactional_id,
            "linger.ms": 0,
            "log_level": 0,
            "metadata.recovery.strategy": "none",
            **options,
        }
    )
    producer.init_transactions(WAIT_S)
    return producer


def produce_plainly(bootstrap: str, topic: str, *values: bytes, partition: int = 0) -> None:
    producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 0, "log_level": 0})
    for value in values:
        producer.produce(topic, value, partition=partition)
    assert producer.flush(WAIT_S) == 0


@contextmanager
def reading(bootstrap: str, topic: str, isolation: str, *, partitions: int = 1) -> Iterator[Consumer]:
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "not used",
            "enable.auto.commit": False,
            "isolation.level": isolation,
            "log_level": 0,
        }
    )
    consumer.assign([TopicPartition(topic, index, 0) for index in range(partitions)])
    try:
        yield consumer
    finally:
        consumer.close()


def values_until_quiet(
    bootstrap: str, topic: str, isolation: str, *, expected: int, partitions: int = 1
) -> list[bytes]:
    """So many values, and then nothing more for a while."""
    values: list[bytes] = []
    with reading(bootstrap, topic, isolation, partitions=partitions) as consumer:
        deadline = time.monotonic() + WAIT_S
        while time.monotonic() < deadline:
            message = consumer.poll(SHORT_S if len(values) >= expected else 0.1)
            if message is None:
                if len(values) >= expected:
                    break
                continue
            assert message.error() is None, message.error()
            values.append(message.value() or b"")
    return values


def error_code(refusal: pytest.ExceptionInfo[KafkaException]) -> int:
    error: KafkaError = refusal.value.args[0]
    return error.code()


def test_committed_records_are_seen_and_aborted_ones_are_not(
    broker: PenstockBroker, make_topic: MakeTopic
) -> None:
    topic = make_topic(partitions=2)
    producer = transactional(broker.bootstrap, f"writer-of-{topic}")
    for number, commit in enumerate((True, False, True)):
        producer.begin_transaction()
        for partition in (0, 1):
            producer.produce(topic, f"{number}-{partition}", partition=partition)
        producer.commit_transaction(WAIT_S) if commit else producer.abort_transaction(WAIT_S)
    committed = values_until_quiet(broker.bootstrap, topic, READ_COMMITTED, expected=4, partitions=2)
    assert sorted(committed) == [b"0-0", b"0-1", b"2-0", b"2-1"]
    # librdkafka drops an aborted batch that it has not sent yet; the first flush of that transaction may be empty.
    everything = values_until_quiet(broker.bootstrap, topic, READ_UNCOMMITTED, expected=4, partitions=2)
    assert set(everything) >= set(committed)


def test_an_aborted_record_that_was_stored_is_seen_by_read_uncommitted_alone(
    broker: PenstockBroker, make_topic: MakeTopic
) -> None:
    topic = make_topic()
    producer = transactional(broker.bootstrap, f"writer-of-{topic}")
    producer.begin_transaction()
    producer.produce(topic, b"aborted")
    assert producer.flush(WAIT_S) == 0
    producer.abort_transaction(WAIT_S)
    produce_plainly(broker.bootstrap, topic, b"plain")
    assert values_until_quiet(broker.bootstrap, topic, READ_UNCOMMITTED, expected=2) == [b"aborted", b"plain"]
    assert values_until_quiet(broker.bootstrap, topic, READ_COMMITTED, expected=1) == [b"plain"]


def test_nothing_behind_an_open_transaction_is_seen_until_it_ends(
    broker: PenstockBroker, make_topic: MakeTopic
) -> None:
    topic = make_topic()
    producer = transactional(broker.bootstrap, f"writer-of-{topic}")
    produce_plainly(broker.bootstrap, topic, b"before")
    producer.begin_transaction()
    producer.produce(topic, b"inside")
    assert producer.flush(WAIT_S) == 0
    produce_plainly(broker.bootstrap, topic, b"after")
    assert values_until_quiet(broker.bootstrap, topic, READ_COMMITTED, expected=1) == [b"before"]
    with reading(broker.bootstrap, topic, READ_COMMITTED) as consumer:
        position = TopicPartition(topic, 0)
        assert consumer.get_watermark_offsets(position, timeout=WAIT_S) == (0, 1)
        assert (consumer.poll(WAIT_S) or pytest.fail("nothing came")).value() == b"before"
        # It waits at the last stable offset, and is woken when that moves.
        producer.commit_transaction(WAIT_S)
        seen = [(consumer.poll(WAIT_S) or pytest.fail("nothing came")).value() for _ in range(2)]
        assert seen == [b"inside", b"after"]


def test_an_older_producer_of_the_same_id_is_fenced(broker: PenstockBroker, make_topic: MakeTopic) -> None:
    topic = make_topic()
    older = transactional(broker.bootstrap, f"writer-of-{topic}")
    older.begin_transaction()
    older.produce(topic, b"of the older one")
    assert older.flush(WAIT_S) == 0
    newer = transactional(broker.bootstrap, f"writer-of-{topic}")
    newer.begin_transaction()
    newer.produce(topic, b"of the newer one")
    newer.commit_transaction(WAIT_S)
    with pytest.raises(KafkaException) as refusal:
        older.commit_transaction(WAIT_S)
    assert error_code(refusal) == KafkaError._FENCED
    assert values_until_quiet(broker.bootstrap, topic, READ_COMMITTED, expected=1) == [b"of the newer one"]


def test_two_libraries_with_one_transactional_id_fence_each_other(
    broker: PenstockBroker, make_topic: MakeTopic
) -> None:
    topic = make_topic()
    transactional_id = f"writer-of-{topic}"

    async def with_aiokafka() -> None:
        producer = AIOKafkaProducer(bootstrap_servers=broker.bootstrap, transactional_id=transactional_id)
        await producer.start()
        try:
            async with producer.transaction():
                await producer.send_and_wait(topic, b"aiokafka")
            newer = await asyncio.to_thread(transactional, broker.bootstrap, transactional_id)
            newer.begin_transaction()
            newer.produce(topic, b"confluent")
            await asyncio.to_thread(newer.commit_transaction, WAIT_S)
            with pytest.raises(ProducerFenced):
                async with producer.transaction():
                    await producer.send_and_wait(topic, b"too late")
        finally:
            await producer.stop()

    asyncio.run(asyncio.wait_for(with_aiokafka(), 2 * WAIT_S))
    values = values_until_quiet(broker.bootstrap, topic, READ_COMMITTED, expected=2)
    assert values == [b"aiokafka", b"confluent"]


def test_a_transaction_that_takes_too_long_is_aborted_by_the_broker(
    broker: PenstockBroker, make_topic: MakeTopic
) -> None:
    topic = make_topic()
    producer = transactional(broker.bootstrap, f"writer-of-{topic}", **{"transaction.timeout.ms": 1000})
    producer.begin_transaction()
    producer.produce(topic, b"too slow")
    assert producer.flush(WAIT_S) == 0
    produce_plainly(broker.bootstrap, topic, b"behind it")
    assert values_until_quiet(broker.bootstrap, topic, READ_COMMITTED, expected=1) == [b"behind it"]
    with pytest.raises(KafkaException):
        producer.commit_transaction(WAIT_S)


def committed_offset(bootstrap: str, group: str, topic: str) -> int:
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": group, "log_level": 0})
    try:
        (place,) = consumer.committed([TopicPartition(topic, 0)], timeout=WAIT_S)
        return int(place.offset)
    finally:
        consumer.close()


def next_message(consumer: Consumer) -> Message:
    deadline = time.monotonic() + WAIT_S
    while time.monotonic() < deadline:
        message = consumer.poll(0.1)
        if message is not None and message.error() is None:
            return message
    pytest.fail("nothing came")


@pytest.mark.parametrize("group_protocol", ["classic", "consumer"])
def test_offsets_go_with_the_transaction(
    broker: PenstockBroker, make_topic: MakeTopic, group_protocol: str
) -> None:
    source, target = make_topic(), make_topic()
    group = f"copiers-of-{source}"
    produce_plainly(broker.bootstrap, source, b"a", b"b", b"c")
    producer = transactional(broker.bootstrap, f"copier-of-{source}")
    consumer = Consumer(
        {
            "bootstrap.servers": broker.bootstrap,
            "group.id": group,
            "group.protocol": group_protocol,
            "enable.auto.commit": False,
            "auto.offset.reset": "earliest",
            "log_level": 0,
        }
    )
    try:
        consumer.subscribe([source])
        for commit in (False, True):
            message = next_message(consumer)
            producer.begin_transaction()
            producer.produce(target, message.value())
            position = [TopicPartition(source, 0, (message.offset() or 0) + 1)]
            producer.send_offsets_to_transaction(position, consumer.consumer_group_metadata(), WAIT_S)
            producer.commit_transaction(WAIT_S) if commit else producer.abort_transaction(WAIT_S)
            assert committed_offset(broker.bootstrap, group, source) == (2 if commit else -1001)
    finally:
        consumer.close()
    assert values_until_quiet(broker.bootstrap, target, READ_COMMITTED, expected=1) == [b"b"]


def test_a_commit_outlives_the_broker_and_an_open_transaction_goes_on_after_it(
    start_broker: StartBroker, topic_name: str
) -> None:
    broker = start_broker()
    create_topic(broker.bootstrap, topic_name)
    producer = transactional(broker.bootstrap, "writer")
    producer.begin_transaction()
    producer.produce(topic_name, b"committed")
    producer.commit_transaction(WAIT_S)
    producer.begin_transaction()
    producer.produce(topic_name, b"open")
    assert producer.flush(WAIT_S) == 0
    broker.kill()
    start_broker(port=broker.port)
    assert values_until_quiet(broker.bootstrap, topic_name, READ_COMMITTED, expected=1) == [b"committed"]
    producer.produce(topic_name, b"and on")
    producer.commit_transaction(2 * WAIT_S)
    values = values_until_quiet(broker.bootstrap, topic_name, READ_COMMITTED, expected=3)
    assert values == [b"committed", b"open", b"and on"]


def test_the_timeout_of_a_transaction_runs_on_through_a_restart(
    start_broker: StartBroker, topic_name: str
) -> None:
    broker = start_broker()
    create_topic(broker.bootstrap, topic_name)
    producer = transactional(broker.bootstrap, "writer", **{"transaction.timeout.ms": 1500})
    producer.begin_transaction()
    producer.produce(topic_name, b"never ended")
    assert producer.flush(WAIT_S) == 0
    del producer
    broker.kill()
    start_broker(port=broker.port)
    produce_plainly(broker.bootstrap, topic_name, b"behind it")
    assert values_until_quiet(broker.bootstrap, topic_name, READ_COMMITTED, expected=1) == [b"behind it"]


def test_a_transaction_over_a_topic_that_is_deleted_meanwhile_still_ends(
    broker: PenstockBroker, make_topic: MakeTopic
) -> None:
    kept, deleted = make_topic(), make_topic()
    producer = transactional(broker.bootstrap, f"writer-of-{kept}")
    producer.begin_transaction()
    for topic in (kept, deleted):
        producer.produce(topic, b"1")
    assert producer.flush(WAIT_S) == 0
    delete_topic(broker.bootstrap, deleted)
    producer.commit_transaction(WAIT_S)
    producer.begin_transaction()
    producer.produce(kept, b"2")
    producer.commit_transaction(WAIT_S)
    assert values_until_quiet(broker.bootstrap, kept, READ_COMMITTED, expected=2) == [b"1", b"2"]


COPIER = """
    import sys
    from confluent_kafka import Consumer, Producer, TopicPartition
    bootstrap, source, target, group = sys.argv[1:]
    # librdkafka 2.16 loses a request that is on its way when it starts from its bootstrap list again.
    common = {"bootstrap.servers": bootstrap, "metadata.recovery.strategy": "none", "log_level": 0}
    producer = Producer({**common, "transactional.id": "copier"})
    producer.init_transactions(60)
    consumer = Consumer({**common, "group.id": group, "enable.auto.commit": False, "session.timeout.ms": 6000,
                         "auto.offset.reset": "earliest", "isolation.level": "read_committed"})
    consumer.subscribe([source])
    while True:
        messages = [each for each in consumer.consume(20, 0.5) if each.error() is None]
        if not messages:
            continue
        producer.begin_transaction()
        for message in messages:
            producer.produce(target, message.value(), partition=message.partition())
        positions = [TopicPartition(source, place.partition, place.offset)
                     for place in consumer.position(consumer.assignment()) if place.offset >= 0]
        producer.send_offsets_to_transaction(positions, consumer.consumer_group_metadata(), 30)
        producer.commit_transaction(30)
        print("committed", len(messages), flush=True)
"""


class Copier:
    """The program above in a process of its own; says how much it has committed."""

    def __init__(self, *arguments: str) -> None:
        self.committed = 0
        self._process = subprocess.Popen(
            [sys.executable, "-c", textwrap.dedent(COPIER), *arguments], stdout=subprocess.PIPE, text=True
        )
        self._listener = threading.Thread(target=self._listen, daemon=True)
        self._listener.start()

    def _listen(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            if line.endswith("\n"):  # the last words of one that was killed may be cut short
                self.committed += int(line.split()[1])

    def commits(self, count: int) -> None:
        """Waits until so many more records have been committed."""
        target = self.committed + count

        def has_committed() -> bool:
            assert self._process.poll() is None, "the copier has ended"
            return self.committed >= target

        wait_until(has_committed, f"{count} records are copied", timeout_s=3 * WAIT_S)

    def kill(self) -> None:
        self._process.kill()
        self._process.wait(WAIT_S)
        self._listener.join(WAIT_S)
        assert self._process.stdout is not None
        self._process.stdout.close()


def test_copies_are_exact_although_the_copier_and_the_broker_are_killed(
    start_broker: StartBroker, topic_name: str
) -> None:
    broker = start_broker()
    bootstrap = broker.bootstrap
    source, target = f"{topic_name}-source", f"{topic_name}-target"
    for topic in (source, target):
        create_topic(bootstrap, topic, partitions=2)
    per_round = 500
    rounds = ("copier", "broker", "copier", "none")
    total = len(rounds) * per_round

    def copied() -> list[bytes]:
        return values_until_quiet(bootstrap, target, READ_COMMITTED, expected=2 * total, partitions=2)

    for number, end in enumerate(rounds):
        for partition in (0, 1):
            first = number * per_round
            values = [b"%d-%06d" % (partition, each) for each in range(first, first + per_round)]
            produce_plainly(bootstrap, source, *values, partition=partition)
        copier = Copier(bootstrap, source, target, "copiers")
        try:
            copier.commits(200)
            if end == "broker":
                broker.kill()
                broker = start_broker(port=broker.port)
                copier.commits(100)
            elif end == "none":
                wait_until(lambda: len(copied()) >= 2 * total, "all is copied", timeout_s=3 * WAIT_S)
        finally:
            copier.kill()
    everything = copied()
    for partition_name in (b"0", b"1"):
        mine = [value for value in everything if value.startswith(partition_name)]
        assert mine == [b"%s-%06d" % (partition_name, each) for each in range(total)]
