"""A disk without room: the produce request is told so, nothing torn is left, and everything else goes on.

A limit on the size of files (RLIMIT_FSIZE) stands for the full disk: it can be set for one process, from outside, at
any time, and lifted again. The error differs (EFBIG, not ENOSPC), the way through the broker does not.
"""

import resource
from typing import Any

from penstock.model.errors import ErrorCode
from penstock.records.build import build_batch
from penstock.testing.penstock_broker import PenstockBroker
from penstock.wire.messages.create_topics import CreatableTopic, CreateTopicsRequest
from penstock.wire.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from penstock.wire.messages.init_producer_id import InitProducerIdRequest
from penstock.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from tests.conftest import StartBroker
from tests.crash.plain_client import create_topic, produce, read_all
from tests.hostile.raw_client import RawClient

VALUE = bytes(10_000)
LIMIT_BYTES = 128 * 1024
"""Above what the metadata store and its log need for a few topics."""

ATTEMPTS = 40
"""More changes of the metadata than there is room for."""
TOPIC = 2  # of the types of what has a configuration


def limit_files(broker: PenstockBroker, size_bytes: int) -> None:
    _, hard = resource.prlimit(broker.pid, resource.RLIMIT_FSIZE)
    resource.prlimit(broker.pid, resource.RLIMIT_FSIZE, (size_bytes, hard))


def send(client: RawClient, topic: str, value: bytes = VALUE, *, sequence: int = -1) -> tuple[int, int]:
    """Error code and base offset of one record of a producer that numbers its batches."""
    producer: dict[str, Any] = (
        {"producer_id": 5, "producer_epoch": 0, "base_sequence": sequence} if sequence >= 0 else {}
    )
    batch = bytes(build_batch([(None, value, (), 1_700_000_000_000)], **producer))
    data = TopicProduceData(name=topic, partition_data=[PartitionProduceData(index=0, records=batch)])
    response = client.ask(ProduceRequest(acks=-1, timeout_ms=1000, topic_data=[data]), 12)
    (answered,) = response.responses[0].partition_responses
    return answered.error_code, answered.base_offset


def fill(client: RawClient, topic: str) -> int:
    """Numbered records until there is room for no more; how many there are."""
    for sequence in range(1000):
        code, offset = send(client, topic, sequence=sequence)
        if code:
            assert code == ErrorCode.KAFKA_STORAGE_ERROR, code
            return sequence
        assert offset == sequence
    raise AssertionError("the limit was never reached")


def test_a_full_disk_refuses_records_and_takes_them_again_when_there_is_room(
    start_broker: StartBroker,
) -> None:
    broker = start_broker()
    create_topic(broker.bootstrap, "full")
    create_topic(broker.bootstrap, "small")
    limit_files(broker, LIMIT_BYTES)
    with RawClient(broker.port) as client:
        count = fill(client, "full")
        assert 5 < count < 20
        for _ in range(3):
            assert send(client, "full", sequence=count)[0] == ErrorCode.KAFKA_STORAGE_ERROR
        assert send(client, "small", b"others have room") == (0, 0)
        assert len(read_all(broker.bootstrap, "full")) == count
        limit_files(broker, resource.RLIM_INFINITY)
        assert send(client, "full", sequence=count) == (0, count)
        assert send(client, "full", sequence=count) == (0, count)
    assert len(read_all(broker.bootstrap, "full")) == count + 1
    text = broker.log_path.read_text()
    assert "full" in text
    assert "ERROR" in text


def create(client: RawClient, name: str) -> int:
    topic = CreatableTopic(name=name, num_partitions=1, replication_factor=1)
    (answered,) = client.ask(CreateTopicsRequest(topics=[topic], timeout_ms=1000), 7).topics
    return int(answered.error_code)


def configure(client: RawClient, topic: str, retention_ms: str) -> int:
    entry = AlterableConfig(name="retention.ms", value=retention_ms)
    changed = AlterConfigsResource(resource_type=TOPIC, resource_name=topic, configs=[entry])
    (answered,) = client.ask(IncrementalAlterConfigsRequest(resources=[changed]), 1).responses
    return int(answered.error_code)


def begin_producing(client: RawClient) -> int:
    answered = client.ask(InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=1000), 4)
    return int(answered.error_code)


def test_a_full_disk_under_the_metadata_store_refuses_changes_until_there_is_room(
    start_broker: StartBroker,
) -> None:
    """With one line in the log for each request, not with the traceback of a bug."""
    broker = start_broker()
    create_topic(broker.bootstrap, "before")
    limit_files(broker, LIMIT_BYTES)
    with RawClient(broker.port) as client:
        topics = [create(client, f"topic-{number}") for number in range(ATTEMPTS)]
        made = topics.index(ErrorCode.KAFKA_STORAGE_ERROR)
        assert made > 0
        assert set(topics[made:]) == {ErrorCode.KAFKA_STORAGE_ERROR}
        configs = [configure(client, "before", f"{number}000") for number in range(ATTEMPTS)]
        assert configs[-1] == ErrorCode.KAFKA_STORAGE_ERROR  # the first ones may have found a little room
        assert begin_producing(client) == 0  # the ids of the first thousand were claimed at the start
        assert send(client, "before", b"others have room") == (0, 0)
        limit_files(broker, resource.RLIM_INFINITY)
        assert create(client, f"topic-{made}") == 0
        assert send(client, f"topic-{made}", b"one") == (0, 0)
    text = broker.log_path.read_text()
    refusals = [*topics, *configs].count(ErrorCode.KAFKA_STORAGE_ERROR)
    assert text.count("penstock-metadata.db cannot be used") == refusals


def test_nothing_torn_is_left_when_the_broker_dies_with_its_disk_full(start_broker: StartBroker) -> None:
    broker = start_broker()
    create_topic(broker.bootstrap, "full")
    limit_files(broker, LIMIT_BYTES)
    with RawClient(broker.port) as client:
        count = fill(client, "full")
    broker.kill()
    again = start_broker(port=broker.port)
    assert "cut" not in again.process.log_text()
    assert read_all(again.bootstrap, "full") == [VALUE] * count
    produce(again.bootstrap, "full", [b"next"])


def test_a_disk_that_is_full_from_the_first_record_on_loses_no_count(start_broker: StartBroker) -> None:
    """Also the small files beside the log cannot be written then; a record is stored once or not at all."""
    broker = start_broker()
    create_topic(broker.bootstrap, "full")
    limit_files(broker, 0)
    with RawClient(broker.port) as client:
        assert send(client, "full", sequence=0)[0] == ErrorCode.KAFKA_STORAGE_ERROR
        limit_files(broker, resource.RLIM_INFINITY)
        assert send(client, "full", sequence=0) == (0, 0)
        assert send(client, "full", sequence=1) == (0, 1)
    assert read_all(broker.bootstrap, "full") == [VALUE, VALUE]


def test_a_full_disk_at_a_roll_of_the_segment_loses_no_record(start_broker: StartBroker) -> None:
    broker = start_broker()
    create_topic(broker.bootstrap, "rolls", config={"segment.bytes": "1048576"})
    with RawClient(broker.port) as client:
        first_of_second = 1048576 // (len(VALUE) + 72)
        for sequence in range(first_of_second):
            assert send(client, "rolls", sequence=sequence) == (0, sequence)
        limit_files(broker, 0)
        for _ in range(3):
            assert send(client, "rolls", sequence=first_of_second)[0] == ErrorCode.KAFKA_STORAGE_ERROR
        limit_files(broker, resource.RLIM_INFINITY)
        for sequence in range(first_of_second, 130):
            assert send(client, "rolls", sequence=sequence) == (0, sequence)
    assert len(read_all(broker.bootstrap, "rolls")) == 130
    assert len(list((broker.data_dir / "rolls-0").glob("*.log"))) == 2
    broker.kill()
    again = start_broker(port=broker.port)
    assert len(read_all(again.bootstrap, "rolls")) == 130


def test_a_broker_with_a_full_disk_stops_without_a_marker_and_starts_again(start_broker: StartBroker) -> None:
    broker = start_broker()
    create_topic(broker.bootstrap, "full")
    with RawClient(broker.port) as client:
        assert send(client, "full", sequence=0) == (0, 0)
    limit_files(broker, 0)
    broker.stop()
    assert not (broker.data_dir / ".kafka_cleanshutdown").exists()
    again = start_broker(port=broker.port)
    assert read_all(again.bootstrap, "full") == [VALUE]


def test_a_record_is_not_stored_twice_when_a_file_beside_the_log_cannot_be_written(
    start_broker: StartBroker,
) -> None:
    broker = start_broker()
    create_topic(broker.bootstrap, "full")
    in_the_way = broker.data_dir / "full-0" / "leader-epoch-checkpoint.tmp"
    in_the_way.mkdir()
    with RawClient(broker.port) as client:
        first = send(client, "full", sequence=0)
        in_the_way.rmdir()
        assert first in ((0, 0), (ErrorCode.KAFKA_STORAGE_ERROR, -1))
        assert send(client, "full", sequence=0) == (0, 0)
    assert read_all(broker.bootstrap, "full") == [VALUE]
