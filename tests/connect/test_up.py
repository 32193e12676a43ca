"""Connect as a service of `penstock up`, where tasks run on Spark."""

import base64
import ssl
import time
import urllib.request
from pathlib import Path
from typing import Any

from confluent_kafka import Consumer

from penstock.client.property_files import read_properties
from penstock.security.jaas import parse_login
from tests.cli.boxes import TestBox
from tests.cli.conftest import TIMEOUT_S

START_S = 150.0
"""Spark, on a busy machine."""


def test_up_starts_it_secured_when_it_is_asked_for(tmp_path: Path) -> None:
    box = TestBox(tmp_path / "box")
    lines = tmp_path / "lines.txt"
    lines.write_text("one\ntwo\n")
    try:
        started = box.up_anew("--with", "connect", "--connect-port", "0", "--registry-port", "0", "--secure")
        assert started.code == 0, started.err
        found = next(each for each in box.status()["services"] if each["name"] == "connect")
        assert found["healthy"]
        context = ssl.create_default_context(cafile=str(box.directory / "security" / "ca.pem"))
        login = parse_login(read_properties(str(box.directory / "client.properties"))["sasl.jaas.config"])
        pair = f"{login.options['username']}:{login.options['password']}"
        headers = {
            "Content-Type": "application/json",
            "Authorization": f"Basic {base64.b64encode(pair.encode()).decode()}",
        }
        url = f"https://127.0.0.1:{found['port']}"
        request = urllib.request.Request(
            f"{url}/connectors/lines/config",
            data=(
                f'{{"connector.class": "FileStreamSource", "file": "{lines}", "topic": "lines",'
                '"value.converter": "org.apache.kafka.connect.storage.StringConverter"}'
            ).encode(),
            headers=headers,
            method="PUT",
        )
        with urllib.request.urlopen(request, timeout=TIMEOUT_S, context=context) as answer:
            assert answer.status == 201
        assert values_of(box, "lines", 2) == [b"one", b"two"]
        stopped = box.run("down")
        assert stopped.code == 0, stopped.err
        assert stopped.err.index("connect has stopped") < stopped.err.index("broker-1 has stopped")
    finally:
        box.close()


def values_of(box: TestBox, topic: str, count: int) -> list[bytes]:
    from penstock.client.librdkafka_settings import librdkafka_settings

    properties = read_properties(str(box.directory / "client.properties"))
    given: dict[str, Any] = librdkafka_settings(properties, role="consumer")
    consumer = Consumer({
        **given, "bootstrap.servers": box.bootstrap, "group.id": "tests", "auto.offset.reset": "earliest",
        "topic.metadata.refresh.interval.ms": 500, "log_level": 0,
    })  # fmt: skip
    consumer.subscribe([topic])
    values: list[bytes] = []
    deadline_s = time.monotonic() + START_S
    while len(values) < count:
        assert time.monotonic() < deadline_s, values
        values += [one.value() or b"" for one in consumer.consume(10, 0.5) if one.error() is None]
    consumer.close()
    return values
