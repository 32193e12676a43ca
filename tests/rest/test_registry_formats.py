"""Keys and values with schemas of a registry, in v2 and v3."""

import base64
import json
from collections.abc import Iterator
from typing import Any

import pytest
from confluent_kafka import Producer
from confluent_kafka.schema_registry import SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroDeserializer, AvroSerializer
from confluent_kafka.serialization import MessageField, SerializationContext

from penstock.testing.penstock_broker import PenstockBroker
from tests.conftest import MakeTopic
from tests.rest.proxies import TIMEOUT_S, RestProxy
from tests.web.services import WebProcess, registry_service

AVRO = json.dumps(
    {"type": "record", "name": "Order", "fields": [{"name": "amount", "type": "int"},
        {"name": "note", "type": ["null", "string"]}]}
)  # fmt: skip
JSONSCHEMA = json.dumps({"type": "object", "properties": {"amount": {"type": "integer"}}})
PROTOBUF = 'syntax = "proto3"; message Order { int32 amount = 1; string note = 2; }'
KINDS = {"avro": AVRO, "jsonschema": JSONSCHEMA, "protobuf": PROTOBUF}
VALUES: dict[str, Any] = {
    "avro": {"amount": 7, "note": {"string": "n"}},
    "jsonschema": {"amount": 7},
    "protobuf": {"amount": 7, "note": "n"},
}


@pytest.fixture(scope="module")
def registry(broker: PenstockBroker, tmp_path_factory: pytest.TempPathFactory) -> Iterator[WebProcess]:
    running = registry_service(tmp_path_factory.mktemp("registry"), {}, broker.bootstrap)
    yield running
    assert running.close() == 0


@pytest.fixture(scope="module")
def typed(
    broker: PenstockBroker, registry: WebProcess, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[RestProxy]:
    proxy = RestProxy(
        tmp_path_factory.mktemp("rest"), broker.bootstrap, {"schema.registry.url": registry.url}
    )
    yield proxy
    assert proxy.close() == 0
    assert "Traceback" not in proxy.log, proxy.log


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    return name


def content(kind: str) -> str:
    return f"application/vnd.kafka.{kind}.v2+json"


def test_values_go_in_and_come_out(typed: RestProxy, make_topic: MakeTopic, kind: str) -> None:
    topic = make_topic()
    body = {"value_schema": KINDS[kind], "records": [{"value": VALUES[kind]}, {"value": None}]}
    first = typed.post(f"/topics/{topic}", body, content(kind)).json()
    assert [one["offset"] for one in first["offsets"]] == [0, 1]
    assert (first["key_schema_id"], first["value_schema_id"] > 0) == (None, True)
    by_id = {"value_schema_id": first["value_schema_id"], "records": [{"value": VALUES[kind]}]}
    assert typed.post(f"/topics/{topic}", by_id, content(kind)).json()["offsets"][0]["offset"] == 2
    instance = typed.instance(topic, format=kind)
    instance.subscribe(topic)
    assert instance.values_until(3) == [VALUES[kind], None, VALUES[kind]]
    instance.delete()


def test_confluents_serializers_and_the_proxy_read_one_another(
    typed: RestProxy, make_topic: MakeTopic, registry: WebProcess, broker: PenstockBroker
) -> None:
    with SchemaRegistryClient({"url": registry.url}) as client:
        check_both_ways(client, typed, broker, make_topic())


def check_both_ways(
    client: SchemaRegistryClient, typed: RestProxy, broker: PenstockBroker, topic: str
) -> None:
    context = SerializationContext(topic, MessageField.VALUE)
    value = AvroSerializer(client, AVRO)({"amount": 7, "note": "n"}, context)
    producer = Producer({"bootstrap.servers": broker.bootstrap})
    producer.produce(topic, value)
    producer.flush(TIMEOUT_S)
    body = {"value_schema": AVRO, "records": [{"value": VALUES["avro"]}]}
    assert typed.post(f"/topics/{topic}", body, content("avro")).status == 200
    instance = typed.instance(topic, format="avro")
    instance.subscribe(topic)
    assert instance.values_until(2) == [VALUES["avro"]] * 2
    instance.delete()
    raw = typed.instance(f"{topic}-raw", format="binary")
    raw.subscribe(topic)
    for text in raw.values_until(2):
        assert AvroDeserializer(client)(base64.b64decode(text), context) == {"amount": 7, "note": "n"}
    raw.delete()


def test_v3_names_the_schema_in_each_of_its_ways(
    typed: RestProxy, make_topic: MakeTopic, registry: WebProcess
) -> None:
    topic = make_topic()
    (cluster,) = typed.get("/v3/clusters").json()["data"]
    at = f"/v3/clusters/{cluster['cluster_id']}/topics/{topic}/records"

    def told(value: dict[str, Any]) -> dict[str, Any]:
        answer = typed.post(at, {"value": {**value, "data": VALUES["avro"]}}, "application/json").json()
        assert answer["error_code"] == 200, answer
        found: dict[str, Any] = answer["value"]
        return found

    first = told({"type": "AVRO", "schema": AVRO})
    assert (first["type"], first["subject"]) == ("AVRO", f"{topic}-value")
    schema_id = first["schema_id"]
    assert told({"schema_id": schema_id})["schema_id"] == schema_id
    assert told({"schema_version": 1})["schema_version"] == 1
    assert told({})["schema_id"] == schema_id  # the latest of the subject
    assert told({"subject": f"{topic}-value"})["schema_id"] == schema_id
    named = told({"type": "AVRO", "schema": AVRO, "subject_name_strategy": "RECORD_NAME"})
    assert named["subject"] == "Order"


def test_what_does_not_fit_is_told(typed: RestProxy, make_topic: MakeTopic) -> None:
    topic = make_topic()

    def code(**body: object) -> int:
        answer = typed.post(
            f"/topics/{topic}", {"records": [{"value": {"amount": "x"}}], **body}, content("avro")
        )
        found: int = answer.json()["error_code"]
        return found

    assert code(value_schema=AVRO) == 42203
    assert code(value_schema='{"type": "nothing"}') == 42205
    assert code(value_schema="{") == 42205
    assert code(value_schema_id=99) == 42207
    assert code() == 42202
    assert code(value_schema=AVRO, records=[{"key": 1, "value": {}}]) == 42201
    assert typed.get(f"/topics/{topic}/partitions/0/offsets").json()["end_offset"] == 0


def test_values_without_a_schema_are_told_and_can_be_stepped_over(
    typed: RestProxy, broker: PenstockBroker, make_topic: MakeTopic
) -> None:
    topic = make_topic()
    producer = Producer({"bootstrap.servers": broker.bootstrap})
    for value in (b"plain", b"\0\0\0\x7f\xff", None):
        producer.produce(topic, value)
    producer.flush(TIMEOUT_S)
    instance = typed.instance(topic, format="avro")
    instance.subscribe(topic)
    for offset in (1, 2):
        refused = instance.get("records")
        assert (refused.status, refused.json()["error_code"]) == (500, 50002)
        place = {"topic": topic, "partition": 0, "offset": offset}
        assert instance.post("positions", {"offsets": [place]}).status == 204
    assert instance.values_until(1) == [None]
    instance.delete()


def test_a_registry_that_is_away_is_told(
    broker: PenstockBroker, make_topic: MakeTopic, tmp_path_factory: pytest.TempPathFactory
) -> None:
    topic = make_topic()
    url = {"schema.registry.url": "http://127.0.0.1:1"}
    proxy = RestProxy(tmp_path_factory.mktemp("rest"), broker.bootstrap, url)
    try:
        body = {"value_schema": AVRO, "records": [{"value": VALUES["avro"]}]}
        answer = proxy.post(f"/topics/{topic}", body, content("avro"))
        assert (answer.status, answer.json()["error_code"]) == (408, 40801)
    finally:
        assert proxy.close() == 0
