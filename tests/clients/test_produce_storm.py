"""kill -9 in the middle of a produce storm: whatever was acknowledged is there, once, where it was said to be."""

from confluent_kafka import KafkaError, Message, Producer

from tests.clients.admin import create_topic
from tests.clients.confluent_driver import ConfluentDriver
from tests.clients.driver import consume, wait_until
from tests.conftest import StartBroker

PARTITIONS = 4
KILLS = 3
WAITING_AT_MOST = 2000


def test_nothing_acknowledged_is_missing_after_kills_in_a_produce_storm(
    start_broker: StartBroker, topic_name: str
) -> None:
    broker = start_broker()
    create_topic(broker.bootstrap, topic_name, partitions=PARTITIONS, configs={"segment.bytes": "1048576"})
    acknowledged: dict[tuple[int, int], bytes] = {}
    lost: list[KafkaError] = []

    def answered(error: KafkaError | None, message: Message) -> None:
        if error is not None:
            lost.append(error)
            return
        where = (message.partition(), message.offset())
        assert where not in acknowledged
        acknowledged[where] = message.value()

    producer = Producer(
        {
            "bootstrap.servers": broker.bootstrap,
            "enable.idempotence": True,
            "linger.ms": 1,
            "batch.size": 5000,
            "reconnect.backoff.max.ms": 100,
            "log_level": 0,
        }
    )
    sent = 0

    def storm(until_acknowledged: int) -> bool:
        nonlocal sent
        while len(producer) < WAITING_AT_MOST:
            value = b"%08d" % sent + bytes(500)
            producer.produce(topic_name, value, partition=sent % PARTITIONS, on_delivery=answered)
            sent += 1
        producer.poll(0.001)
        return len(acknowledged) >= until_acknowledged

    for _ in range(KILLS):
        goal = len(acknowledged) + 5000
        wait_until(lambda goal=goal: storm(goal), "5,000 more acknowledged")  # type: ignore[misc]
        broker.kill()
        broker = start_broker(port=broker.port)
    assert producer.flush(30) == 0
    assert lost == []
    assert len(acknowledged) == sent
    received = consume(ConfluentDriver(), broker.bootstrap, topic_name, sent, partitions=range(PARTITIONS))
    assert {(each.record.partition, each.offset): each.record.value for each in received} == acknowledged
    for partition in range(PARTITIONS):
        values = [each.record.value for each in received if each.record.partition == partition]
        assert values == sorted(values)  # type: ignore[type-var]
