"""confluent-kafka's SchemaRegistryClient with its serializers, as in its documentation."""

import base64
from collections.abc import Iterator

import pytest
from confluent_kafka.schema_registry import Schema, SchemaReference, SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroDeserializer, AvroSerializer
from confluent_kafka.schema_registry.error import SchemaRegistryError
from confluent_kafka.serialization import MessageField, SerializationContext
from google.protobuf.descriptor_pb2 import FileDescriptorProto

from tests.registry.registries import RegistryProcess, record

USER = record("User", "name", "color?")


@pytest.fixture
def client(registry: RegistryProcess) -> Iterator[SchemaRegistryClient]:
    with SchemaRegistryClient({"url": registry.url}) as made:
        yield made


def test_values_go_through_the_serializers(client: SchemaRegistryClient) -> None:
    context = SerializationContext("users", MessageField.VALUE)
    serialized = AvroSerializer(client, USER)({"name": "ana", "color": "red"}, context)
    assert serialized is not None
    newer = record("User", "name", "color?", "size?")
    read = AvroDeserializer(client, newer)(serialized, context)
    assert read == {"name": "ana", "color": "red", "size": ""}
    looked_up = AvroSerializer(client, USER, conf={"auto.register.schemas": False})
    assert looked_up({"name": "bob", "color": ""}, context) is not None
    latest = AvroSerializer(client, USER, conf={"auto.register.schemas": False, "use.latest.version": True})
    assert latest({"name": "eve", "color": ""}, context) is not None


def test_the_clients_calls(client: SchemaRegistryClient) -> None:
    schema = Schema(USER, "AVRO")
    schema_id = client.register_schema("calls", schema)
    full = client.register_schema_full_response("calls-full", schema)
    assert (full.schema_id, bool(full.guid)) == (schema_id, True)
    assert client.get_schema(schema_id).schema_str == USER
    assert client.lookup_schema("calls", schema).version == 1
    assert client.get_latest_version("calls").schema_id == schema_id
    assert client.get_version("calls", 1).schema.schema_str == USER
    assert client.get_versions("calls") == [1]
    assert "calls" in client.get_subjects()
    assert client.test_compatibility("calls", Schema(record("User", "name"), "AVRO"))
    assert not client.test_compatibility("calls", Schema(record("User", "other"), "AVRO"))
    client.set_compatibility("calls", "FULL")
    assert client.get_compatibility("calls") == "FULL"
    assert client.delete_version("calls", 1) == 1
    assert client.delete_subject("calls", permanent=True) == [1]
    with pytest.raises(SchemaRegistryError) as refused:
        client.get_version("calls", 1)
    assert refused.value.error_code == 40401


def test_references(client: SchemaRegistryClient) -> None:
    client.register_schema("part", Schema(record("Part", "a"), "AVRO"))
    whole = '{"type":"record","name":"Whole","fields":[{"name":"part","type":"Part"}]}'
    schema = Schema(whole, "AVRO", references=[SchemaReference("Part", "part", 1)])
    context = SerializationContext("wholes", MessageField.VALUE)
    data = AvroSerializer(client, schema)({"part": {"a": "x"}}, context)
    assert data is not None
    assert AvroDeserializer(client)(data, context) == {"part": {"a": "x"}}


def test_kinds_other_than_avro_are_registered(
    registry: RegistryProcess, client: SchemaRegistryClient
) -> None:
    proto = 'syntax = "proto3";\npackage a;\n\nmessage M {\n  string name = 1;\n}\n'
    schema_id = client.register_schema("proto-value", Schema(proto, "PROTOBUF"))
    found = client.get_schema(schema_id)
    assert (found.schema_type, "message M" in str(found.schema_str)) == ("PROTOBUF", True)
    serialized = registry.get(f"/schemas/ids/{schema_id}?format=serialized").json()["schema"]
    assert FileDescriptorProto.FromString(base64.b64decode(serialized)).package == "a"
    text = '{"type":"object","properties":{"a":{"type":"string"}}}'
    json_id = client.register_schema("json-value", Schema(text, "JSON"))
    assert client.get_schema(json_id).schema_type == "JSON"


def test_a_json_schema_that_only_the_policy_forbids_is_told_about_it(registry: RegistryProcess) -> None:
    path = "/subjects/policy/versions"
    small = '{"type":"object","properties":{"a":{"type":"string"}}}'
    larger = '{"type":"object","properties":{"a":{"type":"string"},"b":{"type":"string"}}}'
    assert registry.post(path, {"schemaType": "JSON", "schema": small}).status == 200
    refused = registry.post(path, {"schemaType": "JSON", "schema": larger})
    assert (refused.status, "compatibilityPolicy=LENIENT" in refused.json()["message"]) == (409, True)
    registry.put("/config/policy", {"compatibilityPolicy": "LENIENT"})
    assert registry.post(path, {"schemaType": "JSON", "schema": larger}).status == 200
