"""`penstock.consumer` while leaders and coordinators move, and while members come and go: what each guarantee promises holds."""

import itertools
import threading
from collections import Counter, deque
from contextlib import ExitStack
from typing import Any, get_args

import pytest

from penstock.consumer import Output, Processor, Record
from penstock.consumer.guarantees import Guarantee
from penstock.consumer.topics import ensure_dead_letter_topic
from penstock.consumer.writing import TransactionalWriter
from penstock.model.internal_topics import TRANSACTION_STATE
from penstock.testing.clusters import create_topic, describe, wait_until_in_sync
from penstock.testing.penstock_cluster import PenstockCluster
from tests.clients.admin import topic_configs
from tests.clients.processors import (
    SESSION,
    committed_of_all,
    is_running,
    read_all,
    running,
    wait_until,
    write,
)
from tests.cluster.clients import SteadyProducer, coordinator
from tests.cluster.moves import bring_back, moves

PARTITIONS = 6
AT_WORK_RECORDS = 50  # handled by each group after a move, before the next one
DEADLINE_S = 90.0


class Group:
    """Processors of one group that copy a topic, partition by partition."""

    def __init__(self, bootstrap: str, source: str, guarantee: str) -> None:
        self.guarantee = guarantee
        self.name = f"{source}-{guarantee}"
        self.target = f"{source}-{guarantee}-copy"
        self.calls: Counter[bytes] = Counter()
        self._bootstrap, self._source = bootstrap, source
        self._members: deque[tuple[ExitStack, Processor]] = deque()
        self._numbers = itertools.count()
        self._lock = threading.Lock()

    def handle(self, record: Record) -> Output:
        with self._lock:
            self.calls[record.value] += 1
        return Output(self.target, record.value, partition=record.partition)

    def join(self) -> None:
        stack = ExitStack()
        processor = stack.enter_context(
            running(
                self._bootstrap,
                self._source,
                self.handle,
                group=self.name,
                guarantee=self.guarantee,
                instance=f"member-{next(self._numbers)}",
                batch_size=100,
                consumer_settings=SESSION,
                settings={"log_level": 0},
            )
        )
        self._members.append((stack, processor))

    def leave(self) -> None:
        """The one that has been there for longest; what it raised, if it did."""
        self._members.popleft()[0].close()

    def leave_all(self) -> None:
        while self._members:
            self.leave()

    def is_whole(self) -> bool:
        return all(is_running(processor) for _, processor in self._members)

    def settled(self) -> int:
        """Records whose outputs and offsets are written, by those who are members now."""
        return sum(processor.counters.handled for _, processor in self._members)

    def wait_until_at_work(self) -> None:
        before = self.calls.total()
        wait_until(
            lambda: self.calls.total() >= before + AT_WORK_RECORDS or not self.is_whole(),
            f"work of {self.name}",
            DEADLINE_S,
        )

    def wait_until_done(self, count: int) -> None:
        def done() -> bool:
            offsets = committed_of_all(self._bootstrap, self.name, self._source, range(PARTITIONS))
            return sum(max(0, offset) for offset in offsets) >= count

        wait_until(done, f"the last offsets of {self.name}", DEADLINE_S)

    def copied(self) -> list[list[bytes]]:
        """By partition, in order, as a `read_committed` reader gets them."""
        found: list[list[bytes]] = [[] for _ in range(PARTITIONS)]
        for message in read_all(self._bootstrap, self.target):
            found[message.partition() or 0].append(message.value() or b"")
        return found


def test_dead_letters_are_kept_as_often_as_what_they_were(cluster: PenstockCluster, topic_name: str) -> None:
    create_topic(cluster.bootstrap, topic_name, config={"min.insync.replicas": "2"})
    wait_until_in_sync(cluster.bootstrap, [topic_name])
    settings = {"bootstrap.servers": cluster.bootstrap}
    ensure_dead_letter_topic(settings, f"{topic_name}.dlq", origin=topic_name)
    assert replicas(cluster, f"{topic_name}.dlq") == 3
    assert topic_configs(cluster.bootstrap, f"{topic_name}.dlq")["min.insync.replicas"] == "2"
    cluster.stop(2)
    try:
        ensure_dead_letter_topic(settings, f"{topic_name}.fewer", origin=topic_name)
        assert replicas(cluster, f"{topic_name}.fewer") == 2, "no broker more than there are"
    finally:
        bring_back(cluster, 2)


def replicas(cluster: PenstockCluster, topic: str) -> int:
    wait_until(lambda: topic in describe(cluster.bootstrap).topics, "the topic")
    return len(describe(cluster.bootstrap).topics[topic].partitions[0].replicas)


@pytest.mark.timeout(600)
def test_every_guarantee_holds_while_leaders_move_and_members_come_and_go(
    cluster: PenstockCluster, topic_name: str
) -> None:
    groups = [Group(cluster.bootstrap, topic_name, guarantee) for guarantee in get_args(Guarantee)]
    topics = [topic_name, *(group.target for group in groups)]
    for topic in topics:
        create_topic(cluster.bootstrap, topic, partitions=PARTITIONS, config={"min.insync.replicas": "2"})
    wait_until_in_sync(cluster.bootstrap, topics)
    try:
        with SteadyProducer(cluster.bootstrap, topic_name, partitions=PARTITIONS) as producer:
            for group in groups:
                group.join()
                group.join()
            for group in groups:
                group.wait_until_at_work()
            for number, _ in enumerate(moves(cluster)):
                for group in groups:
                    # Between two and three of them, so that partitions go to and fro.
                    group.leave() if number % 2 else group.join()
                    group.wait_until_at_work()
            sent = producer.finish()
        for group in groups:
            group.wait_until_done(len(sent))
    finally:
        with ExitStack() as all_of_them:
            for group in groups:
                all_of_them.callback(group.leave_all)
    expected = [sent[partition::PARTITIONS] for partition in range(PARTITIONS)]
    by_guarantee = {group.guarantee: group for group in groups}
    assert by_guarantee["exactly-once"].copied() == expected
    assert [list(dict.fromkeys(each)) for each in by_guarantee["at-least-once"].copied()] == expected
    at_most_once = by_guarantee["at-most-once"]
    assert max(at_most_once.calls.values()) == 1
    for found, wanted in zip(at_most_once.copied(), expected, strict=True):
        assert found == sorted(set(found), key=int)
        assert set(found) <= set(wanted)


def test_a_transaction_is_committed_though_its_coordinator_falls_silent(
    cluster: PenstockCluster, topic_name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where it hurts most: when the offsets are in it. What is asked of the silent one must be over before the transaction is."""
    group = Group(cluster.bootstrap, topic_name, "exactly-once")
    for topic in (topic_name, group.target):
        create_topic(cluster.bootstrap, topic, partitions=PARTITIONS, config={"min.insync.replicas": "2"})
    wait_until_in_sync(cluster.bootstrap, [topic_name, group.target])
    write(cluster.bootstrap, topic_name, [b"1"], partition=0)
    send_offsets = TransactionalWriter._send_offsets
    silent: list[int] = []

    def send_and_silence(writer: TransactionalWriter, *arguments: Any) -> None:
        send_offsets(writer, *arguments)
        if not silent:
            silent.append(coordinator(cluster, TRANSACTION_STATE, writer.transactional_id))
            cluster.pause(silent[0])

    monkeypatch.setattr(TransactionalWriter, "_send_offsets", send_and_silence)
    group.join()
    try:
        wait_until(lambda: group.settled() or not group.is_whole(), "the end of the transaction", DEADLINE_S)
    finally:
        for broker_id in silent:
            cluster.kill(broker_id)
            bring_back(cluster, broker_id)
        group.leave_all()
    assert group.copied()[0] == [b"1"]
    assert group.calls == {b"1": 1}
