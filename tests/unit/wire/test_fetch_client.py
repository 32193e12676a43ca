"""Fetch from the asking side, by hand, against the general codec."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.wire.codec import decode, encode
from penstock.wire.errors import Malformed
from penstock.wire.fetch import FetchPartition, FetchRequest, FetchResult, read_request, write_response
from penstock.wire.fetch_client import read_response, write_request
from penstock.wire.messages import fetch as messages
from penstock.wire.messages.fetch import (
    AbortedTransaction,
    EpochEndOffset,
    FetchableTopicResponse,
    FetchResponse,
    LeaderIdAndEpoch,
    NodeEndpoint,
    PartitionData,
)

TOPIC_ID = bytes(range(16))
ANSWER = FetchResponse(
    throttle_time_ms=30,
    error_code=0,
    session_id=7,
    responses=[
        FetchableTopicResponse(
            topic="orders",
            topic_id=TOPIC_ID,
            partitions=[
                PartitionData(
                    partition_index=3,
                    high_watermark=100,
                    last_stable_offset=90,
                    log_start_offset=10,
                    aborted_transactions=[
                        AbortedTransaction(producer_id=5, first_offset=11),
                        AbortedTransaction(producer_id=6, first_offset=12),
                    ],
                    preferred_read_replica=9,
                    records=b"r" * 300,
                ),
                PartitionData(
                    partition_index=4,
                    error_code=6,
                    aborted_transactions=None,
                    diverging_epoch=EpochEndOffset(epoch=4, end_offset=1 << 40),
                    current_leader=LeaderIdAndEpoch(leader_id=2, leader_epoch=8),
                    records=None,
                ),
            ],
        )
    ],
    node_endpoints=[NodeEndpoint(node_id=2, host="b", port=9092)],
)


@pytest.mark.parametrize("version", range(4, 19))
def test_every_version_is_read(version: int) -> None:
    answer = read_response(memoryview(encode(ANSWER, version)), version)
    first, second = answer.partitions
    assert (answer.error_code, answer.throttle_time_ms) == (0, 30)
    assert answer.session_id == (7 if version >= 7 else 0)
    assert first.topic_id == second.topic_id == (TOPIC_ID if version >= 13 else bytes(16))
    assert (first.partition, first.error_code, first.high_watermark, first.last_stable_offset) == (
        3,
        0,
        100,
        90,
    )
    assert first.log_start_offset == (10 if version >= 5 else -1)
    assert first.aborted == [(5, 11), (6, 12)]
    assert first.records == b"r" * 300
    assert first.preferred_read_replica == (9 if version >= 11 else -1)
    assert first.diverging_epoch is None
    assert (second.partition, second.error_code, second.aborted, second.records) == (4, 6, [], None)
    assert second.diverging_epoch == ((4, 1 << 40) if version >= 12 else None)


def test_an_error_of_the_whole_answer_is_told() -> None:
    body = encode(FetchResponse(error_code=70), 12)
    assert read_response(memoryview(body), 12) == (70, 0, 0, [])


@given(st.integers(4, 18), st.data())
def test_a_cut_or_damaged_answer_is_malformed_or_something_else_but_never_a_crash(
    version: int, data: st.DataObject
) -> None:
    body = bytearray(encode(ANSWER, version))
    body[data.draw(st.integers(0, len(body) - 1))] = data.draw(st.integers(0, 255))
    del body[data.draw(st.integers(1, len(body))) :]
    try:
        read_response(memoryview(body), version)
    except Malformed:
        pass


TOPICS = [
    (TOPIC_ID, [FetchPartition(0, 5, 1 << 40, 4, 17, 1 << 20), FetchPartition(300, 6, 0, -1, 0, 1 << 20)]),
    (bytes(range(16, 32)), [FetchPartition(1, 7, 8, 7, 0, 1)]),
]
FORGOTTEN = [(bytes(range(32, 48)), [1, 2])]


def followers_request(version: int) -> bytes:
    return write_request(
        version,
        replica_id=3,
        replica_epoch=1 << 33,
        max_wait_ms=500,
        min_bytes=1,
        max_bytes=10 << 20,
        session_id=11,
        session_epoch=2,
        topics=TOPICS,
        forgotten=FORGOTTEN,
        rack_id="north",
    )


@pytest.mark.parametrize("version", range(15, 19))
def test_the_broker_reads_a_followers_request_as_it_was_meant(version: int) -> None:
    assert read_request(memoryview(followers_request(version)), 0, version) == FetchRequest(
        replica_id=3,
        max_wait_ms=500,
        min_bytes=1,
        max_bytes=10 << 20,
        isolation_level=0,
        session_id=11,
        session_epoch=2,
        topics=list(TOPICS),
        forgotten=list(FORGOTTEN),
        rack_id="north",
        replica_epoch=1 << 33,
    )


@pytest.mark.parametrize("version", range(15, 19))
def test_a_followers_request_is_written_as_the_general_codec_writes_it(version: int) -> None:
    wire = followers_request(version)
    request, end = decode(messages.FetchRequest, version, wire)
    assert end == len(wire)
    assert encode(request, version) == wire
    assert request.replica_state == messages.ReplicaState(replica_id=3, replica_epoch=1 << 33)
    assert request.rack_id == "north"
    assert [topic.topic_id for topic in request.topics] == [topic_id for topic_id, _ in TOPICS]


def test_a_follower_cannot_ask_in_a_version_without_a_place_for_its_epoch() -> None:
    with pytest.raises(ValueError, match="version 14"):
        followers_request(14)


def test_records_are_a_part_of_the_frame() -> None:
    frame = bytearray(encode(ANSWER, 17))
    first, _ = read_response(memoryview(frame), 17).partitions
    assert first.records is not None
    assert first.records.obj is frame


@pytest.mark.parametrize("version", range(4, 19))
def test_what_the_broker_writes_for_a_follower_is_read(version: int) -> None:
    key: str | bytes = TOPIC_ID if version >= 13 else "orders"
    results = [
        FetchResult(0, 0, 100, 99, 3, diverging_epoch=(5, 77)),
        FetchResult(1, 0, 100, 99, 3, preferred_read_replica=2),
        FetchResult(2, 0, 100, 99, 3, aborted_transactions=[(7, 8)], preferred_read_replica=2),
    ]
    parts, size = write_response([(key, results)], version, session_id=7)
    body = b"".join(parts)
    assert len(body) == size
    assert encode(decode(FetchResponse, version, body)[0], version) == body
    answer = read_response(memoryview(body), version)
    replica = 2 if version >= 11 else -1
    assert [one.preferred_read_replica for one in answer.partitions] == [-1, replica, replica]
    diverging = (5, 77) if version >= 12 else None
    assert [one.diverging_epoch for one in answer.partitions] == [diverging, None, None]
    assert [one.aborted for one in answer.partitions] == [[], [], [(7, 8)]]
