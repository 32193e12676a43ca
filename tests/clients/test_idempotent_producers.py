"""Answers get lost, the broker stands still, the broker is killed: nothing is lost, doubled or out of order."""

import os
import signal

import pytest
from confluent_kafka import KafkaError

from penstock.testing.processes import free_port
from tests.clients.admin import create_topic
from tests.clients.confluent_driver import ConfluentDriver
from tests.clients.driver import Driver, Record, consume, wait_until
from tests.clients.forgetful_proxy import ForgetfulProxy
from tests.conftest import StartBroker

PARTITIONS = 3


def numbered(count: int) -> list[Record]:
    return [Record(b"%06d" % number, partition=number % PARTITIONS) for number in range(count)]


def assert_all_are_there_once_in_order(
    driver: Driver, bootstrap: str, topic: str, sent: list[Record]
) -> None:
    received = consume(driver, bootstrap, topic, len(sent), partitions=range(PARTITIONS))
    for partition in range(PARTITIONS):
        values = [each.record.value for each in received if each.record.partition == partition]
        assert values == [record.value for record in sent if record.partition == partition]
    consumer = driver.consumer(bootstrap, partitions=[(topic, 0)])
    try:
        ends = [consumer.offsets(topic, partition)[1] for partition in range(PARTITIONS)]
    finally:
        consumer.close()
    assert sum(ends) == len(sent)


def test_lost_answers_lose_no_record_and_double_none(
    start_broker: StartBroker, topic_name: str, driver: Driver
) -> None:
    proxy_port = free_port()
    broker = start_broker(options={"advertised.listeners": f"PLAINTEXT://127.0.0.1:{proxy_port}"})
    proxy = ForgetfulProxy(port=proxy_port, broker_port=broker.port, passed_between=3, losses=8)
    try:
        bootstrap = f"127.0.0.1:{proxy_port}"
        create_topic(bootstrap, topic_name, partitions=PARTITIONS)
        # Small batches, so that five requests are in flight whenever an answer gets lost.
        producer = driver.producer(bootstrap, idempotent=True, batch_bytes=500)
        sent = numbered(3000)
        for record in sent:
            producer.send(topic_name, record)
        offsets = producer.flush(60.0)
        producer.close()
        assert proxy.lost_answers == 8
        assert offsets == [number // PARTITIONS for number in range(len(sent))]
        assert_all_are_there_once_in_order(driver, bootstrap, topic_name, sent)
    finally:
        proxy.close()


def test_a_broker_that_stands_still_past_the_clients_patience_stores_each_record_once(
    start_broker: StartBroker, topic_name: str
) -> None:
    broker = start_broker()
    driver = ConfluentDriver()
    create_topic(broker.bootstrap, topic_name, partitions=PARTITIONS)
    errors: list[int] = []
    producer = driver.producer(
        broker.bootstrap,
        idempotent=True,
        batch_bytes=500,
        on_error=lambda error: errors.append(error.code()),
        **{"socket.timeout.ms": 1000, "reconnect.backoff.max.ms": 100},
    )
    sent = numbered(3000)
    for record in sent[:1500]:
        producer.send(topic_name, record)
    os.kill(broker.pid, signal.SIGSTOP)
    try:
        for record in sent[1500:]:
            producer.send(topic_name, record)

        def has_given_up_once() -> bool:
            producer.poll()
            return KafkaError._ALL_BROKERS_DOWN in errors

        wait_until(has_given_up_once, "the client gave up on its requests")
    finally:
        os.kill(broker.pid, signal.SIGCONT)
    assert producer.flush() == [number // PARTITIONS for number in range(len(sent))]
    assert_all_are_there_once_in_order(driver, broker.bootstrap, topic_name, sent)


@pytest.mark.parametrize("ending", ["stop", "kill"])
def test_a_producer_goes_on_with_a_broker_that_was_started_again(
    start_broker: StartBroker, topic_name: str, driver: Driver, ending: str
) -> None:
    broker = start_broker()
    create_topic(broker.bootstrap, topic_name, partitions=PARTITIONS)
    producer = driver.producer(broker.bootstrap, idempotent=True)
    try:
        sent = numbered(600)
        for record in sent[:300]:
            producer.send(topic_name, record)
        producer.flush()
        broker.stop() if ending == "stop" else broker.kill()
        start_broker(port=broker.port)
        for record in sent[300:]:
            producer.send(topic_name, record)
        # The sequence numbers go on where they were: the broker must still know the producer.
        assert producer.flush() == [number // PARTITIONS for number in range(300, 600)]
    finally:
        producer.close()
    assert_all_are_there_once_in_order(driver, broker.bootstrap, topic_name, sent)
