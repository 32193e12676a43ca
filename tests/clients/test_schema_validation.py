"""Topics whose values must name a schema of the topic's subject, with real producers and a registry over HTTP."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from confluent_kafka import KafkaError, Producer

from penstock.model.errors import ErrorCode
from penstock.testing.penstock_broker import PenstockBroker
from tests.clients.admin import create_topic
from tests.clients.driver import WAIT_S, Driver, Record, Refused, consume
from tests.cluster.clients import values_in

SUBJECTS: dict[int, list[str]] = {}
CHECKED = {"confluent.value.schema.validation": "true"}


class RegistryOfTests(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        _, _, kind, number, *_ = self.path.split("/")
        subjects = SUBJECTS.get(int(number), []) if kind == "ids" else []
        body = json.dumps([{"subject": name, "version": 1} for name in subjects]).encode()
        self.send_response(200 if subjects else 404)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        pass


@pytest.fixture(scope="module")
def registry_url() -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), RegistryOfTests) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}"
        finally:
            server.shutdown()
            thread.join()


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory, registry_url: str) -> Iterator[PenstockBroker]:
    options = {"confluent.schema.registry.url": registry_url}
    with PenstockBroker(tmp_path_factory.mktemp("validating"), options=options) as running:
        yield running


def framed(schema_id: int, value: bytes = b"rest") -> bytes:
    return b"\0" + schema_id.to_bytes(4, "big") + value


def send(driver: Driver, broker: PenstockBroker, topic: str, value: bytes | None) -> None:
    producer = driver.producer(broker.bootstrap)
    try:
        producer.send(topic, Record(value, b"k"))
        producer.flush()
    finally:
        with suppress(Refused):  # told a second time
            producer.close()


def test_only_values_of_the_topics_subject_are_stored(
    broker: PenstockBroker, driver: Driver, topic_name: str
) -> None:
    create_topic(broker.bootstrap, topic_name, configs=CHECKED)
    SUBJECTS[5] = [f"{topic_name}-value"]
    SUBJECTS[6] = [f"{topic_name}-key"]
    for value in (framed(5, b"a"), None, framed(5, b"b")):
        send(driver, broker, topic_name, value)
    for value in (framed(6), framed(7), b"{}"):
        with pytest.raises(Refused) as caught:
            send(driver, broker, topic_name, value)
        assert caught.value.code in (ErrorCode.INVALID_RECORD, -1)  # aiokafka knows no error of that number
    received = consume(driver, broker.bootstrap, topic_name, 3)
    assert [each.record.value for each in received] == [framed(5, b"a"), None, framed(5, b"b")]


def test_many_values_are_stored_in_order(broker: PenstockBroker, topic_name: str) -> None:
    create_topic(broker.bootstrap, topic_name, configs=CHECKED)
    SUBJECTS[8] = [f"{topic_name}-value"]
    failed: list[KafkaError] = []
    producer = Producer(
        {"bootstrap.servers": broker.bootstrap, "enable.idempotence": True, "linger.ms": 1, "log_level": 0,
         "compression.type": "lz4"}
    )  # fmt: skip
    for number in range(20_000):
        producer.produce(
            topic_name, framed(8, b"%d" % number), on_delivery=lambda error, _: error and failed.append(error)
        )
        producer.poll(0)
    assert producer.flush(WAIT_S) == 0
    assert failed == []
    assert values_in(broker.bootstrap, topic_name, 1, {}) == [
        framed(8, b"%d" % number) for number in range(20_000)
    ]
