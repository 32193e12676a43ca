"""Fetches that ask for nonsense: answered with Kafka's code, never waited for longer than asked, nothing left behind."""

import os
import time
from collections.abc import Iterator
from typing import Any

import pytest

from penstock.model.errors import ErrorCode
from penstock.records.build import build_batch
from penstock.testing.penstock_broker import PenstockBroker
from penstock.wire.messages.create_topics import CreatableTopic, CreateTopicsRequest
from penstock.wire.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from penstock.wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic, ForgottenTopic
from penstock.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from tests.hostile.raw_client import RawClient, frame_of, wait_until

E = ErrorCode
VERSION = 12
LARGEST = 2**31 - 1
NEVER_MS = 3_600_000
BATCH = bytes(build_batch([(b"key", b"value", (), 1_700_000_000_000)]))


@pytest.fixture
def client(broker: PenstockBroker) -> Iterator[RawClient]:
    with RawClient(broker.port) as connected:
        yield connected


@pytest.fixture
def topic(client: RawClient, topic_name: str) -> str:
    """With three records in partition 0."""
    wanted = CreatableTopic(name=topic_name, num_partitions=2, replication_factor=1)
    assert client.ask(CreateTopicsRequest(topics=[wanted], timeout_ms=5000), 7).topics[0].error_code == 0
    for _ in range(3):
        produce(client, topic_name)
    return topic_name


def produce(client: RawClient, topic: str) -> None:
    data = TopicProduceData(name=topic, partition_data=[PartitionProduceData(index=0, records=BATCH)])
    response = client.ask(ProduceRequest(acks=-1, timeout_ms=1000, topic_data=[data]), VERSION)
    assert response.responses[0].partition_responses[0].error_code == 0


def fetch_of(
    topic: str,
    *,
    offset: int = 0,
    index: int = 0,
    partition_max_bytes: int = 1 << 20,
    max_bytes: int = 1 << 20,
    min_bytes: int = 0,
    max_wait_ms: int = 0,
    session_id: int = 0,
    session_epoch: int = -1,
    times: int = 1,
    leader_epoch: int = -1,
) -> FetchRequest:
    wanted = FetchPartition(
        partition=index,
        fetch_offset=offset,
        partition_max_bytes=partition_max_bytes,
        current_leader_epoch=leader_epoch,
    )
    return FetchRequest(
        max_wait_ms=max_wait_ms,
        min_bytes=min_bytes,
        max_bytes=max_bytes,
        session_id=session_id,
        session_epoch=session_epoch,
        topics=[FetchTopic(topic=topic, partitions=[wanted] * times)],
    )


def only(response: Any) -> Any:
    assert response.error_code == 0
    return response.responses[0].partitions[0]


@pytest.mark.parametrize("offset", [-1, -2, -(2**63), 4, 2**31, 2**63 - 1])
def test_an_offset_outside_of_the_log_is_out_of_range(client: RawClient, topic: str, offset: int) -> None:
    """At once: no request may take as long as this one would wait."""
    answered = only(client.ask(fetch_of(topic, offset=offset, min_bytes=1, max_wait_ms=NEVER_MS), VERSION))
    assert answered.error_code == E.OFFSET_OUT_OF_RANGE
    assert not answered.records


@pytest.mark.parametrize(
    ("partition_max_bytes", "max_bytes"), [(0, 0), (-1, -1), (-(2**31), 100), (100, -(2**31))]
)
def test_at_least_one_batch_comes_however_few_bytes_are_asked_for(
    client: RawClient, topic: str, partition_max_bytes: int, max_bytes: int
) -> None:
    request = fetch_of(topic, partition_max_bytes=partition_max_bytes, max_bytes=max_bytes)
    answered = only(client.ask(request, VERSION))
    assert answered.error_code == 0
    assert answered.records[:12] == bytes(8) + BATCH[8:12]
    assert len(answered.records) <= max(100, len(BATCH))


def test_huge_sizes_bring_just_what_there_is(client: RawClient, topic: str) -> None:
    request = fetch_of(topic, partition_max_bytes=LARGEST, max_bytes=LARGEST)
    assert len(only(client.ask(request, VERSION)).records) == 3 * len(BATCH)


@pytest.mark.parametrize("index", [2, -1, LARGEST, -(2**31)])
def test_an_unknown_partition_is_told_so_at_once(client: RawClient, topic: str, index: int) -> None:
    request = fetch_of(topic, index=index, min_bytes=LARGEST, max_wait_ms=NEVER_MS)
    assert only(client.ask(request, VERSION)).error_code == E.UNKNOWN_TOPIC_OR_PARTITION


@pytest.mark.parametrize("name", ["no-such-topic", "", "a/b", "x" * 32_767])
def test_an_unknown_topic_is_told_so_at_once(client: RawClient, name: str) -> None:
    request = fetch_of(name, min_bytes=1, max_wait_ms=NEVER_MS)
    assert only(client.ask(request, VERSION)).error_code == E.UNKNOWN_TOPIC_OR_PARTITION


def test_an_unknown_topic_id_is_told_so_at_once(client: RawClient) -> None:
    request = fetch_of("", min_bytes=1, max_wait_ms=NEVER_MS)
    request.topics[0].topic_id = bytes(range(16))
    assert only(client.ask(request, 16)).error_code == E.UNKNOWN_TOPIC_ID


@pytest.mark.parametrize(
    ("leader_epoch", "code"), [(99, E.UNKNOWN_LEADER_EPOCH), (LARGEST, E.UNKNOWN_LEADER_EPOCH), (-2, 0)]
)
def test_a_leadership_that_never_was_is_told_so(
    client: RawClient, topic: str, leader_epoch: int, code: int
) -> None:
    answered = only(client.ask(fetch_of(topic, leader_epoch=leader_epoch), VERSION))
    assert answered.error_code == code


def test_min_bytes_that_never_come_wait_as_long_as_allowed(client: RawClient, topic: str) -> None:
    started = time.monotonic()
    answered = only(client.ask(fetch_of(topic, min_bytes=LARGEST, max_wait_ms=300), VERSION))
    assert time.monotonic() - started > 0.25
    assert len(answered.records) == 3 * len(BATCH)


@pytest.mark.parametrize("max_wait_ms", [-1, -(2**31), 0])
def test_a_negative_wait_is_no_wait(client: RawClient, topic: str, max_wait_ms: int) -> None:
    answered = only(client.ask(fetch_of(topic, offset=3, min_bytes=1, max_wait_ms=max_wait_ms), VERSION))
    assert answered.error_code == 0


def test_an_endless_wait_ends_with_the_next_record(
    broker: PenstockBroker, client: RawClient, topic: str
) -> None:
    with RawClient(broker.port) as waiting:
        request = fetch_of(topic, offset=3, min_bytes=1, max_wait_ms=LARGEST)
        waiting.send(request, VERSION)
        produce(client, topic)
        assert len(only(waiting.receive(request, VERSION)).records) == len(BATCH)


def test_an_endless_wait_ends_with_its_topic(broker: PenstockBroker, client: RawClient, topic: str) -> None:
    with RawClient(broker.port) as waiting:
        request = fetch_of(topic, offset=3, min_bytes=1, max_wait_ms=LARGEST)
        waiting.send(request, VERSION)
        client.ask(DeleteTopicsRequest(topics=[DeleteTopicState(name=topic)], timeout_ms=5000), 6)
        answered = only(waiting.receive(request, VERSION))
        assert answered.error_code == E.UNKNOWN_TOPIC_OR_PARTITION


def test_the_same_partition_twice_is_answered_and_not_more_than_asked(client: RawClient, topic: str) -> None:
    response = client.ask(fetch_of(topic, times=5, max_bytes=4 * len(BATCH)), VERSION)
    assert response.error_code == 0
    records = [partition.records or b"" for partition in response.responses[0].partitions]
    assert len(records[0]) == 3 * len(BATCH)
    assert sum(map(len, records)) <= 4 * len(BATCH)


@pytest.mark.parametrize(("session_id", "epoch"), [(12345, 1), (0, 1), (-1, 7), (LARGEST, LARGEST)])
def test_an_unknown_session_is_told_so(client: RawClient, topic: str, session_id: int, epoch: int) -> None:
    request = fetch_of(topic, session_id=session_id, session_epoch=epoch, min_bytes=1, max_wait_ms=NEVER_MS)
    response = client.ask(request, VERSION)
    assert response.error_code == E.FETCH_SESSION_ID_NOT_FOUND
    assert not response.responses


@pytest.mark.parametrize("epoch", [2, 3, LARGEST, -2])
def test_a_session_with_a_wrong_epoch_is_told_so_and_goes_on(
    client: RawClient, topic: str, epoch: int
) -> None:
    session_id = client.ask(fetch_of(topic, session_epoch=0), VERSION).session_id
    assert session_id > 0
    wrong = client.ask(fetch_of(topic, session_id=session_id, session_epoch=epoch), VERSION)
    assert wrong.error_code == E.INVALID_FETCH_SESSION_EPOCH
    assert client.ask(fetch_of(topic, session_id=session_id, session_epoch=1), VERSION).error_code == 0


def test_forgetting_what_was_never_asked_for_is_no_error(client: RawClient, topic: str) -> None:
    session_id = client.ask(fetch_of(topic, session_epoch=0), VERSION).session_id
    request = fetch_of(topic, session_id=session_id, session_epoch=1)
    request.forgotten_topics_data = [ForgottenTopic(topic="never", partitions=[0, -1, LARGEST])]
    assert client.ask(request, VERSION).error_code == 0


def test_clients_that_leave_in_the_middle_of_an_endless_wait_leave_nothing_behind(
    broker: PenstockBroker, client: RawClient, topic: str
) -> None:
    files_before = len(os.listdir(f"/proc/{broker.pid}/fd"))
    request = fetch_of(topic, offset=3, min_bytes=LARGEST, max_wait_ms=LARGEST)
    resident = []
    for _ in range(4):
        for _ in range(5):
            waiting = [RawClient(broker.port) for _ in range(20)]
            for one in waiting:
                for _ in range(50):
                    one.send(request, VERSION)
            assert client.is_served()
            for one in waiting:
                one.close()
        wait_until(lambda: len(os.listdir(f"/proc/{broker.pid}/fd")) <= files_before, what="the end of all")
        resident.append(broker.usage().resident_bytes)
    # 5,000 waits a round: what is kept of each would show.
    assert resident[-1] - resident[0] < 4 * 1024 * 1024, resident


def test_many_waits_on_one_connection_are_not_read_without_end(
    broker: PenstockBroker, client: RawClient, topic: str
) -> None:
    request = fetch_of(topic, offset=3, min_bytes=LARGEST, max_wait_ms=LARGEST)
    frame = frame_of(request, VERSION)
    many = 1_000_000 * (len(frame).to_bytes(4, "big") + frame)
    with RawClient(broker.port, timeout_s=0.5) as greedy:
        with pytest.raises(TimeoutError):
            greedy.socket.sendall(many)
        assert client.is_served()
