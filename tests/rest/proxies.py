"""The REST proxy as a process of its own, and what tests ask it."""

import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from tests.web.services import Reply, WebProcess

V2 = "application/vnd.kafka.v2+json"
BINARY = "application/vnd.kafka.binary.v2+json"
JSON = "application/vnd.kafka.json.v2+json"
TIMEOUT_S = 60.0


class RestProxy(WebProcess):
    def __init__(
        self,
        directory: Path,
        bootstrap: str,
        properties: Mapping[str, str] | None = None,
        *,
        command_config: Mapping[str, str] | None = None,
    ) -> None:
        directory.mkdir(exist_ok=True)
        file = directory / "kafka-rest.properties"
        given = {"listeners": "http://127.0.0.1:0", "bootstrap.servers": bootstrap, **(properties or {})}
        file.write_text("".join(f"{name}={_escaped(value)}\n" for name, value in given.items()))
        command = [sys.executable, "-m", "penstock", "rest", "--config", str(file)]
        if command_config is not None:
            client = directory / "client.properties"
            client.write_text(
                "".join(f"{name}={_escaped(value)}\n" for name, value in command_config.items())
            )
            command += ["--command-config", str(client)]
        super().__init__(command, directory / "rest.log", name="rest")

    def get(self, path: str, **headers: str) -> Reply:
        return self.ask("GET", path, headers=_names(headers))

    def post(self, path: str, body: object, content: str = V2, **headers: str) -> Reply:
        return self.ask("POST", path, body, {"Content-Type": content, **_names(headers)})

    def produce(self, topic: str, *values: object, content: str = JSON) -> Reply:
        return self.post(f"/topics/{topic}", {"records": [{"value": value} for value in values]}, content)

    def instance(self, group: str, **settings: object) -> "Instance":
        body = {
            "format": "json",
            "auto.offset.reset": "earliest",
            **{name.replace("_", "."): value for name, value in settings.items()},
        }
        made = self.post(f"/consumers/{group}", body)
        assert made.status == 200, made.body
        return Instance(self, made.json())


class Instance:
    """A consumer instance, known by its base_uri."""

    def __init__(self, proxy: RestProxy, made: Any) -> None:
        self.id = made["instance_id"]
        self._proxy = proxy
        self.path = urlsplit(made["base_uri"]).path

    def get(self, what: str, **headers: str) -> Reply:
        return self._proxy.get(f"{self.path}/{what}", **headers)

    def post(self, what: str, body: object) -> Reply:
        return self._proxy.post(f"{self.path}/{what}", body)

    def delete(self, what: str = "") -> Reply:
        return self._proxy.ask("DELETE", f"{self.path}/{what}".rstrip("/"))

    def subscribe(self, *topics: str) -> None:
        assert self.post("subscription", {"topics": topics}).status == 204

    def records(self, query: str = "") -> list[dict[str, Any]]:
        answer = self.get(f"records{query}")
        assert answer.status == 200, answer.body
        found: list[dict[str, Any]] = answer.json()
        return found

    def values_until(self, count: int) -> list[Any]:
        """As many values, however many reads it takes."""
        found: list[Any] = []
        deadline = time.monotonic() + TIMEOUT_S
        while len(found) < count and time.monotonic() < deadline:
            found += [one["value"] for one in self.records()]
        return found


def _names(headers: Mapping[str, str]) -> dict[str, str]:
    return {name.replace("_", "-"): value for name, value in headers.items()}


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\")
