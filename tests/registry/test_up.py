"""The registry as a service of `penstock up`."""

import base64
import ssl
import urllib.request
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from confluent_kafka import Producer

from penstock.admin import Cluster
from penstock.client.clients import Connection
from penstock.client.property_files import read_properties
from penstock.schemas.fingerprints import guid_of
from penstock.security.jaas import parse_login
from tests.cli.boxes import TestBox
from tests.cli.conftest import TIMEOUT_S

INVALID_RECORD = 87


@pytest.mark.parametrize("secure", [False, True])
def test_up_starts_it_when_it_is_asked_for(tmp_path: Path, secure: bool) -> None:
    box = TestBox(tmp_path / "box")
    try:
        words = ["--secure"] if secure else []
        started = box.up_anew("--with", "registry", "--registry-port", "0", *words)
        assert started.code == 0, started.err
        assert started.err.index("broker-1 is up") < started.err.index("registry is up")
        found = next(each for each in box.status()["services"] if each["name"] == "registry")
        assert found["healthy"]
        url, context, headers = f"http://127.0.0.1:{found['port']}", None, {}
        if secure:
            context = ssl.create_default_context(cafile=str(box.directory / "security" / "ca.pem"))
            login = parse_login(read_properties(str(box.directory / "client.properties"))["sasl.jaas.config"])
            pair = f"{login.options['username']}:{login.options['password']}"
            headers = {"Authorization": f"Basic {base64.b64encode(pair.encode()).decode()}"}
            url = url.replace("http", "https")
        request = urllib.request.Request(
            f"{url}/subjects/orders-value/versions",
            data=b'{"schema": "\\"string\\""}',
            headers={"Content-Type": "application/json", **headers},
        )
        with urllib.request.urlopen(request, timeout=TIMEOUT_S, context=context) as answer:
            assert answer.read() == b'{"id":1}'
        check_that_brokers_ask_it(box)
        stopped = box.run("down")
        assert stopped.code == 0, stopped.err
        assert stopped.err.index("registry has stopped") < stopped.err.index("broker-1 has stopped")
    finally:
        box.close()


def check_that_brokers_ask_it(box: TestBox) -> None:
    """A topic with schema validation works at once. Schema 1 is that of orders-value."""
    file = box.directory / "client.properties"
    properties = read_properties(str(file)) if file.exists() else {}
    connection = Connection(box.bootstrap, properties)
    with Cluster.over(connection) as cluster:
        cluster.topics.create("orders", configs={"confluent.value.schema.validation": "true"})
    told: list[Any] = []
    producer: Producer = connection.producer({"message.timeout.ms": str(int(TIMEOUT_S * 1000))})
    by_guid = b"\1" + UUID(guid_of('"string"')).bytes + b"\6tea"
    for value in (b"\0\0\0\0\1\6tea", by_guid, b"\0\0\0\0\2\6tea", b"\1" * 20, b"tea"):
        producer.produce("orders", value, on_delivery=lambda error, _: told.append(error and error.code()))
        assert producer.flush(TIMEOUT_S) == 0
    assert told == [None, None, INVALID_RECORD, INVALID_RECORD, INVALID_RECORD]
