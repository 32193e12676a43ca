"""Karapace and our registry take over each other's topic. Karapace is in no package registry: PENSTOCK_KARAPACE names a checkout
of it with its packages in .venv. Without it, what it wrote once is read (`karapace_topic.json`)."""

import json
import os
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.client import HTTPConnection
from pathlib import Path

import pytest
from confluent_kafka import Consumer

from penstock.testing.clusters import create_topic
from penstock.testing.penstock_broker import PenstockBroker
from penstock.testing.processes import RunningProcess, free_port, start_process
from tests.registry.both_registries import Asker, everything, fill, register
from tests.registry.registries import RegistryProcess, record
from tests.registry.test_takeover import write

KARAPACE = os.environ.get("PENSTOCK_KARAPACE")
WRITTEN = Path(__file__).with_name("karapace_topic.json")
READY_TIMEOUT_S = 120.0
needs_karapace = pytest.mark.skipif(
    KARAPACE is None, reason="PENSTOCK_KARAPACE names no checkout of Karapace"
)


def start(folder: Path, module: str, settings: Mapping[str, str], log_path: Path) -> RunningProcess:
    return start_process(
        [folder / ".venv" / "bin" / "python", "-m", module],
        name="Karapace",
        log_path=log_path,
        environment={f"KARAPACE_{name}": value for name, value in settings.items()}
        | {"PYTHONPATH": str(folder / "src")},
        working_directory=folder,
    )


@contextmanager
def karapace(broker: PenstockBroker, topic: str, directory: Path) -> Iterator[Asker]:
    """Ready to be written to."""
    assert KARAPACE is not None
    folder, port = Path(KARAPACE), free_port()
    settings = {
        "BOOTSTRAP_URI": broker.bootstrap,
        "HOST": "127.0.0.1",
        "ADVERTISED_HOSTNAME": "127.0.0.1",
        "PORT": str(port),
        "TOPIC_NAME": topic,
        "GROUP_ID": f"{topic}-karapace",
        "KARAPACE_REGISTRY": "true",
        "LOG_LEVEL": "WARNING",
    }
    process = start(folder, "karapace", settings, directory / "karapace.log")
    try:
        ask, deadline = Asker(port), time.monotonic() + READY_TIMEOUT_S
        while not leads(ask):
            assert process.is_running, process.log_text()
            assert time.monotonic() < deadline, process.log_text()
            time.sleep(0.1)
        yield ask
    finally:
        process.stop()


def leads(ask: Asker) -> bool:
    try:
        return bool(ask("GET", "/_health")["status"]["schema_registry_is_primary"])
    except (OSError, AssertionError):
        return False


def records_of(broker: PenstockBroker, topic: str) -> list[tuple[str, str | None]]:
    """All that were written, the tombstones too."""
    consumer = Consumer(
        {
            "bootstrap.servers": broker.bootstrap,
            "group.id": f"{topic}-reader",
            "auto.offset.reset": "earliest",
            "enable.partition.eof": True,
        }
    )
    found: list[tuple[str, str | None]] = []
    try:
        consumer.subscribe([topic])
        while True:
            message = consumer.poll(60)
            assert message is not None
            if message.error():
                return found
            value = message.value()
            found.append((message.key().decode(), None if value is None else value.decode()))
    finally:
        consumer.close()


def make_topic(broker: PenstockBroker, topic: str) -> None:
    create_topic(
        broker.bootstrap, topic, partitions=1, replication_factor=1, config={"cleanup.policy": "compact"}
    )


def test_what_karapace_wrote_once_is_read(broker: PenstockBroker, tmp_path: Path) -> None:
    kept = json.loads(WRITTEN.read_text())
    write(broker, "_karapace-once", [(key, value) for key, value in kept["records"]])
    ours = RegistryProcess(broker.bootstrap, tmp_path, {"kafkastore.topic": "_karapace-once"})
    try:
        ask = Asker(ours.port)
        assert json.loads(json.dumps(everything(ask))) == kept["said"]
        assert register(ask, "one", record("One", "a", "b?")) == kept["said"]["one 2"][0]
        highest = max(
            id for name, (id, *_) in kept["said"].items() if " " in name and name != "referenced by"
        )
        assert register(ask, "new", record("New", "a")) > highest
    finally:
        assert ours.close() == 0


@needs_karapace
def test_our_registry_takes_karapaces_topic_over(broker: PenstockBroker, tmp_path: Path) -> None:
    make_topic(broker, "_by-karapace")
    with karapace(broker, "_by-karapace", tmp_path) as ask:
        fill(ask)
        said = everything(ask)
        highest = register(ask, "last", record("Last", "a"))
        ask("DELETE", "/subjects/last")
        said["deleted"] = sorted([*said["deleted"], "last"])
    if target := os.environ.get("PENSTOCK_KARAPACE_KEEP"):  # to make karapace_topic.json anew
        kept = {"said": said, "records": records_of(broker, "_by-karapace")}
        Path(target).write_text(json.dumps(kept, indent=1) + "\n")
    ours = RegistryProcess(broker.bootstrap, tmp_path, {"kafkastore.topic": "_by-karapace"})
    try:
        ask = Asker(ours.port)
        assert everything(ask) == said
        assert register(ask, "one", record("One", "a", "b?")) == said["one 2"][0]
        assert register(ask, "new", record("New", "a")) == highest + 1
    finally:
        assert ours.close() == 0


@needs_karapace
def test_karapace_takes_our_topic_over(broker: PenstockBroker, tmp_path: Path) -> None:
    make_topic(broker, "_by-us")
    ours = RegistryProcess(broker.bootstrap, tmp_path, {"kafkastore.topic": "_by-us"})
    try:
        ask = Asker(ours.port)
        fill(ask)
        said = everything(ask)
        highest = register(ask, "last", record("Last", "a"))
    finally:
        assert ours.close() == 0
    with karapace(broker, "_by-us", tmp_path) as ask:
        ask("DELETE", "/subjects/last")
        said["deleted"] = sorted([*said["deleted"], "last"])
        assert everything(ask) == said
        assert register(ask, "one", record("One", "a", "b?")) == said["one 2"][0]
        assert register(ask, "new", record("New", "a")) == highest + 1


@needs_karapace
def test_karapaces_proxy_uses_our_registry(broker: PenstockBroker, tmp_path: Path) -> None:
    """Its client of registries, when it writes and when it reads."""
    assert KARAPACE is not None
    folder, port, topic = Path(KARAPACE), free_port(), "by-karapaces-proxy"
    create_topic(broker.bootstrap, topic, partitions=1, replication_factor=1)
    ours = RegistryProcess(broker.bootstrap, tmp_path)
    settings = {
        "BOOTSTRAP_URI": broker.bootstrap,
        "HOST": "127.0.0.1",
        "PORT": str(port),
        "KARAPACE_REST": "true",
        "REGISTRY_HOST": "127.0.0.1",
        "REGISTRY_PORT": str(ours.port),
        "LOG_LEVEL": "WARNING",
    }
    process = start(folder, "karapace.kafka_rest_apis", settings, tmp_path / "proxy.log")
    try:
        process.wait_for_port(port, timeout_s=READY_TIMEOUT_S)
        avro = "application/vnd.kafka.avro.v2+json"

        def ask(method: str, path: str, body: object = None, **headers: str) -> bytes:
            connection = HTTPConnection("127.0.0.1", port, timeout=60)
            try:
                data = None if body is None else json.dumps(body)
                connection.request(method, path, data, {n.replace("_", "-"): v for n, v in headers.items()})
                answer = connection.getresponse()
                said = answer.read()
                assert answer.status < 300, said
                return said
            finally:
                connection.close()

        body = {"value_schema": record("Name", "name"), "records": [{"value": {"name": "ü"}}]}
        sent = json.loads(ask("POST", f"/topics/{topic}", body, Content_Type=avro))
        assert sent["value_schema_id"] == ours.ids(f"{topic}-value")[0]
        v2 = "application/vnd.kafka.v2+json"
        instance = "/consumers/group/instances/one"
        made = {"name": "one", "format": "avro", "auto.offset.reset": "earliest"}
        ask("POST", "/consumers/group", made, Content_Type=v2)
        ask("POST", f"{instance}/subscription", {"topics": [topic]}, Content_Type=v2)
        deadline, found = time.monotonic() + READY_TIMEOUT_S, []
        while not found:
            assert time.monotonic() < deadline
            found = json.loads(ask("GET", f"{instance}/records?timeout=1000", Accept=avro))
        assert [each["value"] for each in found] == [{"name": "ü"}]
    finally:
        process.stop()
        assert ours.close() == 0
