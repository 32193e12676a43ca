"""A broker as other brokers ask it."""

import asyncio
import struct
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from typing import Any

import pytest
import uvloop
from confluent_kafka import Producer

from penstock.model.api_keys import ApiKey
from penstock.net.peers import Peers, PeerUnavailable
from penstock.testing.penstock_broker import PenstockBroker
from penstock.wire import codec
from penstock.wire.fetch import FetchPartition
from penstock.wire.fetch_client import read_response, write_request
from penstock.wire.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from penstock.wire.messages.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse
from tests.clients.admin import create_topic
from tests.conftest import StartBroker

PATIENCE_S = 60.0
METADATA_VERSION = 12
FETCH_VERSION = 17
WHO = ApiVersionsRequest(client_software_name="penstock", client_software_version="1")


@asynccontextmanager
async def asking(broker: PenstockBroker) -> AsyncIterator[Peers]:
    peers = Peers(asyncio.get_running_loop(), "tests")
    peers.set_address(1, "localhost", broker.port)
    try:
        yield peers
    finally:
        peers.close()


def run(scenario: Coroutine[Any, Any, None]) -> None:
    uvloop.run(asyncio.wait_for(scenario, PATIENCE_S))


async def topic_id(peers: Peers, name: str) -> bytes:
    request = MetadataRequest(topics=[MetadataRequestTopic(name=name)])
    answer = await peers.ask(
        1, request, MetadataResponse, version=METADATA_VERSION, timeout_s=PATIENCE_S, purpose="forward"
    )
    return answer.topics[0].topic_id


def test_a_broker_answers_every_version_of_a_question(broker: PenstockBroker) -> None:
    async def scenario() -> None:
        async with asking(broker) as peers:
            for version in range(5):
                answer = await peers.ask(1, WHO, ApiVersionsResponse, version=version, timeout_s=PATIENCE_S)
                assert answer.error_code == 0
                assert answer.api_keys

    run(scenario())


def test_records_are_fetched_in_one_answer_of_megabytes(broker: PenstockBroker, topic_name: str) -> None:
    create_topic(broker.bootstrap, topic_name)
    producer = Producer({"bootstrap.servers": broker.bootstrap, "linger.ms": 20})
    for _ in range(3000):
        producer.produce(topic_name, bytes(1000), partition=0)
    assert producer.flush(PATIENCE_S) == 0

    async def scenario() -> None:
        async with asking(broker) as peers:
            wanted = (
                await topic_id(peers, topic_name),
                [FetchPartition(0, -1, 0, -1, -1, 50 << 20)],
            )
            body = write_request(
                FETCH_VERSION,
                replica_id=-1,
                replica_epoch=-1,
                max_wait_ms=500,
                min_bytes=1,
                max_bytes=50 << 20,
                session_id=0,
                session_epoch=-1,
                topics=[wanted],
                forgotten=[],
            )
            fetch = peers.peer(1, "fetch")
            frame = await fetch.ask_raw(int(ApiKey.FETCH), FETCH_VERSION, body, timeout_s=PATIENCE_S)
            (partition,) = read_response(frame, FETCH_VERSION).partitions
            assert (partition.topic_id, partition.error_code) == (wanted[0], 0)
            assert partition.high_watermark == 3000
            assert partition.records is not None
            assert len(partition.records) > 3_000_000
            assert partition.records.obj is frame.obj

    run(scenario())


def test_a_clients_request_is_relayed_and_answered_as_if_it_had_come_itself(
    broker: PenstockBroker, topic_name: str
) -> None:
    create_topic(broker.bootstrap, topic_name)
    request = MetadataRequest(topics=[MetadataRequestTopic(name=topic_name)])
    header = struct.pack(">hhih", ApiKey.METADATA, METADATA_VERSION, 4711, -1) + b"\x00"
    frame = header + codec.encode(request, METADATA_VERSION)

    async def scenario() -> None:
        async with asking(broker) as peers:
            answer = await peers.peer(1, "forward").relay(frame, PATIENCE_S)
            assert struct.unpack_from(">ib", answer) == (4711, 0)
            response, end = codec.decode(MetadataResponse, METADATA_VERSION, answer, 5)
            assert end == len(answer)
            assert response.topics[0].name == topic_name

    run(scenario())


def test_a_broker_that_was_killed_is_asked_again_when_it_is_back(start_broker: StartBroker) -> None:
    first = start_broker()

    async def scenario() -> None:
        async with asking(first) as peers:
            await peers.ask(1, WHO, ApiVersionsResponse, version=4, timeout_s=PATIENCE_S)
            first.kill()
            with pytest.raises(PeerUnavailable, match=f"^localhost:{first.port}: "):
                await peers.ask(1, WHO, ApiVersionsResponse, version=4, timeout_s=PATIENCE_S)
            await asyncio.to_thread(start_broker, port=first.port)
            answer = await peers.ask(1, WHO, ApiVersionsResponse, version=4, timeout_s=PATIENCE_S)
            assert answer.error_code == 0

    run(scenario())
