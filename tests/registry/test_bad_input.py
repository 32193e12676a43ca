"""What no registry should be sent: an answer with a code, soon, and nobody else is held up."""

import json
import threading
from urllib.parse import quote

import pytest
from confluent_kafka import Producer

from tests.clients.driver import wait_until
from tests.registry.registries import V1, RegistryProcess, code_of, record
from tests.web.services import TIMEOUT_S

STRING = {"schema": '"string"'}


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (b"{", (400, 400)),
        (b"\xff", (400, 400)),
        (b"[]", (400, 400)),
        (b"null", (400, 400)),
        (b'{"schema": 5}', (400, 400)),
        (b'{"schema": "\\ud800"}', (400, 400)),
        (b"{}", (422, 42201)),
        (b'{"schema": ""}', (422, 42201)),
        (b'{"schema": "{"}', (422, 42201)),
        (b'{"schema": "\\"string\\"", "schemaType": "THRIFT"}', (422, 42201)),
        (b'{"schema": "\\"string\\"", "references": {}}', (422, 42201)),
        (
            b'{"schema": "\\"string\\"", "references": [{"name": "a", "subject": "b", "version": 1}]}',
            (422, 42201),
        ),
        (b'{"schema": "\\"string\\"", "version": "x"}', (400, 400)),
        (b'{"schema": "\\"string\\"", "id": 99999999999}', (400, 400)),
        (b'{"schema": "\\"string\\"", "metadata": []}', (400, 400)),
    ],
)
def test_bodies_that_are_wrong(registry: RegistryProcess, body: bytes, expected: tuple[int, int]) -> None:
    assert code_of(registry.ask("POST", "/subjects/bad/versions", body, {"Content-Type": V1})) == expected


def test_content_types_that_nobody_has(registry: RegistryProcess) -> None:
    body = json.dumps(STRING).encode()
    unknown = registry.ask("POST", "/subjects/typed/versions", body, {"Content-Type": "text/yaml"})
    assert code_of(unknown) == (415, 415)
    assert registry.ask("POST", "/subjects/typed/versions", body).status == 200
    octets = {"Content-Type": "application/octet-stream"}
    assert registry.ask("POST", "/subjects/typed/versions", body, octets).status == 200
    answer = registry.ask("GET", "/subjects", headers={"Accept": "application/json"})
    assert answer.headers["content-type"] == "application/json"
    assert registry.get("/subjects").headers["content-type"] == V1


@pytest.mark.parametrize("subject", ["a/b", "ä ü", "日本語", "a?b#c&d", "%2F", "..", "a\\b", "x" * 1000])
def test_names_of_subjects_may_be_strange(registry: RegistryProcess, subject: str) -> None:
    path = quote(subject, safe="")
    assert registry.register(path, record("Strange", "a")) > 0
    found = registry.get(f"/subjects/{path}/versions/latest").json()
    assert found["subject"] == subject
    assert subject in registry.get("/subjects").json()


@pytest.mark.parametrize("subject", ["a\nb", "a\x00b", "\x7f", "__GLOBAL", "__EMPTY", ":.ctx:", "x" * 5000])
def test_names_that_no_subject_has(registry: RegistryProcess, subject: str) -> None:
    path = quote(subject, safe="")
    assert code_of(registry.post(f"/subjects/{path}/versions", STRING)) == (422, 42208)
    assert registry.get(f"/subjects/{path}/versions").status == 404


def test_versions_and_ids_that_are_none(registry: RegistryProcess) -> None:
    registry.register("numbers", '"string"')
    for version in ("0", "-2", "1.5", "earliest", "99999999999", "x"):
        assert code_of(registry.get(f"/subjects/numbers/versions/{version}")) == (422, 42202)
    assert code_of(registry.get("/subjects/numbers/versions/2147483647")) == (404, 40402)
    for schema_id in ("x", "99999999999"):
        assert registry.get(f"/schemas/ids/{schema_id}").status == 404
    assert code_of(registry.get("/schemas/ids/123456")) == (404, 40403)
    assert registry.ask("PATCH", "/subjects/numbers").status == 405


def test_schemas_that_are_too_large(registry: RegistryProcess) -> None:
    large = json.dumps(
        {"type": "enum", "name": "E", "symbols": [f"S{number:07}" for number in range(100_000)]}
    )
    assert len(large) > 1_000_000
    assert code_of(registry.post("/subjects/large/versions", {"schema": large})) == (422, 42209)
    larger = json.dumps({"type": "record", "name": "R", "doc": "x" * 5_000_000, "fields": []})
    assert code_of(registry.post("/subjects/large/versions", {"schema": larger})) == (422, 42209)
    assert registry.register("after-large", '"string"') > 0


def test_references_go_round_in_circles_or_are_many(registry: RegistryProcess) -> None:
    registry.register("circle-a", record("A", "a"))
    reference = {"name": "A", "subject": "circle-a", "version": 1}
    twice = {"schema": record("B", "b"), "references": [reference, reference]}
    assert registry.post("/subjects/circle-b/versions", twice).status == 200
    many = {"schema": '"string"', "references": [{**reference, "name": f"N{n}"} for n in range(1000)]}
    registered = registry.post("/subjects/many/versions", many)
    assert registered.status == 200, registered.body
    found = registry.get("/subjects/many/versions/1").json()
    assert (found["id"], len(found["references"])) == (registered.json()["id"], 1000)
    more = {"schema": '"string"', "references": [{**reference, "name": f"N{n}"} for n in range(2001)]}
    assert code_of(registry.post("/subjects/many/versions", more)) == (422, 42201)
    # What a request refers to must be there, so that it makes no circle.
    own = {"schema": record("C", "c"), "references": [{"name": "C", "subject": "circle-c", "version": 1}]}
    assert code_of(registry.post("/subjects/circle-c/versions", own)) == (422, 42201)


def schema_record(subject: str, schema_id: int, text: str, **more: object) -> tuple[bytes, bytes]:
    key = f'{{"keytype":"SCHEMA","subject":"{subject}","version":1,"magic":1}}'
    value = {"subject": subject, "version": 1, "id": schema_id, "schema": text, "deleted": False, **more}
    return key.encode(), json.dumps(value).encode()


@pytest.mark.parametrize(
    ("kind", "first_id", "expected"),
    [
        ("AVRO", 500_000, 422),
        ("JSON", 500_010, 200),
        ("PROTOBUF", 500_020, 422),
    ],  # JSON Schema may have circles
)
def test_a_circle_in_the_topic_is_bounded(
    registry: RegistryProcess, kind: str, first_id: int, expected: int
) -> None:
    """No request can make one, but a record of another program can."""
    names = [f"Round{kind}{letter}" for letter in "AB"]
    texts = {
        "AVRO": lambda own, other: (
            f'{{"type":"record","name":"{own}","fields":[{{"name":"x","type":"{other}"}}]}}'
        ),
        "JSON": lambda own, other: f'{{"title":"{own}","properties":{{"x":{{"$ref":"{other}"}}}}}}',
        "PROTOBUF": lambda own, other: (
            f'syntax = "proto3";\nimport "{other}";\n\nmessage {own} {{\n  {other} x = 1;\n}}\n'
        ),
    }
    producer = Producer({"bootstrap.servers": registry.bootstrap})
    for number, (own, other) in enumerate([names, names[::-1]]):
        references = [{"name": other, "subject": other, "version": 1}]
        key, value = schema_record(
            own, first_id + number, texts[kind](own, other), schemaType=kind, references=references
        )
        producer.produce(registry.topic, value, key)
    assert producer.flush(TIMEOUT_S) == 0
    wait_until(lambda: names[1] in registry.subjects(), "the records of the circle")
    body = {
        "schema": texts[kind](f"Beside{kind}", names[0]),
        "schemaType": kind,
        "references": [{"name": names[0], "subject": names[0], "version": 1}],
    }
    assert registry.get(f"/subjects/{names[0]}/versions/1").status == 200
    assert registry.get(f"/subjects/{names[0]}/versions/1/referencedby").json() == [first_id + 1]
    for path in (f"/subjects/beside-{kind}/versions", f"/subjects/{names[0]}/versions",
                 f"/compatibility/subjects/{names[0]}/versions"):  # fmt: skip
        answer = registry.post(path, body)
        assert answer.status == expected, answer.body
    assert code_of(registry.delete(f"/subjects/{names[0]}")) == (422, 42206)
    assert registry.register(f"after-{kind}", record("AfterCircle", "a")) > 0


def test_a_slow_request_holds_up_no_other(registry: RegistryProcess) -> None:
    registry.register("quick", '"string"')
    fields = ",".join(
        f'{{"name":"f{number}","type":["null","string"],"default":null}}' for number in range(12_000)
    )
    slow = f'{{"type":"record","name":"Slow","fields":[{fields}]}}'
    ended = threading.Event()

    def compare() -> None:
        path = "/compatibility/subjects/slow/versions"
        for _ in range(3):
            registry.post(path, {"schema": slow.replace("Slow", f"Slow{_}")})
        ended.set()

    thread = threading.Thread(target=compare)
    thread.start()
    answered = 0
    while not ended.is_set():
        assert registry.post("/subjects/quick", {"schema": '"string"'}).status == 200
        answered += 1
    thread.join(TIMEOUT_S)
    assert answered > 3  # more than one for each of the slow ones
