"""Exactly-once processors of one group, which are killed or held up at any point of their transactions, and what must be true of
their topics whenever no transaction is open: the outputs and dead letters are those of the records before the committed
offsets, each once.
"""

from __future__ import annotations

import itertools
import threading
import time
from collections import Counter
from collections.abc import Callable
from typing import Any, NamedTuple

import pytest
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewPartitions

from penstock.consumer import Output, Poison, Processor, Record, writing
from penstock.testing.penstock_broker import PenstockBroker
from penstock.wire.messages.leave_group import LeaveGroupRequest, MemberIdentity
from tests.clients.admin import create_topic
from tests.clients.processors import DEADLINE_S, wait_until, write
from tests.committed_values import OpenTransaction, committed_values
from tests.hostile.raw_client import RawClient
from tests.watched_producer import AFTER_INIT, Violation, WatchedProducer

SOURCE_PARTITIONS = 2
LEAVE_GROUP_VERSION = 4
BATCH_SIZE = 4
GIVE_WAY_S = 0.5
QUICK = {"fetch.wait.max.ms": 10, "heartbeat.interval.ms": 100, "session.timeout.ms": 6000}


class Interruption(NamedTuple):
    """Where a processor is interrupted, how often it passes there before, and what happens then."""

    point: str
    passes: int
    happens: Callable[[], None]
    lasts: bool = False  # until it happens without an exception


def outputs_of(number: int) -> list[str]:
    """What the handler makes of a record, if it is no poison."""
    return [f"{number}"] if number % 3 else [f"{number}", f"{number} again"]


def is_poison(number: int) -> bool:
    return number % 5 == 0


def expected(numbers: list[int]) -> tuple[Counter[str], Counter[str]]:
    """Outputs and dead letters of records that are done. This is the whole model."""
    outputs = Counter(text for number in numbers if not is_poison(number) for text in outputs_of(number))
    return outputs, Counter(f"{number}" for number in numbers if is_poison(number))


class Running:
    """A processor on a thread; `raised` is what ended it."""

    def __init__(
        self, processor: Processor, interruption: Interruption | None, world: ProcessorWorld
    ) -> None:
        self.processor = processor
        self.raised: BaseException | None = None
        self._interruption = interruption
        self._world = world
        self._thread = threading.Thread(target=self._run, name="processor-of-a-walk")
        self._thread.start()

    def _run(self) -> None:
        self.raised = self._world.run(self.processor, self._interruption)

    @property
    def is_over(self) -> bool:
        return not self._thread.is_alive()

    def join(self) -> BaseException | None:
        self._thread.join(DEADLINE_S)
        if self._thread.is_alive():
            self.processor.stop()
            self._thread.join(DEADLINE_S)
            raise Violation("a processor does not come to the end")
        return self.raised


class ProcessorWorld:
    def __init__(self, broker: PenstockBroker, monkeypatch: pytest.MonkeyPatch, *, name: str) -> None:
        self._broker = broker
        self.bootstrap = broker.bootstrap
        self.patience_s = DEADLINE_S  # for the end of transactions that are decided
        self.source, self.target, self.group = f"{name}-in", f"{name}-out", f"{name}-group"
        create_topic(self.bootstrap, self.source, partitions=SOURCE_PARTITIONS)
        create_topic(self.bootstrap, self.target, partitions=1)
        create_topic(self.bootstrap, f"{self.source}.dlq")
        self._inputs: list[list[int]] = [[] for _ in range(SOURCE_PARTITIONS)]
        self._numbers = itertools.count(1)
        self._local = threading.local()
        monkeypatch.setattr(writing, "Producer", self._make_producer)
        # In the processor's thread: the world may go on in the middle of it, and take its time.
        monkeypatch.setattr(writing, "call_within", lambda step, timeout_s: step())

    def append(self, partition: int, count: int) -> None:
        numbers = [next(self._numbers) for _ in range(count)]
        write(self.bootstrap, self.source, [b"%d" % number for number in numbers], partition=partition)
        self._inputs[partition] += numbers

    def processor(
        self,
        instance: str,
        *,
        batch: bool,
        batch_size: int = BATCH_SIZE,
        batch_wait_s: float = 0.0,
        stop_at_end: bool = True,
    ) -> Processor:
        return Processor(
            self.source, group=self.group, instance=instance, bootstrap=self.bootstrap, guarantee="exactly-once",
            handler=self._handle_batch if batch else self._handle, batch=batch, batch_size=batch_size,
            batch_wait_s=batch_wait_s, consumer_settings=QUICK, stop_at_end=stop_at_end,
        )  # fmt: skip

    def run(self, processor: Processor, interruption: Interruption | None = None) -> BaseException | None:
        """To the end of the topic, in this thread; what it raised."""
        self._local.interruption = interruption
        guard = threading.Timer(DEADLINE_S, processor.stop)
        guard.start()
        try:
            processor.run()
        except BaseException as error:
            return error
        finally:
            guard.cancel()
            guard.join()
            self._local.interruption = None
        return None

    def start(self, processor: Processor, interruption: Interruption | None = None) -> Running:
        return Running(processor, interruption, self)

    def started_behind_init(self, processor: Processor) -> Running:
        """Returns when it has taken the transactional id over."""
        is_open = threading.Event()
        running = self.start(processor, Interruption(AFTER_INIT, 0, is_open.set))
        assert is_open.wait(DEADLINE_S), "a processor does not come to its first transaction"
        return running

    def wait_until_done(self, running: Running) -> None:
        """Until the offsets are behind all records."""

        def is_done() -> bool:
            return self._committed_offsets() == [len(numbers) for numbers in self._inputs]

        wait_until(lambda: running.is_over or is_done(), "all is committed")

    def put_out(self, processor: Processor) -> None:
        """As the group does with a member that it has not heard of for too long."""
        member_id = processor._membership.consumer.memberid()
        request = LeaveGroupRequest(group_id=self.group, members=[MemberIdentity(member_id=member_id)])
        with RawClient(self._broker.port) as client:
            answer = client.ask(request, LEAVE_GROUP_VERSION)
        assert answer.error_code == 0, answer

    def grow_target(self) -> None:
        admin = AdminClient({"bootstrap.servers": self.bootstrap})
        partitions = len(admin.list_topics(self.target, timeout=DEADLINE_S).topics[self.target].partitions)
        admin.create_partitions([NewPartitions(self.target, partitions + 1)])[self.target].result(DEADLINE_S)

    def check(self, *, all_done: bool) -> None:
        done = self._committed_offsets()
        if all_done and done != [len(numbers) for numbers in self._inputs]:
            raise Violation(f"not all is done: {done} of {[len(numbers) for numbers in self._inputs]}")
        passed = [
            number for numbers, count in zip(self._inputs, done, strict=True) for number in numbers[:count]
        ]
        for topic, wanted in zip((self.target, f"{self.source}.dlq"), expected(passed), strict=True):
            try:
                found = committed_values(self.bootstrap, topic, patience_s=self.patience_s)
            except OpenTransaction as error:
                raise Violation(str(error)) from error
            if found != wanted:
                raise Violation(
                    f"{topic}: lost {sorted((wanted - found).elements())}, twice or not to be there "
                    f"{sorted((found - wanted).elements())}, with offsets {done}"
                )

    def _committed_offsets(self) -> list[int]:
        consumer = Consumer(
            {"bootstrap.servers": self.bootstrap, "group.id": self.group, "isolation.level": "read_committed"}
        )
        asked = [TopicPartition(self.source, partition) for partition in range(SOURCE_PARTITIONS)]
        try:
            return [max(0, one.offset) for one in consumer.committed(asked, timeout=self.patience_s)]
        except KafkaException as error:
            raise Violation("the offsets are not decided") from error
        finally:
            consumer.close()

    def _handle(self, record: Record) -> list[Output]:
        number = int(record.value)
        if is_poison(number):
            raise Poison("poison")
        return [Output(self.target, text) for text in outputs_of(number)]

    def _handle_batch(self, records: list[Record]) -> list[Output]:
        poison = next((record for record in records if is_poison(int(record.value))), None)
        if poison is not None:
            raise Poison("poison", record=poison)
        return [output for record in records for output in self._handle(record)]

    def _make_producer(self, settings: Any, **extra: Any) -> Any:
        return WatchedProducer(Producer(settings, **extra), self._at)

    def _at(self, point: str) -> None:
        interruption: Interruption | None = getattr(self._local, "interruption", None)
        if interruption is None or interruption.point != point:
            return
        if interruption.passes:
            self._local.interruption = interruption._replace(passes=interruption.passes - 1)
            return
        if not interruption.lasts:
            self._local.interruption = None
        interruption.happens()
        self._local.interruption = None


def wait_for_member(running: Running) -> None:
    wait_until(
        lambda: running.is_over or running.processor.counters.rebalances > 0, "a processor is a member"
    )


def give_way(running: Running) -> None:
    """Time for one that may not do anything yet, and would if it made a mistake."""
    deadline_s = time.monotonic() + GIVE_WAY_S
    while not running.is_over and not running.processor.counters.commits and time.monotonic() < deadline_s:
        time.sleep(0.01)
