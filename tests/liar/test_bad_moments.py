"""What the lying broker has found, each as one bad moment of its own."""

from __future__ import annotations

import threading

import pytest
from confluent_kafka import Producer

from penstock.consumer import Processor, processor
from penstock.model.api_keys import ApiKey
from penstock.testing.liar.broker import NODES, LyingBroker
from penstock.testing.liar.calls import Call
from penstock.testing.liar.lies import Lie
from penstock.testing.liar.partitions import Leading
from penstock.testing.liar.refusals import coordination
from penstock.testing.liar.stage import Leadership
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
