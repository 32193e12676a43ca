"""The client of a schema registry, at a web server that answers as it is told to."""

import base64
import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from uuid import UUID

import pytest

from penstock.client.errors import BadOption, Unreachable
from penstock.client.schema_registry import (
    RegisteredSchema,
    RegistryRefused,
    SchemaReference,
    SchemaRegistry,
)

NOT_FOUND = (404, {"error_code": 40403, "message": "Schema not found"})


class Registry:
    """`answers` by "METHOD /path?query"; what was asked is kept in `asked`, with the headers and the body."""

    def __init__(self) -> None:
        self.answers: dict[str, tuple[int, Any]] = {}
        self.asked: list[tuple[str, dict[str, str], Any]] = []
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
                call = f"{self.command} {self.path}"
                outer.asked.append((call, dict(self.headers), json.loads(body) if body else None))
                status, answer = outer.answers.get(call, NOT_FOUND)
                said = answer if isinstance(answer, bytes) else json.dumps(answer).encode()
                self.send_response(status)
                self.send_header("Content-Length", str(len(said)))
                self.end_headers()
                self.wfile.write(said)

            do_POST = do_GET

            def log_message(self, *_: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"
        self.thread = threading.Thread(target=self.server.serve_forever)
        self.thread.start()

    def close(self) -> None:
        self.server.shutdown()
        self.thread.join()
        self.server.server_close()

    def calls(self) -> list[str]:
        return [call for call, _, _ in self.asked]


@pytest.fixture
def registry() -> Iterator[Registry]:
    running = Registry()
    yield running
    running.close()


def test_what_is_asked_for_by_id_is_asked_for_once(registry: Registry) -> None:
    registry.answers["GET /schemas/ids/7"] = (200, {"schema": '"string"'})
    client = SchemaRegistry(registry.url)
    assert client.by_id(7) == client.by_id(7) == RegisteredSchema(7, "AVRO", '"string"')
    assert registry.calls() == ["GET /schemas/ids/7"]


def test_a_refusal_has_the_registrys_code_and_is_not_kept(registry: Registry) -> None:
    client = SchemaRegistry(registry.url)
    with pytest.raises(RegistryRefused, match="Schema not found") as refused:
        client.by_id(7)
    assert (refused.value.status, refused.value.code) == (404, 40403)
    registry.answers["GET /schemas/ids/7"] = (200, {"schema": '"string"'})
    assert client.by_id(7).text == '"string"'


def test_a_subject_may_have_any_characters(registry: Registry) -> None:
    path = "POST /subjects/a%2Fb%20%C3%A9/versions?normalize=true"
    registry.answers[path] = (200, {"id": 3})
    references = [SchemaReference("common", "common-value", 1)]
    client = SchemaRegistry(registry.url)
    assert client.register("a/b é", "message A {}", "PROTOBUF", references, normalize=True) == 3
    assert registry.asked[0][2] == {
        "schema": "message A {}",
        "schemaType": "PROTOBUF",
        "references": [{"name": "common", "subject": "common-value", "version": 1}],
    }


def test_references_come_with_what_they_refer_to_and_what_is_needed_comes_first(registry: Registry) -> None:
    def answer(text: str, *references: str) -> tuple[int, Any]:
        return 200, {
            "id": 1,
            "schema": text,
            "references": [{"name": each, "subject": each, "version": 1} for each in references],
        }

    registry.answers["GET /subjects/a/versions/1"] = answer("A", "b", "c")
    registry.answers["GET /subjects/b/versions/1"] = answer("B", "c")
    registry.answers["GET /subjects/c/versions/1"] = answer("C")
    texts = SchemaRegistry(registry.url).texts_of([SchemaReference("a", "a", 1)])
    assert [(name, each.text) for name, each in texts.items()] == [("c", "C"), ("b", "B"), ("a", "A")]
    assert texts["b"].references == (SchemaReference("c", "c", 1),)
    assert len(registry.asked) == 3


def test_references_in_a_circle_end_with_an_error(registry: Registry) -> None:
    registry.answers["GET /subjects/a/versions/1"] = (
        200,
        {"id": 1, "schema": "A", "references": [{"name": "a", "subject": "a", "version": 1}]},
    )
    with pytest.raises(RegistryRefused, match="circle"):
        SchemaRegistry(registry.url).texts_of([SchemaReference("a", "a", 1)])


def test_the_next_address_is_asked_where_one_does_not_answer(registry: Registry) -> None:
    registry.answers["GET /subjects/s/versions/latest"] = (200, {"id": 2, "version": 5, "schema": '"int"'})
    client = SchemaRegistry(f"http://127.0.0.1:1, {registry.url}")
    assert client.latest("s").version == 5


@pytest.mark.parametrize(
    "answer", [(500, {"error_code": 50001, "message": "store"}), (200, b"<html>"), (200, [])]
)
def test_a_registry_that_cannot_answer_is_unreachable(registry: Registry, answer: tuple[int, Any]) -> None:
    registry.answers["GET /schemas/ids/1"] = answer
    with pytest.raises(Unreachable, match=r"schema\.registry\.url"):
        SchemaRegistry(registry.url).by_id(1)


@pytest.mark.parametrize(
    ("in_url", "properties", "expected"),
    [
        ("ana:s3cret@", {}, "Basic " + base64.b64encode(b"ana:s3cret").decode()),
        (
            "",
            {"schema.registry.basic.auth.user.info": "bo:pw"},
            "Basic " + base64.b64encode(b"bo:pw").decode(),
        ),
        (
            "",
            {"basic.auth.credentials.source": "USER_INFO", "basic.auth.user.info": "bo:pw"},
            "Basic " + base64.b64encode(b"bo:pw").decode(),
        ),
        ("", {"bearer.auth.token": "abc"}, "Bearer abc"),
        ("", {}, None),
    ],
)
def test_logins_are_taken_from_the_address_or_the_properties(
    registry: Registry, in_url: str, properties: dict[str, str], expected: str | None
) -> None:
    registry.answers["GET /schemas/ids/1"] = (200, {"schema": '"int"'})
    SchemaRegistry(registry.url.replace("://", f"://{in_url}"), properties).by_id(1)
    assert registry.asked[0][1].get("Authorization") == expected


@pytest.mark.parametrize(
    ("url", "properties", "complaint"),
    [
        ("localhost:8081", {}, "is not an address such as"),
        ("http://", {}, "is not an address such as"),
        ("http://h", {"basic.auth.user.info": "only-a-name"}, "is not NAME:PASSWORD"),
        ("http://h", {"basic.auth.credentials.source": "OTHER"}, "is not URL or USER_INFO"),
    ],
)
def test_bad_properties_are_named_and_no_secret_is_told(
    url: str, properties: dict[str, str], complaint: str
) -> None:
    with pytest.raises(BadOption, match=complaint):
        SchemaRegistry(url, properties)


def test_no_password_is_in_the_complaint_about_an_address() -> None:
    with pytest.raises(BadOption) as refused:
        SchemaRegistry("ftp://ana:s3cret@host")
    assert "s3cret" not in str(refused.value)


def test_a_schema_by_guid_has_the_id_zero(registry: Registry) -> None:
    guid = UUID("89791762-2336-4186-9674-299b90a802e2")
    registry.answers[f"GET /schemas/guids/{guid}"] = (200, {"schema": '"int"'})

    assert SchemaRegistry(registry.url).by_guid(guid) == RegisteredSchema(0, "AVRO", '"int"')


def test_subjects_and_versions_are_listed(registry: Registry) -> None:
    registry.answers["GET /subjects?subjectPrefix=t"] = (200, ["t-key", "t-value"])
    registry.answers["GET /subjects/t-key/versions"] = (200, [1, 3])
    client = SchemaRegistry(registry.url)

    assert (client.subjects("t"), client.versions("t-key")) == (["t-key", "t-value"], [1, 3])


def test_what_a_registry_says_is_one_line_of_bounded_length(registry: Registry) -> None:
    said = "incompatible:\n{\r\n\x1b[31m" + "x" * 5_000
    registry.answers["GET /schemas/ids/1"] = (409, {"error_code": 409, "message": said})
    with pytest.raises(RegistryRefused) as caught:
        SchemaRegistry(registry.url).by_id(1)
    message = str(caught.value)
    assert message.startswith("incompatible: { [31mxxx")
    assert (len(message), message.isprintable()) == (2_001, True)
