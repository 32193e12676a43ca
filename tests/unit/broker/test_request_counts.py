"""Counts and times of requests, as dispatch keeps them."""

from types import SimpleNamespace
from typing import Any

from penstock.broker.metrics.activity import api_name
from penstock.broker.metrics.request_counts import (
    VERSIONS,
    ApiCounts,
    RequestCounts,
    Timing,
    errors_noter,
)
from penstock.model.api_keys import ApiKey
from penstock.wire.messages.heartbeat import HeartbeatResponse
from penstock.wire.messages.offset_commit import (
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)
from penstock.wire.messages.produce import ProduceResponse


def test_each_request_is_counted_with_its_version() -> None:
    counts = ApiCounts()
    counted = counts.counted("the handler")
    assert [next(counted[version]) for version in (3, 9, 9)] == ["the handler"] * 3
    counts.note(9)
    assert counts.versions() == {3: 1, 9: 3}


def test_versions_that_nobody_has_are_counted_together() -> None:
    counts = ApiCounts()
    for version in (-5, 40, 30_000):
        counts.note(version)
    assert counts.versions() == {VERSIONS - 1: 3}


def test_an_api_is_shown_from_its_first_request_on() -> None:
    counts = RequestCounts()
    counts.of(ApiKey.FETCH)
    counts.of(ApiKey.PRODUCE).note(7)
    assert [key for key, _ in counts.all()] == [ApiKey.PRODUCE]


def test_errors_are_found_wherever_an_answer_has_them() -> None:
    note = errors_noter(OffsetCommitResponse)
    assert note is not None
    errors: dict[int, int] = {}
    partitions = [OffsetCommitResponsePartition(partition_index=index, error_code=code)
                  for index, code in enumerate((0, 3, 25, 3))]  # fmt: skip
    note(OffsetCommitResponse(topics=[OffsetCommitResponseTopic(name="t", partitions=partitions)]), errors)
    assert errors == {3: 2, 25: 1}
    note = errors_noter(HeartbeatResponse)
    assert note is not None
    note(HeartbeatResponse(error_code=27), errors)
    note(HeartbeatResponse(), errors)
    assert errors == {3: 2, 25: 1, 27: 1}
    assert errors_noter(None) is None
    assert errors_noter(ProduceResponse) is not None


def test_a_request_is_timed_until_its_reply_has_left() -> None:
    counts = ApiCounts()
    connection: Any = SimpleNamespace(is_closed=False, timing=None)
    timing = Timing(counts.times, connection)
    timing.handled()
    timing.ready()
    assert connection.timing is timing
    timing.sending()
    timing.sending()  # the socket takes it in pieces
    timing.sent()
    times = counts.times
    every = (times.total, times.local, times.remote, times.response_queue, times.response_send)
    assert [sum(each.counts()) for each in every] == [1] * 5


def test_of_replies_that_leave_together_one_is_followed() -> None:
    counts = ApiCounts()
    connection: Any = SimpleNamespace(is_closed=False, timing=None)
    for _ in range(2):
        timing = Timing(counts.times, connection)
        timing.handled()
        timing.ready()
    assert sum(counts.times.total.counts()) == 1
    gone: Any = SimpleNamespace(is_closed=True, timing=None)
    timing = Timing(counts.times, gone)
    timing.handled()
    timing.ready()
    assert gone.timing is None


def test_apis_have_kafkas_names() -> None:
    assert api_name(ApiKey.PRODUCE) == "Produce"
    assert api_name(ApiKey.CONSUMER_GROUP_HEARTBEAT) == "ConsumerGroupHeartbeat"
