"""kill -9 in the middle of transactions: what was committed is all there, what was not is never seen, and nothing hangs."""

import os
import random
import threading
import time
from collections import defaultdict
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition

from penstock.model.errors import ErrorCode
from penstock.records.batch import CONTROL_BIT, BatchHeader, iterate_headers
from penstock.wire.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)
from tests.conftest import StartBroker
from tests.crash.plain_client import TIMEOUT_S, create_topic, wait_until
from tests.hostile.coordinator_client import Transaction, create, end_offset
from tests.hostile.raw_client import RawClient

KILLS = 6
PARTITIONS = 2
RECORDS = 6
COMMON = {"metadata.recovery.strategy": "none", "reconnect.backoff.max.ms": 100, "log_level": 0}
"""librdkafka 2.16 loses a request that is on its way when it starts from its bootstrap list again."""
FEW_PARTITIONS = {"transaction.state.log.num.partitions": "1", "offsets.topic.num.partitions": "1"}


class TransactionStorm(threading.Thread):
    """One transaction after the other, some of them aborted on purpose, until told to stop. Notes how each ended."""

    def __init__(self, bootstrap: str, topic: str, name: str) -> None:
        super().__init__(name=name, daemon=True)
        self._servers = bootstrap
        self._topic = topic
        self._ends = threading.Event()
        self.committed: set[int] = set()
        self.aborted: set[int] = set()
        self.unclear: set[int] = set()
        self.failure: BaseException | None = None

    def has_passed(self, count: int) -> bool:
        return self.failure is not None or len(self.committed) > count

    def finish(self) -> None:
        self._ends.set()
        self.join(2 * TIMEOUT_S)
        assert not self.is_alive()
        assert self.failure is None, self.failure

    def run(self) -> None:
        try:
            producer = self._new_producer()
            number = 0
            while not self._ends.is_set():
                producer = self._transact(producer, number)
                number += 1
        except BaseException as failure:
            self.failure = failure

    def _new_producer(self) -> Producer:
        producer = Producer(
            {
                "bootstrap.servers": self._servers,
                "transactional.id": self.name,
                "linger.ms": 0,
                "retry.backoff.ms": 20,
                **COMMON,
            }
        )
        producer.init_transactions(TIMEOUT_S)
        return producer

    def _transact(self, producer: Producer, number: int) -> Producer:
        is_to_commit = number % 4 != 3
        try:
            producer.begin_transaction()
            for each in range(RECORDS):
                value = f"{self.name}:{number}:{each}".encode()
                producer.produce(self._topic, value, partition=each % PARTITIONS)
            if not is_to_commit:
                producer.flush(TIMEOUT_S)
                producer.abort_transaction(TIMEOUT_S)
                self.aborted.add(number)
                return producer
            self._commit(producer)
            self.committed.add(number)
            return producer
        except KafkaException as refusal:
            error: KafkaError = refusal.args[0]
            if error.txn_requires_abort():
                producer.abort_transaction(TIMEOUT_S)
                self.aborted.add(number)
                return producer
            (self.unclear if is_to_commit else self.aborted).add(number)
            return self._new_producer()

    def _commit(self, producer: Producer) -> None:
        deadline = time.monotonic() + TIMEOUT_S
        while True:
            try:
                producer.commit_transaction(TIMEOUT_S)
                return
            except KafkaException as refusal:
                if not refusal.args[0].retriable() or time.monotonic() > deadline:
                    raise


class CommittedReader(threading.Thread):
    """Reads what is committed, all the time and from the beginning, through every restart."""

    def __init__(self, bootstrap: str, topic: str) -> None:
        super().__init__(daemon=True)
        self._ends = threading.Event()
        self._consumer = Consumer(
            {
                "bootstrap.servers": bootstrap,
                "group.id": "not used",
                "enable.auto.commit": False,
                "isolation.level": "read_committed",
                "fetch.wait.max.ms": 100,
                **COMMON,
            }
        )
        self._consumer.assign([TopicPartition(topic, index, 0) for index in range(PARTITIONS)])
        self.values: list[bytes] = []
        self.positions: dict[int, int] = defaultdict(int)

    def run(self) -> None:
        while not self._ends.is_set():
            for message in self._consumer.consume(1000, timeout=0.1):
                if message.error() is None:
                    self.values.append(message.value() or b"")
            for place in self._consumer.position(self._consumer.assignment()):
                self.positions[place.partition] = place.offset
        self._consumer.close()

    def has_reached(self, ends: dict[int, int]) -> bool:
        return all(self.positions[index] >= end for index, end in ends.items())

    def finish(self) -> None:
        self._ends.set()
        self.join(TIMEOUT_S)
        assert not self.is_alive()


def log_ends(port: int, topic: str, *, isolation_level: int) -> dict[int, int]:
    with RawClient(port) as client:
        return {
            index: end_offset(client, topic, index=index, isolation_level=isolation_level)
            for index in range(PARTITIONS)
        }


def test_a_storm_of_transactions_survives_six_kills(start_broker: StartBroker) -> None:
    chance = random.Random(6)
    broker = start_broker()
    create_topic(broker.bootstrap, "storm", partitions=PARTITIONS)
    storms = [TransactionStorm(broker.bootstrap, "storm", name) for name in ("s0", "s1")]
    reader = CommittedReader(broker.bootstrap, "storm")
    for thread in (*storms, reader):
        thread.start()
    for _ in range(KILLS):
        counts = [len(storm.committed) for storm in storms]
        for storm, count in zip(storms, counts, strict=True):
            wait_until(partial(storm.has_passed, count + 5), what=f"the progress of {storm.name}")
        time.sleep(chance.uniform(0, 0.05))  # a random moment, not a wait for anything
        broker.kill()
        broker = start_broker(port=broker.port)
    for storm in storms:
        storm.finish()
    port = broker.port
    wait_until(
        lambda: log_ends(port, "storm", isolation_level=1) == log_ends(port, "storm", isolation_level=0),
        what="the end of what is undecided",
    )
    ends = log_ends(port, "storm", isolation_level=1)
    wait_until(lambda: reader.has_reached(ends), what="the end for the reader")
    reader.finish()
    assert len(reader.values) == len(set(reader.values)), "something was read twice"
    for storm in storms:
        assert_all_or_nothing(storm, reader.values)


def assert_all_or_nothing(storm: TransactionStorm, values: list[bytes]) -> None:
    seen: dict[int, int] = defaultdict(int)
    for value in values:
        name, number, _ = value.decode().split(":")
        if name == storm.name:
            seen[int(number)] += 1
    assert set(seen.values()) == {RECORDS}, "a part of a transaction was seen"
    assert storm.committed <= set(seen), "an acknowledged transaction is missing"
    assert set(seen) <= storm.committed | storm.unclear, "an aborted transaction was seen"
    assert len(storm.committed) > 5 * KILLS
    assert storm.aborted


def test_a_transaction_whose_producer_died_with_the_broker_ends_by_its_timeout(
    start_broker: StartBroker,
) -> None:
    broker = start_broker(options=FEW_PARTITIONS)
    with RawClient(broker.port) as client:
        left = Transaction(client, "left", create(client, "left"), transaction_timeout_ms=300)
        broker.kill()
        left.client = RawClient(start_broker(port=broker.port, options=FEW_PARTITIONS).port)
        with left.client:
            assert left.becomes_decided()
            assert left.end() in (ErrorCode.PRODUCER_FENCED, ErrorCode.INVALID_PRODUCER_EPOCH)


# ── between any two steps of the end ────────────────────────────────────────────────────────────────────────


def batches_of(directory: Path) -> Iterator[tuple[int, BatchHeader]]:
    log = max(directory.glob("*.log"))
    return iter(list(iterate_headers(memoryview(log.read_bytes()))))


def cut_last_batch(directory: Path, *, is_control: bool) -> None:
    """What a kill right before this batch would have left."""
    *_, (position, header) = batches_of(directory)
    assert bool(header.attributes & CONTROL_BIT) is is_control
    os.truncate(max(directory.glob("*.log")), position)


@pytest.mark.parametrize("version", [4, 5], ids=["one epoch", "an epoch per transaction"])
@pytest.mark.parametrize("committed", [True, False], ids=["commit", "abort"])
@pytest.mark.parametrize("missing", [0, 1, 3], ids=["the last record", "a marker", "every marker"])
def test_a_decided_end_is_carried_out_after_a_kill_at_any_step(
    start_broker: StartBroker, missing: int, committed: bool, version: int
) -> None:
    broker = start_broker(options=FEW_PARTITIONS)
    with RawClient(broker.port) as client:
        other = create(client, "other", partitions=1)
        transaction = Transaction(client, "killed", create(client, "data", partitions=1))
        assert transaction.add((other, 0)) == [0]
        assert transaction.produce(topic=other, sequence=0) == [0]
        assert transaction.commit_offsets(version=5) == 0
        assert transaction.end(version=version, committed=committed) == 0
        broker.kill()
    # The markers go to the partitions in the order of their names; then CompleteCommit or CompleteAbort is recorded.
    cut_last_batch(broker.data_dir / "__transaction_state-0", is_control=False)
    for directory in ("other-0", "data-0", "__consumer_offsets-0")[:missing]:
        cut_last_batch(broker.data_dir / directory, is_control=True)
    broker = start_broker(port=broker.port, options=FEW_PARTITIONS)
    with RawClient(broker.port) as client:
        transaction.client = client
        for topic in ("data", "other"):
            wait_until(partial(is_decided, client, topic), what=f"the end in {topic}")
        wait_until(partial(has_offset, client, transaction.id, committed=committed), what="the offsets")
        for topic in ("data", "other", "__consumer_offsets"):
            *_, (_, last) = batches_of(broker.data_dir / f"{topic}-0")
            assert last.attributes & CONTROL_BIT
        if version >= 5:
            transaction.epoch += 1
            transaction.sequence = 0
        assert transaction.add() == [0]
        assert transaction.is_healthy()


def is_decided(client: RawClient, topic: str) -> bool:
    return end_offset(client, topic, isolation_level=1) == end_offset(client, topic, isolation_level=0)


def has_offset(client: RawClient, transactional_id: str, *, committed: bool) -> bool:
    """Whether the group has its offset if the transaction is committed, and none if not."""
    wanted = OffsetFetchRequestTopics(name="data", partition_indexes=[0])
    group = OffsetFetchRequestGroup(group_id=f"group-of-{transactional_id}", topics=[wanted])
    (answer,) = client.ask(OffsetFetchRequest(groups=[group], require_stable=True), 8).groups
    if answer.error_code:
        return False
    (place,) = answer.topics[0].partitions
    return not place.error_code and place.committed_offset == (5 if committed else -1)
