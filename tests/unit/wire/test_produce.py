"""The hand-written produce codec, against the compiled one, which is itself checked against kio's."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.wire import codec, produce
from penstock.wire.errors import Malformed
from penstock.wire.messages.produce import (
    BatchIndexAndErrorMessage,
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
    TopicProduceResponse,
)

VERSIONS = range(3, 14)
TOPIC_ID = bytes(range(16))


def request(version: int) -> ProduceRequest:
    partitions = [PartitionProduceData(index=0, records=b"abc"), PartitionProduceData(index=7, records=None)]
    topics = [
        TopicProduceData(name="orders", topic_id=TOPIC_ID, partition_data=partitions),
        TopicProduceData(name="ação", topic_id=bytes(16), partition_data=[]),
    ]
    return ProduceRequest(
        transactional_id="tx" if version % 2 else None, acks=-1, timeout_ms=1500, topic_data=topics
    )


@pytest.mark.parametrize("version", VERSIONS)
def test_every_version_of_the_request_is_read(version: int) -> None:
    frame = memoryview(b"head" + codec.encode(request(version), version))
    read = produce.read_request(frame, 4, version)
    assert read.transactional_id == ("tx" if version % 2 else None)
    assert (read.acks, read.timeout_ms) == (-1, 1500)
    keys: list[str | bytes] = [TOPIC_ID, bytes(16)] if version >= 13 else ["orders", "ação"]
    assert [key for key, _ in read.topics] == keys
    first, second = read.topics[0][1]
    assert (first[0], bytes(first[1] or b"")) == (0, b"abc")
    assert second == (7, None)
    assert read.topics[1][1] == []


def single_request(version: int, size: int, *, name: str = "orders") -> bytes:
    partitions = [PartitionProduceData(index=3, records=bytes(range(256)) * (size // 256 + 1))]
    partitions[0].records = (partitions[0].records or b"")[:size]
    topics = [TopicProduceData(name=name, topic_id=TOPIC_ID, partition_data=partitions)]
    message = ProduceRequest(transactional_id=None, acks=1, timeout_ms=1500, topic_data=topics)
    return bytes(codec.encode(message, version))


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("size", [0, 1, 61, 126, 127, 128, 190, 16_254, 16_255, 16_256, 20_000])
def test_a_request_of_one_batch_is_read_as_any_other(version: int, size: int) -> None:
    for name in ("orders", "a" * 200, ""):
        whole = single_request(version, size, name=name)
        read = produce.read_request(memoryview(whole), 0, version)
        key: str | bytes = TOPIC_ID if version >= 13 else name
        assert (read.transactional_id, read.acks, read.timeout_ms) == (None, 1, 1500)
        ((read_key, ((index, records),)),) = read.topics
        assert (read_key, index) == (key, 3)
        assert records is not None
        assert bytes(records) == (bytes(range(256)) * 80)[:size]


@pytest.mark.parametrize("version", VERSIONS)
def test_a_request_of_one_batch_cut_off_anywhere_is_malformed(version: int) -> None:
    whole = single_request(version, 190)
    for length in range(len(whole) - 3):
        with pytest.raises(Malformed):
            produce.read_request(memoryview(whole[:length]), 0, version)


@pytest.mark.parametrize("version", VERSIONS)
def test_a_single_result_is_written_as_among_others(version: int) -> None:
    key: str | bytes = TOPIC_ID if version >= 13 else "orders"
    for result in ((7, 0, 42, 5, 3, None), produce.refused(7, 87), produce.refused(7, 87, "não")):
        alone, _ = codec.decode(
            ProduceResponse, version, bytes(produce.write_response([(key, [result])], version, 9))
        )
        among, _ = codec.decode(
            ProduceResponse, version, bytes(produce.write_response([(key, [result, result])], version, 9))
        )
        assert alone.throttle_time_ms == among.throttle_time_ms == 9
        assert alone.responses[0].name == among.responses[0].name
        assert alone.responses[0].topic_id == among.responses[0].topic_id
        assert alone.responses[0].partition_responses == among.responses[0].partition_responses[:1]


@pytest.mark.parametrize("version", VERSIONS)
def test_records_are_views_into_the_frame_and_can_be_patched_in_place(version: int) -> None:
    frame = bytearray(codec.encode(request(version), version))
    records = produce.read_request(memoryview(frame), 0, version).topics[0][1][0][1]
    assert records is not None
    records[0:1] = b"X"
    assert b"Xbc" in frame


@pytest.mark.parametrize("version", VERSIONS)
def test_every_version_of_the_response_can_be_read_by_a_client(version: int) -> None:
    key: str | bytes = TOPIC_ID if version >= 13 else "orders"
    results: list[produce.ProduceResult] = [
        (0, 0, 42, -1, 3, None),
        produce.refused(1, 87, "não"),
    ]
    body = produce.write_response([(key, results)], version, throttle_time_ms=9)
    response, end = codec.decode(ProduceResponse, version, bytes(body))
    assert end == len(body)
    assert response.throttle_time_ms == 9
    (topic,) = response.responses
    assert (topic.topic_id if version >= 13 else topic.name) == key
    good, bad = topic.partition_responses
    assert (good.index, good.error_code, good.base_offset, good.log_append_time_ms) == (0, 0, 42, -1)
    assert (bad.index, bad.error_code, bad.base_offset) == (1, 87, -1)
    if version >= 5:
        assert good.log_start_offset == 3
    if version >= 8:
        assert (good.error_message, bad.error_message) == (None, "não")


@pytest.mark.parametrize("version", VERSIONS)
def test_a_request_cut_off_anywhere_is_malformed(version: int) -> None:
    whole = codec.encode(request(version), version)
    for length in range(len(whole) - 1):
        try:
            produce.read_request(memoryview(whole[:length]), 0, version)
        except Malformed:
            continue
        # Only the closing tagged fields may be missing without harm.
        assert version >= 9
        assert length >= len(whole) - 2


@given(st.binary(max_size=200), st.sampled_from(VERSIONS))
def test_any_bytes_are_read_or_malformed(data: bytes, version: int) -> None:
    try:
        produce.read_request(memoryview(data), 0, version)
    except Malformed:
        pass


def test_a_count_of_two_billion_topics_is_refused_without_making_them() -> None:
    head = b"\xff\xff" + b"\xff\xff" + b"\x00\x00\x05\xdc"
    with pytest.raises(Malformed, match="array"):
        produce.read_request(memoryview(head + b"\x7f\xff\xff\xff"), 0, 3)


@pytest.mark.parametrize("version", VERSIONS)
def test_the_record_that_is_to_blame_is_told(version: int) -> None:
    refused = produce.refused(7, 87, "it is no good", 3)
    answer = produce.write_response([(TOPIC_ID if version >= 13 else "orders", [refused])], version, 5)
    partition = PartitionProduceResponse(
        index=7,
        error_code=87,
        base_offset=-1,
        log_append_time_ms=-1,
        log_start_offset=-1,
        record_errors=[BatchIndexAndErrorMessage(batch_index=3, batch_index_error_message="it is no good")],
        error_message="it is no good",
    )
    topic = TopicProduceResponse(name="orders", topic_id=TOPIC_ID, partition_responses=[partition])
    assert answer == codec.encode(ProduceResponse(responses=[topic], throttle_time_ms=5), version)
