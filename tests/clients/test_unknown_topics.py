"""Topics that nobody made, that cannot be, and that are no more."""

import pytest
from confluent_kafka import KafkaError

from penstock.testing.penstock_broker import PenstockBroker
from tests.clients.admin import admin_client, create_topic, delete_topic
from tests.clients.confluent_driver import ConfluentDriver
from tests.clients.driver import WAIT_S, Driver, Record, Refused, consume, produce, wait_until
from tests.conftest import StartBroker

UNKNOWN_TOPIC_OR_PARTITION = 3
INVALID_TOPIC_EXCEPTION = 17


def test_a_topic_is_made_on_first_use_with_the_brokers_defaults(
    start_broker: StartBroker, topic_name: str, driver: Driver
) -> None:
    broker = start_broker(options={"num.partitions": "3"})
    sent = [Record(b"%d" % number, partition=number, timestamp_ms=1) for number in range(3)]
    assert produce(driver, broker.bootstrap, topic_name, sent) == [0, 0, 0]
    assert len(admin_client(broker.bootstrap).list_topics(timeout=WAIT_S).topics[topic_name].partitions) == 3
    received = consume(driver, broker.bootstrap, topic_name, 3, partitions=range(3))
    assert sorted(each.record for each in received) == sent


@pytest.mark.parametrize("name", ["a/b", "x" * 250, ".."])
def test_an_impossible_name_is_refused_in_the_metadata(broker: PenstockBroker, name: str) -> None:
    topics = admin_client(broker.bootstrap).list_topics(name, timeout=WAIT_S).topics
    error = topics[name].error
    assert error is not None
    assert error.code() == INVALID_TOPIC_EXCEPTION


def test_where_topics_are_not_made_on_first_use_an_unknown_one_stays_unknown(
    start_broker: StartBroker, topic_name: str
) -> None:
    broker = start_broker(options={"auto.create.topics.enable": "false"})
    error = admin_client(broker.bootstrap).list_topics(topic_name, timeout=WAIT_S).topics[topic_name].error
    assert error is not None
    assert error.code() == UNKNOWN_TOPIC_OR_PARTITION
    driver = ConfluentDriver()
    producer = driver.producer(broker.bootstrap, **{"topic.metadata.propagation.max.ms": 100})
    producer.send(topic_name, Record(b"lost"))
    with pytest.raises(Refused) as refusal:
        producer.flush()
    assert refusal.value.code in (UNKNOWN_TOPIC_OR_PARTITION, KafkaError._UNKNOWN_TOPIC)
    consumer = driver.consumer(broker.bootstrap, partitions=[(topic_name, 0)])
    assert consumer.poll(0.1) == []
    consumer.close()
    assert topic_name not in admin_client(broker.bootstrap).list_topics(timeout=WAIT_S).topics


def test_records_for_a_deleted_topic_are_refused_and_its_successor_starts_empty(
    start_broker: StartBroker, topic_name: str
) -> None:
    broker = start_broker(options={"auto.create.topics.enable": "false", "log.segment.delete.delay.ms": "0"})
    driver = ConfluentDriver()
    create_topic(broker.bootstrap, topic_name)
    producer = driver.producer(
        broker.bootstrap, **{"topic.metadata.propagation.max.ms": 100, "message.timeout.ms": 3000}
    )
    producer.send(topic_name, Record(b"first"))
    assert producer.flush() == [0]
    delete_topic(broker.bootstrap, topic_name)
    producer.send(topic_name, Record(b"into the void"))
    with pytest.raises(Refused) as refusal:
        producer.flush()
    assert refusal.value.code in (
        UNKNOWN_TOPIC_OR_PARTITION,
        KafkaError._UNKNOWN_TOPIC,
        KafkaError._UNKNOWN_PARTITION,
        KafkaError._MSG_TIMED_OUT,
        KafkaError._DESTROY,  # when it was on its way to a partition that the client forgets just then
    )
    create_topic(broker.bootstrap, topic_name)
    assert produce(driver, broker.bootstrap, topic_name, [Record(b"new")]) == [0]
    (received,) = consume(driver, broker.bootstrap, topic_name, 1)
    assert received.record.value == b"new"
    directories = [path.name for path in broker.data_dir.glob(f"{topic_name}*") if path.is_dir()]
    assert f"{topic_name}-0" in directories
    wait_until(
        lambda: [path.name for path in broker.data_dir.iterdir() if path.name.endswith("-delete")] == [],
        "the files of the deleted topic are gone",
    )


def test_a_consumer_goes_over_to_the_topic_that_took_the_name(
    start_broker: StartBroker, topic_name: str, driver: Driver
) -> None:
    broker = start_broker(options={"auto.create.topics.enable": "false"})
    create_topic(broker.bootstrap, topic_name)
    produce(driver, broker.bootstrap, topic_name, [Record(b"old")])
    consumer = driver.consumer(broker.bootstrap, group="group", topics=[topic_name])
    received: list[bytes | None] = []
    try:

        def has_come(value: bytes) -> bool:
            received.extend(each.record.value for each in consumer.poll(0.1))
            return value in received

        wait_until(lambda: has_come(b"old"), "the record of the old topic")
        delete_topic(broker.bootstrap, topic_name)
        create_topic(broker.bootstrap, topic_name)
        produce(driver, broker.bootstrap, topic_name, [Record(b"new %d" % number) for number in range(3)])
        wait_until(lambda: has_come(b"new 2"), "the records of the new topic")
    finally:
        consumer.close()
