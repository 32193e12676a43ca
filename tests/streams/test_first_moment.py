"""Records of the first moment of 1970, which librdkafka would date today."""

from confluent_kafka import Consumer, TopicPartition

from penstock.streams.kernel.records import OutputRecord
from penstock.streams.running.options import run_options
from penstock.streams.running.writing import PlainWriter
from penstock.testing.penstock_broker import PenstockBroker
from tests.conftest import MakeTopic


def test_a_time_of_0_is_kept_in_the_order_of_the_others(
    broker: PenstockBroker, make_topic: MakeTopic
) -> None:
    topic = make_topic(partitions=3)
    writer = PlainWriter(run_options("first-moment", broker.bootstrap), frozenset())
    for timestamp in (5, 0, 7):
        writer.send(OutputRecord(topic, b"k", b"%d" % timestamp, timestamp, (("h", b"x"),)))
    writer.push()
    writer._flush()
    writer.close()
    consumer = Consumer({"bootstrap.servers": broker.bootstrap, "group.id": topic})
    try:
        consumer.assign([TopicPartition(topic, partition, 0) for partition in range(3)])
        found = [message for message in consumer.consume(3, 60) if message.error() is None]
    finally:
        consumer.close()
    assert [(m.value(), m.timestamp()[1], m.headers()) for m in found] == [
        (b"5", 5, [("h", b"x")]),
        (b"0", 0, [("h", b"x")]),
        (b"7", 7, [("h", b"x")]),
    ]
    assert len({message.partition() for message in found}) == 1
