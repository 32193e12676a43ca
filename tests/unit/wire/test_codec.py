"""What the codec does with particular bytes; what holds for all messages is in test_codec_properties."""

import tracemalloc

import pytest

from penstock.wire.codec import decode, encode, encode_into
from penstock.wire.errors import Malformed
from penstock.wire.messages.api_versions import ApiVersion, ApiVersionsRequest, ApiVersionsResponse
from penstock.wire.messages.delete_topics import DeleteTopicsRequest
from penstock.wire.messages.describe_topic_partitions import Cursor, DescribeTopicPartitionsRequest
from penstock.wire.messages.fetch import FetchRequest
from penstock.wire.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from penstock.wire.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponseTopic,
)
from penstock.wire.messages.offset_fetch import OffsetFetchRequest
from penstock.wire.messages.request_header import RequestHeader
from penstock.wire.messages.sync_group import SyncGroupRequest

HUGE_COUNT = b"\x7f\xff\xff\xff"


def test_a_request_of_an_old_version_has_two_and_four_byte_lengths() -> None:
    wire = bytes.fromhex("00000002 0001 61 0003 622d63 01")
    request = MetadataRequest(topics=[MetadataRequestTopic(name="a"), MetadataRequestTopic(name="b-c")])
    assert encode(request, 4) == wire
    assert decode(MetadataRequest, 4, wire) == (request, len(wire))


def test_a_request_of_a_flexible_version_has_compact_lengths_and_tags() -> None:
    topic_id = bytes(range(16))
    wire = b"\x02" + topic_id + b"\x02a\x00" + b"\x01\x00\x00"
    request = MetadataRequest(topics=[MetadataRequestTopic(topic_id=topic_id, name="a")])
    assert encode(request, 12) == wire
    assert decode(MetadataRequest, 12, wire) == (request, len(wire))


def test_a_field_that_the_version_lacks_is_left_out_and_comes_back_as_its_default() -> None:
    response = MetadataResponse(throttle_time_ms=7, controller_id=3, cluster_id="c")
    again, _ = decode(MetadataResponse, 0, encode(response, 0))
    assert (again.throttle_time_ms, again.controller_id, again.cluster_id) == (0, -1, None)


def test_null_and_empty_arrays_are_told_apart() -> None:
    for version in (1, 9):
        assert (
            decode(MetadataRequest, version, encode(MetadataRequest(topics=None), version))[0].topics is None
        )
        assert decode(MetadataRequest, version, encode(MetadataRequest(topics=()), version))[0].topics == []


def test_null_where_the_version_has_none_is_written_as_empty() -> None:
    assert encode(MetadataRequest(topics=None), 0) == bytes(4)
    response = MetadataResponse(topics=[MetadataResponseTopic(name=None)])
    again, _ = decode(MetadataResponse, 0, encode(response, 0))
    assert again.topics[0].name == ""


def test_a_tuple_and_a_list_make_equal_messages() -> None:
    broker = MetadataResponseBroker(node_id=1, host="h", port=9)
    assert MetadataResponse(brokers=(broker,)) == MetadataResponse(brokers=[broker])
    assert MetadataResponse(brokers=(broker,)) != MetadataResponse(brokers=[])
    assert HeartbeatResponse() != HeartbeatRequest()


def test_a_message_shows_its_fields() -> None:
    assert repr(HeartbeatResponse(error_code=27)) == "HeartbeatResponse(throttle_time_ms=0, error_code=27)"


def test_reading_starts_at_the_offset_and_ends_where_the_message_ends() -> None:
    wire = b"xx" + encode(HeartbeatResponse(throttle_time_ms=5, error_code=16), 4) + b"yy"
    response, end = decode(HeartbeatResponse, 4, memoryview(bytearray(wire)), 2)
    assert response == HeartbeatResponse(throttle_time_ms=5, error_code=16)
    assert end == len(wire) - 2


def test_a_message_does_not_hold_on_to_the_buffer() -> None:
    buffer = bytearray(encode(SyncGroupRequest(group_id="g", member_id="m"), 5))
    request, _ = decode(SyncGroupRequest, 5, memoryview(buffer))
    buffer.clear()  # raises BufferError while a view is alive
    assert request.group_id == "g"


def test_encode_into_appends() -> None:
    out = bytearray(b"head")
    encode_into(HeartbeatResponse(), 4, out)
    assert out == b"head" + encode(HeartbeatResponse(), 4)


def test_the_client_id_keeps_its_old_form_in_flexible_headers() -> None:
    header = RequestHeader(request_api_key=18, request_api_version=3, correlation_id=1, client_id="me")
    assert encode(header, 2) == bytes.fromhex("0012 0003 00000001 0002 6d65 00")


def test_a_nullable_struct_has_a_byte_before_it() -> None:
    nothing = DescribeTopicPartitionsRequest(cursor=None)
    cursor = Cursor(topic_name="t", partition_index=4)
    something = DescribeTopicPartitionsRequest(cursor=cursor)
    assert encode(nothing, 0).endswith(b"\xff\x00")
    assert encode(something, 0).endswith(b"\x01\x02t\x00\x00\x00\x04\x00\x00")
    assert decode(DescribeTopicPartitionsRequest, 0, encode(something, 0))[0] == something


def test_tagged_fields_are_written_only_where_they_differ_from_the_default() -> None:
    plain = ApiVersionsResponse(api_keys=[ApiVersion(api_key=18, min_version=0, max_version=4)])
    assert encode(plain, 3).endswith(bytes.fromhex("00000000 00"))
    plain.finalized_features_epoch = 1
    assert encode(plain, 3).endswith(bytes.fromhex("00000000 01 01 08 0000000000000001"))


def test_unknown_tagged_fields_are_stepped_over() -> None:
    wire = encode(HeartbeatResponse(error_code=27), 4)[:-1] + bytes.fromhex("02 05 03 aabbcc 8901 00")
    assert decode(HeartbeatResponse, 4, wire) == (HeartbeatResponse(error_code=27), len(wire))


def test_a_known_tagged_field_is_read_beside_an_unknown_one() -> None:
    wire = encode(FetchRequest(), 12)[:-1] + bytes.fromhex("02 00 02 02 61 7f 01 00")
    request, end = decode(FetchRequest, 12, wire)
    assert (request.cluster_id, end) == ("a", len(wire))


def test_a_tagged_field_must_fill_its_size() -> None:
    wire = encode(FetchRequest(), 12)[:-1]
    assert decode(FetchRequest, 12, wire + bytes.fromhex("01 00 02 02 61"))[0].cluster_id == "a"
    with pytest.raises(Malformed):
        decode(FetchRequest, 12, wire + bytes.fromhex("01 00 03 02 61 61"))
    with pytest.raises(Malformed):
        decode(FetchRequest, 12, wire + bytes.fromhex("01 00 01 02 61"))


@pytest.mark.parametrize(
    ("cls", "version", "wire"),
    [
        pytest.param(MetadataRequest, 4, HUGE_COUNT + bytes(64), id="more structs than bytes"),
        pytest.param(MetadataRequest, 4, b"\x80\x00\x00\x00" + bytes(64), id="the most negative count"),
        pytest.param(MetadataRequest, 4, b"\xff\xff\xff\xfe" + bytes(64), id="a count of -2"),
        pytest.param(
            MetadataRequest, 12, b"\xff\xff\xff\xff\x0f" + bytes(64), id="the largest compact count"
        ),
        pytest.param(
            MetadataRequest, 12, b"\xff\xff\xff\xff\xff\x01" + bytes(64), id="a varint of six bytes"
        ),
        pytest.param(
            MetadataRequest, 12, b"\x81\x80\x80\x80\x80\x00" + bytes(64), id="a padded varint of six"
        ),
        pytest.param(MetadataRequest, 12, b"\xff\xff\xff\xff\x7f" + bytes(64), id="a varint of 35 bits"),
        pytest.param(MetadataRequest, 0, b"\xff\xff\xff\xff", id="null for an array that may not be null"),
        pytest.param(
            MetadataRequest, 0, b"\x00\x00\x00\x01\xff\xff", id="null for a string that may not be null"
        ),
        pytest.param(
            MetadataRequest, 0, b"\x00\x00\x00\x01\xff\xf0" + bytes(64), id="a negative string length"
        ),
        pytest.param(MetadataRequest, 0, b"\x00\x00\x00\x01\x00\x09abc", id="a string past the end"),
        pytest.param(
            MetadataRequest, 0, b"\x00\x00\x00\x01\x00\x02\xc3\x28", id="a string that is not UTF-8"
        ),
        pytest.param(
            HeartbeatRequest, 4, b"\x81\x80\x02" + b"a" * 40_000, id="a compact string over 32767 bytes"
        ),
        pytest.param(
            OffsetFetchRequest, 1, b"\x00\x01g" + HUGE_COUNT + bytes(9), id="more topics than bytes"
        ),
        pytest.param(HeartbeatResponse, 4, bytes(6) + b"\xff\xff\xff\xff\x0f", id="more tags than bytes"),
        pytest.param(HeartbeatResponse, 4, bytes(6) + b"\x01\x05\x7f", id="a tag past the end"),
        pytest.param(ApiVersionsRequest, 3, b"", id="nothing"),
    ],
)
def test_bytes_that_lie_are_refused_without_a_large_allocation(cls: type, version: int, wire: bytes) -> None:
    encode(cls(), version)
    decode(cls, version, encode(cls(), version))  # compile first: that is not the message's cost
    tracemalloc.start()
    try:
        with pytest.raises(Malformed):
            decode(cls, version, wire)
        assert tracemalloc.get_traced_memory()[1] < 100_000 + 2 * len(wire)
    finally:
        tracemalloc.stop()


def test_more_integers_than_bytes_are_refused() -> None:
    request = encode(OffsetFetchRequest(group_id="g"), 1)
    wire = request[:-4] + b"\x00\x00\x00\x01\x00\x01t" + HUGE_COUNT + bytes(40)
    with pytest.raises(Malformed, match="partition_indexes has a length of 2147483647"):
        decode(OffsetFetchRequest, 1, wire)


def test_more_structs_than_bytes_are_refused_before_the_first_is_read() -> None:
    with pytest.raises(Malformed, match="topics has a length of 2147483647"):
        decode(MetadataRequest, 0, HUGE_COUNT + bytes(4000))
    with pytest.raises(Malformed, match="topics has a length of 2001"):
        decode(MetadataRequest, 0, (2001).to_bytes(4, "big") + bytes(4000))
    assert len(decode(MetadataRequest, 0, (2000).to_bytes(4, "big") + bytes(4000))[0].topics or ()) == 2000


def test_a_null_or_a_lie_in_an_array_of_strings_is_refused() -> None:
    assert decode(DeleteTopicsRequest, 4, b"\x02\x02a" + bytes(5))[0].topic_names == ["a"]
    with pytest.raises(Malformed, match="a string in an array has a length of -1"):
        decode(DeleteTopicsRequest, 4, b"\x02\x00" + bytes(5))
    with pytest.raises(Malformed, match="a string in an array has a length of 8"):
        decode(DeleteTopicsRequest, 4, b"\x02\x09a" + bytes(5))
    assert decode(DeleteTopicsRequest, 1, b"\x00\x00\x00\x01\x00\x01a" + bytes(4))[0].topic_names == ["a"]
    with pytest.raises(Malformed, match="a string in an array has a length of -1"):
        decode(DeleteTopicsRequest, 1, b"\x00\x00\x00\x01\xff\xff" + bytes(4))
    with pytest.raises(Malformed, match="a string in an array has a length of 9"):
        decode(DeleteTopicsRequest, 1, b"\x00\x00\x00\x01\x00\x09a" + bytes(4))


def test_a_version_that_does_not_exist_is_the_callers_mistake() -> None:
    with pytest.raises(ValueError, match="MetadataRequest has versions 0 to 13, not 14"):
        encode(MetadataRequest(), 14)
    with pytest.raises(ValueError, match="not -1"):
        decode(MetadataRequest, -1, b"")


def test_values_that_no_version_can_carry_are_the_callers_mistake() -> None:
    with pytest.raises(ValueError, match="HeartbeatResponse version 4"):
        encode(HeartbeatResponse(error_code=1 << 20), 4)
    for version in (0, 4):
        with pytest.raises(ValueError):
            encode(HeartbeatRequest(group_id="g" * 32768), version)
    longest = HeartbeatRequest(group_id="g" * 32767)
    assert decode(HeartbeatRequest, 4, encode(longest, 4))[0] == longest
