"""Registries as processes of their own, each with a topic and a group of its own unless it is told others."""

import itertools
import sys
from collections.abc import Mapping
from pathlib import Path

from tests.web.services import Reply, WebProcess

_numbers = itertools.count(1)
V1 = "application/vnd.schemaregistry.v1+json"
QUICK = {
    "kafkagroup.session.timeout.ms": "6000",
    "kafkagroup.heartbeat.interval.ms": "200",
    # A busy machine is no reason for a test to fail.
    "kafkastore.timeout.ms": "60000",
    "idle.timeout.ms": "60000",
}


class RegistryProcess(WebProcess):
    def __init__(
        self,
        bootstrap: str,
        directory: Path,
        properties: Mapping[str, str] | None = None,
        *,
        name: str = "registry",
    ) -> None:
        self.bootstrap = bootstrap
        number = next(_numbers)
        self.topic = f"_schemas-{number}"
        directory.mkdir(exist_ok=True, parents=True)
        given = {
            "listeners": "http://127.0.0.1:0",
            "kafkastore.topic": self.topic,
            "schema.registry.group.id": f"schema-registry-{number}",
            **QUICK,
            **(properties or {}),
        }
        self.topic = given["kafkastore.topic"]
        file = directory / f"{name}.properties"
        file.write_text("".join(f"{key}={value}\n" for key, value in given.items()))
        command = [sys.executable, "-m", "penstock", "registry", "-b", bootstrap, "--config", str(file)]
        super().__init__(command, directory / f"{name}.log", name=name)

    def get(self, path: str) -> Reply:
        return self.ask("GET", path)

    def post(self, path: str, body: object) -> Reply:
        return self.ask("POST", path, body, {"Content-Type": V1})

    def put(self, path: str, body: object) -> Reply:
        return self.ask("PUT", path, body, {"Content-Type": V1})

    def delete(self, path: str) -> Reply:
        return self.ask("DELETE", path)

    def register(self, subject: str, schema: str, **more: object) -> int:
        """The schema's id."""
        reply = self.post(f"/subjects/{subject}/versions", {"schema": schema, **more})
        assert reply.status == 200, reply.body
        found: int = reply.json()["id"]
        return found

    def subjects(self) -> list[str]:
        found: list[str] = self.get("/subjects").json()
        return found

    def ids(self, subject: str) -> list[int]:
        """Of the subject's versions."""
        versions: list[int] = self.get(f"/subjects/{subject}/versions").json()
        return [self.get(f"/subjects/{subject}/versions/{version}").json()["id"] for version in versions]


def code_of(reply: Reply) -> tuple[int, int]:
    return reply.status, reply.json()["error_code"]


def record(name: str, *fields: str) -> str:
    """An Avro record of strings; a field with a question mark has a default."""
    written = []
    for field in fields:
        default = ',"default":""' if field.endswith("?") else ""
        written.append(f'{{"name":"{field.rstrip("?")}","type":"string"{default}}}')
    return f'{{"type":"record","name":"{name}","fields":[{",".join(written)}]}}'
