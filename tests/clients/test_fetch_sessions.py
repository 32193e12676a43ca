"""Consumers of many partitions: fetch sessions carry only what changed, and no partition is forgotten or starved."""

from penstock.testing.penstock_broker import PenstockBroker
from tests.clients.driver import Driver, Record, produce, read
from tests.conftest import MakeTopic

PARTITIONS = 200


def test_a_consumer_of_200_partitions_sees_every_record_of_each_round(
    broker: PenstockBroker, make_topic: MakeTopic, driver: Driver
) -> None:
    topic = make_topic(partitions=PARTITIONS)
    everything = [(topic, index) for index in range(PARTITIONS)]
    consumer = driver.consumer(broker.bootstrap, partitions=everything)
    try:
        # All partitions, then few of them, then others: an incremental fetch answers for those with news.
        for round_number, some in enumerate((range(200), range(0, 200, 37), (199, 3), range(200))):
            produce(
                driver,
                broker.bootstrap,
                topic,
                [Record(b"%d" % round_number, partition=index) for index in some],
            )
            received = read(consumer, len(some))
            assert {each.record.value for each in received} == {b"%d" % round_number}
            assert sorted(each.record.partition for each in received) == sorted(some)
    finally:
        consumer.close()


def test_small_partitions_are_not_starved_by_large_ones(
    broker: PenstockBroker, make_topic: MakeTopic, driver: Driver
) -> None:
    topic = make_topic(partitions=20)
    large = [Record(bytes(100_000), partition=index) for index in range(10) for _ in range(20)]
    small = [Record(b"small", partition=index) for index in range(10, 20)]
    produce(driver, broker.bootstrap, topic, large + small)
    consumer = driver.consumer(broker.bootstrap, partitions=[(topic, index) for index in range(20)])
    try:
        received = read(consumer, len(large) + len(small))
    finally:
        consumer.close()
    assert sum(each.record.value == b"small" for each in received) == len(small)
