"""penstock compose: the stack of a file in containers, as far as it can be tried without a container engine.

It is checked by the schema of the specification. Then the commands of its services run here, with folders of the test in place
of volumes, and addresses of this machine in the place of containers' names.
"""

from __future__ import annotations

import os
import re
import stat
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
import yaml

from penstock.admin import Cluster
from penstock.client.schema_registry import SchemaRegistry
from penstock.config.environment import option_name
from penstock.stack.containers import variable_of
from penstock.testing.penstock_broker import READY_LINE
from penstock.testing.processes import free_port, start_process
from penstock.testing.zookeeper import ZooKeeperServer
from tests.cli.conftest import BIN, Finished, run_command
from tests.docs.pages import ROOT

PROGRAMS = Path(sys.executable).parent
FILE = """
name: lab
zookeeper:
brokers: {count: 2, port: 0, settings: {num.partitions: 4}}
registry:
rest: {port: 18082}
connect: {settings: {penstock.connect.master: none, offset.flush.interval.ms: 500}}
sql:
console:
spark: {port: 7177}
topics:
  orders: {partitions: 2, replication: 2}
schemas:
  orders-value: {file: order.avsc}
"""


def written(folder: Path, text: str = FILE, *words: str) -> Finished:
    (folder / "penstock.yaml").write_text(text)
    (folder / "order.avsc").write_text('{"type": "string"}')
    return run_command("penstock", "compose", *words, cwd=folder)


def loaded(folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load((folder / "compose.yaml").read_text())
    return found


@pytest.mark.parametrize("text", [FILE, "brokers:\n", FILE.replace("zookeeper:", "zookeeper: {count: 3}")])
def test_what_is_written_keeps_to_the_specification(tmp_path: Path, text: str) -> None:
    done = written(tmp_path, text)
    assert done.code == 0, done.err
    check = [str(PROGRAMS / "check-jsonschema"), "--builtin-schema", "vendor.compose-spec", "compose.yaml"]
    judged = subprocess.run(check, cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False)
    assert judged.returncode == 0, judged.stdout


def test_services_wait_for_what_they_need_and_are_published_on_this_machine_only(tmp_path: Path) -> None:
    written(tmp_path)
    services = loaded(tmp_path)["services"]
    assert set(services["broker-2"]["depends_on"]) == {"zookeeper"}
    assert set(services["rest"]["depends_on"]) == {"broker-1", "broker-2", "registry"}
    assert set(services["spark-worker-1"]["depends_on"]) == {"spark"}
    assert services["rest"]["ports"] == ["127.0.0.1:18082:8082"]
    assert services["broker-2"]["ports"] == ["127.0.0.1:9093:9092"]
    assert all(port.startswith("127.0.0.1:") for one in services.values() for port in one.get("ports", ()))
    assert "--schema-registry-url" in services["setup"]["command"]
    assert services["setup"]["volumes"] == [".:/stack:ro"]
    written(tmp_path, FILE + "listen: 0.0.0.0\n")
    services = loaded(tmp_path)["services"]
    assert services["rest"]["ports"] == ["0.0.0.0:18082:8082"]
    assert services["zookeeper"]["ports"] == ["127.0.0.1:2181:2181"]


def test_dollars_of_values_are_no_variables_of_compose(tmp_path: Path) -> None:
    text = "brokers: {settings: {penstock.zookeeper.auth: 'a:b$c'}}\nrest: {settings: {authentication.realm: '$x'}}\n"
    assert written(tmp_path, text).code == 0
    found = (tmp_path / "compose.yaml").read_text()
    assert "a:b$$c" in found
    assert "authentication.realm=$$x" in found


def test_a_compose_yaml_of_somebody_else_and_a_secured_stack_are_refused(tmp_path: Path) -> None:
    (tmp_path / "compose.yaml").write_text("services: {}\n")
    refused = written(tmp_path)
    assert (
        refused.err == "penstock: compose.yaml is there, and not of this command: name another file with -o\n"
    )
    assert (tmp_path / "compose.yaml").read_text() == "services: {}\n"
    secured = written(tmp_path, "secure: true\nbrokers:\n", "-o", "-")
    assert secured.code == 1
    assert "cannot be written for containers" in secured.err
    elsewhere = written(tmp_path, FILE, "-o", "-")
    assert yaml.safe_load(elsewhere.out)["name"] == "lab"


@pytest.mark.parametrize(
    "name", ["num.partitions", "listener.name.my_net.sasl.scram-sha-256.jaas", "a_b-c.d"]
)
def test_an_option_as_a_variable_is_the_same_option_to_the_image(name: str) -> None:
    assert option_name(variable_of(name).removeprefix("KAFKA_")) == name


def test_the_dockerfile_of_services_passes_its_linter_and_has_what_its_build_copies() -> None:
    path = ROOT / "deploy" / "Dockerfile.services"
    linted = subprocess.run(
        [str(PROGRAMS / "hadolint"), str(path)], capture_output=True, text=True, timeout=60, check=False
    )
    assert linted.returncode == 0, linted.stdout
    ignored = (ROOT / "deploy" / "Dockerfile.dockerignore").read_text()
    assert (ROOT / "deploy" / "Dockerfile.services.dockerignore").read_text() == ignored


class Emulated:
    """Services of a compose.yaml as processes, on free ports of this machine."""

    def __init__(self, document: dict[str, Any], folder: Path, zookeeper: str) -> None:
        self.services: dict[str, Any] = document["services"]
        self._configs: dict[str, Any] = document["configs"]
        self._folder = folder
        self.addresses = {"zookeeper:2181": zookeeper}
        self._outside: dict[str, str] = {}
        for name, service in self.services.items():
            for port in service.get("ports", ()):
                inner = "9093" if name.startswith("broker-") else port.rpartition(":")[2]
                self.addresses.setdefault(f"{name}:{inner}", f"127.0.0.1:{free_port()}")
            self._outside[name] = str(free_port())

    def here(self, text: str, name: str) -> str:
        data = self._folder / name
        text = re.sub(r"(?<![\w.])/data\b", str(data), text).replace("/stack/", f"{self._folder}/")
        for place, address in self.addresses.items():
            text = text.replace(place, address)
        own = next((at for place, at in self.addresses.items() if place.startswith(f"{name}:")), "")
        text = re.sub(r"http://(0\.0\.0\.0|localhost):\d+", f"http://{own}", text)
        text = text.replace("INSIDE://:9093", f"INSIDE://{own}").replace("localhost:9093", own)
        return re.sub(r"OUTSIDE://(localhost)?:\d+", f"OUTSIDE://127.0.0.1:{self._outside[name]}", text)

    def command(self, name: str) -> list[str]:
        service = self.services[name]
        for config in service.get("configs", ()):
            path = Path(self.here(config["target"], name))
            path.parent.mkdir(exist_ok=True)
            path.write_text(self.here(self._configs[config["source"]]["content"].replace("$$", "$"), name))
        return [self.here(word, name).replace("$$", "$") for word in service.get("command", BROKER)]

    def environment(self, name: str) -> dict[str, str]:
        given = self.services[name].get("environment", {})
        found = {key: self.here(value, name) for key, value in given.items()}
        return {**found, "KAFKA_LOG_DIRS": str(self._folder / name)}

    def url(self, place: str) -> str:
        return f"http://{self.addresses[place]}"


BROKER = ["penstock", "broker", "--env-prefix", "KAFKA_"]


@pytest.fixture
def emulated(tmp_path: Path) -> Iterator[Emulated]:
    assert written(tmp_path).code == 0
    with ZooKeeperServer(tmp_path / "zookeeper") as zookeeper, ExitStack() as running:
        made = Emulated(loaded(tmp_path), tmp_path, zookeeper.address)
        for name, line in (
            ("broker-1", READY_LINE),
            ("broker-2", READY_LINE),
            ("registry", "listening on http"),
            ("connect", "listening on http"),
            ("sql", "listening on http"),
        ):
            program, *words = made.command(name)
            process = start_process(
                [str(BIN / program), *words],
                name=name,
                log_path=tmp_path / f"{name}.log",
                environment={**os.environ, **made.environment(name)},
                working_directory=tmp_path,
            )
            running.callback(process.stop, timeout_s=60)
            process.wait_for_line(line, timeout_s=60)
        yield made


@pytest.mark.timeout(300)
def test_the_services_of_the_file_find_one_another_and_the_last_one_makes_what_shall_be_there(
    emulated: Emulated,
) -> None:
    done = run_command(*emulated.command("setup"))
    assert done.code == 0, done.err
    with Cluster(emulated.addresses["broker-1:9093"]) as cluster:
        (orders,) = cluster.topics.describe("orders")
        assert [len(one.replicas) for one in orders.partitions] == [2, 2]
    assert SchemaRegistry(emulated.url("registry:8081")).subjects() == ["orders-value"]
    for name in ("registry", "connect", "sql"):
        *_, program = emulated.services[name]["healthcheck"]["test"]
        asked = [sys.executable, "-c", emulated.here(program, name)]
        assert subprocess.run(asked, timeout=60, check=False).returncode == 0
    with urllib.request.urlopen(emulated.url("connect:8083") + "/connectors", timeout=30) as answer:
        assert answer.status == 200


def test_the_file_is_for_everybody_to_read_and_no_more(tmp_path: Path) -> None:
    written(tmp_path)
    assert stat.S_IMODE((tmp_path / "compose.yaml").stat().st_mode) & 0o111 == 0
