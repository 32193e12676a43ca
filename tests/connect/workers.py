"""Workers of Connect as processes of their own, each with topics of its own unless it is told others."""

import itertools
import json
import os
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from confluent_kafka import Consumer

from penstock.testing.processes import RunningProcess, start_process
from simulation.apache.java import java_command
from tests.web.services import Reply, WebProcess

DEADLINE_S = 60.0
STRINGS = "org.apache.kafka.connect.storage.StringConverter"
_numbers = itertools.count(1)


def until(condition: Callable[[], Any], what: str = "it", *, deadline_s: float = DEADLINE_S) -> Any:
    end_s = time.monotonic() + deadline_s
    while not (found := condition()):
        assert time.monotonic() < end_s, f"{what} did not come to be"
        time.sleep(0.05)
    return found


def group_properties(bootstrap: str) -> dict[str, str]:
    """Of a group of its own."""
    name = f"connect-{next(_numbers)}-{os.getpid()}"
    return {
        "bootstrap.servers": bootstrap,
        "group.id": name,
        "config.storage.topic": f"{name}-configs",
        "offset.storage.topic": f"{name}-offsets",
        "status.storage.topic": f"{name}-status",
        "offset.storage.partitions": "5",
        "config.storage.replication.factor": "1",
        "offset.storage.replication.factor": "1",
        "status.storage.replication.factor": "1",
        "key.converter": STRINGS,
        "value.converter": STRINGS,
        "offset.flush.interval.ms": "200",
        "session.timeout.ms": "6000",
        "heartbeat.interval.ms": "200",
        "listeners": "http://127.0.0.1:0",
        "errors.restart.delay.initial.ms": "200",
    }


def write_properties(file: Path, properties: Mapping[str, str]) -> Path:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("".join(f"{name}={value}\n" for name, value in properties.items()))
    return file


class ConnectApi:
    """What tests ask of a worker, ours or Kafka's."""

    def ask(
        self, method: str, path: str, body: object = None, headers: Mapping[str, str] | None = None
    ) -> Reply:
        raise NotImplementedError

    def call(self, method: str, path: str, body: object = None) -> tuple[int, Any]:
        """The status, and the body as JSON."""
        data = body if isinstance(body, bytes) or body is None else json.dumps(body).encode()
        reply = self.ask(method, path, data, {"Content-Type": "application/json"})
        return reply.status, reply.json() if reply.body else None

    def states(self, name: str) -> tuple[str, list[str]]:
        status, found = self.call("GET", f"/connectors/{name}/status")
        if status != 200:
            return "", []
        return found["connector"]["state"], [task["state"] for task in found["tasks"]]

    def wait_for(self, name: str, connector: str, *tasks: str) -> None:
        wanted = (connector, list(tasks))
        until(lambda: self.states(name) == wanted, f"{name}: {wanted}, it is {self.states(name)}")

    def create(self, name: str, config: Mapping[str, str], **more: object) -> Any:
        status, found = self.call("POST", "/connectors", {"name": name, "config": config, **more})
        assert status == 201, found
        return found


class Worker(ConnectApi, WebProcess):
    def __init__(self, directory: Path, properties: Mapping[str, str], *words: str, kind: str = "distributed",
                 name: str = "worker") -> None:  # fmt: skip
        file = write_properties(directory / f"{name}.properties", properties)
        own = ["--master", "none"] if kind == "distributed" and "--master" not in words else []
        command = [sys.executable, "-m", "penstock", "connect", kind, str(file), *words, *own]
        super().__init__(command, directory / f"{name}.log", name=name)

    def ask(self, method: str, path: str, body: object = None, headers: Mapping[str, str] | None = None, *,
            login: str | None = None) -> Reply:  # fmt: skip
        return WebProcess.ask(self, method, path, body, headers, login=login)

    @property
    def leads(self) -> bool:
        return "penstock_connect_leader 1.0" in self.ask("GET", "/metrics").body.decode()


class ApacheWorker(ConnectApi):
    """Apache Kafka's ConnectDistributed."""

    def __init__(self, directory: Path, properties: Mapping[str, str], port: int) -> None:
        given = {
            **properties,
            "listeners": f"http://127.0.0.1:{port}",
            "scheduled.rebalance.max.delay.ms": "0",
        }
        file = write_properties(directory / "apache.properties", given)
        self.port = port
        command = java_command("org.apache.kafka.connect.cli.ConnectDistributed", str(file), quick=True)
        self.process: RunningProcess = start_process(
            command, name="apache", log_path=directory / "apache-connect.log"
        )
        until(self._is_healthy, "Apache's worker")

    def ask(
        self, method: str, path: str, body: object = None, headers: Mapping[str, str] | None = None
    ) -> Reply:
        from http.client import HTTPConnection

        connection = HTTPConnection("127.0.0.1", self.port, timeout=DEADLINE_S)
        try:
            connection.request(method, path, body=body, headers=dict(headers or {}))  # type: ignore[arg-type]
            answer = connection.getresponse()
            return Reply(answer.status, {}, answer.read())
        finally:
            connection.close()

    def close(self) -> None:
        self.process.stop(timeout_s=DEADLINE_S)

    def _is_healthy(self) -> bool:
        assert self.process.is_running, self.process.log_path.read_text()[-2000:]
        try:
            return self.ask("GET", "/health").status == 200
        except OSError:
            return False


@contextmanager
def closing(*workers: Any) -> Iterator[None]:
    try:
        yield
    finally:
        for worker in workers:
            worker.close()


class Reading:
    """The values that come to a topic."""

    def __init__(self, bootstrap: str, topic: str) -> None:
        self._consumer = Consumer({
            "bootstrap.servers": bootstrap, "group.id": f"reading-{topic}", "auto.offset.reset": "earliest",
            "enable.auto.commit": False, "isolation.level": "read_committed", "log_level": 0,
            "topic.metadata.refresh.interval.ms": 500,
        })  # fmt: skip
        self._consumer.subscribe([topic])
        self.values: list[str] = []

    def look(self) -> list[str]:
        for message in self._consumer.consume(1000, 0.2):
            if message.error() is None:
                self.values.append((message.value() or b"").decode())
        return self.values

    def wait(self, count: int) -> list[str]:
        until(lambda: len(self.look()) >= count, f"{count} records, there are {self.values}")
        return self.values

    def close(self) -> None:
        self._consumer.close()
