"""Small requests that take long to check or to answer: the broker serves others meanwhile."""

import select
import time
from collections.abc import Iterator
from functools import cache

import pytest

from penstock.model.errors import ErrorCode
from penstock.records.batch import HEADER, HEADER_SIZE, read_header
from penstock.records.build import build_batch, sign
from penstock.records.compression import ZSTD, compress
from penstock.records.validate import MAX_RECORDS
from penstock.testing.penstock_broker import PenstockBroker
from penstock.wire.messages.create_topics import CreatableTopic, CreatableTopicConfig, CreateTopicsRequest
from penstock.wire.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from penstock.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from penstock.wire.schema import Message
from tests.hostile.raw_client import RawClient

VERSION = 12
LIST_VERSION = 7
COUNT = 400_000
"""Records that take the broker hundreds of steps to walk, in half a megabyte."""
OTHERS_SERVED = 20
"""Requests of others that are answered while it does."""
EQUAL_RECORD = bytes([12, 0, 0, 0, 0, 0, 0])  # with an empty key and the offset delta 0


@pytest.fixture
def client(broker: PenstockBroker) -> Iterator[RawClient]:
    with RawClient(broker.port, timeout_s=120) as connected:
        yield connected


@pytest.fixture
def other(broker: PenstockBroker) -> Iterator[RawClient]:
    with RawClient(broker.port, timeout_s=120) as connected:
        yield connected


def create(client: RawClient, name: str, **configs: str) -> str:
    wanted = CreatableTopic(
        name=name,
        num_partitions=1,
        replication_factor=1,
        configs=[
            CreatableTopicConfig(name=key.replace("_", "."), value=value) for key, value in configs.items()
        ],
    )
    (result,) = client.ask(CreateTopicsRequest(topics=[wanted], timeout_ms=5000), 7).topics
    assert result.error_code == 0, result
    return name


def varint(value: int) -> bytes:
    raw = value << 1
    out = bytearray()
    while raw > 0x7F:
        out.append(raw & 0x7F | 0x80)
        raw >>= 7
    out.append(raw)
    return bytes(out)


@cache
def many_records() -> bytes:
    """With empty keys, and offsets that count as they should."""
    out = bytearray()
    for number in range(COUNT):
        body = b"\0\0" + varint(number) + b"\0\0\0"
        out += varint(len(body)) + body
    return bytes(out)


def folded(payload: bytes, count: int) -> bytes:
    batch = build_batch([(b"", b"", (), time.time_ns() // 1_000_000)], codec=ZSTD)
    batch[HEADER_SIZE:] = compress(ZSTD, payload)
    header = read_header(batch)._replace(
        batch_length=len(batch) - 12, last_offset_delta=count - 1, records_count=count
    )
    HEADER.pack_into(batch, 0, *header)
    sign(memoryview(batch))
    return bytes(batch)


def produce(topic: str, batch: bytes) -> ProduceRequest:
    data = TopicProduceData(name=topic, partition_data=[PartitionProduceData(index=0, records=batch)])
    return ProduceRequest(acks=-1, timeout_ms=1000, topic_data=[data])


def others_served(client: RawClient, other: RawClient, request: Message, version: int) -> int:
    """How many requests of another client are answered before this one has its answer."""
    client.send(request, version)
    served = 0
    while not select.select([client.socket], [], [], 0)[0]:
        assert other.is_served()
        served += 1
    return served


def error_of(client: RawClient, request: ProduceRequest) -> ErrorCode:
    return ErrorCode(client.receive(request, VERSION).responses[0].partition_responses[0].error_code)


def test_others_are_served_while_the_keys_of_a_batch_are_checked(
    client: RawClient, other: RawClient, topic_name: str
) -> None:
    topic = create(client, topic_name, cleanup_policy="compact")
    request = produce(topic, folded(many_records(), COUNT))
    assert others_served(client, other, request, VERSION) > OTHERS_SERVED
    assert error_of(client, request) is ErrorCode.NONE


def test_others_are_served_while_a_batch_is_folded_again(
    client: RawClient, other: RawClient, topic_name: str
) -> None:
    topic = create(client, topic_name, compression_type="gzip")
    request = produce(topic, folded(many_records(), COUNT))
    assert others_served(client, other, request, VERSION) > OTHERS_SERVED
    assert error_of(client, request) is ErrorCode.NONE


def test_others_are_served_while_a_time_is_looked_up(
    client: RawClient, other: RawClient, topic_name: str
) -> None:
    topic = create(client, topic_name, message_timestamp_after_max_ms="100000000000")
    batch = bytearray(folded(many_records(), COUNT))
    latest = read_header(batch).max_timestamp + 1000  # which no record in it has
    HEADER.pack_into(batch, 0, *read_header(batch)._replace(max_timestamp=latest))
    sign(memoryview(batch))
    request = produce(topic, bytes(batch))
    client.send(request, VERSION)
    assert error_of(client, request) is ErrorCode.NONE
    asked = ListOffsetsRequest(
        replica_id=-1,
        topics=[
            ListOffsetsTopic(
                name=topic, partitions=[ListOffsetsPartition(partition_index=0, timestamp=latest)]
            )
        ],
    )
    assert others_served(client, other, asked, LIST_VERSION) > OTHERS_SERVED
    found = client.receive(asked, LIST_VERSION).topics[0].partitions[0]
    assert (found.error_code, found.offset) == (ErrorCode.NONE, -1)


def test_equal_records_that_compress_to_nothing_are_refused(client: RawClient, topic_name: str) -> None:
    topic = create(client, topic_name, cleanup_policy="compact")
    request = produce(topic, folded(EQUAL_RECORD * COUNT, COUNT))
    client.send(request, VERSION)
    assert error_of(client, request) is ErrorCode.INVALID_RECORD


def test_a_batch_of_more_records_than_a_batch_may_have_is_too_large(
    client: RawClient, topic_name: str
) -> None:
    topic = create(client, topic_name)
    request = produce(topic, folded(EQUAL_RECORD * (MAX_RECORDS + 1), MAX_RECORDS + 1))
    client.send(request, VERSION)
    assert error_of(client, request) is ErrorCode.MESSAGE_TOO_LARGE
