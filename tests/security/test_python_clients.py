"""The clients that are written in Python, at each kind of listener: aiokafka and kafka-python."""

from __future__ import annotations

import asyncio
import ssl
from pathlib import Path
from typing import Any

import aiokafka
import pytest

from tests.clients.driver import WAIT_S
from tests.clients.kafka_python_driver import KafkaConsumer, KafkaProducer, TopicPartition
from tests.security.secured_broker import SecuredBroker
from tests.security.test_listeners import SHA256, SHA512, make_user

VALUES = [b"value-%d" % number for number in range(20)]
WAYS = {
    "TLS": ("TLS", None),
    "certificate": ("MUTUAL", None),
    "PLAIN": ("LOGIN", "PLAIN"),
    "SCRAM-SHA-256": ("SECURE", "SCRAM-SHA-256"),
    "SCRAM-SHA-512": ("SECURE", "SCRAM-SHA-512"),
}
PASSWORDS = {"PLAIN": ("ana", 'p "a\\ss'), "SCRAM": ("eva", "s3cret")}


class Way:
    """How a client comes in."""

    def __init__(self, broker: SecuredBroker, directory: Path, name: str) -> None:
        listener, mechanism = WAYS[name]
        self.bootstrap = broker.bootstrap(listener)
        self.trusted = str(broker.authority.path)
        self.own: dict[str, str] = {}
        protocol = {"LOGIN": "SASL_PLAINTEXT", "SECURE": "SASL_SSL"}.get(listener, "SSL")
        self.login = {"security_protocol": protocol}
        if mechanism is not None:
            user, password = PASSWORDS[mechanism.partition("-")[0]]
            self.login |= {
                "sasl_mechanism": mechanism,
                "sasl_plain_username": user,
                "sasl_plain_password": password,
            }
        if listener == "MUTUAL":
            issued = broker.authority.issue("ana")
            for option, text in (
                ("certfile", issued.certificate_text()),
                ("keyfile", issued.key_text()),
            ):
                (directory / option).write_text(text)
                self.own[option] = str(directory / option)


@pytest.fixture(params=WAYS)
def way(request: pytest.FixtureRequest, secured: SecuredBroker, tmp_path: Path) -> Way:
    make_user(secured, "eva", "s3cret", SHA256)
    make_user(secured, "eva", "s3cret", SHA512)
    return Way(secured, tmp_path, request.param)


def test_aiokafka_writes_and_reads(way: Way, topic_name: str) -> None:
    options: dict[str, Any] = {"bootstrap_servers": way.bootstrap, **way.login}
    if way.login["security_protocol"].endswith("SSL"):
        options["ssl_context"] = ssl.create_default_context(cafile=way.trusted)
        if way.own:
            options["ssl_context"].load_cert_chain(**way.own)

    async def there_and_back() -> list[bytes]:
        async with aiokafka.AIOKafkaProducer(**options) as producer:
            for value in VALUES:
                await producer.send_and_wait(topic_name, value)
        async with aiokafka.AIOKafkaConsumer(
            topic_name, group_id=f"group-{topic_name}", auto_offset_reset="earliest", **options
        ) as consumer:
            return [(await consumer.getone()).value for _ in VALUES]

    assert asyncio.run(asyncio.wait_for(there_and_back(), WAIT_S)) == VALUES


def test_kafka_python_writes_and_reads(way: Way, topic_name: str) -> None:
    options: dict[str, Any] = {"bootstrap_servers": way.bootstrap, **way.login}
    if way.login["security_protocol"].endswith("SSL"):
        options["ssl_cafile"] = way.trusted
        options |= {f"ssl_{name}": path for name, path in way.own.items()}
    producer = KafkaProducer(**options)
    try:
        for future in [producer.send(topic_name, value) for value in VALUES]:
            future.get(WAIT_S)
    finally:
        producer.close(WAIT_S)
    consumer = KafkaConsumer(consumer_timeout_ms=WAIT_S * 1000, auto_offset_reset="earliest", **options)
    try:
        consumer.assign([TopicPartition(topic_name, 0)])
        assert [next(consumer).value for _ in VALUES] == VALUES
    finally:
        consumer.close()
