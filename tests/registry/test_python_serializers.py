"""confluent-kafka's serializers of all three kinds with our registry: subject strategies, evolution, references."""

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from confluent_kafka.schema_registry import (
    Schema,
    SchemaReference,
    SchemaRegistryClient,
    record_subject_name_strategy,
    topic_record_subject_name_strategy,
    topic_subject_name_strategy,
)
from confluent_kafka.schema_registry.avro import AvroDeserializer, AvroSerializer
from confluent_kafka.schema_registry.error import SchemaRegistryError
from confluent_kafka.schema_registry.json_schema import JSONDeserializer, JSONSerializer
from confluent_kafka.schema_registry.protobuf import ProtobufDeserializer, ProtobufSerializer
from confluent_kafka.serialization import MessageField, SerializationContext
from google.protobuf import descriptor_pb2, message_factory, timestamp_pb2
from google.protobuf.descriptor_pool import DescriptorPool

from tests.registry.registries import RegistryProcess, record

STRING, MESSAGE = 9, 11
STRATEGIES = {
    "topic": (topic_subject_name_strategy, "{topic}-value"),
    "record": (record_subject_name_strategy, "{name}"),
    "topic-record": (topic_record_subject_name_strategy, "{topic}-{name}"),
}


@pytest.fixture
def client(registry: RegistryProcess) -> Iterator[SchemaRegistryClient]:
    with SchemaRegistryClient({"url": registry.url}) as made:
        yield made


def object_of(title: str, *names: str) -> str:
    """A closed JSON Schema of strings, which may get more of them."""
    properties = {name: {"type": "string"} for name in names}
    return json.dumps(
        {
            "$schema": "http://json-schema.org/draft-07/schema#",
            "title": title,
            "type": "object",
            "properties": properties,
            "additionalProperties": False,
        }
    )


def message_of(name: str, *fields: str) -> Any:
    """The class of a message of strings; its file has the name of the message, the package is `shop`."""
    file = descriptor_pb2.FileDescriptorProto(name=f"{name}.proto", package="shop", syntax="proto3")
    message = file.message_type.add(name=name)
    for number, field in enumerate(fields, 1):
        message.field.add(name=field, number=number, type=STRING, label=1)
    pool = DescriptorPool()
    pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName(f"shop.{name}"))


def avro_pair(
    client: SchemaRegistryClient, name: str, config: dict[str, Any], *fields: str
) -> tuple[Any, Any, Any]:
    schema = record(name, "name", *(f"{each}?" for each in fields))
    return AvroSerializer(client, schema, conf=config), AvroDeserializer(client, schema), dict


def json_pair(
    client: SchemaRegistryClient, name: str, config: dict[str, Any], *fields: str
) -> tuple[Any, Any, Any]:
    schema = object_of(name, "name", *fields)
    return JSONSerializer(schema, client, conf=config), JSONDeserializer(schema, None, client), dict


def protobuf_pair(
    client: SchemaRegistryClient, name: str, config: dict[str, Any], *fields: str
) -> tuple[Any, Any, Any]:
    kind, plain = message_of(name, "name", *fields), {"use.deprecated.format": False}
    return (
        ProtobufSerializer(kind, client, {**plain, **config}),
        ProtobufDeserializer(kind, plain, client),
        kind,
    )


Pair = Callable[..., tuple[Any, Any, Any]]
KINDS: dict[str, Pair] = {"avro": avro_pair, "json": json_pair, "protobuf": protobuf_pair}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_subjects_are_named_by_the_strategy(client: SchemaRegistryClient, kind: str, strategy: str) -> None:
    name, topic = f"Named{kind.title()}{strategy.replace('-', '').title()}", f"{kind}-{strategy}"
    function, subject = STRATEGIES[strategy]
    serialize, deserialize, make = KINDS[kind](client, name, {"subject.name.strategy": function})
    context = SerializationContext(topic, MessageField.VALUE)
    data = serialize(make(name="ü"), context)
    full_name = f"shop.{name}" if kind == "protobuf" else name
    wanted = subject.format(topic=topic, name=full_name)
    assert wanted in client.get_subjects()
    assert int.from_bytes(data[1:5], "big") == client.get_latest_version(wanted).schema_id
    assert name_in(deserialize(data, context)) == "ü"
    found = {"subject.name.strategy": function, "auto.register.schemas": False}
    again, _, make = KINDS[kind](client, name, found)
    assert again(make(name="ü"), context) == data


def name_in(value: Any) -> Any:
    return value["name"] if isinstance(value, dict) else value.name


@pytest.mark.parametrize("kind", KINDS)
def test_values_of_an_older_schema_are_read_by_a_newer_one(client: SchemaRegistryClient, kind: str) -> None:
    name, context = (
        f"Grows{kind.title()}",
        SerializationContext(f"grows-{kind}", MessageField.VALUE),
    )
    old, read_old, make_old = KINDS[kind](client, name, {})
    first = old(make_old(name="a"), context)
    new, read_new, make_new = KINDS[kind](client, name, {}, "size")
    second = new(make_new(name="b", size="large"), context)
    assert client.get_versions(f"grows-{kind}-value") == [1, 2]
    assert first[1:5] != second[1:5]
    assert [name_in(read_new(each, context)) for each in (first, second)] == ["a", "b"]
    assert name_in(read_old(first, context)) == "a"


@pytest.mark.parametrize("kind", KINDS)
def test_a_schema_that_does_not_fit_is_refused(client: SchemaRegistryClient, kind: str) -> None:
    context = SerializationContext(f"refused-{kind}", MessageField.VALUE)
    texts = {
        "avro": (record("Refused", "a"), '"int"'),
        "json": (object_of("Refused", "name", "size"), object_of("Refused", "name")),
        "protobuf": (
            'syntax = "proto3"; message Refused { string name = 1; }',
            'syntax = "proto3"; message Other {}',
        ),
    }
    subject = f"{context.topic}-value"
    schemas = [Schema(text, kind.upper()) for text in texts[kind]]
    client.register_schema(subject, schemas[0])
    with pytest.raises(SchemaRegistryError) as refused:
        client.register_schema(subject, schemas[1])
    assert (refused.value.http_status_code, refused.value.error_code) == (409, 409)
    assert client.test_compatibility(subject, schemas[1]) is False


def test_a_json_schema_refers_to_another(client: SchemaRegistryClient) -> None:
    client.register_schema("json-part", Schema(object_of("Part", "a"), "JSON"))
    whole = json.dumps(
        {"title": "Whole", "type": "object", "properties": {"part": {"$ref": "part.json"}}},
    )
    schema = Schema(whole, "JSON", [SchemaReference("part.json", "json-part", 1)])
    context = SerializationContext("json-wholes", MessageField.VALUE)
    serialize = JSONSerializer(schema, client)
    data = serialize({"part": {"a": "x"}}, context)
    assert JSONDeserializer(schema, None, client)(data, context) == {"part": {"a": "x"}}
    found = client.get_latest_version("json-wholes-value").schema
    assert [each.subject for each in found.references or []] == ["json-part"]
    with pytest.raises(Exception, match="Additional properties"):
        serialize({"part": {"b": "x"}}, context)


def test_a_protobuf_message_brings_its_imports_along(client: SchemaRegistryClient) -> None:
    """The serializer registers the files that are imported first, as references; Google's it may leave out."""
    part = descriptor_pb2.FileDescriptorProto(name="shop/part.proto", package="shop", syntax="proto3")
    part.message_type.add(name="Part").field.add(name="name", number=1, type=STRING, label=1)
    whole = descriptor_pb2.FileDescriptorProto(
        name="shop/whole.proto",
        package="shop",
        syntax="proto3",
        dependency=["shop/part.proto", "google/protobuf/timestamp.proto"],
    )
    message = whole.message_type.add(name="Whole")
    message.field.add(name="part", number=1, type=MESSAGE, label=1, type_name=".shop.Part")
    message.field.add(name="at", number=2, type=MESSAGE, label=1, type_name=".google.protobuf.Timestamp")
    pool = DescriptorPool()
    timestamp = descriptor_pb2.FileDescriptorProto()
    timestamp_pb2.DESCRIPTOR.CopyToProto(timestamp)
    for file in (timestamp, part, whole):
        pool.Add(file)
    kind: Any = message_factory.GetMessageClass(pool.FindMessageTypeByName("shop.Whole"))
    plain = {"use.deprecated.format": False}
    context = SerializationContext("wholes-of-protobuf", MessageField.VALUE)
    given = kind(part={"name": "ü"}, at={"seconds": 7})
    data = ProtobufSerializer(kind, client, plain)(given, context)
    assert data is not None
    found = ProtobufDeserializer(kind, plain, client)(data, context)
    assert (found.part.name, found.at.seconds) == ("ü", 7)
    references = client.get_latest_version("wholes-of-protobuf-value").schema.references or []
    assert "shop/part.proto" in {each.name for each in references}
    assert "shop/part.proto" in client.get_subjects()
