"""Batches that must not get into a log: each gets Kafka's error code, and the log goes on as if nothing had been sent."""

import gzip
import io
import struct
import time
from collections.abc import Callable, Iterator
from typing import Any

import cramjam
import pytest

from penstock.model.errors import ErrorCode
from penstock.records.batch import HEADER, HEADER_SIZE, read_header
from penstock.records.build import build_batch, sign, write_varint
from penstock.records.compression import GZIP, LZ4, SNAPPY, ZSTD
from penstock.testing.penstock_broker import PenstockBroker
from penstock.wire.messages.create_topics import CreatableTopic, CreatableTopicConfig, CreateTopicsRequest
from penstock.wire.messages.init_producer_id import InitProducerIdRequest
from penstock.wire.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from penstock.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from tests.hostile.raw_client import Closed, RawClient

E = ErrorCode
HOUR_MS = 3_600_000
VERSION = 12


@pytest.fixture
def client(broker: PenstockBroker) -> Iterator[RawClient]:
    with RawClient(broker.port) as connected:
        yield connected


@pytest.fixture
def topic(client: RawClient, topic_name: str) -> str:
    return create(client, topic_name)


def create(client: RawClient, name: str, *, partitions: int = 1, **configs: str) -> str:
    wanted = CreatableTopic(
        name=name,
        num_partitions=partitions,
        replication_factor=1,
        configs=[
            CreatableTopicConfig(name=key.replace("_", "."), value=value) for key, value in configs.items()
        ],
    )
    (result,) = client.ask(CreateTopicsRequest(topics=[wanted], timeout_ms=5000), 7).topics
    assert result.error_code == 0, result
    return name


def now_ms() -> int:
    return time.time_ns() // 1_000_000


def good(count: int = 1, **options: Any) -> bytearray:
    return build_batch([(b"key", b"value %d" % number, (), now_ms()) for number in range(count)], **options)


def send(
    client: RawClient, topic: str, *batches: bytes | bytearray | None, acks: int = -1, index: int = 0
) -> list[int]:
    """The error codes of one request with a partition entry for each of the batches."""
    return [result.error_code for result in ask(client, topic, *batches, acks=acks, index=index)]


def ask(
    client: RawClient, topic: str, *batches: bytes | bytearray | None, acks: int = -1, index: int = 0
) -> list[Any]:
    request = ProduceRequest(
        acks=acks,
        timeout_ms=1000,
        topic_data=[
            TopicProduceData(
                name=topic,
                partition_data=[
                    PartitionProduceData(index=index, records=None if batch is None else bytes(batch))
                    for batch in batches
                ],
            )
        ],
    )
    response = client.ask(request, VERSION)
    assert [answered.name for answered in response.responses] == [topic]
    return list(response.responses[0].partition_responses)


def end_offset(client: RawClient, topic: str) -> int:
    wanted = ListOffsetsTopic(name=topic, partitions=[ListOffsetsPartition(partition_index=0, timestamp=-1)])
    response = client.ask(ListOffsetsRequest(replica_id=-1, topics=[wanted]), 7)
    offset = response.topics[0].partitions[0].offset
    assert isinstance(offset, int)
    return offset


def changed(batch: bytearray, **fields: int) -> bytearray:
    """The batch with other header fields, and a right CRC again."""
    header = read_header(batch)._replace(**fields)
    HEADER.pack_into(batch, 0, *header)
    if "crc" not in fields:
        sign(memoryview(batch))
    return batch


def of_raw_records(records: bytes, *, count: int = 1, codec: int = 0) -> bytearray:
    """A batch with a right header and CRC around whatever is said to be its records."""
    template = good(1)
    batch = template[:HEADER_SIZE] + records
    struct.pack_into(">i", batch, 8, len(batch) - 12)
    return changed(batch, records_count=count, last_offset_delta=count - 1, attributes=codec)


def record(claimed_length: int | None = None, *, key: bytes | None = b"k", padding: bytes = b"") -> bytes:
    """One record, whose length may lie."""
    body = bytearray(1)
    for number in (0, 0, -1 if key is None else len(key)):
        write_varint(body, number)
    body += key or b""
    write_varint(body, 5)
    body += b"value\x00" + padding
    out = bytearray()
    write_varint(out, len(body) if claimed_length is None else claimed_length)
    return bytes(out + body)


def with_wrong_crc() -> bytearray:
    batch = good(3)
    batch[-2] ^= 1
    return batch


def cut_off() -> bytearray:
    return good(3)[:-5]


BAD_BATCHES: dict[str, tuple[Callable[[], bytes | bytearray | None], set[int]]] = {
    "a wrong CRC": (with_wrong_crc, {E.CORRUPT_MESSAGE}),
    "a CRC of zero": (lambda: changed(good(), crc=0), {E.CORRUPT_MESSAGE}),
    "a batch that is cut off": (cut_off, {E.CORRUPT_MESSAGE}),
    "a length that is too small": (lambda: changed(good(), batch_length=10), {E.CORRUPT_MESSAGE}),
    "a length that is too large": (lambda: changed(good(), batch_length=2**31 - 1), {E.CORRUPT_MESSAGE}),
    "a negative length": (lambda: changed(good(), batch_length=-1), {E.CORRUPT_MESSAGE}),
    "a few bytes": (lambda: b"abc", {E.CORRUPT_MESSAGE}),
    "more records than there are": (
        lambda: changed(good(3), records_count=4, last_offset_delta=3),
        {E.INVALID_RECORD},
    ),
    "fewer records than there are": (
        lambda: changed(good(3), records_count=2, last_offset_delta=1),
        {E.INVALID_RECORD},
    ),
    "a count unlike the offsets": (lambda: changed(good(3), last_offset_delta=5), {E.INVALID_RECORD}),
    "a negative count": (lambda: changed(good(3), records_count=-1), {E.INVALID_RECORD}),
    "a negative last offset": (lambda: changed(good(3), last_offset_delta=-1), {E.INVALID_RECORD}),
    "a huge count": (
        lambda: changed(good(3), records_count=2**31 - 1, last_offset_delta=2**31 - 2),
        {E.INVALID_RECORD},
    ),
    "no records": (lambda: of_raw_records(b"", count=0), {E.INVALID_RECORD}),
    "no records at all": (lambda: b"", {E.INVALID_RECORD}),
    "null records": (lambda: None, {E.INVALID_RECORD}),
    "a record that says it is longer": (lambda: of_raw_records(record(100)), {E.INVALID_RECORD}),
    "a record that says it is shorter": (lambda: of_raw_records(record(4)), {E.INVALID_RECORD}),
    "a record of negative length": (lambda: of_raw_records(record(-5)), {E.INVALID_RECORD}),
    "a record of endless length": (lambda: of_raw_records(b"\xff" * 20), {E.INVALID_RECORD}),
    "two batches": (lambda: good() + good(), {E.INVALID_RECORD}),
    "format 0": (lambda: changed(good(), magic=0), {E.UNSUPPORTED_FOR_MESSAGE_FORMAT, E.INVALID_RECORD}),
    "format 1": (lambda: changed(good(), magic=1), {E.UNSUPPORTED_FOR_MESSAGE_FORMAT, E.INVALID_RECORD}),
    "format 3": (lambda: changed(good(), magic=3), {E.INVALID_RECORD, E.CORRUPT_MESSAGE}),
    "format 127": (lambda: changed(good(), magic=127), {E.INVALID_RECORD, E.CORRUPT_MESSAGE}),
    "a control batch": (lambda: good(control=True), {E.INVALID_RECORD}),
    "a base offset": (lambda: good(base_offset=7), {E.INVALID_RECORD}),
    "too many bytes": (
        lambda: build_batch([(None, bytes(1_100_000), (), now_ms())]),
        {E.MESSAGE_TOO_LARGE},
    ),
    "an unknown codec": (
        lambda: changed(good(), attributes=7),
        {E.UNSUPPORTED_COMPRESSION_TYPE},
    ),
    "a timestamp of next week": (
        lambda: build_batch([(b"k", b"v", (), now_ms() + 7 * 24 * HOUR_MS)]),
        {E.INVALID_TIMESTAMP},
    ),
    "an endless timestamp": (lambda: changed(good(), max_timestamp=2**63 - 1), {E.INVALID_TIMESTAMP}),
    "log append time": (lambda: changed(good(), attributes=8), {E.INVALID_TIMESTAMP}),
    "a producer without a sequence": (lambda: good(producer_id=1, producer_epoch=0), {E.INVALID_RECORD}),
}


@pytest.mark.parametrize("fault", list(BAD_BATCHES))
def test_a_bad_batch_is_refused_and_the_log_is_unharmed(client: RawClient, topic: str, fault: str) -> None:
    build, expected = BAD_BATCHES[fault]
    assert send(client, topic, good(2)) == [0]
    (code,) = send(client, topic, build())
    assert code in expected, E(code)
    assert end_offset(client, topic) == 2
    (after,) = ask(client, topic, good())
    assert (after.error_code, after.base_offset) == (0, 2)


@pytest.mark.parametrize("acks", [-2, 2, 5, 32767, -32768])
def test_wrong_acks_are_refused(client: RawClient, topic: str, acks: int) -> None:
    assert send(client, topic, good(), acks=acks) == [E.INVALID_REQUIRED_ACKS]
    assert end_offset(client, topic) == 0


@pytest.mark.parametrize("index", [1, -1, -2, 2**31 - 1, -(2**31)])
def test_an_unknown_partition_is_told_so(client: RawClient, topic: str, index: int) -> None:
    assert send(client, topic, good(), index=index) == [E.UNKNOWN_TOPIC_OR_PARTITION]
    assert end_offset(client, topic) == 0


@pytest.mark.parametrize("name", ["no-such-topic", "", "a/b", "..", "x" * 250, "x" * 32_767])
def test_an_unknown_topic_is_told_so(client: RawClient, name: str) -> None:
    (code,) = send(client, name, good())
    assert code in (E.UNKNOWN_TOPIC_OR_PARTITION, E.INVALID_TOPIC_EXCEPTION)


@pytest.mark.parametrize("topic_id", [bytes(16), bytes(range(16))])
def test_an_unknown_topic_id_is_told_so(client: RawClient, topic_id: bytes) -> None:
    data = PartitionProduceData(index=0, records=bytes(good()))
    request = ProduceRequest(
        acks=1, timeout_ms=1, topic_data=[TopicProduceData(topic_id=topic_id, partition_data=[data])]
    )
    response = client.ask(request, 13)
    assert response.responses[0].partition_responses[0].error_code == E.UNKNOWN_TOPIC_ID


def test_a_refused_partition_does_not_hold_up_the_others(client: RawClient, topic: str) -> None:
    assert send(client, topic, good(), with_wrong_crc(), good()) == [0, E.CORRUPT_MESSAGE, 0]
    assert end_offset(client, topic) == 2


def test_a_failed_request_without_acks_loses_its_connection(broker: PenstockBroker, topic: str) -> None:
    data = PartitionProduceData(index=0, records=bytes(with_wrong_crc()))
    request = ProduceRequest(
        acks=0, timeout_ms=1, topic_data=[TopicProduceData(name=topic, partition_data=[data])]
    )
    with RawClient(broker.port) as attacker:
        attacker.send(request, VERSION)
        with pytest.raises(Closed):
            attacker.read_frame()


@pytest.mark.parametrize("codec", [0, GZIP, SNAPPY, LZ4, ZSTD])
def test_a_record_without_a_key_is_refused_on_a_compacted_topic(
    client: RawClient, topic_name: str, codec: int
) -> None:
    create(client, topic_name, cleanup_policy="compact")
    assert send(client, topic_name, good(2, codec=codec)) == [0]
    keyless = build_batch([(b"k", b"v", (), now_ms()), (None, b"v", (), now_ms())], codec=codec)
    assert send(client, topic_name, keyless) == [E.INVALID_RECORD]
    assert end_offset(client, topic_name) == 2


@pytest.mark.parametrize("codec", [GZIP, SNAPPY, LZ4, ZSTD])
@pytest.mark.parametrize("payload", [b"", b"\x00" * 40, b"\xff" * 40], ids=["empty", "zeros", "ones"])
def test_a_payload_that_does_not_unfold_is_refused_where_it_must_be_read(
    client: RawClient, topic_name: str, codec: int, payload: bytes
) -> None:
    create(client, topic_name, cleanup_policy="compact")
    (code,) = send(client, topic_name, of_raw_records(payload, codec=codec))
    assert code in (E.INVALID_RECORD, E.CORRUPT_MESSAGE)
    assert end_offset(client, topic_name) == 0


@pytest.mark.parametrize("codec", [GZIP, ZSTD])
def test_a_small_batch_that_unfolds_to_gigabytes_is_refused(
    broker: PenstockBroker, client: RawClient, topic_name: str, codec: int
) -> None:
    create(client, topic_name, cleanup_policy="compact")
    before = broker.usage().peak_resident_bytes
    if codec == GZIP:
        out = io.BytesIO()
        with gzip.GzipFile(fileobj=out, mode="wb", compresslevel=9) as bomb:
            for _ in range(300):
                bomb.write(bytes(1024 * 1024))
        payload = out.getvalue()
    else:
        payload = bytes(cramjam.zstd.compress(bytes(300 * 1024 * 1024)))
    assert len(payload) < 1_000_000
    assert send(client, topic_name, of_raw_records(payload, codec=codec)) == [E.INVALID_RECORD]
    assert broker.usage().peak_resident_bytes - before < 400 * 1024 * 1024


def test_lying_records_are_refused_also_when_they_are_many(client: RawClient, topic: str) -> None:
    records = b"".join(record() for _ in range(500))
    assert send(client, topic, of_raw_records(records, count=500)) == [0]
    for broken in (0, 250, 499):
        parts = [record() for _ in range(500)]
        parts[broken] = record(3)
        assert send(client, topic, of_raw_records(b"".join(parts), count=500)) == [E.INVALID_RECORD]
    assert end_offset(client, topic) == 500


class Sequences:
    """An idempotent producer whose sequence numbers are ours to choose."""

    def __init__(self, client: RawClient, topic: str) -> None:
        self._client = client
        self._topic = topic
        request = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=1000)
        self.producer_id = client.ask(request, 4).producer_id

    def send(self, sequence: int, count: int = 1, *, epoch: int = 0) -> tuple[int, int]:
        batch = good(count, producer_id=self.producer_id, producer_epoch=epoch, base_sequence=sequence)
        (result,) = ask(self._client, self._topic, batch)
        return result.error_code, result.base_offset


def test_a_gap_in_the_sequence_is_refused(client: RawClient, topic: str) -> None:
    producer = Sequences(client, topic)
    assert producer.send(0, 3) == (0, 0)
    assert producer.send(4)[0] == E.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert producer.send(2**31 - 1)[0] == E.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert producer.send(3) == (0, 3)


def test_a_repeated_batch_gets_its_old_offset(client: RawClient, topic: str) -> None:
    producer = Sequences(client, topic)
    offsets = [producer.send(number) for number in range(5)]
    assert offsets == [(0, number) for number in range(5)]
    assert [producer.send(number) for number in range(5)] == offsets
    assert end_offset(client, topic) == 5


def test_a_batch_that_overlaps_an_old_one_is_refused(client: RawClient, topic: str) -> None:
    producer = Sequences(client, topic)
    assert producer.send(0, 3) == (0, 0)
    assert producer.send(0, 2)[0] in (E.OUT_OF_ORDER_SEQUENCE_NUMBER, E.DUPLICATE_SEQUENCE_NUMBER)
    assert producer.send(1, 3)[0] in (E.OUT_OF_ORDER_SEQUENCE_NUMBER, E.DUPLICATE_SEQUENCE_NUMBER)
    assert end_offset(client, topic) == 3


def test_an_older_epoch_is_fenced(client: RawClient, topic: str) -> None:
    producer = Sequences(client, topic)
    assert producer.send(0, epoch=3) == (0, 0)
    assert producer.send(1, epoch=2)[0] == E.INVALID_PRODUCER_EPOCH
    assert producer.send(7, epoch=4)[0] == E.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert producer.send(0, epoch=4) == (0, 1)
    assert producer.send(1, epoch=3)[0] == E.INVALID_PRODUCER_EPOCH
    assert end_offset(client, topic) == 2


def test_the_sequence_wraps_around(client: RawClient, topic: str) -> None:
    producer = Sequences(client, topic)
    assert producer.send(2**31 - 2, 3) == (0, 0)
    assert producer.send(2)[0] == E.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert producer.send(1) == (0, 3)
