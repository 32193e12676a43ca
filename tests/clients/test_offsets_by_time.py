"""Where in a partition a moment is: the first record at or after it, the ends, and the largest timestamp."""

from confluent_kafka import TopicPartition
from confluent_kafka.admin import OffsetSpec
from kafka import KafkaAdminClient
from kafka import OffsetSpec as PythonOffsetSpec
from kafka import TopicPartition as PythonTopicPartition

from penstock.testing.penstock_broker import PenstockBroker
from tests.clients.admin import admin_client, delete_records
from tests.clients.driver import WAIT_S, Driver, Record, produce
from tests.conftest import MakeTopic

BASE_MS = 1_700_000_000_000


def fill(driver: Driver, broker: PenstockBroker, topic: str, *, codec: str = "none") -> None:
    """Offsets 0 to 99, ten milliseconds apart, except that 40 and 70 share the largest timestamp."""
    records = [
        Record(b"v%d" % number, timestamp_ms=BASE_MS + (5000 if number in (40, 70) else number * 10))
        for number in range(100)
    ]
    produce(driver, broker.bootstrap, topic, records, codec=codec)


def test_a_consumer_finds_the_first_record_at_or_after_a_time(
    broker: PenstockBroker, make_topic: MakeTopic, driver: Driver
) -> None:
    for codec in ("none", "gzip"):
        topic = make_topic(configs={"segment.bytes": "1048576"})
        fill(driver, broker, topic, codec=codec)
        consumer = driver.consumer(broker.bootstrap, partitions=[(topic, 0)])
        try:
            found = {
                shift: consumer.offset_for_time(topic, 0, BASE_MS + shift)
                for shift in (-1000, 0, 1, 250, 399, 401, 990, 991, 5000, 5001)
            }
            assert found == {
                -1000: 0, 0: 0, 1: 1, 250: 25, 399: 40, 401: 40, 990: 40, 991: 40, 5000: 40, 5001: -1,
            }  # fmt: skip
            assert consumer.offsets(topic, 0) == (0, 100)
        finally:
            consumer.close()


def test_the_earliest_offset_follows_deleted_records(
    broker: PenstockBroker, make_topic: MakeTopic, driver: Driver
) -> None:
    topic = make_topic()
    fill(driver, broker, topic)
    delete_records(broker.bootstrap, topic, 0, 30)
    consumer = driver.consumer(broker.bootstrap, partitions=[(topic, 0)])
    try:
        assert consumer.offsets(topic, 0) == (30, 100)
        assert consumer.offset_for_time(topic, 0, BASE_MS) == 30
    finally:
        consumer.close()


def test_the_admin_clients_list_earliest_latest_and_largest_timestamp(
    broker: PenstockBroker, make_topic: MakeTopic, drivers: dict[str, Driver]
) -> None:
    topic, empty = make_topic(), make_topic()
    fill(drivers["confluent"], broker, topic)
    admin = admin_client(broker.bootstrap)

    def listed(name: str, spec: OffsetSpec) -> tuple[int, int]:
        where = TopicPartition(name, 0)
        result = admin.list_offsets({where: spec})[where].result(WAIT_S)
        return result.offset, result.timestamp

    assert listed(topic, OffsetSpec.earliest())[0] == 0
    assert listed(topic, OffsetSpec.latest())[0] == 100
    assert listed(topic, OffsetSpec.max_timestamp()) == (40, BASE_MS + 5000)
    assert listed(topic, OffsetSpec.for_timestamp(BASE_MS + 55)) == (6, BASE_MS + 60)
    assert listed(empty, OffsetSpec.max_timestamp()) == (-1, -1)

    python_admin = KafkaAdminClient(bootstrap_servers=broker.bootstrap)
    try:
        where = PythonTopicPartition(topic, 0)
        for spec, offset in (
            (PythonOffsetSpec.EARLIEST, 0),
            (PythonOffsetSpec.LATEST, 100),
            (PythonOffsetSpec.MAX_TIMESTAMP, 40),
        ):
            assert python_admin.list_partition_offsets({where: spec})[where].offset == offset
    finally:
        python_admin.close()
