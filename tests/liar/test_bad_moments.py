"""What the lying broker has found, each as one bad moment of its own."""

from __future__ import annotations

import asyncio
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import pytest
from confluent_kafka import ConsumerGroupState, Producer
from confluent_kafka.admin import AdminClient

from penstock.consumer import Output, Processor, Record
from penstock.consumer.membership import MEMBER_SETTINGS, Membership
from penstock.model.api_keys import ApiKey
from penstock.testing.penstock_broker import PenstockBroker
from simulation.liar.broker import NODES, LyingBroker
from simulation.liar.calls import Call
from simulation.liar.lies import Lie
from simulation.liar.partitions import Leading
from simulation.liar.refusals import coordination
from simulation.liar.stage import Leadership
from simulation.liar.truth import Truth
from tests.conftest import MakeTopic

WAIT_S = 60.0


class ForgetfulAfterJoin(LyingBroker):
    """Does not know the topic when the group's first leader asks how many partitions there are to assign."""

    topic: str | None = None

    def _change_stage(self, node_id: int, call: Call, lie: Lie) -> None:
        if call.api_key == ApiKey.JOIN_GROUP and self.topic is not None:
            self.stage.forget(self.topic, frozenset(self.stage.ports), 0.5)
            self.topic = None


def send(broker: PenstockBroker, topic: str, *values: str) -> None:
    producer = Producer({"bootstrap.servers": broker.bootstrap})
    for value in values:
        producer.produce(topic, value)
    assert producer.flush(WAIT_S) == 0


def run(liar: LyingBroker, topic: str, settings: Mapping[str, Any] | None = None) -> list[bytes]:
    """What a processor of the topic handles to its end, or until it is clear that it has none."""
    handled: list[bytes] = []
    working = Processor(
        topic,
        group=topic,
        handler=lambda record: handled.append(record.value),
        bootstrap=liar.bootstrap,
        dead_letter_topic=None,
        consumer_settings=settings,
        stop_at_end=True,
    )
    thread = threading.Thread(target=working.run, daemon=True)
    thread.start()
    thread.join(WAIT_S)
    working.stop()
    thread.join(WAIT_S)
    return handled


def test_a_group_that_got_no_partitions_since_its_leader_was_told_of_none_gets_them_soon(
    broker: PenstockBroker, make_topic: MakeTopic
) -> None:
    """The client itself would ask again after five minutes."""
    topic = make_topic()
    send(broker, topic, "a", "b")
    with ForgetfulAfterJoin(broker.port) as liar:
        liar.topic = topic
        handled = run(liar, topic, {"topic.metadata.refresh.interval.ms": 500})
    assert liar.topic is None, "it was never asked at the bad moment"
    assert handled == [b"a", b"b"]


class ForgetfulForTheLeader(LyingBroker):
    """Does not know the topic in the one answer from which the group's leader assigns, and knows it in all others."""

    topic = ""
    joins = 0
    has_forgotten = False

    def _change_stage(self, node_id: int, call: Call, lie: Lie) -> None:
        self.joins += call.api_key == ApiKey.JOIN_GROUP
        if (
            call.api_key == ApiKey.METADATA
            and self.joins > 1
            and call.request.topics
            and not self.has_forgotten
        ):
            self.has_forgotten = True
            self.stage.forget(self.topic, frozenset(self.stage.ports), 0.01)


def test_a_topic_of_which_the_leader_was_told_nothing_is_read_all_the_same(
    broker: PenstockBroker, make_topic: MakeTopic, caplog: pytest.LogCaptureFixture
) -> None:
    """The client sees no reason to look again: what it knows of its topics has not changed."""
    topic = make_topic()
    send(broker, topic, "a", "b")
    with ForgetfulForTheLeader(broker.port) as liar:
        liar.topic = topic
        handled = run(liar, topic, {"topic.metadata.refresh.interval.ms": 1000})
        assert liar.has_forgotten
    assert handled == [b"a", b"b"]
    assert f"nobody in the group reads {topic}" in caplog.text


class MovesAtOffsetFetch(LyingBroker):
    """The group's coordinator moves just before the first member asks where to begin."""

    has_moved = False

    def _change_stage(self, node_id: int, call: Call, lie: Lie) -> None:
        if call.api_key == ApiKey.OFFSET_FETCH and not self.has_moved:
            self.has_moved = True
            post = coordination(call.request)
            assert post is not None
            self.stage.move(post, steps=1, vacant_s=0.0, unsure_s=0.0)


@pytest.mark.parametrize("strategy", ["cooperative-sticky", "range"])
def test_a_member_whose_coordinator_moves_before_it_knows_where_to_begin_begins_all_the_same(
    broker: PenstockBroker, make_topic: MakeTopic, strategy: str
) -> None:
    topic = make_topic(partitions=2)
    send(broker, topic, *map(str, range(20)))
    with MovesAtOffsetFetch(broker.port) as liar:
        handled = run(liar, topic, {"partition.assignment.strategy": strategy})
        assert liar.has_moved
    assert sorted(map(int, handled)) == list(range(20))


class SlowNewLeader(LyingBroker):
    """The leader has just changed, and the new one does not know yet how far its log is committed."""

    def _change_stage(self, node_id: int, call: Call, lie: Lie) -> None:
        if call.api_key == ApiKey.FETCH and call.request is not None:
            for (topic, partition), _ in Leading(call.request, call.version).asked.items():
                post = Leadership(self.stage.name(topic), partition)
                if self.stage.holder(post).epoch == 0:
                    self.stage.move(post, steps=NODES, vacant_s=0.0, unsure_s=0.5)


def test_a_processor_that_stops_at_the_end_does_not_stop_where_a_new_leader_believes_it_to_be(
    broker: PenstockBroker, make_topic: MakeTopic
) -> None:
    topic = make_topic()
    send(broker, topic, *map(str, range(20)))
    with SlowNewLeader(broker.port) as liar:
        handled = run(liar, topic)
    assert sorted(map(int, handled)) == list(range(20))


class SlowToSayWhereItBegins(LyingBroker):
    """Half a second is what the client waits before it asks again."""

    asked = 0

    async def _answer(self, node_id: int, call: Call, behind: Any) -> bytes:
        if call.api_key == ApiKey.LIST_OFFSETS:
            self.asked += 1
            await asyncio.sleep(0.2)
        return await super()._answer(node_id, call, behind)


@contextmanager
def member(liar: LyingBroker, topic: str) -> Iterator[Membership]:
    settings = {
        **MEMBER_SETTINGS,
        "bootstrap.servers": liar.bootstrap,
        "group.id": topic,
        "enable.auto.commit": False,
    }
    client = {"bootstrap.servers": liar.bootstrap}
    joined = Membership(settings, [topic], client_settings=client, before_revoke=lambda places: None)
    try:
        yield joined
    finally:
        joined.close()


def read(
    joined: Membership, *, until: Callable[[list[int]], bool], between: Callable[[], None] = lambda: None
) -> list[int]:
    offsets: list[int] = []
    deadline_s = time.monotonic() + WAIT_S
    while not until(offsets) and time.monotonic() < deadline_s:
        taken = joined.take(max_records=1, max_bytes=1 << 20, wait_s=0.05, fill_s=0.0)
        offsets.extend(record.offset for record in taken)
        between()
    return offsets


def test_a_partition_that_is_waited_for_while_its_beginning_is_asked_for_begins_once(
    broker: PenstockBroker, make_topic: MakeTopic
) -> None:
    topic = make_topic()
    send(broker, topic, "a", "b", "c")
    with SlowToSayWhereItBegins(broker.port) as liar, member(liar, topic) as joined:
        offsets = read(joined, until=lambda offsets: len(offsets) == 3, between=joined.breathe)
        over_s = time.monotonic() + 1.5  # more than the client waits
        assert offsets + read(joined, until=lambda _: time.monotonic() > over_s) == [0, 1, 2]
        assert liar.asked == 1


def test_a_partition_that_begins_again_goes_on_where_it_was(
    broker: PenstockBroker, make_topic: MakeTopic, caplog: pytest.LogCaptureFixture
) -> None:
    """Paused and resumed behind the member's back, while the client asks where the partition begins."""
    topic = make_topic()
    send(broker, topic, "a", "b", "c")
    with SlowToSayWhereItBegins(broker.port) as liar, member(liar, topic) as joined:
        read(joined, until=lambda _: liar.asked == 1)
        assigned = joined.consumer.assignment()
        joined.consumer.pause(assigned)
        joined.consumer.resume(assigned)
        offsets = read(joined, until=bool)
        joined.breathe()
        offsets += read(joined, until=lambda _: "began again" in caplog.text)
        offsets += read(joined, until=lambda more: 2 in offsets + more)
        assert offsets == [0, 1, 2]
    assert "it continues at offset" in caplog.text


def test_a_batch_waits_for_the_rest_although_nothing_came_for_a_while(
    broker: PenstockBroker, make_topic: MakeTopic
) -> None:
    topic = make_topic()
    send(broker, topic, "0")
    lulls: list[int] = []

    def is_over() -> bool:
        """Is asked when a poll brought nothing and the batch is not full."""
        lulls.append(len(lulls))
        send(broker, topic, str(len(lulls)))
        return False

    with LyingBroker(broker.port) as liar, member(liar, topic) as joined:
        deadline_s = time.monotonic() + WAIT_S
        taken: list[Record] = []
        while not taken and time.monotonic() < deadline_s:
            taken = joined.take(max_records=2, max_bytes=1 << 20, wait_s=1.0, fill_s=WAIT_S, is_over=is_over)
    assert [record.offset for record in taken] == [0, 1]
    assert lulls


READER = "reader"


class Forgetful(LyingBroker):
    """Forgets a topic when it is told to, and knows how often the reader has asked about topics since then."""

    topic: str | None = None
    asked = 0

    def _change_stage(self, node_id: int, call: Call, lie: Lie) -> None:
        if call.api_key == ApiKey.METADATA and call.header is not None and self.topic is not None:
            self.stage.forget(self.topic, frozenset(self.stage.ports), WAIT_S)
            self.asked += call.header.client_id == READER


def wait_until(condition: Callable[[], bool]) -> None:
    over = threading.Event()
    for _ in range(round(WAIT_S / 0.05)):
        if condition():
            return
        over.wait(0.05)
    raise AssertionError("not in time")


def test_what_another_member_has_done_is_not_done_again_by_one_that_was_not_told_of_its_loss(
    broker: PenstockBroker, make_topic: MakeTopic
) -> None:
    """The topic vanishes and comes back while a batch is handled: the client gives up its partitions and joins again, all by
    itself, and has the group's newest generation when the batch is to be committed."""
    topic, target = make_topic(partitions=2), make_topic()
    values = [str(number) for number in range(20)]
    send_to_both(broker, topic, values)
    is_working, may_go_on = threading.Event(), threading.Event()

    def copied(records: list[Record]) -> list[Output]:
        return [Output(target, record.raw_value) for record in records]

    def slowly(records: list[Record]) -> list[Output]:
        if not is_working.is_set():
            assert len(records) == len(values), "the batch is to have both partitions"
            is_working.set()
            may_go_on.wait(WAIT_S)
        return copied(records)

    def member(name: str, bootstrap: str, handler: Callable[[list[Record]], list[Output]]) -> Processor:
        return Processor(
            topic,
            group=topic,
            handler=handler,
            bootstrap=bootstrap,
            guarantee="exactly-once",
            batch=True,
            batch_size=len(values),
            batch_wait_s=WAIT_S if handler is slowly else 2.0,  # until it has both partitions
            dead_letter_topic=None,
            instance=name,
            consumer_settings={"client.id": READER, "topic.metadata.refresh.interval.ms": 200},
        )

    truth = Truth(broker.port)
    with Forgetful(broker.port) as liar:
        slow, quick = member("slow", liar.bootstrap, slowly), member("quick", broker.bootstrap, copied)
        threads = [threading.Thread(target=each.run, daemon=True) for each in (slow, quick)]
        try:
            threads[0].start()
            assert is_working.wait(WAIT_S)
            liar.topic = topic
            wait_until(lambda: liar.asked > 2)
            threads[1].start()
            wait_until(lambda: is_rebalancing(broker, topic))
            liar.topic = None
            liar.tell_truth()
            wait_until(lambda: quick.counters.commits > 0)
            may_go_on.set()
            wait_until(lambda: truth.committed(topic, topic, 2) == {0: 10, 1: 10})
        finally:
            may_go_on.set()
            slow.stop()
            quick.stop()
            for thread in threads:
                if thread.ident is not None:
                    thread.join(WAIT_S)
        written = Counter(truth.values(target, 1))
        truth.close()
    assert written == Counter(value.encode() for value in values)


def send_to_both(broker: PenstockBroker, topic: str, values: list[str]) -> None:
    producer = Producer({"bootstrap.servers": broker.bootstrap})
    for number, value in enumerate(values):
        producer.produce(topic, value, partition=number % 2)
    assert producer.flush(WAIT_S) == 0


def is_rebalancing(broker: PenstockBroker, group: str) -> bool:
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    described = admin.describe_consumer_groups([group])[group].result(WAIT_S)
    return bool(described.state == ConsumerGroupState.PREPARING_REBALANCING)
