"""What the lying broker has found, each as one bad moment of its own."""

from __future__ import annotations

import threading

import pytest
from confluent_kafka import Producer

from penstock.consumer import Processor, processor
from penstock.model.api_keys import ApiKey
from penstock.testing.liar.broker import LyingBroker
from penstock.testing.liar.calls import Call
from penstock.testing.liar.lies import Lie
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
        thread = threading.Thread(target=working.run, daemon=True)
        thread.start()
        thread.join(WAIT_S)
        working.stop()
        thread.join(WAIT_S)
    assert liar.topic is None, "it was never asked at the bad moment"
    assert handled == [b"a", b"b"]
