"""The hand-written reader of fetch answers against the general codec."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.arrow.fetch_answer import read_fetch_answer
from penstock.wire.codec import encode
from penstock.wire.errors import Malformed
from penstock.wire.messages.fetch import (
    AbortedTransaction,
    FetchableTopicResponse,
    FetchResponse,
    LeaderIdAndEpoch,
    NodeEndpoint,
    PartitionData,
)

ANSWER = FetchResponse(
    error_code=0,
    session_id=7,
    responses=[
        FetchableTopicResponse(
            topic="orders",
            topic_id=bytes(range(16)),
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
                    records=b"r" * 300,
                ),
                PartitionData(
                    partition_index=4,
                    error_code=6,
                    aborted_transactions=None,
                    current_leader=LeaderIdAndEpoch(leader_id=2, leader_epoch=8),
                    records=None,
                ),
            ],
        )
    ],
    node_endpoints=[NodeEndpoint(node_id=2, host="b", port=9092)],
)


@pytest.mark.parametrize("version", range(4, 18))
def test_every_version_is_read(version: int) -> None:
    body = b"skipped!" + encode(ANSWER, version)
    error_code, (first, second) = read_fetch_answer(memoryview(body), 8, version)
    assert error_code == 0
    assert (first.partition, first.error_code, first.high_watermark, first.last_stable_offset) == (
        3,
        0,
        100,
        90,
    )
    assert first.log_start_offset == (10 if version >= 5 else -1)
    assert first.aborted == [(5, 11), (6, 12)]
    assert first.records == b"r" * 300
    assert (second.partition, second.error_code, second.aborted, len(second.records)) == (4, 6, [], 0)


def test_an_error_of_the_whole_answer_is_told() -> None:
    body = encode(FetchResponse(error_code=70), 12)
    assert read_fetch_answer(memoryview(body), 0, 12) == (70, [])


@given(st.integers(4, 17), st.data())
def test_a_cut_or_damaged_answer_is_malformed_or_something_else_but_never_a_crash(
    version: int, data: st.DataObject
) -> None:
    body = bytearray(encode(ANSWER, version))
    body[data.draw(st.integers(0, len(body) - 1))] = data.draw(st.integers(0, 255))
    del body[data.draw(st.integers(1, len(body))) :]
    try:
        read_fetch_answer(memoryview(body), 0, version)
    except Malformed:
        pass
