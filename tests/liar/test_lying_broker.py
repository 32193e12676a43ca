"""The lying broker as a client sees it: a cluster of several nodes, in a bad moment or in none."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from penstock.arrow.scan import read
from penstock.client.errors import ReadFailed
from penstock.testing.penstock_broker import PenstockBroker
from simulation.liar import lies
from simulation.liar.broker import NODES, LyingBroker
from simulation.liar.lies import Plan
from simulation.liar.stage import Coordination, Leadership, Stage
from tests.conftest import MakeTopic

WAIT_S = 60.0
ROWS = 100
LYING_S = 600.0


@pytest.fixture
def liar(broker: PenstockBroker) -> Iterator[LyingBroker]:
    with LyingBroker(broker.port) as running:
        yield running


@pytest.fixture
def topic(broker: PenstockBroker, make_topic: MakeTopic) -> str:
    name = make_topic(partitions=2)
    producer = Producer({"bootstrap.servers": broker.bootstrap, "batch.num.messages": 5})
    for number in range(ROWS):
        producer.produce(name, b"%d" % number, partition=number % 2)
    assert producer.flush(WAIT_S) == 0
    return name


def plan(**rates: float) -> Plan:
    return Plan(1, LYING_S, {getattr(lies, kind): rate for kind, rate in rates.items()})


def values(liar: LyingBroker, topic: str) -> list[int]:
    table = read(topic, bootstrap=liar.bootstrap, options={"max.partition.fetch.bytes": 200})
    return sorted(int(value) for value in table.column("value").to_pylist())


def test_without_lies_it_is_a_cluster_of_several_nodes(liar: LyingBroker, topic: str) -> None:
    producer = Producer({"bootstrap.servers": liar.bootstrap, "linger.ms": 0})
    metadata = producer.list_topics(topic, timeout=WAIT_S)
    assert len(metadata.brokers) == NODES
    producer.produce(topic, b"100", partition=0)
    assert producer.flush(WAIT_S) == 0
    assert values(liar, topic) == list(range(ROWS + 1))
    assert not liar.told


def test_a_group_and_a_transaction_work_through_it(liar: LyingBroker, topic: str) -> None:
    consumer = Consumer(
        {"bootstrap.servers": liar.bootstrap, "group.id": topic, "auto.offset.reset": "earliest"}
    )
    consumer.subscribe([topic])
    message = consumer.poll(WAIT_S)
    assert message is not None
    assert message.error() is None
    producer = Producer({"bootstrap.servers": liar.bootstrap, "transactional.id": topic})
    producer.init_transactions(WAIT_S)
    producer.begin_transaction()
    producer.produce(topic, b"100", partition=1)
    producer.send_offsets_to_transaction(
        [TopicPartition(topic, 0, 7)], consumer.consumer_group_metadata(), WAIT_S
    )
    producer.commit_transaction(WAIT_S)
    assert consumer.committed([TopicPartition(topic, 0)], timeout=WAIT_S)[0].offset == 7
    consumer.close()
    assert values(liar, topic) == list(range(ROWS + 1))


@pytest.mark.parametrize(
    "kind", ["DELAY", "REFUSE", "EMPTY", "SHORTEN", "MOVE", "FREEZE", "CUT_BEFORE", "CUT_AFTER"]
)
def test_a_reader_gets_everything_in_spite_of_it(liar: LyingBroker, topic: str, kind: str) -> None:
    assert values(liar, topic) == list(range(ROWS))
    liar.begin(plan(**{kind: 0.15}))
    for _ in range(20):
        try:
            assert values(liar, topic) == list(range(ROWS))
        except ReadFailed:
            pass  # an error is an answer, too
        if liar.told:
            break
    assert set(liar.told) == {getattr(lies, kind)}


def test_the_same_plan_is_drawn_for_the_same_seed() -> None:
    assert Plan.drawn(17) == Plan.drawn(17) != Plan.drawn(18)


def test_every_kind_of_lie_is_drawn_by_some_seed() -> None:
    assert {kind for seed in range(50) for kind in Plan.drawn(seed).rates} == set(lies.KINDS)


class Clock:
    def __init__(self) -> None:
        self.now_s = 100.0

    def __call__(self) -> float:
        return self.now_s


def test_a_post_that_moves_is_served_by_nobody_for_a_moment() -> None:
    clock = Clock()
    stage = Stage([1, 2, 3], clock)
    post = Leadership("orders", 0)
    before = stage.holder(post)
    assert stage.serves(before.node_id, post)
    stage.move(post, steps=1, vacant_s=1.0, unsure_s=2.0)
    after = stage.holder(post)
    assert after.node_id != before.node_id
    assert after.epoch == before.epoch + 1
    assert not any(stage.serves(node_id, post) for node_id in stage.ports)
    clock.now_s += 1.5
    assert [node_id for node_id in stage.ports if stage.serves(node_id, post)] == [after.node_id]
    assert not stage.is_sure(post)
    clock.now_s += 2.0
    assert stage.is_sure(post)


def test_a_node_that_hears_nothing_names_the_old_holder() -> None:
    clock = Clock()
    stage = Stage([1, 2, 3], clock)
    post = Coordination("group", "readers")
    before = stage.holder(post)
    stage.freeze(2, 1.0)
    clock.now_s += 0.5
    stage.move(post, steps=1, vacant_s=0.0, unsure_s=0.0)
    assert stage.told_by(2, post) == before
    assert stage.told_by(1, post) == stage.holder(post) != before
    clock.now_s += 1.0
    assert stage.told_by(2, post) == stage.holder(post)


def test_a_topic_is_forgotten_for_a_moment_and_not_again_at_once() -> None:
    clock = Clock()
    stage = Stage([1, 2, 3], clock)
    assert stage.forget("orders", frozenset({1}), 1.0)
    assert stage.forgets(1, "orders")
    assert not stage.forgets(2, "orders")
    clock.now_s += 1.5
    assert not stage.forgets(1, "orders")
    assert not stage.forget("orders", frozenset({1}), 1.0)
    clock.now_s += 2.0
    assert stage.forget("orders", frozenset({1}), 1.0)
