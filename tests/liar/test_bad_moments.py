"""What the lying broker has found, each as one bad moment of its own."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable

import pytest
from confluent_kafka import ConsumerGroupState, Producer
from confluent_kafka.admin import AdminClient

from penstock.consumer import Output, Processor, Record, processor
from penstock.model.api_keys import ApiKey
from penstock.testing.liar.broker import NODES, LyingBroker
from penstock.testing.liar.calls import Call
from penstock.testing.liar.lies import Lie
from penstock.testing.liar.partitions import Leading
from penstock.testing.liar.refusals import coordination
from penstock.testing.liar.stage import Leadership
from penstock.testing.liar.truth import Truth
from penstock.testing.penstock_broker import PenstockBroker
from tests.conftest import MakeTopic

WAIT_S = 20.0


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


def run(working: Processor) -> None:
    """To its end, or until it is clear that it has none."""
    thread = threading.Thread(target=working.run, daemon=True)
    thread.start()
    thread.join(WAIT_S)
    working.stop()
    thread.join(WAIT_S)


def test_a_group_that_got_no_partitions_since_its_leader_was_told_of_none_gets_them_soon(
    broker: PenstockBroker, make_topic: MakeTopic, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The client itself would ask again after five minutes."""
    monkeypatch.setattr(processor, "METADATA_REFRESH_MS", 500)
    topic = make_topic()
    send(broker, topic, "a", "b")
    handled: list[bytes] = []
    with ForgetfulAfterJoin(broker.port) as liar:
        liar.topic = topic
        working = Processor(
            topic,
            group=topic,
            handler=lambda record: handled.append(record.value),
            bootstrap=liar.bootstrap,
            dead_letter_topic=None,
            stop_at_end=True,
        )
        run(working)
    assert liar.topic is None, "it was never asked at the bad moment"
    assert handled == [b"a", b"b"]


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
    handled: list[bytes] = []
    with MovesAtOffsetFetch(broker.port) as liar:
        working = Processor(
            topic,
            group=topic,
            handler=lambda record: handled.append(record.value),
            bootstrap=liar.bootstrap,
            dead_letter_topic=None,
            consumer_settings={"partition.assignment.strategy": strategy},
            stop_at_end=True,
        )
        run(working)
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
    handled: list[bytes] = []
    with SlowNewLeader(broker.port) as liar:
        working = Processor(
            topic,
            group=topic,
            handler=lambda record: handled.append(record.value),
            bootstrap=liar.bootstrap,
            dead_letter_topic=None,
            stop_at_end=True,
        )
        run(working)
    assert sorted(map(int, handled)) == list(range(20))


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
    broker: PenstockBroker, make_topic: MakeTopic, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The topic vanishes and comes back while a batch is handled: the client gives up its partitions and joins again, all by
    itself, and has the group's newest generation when the batch is to be committed."""
    monkeypatch.setattr(processor, "METADATA_REFRESH_MS", 200)
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
            batch_wait_s=2.0,
            dead_letter_topic=None,
            instance=name,
            consumer_settings={"client.id": READER},
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
