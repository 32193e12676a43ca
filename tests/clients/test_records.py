"""Records go in and come out the same, whichever library writes and whichever reads."""

import itertools
import time

import pytest

from penstock.testing.penstock_broker import PenstockBroker
from tests.clients.admin import CODEC_NAMES, stored_codecs
from tests.clients.driver import (
    CREATE_TIME,
    LOG_APPEND_TIME,
    Driver,
    Record,
    Refused,
    consume,
    produce,
    wait_until,
)
from tests.conftest import MakeTopic

MESSAGE_TOO_LARGE = 10
DRIVER_NAMES = ("confluent", "aiokafka", "kafka_python")
NOW_MS = int(time.time() * 1000)

# What tells a careful broker from a careless one: nothing, emptiness, repeated and null headers, bytes that are no text.
MIXED_RECORDS = (
    Record(b"plain", b"key", (), NOW_MS),
    Record(None, b"a tombstone", (), NOW_MS + 1),
    Record(b"no key", None, (), NOW_MS + 2),
    Record(None, None, (), NOW_MS + 3),
    Record(b"", b"", (), NOW_MS + 4),
    Record(b"header", b"k", (("a", b"1"), ("b", b""), ("a", b"2")), NOW_MS + 5),
    Record(
        b"headers", b"k", (("a", b"1"), ("a", b"2"), ("b", None), ("", b""), ("ü", b"\xff\x00")), NOW_MS + 5
    ),
    Record(bytes(range(256)) * 40, "clé".encode(), (), NOW_MS - 60_000),
)


def numbered(count: int, *, size: int = 0) -> list[Record]:
    return [
        Record(b"%08d" % number + b"x" * size, b"k%d" % number, (), NOW_MS + number)
        for number in range(count)
    ]


@pytest.mark.parametrize("codec", CODEC_NAMES)
def test_records_of_every_codec_come_back_and_are_stored_as_they_were_compressed(
    broker: PenstockBroker, make_topic: MakeTopic, driver: Driver, codec: str
) -> None:
    topic = make_topic()
    sent = numbered(500, size=100)
    offsets = produce(driver, broker.bootstrap, topic, sent, codec=codec)
    assert offsets == list(range(500))
    received = consume(driver, broker.bootstrap, topic, 500)
    assert [each.record for each in received] == sent
    assert [each.offset for each in received] == offsets
    assert stored_codecs(broker.data_dir, topic) == {codec}


@pytest.mark.parametrize(("writer", "reader"), list(itertools.product(DRIVER_NAMES, DRIVER_NAMES)))
def test_what_one_client_writes_another_reads_alike(
    broker: PenstockBroker, make_topic: MakeTopic, drivers: dict[str, Driver], writer: str, reader: str
) -> None:
    topic = make_topic()
    sent = [each for each in MIXED_RECORDS if drivers[writer].can_send(each)]
    for codec in CODEC_NAMES:
        produce(drivers[writer], broker.bootstrap, topic, sent, codec=codec)
    received = consume(drivers[reader], broker.bootstrap, topic, len(sent) * len(CODEC_NAMES))
    assert [each.record for each in received] == sent * len(CODEC_NAMES)
    assert {each.timestamp_type for each in received} == {CREATE_TIME}
    assert stored_codecs(broker.data_dir, topic) == set(CODEC_NAMES)


@pytest.mark.parametrize("codec", ["none", "lz4"])
def test_a_log_append_time_topic_stamps_the_records_itself(
    broker: PenstockBroker, make_topic: MakeTopic, driver: Driver, codec: str
) -> None:
    topic = make_topic(configs={"message.timestamp.type": "LogAppendTime"})
    before_ms = int(time.time() * 1000)
    produce(
        driver,
        broker.bootstrap,
        topic,
        [Record(b"a", timestamp_ms=1000), Record(b"b", timestamp_ms=2000)],
        codec=codec,
    )
    received = consume(driver, broker.bootstrap, topic, 2)
    after_ms = int(time.time() * 1000)
    for each in received:
        assert each.timestamp_type == LOG_APPEND_TIME
        assert each.record.timestamp_ms is not None
        assert before_ms <= each.record.timestamp_ms <= after_ms


def test_a_record_of_900_kilobytes_goes_through(
    broker: PenstockBroker, make_topic: MakeTopic, driver: Driver
) -> None:
    topic = make_topic()
    large = Record(bytes(itertools.islice(itertools.cycle(range(251)), 900_000)), b"large", (), NOW_MS)
    around = [Record(b"before", None, (), NOW_MS), large, Record(b"after", None, (), NOW_MS)]
    produce(driver, broker.bootstrap, topic, around)
    assert [each.record for each in consume(driver, broker.bootstrap, topic, 3)] == around


def test_a_record_larger_than_the_topic_allows_is_refused_and_the_next_is_not(
    broker: PenstockBroker, make_topic: MakeTopic, driver: Driver
) -> None:
    topic = make_topic()
    producer = driver.producer(broker.bootstrap, max_request_bytes=5_000_000, batch_bytes=2_000_000)
    try:
        producer.send(topic, Record(bytes(2_000_000)))
        with pytest.raises(Refused) as refusal:
            producer.flush()
        assert refusal.value.code == MESSAGE_TOO_LARGE
        producer.send(topic, Record(b"small"))
        assert producer.flush() == [0]
    finally:
        producer.close()


def test_a_topic_may_allow_larger_records_than_the_broker(
    broker: PenstockBroker, make_topic: MakeTopic, driver: Driver
) -> None:
    topic = make_topic(configs={"max.message.bytes": "4000000"})
    producer = driver.producer(broker.bootstrap, max_request_bytes=5_000_000, batch_bytes=3_000_000)
    try:
        producer.send(topic, Record(bytes(3_000_000), timestamp_ms=NOW_MS))
        assert producer.flush() == [0]
    finally:
        producer.close()
    (received,) = consume(driver, broker.bootstrap, topic, 1)
    assert received.record.value == bytes(3_000_000)


@pytest.mark.parametrize("acks", ["0", "1", "all"])
def test_records_arrive_with_every_kind_of_acknowledgement(
    broker: PenstockBroker, make_topic: MakeTopic, driver: Driver, acks: str
) -> None:
    topic = make_topic()
    sent = numbered(50)
    offsets = produce(driver, broker.bootstrap, topic, sent, acks=acks)
    assert acks == "0" or offsets == list(range(50))
    assert [each.record for each in consume(driver, broker.bootstrap, topic, 50)] == sent


def test_a_failed_produce_without_acknowledgement_does_not_stop_the_next_ones(
    broker: PenstockBroker, make_topic: MakeTopic, driver: Driver
) -> None:
    topic = make_topic(configs={"max.message.bytes": "1000"})
    producer = driver.producer(broker.bootstrap, acks="0")
    consumer = driver.consumer(broker.bootstrap, partitions=[(topic, 0)])
    try:
        producer.send(topic, Record(bytes(5000)))
        producer.flush()

        # The broker has no answer to refuse in, so it closes the connection, and may do so with the next record on its way.
        def arrives() -> bool:
            producer.send(topic, Record(b"small"))
            producer.flush()
            return bool(consumer.poll(0.05))

        wait_until(arrives, "a record after the refused one")
    finally:
        producer.close()
        consumer.close()


def test_one_producer_fills_many_partitions_and_each_keeps_its_order(
    broker: PenstockBroker, make_topic: MakeTopic, driver: Driver
) -> None:
    topic = make_topic(partitions=50)
    sent = [Record(b"%d" % number, None, (), NOW_MS, number % 50) for number in range(2000)]
    offsets = produce(driver, broker.bootstrap, topic, sent, codec="lz4")
    assert offsets == [number // 50 for number in range(2000)]
    received = consume(driver, broker.bootstrap, topic, 2000, partitions=range(50))
    for partition in range(50):
        mine = [each.record for each in received if each.record.partition == partition]
        assert mine == [record for record in sent if record.partition == partition]
