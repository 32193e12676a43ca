"""A cluster that somebody has met is waited for; one that was never there is refused at once."""

import threading
from pathlib import Path

import pytest

from penstock.client.errors import NoSuchTopic, ReadFailed
from penstock.client.options import client_options
from penstock.client.topics import Client
from penstock.model.api_keys import ApiKey
from penstock.model.errors import ErrorCode
from penstock.testing.penstock_broker import PenstockBroker
from penstock.testing.processes import free_port
from penstock.wire.messages.metadata import MetadataResponse, MetadataResponseBroker
from tests.unit.client.hostile_broker import Answer, hostile_broker, metadata


def test_a_broker_that_is_being_started_is_waited_for_by_who_knows_it(tmp_path: Path) -> None:
    port = free_port()
    options = client_options(f"127.0.0.1:{port}", {"default.api.timeout.ms": 60_000})
    with pytest.raises(ReadFailed, match="cannot reach a broker"):
        Client(options).topic_names()
    names: list[list[str]] = []
    client = Client(options, is_known=True)
    waiting = threading.Thread(target=lambda: names.append(client.topic_names()))
    waiting.start()
    with PenstockBroker(tmp_path, port=port):
        waiting.join(60)
    client.close()
    assert names == [[]]


def unknown(*ports: int) -> MetadataResponse:
    """What a broker answers that has not heard of the topic, though it knows the others."""
    answer = metadata("127.0.0.1", ports[0])
    answer.brokers = [
        MetadataResponseBroker(node_id=node_id, host="127.0.0.1", port=port)
        for node_id, port in enumerate(ports)
    ]
    answer.topics[0].error_code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    answer.topics[0].partitions = []
    return answer


def test_a_topic_that_one_broker_does_not_know_is_looked_for_at_the_others() -> None:
    lost_port = free_port()  # of a broker that is down
    with hostile_broker() as informed:
        answers: dict[ApiKey, Answer] = {
            ApiKey.METADATA: lambda _: unknown(broker.port, lost_port, informed.port)
        }
        with hostile_broker(answers) as broker:
            client = Client(client_options(broker.bootstrap))
            found = client.topic("orders")
            assert found.leaders[0].node_id == 1
            assert len(found.leaders) == 1
            client.connect(1).close()
            client.close()
    assert broker.asked.count(ApiKey.METADATA) == 1


def test_a_topic_that_no_broker_knows_is_told_at_once() -> None:
    answers: dict[ApiKey, Answer] = {ApiKey.METADATA: lambda _: unknown(first.port, second.port)}
    with hostile_broker(answers) as first, hostile_broker(answers) as second:
        client = Client(client_options(first.bootstrap))
        with pytest.raises(NoSuchTopic):
            client.topic("orders")
        client.close()


def test_there_is_time_for_another_broker_when_one_never_answers() -> None:
    options = client_options("localhost:9092")
    assert options.default_api_timeout_ms >= 2 * options.request_timeout_ms
