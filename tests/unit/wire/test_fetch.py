"""The hand-written fetch codec, against the compiled one."""

from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.wire import codec, fetch
from penstock.wire.errors import Malformed
from penstock.wire.messages.fetch import (
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    ForgottenTopic,
    ReplicaState,
)

VERSIONS = range(4, 19)
TOPIC_ID = bytes(range(16))


class Records(NamedTuple):
    content: bytes

    @property
    def size_bytes(self) -> int:
        return len(self.content)


def request(version: int) -> FetchRequest:
    partition = FetchPartition(
        partition=3,
        current_leader_epoch=5,
        fetch_offset=1 << 40,
        last_fetched_epoch=4,
        log_start_offset=17,
        partition_max_bytes=1 << 20,
    )
    return FetchRequest(
        replica_id=-1,
        replica_state=ReplicaState(replica_id=8, replica_epoch=1) if version >= 15 else ReplicaState(),
        max_wait_ms=500,
        min_bytes=1,
        max_bytes=50 << 20,
        isolation_level=1,
        session_id=11,
        session_epoch=2,
        topics=[FetchTopic(topic="orders", topic_id=TOPIC_ID, partitions=[partition])],
        forgotten_topics_data=[ForgottenTopic(topic="old", topic_id=TOPIC_ID, partitions=[1, 2])],
        rack_id="r1",
    )


@pytest.mark.parametrize("version", VERSIONS)
def test_every_version_of_the_request_is_read(version: int) -> None:
    read = fetch.read_request(memoryview(codec.encode(request(version), version)), 0, version)
    assert (read.max_wait_ms, read.min_bytes, read.max_bytes, read.isolation_level) == (500, 1, 50 << 20, 1)
    assert read.replica_id == (8 if version >= 15 else -1)
    assert (read.session_id, read.session_epoch) == ((11, 2) if version >= 7 else (0, -1))
    key: str | bytes = TOPIC_ID if version >= 13 else "orders"
    wanted = fetch.FetchPartition(
        partition=3,
        current_leader_epoch=5 if version >= 9 else -1,
        fetch_offset=1 << 40,
        last_fetched_epoch=4 if version >= 12 else -1,
        log_start_offset=17 if version >= 5 else -1,
        max_bytes=1 << 20,
    )
    assert read.topics == [(key, [wanted])]
    if version >= 7:
        assert read.forgotten == [(TOPIC_ID if version >= 13 else "old", [1, 2])]
    assert read.rack_id == ("r1" if version >= 11 else "")
    assert read.replica_epoch == (1 if version >= 15 else -1)


@pytest.mark.parametrize("version", VERSIONS)
def test_every_version_of_the_response_can_be_read_by_a_client(version: int) -> None:
    key: str | bytes = TOPIC_ID if version >= 13 else "orders"
    results = [
        fetch.FetchResult(0, 0, 100, 99, 3, Records(b"x" * 200)),
        fetch.FetchResult(1, 1),
        fetch.FetchResult(2, 0, 5, 5, 0),
    ]
    parts, size = fetch.write_response(
        [(key, results)], version, error_code=0, session_id=77, throttle_time_ms=1
    )
    body = b"".join(part.content if isinstance(part, Records) else bytes(part) for part in parts)
    assert len(body) == size
    response, end = codec.decode(FetchResponse, version, body)
    assert end == size
    if version >= 7:
        assert response.session_id == 77
    (topic,) = response.responses
    with_data, wrong, empty = topic.partitions
    assert (with_data.partition_index, with_data.high_watermark, with_data.last_stable_offset) == (0, 100, 99)
    assert with_data.records == b"x" * 200
    assert (wrong.error_code, wrong.high_watermark) == (1, -1)
    assert (empty.error_code, empty.records) == (0, b"")


@pytest.mark.parametrize("version", VERSIONS)
def test_aborted_transactions_are_told_to_who_reads_only_committed_records(version: int) -> None:
    key: str | bytes = TOPIC_ID if version >= 13 else "orders"
    results = [
        fetch.FetchResult(0, 0, 100, 99, 3, Records(b"x" * 200), [(7, 50), (1 << 40, 60)]),
        fetch.FetchResult(1, 0, 100, 99, 3, Records(b"y"), []),
        fetch.FetchResult(2, 0, 100, 99, 3, None, None),
    ]
    parts, size = fetch.write_response([(key, results)], version)
    body = b"".join(part.content if isinstance(part, Records) else bytes(part) for part in parts)
    assert len(body) == size
    response, _ = codec.decode(FetchResponse, version, body)
    (topic,) = response.responses
    some, none, unasked = topic.partitions
    assert some.aborted_transactions is not None
    assert [(one.producer_id, one.first_offset) for one in some.aborted_transactions] == [
        (7, 50),
        (1 << 40, 60),
    ]
    assert some.records == b"x" * 200
    assert list(none.aborted_transactions or ()) == []
    assert none.aborted_transactions is not None
    assert unasked.aborted_transactions is None


@pytest.mark.parametrize("version", VERSIONS)
def test_a_request_cut_off_anywhere_is_read_or_malformed(version: int) -> None:
    whole = codec.encode(request(version), version)
    for length in range(len(whole)):
        try:
            fetch.read_request(memoryview(whole[:length]), 0, version)
        except Malformed:
            continue
        assert length >= len(whole) - 20


@given(st.binary(max_size=200), st.sampled_from(VERSIONS))
def test_any_bytes_are_read_or_malformed(data: bytes, version: int) -> None:
    try:
        fetch.read_request(memoryview(data), 0, version)
    except Malformed:
        pass
