"""The services that stand in the frame, for the suite that all of them must pass."""

import json
import re
import socket
import ssl
import sys
from collections.abc import Callable, Mapping
from http.client import HTTPConnection, HTTPSConnection
from pathlib import Path
from typing import Any, NamedTuple

from penstock.testing.processes import RunningProcess, start_process

TIMEOUT_S = 60.0
READY = r"penstock [\w-]+: listening on (https?)://\S+:(\d+)"


class Reply(NamedTuple):
    status: int
    headers: dict[str, str]
    body: bytes

    def json(self) -> Any:
        return json.loads(self.body)


class WebProcess:
    """A service as a process of its own; `name: value` pairs are its properties."""

    def __init__(self, command: list[str], log_path: Path, *, name: str = "service") -> None:
        self.process: RunningProcess = start_process(command, name=name, log_path=log_path)
        try:
            self.process.wait_for_line(READY, timeout_s=TIMEOUT_S)
        except BaseException:
            self.process.kill()
            raise
        found = re.search(READY, self.log)
        assert found is not None
        self.scheme, self.port = found[1], int(found[2])
        self.url = f"{self.scheme}://127.0.0.1:{self.port}"
        self.context: ssl.SSLContext | None = None

    @property
    def log(self) -> str:
        return self.process.log_path.read_text()

    def ask(
        self,
        method: str,
        path: str,
        body: object = None,
        headers: Mapping[str, str] | None = None,
        *,
        login: str | None = None,
    ) -> Reply:
        import base64

        sent = dict(headers or {})
        if login is not None:
            sent["Authorization"] = "Basic " + base64.b64encode(login.encode()).decode()
        data = body if isinstance(body, bytes | None) else json.dumps(body).encode()
        connection: HTTPConnection
        if self.scheme == "https":
            connection = HTTPSConnection("127.0.0.1", self.port, timeout=TIMEOUT_S, context=self.context)
        else:
            connection = HTTPConnection("127.0.0.1", self.port, timeout=TIMEOUT_S)
        try:
            connection.request(method, path, body=data, headers=sent)
            answer = connection.getresponse()
            found = {name.lower(): value for name, value in answer.getheaders()}
            return Reply(answer.status, found, answer.read())
        finally:
            connection.close()

    def raw(self, data: bytes) -> bytes:
        """What comes back until the service closes the connection."""
        with socket.create_connection(("127.0.0.1", self.port), timeout=TIMEOUT_S) as plain:
            plain.sendall(data)
            found = b""
            while chunk := plain.recv(65536):
                found += chunk
            return found

    def close(self) -> int:
        return self.process.stop(timeout_s=TIMEOUT_S)


def echo_service(directory: Path, properties: Mapping[str, str]) -> WebProcess:
    directory.mkdir(exist_ok=True)
    file = directory / "echo.properties"
    given = {"listeners": "http://127.0.0.1:0", **properties}
    file.write_text("".join(f"{name}={value}\n" for name, value in given.items()))
    program = str(Path(__file__).with_name("echo_program.py"))
    return WebProcess([sys.executable, program, str(file)], directory / "echo.log")


def registry_service(directory: Path, properties: Mapping[str, str], bootstrap: str) -> WebProcess:
    directory.mkdir(exist_ok=True)
    file = directory / "registry.properties"
    given = {
        "listeners": "http://127.0.0.1:0",
        "kafkastore.topic": f"_schemas-{directory.name}",
        "schema.registry.group.id": directory.name,
        **properties,
    }
    file.write_text("".join(f"{name}={value}\n" for name, value in given.items()))
    command = [sys.executable, "-m", "penstock", "registry", "-b", bootstrap, "--config", str(file)]
    return WebProcess(command, directory / "registry.log", name="registry")


def rest_service(directory: Path, properties: Mapping[str, str], bootstrap: str) -> WebProcess:
    directory.mkdir(exist_ok=True)
    file = directory / "kafka-rest.properties"
    given = {"listeners": "http://127.0.0.1:0", "bootstrap.servers": bootstrap, **properties}
    file.write_text("".join(f"{name}={value}\n" for name, value in given.items()))
    command = [sys.executable, "-m", "penstock", "rest", "--config", str(file)]
    return WebProcess(command, directory / "rest.log", name="rest")


def sql_service(directory: Path, properties: Mapping[str, str], bootstrap: str) -> WebProcess:
    """Without queries it starts no Spark."""
    directory.mkdir(exist_ok=True)
    file = directory / "ksql-server.properties"
    given = {
        "listeners": "http://127.0.0.1:0",
        "bootstrap.servers": bootstrap,
        "ksql.service.id": f"{directory.name}_",
        "penstock.sql.data": str(directory / "data"),
        **properties,
    }
    file.write_text("".join(f"{name}={value}\n" for name, value in given.items()))
    command = [sys.executable, "-m", "penstock", "sql-server", "--config", str(file)]
    return WebProcess(command, directory / "sql-server.log", name="sql-server")


def connect_service(directory: Path, properties: Mapping[str, str], bootstrap: str) -> WebProcess:
    """A worker that shares nothing."""
    directory.mkdir(exist_ok=True)
    converter = "org.apache.kafka.connect.storage.StringConverter"
    given = {
        "listeners": "http://127.0.0.1:0",
        "bootstrap.servers": bootstrap,
        "offset.storage.file.filename": str(directory / "offsets"),
        "key.converter": converter,
        "value.converter": converter,
        **properties,
    }
    file = directory / "connect-standalone.properties"
    file.write_text("".join(f"{name}={value}\n" for name, value in given.items()))
    command = [sys.executable, "-m", "penstock", "connect", "standalone", str(file)]
    return WebProcess(command, directory / "connect.log", name="connect")


class Service(NamedTuple):
    """A row: a service that all of `test_all_services` is asked of."""

    name: str
    start: Callable[[Path, Mapping[str, str], str], WebProcess]
    """In a directory, with properties, at a cluster."""
    get: str
    """A path that is there."""
    post: str
    """One that takes JSON."""
    codes_per_status: int = 1
    """ksqlDB's error codes have two digits behind the status."""
    malformed: int = 400
    """What is no JSON is answered with: Kafka Connect's own mistake, in its eyes."""
    health: str = "UP"

    def code(self, status: int) -> int:
        return status * self.codes_per_status


SERVICES = (
    Service("echo", lambda directory, properties, _: echo_service(directory, properties), "/echo/x", "/echo"),
    Service("registry", registry_service, "/subjects", "/subjects/x/versions"),
    Service("rest", rest_service, "/topics", "/consumers/x"),
    Service("sql-server", sql_service, "/info", "/ksql", codes_per_status=100),
    Service("connect", connect_service, "/connectors", "/connectors", malformed=500, health="healthy"),
)
