"""One pool of connections for all readers: it keeps them, goes on to the next broker, and is the only one there is."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from confluent_kafka import KafkaError

import penstock
from penstock.client.brokers import Brokers, check_reachable
from penstock.client.errors import ReadFailed
from penstock.client.librdkafka_calls import NOT_DELIVERED
from penstock.client.options import client_options
from penstock.client.patience import Retriable
from penstock.client.topics import LATEST, Client
from penstock.model.api_keys import ApiKey
from penstock.rest.errors import KAFKA_RETRIABLE, record_error_code
from penstock.testing.processes import free_port
from tests.unit.client.hostile_broker import END_OFFSET, hostile_broker

IMPATIENT = {"default.api.timeout.ms": 300, "request.timeout.ms": 1_000}
SOURCES = Path(penstock.__file__).parent


def test_questions_for_offsets_share_one_connection() -> None:
    with hostile_broker() as broker:
        client = Client(client_options(broker.bootstrap))
        topic = client.topic("orders")
        for _ in range(3):
            assert client.offsets(topic, {0: LATEST}, isolation_level=0) == {0: END_OFFSET}
        client.close()
    assert broker.asked.count(ApiKey.API_VERSIONS) == 1


def test_a_broker_that_never_answers_is_not_the_last_one_asked() -> None:
    with hostile_broker({ApiKey.METADATA: lambda _: b""}) as broken, hostile_broker() as sound:
        options = client_options(f"{broken.bootstrap},127.0.0.1:{free_port()},{sound.bootstrap}", IMPATIENT)
        client = Client(options)
        assert client.topic_names() == ["orders"]
        client.close()


def test_the_brokers_that_do_not_answer_are_all_named() -> None:
    port = free_port()
    with hostile_broker({ApiKey.METADATA: lambda _: b""}) as broken:
        brokers = Brokers(client_options(f"127.0.0.1:{port},{broken.bootstrap}", IMPATIENT))
        with pytest.raises(
            ReadFailed,
            match=rf"cannot reach a broker at 127.0.0.1:{port}: connection refused; "
            rf"the broker at {broken.bootstrap} stopped answering: ",
        ):
            brokers.metadata(None)
        brokers.close()


def test_brokers_that_have_left_the_cluster_keep_no_connection() -> None:
    with hostile_broker() as left, hostile_broker() as stays:
        brokers = Brokers(client_options(stays.bootstrap))
        brokers.metadata_at(client_options(left.bootstrap).addresses[0], None)
        assert len(brokers._connections) == 1
        brokers.metadata(None)  # of the same
        brokers.doubt()
        brokers.metadata(None)  # of the other
        assert list(brokers._connections) == list(client_options(stays.bootstrap).addresses)
        brokers.close()


def test_a_partition_without_leader_is_retriable() -> None:
    with hostile_broker() as broker:
        brokers = Brokers(client_options(broker.bootstrap))
        brokers.metadata(None)
        with pytest.raises(Retriable, match="has no leader"):
            brokers.connect(7)
        brokers.close()


def test_whoever_cannot_be_reached_is_told_with_each_address() -> None:
    ports = [free_port(), free_port()]
    options = client_options(",".join(f"127.0.0.1:{port}" for port in ports))
    with pytest.raises(ReadFailed) as failure:
        check_reachable(options, timeout_s=1)
    assert all(f"127.0.0.1:{port}: connection refused" in str(failure.value) for port in ports)


def test_nobody_else_opens_connections_to_brokers() -> None:
    opening = re.compile(r"\bBrokerConnection\(")
    others = [
        str(path.relative_to(SOURCES))
        for path in SOURCES.rglob("*.py")
        if path.parent.name != "client" and opening.search(path.read_text())
    ]
    assert others == []


def test_what_a_record_may_be_sent_again_after_is_one_list() -> None:
    for code in NOT_DELIVERED:
        assert record_error_code(KafkaError(code)) == KAFKA_RETRIABLE
