"""confluent-kafka's own serializer and deserializer, with classes that are made here: its bytes are ours."""

from typing import Any

import pytest
from confluent_kafka.schema_registry import SchemaRegistryClient, topic_subject_name_strategy
from confluent_kafka.schema_registry.protobuf import ProtobufDeserializer, ProtobufSerializer
from confluent_kafka.serialization import MessageField, SerializationContext
from google.protobuf import json_format, message_factory
from google.protobuf.message import Message

from penstock.schemas.framing import framed, unframed
from penstock.schemas.model import PROTOBUF, Schema
from penstock.schemas.parsing import parse
from penstock.schemas.protobuf.schema import ProtobufSchema
from penstock.schemas.protobuf.values import codec_of

TEXT = """
syntax = "proto3";
package shop;
import "google/protobuf/timestamp.proto";
message Order {
  string id = 1;
  map<string, int32> pieces = 2;
  message Line { string article = 1; message Deep { int32 n = 1; } }
  repeated Line lines = 3;
  google.protobuf.Timestamp at = 4;
}
message Card { int64 number = 1; }
"""
CASES = [
    (
        "shop.Order",
        {"id": "o", "pieces": {"a": 2}, "lines": [{"article": "x"}], "at": "2020-01-01T00:00:00Z"},
    ),
    ("shop.Card", {"number": "5"}),
    ("shop.Order.Line", {"article": "x"}),
    ("shop.Order.Line.Deep", {"n": 7}),
]


def generated(name: str) -> type[Message]:
    """As protoc would make it, from the descriptor."""
    schema = parse(PROTOBUF, TEXT)
    assert isinstance(schema, ProtobufSchema)
    made: type[Message] = message_factory.GetMessageClass(schema.message(name))
    return made


@pytest.fixture
def client() -> Any:
    return SchemaRegistryClient.new_client({"url": "mock://"})


@pytest.mark.parametrize(("name", "value"), CASES)
def test_its_bytes_are_read_and_ours_are_the_same(client: Any, name: str, value: dict[str, Any]) -> None:
    kind = generated(name)
    context = SerializationContext("t", MessageField.VALUE)
    config = {"use.deprecated.format": False, "subject.name.strategy": topic_subject_name_strategy}
    message = json_format.ParseDict(value, kind())
    data = ProtobufSerializer(kind, client, config)(message, context)
    schema_id, rest = unframed(data)
    schema = registered(client)
    codec = codec_of(schema, name)
    assert codec.decode(rest) == json_format.MessageToDict(
        message, preserving_proto_field_name=True, always_print_fields_with_no_presence=True
    )
    assert isinstance(schema_id, int)
    ours = framed(schema_id, codec.encode(value))
    assert ours == data
    read = ProtobufDeserializer(kind, {"use.deprecated.format": False}, client)(ours, context)
    assert read == message


def registered(client: Any) -> Schema:
    """What the serializer has registered, as our registry would keep it."""
    sent = client.get_latest_version("t-value").schema
    schema = parse(PROTOBUF, sent.schema_str)
    assert parse(PROTOBUF, schema.text).formatted("serialized") == schema.formatted("serialized")
    return schema
