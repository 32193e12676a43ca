"""What either registry is given and must then say of it, also after the other has taken its topic over."""

import json
from collections.abc import Mapping
from http.client import HTTPConnection
from typing import Any

from tests.registry.registries import V1, record

PART = 'syntax = "proto3";\npackage shop;\n\nmessage Part {\n  string name = 1;\n}\n'
WHOLE = 'syntax = "proto3";\npackage shop;\n\nimport "part.proto";\n\nmessage Whole {\n  Part part = 1;\n}\n'
OBJECT = '{"type":"object","properties":{"a":{"type":"string"}},"additionalProperties":false}'
WIDER = '{"type":"object","properties":{"a":{"type":"string"},"b":{"type":"integer"}},"additionalProperties":false}'
USES = '{"type":"record","name":"User","fields":[{"name":"one","type":"One"}]}'


class Asker:
    def __init__(self, port: int) -> None:
        self._port = port

    def __call__(self, method: str, path: str, body: Mapping[str, Any] | None = None) -> Any:
        connection = HTTPConnection("127.0.0.1", self._port, timeout=60)
        try:
            data = None if body is None else json.dumps(body).encode()
            connection.request(method, path, data, {"Content-Type": V1} if data else {})
            answer = connection.getresponse()
            said = answer.read()
            assert answer.status == 200, (method, path, answer.status, said)
            return json.loads(said)
        finally:
            connection.close()


def register(ask: Asker, subject: str, schema: str, kind: str = "AVRO", *references: tuple[str, str]) -> int:
    given: dict[str, Any] = {"schema": schema, "schemaType": kind}
    if references:
        given["references"] = [{"name": name, "subject": of, "version": 1} for name, of in references]
    found: int = ask("POST", f"/subjects/{subject}/versions", given)["id"]
    return found


def fill(ask: Asker) -> None:
    register(ask, "one", record("One", "a"))
    register(ask, "one", record("One", "a", "b?"))
    register(ask, "same", record("One", "a"))
    register(ask, "user", USES, "AVRO", ("One", "one"))
    register(ask, "object", OBJECT, "JSON")
    register(ask, "object", WIDER, "JSON")
    register(ask, "part", PART, "PROTOBUF")
    register(ask, "whole", WHOLE, "PROTOBUF", ("part.proto", "part"))
    register(ask, "hidden", record("Hidden", "a"))
    register(ask, "hidden", record("Hidden", "a", "b?"))
    register(ask, "gone", record("Gone", "a"))
    ask("PUT", "/config", {"compatibility": "FULL"})
    ask("PUT", "/config/object", {"compatibility": "NONE"})
    ask("DELETE", "/subjects/hidden/versions/1")
    register(ask, "asleep", '"string"')
    ask("DELETE", "/subjects/asleep")
    ask("DELETE", "/subjects/gone")
    ask("DELETE", "/subjects/gone?permanent=true")


def meaning(kind: str, text: str) -> Any:
    return text.split() if kind == "PROTOBUF" else json.loads(text)


def everything(ask: Asker) -> dict[str, Any]:
    """In a form that does not depend on how a registry writes the same schema."""
    found: dict[str, Any] = {
        "config": [ask("GET", "/config"), ask("GET", "/config/object")],
        "deleted": sorted(ask("GET", "/subjects?deleted=true")),
        "hidden": ask("GET", "/subjects/hidden/versions?deleted=true"),
    }
    for subject in sorted(ask("GET", "/subjects")):
        for version in ask("GET", f"/subjects/{subject}/versions"):
            said = ask("GET", f"/subjects/{subject}/versions/{version}")
            kind = said.get("schemaType", "AVRO")
            by_id = ask("GET", f"/schemas/ids/{said['id']}")
            assert meaning(kind, by_id["schema"]) == meaning(kind, said["schema"])
            found[f"{subject} {version}"] = (
                said["id"],
                kind,
                said.get("references"),
                meaning(kind, said["schema"]),
            )
    found["referenced by"] = ask("GET", "/subjects/one/versions/1/referencedby")
    return found
